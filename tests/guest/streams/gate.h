/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A kernel that waits until the program opens the gate for the n-th time, however long that takes.
 * So tests can ask what comes before and after work that is under way.
 */
#ifndef GATE_H
#define GATE_H

#include "check.h"

static volatile int *gate;
static int opened;

__global__ void gated_store(const volatile int *at, int n, uint32_t *out, uint32_t value)
{
	while (*at < n)
		;
	*out = value;
}

__global__ void add_one(const uint32_t *in, uint32_t *out)
{
	*out = *in + 1;
}

static inline void make_gate(void)
{
	CHECK(cudaHostAlloc((void **)&gate, sizeof(*gate), cudaHostAllocMapped));
	*gate = 0;
}

static inline void store_when_opened(uint32_t *out, uint32_t value, cudaStream_t stream)
{
	void *device_gate;

	CHECK(cudaHostGetDevicePointer(&device_gate, (void *)gate, 0));
	gated_store<<<1, 1, 0, stream>>>((const volatile int *)device_gate, opened + 1, out, value);
	CHECK_LAUNCH();
}

static inline void open_gate(void)
{
	*gate = ++opened;
}

#endif

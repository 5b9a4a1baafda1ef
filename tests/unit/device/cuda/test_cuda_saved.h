/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of saved sessions with the cuda backend share: a backend with a stand-in for CUDA.
 */
#ifndef QCU_TEST_CUDA_SAVED_H
#define QCU_TEST_CUDA_SAVED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/device/cuda/cuda_stand_in.h"

#define KIB   (1ull << 10)
#define MIB   (1ull << 20)
#define DEV   CUDA_DEVICE
#define LIMIT (1024 * MIB)
#define LARGE (PART + 6 * MIB)
/* Addresses that nothing has, also under ASan. */
#define FREE_PLACE (CU_AREA + (1ull << 42))
#define NOT_OURS   (3ull << 44)

static struct be be;
static uint64_t charged;

static inline bool charge(void *ctx, unsigned int dev, int64_t bytes)
{
	(void)ctx;
	assert_int_equal(dev, DEV);
	if (bytes > 0 && charged + (uint64_t)bytes > LIMIT)
		return false;
	charged += (uint64_t)bytes;
	return true;
}

static inline int begin(void **state)
{
	(void)state;
	memset(&be, 0, sizeof(be));
	be.charge_device = charge;
	charged = 0;
	return cuda_open_movable(&be, LIMIT);
}

static inline int end(void **state)
{
	(void)state;
	cu_mem_close(&be);
	return !cuda_is_empty();
}

/* A fresh backend in another process: all addresses are free again. */
static inline void begin_again(void)
{
	assert_int_equal(end(NULL), 0);
	assert_int_equal(begin(NULL), 0);
}

static inline uint64_t allocate(uint64_t size)
{
	uint64_t addr;

	return cu_mem_alloc(&be, DEV, size, &addr) ? 0 : addr;
}

static inline uint64_t allocate_wanted(uint64_t size, const struct be_wanted *w, size_t count)
{
	static const struct be_wanted none;
	uint64_t addr;

	cu_want(&be, count ? w : &none, count);
	addr = allocate(size);
	cu_want(&be, NULL, 0);
	return addr;
}

static inline bool is_filled(uint64_t addr, uint64_t size, uint8_t value)
{
	const uint8_t *p = (const uint8_t *)(uintptr_t)addr;

	return p[0] == value && p[(size - 1) / MIB * MIB] == value &&
	       (size > MIB || p[size - 1] == value);
}

static inline void fill(uint64_t addr, uint64_t size, uint8_t value)
{
	assert_int_equal(cudaMemset((void *)(uintptr_t)addr, value, size), cudaSuccess);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that use cuFFT, cuRAND, cuSOLVER and cuSPARSE need. */
#ifndef LIBS_H
#define LIBS_H

#include <cmath>
#include <complex>
#include <vector>

#include "check.h"

#define OK(call)    status_code(__FILE__, __LINE__, #call, (int)(call))
#define FAILS(call) status_fails(__FILE__, __LINE__, #call, (int)(call))

static inline void status_code(const char *file, int line, const char *call, int got)
{
	if (!got)
		return;
	fprintf(stderr, "%s:%d: %s\n\tgave %d\n", file, line, call, got);
	exit(1);
}

static inline void status_fails(const char *file, int line, const char *call, int got)
{
	if (got)
		return;
	fprintf(stderr, "%s:%d: %s\n\tdid not fail\n", file, line, call);
	exit(1);
}

/* The first call. Without the library, as on the software GPU, the program is skipped. */
static inline void first(const char *library, int status, int missing)
{
	if (status == missing) {
		printf("there is no %s here: status %d\n", library, status);
		exit(77);
	}
	REQUIRE(!status, "the first call of %s gave %d", library, status);
}

/* Small numbers that look random, the same in each run. */
static unsigned int libs_seed = 1;
static inline double small_number(void)
{
	libs_seed = libs_seed * 1664525u + 1013904223u;
	return ((int)(libs_seed >> 16) % 200 - 100) / 64.0;
}

/* GPU memory with a copy of the host's. */
template <typename T> static T *up(const std::vector<T> &host)
{
	T *gpu;

	CHECK(cudaMalloc(&gpu, host.size() * sizeof(T)));
	CHECK(cudaMemcpy(gpu, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
	return gpu;
}

template <typename T> static std::vector<T> down(const T *gpu, size_t n)
{
	std::vector<T> host(n);

	CHECK(cudaMemcpy(host.data(), gpu, n * sizeof(T), cudaMemcpyDeviceToHost));
	return host;
}

#endif

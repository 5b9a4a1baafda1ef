/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For the loopback tests: a call must return this code, a condition must hold; otherwise the macro
 * prints a message and the test fails.
 */
#ifndef LOOPBACK_CHECK_H
#define LOOPBACK_CHECK_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/rounds.h"

#define EXPECT(call, code)                                                                    \
	do {                                                                                  \
		cudaError_t got_ = (call), want_ = (code);                                    \
		if (got_ != want_) {                                                          \
			fprintf(stderr, "%s:%d: %s: %s, not %s\n", __FILE__, __LINE__, #call, \
				cudaGetErrorName(got_), cudaGetErrorName(want_));             \
			exit(1);                                                              \
		}                                                                             \
	} while (0)

#define OK(call) EXPECT(call, cudaSuccess)

#define REQUIRE(cond, ...)                                                         \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond); \
			fprintf(stderr, __VA_ARGS__);                              \
			fputc('\n', stderr);                                       \
			exit(1);                                                   \
		}                                                                  \
	} while (0)

/* The call returns the error. The error is the last error once, and is then cleared. */
#define REFUSED(call, code)                          \
	do {                                         \
		EXPECT(call, code);                  \
		EXPECT(cudaPeekAtLastError(), code); \
		EXPECT(cudaGetLastError(), code);    \
		OK(cudaGetLastError());              \
	} while (0)

/* Computes and stores eight bytes at once, because the sanitizers make each step slow. */
static inline void fill(void *p, size_t len, uint32_t seed)
{
	char *to = (char *)p;
	uint64_t x = seed * 0x9e3779b97f4a7c15ul + 1;

	for (; len; to += 8) {
		uint64_t bytes;
		size_t some = len < 8 ? len : 8;

		x = x * 6364136223846793005ul + 1442695040888963407ul;
		bytes = x ^ x >> 32; /* the low bits of x repeat soon */
		memcpy(to, &bytes, some);
		len -= some;
	}
}

static inline bool mapped(const void *p)
{
	unsigned char vec;

	return mincore((void *)((uintptr_t)p & ~4095ul), 4096, &vec) == 0;
}

/*
 * Waits until the memory is unmapped: this happens some time after the call that frees it. Returns
 * false if it stays mapped.
 */
static inline bool goes_back(const void *p)
{
	int ms;

	for (ms = 0; mapped(p) && ms < 30000; ms++)
		usleep(1000);
	return !mapped(p);
}

/* Returns the index of the first byte that differs, or len if none does. */
static inline size_t differs(const void *a, const void *b, size_t len)
{
	size_t i;

	if (memcmp(a, b, len) == 0)
		return len;
	for (i = 0; ((const char *)a)[i] == ((const char *)b)[i];)
		i++;
	return i;
}

#endif

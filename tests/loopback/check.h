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

/* Stores eight bytes at once, because ThreadSanitizer makes each access slow. */
static inline void fill(void *p, size_t len, uint32_t seed)
{
	char *to = (char *)p;
	uint32_t x = seed * 2654435761u + 1;
	unsigned int i, some;

	for (; len; len -= some, to += some) {
		uint64_t bytes = 0;

		some = len < sizeof(bytes) ? (unsigned int)len : sizeof(bytes);
		for (i = 0; i < some; i++) {
			x = x * 1664525 + 1013904223;
			bytes |= (uint64_t)(x >> 24) << (8 * i);
		}
		memcpy(to, &bytes, some);
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

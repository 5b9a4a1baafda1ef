/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every test program needs: a call that must succeed, a call that must fail with one exact
 * error, a condition that must hold, a clock, numbers that look random, and the last line.
 *
 * A program is plain CUDA: it does not know qCUDA and also runs on a bare host. It computes its
 * result a second time on the CPU. It ends with one line that says what it has verified, and
 * returns 0; or it prints to stderr what was wrong, and returns 1.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime.h>

#define CHECK(call)	   check_code(__FILE__, __LINE__, #call, (call), cudaSuccess)
#define EXPECT(call, code) check_code(__FILE__, __LINE__, #call, (call), (code))
#define REQUIRE(cond, ...) ((cond) ? (void)0 : check_failed(__FILE__, __LINE__, #cond, __VA_ARGS__))

/* After <<<>>>: checks that the launch was accepted. */
#define CHECK_LAUNCH() CHECK(cudaGetLastError())

static inline void check_code(const char *file, int line, const char *call, cudaError_t got,
			      cudaError_t want)
{
	if (got == want)
		return;
	fprintf(stderr, "%s:%d: %s\n\tgave %d %s, expected %d %s\n", file, line, call, (int)got,
		cudaGetErrorName(got), (int)want, cudaGetErrorName(want));
	exit(1);
}

static inline void check_failed(const char *file, int line, const char *cond, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s:%d: not true: %s: ", file, line, cond);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

/*
 * CUDA loads a kernel when it is first used, and may then wait for the whole device. So if
 * something after a launch holds up the work, its kernel must be loaded before.
 */
static inline void load_kernel(const void *kernel)
{
	cudaFuncAttributes attributes;

	CHECK(cudaFuncGetAttributes(&attributes, kernel));
}

/* The last line of a program; the demo's table quotes it. */
static inline int verified(const char *fmt, ...)
{
	va_list ap;

	printf("verified: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	return 0;
}

static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* The same numbers in every run and on both sides; any index can be computed alone. */
static inline __host__ __device__ uint32_t scramble(uint32_t i, uint32_t seed)
{
	uint32_t x = i * 0x9e3779b1u + seed * 0x85ebca77u + 0x27d4eb2fu;

	x ^= x >> 15;
	x *= 0x2c1b3c6du;
	x ^= x >> 13;
	return x;
}

static inline void fill_words(void *buf, size_t bytes, uint32_t seed)
{
	uint32_t *word = (uint32_t *)buf;
	size_t i, words = bytes / 4;

	for (i = 0; i < words; i++)
		word[i] = scramble((uint32_t)i, seed);
	for (i = words * 4; i < bytes; i++)
		((unsigned char *)buf)[i] = (unsigned char)scramble((uint32_t)i, seed + 1);
}

/* Index of the first byte that differs, or `bytes`. */
static inline size_t first_difference(const void *a, const void *b, size_t bytes)
{
	const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
	size_t i;

	if (!memcmp(a, b, bytes))
		return bytes;
	for (i = 0; i < bytes && x[i] == y[i]; i++)
		;
	return i;
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keeps the GPU busy with pieces of work of one length, so that shares can be compared: hog FILE NS
 * LAUNCHES [KIND]. It counts the pieces that have ended in FILE, 64 bits, and ends after LAUNCHES,
 * or when the second number in FILE is no longer zero. KIND:
 *
 * - wait: a kernel that waits and does not compute, so other work on the processors does not
 *   matter;
 * - work: a kernel that computes for about so long on a GPU of 2 GHz;
 * - graph: four such kernels one after the other, each a quarter as long;
 * - gemm: a call of cuBLAS with matrices of NS * NS.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/guest/check.h"

#define AHEAD 64 /* launches that are under way; the program would like more than it may */

__global__ void take_time(unsigned int ns)
{
	unsigned long long began, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
	do {
		__nanosleep(ns);
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (now - began < ns);
}

__global__ void compute(unsigned int rounds, float *out)
{
	float x = 1;

	for (unsigned int i = 0; i < rounds; i++)
		asm volatile("fma.rn.f32 %0, %0, %0, 0f3f000000;" : "+f"(x));
	if (x == 0)
		*out = x;
}

/* A step takes four cycles. */
static unsigned int rounds_of(unsigned int ns)
{
	return ns / 2;
}

static unsigned int ns;
static cudaGraphExec_t graph;
static void *blas;
static float *matrix;
static int (*gemm)(void *, int, int, int, int, int, const float *, const float *, int,
		   const float *, int, const float *, float *, int);

static void put_wait(void)
{
	take_time<<<1, 1>>>(ns);
}

static void put_work(void)
{
	compute<<<1, 32>>>(rounds_of(ns), NULL);
}

static void put_graph(void)
{
	cudaGraphLaunch(graph, 0);
}

static void put_gemm(void)
{
	const float one = 1, zero = 0;
	int n = (int)ns;

	gemm(blas, 0, 0, n, n, n, &one, matrix, n, matrix, n, &zero, matrix + (size_t)n * n, n);
}

static int make_graph(void)
{
	cudaStream_t s;
	cudaGraph_t g;
	int i;

	CHECK(cudaStreamCreate(&s));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	for (i = 0; i < 4; i++)
		compute<<<1, 32, 0, s>>>(rounds_of(ns / 4), NULL);
	CHECK(cudaStreamEndCapture(s, &g));
	CHECK(cudaGraphInstantiate(&graph, g, 0));
	return 0;
}

static int open_blas(void)
{
	void *lib = dlopen("libcublas.so.13", RTLD_NOW);
	int (*create)(void **) = lib ? (int (*)(void **))dlsym(lib, "cublasCreate_v2") : NULL;

	if (!create || create(&blas)) {
		printf("no cuBLAS\n");
		return 1;
	}
	gemm = (decltype(gemm))dlsym(lib, "cublasSgemm_v2");
	CHECK(cudaMalloc(&matrix, 2 * sizeof(float) * ns * ns));
	CHECK(cudaMemset(matrix, 0, 2 * sizeof(float) * ns * ns));
	return 0;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 4 ? argv[4] : "wait";
	void (*put)(void) = !strcmp(kind, "wait")    ? put_wait
			    : !strcmp(kind, "work")  ? put_work
			    : !strcmp(kind, "graph") ? put_graph
			    : !strcmp(kind, "gemm")  ? put_gemm
						     : NULL;
	uint64_t launches = argc > 3 ? strtoull(argv[3], NULL, 10) : 0, i;
	cudaEvent_t event[AHEAD];
	volatile uint64_t *count;
	int fd;

	if (argc < 4 || argc > 5 || !put)
		return 2;
	ns = (unsigned int)atoi(argv[2]);
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 16))
		return 2;
	count = (volatile uint64_t *)mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (count == MAP_FAILED)
		return 2;
	if ((put == put_graph && make_graph()) || (put == put_gemm && open_blas()))
		return 1;
	for (i = 0; i < AHEAD; i++)
		CHECK(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming));
	for (i = 0; i < launches && !count[1]; i++) {
		if (i >= AHEAD) {
			CHECK(cudaEventSynchronize(event[i % AHEAD]));
			count[0] = i - AHEAD + 1;
		}
		put();
		CHECK(cudaGetLastError());
		CHECK(cudaEventRecord(event[i % AHEAD]));
	}
	CHECK(cudaDeviceSynchronize());
	count[0] = i;
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * QCU_SOFT_CHECK=1: kernels with mistakes that a GPU does not notice are reported on the
 * program's stderr, each once for its line, with the file and the line of their unit. Kernels
 * without mistakes are not reported.
 */
#include <unistd.h>

#include "tests/loopback/check.h"

#define N 128
/* Notes the line of a mistake for the test below. */
#define MISTAKE(kernel) static const int kernel##_line = __LINE__

__device__ int second_unit(int *s, int i);
__global__ void reads_shared(int *out);

MISTAKE(reads_global) + 3;
__global__ void reads_global(const int *in, int *out)
{
	out[threadIdx.x] = in[threadIdx.x];
}

MISTAKE(reads_local) + 6;
__global__ void reads_local(int *out, int n)
{
	volatile int a[8];

	a[n & 7] = 1;
	out[threadIdx.x] = a[(n + 1) & 7];
}

/* The compiler makes 16 reads of the loop, all of one line. */
MISTAKE(reads_in_a_loop) + 6;
__global__ void reads_in_a_loop(const int *in, int *out)
{
	int sum = 0;
#pragma unroll
	for (int i = 0; i < 16; i++)
		sum += in[i];
	*out = sum;
}

MISTAKE(races) + 6;
__global__ void races(int *out)
{
	__shared__ int s[N];

	s[threadIdx.x] = threadIdx.x;
	out[threadIdx.x] = s[N - 1 - threadIdx.x];
}

MISTAKE(overwrites) + 8;
__global__ void overwrites(int *out)
{
	__shared__ int s[N];

	s[threadIdx.x] = threadIdx.x;
	__syncthreads();
	out[threadIdx.x] = s[N - 1 - threadIdx.x];
	s[threadIdx.x] = 1000;
	__syncthreads();
	out[threadIdx.x] += s[5];
}

MISTAKE(races_in_warp) + 6;
__global__ void races_in_warp(int *out)
{
	__shared__ int s[N];

	s[threadIdx.x] = threadIdx.x;
	out[threadIdx.x] = s[threadIdx.x ^ 1];
}

/*
 * Everything that must not be reported: all the ways to order accesses, and writes that change
 * nothing.
 */
__global__ void clean(const int *in, int *out, int *total)
{
	__shared__ int s[N], lock, flag, sum, bins[4];
	int t = threadIdx.x, v = in[t];

	if (t < 4)
		bins[t] = 0;
	if (t == 0)
		lock = flag = sum = 0;
	s[t] = v;
	__syncthreads();
	for (int d = N / 2; d >= 32; d /= 2) {
		if (t < d)
			s[t] += s[t + d];
		__syncthreads();
	}
	if (t < 32)
		for (int d = 16; d; d /= 2) {
			int x = s[t] + (t < d ? s[t + d] : 0);

			__syncwarp();
			s[t] = x;
			__syncwarp();
		}
	atomicAdd(&bins[v & 3], 1);
	flag = 1;
	while (atomicCAS(&lock, 0, 1) != 0)
		;
	__threadfence_block();
	sum += v;
	__threadfence_block();
	atomicExch(&lock, 0);
	__syncthreads();
	out[t] = second_unit(s, 0) + sum + flag + bins[0] + bins[1] + bins[2] + bins[3];
	if (t == 0)
		atomicAdd(total, s[0]);
}

__global__ void draws(cudaSurfaceObject_t surf)
{
	surf1Dwrite((int)threadIdx.x, surf, threadIdx.x * 4);
}

static int report;

/*
 * Checks the messages since the last call: there must be `count` of them (-1: any number), and
 * they must hold all of these texts.
 */
static void must_say(int count, const char *what, const char *kernel, const char *file, int line)
{
	static char text[1 << 16];
	static off_t from;
	char where[64];
	ssize_t n;
	int got = 0;

	OK(cudaDeviceSynchronize());
	fflush(stderr);
	n = pread(report, text, sizeof(text) - 1, from);
	REQUIRE(n >= 0, "no report");
	text[n] = 0;
	from += n;
	for (const char *s = text; *s; s += strcspn(s, "\n") + 1)
		got += strncmp(s, "qcuda:   ", 9) != 0;
	snprintf(where, sizeof(where), "qcuda:   at %s:%d\n", file, line);
	if ((count < 0 ? got > 0 : got == count) &&
	    (!count || (strstr(text, what) && strstr(text, kernel) && strstr(text, where))))
		return;
	printf("%s: %d messages with '%s' and '%s' instead of:\n%s", kernel, count, what, where, text);
	exit(1);
}

/* Fills `out` with a copy of what a kernel has drawn on a surface. */
static void drawn(int *out)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
	cudaResourceDesc resource = {};
	cudaSurfaceObject_t surf;
	cudaArray_t array;
	int *never;

	OK(cudaMalloc((void **)&never, N * sizeof(int)));
	OK(cudaMemcpy(out, never, N * sizeof(int), cudaMemcpyDeviceToDevice));
	OK(cudaMallocArray(&array, &format, N, 0, cudaArraySurfaceLoadStore));
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	OK(cudaCreateSurfaceObject(&surf, &resource));
	draws<<<1, N>>>(surf);
	OK(cudaMemcpy2DFromArray(out, N * sizeof(int), array, 0, 0, N * sizeof(int), 1,
				 cudaMemcpyDeviceToDevice));
	OK(cudaDestroySurfaceObject(surf));
	OK(cudaFreeArray(array));
	OK(cudaFree(never));
}

int main(void)
{
	const char *here = "memory_check.cu";
	int *never, *in, *out, host[N], sum = 0;
	FILE *f = tmpfile();

	REQUIRE(f && dup2(fileno(f), 2) == 2, "no file for stderr");
	report = fileno(f);
	setenv("QCU_SOFT_CHECK", "1", 1);
	OK(cudaMalloc((void **)&never, N * sizeof(int)));
	OK(cudaMalloc((void **)&in, (N + 1) * sizeof(int)));
	OK(cudaMalloc((void **)&out, N * sizeof(int)));
	for (int i = 0; i < N; i++) {
		host[i] = i * 3;
		sum += host[i];
	}
	OK(cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice));
	OK(cudaMemset(in + N, 0, sizeof(int)));
	clean<<<1, N>>>(in, out, in + N);
	must_say(0, "", "clean", here, 0);
	OK(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		if (host[i] != 2 * sum + 1 + N) {
			printf("clean: %d\n", host[i]);
			return 1;
		}

	reads_global<<<1, N>>>(never, out);
	must_say(1, "uninitialised read of 4 bytes of global memory", "reads_global", here,
		 reads_global_line);
	reads_in_a_loop<<<1, 1>>>(never, out);
	must_say(1, "uninitialised read of 4 bytes of global memory", "reads_in_a_loop", here,
		 reads_in_a_loop_line);
	reads_in_a_loop<<<1, 1>>>(never, out);
	must_say(1, "uninitialised read of 4 bytes of global memory", "reads_in_a_loop", here,
		 reads_in_a_loop_line);
	reads_shared<<<1, N>>>(out);
	must_say(1, "uninitialised read of 4 bytes of shared memory", "reads_shared",
		 "memory_check_unit.cu", 17);
	reads_local<<<1, 1>>>(out, 3);
	must_say(1, "uninitialised read of 4 bytes of local memory", "reads_local", here,
		 reads_local_line);
	races<<<1, N>>>(out);
	must_say(-1, "race on shared memory", "races", here, races_line);
	overwrites<<<1, N>>>(out);
	must_say(-1, "race on shared memory", "overwrites", here, overwrites_line);
	races_in_warp<<<1, 32>>>(out);
	must_say(-1, "race on shared memory", "races_in_warp", here, races_in_warp_line);

	/* A copy of memory that was never written does not count as written either. */
	OK(cudaMemcpy(out, never, N * sizeof(int), cudaMemcpyDeviceToDevice));
	reads_global<<<1, N>>>(out, in);
	must_say(1, "uninitialised read of 4 bytes of global memory", "reads_global", here,
		 reads_global_line);
	OK(cudaMemset2D(never, 8, 1, 8, N / 2));
	reads_global<<<1, N>>>(never, out);
	reads_global<<<1, N>>>(out, in);
	must_say(0, "", "reads_global", here, 0);
	drawn(out);
	reads_global<<<1, N>>>(out, in);
	must_say(0, "", "reads_global", here, 0);
	printf("memory_check: 10 reports, 5 kernels without\n");
	return 0;
}

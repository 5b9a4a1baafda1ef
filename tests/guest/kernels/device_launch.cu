// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernels that launch kernels: a sort that launches itself for its halves, launches to each kind of
 * stream and their order, launches that fail, and the runtime functions that kernels can call.
 */
#include "check.h"

#define N     1000
#define SMALL 32
#define DEEP  16

/* Sorts by insertion if the range is small, or if the launches are deep. */
__device__ void insertion(int *v, int n)
{
	for (int i = 1; i < n; i++)
		for (int k = i; k > 0 && v[k] < v[k - 1]; k--) {
			int t = v[k];

			v[k] = v[k - 1];
			v[k - 1] = t;
		}
}

__global__ void quicksort(int *v, int n, int depth)
{
	int low = 0, high = n - 1, pivot = v[n / 2];

	if (n <= SMALL || depth >= DEEP) {
		insertion(v, n);
		return;
	}
	while (low <= high) {
		while (v[low] < pivot)
			low++;
		while (v[high] > pivot)
			high--;
		if (low <= high) {
			int t = v[low];

			v[low++] = v[high];
			v[high--] = t;
		}
	}
	if (high > 0)
		quicksort<<<1, 1>>>(v, high + 1, depth + 1);
	if (low < n - 1)
		quicksort<<<1, 1>>>(v + low, n - low, depth + 1);
}

__global__ void add(int *p, int v)
{
	extern __shared__ int part[];

	part[threadIdx.x] = v;
	__syncthreads();
	atomicAdd(p + blockIdx.x, part[blockDim.x - 1 - threadIdx.x]);
}

/* Each thread launches a grid of 3 blocks. */
__global__ void many(int *p)
{
	add<<<3, 8, 8 * sizeof(int)>>>(p, threadIdx.x);
	p[10 + threadIdx.x] = cudaGetLastError();
}

__global__ void append(int *log, int v)
{
	log[1 + atomicAdd(log, 1)] = v;
}

/* The tail comes after everything else that this kernel launches. */
__global__ void tail(int *log, int left)
{
	append<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 100 + left);
	if (left)
		tail<<<1, 1, 0, cudaStreamTailLaunch>>>(log, left - 1);
	append<<<1, 1, 0, cudaStreamFireAndForget>>>(log, left);
}

__global__ void streams(int *log)
{
	cudaStream_t s, t;
	cudaEvent_t e;
	int bad = 0;

	bad |= cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
	bad |= cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
	bad |= cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
	bad |= s == t;
	append<<<1, 1, 0, s>>>(log, 1);
	bad |= cudaEventRecord(e, s);
	bad |= cudaStreamWaitEvent(t, e, 0);
	append<<<1, 1, 0, t>>>(log, 2);
	bad |= cudaEventDestroy(e);
	bad |= cudaStreamDestroy(s);
	bad |= cudaStreamDestroy(t);
	bad |= cudaGetLastError();
	log[20] = bad;
}

__global__ void never(int *p)
{
	*p = 1;
}

__global__ void bad_launches(int *p)
{
	never<<<0, 1>>>(p);
	p[1] = cudaPeekAtLastError();
	p[2] = cudaGetLastError();
	p[3] = cudaGetLastError();
	never<<<1, 2000>>>(p);
	p[4] = cudaGetLastError();
}

/* Launches itself until that is too deep; every level counts. */
__global__ void dive(int *p)
{
	atomicAdd(p, 1);
	dive<<<1, 1>>>(p);
	if (cudaGetLastError() != cudaSuccess)
		p[1]++;
}

__global__ void memory(int *p, int *values)
{
	int *own = NULL;

	p[0] = cudaMalloc((void **)&own, 64);
	p[1] = own == NULL;
	own[3] = 77;
	p[2] = own[3];
	p[3] = cudaFree(own);
	p[4] = cudaMemsetAsync(values, 0, 40, 0);
	p[5] = cudaMemcpyAsync(values + 20, values + 10, 40, cudaMemcpyDeviceToDevice, 0);
}

__global__ void questions(int *p)
{
	int device = -1, count = 0, warp = 0, version = 0;
	const char *name = cudaGetErrorName(cudaErrorInvalidValue);

	p[0] = cudaGetDevice(&device);
	p[1] = device;
	cudaGetDeviceCount(&count);
	p[2] = count > device;
	cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device);
	p[3] = warp;
	/* An H200 succeeds, and reports another version than the host. */
	p[4] = cudaRuntimeGetVersion(&version) == cudaSuccess;
	p[5] = name[0] == 'c' && name[9] == 'I';
	p[6] = cudaGetErrorString(cudaSuccess)[0] != 0;
}

int main()
{
	int h[N], *d, sum = 0, next = 0;
	uint32_t seed = 1;

	CHECK(cudaMalloc((void **)&d, sizeof(h)));
	for (int i = 0; i < N; i++) {
		seed = seed * 1664525u + 1013904223u;
		h[i] = (int)(seed >> 12);
		sum ^= h[i];
	}
	CHECK(cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice));
	quicksort<<<1, 1>>>(d, N, 0);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		REQUIRE(!i || h[i - 1] <= h[i], "%d: %d before %d", i, h[i - 1], h[i]);
		sum ^= h[i];
	}
	REQUIRE(sum == 0, "other numbers");

	CHECK(cudaMemset(d, 0, sizeof(h)));
	many<<<1, 40>>>(d);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 3; i++)
		REQUIRE(h[i] == 8 * 39 * 40 / 2, "block %d: %d", i, h[i]);
	for (int i = 0; i < 40; i++)
		REQUIRE(h[10 + i] == 0, "thread %d: error %d", i, h[10 + i]);

	CHECK(cudaMemset(d, 0, sizeof(h)));
	tail<<<1, 1>>>(d, 3);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	REQUIRE(h[0] == 8, "%d entries", h[0]);
	for (int left = 3; left >= 0; left--) {
		REQUIRE(h[1 + next] == left, "entry %d: %d instead of %d", next, h[1 + next], left);
		next++;
		REQUIRE(h[1 + next] == 100 + left, "entry %d: %d", next, h[1 + next]);
		next++;
	}

	CHECK(cudaMemset(d, 0, sizeof(h)));
	streams<<<1, 1>>>(d);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	REQUIRE(h[0] == 2 && h[1] == 1 && h[2] == 2, "%d: %d %d", h[0], h[1], h[2]);
	REQUIRE(h[20] == 0, "errors %x", h[20]);

	CHECK(cudaMemset(d, 0, sizeof(h)));
	bad_launches<<<1, 1>>>(d);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	REQUIRE(h[0] == 0, "it ran");
	REQUIRE(h[1] != 0 && h[2] == h[1] && h[3] == 0, "%d %d %d", h[1], h[2], h[3]);
	REQUIRE(h[4] != 0, "2000 threads");

	CHECK(cudaMemset(d, 0, sizeof(h)));
	dive<<<1, 1>>>(d);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	/* An H200 ends after 2049 levels, the software GPU after 24. */
	REQUIRE(h[0] > 1 && h[1] == 1, "%d levels, %d errors", h[0], h[1]);

	for (int i = 0; i < N; i++)
		h[i] = i + 1;
	CHECK(cudaMemcpy(d, h, sizeof(h), cudaMemcpyHostToDevice));
	memory<<<1, 1>>>(d, d + 100);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	REQUIRE(!h[0] && !h[1] && h[2] == 77 && !h[3] && !h[4] && !h[5], "%d %d %d %d %d %d", h[0],
		h[1], h[2], h[3], h[4], h[5]);
	for (int i = 0; i < 10; i++)
		REQUIRE(h[100 + i] == 0 && h[110 + i] == 111 + i && h[120 + i] == 111 + i,
			"%d: %d %d %d", i, h[100 + i], h[110 + i], h[120 + i]);

	questions<<<1, 1>>>(d);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	REQUIRE(!h[0] && h[1] == 0 && h[2] && h[3] == 32 && h[4] && h[5] && h[6],
		"%d %d %d %d %d %d %d", h[0], h[1], h[2], h[3], h[4], h[5], h[6]);
	CHECK(cudaFree(d));
	return verified("launches from kernels, and the runtime that kernels call");
}

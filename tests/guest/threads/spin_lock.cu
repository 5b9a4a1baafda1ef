// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A lock made from compare-and-swap that every thread takes: the 32 threads of one warp (this
 * hangs if threads of a warp cannot take separate paths), the threads of a block, and many
 * blocks. The lock protects an ordinary counter and a linked list.
 */
#include "check.h"

struct guarded {
	int lock;
	volatile int count;
	volatile int head;
};

__device__ void locked_push(guarded *g, volatile int *next, int me)
{
	while (atomicCAS(&g->lock, 0, 1) != 0)
		;
	__threadfence();
	g->count = g->count + 1;
	next[me] = g->head;
	g->head = me;
	__threadfence();
	atomicExch(&g->lock, 0);
}

__global__ void push_all(guarded *g, int *next)
{
	locked_push(g, next, blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void push_shared(guarded *out, int *next)
{
	__shared__ guarded g;

	if (threadIdx.x == 0) {
		g.lock = 0;
		g.count = 0;
		g.head = -1;
	}
	__syncthreads();
	locked_push(&g, next, threadIdx.x);
	__syncthreads();
	if (threadIdx.x == 0) {
		out->count = g.count;
		out->head = g.head;
	}
}

static int *dev_next;
static guarded *dev;

static void run(int blocks, int threads, bool shared)
{
	const int n = blocks * threads;
	guarded g = {0, 0, -1};
	int next[1024], seen[1024] = {0}, length = 0;

	CHECK(cudaMemcpy(dev, &g, sizeof(g), cudaMemcpyHostToDevice));
	if (shared)
		push_shared<<<blocks, threads>>>(dev, dev_next);
	else
		push_all<<<blocks, threads>>>(dev, dev_next);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&g, dev, sizeof(g), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(next, dev_next, n * sizeof(int), cudaMemcpyDeviceToHost));
	REQUIRE(g.count == n, "%d x %d: counted %d", blocks, threads, g.count);
	for (int at = g.head; at >= 0 && length <= n; at = next[at], length++)
		REQUIRE(at < n && !seen[at]++, "%d x %d: %d is in the list twice", blocks, threads,
			at);
	REQUIRE(length == n, "%d x %d: the list holds %d", blocks, threads, length);
}

int main(void)
{
	CHECK(cudaMalloc(&dev, sizeof(*dev)));
	CHECK(cudaMalloc(&dev_next, 1024 * sizeof(int)));
	run(1, 32, false);
	run(1, 32, true);
	run(1, 96, false);
	run(1, 96, true);
	run(16, 1, false);
	run(7, 40, false);
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_next));
	return verified("a lock within a warp, a block and a grid");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * C++ atomics in device code with memory orders and scopes: a message passed with release and
 * acquire, a counter with relaxed additions, compare and exchange, minimum and maximum.
 */
#include <cuda/atomic>

#include "check.h"

#define THREADS 128
#define ROUNDS	10

typedef cuda::atomic<int, cuda::thread_scope_device> device_int;
typedef cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> wide_ref;

struct state {
	device_int counter, least, owner;
	unsigned long long total;
	int passes;
};

__global__ void count(state *s)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x, expected = -1;

	s->counter.fetch_add(t, cuda::memory_order_relaxed);
	s->least.fetch_min(1000 - t, cuda::memory_order_seq_cst);
	wide_ref(s->total).fetch_add((unsigned long long)t << 33, cuda::memory_order_acq_rel);
	if (s->owner.compare_exchange_strong(expected, t))
		atomicAdd(&s->passes, 1);
}

/*
 * Two warps of a block pass a value to and fro. The data beside it is written with plain stores.
 */
__global__ void pass(int *out)
{
	__shared__ cuda::atomic<int, cuda::thread_scope_block> turn;
	__shared__ int ball;
	int side = threadIdx.x / 32;

	if (threadIdx.x == 0) {
		turn.store(0, cuda::memory_order_relaxed);
		ball = 1;
	}
	__syncthreads();
	if (threadIdx.x % 32 == 0) {
		for (int r = 0; r < ROUNDS; r++) {
			while (turn.load(cuda::memory_order_acquire) != 2 * r + side)
				__nanosleep(20);
			ball = ball * 2 + side;
			turn.fetch_add(1, cuda::memory_order_release);
		}
	}
	__syncthreads();
	if (threadIdx.x == 0)
		*out = ball;
}

int main(void)
{
	unsigned char init[sizeof(state)] = {0};
	int least = 1 << 20, owner = -1, counter, ball, want = 1, passes;
	unsigned long long total;
	state *dev;

	memcpy(init + offsetof(state, least), &least, 4);
	memcpy(init + offsetof(state, owner), &owner, 4);
	CHECK(cudaMalloc(&dev, sizeof(state)));
	CHECK(cudaMemcpy(dev, init, sizeof(init), cudaMemcpyHostToDevice));
	count<<<4, THREADS / 4>>>(dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(init, dev, sizeof(init), cudaMemcpyDeviceToHost));
	memcpy(&counter, init + offsetof(state, counter), 4);
	memcpy(&least, init + offsetof(state, least), 4);
	memcpy(&owner, init + offsetof(state, owner), 4);
	memcpy(&total, init + offsetof(state, total), 8);
	memcpy(&passes, init + offsetof(state, passes), 4);
	REQUIRE(counter == THREADS * (THREADS - 1) / 2 && least == 1000 - (THREADS - 1),
		"counted %d, least %d", counter, least);
	REQUIRE(total == (unsigned long long)counter << 33, "total %llx", total);
	REQUIRE(owner >= 0 && owner < THREADS && passes == 1, "%d owners, the last %d", passes,
		owner);
	pass<<<1, 64>>>((int *)dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&ball, dev, 4, cudaMemcpyDeviceToHost));
	for (int r = 0; r < ROUNDS; r++)
		want = (want * 2) * 2 + 1;
	REQUIRE(ball == want, "the ball is %d, expected %d", ball, want);
	CHECK(cudaFree(dev));
	return verified("ordered atomics of %d threads, and %d passes", THREADS, 2 * ROUNDS);
}

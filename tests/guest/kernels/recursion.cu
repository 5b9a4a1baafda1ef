// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions that call themselves and one another: Fibonacci, Ackermann, the towers of Hanoi, a
 * pair of mutually recursive functions, and a sum whose depth each thread chooses.
 */
#include "check.h"

#define THREADS 40

__host__ __device__ static int fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__host__ __device__ static int ackermann(int m, int n)
{
	if (m == 0)
		return n + 1;
	if (n == 0)
		return ackermann(m - 1, 1);
	return ackermann(m - 1, ackermann(m, n - 1));
}

struct towers {
	int height[3], peg[3][8], moves;
};

__host__ __device__ static void hanoi(towers *t, int n, int from, int to)
{
	if (n == 0)
		return;
	hanoi(t, n - 1, from, 3 - from - to);
	t->peg[to][t->height[to]++] = t->peg[from][--t->height[from]];
	t->moves++;
	hanoi(t, n - 1, 3 - from - to, to);
}

__host__ __device__ static bool is_odd(int n);

__host__ __device__ static bool is_even(int n)
{
	return n == 0 ? true : is_odd(n - 1);
}

__host__ __device__ static bool is_odd(int n)
{
	return n == 0 ? false : is_even(n - 1);
}

/* Not a tail call: the result is still needed, and every frame has a local array. */
__host__ __device__ static int deep(const int *x, int n)
{
	int keep[4] = {x[n], x[n / 2], n, x[0]}, below = n ? deep(x, n - 1) : 0;

	return below * 3 + keep[n & 3] + keep[(n >> 1) & 3];
}

struct results {
	int fibonacci, ackermann, even, deep;
	towers hanoi;
};

__host__ __device__ static void all(int i, const int *x, results *r)
{
	r->fibonacci = fibonacci(i % 9);
	r->ackermann = ackermann(2, i % 4);
	r->even = is_even(i);
	r->deep = deep(x, i);
	r->hanoi.moves = 0;
	r->hanoi.height[0] = i % 6;
	r->hanoi.height[1] = r->hanoi.height[2] = 0;
	for (int p = 0; p < 3; p++)
		for (int k = 0; k < 8; k++)
			r->hanoi.peg[p][k] = p ? 0 : 8 - k;
	hanoi(&r->hanoi, i % 6, 0, 2);
}

__global__ void recurse(const int *x, results *out)
{
	all(threadIdx.x, x, &out[threadIdx.x]);
}

/*
 * A real GPU starts with 1 KiB of stack per thread. A device without this limit may not support
 * the call.
 */
static void deepen_stack(void)
{
	cudaError_t code = cudaDeviceSetLimit(cudaLimitStackSize, 16384);

	REQUIRE(code == cudaSuccess || code == cudaErrorNotSupported, "%s", cudaGetErrorName(code));
	(void)cudaGetLastError();
}

int main(void)
{
	static results got[THREADS];
	int x[THREADS], *dev_x;
	results want, *dev;

	for (int i = 0; i < THREADS; i++)
		x[i] = scramble(i, 15) % 100;
	deepen_stack();
	CHECK(cudaMalloc(&dev_x, sizeof(x)));
	CHECK(cudaMalloc(&dev, sizeof(got)));
	CHECK(cudaMemcpy(dev_x, x, sizeof(x), cudaMemcpyHostToDevice));
	recurse<<<1, THREADS>>>(dev_x, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < THREADS; i++) {
		all(i, x, &want);
		REQUIRE(!memcmp(&got[i], &want, sizeof(want)),
			"thread %d: %d %d %d %d %d, expected %d %d %d %d %d", i, got[i].fibonacci,
			got[i].ackermann, got[i].even, got[i].deep, got[i].hanoi.moves,
			want.fibonacci, want.ackermann, want.even, want.deep, want.hanoi.moves);
	}
	CHECK(cudaFree(dev_x));
	CHECK(cudaFree(dev));
	return verified("five recursive functions in %d threads", THREADS);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls whose target is known only at run time: function pointers in a constant table, a pointer
 * that the host reads from a device symbol and passes to a kernel, member function pointers, and
 * virtual functions of objects that the kernel makes itself. Lanes of one warp call different
 * functions.
 */
#include "check.h"

#define THREADS 96

typedef int (*op)(int, int);

__host__ __device__ static int plus(int a, int b)
{
	return a + b;
}

__host__ __device__ static int times(int a, int b)
{
	return a * b;
}

__host__ __device__ static int least(int a, int b)
{
	return a < b ? a : b;
}

__host__ __device__ static int collatz(int a, int b)
{
	int n = 0;

	for (a = a < 0 ? 1 : a + 1; a != 1 && n < 50; n++)
		a = a & 1 ? 3 * a + 1 : a / 2;
	return n + b;
}

__device__ op table[] = {plus, times, least, collatz};
__device__ op chosen = times;
static const op host_table[] = {plus, times, least, collatz};

struct shape {
	__host__ __device__ virtual int area(void) const = 0;
	__host__ __device__ virtual int corners(void) const
	{
		return 0;
	}
};

struct square : shape {
	int side;

	__host__ __device__ explicit square(int s) : side(s)
	{
	}
	__host__ __device__ int area(void) const override
	{
		return side * side;
	}
	__host__ __device__ int corners(void) const override
	{
		return 4;
	}
};

struct disc : shape {
	int radius;

	__host__ __device__ explicit disc(int r) : radius(r)
	{
	}
	__host__ __device__ int area(void) const override
	{
		return 355 * radius * radius / 113;
	}
};

struct account {
	int balance;

	__host__ __device__ void deposit(int x)
	{
		balance += x;
	}
	__host__ __device__ void withdraw(int x)
	{
		balance -= 2 * x;
	}
};

struct results {
	int indirect, passed, area, corners, balance;
};

__host__ __device__ static void objects(int i, results *r)
{
	square s(i);
	disc d(i);
	const shape *which = i % 3 ? (const shape *)&s : (const shape *)&d;
	void (account::*move)(int) = i & 2 ? &account::deposit : &account::withdraw;
	account a = {100};

	r->area = which->area();
	r->corners = which->corners();
	(a.*move)(i);
	r->balance = a.balance;
}

__global__ void call(op passed, results *out)
{
	int i = threadIdx.x;
	results r;

	objects(i, &r);
	r.indirect = table[i % 4](i, 10) + table[(i / 4) % 4](i, 3);
	r.passed = passed(i, 7);
	out[i] = r;
}

int main(void)
{
	results out[THREADS], *dev;
	op passed;

	CHECK(cudaMalloc(&dev, sizeof(out)));
	CHECK(cudaMemcpyFromSymbol(&passed, chosen, sizeof(passed)));
	call<<<1, THREADS>>>(passed, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < THREADS; i++) {
		results want;

		objects(i, &want);
		want.indirect = host_table[i % 4](i, 10) + host_table[(i / 4) % 4](i, 3);
		want.passed = i * 7;
		REQUIRE(!memcmp(&out[i], &want, sizeof(want)),
			"thread %d: %d %d %d %d %d, expected %d %d %d %d %d", i, out[i].indirect,
			out[i].passed, out[i].area, out[i].corners, out[i].balance, want.indirect,
			want.passed, want.area, want.corners, want.balance);
	}
	CHECK(cudaFree(dev));
	return verified("calls through pointers by %d threads", THREADS);
}

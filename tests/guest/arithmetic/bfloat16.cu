// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bfloat16: conversion in every direction of rounding, sums, differences and products of one and
 * of two numbers at a time. The exact results fit in double. The CPU rounds them to eight bits
 * once, or twice where a GPU without bfloat16 calculates in float.
 */
#include <cuda_bf16.h>
#include <math.h>

#include "check.h"

#define N 512

struct results {
	__nv_bfloat16 from[4], add, sub, mul, min, max;
	__nv_bfloat162 add2, mul2, sub2;
	float back;
	int less, to_int;
};

__global__ void compute(const float *x, results *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	__nv_bfloat16 a = __float2bfloat16(x[i]), b = __float2bfloat16(x[(i + 17) % N]),
		      c = __float2bfloat16(x[(i + 101) % N]);
	__nv_bfloat162 ab = __halves2bfloat162(a, b), bc = __halves2bfloat162(b, c);
	results r;

	r.from[0] = __float2bfloat16_rn(x[i]);
	r.from[1] = __float2bfloat16_rz(x[i]);
	r.from[2] = __float2bfloat16_rd(x[i]);
	r.from[3] = __float2bfloat16_ru(x[i]);
	r.back = __bfloat162float(a);
	r.add = __hadd(a, b);
	r.sub = __hsub(a, b);
	r.mul = __hmul(a, b);
	r.min = __hmin(a, b);
	r.max = __hmax(a, b);
	r.add2 = __hadd2(ab, bc);
	r.mul2 = __hmul2(ab, bc);
	r.sub2 = __hsub2(ab, bc);
	r.less = a < b;
	r.to_int = __bfloat162int_rz(a);
	out[i] = r;
}

static double step_of(double x)
{
	int exponent;

	frexp(x, &exponent);
	return ldexp(1, exponent - 8);
}

static double nearest(double x)
{
	return x == 0 ? 0 : rint(x / step_of(x)) * step_of(x);
}

static double value(__nv_bfloat16 h)
{
	return (double)__bfloat162float(h);
}

#define SAME(got, want)                                                                \
	REQUIRE(value(got) == (want) || value(got) == nearest((double)(float)(exact)), \
		#got " of %.9g, %.9g, %.9g: %.8g, expected %.8g", a, b, c, value(got), \
		(double)(want))
#define ROUNDED(got, expression) \
	exact = (expression);    \
	SAME(got, nearest(exact))

int main(void)
{
	static float x[N];
	static results out[N];
	results *dev_out;
	float *dev;

	for (int i = 0; i < N; i++)
		x[i] = (float)ldexp((int)scramble(i, 1), (int)(scramble(i, 2) % 20) - 35);
	CHECK(cudaMalloc(&dev, sizeof(x)));
	CHECK(cudaMalloc(&dev_out, sizeof(out)));
	CHECK(cudaMemcpy(dev, x, sizeof(x), cudaMemcpyHostToDevice));
	compute<<<N / 64, 64>>>(dev, dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev_out, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		double a = nearest(x[i]), b = nearest(x[(i + 17) % N]),
		       c = nearest(x[(i + 101) % N]);
		double step = step_of(x[i]), exact;
		const results &r = out[i];

		REQUIRE(value(r.from[0]) == a && r.back == a, "%.9g became %.9g", x[i],
			value(r.from[0]));
		REQUIRE(value(r.from[1]) == trunc(x[i] / step) * step &&
				value(r.from[2]) == floor(x[i] / step) * step &&
				value(r.from[3]) == ceil(x[i] / step) * step,
			"%.9g became %.9g, %.9g, %.9g", x[i], value(r.from[1]), value(r.from[2]),
			value(r.from[3]));
		ROUNDED(r.add, a + b);
		ROUNDED(r.sub, a - b);
		ROUNDED(r.mul, a * b);
		ROUNDED(r.min, fmin(a, b));
		ROUNDED(r.max, fmax(a, b));
		ROUNDED(__low2bfloat16(r.add2), a + b);
		ROUNDED(__high2bfloat16(r.add2), b + c);
		ROUNDED(__low2bfloat16(r.mul2), a * b);
		ROUNDED(__high2bfloat16(r.mul2), b * c);
		ROUNDED(__low2bfloat16(r.sub2), a - b);
		ROUNDED(__high2bfloat16(r.sub2), b - c);
		REQUIRE(r.less == (a < b) && r.to_int == (int)a, "%.9g, %.9g: %d, %d", a, b, r.less,
			r.to_int);
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_out));
	return verified("%d triples of bfloat16", N);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Half precision: sums, products, fused products, quotients, comparisons, minima and functions
 * of one and of two halves at a time. The exact result fits in double, so the CPU computes it
 * there and rounds once.
 */
#include <cuda_fp16.h>
#include <math.h>

#include "check.h"

#define N 512

struct results {
	__half add, sub, mul, fma, div, min, max, neg, abs, root, up;
	__half2 add2, mul2, fma2, max2;
	int less, equal, both, to_int;
};

__global__ void compute(const __half *x, results *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	__half a = x[i], b = x[(i + 17) % N], c = x[(i + 101) % N];
	__half2 ab = __halves2half2(a, b), bc = __halves2half2(b, c), ca = __halves2half2(c, a);
	results r;

	r.add = __hadd(a, b);
	r.sub = __hsub(a, b);
	r.mul = __hmul(a, b);
	r.fma = __hfma(a, b, c);
	r.div = __hdiv(a, b);
	r.min = __hmin(a, b);
	r.max = __hmax(a, b);
	r.neg = -a;
	r.abs = __habs(a);
	r.root = hsqrt(__habs(a));
	r.up = hceil(a);
	r.add2 = __hadd2(ab, bc);
	r.mul2 = __hmul2(ab, bc);
	r.fma2 = __hfma2(ab, bc, ca);
	r.max2 = __hmax2(ab, bc);
	r.less = a < b;
	r.equal = __heq(a, a);
	r.both = __hbge2(ab, bc);
	r.to_int = __half2int_rn(a);
	out[i] = r;
}

/* The half nearest to x, ties to even. x is exact, or far from a tie. */
static double rounded(double x)
{
	int exponent;
	double step;

	if (x == 0 || !isfinite(x))
		return x;
	frexp(x, &exponent);
	step = ldexp(1, (exponent < -13 ? -13 : exponent) - 11);
	x = rint(x / step) * step;
	return fabs(x) > 65504 ? copysign(INFINITY, x) : x;
}

static double value(__half h)
{
	return (double)__half2float(h);
}

#define SAME(got, want)                                                                    \
	REQUIRE(value(got) == (want), #got " of %g, %g, %g: %.8g, expected %.8g", a, b, c, \
		value(got), (double)(want))

int main(void)
{
	static __half x[N];
	static results out[N];
	results *dev_out;
	__half *dev;

	for (int i = 0; i < N; i++)
		x[i] = __float2half((float)(((int)(scramble(i, 1) % 4001) - 2000) *
					    ldexp(1, (int)(scramble(i, 2) % 22) - 17)));
	x[5] = __float2half(65504.0f);
	x[22] = __float2half(60000.0f);
	x[9] = __float2half(6e-8f);
	CHECK(cudaMalloc(&dev, sizeof(x)));
	CHECK(cudaMalloc(&dev_out, sizeof(out)));
	CHECK(cudaMemcpy(dev, x, sizeof(x), cudaMemcpyHostToDevice));
	compute<<<N / 64, 64>>>(dev, dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev_out, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		double a = value(x[i]), b = value(x[(i + 17) % N]), c = value(x[(i + 101) % N]);
		const results &r = out[i];

		SAME(r.add, rounded(a + b));
		SAME(r.sub, rounded(a - b));
		SAME(r.mul, rounded(a * b));
		SAME(r.fma, rounded(fma(a, b, c)));
		if (b != 0)
			REQUIRE(fabs(value(r.div) - a / b) <= fabs(a / b) * 1e-3 + 6e-8 ||
					value(r.div) == rounded(a / b),
				"%g / %g: %g", a, b, value(r.div));
		SAME(r.min, fmin(a, b));
		SAME(r.max, fmax(a, b));
		SAME(r.neg, -a);
		SAME(r.abs, fabs(a));
		SAME(r.root, rounded(sqrt(fabs(a))));
		SAME(r.up, ceil(a));
		SAME(__low2half(r.add2), rounded(a + b));
		SAME(__high2half(r.add2), rounded(b + c));
		SAME(__low2half(r.mul2), rounded(a * b));
		SAME(__high2half(r.mul2), rounded(b * c));
		SAME(__low2half(r.fma2), rounded(fma(a, b, c)));
		SAME(__high2half(r.fma2), rounded(fma(b, c, a)));
		SAME(__low2half(r.max2), fmax(a, b));
		SAME(__high2half(r.max2), fmax(b, c));
		REQUIRE(r.less == (a < b) && r.equal && r.both == (a >= b && b >= c) &&
				r.to_int == (int)rint(a),
			"%g, %g, %g: %d %d %d %d", a, b, c, r.less, r.equal, r.both, r.to_int);
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_out));
	return verified("%d triples of halves", N);
}

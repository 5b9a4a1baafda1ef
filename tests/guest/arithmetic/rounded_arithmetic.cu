// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sums, products, quotients, roots and fused products in all four directions of rounding, in
 * float and double, bit for bit as the CPU computes them; with infinities, zeros of both signs
 * and numbers below the normal ones.
 */
#include <fenv.h>
#include <float.h>
#include <cmath>

#include "check.h"

#define N 400

template <typename T> struct results {
	T add[4], mul[4], div[4], sqrt[4], fma[4], rcp[4];
};

#define FOUR(op, name, ...)               \
	r.op[0] = name##_rn(__VA_ARGS__); \
	r.op[1] = name##_rz(__VA_ARGS__); \
	r.op[2] = name##_rd(__VA_ARGS__); \
	r.op[3] = name##_ru(__VA_ARGS__)

__global__ void compute(const float *x, results<float> *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2];
	results<float> r;

	FOUR(add, __fadd, a, b);
	FOUR(mul, __fmul, a, b);
	FOUR(div, __fdiv, a, b);
	FOUR(sqrt, __fsqrt, fabsf(a));
	FOUR(fma, __fmaf, a, b, c);
	FOUR(rcp, __frcp, a);
	out[i] = r;
}

__global__ void compute(const double *x, results<double> *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2];
	results<double> r;

	FOUR(add, __dadd, a, b);
	FOUR(mul, __dmul, a, b);
	FOUR(div, __ddiv, a, b);
	FOUR(sqrt, __dsqrt, fabs(a));
	FOUR(fma, __fma, a, b, c);
	FOUR(rcp, __drcp, a);
	out[i] = r;
}

static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

/* Fast math turns floats below the normal ones into zero, in operands and in results. */
static bool flushed;

template <typename T> static bool same(T got, T want)
{
	if (flushed && sizeof(T) == sizeof(float) && got == 0 && std::fabs(want) <= FLT_MIN)
		return true;
	return std::isnan(want) ? std::isnan(got) : !memcmp(&got, &want, sizeof(T));
}

template <typename T> static T input(int i)
{
	static const double edges[] = {0.0, 1.0, 3.0, INFINITY, 1.0 / 3};
	T x;

	if (i % 5 == 0)
		x = (T)edges[scramble(i, 1) % 5];
	else
		x = (T)ldexp(1 + scramble(i, 2) / 4294967296.0 +
				     scramble(i, 3) / 18446744073709551616.0,
			     (int)(scramble(i, 4) % (i % 7 ? 60 : 250)) - (i % 7 ? 30 : 125));
	return scramble(i, 5) & 1 ? -x : x;
}

template <typename T> static void test(const char *name, T tiny)
{
	static T x[3 * N];
	static results<T> out[N];
	results<T> *dev_out;
	T *dev;

	for (int i = 0; i < 3 * N; i++)
		x[i] = input<T>(i);
	x[0] = tiny;
	x[1] = (T)0.75;
	x[2] = -tiny;
	CHECK(cudaMalloc(&dev, sizeof(x)));
	CHECK(cudaMalloc(&dev_out, sizeof(out)));
	CHECK(cudaMemcpy(dev, x, sizeof(x), cudaMemcpyHostToDevice));
	compute<<<N / 100, 100>>>(dev, dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev_out, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		for (int m = 0; m < 4; m++) {
			volatile T a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2], p, one = 1;
			volatile T add, mul, div, root, fused, rcp;
			const results<T> &r = out[i];

			fesetround(modes[m]);
			p = std::fabs(a);
			add = a + b;
			mul = a * b;
			div = a / b;
			root = std::sqrt(p);
			fused = std::fma(a, b, c);
			rcp = one / a;
			fesetround(FE_TONEAREST);
			REQUIRE(same<T>(r.add[m], add) && same<T>(r.mul[m], mul) &&
					same<T>(r.div[m], div) && same<T>(r.sqrt[m], root) &&
					same<T>(r.fma[m], fused) && same<T>(r.rcp[m], rcp),
				"%s %d, mode %d: %.17g, %.17g, %.17g: %a %a %a %a %a %a, "
				"expected %a %a %a %a %a %a",
				name, i, m, (double)a, (double)b, (double)c, (double)r.add[m],
				(double)r.mul[m], (double)r.div[m], (double)r.sqrt[m],
				(double)r.fma[m], (double)r.rcp[m], (double)add, (double)mul,
				(double)div, (double)root, (double)fused, (double)rcp);
		}
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_out));
}

__global__ void flushes(float tiny, float *out)
{
	*out = tiny * 0.5f;
}

int main(void)
{
	float *dev, half;

	CHECK(cudaMalloc(&dev, sizeof(float)));
	flushes<<<1, 1>>>(1e-38f, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&half, dev, sizeof(float), cudaMemcpyDeviceToHost));
	flushed = half == 0;
	test<float>("float", flushed ? 1e-30f : 1e-40f);
	test<double>("double", 1e-310);
	CHECK(cudaFree(dev));
	return verified("%d triples in two types, four ways each", N);
}

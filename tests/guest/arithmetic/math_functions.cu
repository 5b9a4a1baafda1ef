// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The functions of math.h in float and double, compared with the CPU's in double. They must be
 * within the errors that CUDA documents, or, with fast math, within the errors of the fast
 * functions. Special arguments must give what the standard says.
 */
#include <math.h>

#include "check.h"

#define N 512

/*
 * Name, expression of x and y, range of x, allowed error: float in units of 1e-7, double in
 * 1e-16.
 */
#define FUNCTIONS(F)                              \
	F(sin, sin(x), -100, 100, 40)             \
	F(cos, cos(x), -100, 100, 40)             \
	F(tan, tan(x), -1.2, 1.2, 40)             \
	F(asin, asin(x), -1, 1, 8)                \
	F(acos, acos(x), -1, 1, 8)                \
	F(atan, atan(x), -50, 50, 8)              \
	F(atan2, atan2(x, y), -50, 50, 8)         \
	F(sinh, sinh(x), -10, 10, 40)             \
	F(cosh, cosh(x), -10, 10, 40)             \
	F(tanh, tanh(x), -5, 5, 12)               \
	F(asinh, asinh(x), -50, 50, 12)           \
	F(acosh, acosh(x), 1.1, 50, 12)           \
	F(atanh, atanh(x), -0.95, 0.95, 12)       \
	F(exp, exp(x), -40, 40, 40)               \
	F(exp2, exp2(x), -40, 40, 40)             \
	F(exp10, EXP10(x), -15, 15, 60)           \
	F(expm1, expm1(x), -1, 5, 12)             \
	F(log, log(x), 0.01, 1000, 40)            \
	F(log2, log2(x), 0.01, 1000, 40)          \
	F(log10, log10(x), 0.01, 1000, 40)        \
	F(log1p, log1p(x), -0.9, 10, 12)          \
	F(pow, pow(x, y), 0.1, 20, 200)           \
	F(sqrt, sqrt(x), 0, 1000, 8)              \
	F(rsqrt, RSQRT(x), 0.001, 1000, 8)        \
	F(cbrt, cbrt(x), -1000, 1000, 8)          \
	F(hypot, hypot(x, y), -50, 50, 8)         \
	F(erf, erf(x), -3, 3, 8)                  \
	F(erfc, erfc(x), -3, 5, 40)               \
	F(tgamma, tgamma(x), 0.2, 8, 60)          \
	F(lgamma, lgamma(x), 3, 50, 20)           \
	F(fmod, fmod(x, y), -90, 90, 8)           \
	F(remainder, remainder(x, y), -90, 90, 8) \
	F(floor, floor(x), -50, 50, 0)            \
	F(ceil, ceil(x), -50, 50, 0)              \
	F(trunc, trunc(x), -50, 50, 0)            \
	F(round, round(x), -50, 50, 0)            \
	F(rint, rint(x), -50, 50, 0)              \
	F(fdim, fdim(x, y), -50, 50, 1)           \
	F(fmin, fmin(x, y), -50, 50, 0)           \
	F(fmax, fmax(x, y), -50, 50, 0)           \
	F(copysign, copysign(x, y), -50, 50, 0)   \
	F(ldexp, ldexp(x, (int)y), -50, 50, 0)    \
	F(logb, logb(x), 0.01, 1000, 0)

#ifdef __CUDA_ARCH__
#define EXP10(x) exp10(x)
#define RSQRT(x) rsqrt(x)
#else
#define EXP10(x) pow(10.0, x)
#define RSQRT(x) (1 / sqrt(x))
#endif

enum {
#define F(name, ...) FN_##name,
	FUNCTIONS(F)
#undef F
		COUNT
};

template <typename T> __global__ void compute(const T *all_x, const T *all_y, T *out)
{
	int i = threadIdx.x;
	T y = all_y[i], x;

	/* One block per function. */
	switch (blockIdx.x) {
#define F(name, expr, ...)                          \
	case FN_##name:                             \
		x = all_x[FN_##name * N + i];       \
		out[FN_##name * N + i] = (T)(expr); \
		break;
		FUNCTIONS(F)
#undef F
	}
}

static double reference(int fn, double x, double y)
{
	switch (fn) {
#define F(name, expr, ...) \
	case FN_##name:    \
		return (expr);
		FUNCTIONS(F)
#undef F
	}
	return 0;
}

static const struct {
	const char *name;
	double low, high, units;
} range[] = {
#define F(name, expr, low, high, units) {#name, low, high, units},
	FUNCTIONS(F)
#undef F
};

template <typename T> static void test(double unit)
{
	static T x[COUNT * N], y[N], out[COUNT * N];
	T *dev;

	for (int f = 0; f < COUNT; f++)
		for (int i = 0; i < N; i++)
			x[f * N + i] = (T)(range[f].low + (range[f].high - range[f].low) *
								  (scramble(i, f) / 4294967296.0));
	for (int i = 0; i < N; i++)
		y[i] = (T)((int)(scramble(i, 77) % 1600) / 100.0 - 7.995);
	CHECK(cudaMalloc(&dev, sizeof(x) + sizeof(y) + sizeof(out)));
	CHECK(cudaMemcpy(dev, x, sizeof(x), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev + COUNT * N, y, sizeof(y), cudaMemcpyHostToDevice));
	compute<T><<<COUNT, N>>>(dev, dev + COUNT * N, dev + COUNT * N + N);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev + COUNT * N + N, sizeof(out), cudaMemcpyDeviceToHost));
	for (int k = 0; k < COUNT * N; k++) {
		int f = k / N, i = k % N;
		double want = reference(f, x[k], y[i]);
		double scale = f == FN_sin || f == FN_cos ? 1 : fabs(want);

		/* Near a zero of a logarithm, the error is absolute. */
		if (f == FN_log || f == FN_log2 || f == FN_log10)
			scale = fmax(scale, 1);
		REQUIRE(fabs(out[k] - want) <= range[f].units * unit * scale,
			"%zu bytes: %s(%.17g, %.17g) is %.17g, expected %.17g", sizeof(T),
			range[f].name, (double)x[k], (double)y[i], (double)out[k], want);
	}
	CHECK(cudaFree(dev));
}

__global__ void specials(double zero, double *out)
{
	double inf = 1 / zero, nan = zero / zero;

	out[0] = exp(-inf);
	out[1] = log(zero);
	out[2] = log(-inf);
	out[3] = sqrt(-1 + zero);
	out[4] = pow(nan, zero);
	out[5] = atan2(zero, -1 + zero);
	out[6] = sin(inf);
	out[7] = fmax(nan, 2.0);
	out[8] = hypot(inf, nan);
	out[9] = tgamma(5 + zero);
}

int main(void)
{
	double out[10], *dev;

	test<float>(1e-7);
	test<double>(1e-16);
	CHECK(cudaMalloc(&dev, sizeof(out)));
	specials<<<1, 1>>>(0, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, sizeof(out), cudaMemcpyDeviceToHost));
	REQUIRE(out[0] == 0 && out[1] == -INFINITY && isnan(out[2]) && isnan(out[3]) && out[4] == 1,
		"%g %g %g %g %g", out[0], out[1], out[2], out[3], out[4]);
	REQUIRE(fabs(out[5] - M_PI) < 1e-15 && isnan(out[6]) && out[7] == 2 && out[8] == INFINITY &&
			fabs(out[9] - 24) < 1e-13,
		"%g %g %g %g %g", out[5], out[6], out[7], out[8], out[9]);
	CHECK(cudaFree(dev));
	return verified("%d functions in two types", COUNT);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Conversions between integers, float and double in every direction of rounding. Conversions to
 * integers saturate, and turn NaN into zero. The CPU rounds with its own rounding mode.
 */
#include <fenv.h>
#include <limits.h>
#include <math.h>

#include "check.h"

#define N 300

struct results {
	int f2i[4], d2i[4];
	unsigned int f2u[4], d2u[4];
	long long f2ll[4], d2ll[4];
	unsigned long long f2ull[4], d2ull[4];
	float d2f[4], i2f[4], u2f[4], ll2f[4], ull2f[4];
	double ll2d[4], ull2d[4];
};

#define ALL(field, name, x)        \
	r.field[0] = name##_rn(x); \
	r.field[1] = name##_rz(x); \
	r.field[2] = name##_rd(x); \
	r.field[3] = name##_ru(x)

__global__ void convert(const double *real, const long long *whole, results *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double d = real[i];
	float f = (float)d;
	long long n = whole[i];
	results r;

	ALL(f2i, __float2int, f);
	ALL(f2u, __float2uint, f);
	ALL(f2ll, __float2ll, f);
	ALL(f2ull, __float2ull, f);
	ALL(d2i, __double2int, d);
	ALL(d2u, __double2uint, d);
	ALL(d2ll, __double2ll, d);
	ALL(d2ull, __double2ull, d);
	ALL(d2f, __double2float, d);
	ALL(i2f, __int2float, (int)n);
	ALL(u2f, __uint2float, (unsigned int)n);
	ALL(ll2f, __ll2float, n);
	ALL(ull2f, __ull2float, (unsigned long long)n);
	ALL(ll2d, __ll2double, n);
	ALL(ull2d, __ull2double, (unsigned long long)n);
	out[i] = r;
}

/*
 * The compiler may replace rint() by code that knows only the usual rounding mode. The pointer
 * prevents this.
 */
static double (*volatile whole_number)(double) = rint;

static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

/* Saturates; `x` is rounded already. */
static long long to_signed(double x, long long low, long long high)
{
	return x >= (double)high ? high : x <= (double)low ? low : (long long)x;
}

static unsigned long long to_unsigned(double x, unsigned long long high)
{
	return x >= (double)high ? high : x <= 0 ? 0 : (unsigned long long)x;
}

static double input(int i)
{
	static const double edges[] = {0.5,	     1.5,
				       2.5,	     0.49999999,
				       0.999,	     2147483647.0,
				       2147483648.0, 4294967295.0,
				       4294967296.0, 9.2233720368547758e18,
				       1e19,	     1.8446744073709552e19,
				       1e30,	     1e-30,
				       INFINITY,     16777217.0,
				       33554433.5,   0.0};
	const int count = sizeof(edges) / sizeof(edges[0]);

	if (i < 2 * count)
		return i % 2 ? -edges[i / 2] : edges[i / 2];
	return ldexp((int)scramble(i, 1) + scramble(i, 2) / 4294967296.0, (int)(i % 90) - 50);
}

static float to_float(volatile double x)
{
	volatile float f = (float)x;

	return f;
}

#define SAME(field, want)                                                                 \
	REQUIRE(r.field[m] == (want), #field " of %.17g / %lld, mode %d: %.17g", d, n, m, \
		(double)r.field[m])

int main(void)
{
	static double real[N + 1];
	static long long whole[N + 1];
	static results out[N + 1];
	double *dev_real;
	long long *dev_whole;
	results *dev_out, *bad = &out[N];

	for (int i = 0; i < N; i++) {
		real[i] = input(i);
		whole[i] = i < 8 ? (i & 1 ? LLONG_MIN : LLONG_MAX) / (1 + i / 2 * 2)
				 : (long long)((uint64_t)scramble(i, 3) << 32 | scramble(i, 4)) >>
					   (i % 64);
	}
	real[N] = NAN;
	CHECK(cudaMalloc(&dev_real, sizeof(real)));
	CHECK(cudaMalloc(&dev_whole, sizeof(whole)));
	CHECK(cudaMalloc(&dev_out, sizeof(out)));
	CHECK(cudaMemcpy(dev_real, real, sizeof(real), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev_whole, whole, sizeof(whole), cudaMemcpyHostToDevice));
	convert<<<7, (N + 1) / 7>>>(dev_real, dev_whole, dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev_out, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		const results &r = out[i];
		double d = real[i], single = to_float(d);
		long long n = whole[i];

		for (int m = 0; m < 4; m++) {
			volatile double from_f, from_d, wide, uwide;
			volatile float narrow, i2f, u2f, ll2f, ull2f;
			volatile double vs = single, vd = d;
			volatile long long vn = n;

			fesetround(modes[m]);
			from_f = whole_number(vs);
			from_d = whole_number(vd);
			narrow = to_float(vd);
			wide = (double)vn;
			uwide = (double)(unsigned long long)vn;
			i2f = (float)(int)vn;
			u2f = (float)(unsigned int)vn;
			ll2f = (float)vn;
			ull2f = (float)(unsigned long long)vn;
			fesetround(FE_TONEAREST);
			SAME(f2i, to_signed(from_f, INT_MIN, INT_MAX));
			SAME(f2u, to_unsigned(from_f, UINT_MAX));
			SAME(f2ll, to_signed(from_f, LLONG_MIN, LLONG_MAX));
			SAME(f2ull, to_unsigned(from_f, ULLONG_MAX));
			SAME(d2i, to_signed(from_d, INT_MIN, INT_MAX));
			SAME(d2u, to_unsigned(from_d, UINT_MAX));
			SAME(d2ll, to_signed(from_d, LLONG_MIN, LLONG_MAX));
			SAME(d2ull, to_unsigned(from_d, ULLONG_MAX));
			/* With fast math, floats below the normal ones become zero. */
			REQUIRE(r.d2f[m] == narrow || (r.d2f[m] == 0 && fabsf(narrow) < 1.18e-38f),
				"%.17g to float, mode %d: %g", d, m, r.d2f[m]);
			SAME(i2f, i2f);
			SAME(u2f, u2f);
			SAME(ll2f, ll2f);
			SAME(ull2f, ull2f);
			SAME(ll2d, wide);
			SAME(ull2d, uwide);
		}
	}
	REQUIRE(bad->f2i[0] == 0 && bad->f2u[3] == 0 && isnan(bad->d2f[1]), "from NaN: %d, %u, %g",
		bad->f2i[0], bad->f2u[3], bad->d2f[1]);
	CHECK(cudaFree(dev_real));
	CHECK(cudaFree(dev_whole));
	CHECK(cudaFree(dev_out));
	return verified("%d numbers in 15 conversions, four ways each", N);
}

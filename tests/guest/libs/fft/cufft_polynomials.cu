// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Products of polynomials by cuFFT, exact after rounding. A number of hundreds of digits is squared
 * again and again in double: its digits are a polynomial's coefficients. (1 + x)^n is multiplied from
 * its halves in float, in place, two factors in one batch. Wrong calls come first.
 */
#include "fft.h"

#define BASE   10000
#define DIGITS 256 /* of base 10000, so a square has at most 512 */
#define SQUARINGS 11

typedef std::vector<double> digits; /* the lowest first */

/* The spectra of two polynomials, one after the other: the first becomes that of the product. */
static __global__ void product(cufftComplex *spectra, int n)
{
	int i = threadIdx.x;

	if (i < n)
		spectra[i] = cuCmulf(spectra[i], spectra[n + i]);
}

static void wrong_calls(void)
{
	std::vector<double> x = numbers<double>(10);
	double *gpu = up(x);
	cufftHandle plan;

	FAILS(execute(CUFFT_PLAN_NULL, gpu, (Z *)gpu));
	FAILS(execute(CUFFT_PLAN_NULL, (Z *)gpu, gpu));
	OK(cufftPlan1d(&plan, 8, CUFFT_D2Z, 1));
	OK(cufftDestroy(plan));
	FAILS(execute(plan, gpu, (Z *)gpu));
	REQUIRE(down(gpu, 10) == x, "a call that was refused has computed something");
	CHECK(cudaFree(gpu));
}

static void carry(digits &d)
{
	double over = 0;

	for (double &v : d) {
		v += over;
		over = floor(v / BASE);
		v -= over * BASE;
	}
	while (!d.empty() && !d.back())
		d.pop_back();
}

/* 7^2048, by squaring on the GPU, beside 2048 products with 7. */
static void power(void)
{
	const int n = 2 * DIGITS, half = n / 2 + 1;
	digits x(1, 7), want(1, 1);
	cufftHandle there, back;
	double *gpu = up(digits(n));
	Z *spectrum = up(std::vector<Z>(half));

	OK(cufftPlan1d(&there, n, CUFFT_D2Z, 1));
	OK(cufftPlan1d(&back, n, CUFFT_Z2D, 1));
	for (int i = 0; i < SQUARINGS; i++) {
		REQUIRE(x.size() <= DIGITS, "%zu digits", x.size());
		x.resize(n);
		CHECK(cudaMemcpy(gpu, x.data(), n * sizeof(double), cudaMemcpyHostToDevice));
		OK(execute(there, gpu, spectrum));
		multiply<<<blocks(half), 256>>>(raw(spectrum), raw(spectrum), half, half);
		CHECK_LAUNCH();
		OK(execute(back, spectrum, gpu));
		x = down(gpu, n);
		for (double &v : x) {
			REQUIRE(fabs(v / n - rint(v / n)) < 0.01, "a coefficient is not an integer: %g", v / n);
			v = rint(v / n);
		}
		carry(x);
	}
	for (int i = 0; i < 1 << SQUARINGS; i++) {
		for (double &v : want)
			v *= 7;
		want.push_back(0);
		carry(want);
	}
	REQUIRE(x == want, "the power has other digits: %zu, not %zu", x.size(), want.size());
	printf("7^%d has %zu digits of base %d, the last ones are %04d%04d%04d\n", 1 << SQUARINGS, x.size(), BASE,
	       (int)x[2], (int)x[1], (int)x[0]);
	OK(cufftDestroy(there));
	OK(cufftDestroy(back));
	CHECK(cudaFree(gpu));
	CHECK(cudaFree(spectrum));
}

static std::vector<float> binomials(int n)
{
	std::vector<float> c(n + 1);

	c[0] = 1;
	for (int i = 1; i <= n; i++)
		for (int j = i; j; j--)
			c[j] += c[j - 1];
	return c;
}

/* (1 + x)^n is (1 + x)^k times (1 + x)^(n - k). */
static void binomial(int n, int k)
{
	const int size = 20, half = size / 2 + 1, row = 2 * half;
	std::vector<float> a = binomials(k), b = binomials(n - k), want = binomials(n), both(2 * row), got;
	cufftHandle there, back;
	float *gpu;

	std::copy(a.begin(), a.end(), both.begin());
	std::copy(b.begin(), b.end(), both.begin() + row);
	gpu = up(both);
	OK(cufftPlan1d(&there, size, CUFFT_R2C, 2));
	OK(cufftPlan1d(&back, size, CUFFT_C2R, 1));
	OK(execute(there, gpu, (C *)gpu));
	product<<<1, 32>>>((cufftComplex *)gpu, half);
	CHECK_LAUNCH();
	OK(execute(back, (C *)gpu, gpu));
	got = down(gpu, n + 1);
	for (int i = 0; i <= n; i++)
		REQUIRE(rintf(got[i] / size) == want[i], "n over %d is %g, not %g", i, got[i] / size, want[i]);
	OK(cufftDestroy(there));
	OK(cufftDestroy(back));
	CHECK(cudaFree(gpu));
}

int main(void)
{
	begin();
	wrong_calls();
	power();
	for (int n : {2, 7, 12, 16})
		binomial(n, n / 2);
	printf("the binomials of 2, 7, 12 and 16\n");
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How the elements of cuFFT's transforms lie: spaces, with gaps between elements and rows, batches
 * that are interleaved, real numbers in place with padding; each beside the definition. Layouts that
 * cannot be come first.
 */
#include <cufft.h>

#include "../libs.h"

typedef std::complex<double> Z;
typedef std::complex<float> C;

/* By the definition: a space of n[0] x n[1] x n[2]. */
static std::vector<Z> transform(const std::vector<Z> &x, const int n[3], int sign)
{
	std::vector<Z> y(x), line;

	for (int d = 0, step = n[1] * n[2]; d < 3; d++, step /= d < 3 ? n[d] : 1)
		for (size_t at = 0; at < x.size(); at++) {
			if (at / step % n[d])
				continue;
			line.assign(n[d], 0);
			for (int k = 0; k < n[d]; k++)
				for (int i = 0; i < n[d]; i++)
					line[k] += y[at + i * step] * std::polar(1.0, sign * 2 * M_PI * i * k / n[d]);
			for (int k = 0; k < n[d]; k++)
				y[at + k * step] = line[k];
		}
	return y;
}

static std::vector<Z> numbers(size_t n, bool real)
{
	std::vector<Z> x(n);

	for (Z &v : x)
		v = Z(small_number(), real ? 0 : small_number());
	return x;
}

static void near(const char *what, size_t i, Z got, Z want, double tolerance)
{
	REQUIRE(std::abs(got - want) <= tolerance * (1 + std::abs(want)), "%s: element %zu is %g %g, not %g %g", what, i,
		got.real(), got.imag(), want.real(), want.imag());
}

static void wrong_layouts(void)
{
	int n[] = {4, 4, 4, 4};
	cufftHandle plan;

	FAILS(cufftPlanMany(&plan, 2, n, NULL, 1, 16, NULL, 1, 16, CUFFT_C2C, 0));
	FAILS(cufftPlanMany(&plan, 4, n, NULL, 1, 16, NULL, 1, 16, CUFFT_C2C, 1));
	FAILS(cufftPlan3d(&plan, 4, 4, 4, (cufftType)7));
	OK(cufftPlan2d(&plan, 4, 4, CUFFT_C2C));
	/* Another type than the plan's. */
	FAILS(cufftExecZ2Z(plan, NULL, NULL, CUFFT_FORWARD));
	OK(cufftDestroy(plan));
}

static void space(void)
{
	const int n[] = {4, 6, 10};
	std::vector<Z> x = numbers(4 * 6 * 10, false), want = transform(x, n, -1), got;
	cufftHandle plan;
	Z *gpu = up(x);

	OK(cufftPlan3d(&plan, 4, 6, 10, CUFFT_Z2Z));
	OK(cufftExecZ2Z(plan, (cufftDoubleComplex *)gpu, (cufftDoubleComplex *)gpu, CUFFT_FORWARD));
	got = down(gpu, x.size());
	for (size_t i = 0; i < x.size(); i++)
		near("a space", i, got[i], want[i], 1e-10);
	OK(cufftExecZ2Z(plan, (cufftDoubleComplex *)gpu, (cufftDoubleComplex *)gpu, CUFFT_INVERSE));
	got = down(gpu, x.size());
	for (size_t i = 0; i < x.size(); i++)
		near("and back", i, got[i] / (double)x.size(), x[i], 1e-10);
	OK(cufftDestroy(plan));
	CHECK(cudaFree(gpu));
}

/* Real numbers in place: each row has room for its complex ones. */
static void padded(void)
{
	const int n[] = {1, 6, 10}, row = 12;
	std::vector<Z> x = numbers(6 * 10, true), want = transform(x, n, -1);
	std::vector<float> lay(6 * row), back;
	std::vector<C> got;
	cufftHandle plan;

	for (int i = 0; i < 60; i++)
		lay[i / 10 * row + i % 10] = (float)x[i].real();

	float *gpu = up(lay);

	OK(cufftPlan2d(&plan, 6, 10, CUFFT_R2C));
	OK(cufftExecR2C(plan, gpu, (cufftComplex *)gpu));
	got = down((C *)gpu, 6 * 6);
	for (int i = 0; i < 36; i++)
		near("real, in place", i, got[i], want[i / 6 * 10 + i % 6], 1e-4);
	OK(cufftDestroy(plan));
	OK(cufftPlan2d(&plan, 6, 10, CUFFT_C2R));
	OK(cufftExecC2R(plan, (cufftComplex *)gpu, gpu));
	back = down(gpu, lay.size());
	for (int i = 0; i < 60; i++)
		near("and back, in place", i, back[i / 10 * row + i % 10] / 60, x[i], 1e-4);
	OK(cufftDestroy(plan));
	CHECK(cudaFree(gpu));
}

/* Three planes of 4 x 5, whose elements alternate, in rows with room for 7, to planes without gaps. */
static void interleaved(void)
{
	const int n[] = {1, 4, 5}, batch = 3, room = 7;
	int size[] = {4, 5}, in[] = {4, room}, out[] = {4, 5};
	std::vector<C> lay(4 * room * batch), got;
	std::vector<Z> x[batch];
	cufftHandle plan;
	C *gpu, *to;

	for (int b = 0; b < batch; b++) {
		x[b] = numbers(20, false);
		for (int i = 0; i < 20; i++)
			lay[(i / 5 * room + i % 5) * batch + b] = C(x[b][i]);
	}
	gpu = up(lay);
	CHECK(cudaMalloc(&to, 20 * batch * sizeof(*to)));
	OK(cufftPlanMany(&plan, 2, size, in, batch, 1, out, 1, 20, CUFFT_C2C, batch));
	OK(cufftExecC2C(plan, (cufftComplex *)gpu, (cufftComplex *)to, CUFFT_INVERSE));
	got = down(to, 20 * batch);
	for (int b = 0; b < batch; b++) {
		std::vector<Z> want = transform(x[b], n, 1);

		for (int i = 0; i < 20; i++)
			near("planes that alternate", b * 20 + i, got[b * 20 + i], want[i], 1e-4);
	}
	REQUIRE(down(gpu, lay.size()) == lay, "the input has changed");
	OK(cufftDestroy(plan));
	CHECK(cudaFree(gpu));
	CHECK(cudaFree(to));
}

/* A long row, and one of a length that is a prime number. */
static void lengths(void)
{
	for (int length : {1, 2, 97, 1024}) {
		const int n[] = {1, 1, length};
		std::vector<Z> x = numbers(length, true), want = transform(x, n, -1), got;
		std::vector<double> real(length);
		cufftHandle plan;
		double *gpu;
		Z *to;

		for (int i = 0; i < length; i++)
			real[i] = x[i].real();
		gpu = up(real);
		CHECK(cudaMalloc(&to, (length / 2 + 1) * sizeof(*to)));
		OK(cufftPlan1d(&plan, length, CUFFT_D2Z, 1));
		OK(cufftExecD2Z(plan, gpu, (cufftDoubleComplex *)to));
		got = down(to, length / 2 + 1);
		for (int i = 0; i <= length / 2; i++)
			near("a row", i, got[i], want[i], 1e-8);
		OK(cufftDestroy(plan));
		CHECK(cudaFree(gpu));
		CHECK(cudaFree(to));
	}
}

int main(void)
{
	cufftHandle plan;

	first("cuFFT", cufftCreate(&plan), CUFFT_INVALID_PLAN);
	OK(cufftDestroy(plan));
	wrong_layouts();
	space();
	padded();
	interleaved();
	lengths();
	CHECK(cudaDeviceSynchronize());
	printf("spaces, padding, gaps, alternating batches, lengths\n");
	return 0;
}

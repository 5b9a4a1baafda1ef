// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How the elements of cuFFT's transforms lie: spaces, with gaps between elements and rows, batches
 * that are interleaved, real numbers in place with padding; each beside the definition. Layouts that
 * cannot be come first.
 */
#include "fft.h"

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
	std::vector<Z> x = numbers<Z>(4 * 6 * 10);
	cufftHandle plan;
	Z *gpu = up(x);

	OK(cufftPlan3d(&plan, 4, 6, 10, CUFFT_Z2Z));
	OK(execute(plan, gpu, gpu, CUFFT_FORWARD));
	compare("a space", down(gpu, x.size()), transform(x, {4, 6, 10}, -1));
	OK(execute(plan, gpu, gpu, CUFFT_INVERSE));
	compare("and back", down(gpu, x.size()), x, 1.0 / x.size());
	OK(cufftDestroy(plan));
	CHECK(cudaFree(gpu));
}

/* Real numbers in place: each row has room for its complex ones. */
static void padded(void)
{
	const int row = 12;
	std::vector<float> x = numbers<float>(6 * 10), lay(6 * row);
	std::vector<Z> want = transform(x, {6, 10}, -1);
	cufftHandle plan;

	for (int i = 0; i < 60; i++)
		lay[i / 10 * row + i % 10] = x[i];

	float *gpu = up(lay);

	OK(cufftPlan2d(&plan, 6, 10, CUFFT_R2C));
	OK(execute(plan, gpu, (C *)gpu));

	std::vector<C> got = down((C *)gpu, 6 * 6);

	for (int i = 0; i < 6; i++)
		compare("real, in place", &got[i * 6], &want[i * 10], 6);
	OK(cufftDestroy(plan));
	OK(cufftPlan2d(&plan, 6, 10, CUFFT_C2R));
	OK(execute(plan, (C *)gpu, gpu));
	lay = down(gpu, lay.size());
	for (int i = 0; i < 6; i++)
		compare("and back, in place", &lay[i * row], &x[i * 10], 10, 1.0 / 60);
	OK(cufftDestroy(plan));
	CHECK(cudaFree(gpu));
}

/* Three planes of 4 x 5, whose elements alternate, in rows with room for 7, to planes without gaps. */
static void interleaved(void)
{
	const int batch = 3, room = 7;
	int size[] = {4, 5}, in[] = {4, room}, out[] = {4, 5};
	std::vector<C> lay(4 * room * batch), got, x[batch];
	cufftHandle plan;
	C *gpu, *to;

	for (int b = 0; b < batch; b++) {
		x[b] = numbers<C>(20);
		for (int i = 0; i < 20; i++)
			lay[(i / 5 * room + i % 5) * batch + b] = x[b][i];
	}
	gpu = up(lay);
	CHECK(cudaMalloc(&to, 20 * batch * sizeof(*to)));
	OK(cufftPlanMany(&plan, 2, size, in, batch, 1, out, 1, 20, CUFFT_C2C, batch));
	OK(execute(plan, gpu, to, CUFFT_INVERSE));
	got = down(to, 20 * batch);
	for (int b = 0; b < batch; b++)
		compare("planes that alternate", &got[b * 20], transform(x[b], {4, 5}, 1).data(), 20);
	REQUIRE(down(gpu, lay.size()) == lay, "the input has changed");
	OK(cufftDestroy(plan));
	CHECK(cudaFree(gpu));
	CHECK(cudaFree(to));
}

/* A long row, and one of a length that is a prime number. */
static void lengths(void)
{
	for (int length : {1, 2, 97, 1024}) {
		std::vector<double> x = numbers<double>(length);
		cufftHandle plan;
		double *gpu = up(x);
		Z *to;

		CHECK(cudaMalloc(&to, (length / 2 + 1) * sizeof(*to)));
		OK(cufftPlan1d(&plan, length, CUFFT_D2Z, 1));
		OK(execute(plan, gpu, to));

		std::vector<Z> got = down(to, length / 2 + 1);

		compare("a row", got.data(), transform(x, {length}, -1).data(), got.size());
		OK(cufftDestroy(plan));
		CHECK(cudaFree(gpu));
		CHECK(cudaFree(to));
	}
}

int main(void)
{
	begin();
	wrong_layouts();
	space();
	padded();
	interleaved();
	lengths();
	CHECK(cudaDeviceSynchronize());
	printf("spaces, padding, gaps, alternating batches, lengths\n");
	return 0;
}

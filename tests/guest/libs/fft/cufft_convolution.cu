// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Convolution by cuFFT. Complex rows are convolved in a circle, all with one filter. A long real signal
 * is filtered block by block: kernels cut it into blocks and add up where their results overlap. Both
 * are compared with sums on the CPU. Wrong plans come first.
 */
#include "fft.h"

#define ROW    96
#define ROWS   5
#define BLOCK  200
#define TAPS   57
#define SIZE   256 /* BLOCK + TAPS - 1 */
#define BLOCKS 24
#define HALF   (SIZE / 2 + 1)

static void wrong_plans(void)
{
	int none[] = {0}, row[] = {ROW};
	cufftHandle plan;

	FAILS(cufftPlan1d(&plan, 0, CUFFT_C2C, ROWS));
	FAILS(cufftPlan1d(&plan, ROW, CUFFT_C2C, -1));
	FAILS(cufftPlanMany(&plan, 1, none, NULL, 1, ROW, NULL, 1, ROW, CUFFT_C2C, ROWS));
	FAILS(cufftPlanMany(&plan, 0, row, NULL, 1, ROW, NULL, 1, ROW, CUFFT_C2C, ROWS));
	FAILS(cufftPlan1d(&plan, ROW, (cufftType)0, ROWS));
}

static void circle(void)
{
	std::vector<C> x = numbers<C>(ROW * ROWS), h = numbers<C>(ROW), want(ROW * ROWS);
	cufftHandle rows, row;
	C *gpu = up(x), *filter = up(h);

	for (int b = 0; b < ROWS; b++)
		for (int i = 0; i < ROW; i++)
			for (int j = 0; j < ROW; j++)
				want[b * ROW + (i + j) % ROW] += x[b * ROW + i] * h[j];
	OK(cufftPlan1d(&rows, ROW, CUFFT_C2C, ROWS));
	OK(cufftPlan1d(&row, ROW, CUFFT_C2C, 1));
	OK(execute(rows, gpu, gpu, CUFFT_FORWARD));
	OK(execute(row, filter, filter, CUFFT_FORWARD));
	multiply<<<blocks(x.size()), 256>>>(raw(gpu), raw(filter), ROW, ROW * ROWS);
	CHECK_LAUNCH();
	OK(execute(rows, gpu, gpu, CUFFT_INVERSE));
	compare("rows in a circle", down(gpu, x.size()), want, 1.0 / ROW);
	OK(cufftDestroy(rows));
	OK(cufftDestroy(row));
	CHECK(cudaFree(gpu));
	CHECK(cudaFree(filter));
}

/* One block of threads for each block of the signal. What a row has more stays zero. */
static __global__ void cut(const float *x, float *rows)
{
	int i = threadIdx.x;

	rows[blockIdx.x * SIZE + i] = i < BLOCK ? x[blockIdx.x * BLOCK + i] : 0;
}

/* The end of each row overlaps with the beginning of the next one. */
static __global__ void join(const float *rows, float *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / BLOCK, at = i % BLOCK;
	float sum = 0;

	if (i >= n)
		return;
	if (row < BLOCKS)
		sum = rows[row * SIZE + at];
	if (row && at + BLOCK < SIZE)
		sum += rows[(row - 1) * SIZE + at + BLOCK];
	y[i] = sum / SIZE;
}

static void block_by_block(void)
{
	const int n = BLOCK * BLOCKS + TAPS - 1;
	std::vector<float> x = numbers<float>(BLOCK * BLOCKS), h = numbers<float>(TAPS), want(n);
	cufftHandle there, back, once;

	for (size_t i = 0; i < x.size(); i++)
		for (int j = 0; j < TAPS; j++)
			want[i + j] += x[i] * h[j];
	h.resize(SIZE);

	float *signal = up(x), *taps = up(h), *rows = up(std::vector<float>(SIZE * BLOCKS)), *y = up(want);
	C *spectra = up(std::vector<C>(HALF * BLOCKS)), *filter = up(std::vector<C>(HALF));

	CHECK(cudaMemset(y, 0xff, n * sizeof(*y)));
	OK(cufftPlan1d(&once, SIZE, CUFFT_R2C, 1));
	OK(cufftPlan1d(&there, SIZE, CUFFT_R2C, BLOCKS));
	OK(cufftPlan1d(&back, SIZE, CUFFT_C2R, BLOCKS));
	OK(execute(once, taps, filter));
	cut<<<BLOCKS, SIZE>>>(signal, rows);
	CHECK_LAUNCH();
	OK(execute(there, rows, spectra));
	multiply<<<blocks(HALF * BLOCKS), 256>>>(raw(spectra), raw(filter), HALF, HALF * BLOCKS);
	CHECK_LAUNCH();
	OK(execute(back, spectra, rows));
	join<<<blocks(n), 256>>>(rows, y, n);
	CHECK_LAUNCH();
	compare("a signal in blocks", down(y, n), want);
	for (cufftHandle plan : {there, back, once})
		OK(cufftDestroy(plan));
	for (void *p : {(void *)signal, (void *)taps, (void *)rows, (void *)y, (void *)spectra, (void *)filter})
		CHECK(cudaFree(p));
}

int main(void)
{
	begin();
	wrong_plans();
	circle();
	block_by_block();
	CHECK(cudaDeviceSynchronize());
	printf("%d rows in a circle, a signal of %d blocks\n", ROWS, BLOCKS);
	return 0;
}

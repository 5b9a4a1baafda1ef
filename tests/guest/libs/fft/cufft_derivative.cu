// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Derivatives and integrals of periodic functions by cuFFT, in place, in float and in double: a kernel
 * multiplies the spectra of a batch with powers of i*k. Beside the derivatives by the formula: of sums
 * of waves, and in double of exp(sin(x)). Wrong plans come first.
 */
#include "fft.h"

#define N     64
#define HALF  (N / 2 + 1)
#define ROW   (2 * HALF) /* numbers of a row, with its padding */
#define BATCH 6
#define WAVES 5

static void wrong_plans(void)
{
	int n[] = {N};
	cufftHandle plan;
	size_t size;

	OK(cufftCreate(&plan));
	FAILS(cufftMakePlan1d(plan, -N, CUFFT_R2C, BATCH, &size));
	FAILS(cufftMakePlan1d(plan, N, (cufftType)(CUFFT_R2C + 1), BATCH, &size));
	FAILS(cufftMakePlanMany(plan, 1, n, NULL, 1, 0, NULL, 1, 0, CUFFT_R2C, 0, &size));
	OK(cufftDestroy(plan));
}

/* The derivative of that order, or for -1 an integral whose mean is zero. One block for each row. */
template <typename T> static __global__ void derive(T *rows, int order)
{
	int k = threadIdx.x;
	T *p = &rows[blockIdx.x * HALF + k], v;

	if (k >= HALF)
		return;
	v = *p;
	/* The last wave has no derivative of an odd order, and a constant has no periodic integral. */
	if ((k == N / 2 && order % 2) || (!k && order < 0))
		v.x = v.y = 0;
	else if (order < 0)
		v = T{v.y / k, -v.x / k};
	for (int i = 0; i < order; i++)
		v = T{-v.y * k, v.x * k};
	p->x = v.x / N;
	p->y = v.y / N;
}

struct wave {
	int k;
	double size, phase;
};

/* The derivative of that order of a sum of waves. -1: an integral. */
static double value(const std::vector<wave> &waves, double x, int order)
{
	double sum = 0;

	for (const wave &w : waves)
		sum += w.size * pow(w.k, order) * cos(w.k * x + w.phase + order * M_PI / 2);
	return sum;
}

/* In rows with padding. */
template <typename R> static std::vector<R> rows_of(const std::vector<wave> *waves, int order)
{
	std::vector<R> rows(BATCH * ROW);

	for (int b = 0; b < BATCH; b++)
		for (int i = 0; i < N; i++)
			rows[b * ROW + i] = (R)value(waves[b], 2 * M_PI * i / N, order);
	return rows;
}

template <typename R> static void sums_of_waves(cufftType type, cufftType back)
{
	typedef std::complex<R> T;
	std::vector<wave> waves[BATCH];
	cufftHandle there, again;
	size_t size;

	for (int b = 0; b < BATCH; b++)
		for (int i = 0; i < WAVES; i++)
			waves[b].push_back({1 + (b + 3 * i) % 12, small_number() / 16, small_number()});

	std::vector<R> x = rows_of<R>(waves, 0);
	R *gpu = up(x);

	OK(cufftCreate(&there));
	OK(cufftMakePlan1d(there, N, type, BATCH, &size));
	OK(cufftCreate(&again));
	OK(cufftMakePlan1d(again, N, back, BATCH, &size));
	for (int order = -1; order <= 3; order++) {
		std::vector<R> got, want = rows_of<R>(waves, order);

		CHECK(cudaMemcpy(gpu, x.data(), x.size() * sizeof(R), cudaMemcpyHostToDevice));
		OK(execute(there, gpu, (T *)gpu));
		derive<<<BATCH, 64>>>(raw((T *)gpu), order);
		CHECK_LAUNCH();
		OK(execute(again, (T *)gpu, gpu));
		got = down(gpu, x.size());
		for (int b = 0; b < BATCH; b++)
			for (int i = 0; i < N; i++) {
				double off = fabs((double)got[b * ROW + i] - want[b * ROW + i]);

				/* The highest waves grow by 12^order, and so does what is rounded. */
				REQUIRE(off < tolerance<R>() * (1 + pow(12, order)), "order %d: off by %g", order, off);
			}
	}
	OK(cufftDestroy(there));
	OK(cufftDestroy(again));
	CHECK(cudaFree(gpu));
}

/* The error falls so fast with the length that no wave beyond this length counts. */
static void exponential(void)
{
	std::vector<double> row(ROW);
	cufftHandle there, back;

	for (int i = 0; i < N; i++)
		row[i] = exp(sin(2 * M_PI * i / N));

	double *gpu = up(row);

	OK(cufftPlan1d(&there, N, CUFFT_D2Z, 1));
	OK(cufftPlan1d(&back, N, CUFFT_Z2D, 1));
	OK(execute(there, gpu, (Z *)gpu));
	derive<<<1, 64>>>((cufftDoubleComplex *)gpu, 1);
	CHECK_LAUNCH();
	OK(execute(back, (Z *)gpu, gpu));
	for (int i = 0; i < N; i++)
		row[i] *= cos(2 * M_PI * i / N);
	compare("exp(sin(x))", down(gpu, N).data(), row.data(), N);
	OK(cufftDestroy(there));
	OK(cufftDestroy(back));
	CHECK(cudaFree(gpu));
}

int main(void)
{
	begin();
	wrong_plans();
	sums_of_waves<float>(CUFFT_R2C, CUFFT_C2R);
	sums_of_waves<double>(CUFFT_D2Z, CUFFT_Z2D);
	exponential();
	printf("integrals, and derivatives of the orders 0 to 3, of %d functions\n", BATCH);
	return 0;
}

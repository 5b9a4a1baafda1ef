// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A spectrogram: the notes of a tune are found by a batch of transforms whose rows overlap in the
 * signal, planned with 64-bit sizes, and are written so that the times of one note lie together. Then a
 * kernel cuts smooth windows, and the signal comes back as the sum of what the windows give. Wrong sizes
 * come first.
 */
#include "fft.h"

#define SIZE   128
#define HALF   (SIZE / 2 + 1)
#define HOP    (SIZE / 4)
#define NOTES  6
#define LENGTH (SIZE * NOTES)
#define TIMES  ((LENGTH - SIZE) / HOP + 1)

static const int tune[NOTES] = {12, 15, 19, 24, 19, 40};

static void wrong_sizes(void)
{
	long long n[] = {SIZE}, bad[] = {-SIZE}, in[] = {SIZE}, out[] = {HALF};
	cufftHandle plan;
	size_t size;

	FAILS(cufftMakePlanMany64(CUFFT_PLAN_NULL, 1, n, in, 1, HOP, out, 1, HALF, CUFFT_R2C, TIMES, &size));
	OK(cufftCreate(&plan));
	FAILS(cufftMakePlanMany64(plan, 1, bad, in, 1, HOP, out, 1, HALF, CUFFT_R2C, TIMES, &size));
	OK(cufftDestroy(plan));
	OK(cufftCreate(&plan));
	FAILS(cufftMakePlanMany64(plan, 1, n, in, 1, HOP, out, 1, HALF, CUFFT_R2C, -TIMES, &size));
	OK(cufftDestroy(plan));
}

/* Each note has an overtone. */
static std::vector<float> signal(void)
{
	std::vector<float> x(LENGTH);

	for (int i = 0; i < LENGTH; i++) {
		double phase = 2 * M_PI * i * tune[i / SIZE] / SIZE;

		x[i] = (float)(cos(phase) + 0.25 * sin(1.5 * phase) + small_number() / 64);
	}
	return x;
}

static cufftHandle plan64(long long in_dist, long long out_stride, long long out_dist, cufftType type)
{
	long long n[] = {SIZE}, in[] = {SIZE}, out[] = {SIZE};
	cufftHandle plan;
	size_t size;

	OK(cufftCreate(&plan));
	OK(cufftMakePlanMany64(plan, 1, n, in, 1, in_dist, out, out_stride, out_dist, type, TIMES, &size));
	return plan;
}

/* The wave k of the time t lies at spectra[k * TIMES + t]. */
static void find_notes(const std::vector<float> &x)
{
	cufftHandle plan = plan64(HOP, TIMES, 1, CUFFT_R2C);
	float *gpu = up(x);
	C *spectra = up(std::vector<C>(HALF * TIMES));
	std::vector<C> got;

	OK(execute(plan, gpu, spectra));
	got = down(spectra, HALF * TIMES);
	REQUIRE(down(gpu, LENGTH) == x, "the signal has changed");
	printf("notes:");
	for (int t = 0; t < TIMES; t++) {
		std::vector<Z> want = transform(&x[t * HOP], SIZE, -1);
		std::vector<C> one(HALF);
		int note = 0;

		for (int k = 0; k < HALF; k++) {
			one[k] = got[k * TIMES + t];
			if (std::abs(one[k]) > std::abs(one[note]))
				note = k;
		}
		compare("a time", one.data(), want.data(), HALF);
		if (t * HOP % SIZE)
			continue;
		REQUIRE(note == tune[t * HOP / SIZE], "note %d, not %d", note, tune[t * HOP / SIZE]);
		printf(" %d", note);
	}
	printf("\n");
	OK(cufftDestroy(plan));
	CHECK(cudaFree(gpu));
	CHECK(cudaFree(spectra));
}

/* One block of threads for each time. Windows that are HOP apart add up to 2. */
static __global__ void cut(const float *x, float *rows)
{
	int i = threadIdx.x, t = blockIdx.x;

	rows[t * SIZE + i] = x[t * HOP + i] * (0.5f - 0.5f * cosf(2 * (float)M_PI * i / SIZE));
}

/* One block for each HOP of the signal, which the windows of up to four times reach. */
static __global__ void join(const float *rows, float *y)
{
	int i = blockIdx.x * HOP + threadIdx.x;
	float sum = 0;

	for (int t = 0; t < TIMES; t++)
		if (i >= t * HOP && i < t * HOP + SIZE)
			sum += rows[t * SIZE + i - t * HOP];
	y[i] = sum / (2 * SIZE);
}

static void and_back(const std::vector<float> &x)
{
	cufftHandle there = plan64(SIZE, 1, HALF, CUFFT_R2C), back = plan64(HALF, 1, SIZE, CUFFT_C2R);
	float *gpu = up(x), *rows = up(std::vector<float>(SIZE * TIMES));
	C *spectra = up(std::vector<C>(HALF * TIMES));
	std::vector<float> got;

	cut<<<TIMES, SIZE>>>(gpu, rows);
	CHECK_LAUNCH();
	OK(execute(there, rows, spectra));
	CHECK(cudaMemset(rows, 0xff, SIZE * TIMES * sizeof(float)));
	CHECK(cudaMemset(gpu, 0xff, LENGTH * sizeof(float)));
	OK(execute(back, spectra, rows));
	join<<<LENGTH / HOP, HOP>>>(rows, gpu);
	CHECK_LAUNCH();
	got = down(gpu, LENGTH);
	/* At the ends there are fewer windows. */
	compare("the signal", &got[SIZE], &x[SIZE], LENGTH - 2 * SIZE);
	OK(cufftDestroy(there));
	OK(cufftDestroy(back));
	for (void *p : {(void *)gpu, (void *)rows, (void *)spectra})
		CHECK(cudaFree(p));
}

int main(void)
{
	begin();
	wrong_sizes();

	std::vector<float> x = signal();

	find_notes(x);
	and_back(x);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Correlation by cuFFT: how far images have been moved. A batch of images, each a copy of the first
 * one that is moved in a circle, is correlated with the first one, in float and in double; the peak
 * says how far. All sums are compared with those of the CPU, and the sum of squares stands at the
 * correlation of the image with itself. Wrong batches come first.
 */
#include <algorithm>

#include "fft.h"

#define H     20
#define W     36
#define PLANE (H * W)
#define HALF  (W / 2 + 1)
#define BATCH 4

static const int down_by[BATCH] = {0, 3, 11, 19}, right_by[BATCH] = {0, 35, 8, 17};

static void wrong_batches(void)
{
	int size[] = {H, W}, bad[] = {H, -W};
	long long wide[] = {H, W};
	cufftHandle plan;
	size_t bytes;

	FAILS(cufftPlanMany(&plan, 2, bad, NULL, 1, 0, NULL, 1, 0, CUFFT_R2C, BATCH));
	FAILS(cufftPlanMany(&plan, 2, size, NULL, 1, 0, NULL, 1, 0, CUFFT_R2C, -BATCH));
	FAILS(cufftMakePlanMany(CUFFT_PLAN_NULL, 2, size, NULL, 1, 0, NULL, 1, 0, CUFFT_R2C, BATCH, &bytes));
	FAILS(cufftMakePlanMany64(CUFFT_PLAN_NULL, 2, wide, NULL, 1, 0, NULL, 1, 0, CUFFT_R2C, BATCH, &bytes));
}

/* Each spectrum of the batch times the conjugate of the first one. */
template <typename T> static __global__ void correlate(const T *all, T *to, int length, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n) {
		T first = all[i % length];

		first.y = -first.y;
		to[i] = times(all[i], first);
	}
}

/* What lies at `at` is the sum over all pixels of moved[pixel + at] * image[pixel]. */
template <typename R> static std::vector<Z> sums(const R *image, const R *moved)
{
	std::vector<Z> sum(PLANE);

	for (int at = 0; at < PLANE; at++)
		for (int i = 0; i < PLANE; i++)
			sum[at] += (double)image[i] *
				   (double)moved[(i / W + at / W) % H * W + (i % W + at % W) % W];
	return sum;
}

template <typename R> static void moved_images(cufftType type, cufftType back)
{
	typedef std::complex<R> T;
	std::vector<R> images(BATCH * PLANE), got;
	std::vector<R> image = numbers<R>(PLANE);
	int size[] = {H, W}, most;
	cufftHandle there, again;
	double squares = 0;

	for (R v : image)
		squares += (double)v * v;
	for (int b = 0; b < BATCH; b++)
		for (int i = 0; i < PLANE; i++)
			images[b * PLANE + (i / W + down_by[b]) % H * W + (i % W + right_by[b]) % W] = image[i];

	R *gpu = up(images);
	T *spectra = up(std::vector<T>(BATCH * H * HALF)), *products = up(std::vector<T>(BATCH * H * HALF));

	OK(cufftPlanMany(&there, 2, size, NULL, 1, 0, NULL, 1, 0, type, BATCH));
	OK(cufftPlanMany(&again, 2, size, NULL, 1, 0, NULL, 1, 0, back, BATCH));
	OK(execute(there, gpu, spectra));
	correlate<<<blocks(BATCH * H * HALF), 256>>>(raw(spectra), raw(products), H * HALF, BATCH * H * HALF);
	CHECK_LAUNCH();
	CHECK(cudaMemset(gpu, 0xff, images.size() * sizeof(R)));
	OK(execute(again, products, gpu));
	got = down(gpu, images.size());
	for (int b = 0; b < BATCH; b++) {
		const R *one = &got[b * PLANE];

		compare("a correlation", one, sums(image.data(), &images[b * PLANE]).data(), PLANE, 1.0 / PLANE);
		most = (int)(std::max_element(one, one + PLANE) - one);
		REQUIRE(most == down_by[b] * W + right_by[b], "image %d: %d and %d", b, most / W, most % W);
		REQUIRE(fabs(one[most] / PLANE - squares) < tolerance<R>() * squares, "the peak is %g",
			(double)one[most] / PLANE);
		printf("image %d of %zu bytes a pixel has been moved by %d and %d\n", b, sizeof(R), most / W, most % W);
	}
	OK(cufftDestroy(there));
	OK(cufftDestroy(again));
	for (void *p : {(void *)gpu, (void *)spectra, (void *)products})
		CHECK(cudaFree(p));
}

int main(void)
{
	begin();
	wrong_batches();
	moved_images<float>(CUFFT_R2C, CUFFT_C2R);
	moved_images<double>(CUFFT_D2Z, CUFFT_Z2D);
	return 0;
}

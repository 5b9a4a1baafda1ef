// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An image in rows with a pitch, whose pixels have four colours, is filtered by cuFFT: one plan takes
 * the colours as a batch of planes that alternate, a kernel keeps the slow waves or the fast ones, and
 * another plan writes them back between the other bytes of the pitch, which must not change. The image
 * is made of waves, so the CPU knows the result. Then the same in managed memory. Wrong layouts come first.
 */
#include "fft.h"

#define H       36
#define W       50
#define COLOURS 4
#define HALF    (W / 2 + 1)
#define CUT     6 /* slow: fewer periods than this, in each direction */

static void wrong_layouts(void)
{
	int size[] = {H, W}, in[] = {H, W}, out[] = {H, HALF};
	cufftHandle plan;

	FAILS(cufftPlan2d(&plan, 0, W, CUFFT_R2C));
	FAILS(cufftPlan2d(&plan, H, -W, CUFFT_R2C));
	FAILS(cufftPlanMany(&plan, 2, size, in, COLOURS, 1, out, 1, H * HALF, CUFFT_R2C, -COLOURS));
	FAILS(cufftPlanMany(&plan, -2, size, in, COLOURS, 1, out, 1, H * HALF, CUFFT_R2C, COLOURS));
}

static __global__ void filter(cufftComplex *spectra, bool slow)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, y, x;

	if (i >= COLOURS * H * HALF)
		return;
	y = i / HALF % H;
	x = i % HALF;
	if (y > H / 2)
		y = H - y;
	if ((y < CUT && x < CUT) != slow)
		spectra[i].x = spectra[i].y = 0;
	spectra[i].x /= H * W;
	spectra[i].y /= H * W;
}

/* A slow and a fast wave for each colour. */
static float pixel(int i, bool slow)
{
	const int c = i % COLOURS, x = i / COLOURS % W, y = i / COLOURS / W;

	if (slow)
		return (float)cos(2 * M_PI * ((double)(c + 1) * y / H + 3.0 * x / W));
	return (float)sin(2 * M_PI * ((double)(16 - c) * y / H + (double)(c + 9) * x / W));
}

static std::vector<float> image(bool slow, bool fast)
{
	std::vector<float> v(H * W * COLOURS);

	for (size_t i = 0; i < v.size(); i++)
		v[i] = (slow ? pixel((int)i, true) : 0) + (fast ? pixel((int)i, false) : 0);
	return v;
}

/* Rows of `pitch` bytes at `gpu`, which has the image: it is filtered where it lies. */
static void run(float *gpu, size_t pitch, C *spectra, bool slow)
{
	const int room = (int)(pitch / (COLOURS * sizeof(float)));
	int size[] = {H, W}, in[] = {H, room}, out[] = {H, HALF};
	cufftHandle there, back;

	REQUIRE(pitch % (COLOURS * sizeof(float)) == 0, "a pitch of %zu bytes", pitch);
	OK(cufftPlanMany(&there, 2, size, in, COLOURS, 1, out, 1, H * HALF, CUFFT_R2C, COLOURS));
	OK(cufftPlanMany(&back, 2, size, out, 1, H * HALF, in, COLOURS, 1, CUFFT_C2R, COLOURS));
	OK(execute(there, gpu, spectra));
	filter<<<blocks(COLOURS * H * HALF), 256>>>(raw(spectra), slow);
	CHECK_LAUNCH();
	OK(execute(back, spectra, gpu));
	CHECK(cudaDeviceSynchronize());
	OK(cufftDestroy(there));
	OK(cufftDestroy(back));
}

static void pitched(C *spectra, bool slow)
{
	const size_t row = W * COLOURS * sizeof(float);
	std::vector<float> both = image(true, true), got(both.size());
	std::vector<unsigned char> bytes;
	size_t pitch;
	float *gpu;

	CHECK(cudaMallocPitch(&gpu, &pitch, row, H));
	CHECK(cudaMemset(gpu, 0x5a, pitch * H));
	CHECK(cudaMemcpy2D(gpu, pitch, both.data(), row, row, H, cudaMemcpyHostToDevice));
	run(gpu, pitch, spectra, slow);
	CHECK(cudaMemcpy2D(got.data(), row, gpu, pitch, row, H, cudaMemcpyDeviceToHost));
	compare(slow ? "the slow waves" : "the fast waves", got, image(slow, !slow));
	bytes = down((unsigned char *)gpu, pitch * H);
	for (size_t i = 0; i < bytes.size(); i++)
		REQUIRE(i % pitch < row || bytes[i] == 0x5a, "byte %zu of the pitch has changed", i);
	CHECK(cudaFree(gpu));
}

static void managed(C *spectra)
{
	std::vector<float> both = image(true, true);
	float *p;

	CHECK(cudaMallocManaged(&p, both.size() * sizeof(float)));
	std::copy(both.begin(), both.end(), p);
	run(p, W * COLOURS * sizeof(float), spectra, true);
	compare("in managed memory", p, image(true, false).data(), both.size());
	CHECK(cudaFree(p));
}

int main(void)
{
	C *spectra;

	begin();
	wrong_layouts();
	CHECK(cudaMalloc(&spectra, COLOURS * H * HALF * sizeof(*spectra)));
	pitched(spectra, true);
	pitched(spectra, false);
	managed(spectra);
	CHECK(cudaFree(spectra));
	printf("the slow and the fast waves of %d colours\n", COLOURS);
	return 0;
}

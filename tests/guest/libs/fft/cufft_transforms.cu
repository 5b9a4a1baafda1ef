// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Transforms of cuFFT: complex and real, in one and two dimensions, in batches, in two types, with a
 * workspace of the program's own, beside the definition. Wrong calls come first.
 */
#include "fft.h"

static void wrong_calls(void)
{
	cufftHandle plan = -1;
	size_t size;
	int n[1] = {8};

	FAILS(cufftPlan1d(&plan, -5, CUFFT_C2C, 1));
	FAILS(cufftExecC2C(-1, NULL, NULL, CUFFT_FORWARD));
	OK(cufftCreate(&plan));
	FAILS(cufftMakePlan1d(plan, 0, CUFFT_C2C, 1, &size));
	FAILS(cufftMakePlanMany(plan, -1, n, NULL, 1, 8, NULL, 1, 8, CUFFT_C2C, 1, &size));
	OK(cufftDestroy(plan));
	FAILS(cufftDestroy(plan));
}

static void rows(void)
{
	const int n = 60, batch = 5;
	std::vector<C> x = numbers<C>(n * batch);
	C *gpu = up(x), *to = up(x);
	cufftHandle plan;

	OK(cufftPlan1d(&plan, n, CUFFT_C2C, batch));
	for (int i = 0; i < 4; i++)
		OK(execute(plan, gpu, to, i % 2 ? CUFFT_INVERSE : CUFFT_FORWARD));

	std::vector<C> got = down(to, x.size());

	for (int i = 0; i < batch; i++)
		compare("a row backward", &got[i * n], transform(&x[i * n], n, 1).data(), n);
	OK(cufftDestroy(plan));
	CHECK(cudaFree(gpu));
	CHECK(cudaFree(to));
}

/* With the newer functions, a stream, and a workspace of the program's own. */
static void real_rows(void)
{
	long long n = 48, batch = 3;
	std::vector<double> x = numbers<double>(n * batch);
	std::vector<Z> y((n / 2 + 1) * batch);
	double *gpu = up(x), *back = up(x);
	Z *to = up(y);
	cudaStream_t stream;
	cufftHandle plan;
	size_t size = 0;
	void *work;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cufftCreate(&plan));
	OK(cufftSetAutoAllocation(plan, 0));
	OK(cufftXtMakePlanMany(plan, 1, &n, NULL, 1, 1, CUDA_R_64F, NULL, 1, 1, CUDA_C_64F, batch, &size, CUDA_C_64F));
	CHECK(cudaMalloc(&work, size + 1));
	OK(cufftSetWorkArea(plan, work));
	OK(cufftSetStream(plan, stream));
	for (int i = 0; i < 3; i++)
		OK(cufftXtExec(plan, gpu, to, CUFFT_FORWARD));
	CHECK(cudaStreamSynchronize(stream));
	y = down(to, y.size());
	for (int i = 0; i < batch; i++)
		compare("a real row", &y[i * (n / 2 + 1)], transform(&x[i * n], (int)n, -1).data(), n / 2 + 1);
	OK(cufftDestroy(plan));
	OK(cufftPlan1d(&plan, (int)n, CUFFT_Z2D, (int)batch));
	OK(execute(plan, to, back));
	compare("there and back", down(back, x.size()), x, 1.0 / n);
	OK(cufftDestroy(plan));
	for (void *p : {(void *)gpu, (void *)back, (void *)to, work})
		CHECK(cudaFree(p));
	CHECK(cudaStreamDestroy(stream));
}

static void plane(void)
{
	std::vector<C> x = numbers<C>(12 * 20);
	C *gpu = up(x);
	cufftHandle plan;

	OK(cufftPlan2d(&plan, 12, 20, CUFFT_C2C));
	OK(execute(plan, gpu, gpu, CUFFT_FORWARD));
	compare("a plane", down(gpu, x.size()), transform(x, {12, 20}, -1));
	OK(cufftDestroy(plan));
	CHECK(cudaFree(gpu));
}

int main(void)
{
	int version = 0;

	begin();
	OK(cufftGetVersion(&version));
	REQUIRE(version / 1000 == CUFFT_VERSION / 1000, "version %d", version);
	wrong_calls();
	rows();
	real_rows();
	plane();
	CHECK(cudaDeviceSynchronize());
	printf("complex and real transforms of rows in batches, and of a plane\n");
	return 0;
}

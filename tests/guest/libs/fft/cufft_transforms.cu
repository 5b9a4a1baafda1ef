// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Transforms of cuFFT: complex and real, in one and two dimensions, in batches, in two types, with a
 * workspace of the program's own, beside the definition. Wrong calls come first.
 */
#include <cufft.h>
#include <cufftXt.h>

#include "../libs.h"

typedef std::complex<double> Z;
typedef std::complex<float> C;

/* By the definition, of one row. */
template <typename T> static std::vector<Z> transform(const T *x, int n, int sign)
{
	std::vector<Z> y(n);

	for (int k = 0; k < n; k++)
		for (int i = 0; i < n; i++)
			y[k] += Z(x[i]) * std::polar(1.0, sign * 2 * M_PI * i * k / n);
	return y;
}

template <typename T> static void compare(const char *what, const T *got, const Z *want, int n, double tolerance)
{
	for (int i = 0; i < n; i++)
		REQUIRE(std::abs(Z(got[i]) - want[i]) <= tolerance * (1 + std::abs(want[i])), "%s: element %d is off by %g",
			what, i, std::abs(Z(got[i]) - want[i]));
}

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
	std::vector<C> x(n * batch);
	cufftHandle plan;

	for (C &v : x)
		v = C((float)small_number(), (float)small_number());

	C *gpu = up(x), *to = up(x);

	OK(cufftPlan1d(&plan, n, CUFFT_C2C, batch));
	for (int i = 0; i < 4; i++)
		OK(cufftExecC2C(plan, (cufftComplex *)gpu, (cufftComplex *)to, i % 2 ? CUFFT_INVERSE : CUFFT_FORWARD));

	std::vector<C> got = down(to, x.size());

	for (int i = 0; i < batch; i++) {
		std::vector<Z> want = transform(&x[i * n], n, 1);

		compare("a row backward", &got[i * n], want.data(), n, 1e-3);
	}
	OK(cufftDestroy(plan));
	CHECK(cudaFree(gpu));
	CHECK(cudaFree(to));
}

/* With the newer functions, a stream, and a workspace of the program's own. */
static void real_rows(void)
{
	long long n = 48, batch = 3;
	std::vector<double> x(n * batch);
	std::vector<Z> y((n / 2 + 1) * batch);
	cudaStream_t stream;
	cufftHandle plan;
	size_t size = 0;
	void *work;

	for (double &v : x)
		v = small_number();

	double *gpu = up(x), *back = up(x);
	Z *to = up(y);

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
	for (int i = 0; i < batch; i++) {
		std::vector<Z> want = transform(&x[i * n], (int)n, -1);

		compare("a real row", &y[i * (n / 2 + 1)], want.data(), (int)(n / 2 + 1), 1e-10);
	}
	OK(cufftDestroy(plan));
	OK(cufftPlan1d(&plan, (int)n, CUFFT_Z2D, (int)batch));
	OK(cufftExecZ2D(plan, (cufftDoubleComplex *)to, back));

	std::vector<double> again = down(back, x.size());

	for (size_t i = 0; i < x.size(); i++)
		REQUIRE(fabs(again[i] - n * x[i]) < 1e-9, "there and back: element %zu is %g", i, again[i] / n);
	OK(cufftDestroy(plan));
	for (void *p : {(void *)gpu, (void *)back, (void *)to, work})
		CHECK(cudaFree(p));
	CHECK(cudaStreamDestroy(stream));
}

static void plane(void)
{
	const int h = 12, w = 20;
	std::vector<C> x(h * w);
	std::vector<Z> want(h * w);
	cufftHandle plan;

	for (C &v : x)
		v = C((float)small_number(), (float)small_number());

	C *gpu = up(x);

	for (int i = 0; i < h; i++) {
		std::vector<Z> row = transform(&x[i * w], w, -1);

		std::copy(row.begin(), row.end(), want.begin() + i * w);
	}
	for (int j = 0; j < w; j++) {
		std::vector<Z> column(h);

		for (int i = 0; i < h; i++)
			column[i] = want[i * w + j];
		column = transform(column.data(), h, -1);
		for (int i = 0; i < h; i++)
			want[i * w + j] = column[i];
	}
	OK(cufftPlan2d(&plan, h, w, CUFFT_C2C));
	OK(cufftExecC2C(plan, (cufftComplex *)gpu, (cufftComplex *)gpu, CUFFT_FORWARD));

	std::vector<C> got = down(gpu, x.size());

	compare("a plane", got.data(), want.data(), h * w, 1e-3);
	OK(cufftDestroy(plan));
	CHECK(cudaFree(gpu));
}

int main(void)
{
	cufftHandle plan;
	int version = 0;

	first("cuFFT", cufftCreate(&plan), CUFFT_INVALID_PLAN);
	OK(cufftDestroy(plan));
	OK(cufftGetVersion(&version));
	REQUIRE(version >= 12000, "version %d", version);
	wrong_calls();
	rows();
	real_rows();
	plane();
	CHECK(cudaDeviceSynchronize());
	printf("complex and real transforms of rows in batches, and of a plane\n");
	return 0;
}

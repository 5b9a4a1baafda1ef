// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Level 1 of cuBLAS in all four types: sums, the largest element, products, and what changes vectors,
 * with steps between the elements, with results and scalars in the host's and in the GPU's memory.
 * Wrong calls and vectors without elements come first.
 */
#include "blas.h"

static cublasHandle_t handle;

template <typename V> static double size_of(V v)
{
	return fabs(std::real(v)) + fabs(std::imag(v));
}

/* Calls f with a place for its result, in host memory and in the GPU's. */
template <typename R, typename F> static void twice(F f, R *host, R *gpu)
{
	R *place;

	BLAS(f(host));
	CHECK(cudaMalloc(&place, sizeof(R)));
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
	BLAS(f(place));
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
	CHECK(cudaMemcpy(gpu, place, sizeof(R), cudaMemcpyDeviceToHost));
	CHECK(cudaFree(place));
}

template <typename T, typename R> static void sums(int n, int step)
{
	typedef typename number<T>::type V;
	array<T> x(n * step);
	double squares = 0, sum = 0, most = -1, least = 1e30;
	int at_most = 0, at_least = 0, host, gpu;
	R r, s;

	for (int i = 0; i < n; i++) {
		V v = x.host[i * step];
		double size = size_of(v);

		squares += std::norm(std::complex<double>(std::real(v), std::imag(v)));
		sum += size;
		if (size > most) {
			most = size;
			at_most = i + 1;
		}
		if (size < least) {
			least = size;
			at_least = i + 1;
		}
	}
	twice<R>([&](R *to) { return calls<T>::nrm2(handle, n, x.gpu, step, to); }, &r, &s);
	near(r, sqrt(squares), tolerance<T>(), "the norm");
	near(s, sqrt(squares), tolerance<T>(), "the norm, in the GPU's memory");
	twice<R>([&](R *to) { return calls<T>::asum(handle, n, x.gpu, step, to); }, &r, &s);
	near(r, sum, tolerance<T>(), "the sum");
	near(s, sum, tolerance<T>(), "the sum, in the GPU's memory");
	twice<int>([&](int *to) { return calls<T>::amax(handle, n, x.gpu, step, to); }, &host, &gpu);
	REQUIRE(host == at_most && gpu == at_most, "the largest is %d and %d, not %d", host, gpu, at_most);
	twice<int>([&](int *to) { return calls<T>::amin(handle, n, x.gpu, step, to); }, &host, &gpu);
	REQUIRE(host == at_least && gpu == at_least, "the smallest is %d and %d, not %d", host, gpu, at_least);
}

template <typename T> static void changes(int n, int incx, int incy)
{
	typedef typename number<T>::type V;
	const V alpha = value_of<V>(0.75, -1.25);
	array<T> x(n * incx), y(n * incy), scalar(1);
	V dot = 0, host, gpu;

	for (int i = 0; i < n; i++)
		dot += conjugate(x.host[i * incx]) * y.host[i * incy];
	twice<V>([&](V *to) { return calls<T>::dot(handle, n, x.gpu, incx, y.gpu, incy, (T *)to); }, &host, &gpu);
	REQUIRE(std::abs(host - dot) <= 10 * tolerance<T>() * (1 + std::abs(dot)) && host == gpu, "a product of vectors");

	BLAS(calls<T>::axpy(handle, n, (const T *)&alpha, x.gpu, incx, y.gpu, incy));
	for (int i = 0; i < n; i++)
		y.host[i * incy] += alpha * x.host[i * incx];
	y.check("axpy");

	scalar.host[0] = alpha;
	scalar.up();
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
	BLAS(calls<T>::scal(handle, n, scalar.gpu, x.gpu, incx));
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
	for (int i = 0; i < n; i++)
		x.host[i * incx] *= alpha;
	x.check("scal");

	BLAS(calls<T>::swap(handle, n, x.gpu, incx, y.gpu, incy));
	for (int i = 0; i < n; i++)
		std::swap(x.host[i * incx], y.host[i * incy]);
	x.check("swap");
	y.check("swap, the other");

	BLAS(calls<T>::copy(handle, n / 2, x.gpu, incx, y.gpu, incy));
	for (int i = 0; i < n / 2; i++)
		y.host[i * incy] = x.host[i * incx];
	y.check("copy");
}

static void rotations(void)
{
	const int n = 100;
	const double c = 0.6, s = 0.8;
	array<double> x(n), y(n);

	BLAS(cublasDrot(handle, n, x.gpu, 1, y.gpu, 1, &c, &s));
	for (int i = 0; i < n; i++) {
		double was = x.host[i];

		x.host[i] = c * was + s * y.host[i];
		y.host[i] = c * y.host[i] - s * was;
	}
	x.check("rot");
	y.check("rot, the other");
}

static void wrong_calls(void)
{
	const float two = 2;
	array<float> x(8);
	float result = 5;
	int index = 5;

	BLAS_IS(cublasSnrm2(NULL, 8, x.gpu, 1, &result), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasSdot(NULL, 8, x.gpu, 1, x.gpu, 1, &result), CUBLAS_STATUS_NOT_INITIALIZED);
	REQUIRE(result == 5, "a wrong call wrote %g", result);
	BLAS(cublasSnrm2(handle, 0, x.gpu, 1, &result));
	REQUIRE(result == 0, "the norm of nothing is %g", result);
	BLAS(cublasIsamax(handle, 0, x.gpu, 1, &index));
	REQUIRE(index == 0, "the largest of nothing is %d", index);
	BLAS(cublasSscal(handle, 0, &two, x.gpu, 1));
	x.check("after calls with nothing to do");
}

int main(void)
{
	BLAS(cublasCreate(&handle));
	wrong_calls();
	for (int step = 1; step < 4; step += 2) {
		sums<float, float>(1000, step);
		sums<double, double>(1000, step);
		sums<cuComplex, float>(1000, step);
		sums<cuDoubleComplex, double>(1000, step);
		changes<float>(300, step, 2);
		changes<double>(300, 2, step);
		changes<cuComplex>(300, step, 1);
		changes<cuDoubleComplex>(300, 1, step);
	}
	rotations();
	BLAS(cublasDestroy(handle));
	printf("vectors of four types\n");
	return 0;
}

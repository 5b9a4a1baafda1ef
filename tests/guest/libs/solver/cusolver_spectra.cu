// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Eigenvalues with cuSOLVER's functions of 64-bit sizes: of matrices that are not symmetric, complex and
 * real, and of many symmetric matrices at once. All are known beforehand.
 */
#include <algorithm>

#include "solver.h"

static const cusolverEigMode_t none = CUSOLVER_EIG_MODE_NOVECTOR, vector = CUSOLVER_EIG_MODE_VECTOR;
static cusolverDnParams_t params;

/* A triangle between two reflections has the triangle's diagonal as its eigenvalues. */
static void complex_values(int64_t n)
{
	std::vector<Z> triangle(n * n), mirror = reflection<Z>(n), want;
	memory<Z> values(n), vectors(n * n);
	memory<int> info(1);
	space s;

	for (int j = 0; j < n; j++) {
		want.push_back(Z(j, j % 3));
		triangle[j + j * n] = want[j];
		for (int i = 0; i < j; i++)
			triangle[i + j * n] = Z(small_number(), small_number()) / 8.0;
	}

	const std::vector<Z> a = times(times(mirror, triangle, n, n, n), mirror, n, n, n);
	memory<Z> ga(a);

	OK(cusolverDnXgeev_bufferSize(handle, params, none, vector, n, CUDA_C_64F, ga, n, CUDA_C_64F, values,
				      CUDA_C_64F, NULL, n, CUDA_C_64F, vectors, n, CUDA_C_64F, &s.on_device,
				      &s.on_host));
	s.get();
	OK(cusolverDnXgeev(handle, params, none, vector, n, CUDA_C_64F, ga, n, CUDA_C_64F, values, CUDA_C_64F, NULL, n,
			   CUDA_C_64F, vectors, n, CUDA_C_64F, s.device, s.on_device, s.host, s.on_host, info));
	check_info(info);

	std::vector<Z> w = values.get(), v = vectors.get();

	near("eigenvectors that are not at right angles", times(a, v, n, n, n),
	     times(v, diagonal<Z>(w, n, n), n, n, n));
	for (int j = 0; j < n; j++) {
		double length = 0;

		for (Z x : part(v, j, n))
			length += std::norm(x);
		REQUIRE(fabs(length - 1) < 1e-9, "eigenvector %d has the length %g", j, sqrt(length));
	}
	std::sort(w.begin(), w.end(), [](Z x, Z y) { return x.real() < y.real(); });
	near("complex eigenvalues", w, want, 1e-7);
}

/* Rotations in planes: pairs of eigenvalues, which differ in the sign of the imaginary part. */
static void pairs(int64_t n)
{
	std::vector<double> turns(n * n), mirror = reflection<double>(n);
	std::vector<Z> want;
	memory<Z> values(n);
	memory<int> info(1);
	space s;

	for (int i = 0; i < n; i += 2) {
		turns[i + i * n] = turns[i + 1 + (i + 1) * n] = i;
		turns[i + 1 + i * n] = i + 1;
		turns[i + (i + 1) * n] = -(i + 1);
		want.push_back(Z(i, -(i + 1)));
		want.push_back(Z(i, i + 1));
	}

	memory<double> a(times(times(mirror, turns, n, n, n), mirror, n, n, n));

	OK(cusolverDnXgeev_bufferSize(handle, params, none, none, n, CUDA_R_64F, a, n, CUDA_C_64F, values, CUDA_R_64F,
				      NULL, n, CUDA_R_64F, NULL, n, CUDA_R_64F, &s.on_device, &s.on_host));
	s.get();
	OK(cusolverDnXgeev(handle, params, none, none, n, CUDA_R_64F, a, n, CUDA_C_64F, values, CUDA_R_64F, NULL, n,
			   CUDA_R_64F, NULL, n, CUDA_R_64F, s.device, s.on_device, s.host, s.on_host, info));
	check_info(info);

	std::vector<Z> w = values.get();

	/* By the real part, whose last digits may differ, and by the imaginary one. */
	std::sort(w.begin(), w.end(),
		  [](Z x, Z y) { return fabs(x.real() - y.real()) > 1 ? x.real() < y.real() : x.imag() < y.imag(); });
	near("pairs of eigenvalues", w, want, 1e-7);
}

template <typename T> static void batch(int64_t n, int count)
{
	const cudaDataType type = number<T>::type, kind = number<real<T>>::type;
	std::vector<T> a;
	std::vector<real<T>> want;
	memory<real<T>> values(n * count);
	memory<int> info(std::vector<int>(count, 77));
	space s;

	for (int i = 0; i < n; i++)
		want.push_back(real<T>(i - 3));
	for (int i = 0; i < count; i++)
		append(a, with_spectrum<T>(want));

	memory<T> ga(a);

	OK(cusolverDnXsyevBatched_bufferSize(handle, params, vector, CUBLAS_FILL_MODE_LOWER, n, type, ga, n, kind,
					     values, type, &s.on_device, &s.on_host, count));
	s.get();
	OK(cusolverDnXsyevBatched(handle, params, vector, CUBLAS_FILL_MODE_LOWER, n, type, ga, n, kind, values, type,
				  s.device, s.on_device, s.host, s.on_host, info, count));
	check_all(info);
	for (int i = 0; i < count; i++) {
		near("the eigenvalues of a batch", part(values.get(), i, n), want);
		check_vectors("the eigenvectors of a batch", part(a, i, n * n), part(ga.get(), i, n * n), want);
	}
}

int main(void)
{
	memory<Z> a(16);
	size_t on_device, on_host;

	begin();
	OK(cusolverDnCreateParams(&params));
	FAILS(cusolverDnXsyevBatched_bufferSize(NULL, params, vector, CUBLAS_FILL_MODE_LOWER, 4, CUDA_C_64F, a, 4,
						CUDA_R_64F, a, CUDA_C_64F, &on_device, &on_host, 2));
	/* No function computes with bytes, and a complex matrix has no real eigenvalues. */
	FAILS(cusolverDnXsyevBatched_bufferSize(handle, params, vector, CUBLAS_FILL_MODE_LOWER, 4, CUDA_R_8I, a, 4,
						CUDA_R_8I, a, CUDA_R_8I, &on_device, &on_host, 2));
	FAILS(cusolverDnXgeev_bufferSize(handle, params, none, none, 4, CUDA_C_64F, a, 4, CUDA_R_64F, a, CUDA_C_64F,
					 NULL, 4, CUDA_C_64F, NULL, 4, CUDA_C_64F, &on_device, &on_host));
	complex_values(16);
	pairs(18);
	batch<float>(10, 12);
	batch<double>(35, 5);
	batch<Z>(7, 20);
	OK(cusolverDnDestroyParams(params));
	OK(cusolverDnDestroy(handle));
	printf("eigenvalues of complex, real and many symmetric matrices, with 64-bit sizes\n");
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Singular values and vectors with cuSOLVER in two ways: by QR, with all vectors, with as many as values,
 * in the place of the matrix, and with none; and by Jacobi's method, with all vectors and with few. The
 * singular values are known beforehand, and values and vectors make the matrix again.
 */
#include "solver.h"

FOR_TYPES(gesvd_size, gesvd_bufferSize, gesvd_bufferSize)
FOR_TYPES(gesvd, gesvd, gesvd)
FOR_TYPES(gesvdj_size, gesvdj_bufferSize, gesvdj_bufferSize)
FOR_TYPES(gesvdj, gesvdj, gesvdj)

static cusolverDnParams_t params;

/* n, n - 1, ..., 1 */
template <typename R> static std::vector<R> falling(int n)
{
	std::vector<R> v;

	while (n)
		v.push_back(R(n--));
	return v;
}

/* u: m times k; vt: k times n. */
template <typename T>
static void check(const char *what, const std::vector<T> &a, int m, int n, int k, const std::vector<T> &u,
		  const std::vector<real<T>> &values, const std::vector<T> &vt)
{
	check_columns(what, u, m, k);
	check_columns(what, adjoint(vt, k, n), n, k);
	near(what, times(times(u, diagonal<T>(values, k, k), m, k, k), vt, m, k, n), a);
}

template <typename T> static void by_qr(int m, int n)
{
	const std::vector<real<T>> want = falling<real<T>>(n);
	const std::vector<T> a = with_values<T>(want, m, n);
	memory<T> ga(a), u(m * m), vt(n * n);
	memory<real<T>> values(n), rest(n);
	memory<int> info(1);
	int size = 0;

	OK(gesvd_size(T(), handle, m, n, &size));

	memory<T> work(size);

	/* 'A': all vectors; 'S': n of them; 'O': those in the place of the matrix; 'N': none. */
	for (char job : {'A', 'S', 'O', 'N'}) {
		ga.set(a);
		values.set(std::vector<real<T>>(n));
		OK(gesvd(T(), handle, job, job == 'O' ? 'S' : job, m, n, ga, m, values, u, m, vt, n, work, size, rest,
			 info));
		check_info(info);
		near("singular values by QR", values.get(), want);
		if (job == 'N')
			continue;

		std::vector<T> left = job == 'O' ? ga.get() : u.get();

		if (job == 'A')
			check_columns("all left vectors", left, m, m);
		left.resize(m * n);
		check("a matrix by QR", a, m, n, n, left, values.get(), vt.get());
	}
}

/* The function with 64-bit sizes. */
template <typename T> static void wide(int64_t m, int64_t n)
{
	const cudaDataType type = number<T>::type, kind = number<real<T>>::type;
	const std::vector<real<T>> want = falling<real<T>>((int)n);
	const std::vector<T> a = with_values<T>(want, m, n);
	memory<T> ga(a), u(m * n), vt(n * n);
	memory<real<T>> values(n);
	memory<int> info(1);
	space s;

	OK(cusolverDnXgesvd_bufferSize(handle, params, 'S', 'S', m, n, type, ga, m, kind, values, type, u, m, type, vt,
				       n, type, &s.on_device, &s.on_host));
	s.get();
	OK(cusolverDnXgesvd(handle, params, 'S', 'S', m, n, type, ga, m, kind, values, type, u, m, type, vt, n, type,
			    s.device, s.on_device, s.host, s.on_host, info));
	check_info(info);
	near("singular values with 64-bit sizes", values.get(), want);
	check("a matrix with 64-bit sizes", a, m, n, n, u.get(), values.get(), vt.get());
}

template <typename T> static void by_jacobi(int m, int n)
{
	const int k = std::min(m, n);
	const std::vector<real<T>> want = falling<real<T>>(k);
	const std::vector<T> a = with_values<T>(want, m, n);
	memory<T> ga(a), u(m * m), v(n * n);
	memory<real<T>> values(k);
	memory<int> info(1);
	gesvdjInfo_t jacobi = for_singular_values<T>();

	for (int economy : {0, 1}) {
		int size = 0;

		ga.set(a);
		OK(gesvdj_size(T(), handle, CUSOLVER_EIG_MODE_VECTOR, economy, m, n, ga, m, values, u, m, v, n, &size,
			       jacobi));

		memory<T> work(size);

		OK(gesvdj(T(), handle, CUSOLVER_EIG_MODE_VECTOR, economy, m, n, ga, m, values, u, m, v, n, work, size,
			  info, jacobi));
		check_info(info);
		near("singular values by Jacobi's method", values.get(), want);

		std::vector<T> left = u.get(), right = v.get();

		if (!economy) {
			check_columns("all left vectors", left, m, m);
			check_columns("all right vectors", right, n, n);
		}
		left.resize(m * k);
		right.resize(n * k);
		check("a matrix by Jacobi's method", a, m, n, k, left, values.get(), adjoint(right, n, k));
	}
	OK(cusolverDnDestroyGesvdjInfo(jacobi));
}

int main(void)
{
	memory<double> a(16);
	memory<int> info(1);
	size_t on_device, on_host;
	int size;

	begin();
	FAILS(cusolverDnDgesvd_bufferSize(handle, -1, -1, &size));
	FAILS(cusolverDnDgesvd(NULL, 'A', 'A', 4, 4, a, 4, a, a, 4, a, 4, a, 16, NULL, info));
	/* No function computes with bytes. */
	OK(cusolverDnCreateParams(&params));
	FAILS(cusolverDnXgesvd_bufferSize(handle, params, 'N', 'N', 4, 4, CUDA_R_8I, a, 4, CUDA_R_8I, a, CUDA_R_8I, a,
					  4, CUDA_R_8I, a, 4, CUDA_R_8I, &on_device, &on_host));
	by_qr<float>(20, 12);
	by_qr<double>(32, 32);
	by_qr<Z>(25, 10);
	wide<double>(30, 12);
	wide<C>(16, 16);
	by_jacobi<double>(30, 14);
	by_jacobi<double>(14, 30);
	by_jacobi<C>(17, 17);
	OK(cusolverDnDestroyParams(params));
	OK(cusolverDnDestroy(handle));
	printf("singular values and vectors by QR and by Jacobi's method\n");
	return 0;
}

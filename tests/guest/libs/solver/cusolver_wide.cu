// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The functions of cuSOLVER whose sizes have 64 bits and whose type is an argument: LU with two
 * algorithms, Cholesky, QR with the factor of its block of reflections, and the inverse in two ways.
 * They work in the host's memory, too, and tell how much they need of both.
 */
#include "solver.h"

static cusolverDnParams_t params;

template <typename T> static void lu(int64_t n)
{
	const cudaDataType type = number<T>::type;
	const std::vector<T> a = regular<T>((int)n), b = numbers<T>(n * 2);
	memory<T> ga(a), gb(b);
	memory<int64_t> pivots(n);
	memory<int> info(1);

	for (cusolverAlgMode_t algorithm : {CUSOLVER_ALG_0, CUSOLVER_ALG_1}) {
		space s;

		OK(cusolverDnSetAdvOptions(params, CUSOLVERDN_GETRF, algorithm));
		ga.set(a);
		OK(cusolverDnXgetrf_bufferSize(handle, params, n, n, type, ga, n, type, &s.on_device, &s.on_host));
		s.get();
		OK(cusolverDnXgetrf(handle, params, n, n, type, ga, n, pivots, type, s.device, s.on_device, s.host,
				    s.on_host, info));
		check_info(info);
		for (cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_C}) {
			gb.set(b);
			OK(cusolverDnXgetrs(handle, params, op, n, 2, type, ga, n, pivots, type, gb, n, info));
			check_info(info);
			near("a solution by LU", times(op == CUBLAS_OP_N ? a : adjoint(a, n, n), gb.get(), n, n, 2), b);
		}
	}

	/* The inverse is the solution for the unit matrix. */
	memory<T> inverse(identity<T>(n));

	OK(cusolverDnXgetrs(handle, params, CUBLAS_OP_N, n, n, type, ga, n, pivots, type, inverse, n, info));
	check_info(info);
	near("the inverse by LU", times(inverse.get(), a, n, n, n), identity<T>(n));
}

/* A = L L*, so its inverse is L's, its adjoint first. */
template <typename T> static void cholesky(int64_t n)
{
	const cudaDataType type = number<T>::type;
	const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;
	const std::vector<T> a = hermitian<T>((int)n, 2 * n), b = numbers<T>(n * 2);
	memory<T> ga(a), gb(b);
	memory<int> info(1);
	space s, t;

	OK(cusolverDnXpotrf_bufferSize(handle, params, lower, n, type, ga, n, type, &s.on_device, &s.on_host));
	s.get();
	OK(cusolverDnXpotrf(handle, params, lower, n, type, ga, n, type, s.device, s.on_device, s.host, s.on_host,
			    info));
	check_info(info);
	OK(cusolverDnXpotrs(handle, params, lower, n, 2, type, ga, n, type, gb, n, info));
	check_info(info);
	near("a solution by Cholesky", times(a, gb.get(), n, n, 2), b);

	OK(cusolverDnXtrtri_bufferSize(handle, lower, CUBLAS_DIAG_NON_UNIT, n, type, ga, n, &t.on_device, &t.on_host));
	t.get();
	OK(cusolverDnXtrtri(handle, lower, CUBLAS_DIAG_NON_UNIT, n, type, ga, n, t.device, t.on_device, t.host,
			    t.on_host, info));
	check_info(info);

	std::vector<T> l = triangle(ga.get(), n, lower);

	near("the inverse by Cholesky", times(a, times(adjoint(l, n, n), l, n, n, n), n, n, n), identity<T>(n));
}

/* Q = I - V F V*, so A is that times R. */
template <typename T> static void qr(int64_t m, int64_t n)
{
	const cudaDataType type = number<T>::type;
	const std::vector<T> a = numbers<T>(m * n);
	memory<T> ga(a), tau(n), factor(std::vector<T>(n * n));
	memory<int> info(1);
	space s, t;

	OK(cusolverDnXgeqrf_bufferSize(handle, params, m, n, type, ga, m, type, tau, type, &s.on_device, &s.on_host));
	s.get();
	OK(cusolverDnXgeqrf(handle, params, m, n, type, ga, m, type, tau, type, s.device, s.on_device, s.host,
			    s.on_host, info));
	check_info(info);

	std::vector<T> v = ga.get(), r(m * n);

	for (int j = 0; j < n; j++)
		for (int i = 0; i <= j; i++) {
			r[i + j * m] = v[i + j * m];
			v[i + j * m] = i == j;
		}

	memory<T> gv(v);

	OK(cusolverDnXlarft_bufferSize(handle, params, CUBLAS_DIRECT_FORWARD, CUBLAS_STOREV_COLUMNWISE, m, n, type, gv,
				       m, type, tau, type, factor, n, type, &t.on_device, &t.on_host));
	t.get();
	OK(cusolverDnXlarft(handle, params, CUBLAS_DIRECT_FORWARD, CUBLAS_STOREV_COLUMNWISE, m, n, type, gv, m, type,
			    tau, type, factor, n, type, t.device, t.on_device, t.host, t.on_host));

	std::vector<T> f = triangle(factor.get(), n, CUBLAS_FILL_MODE_UPPER), q = identity<T>(m);
	std::vector<T> rest = times(times(v, f, m, n, n), adjoint(v, m, n), m, n, m);

	for (int i = 0; i < m * m; i++)
		q[i] -= rest[i];
	check_columns("Q from its block", q, m, m);
	near("a matrix from Q and R", times(q, r, m, m, n), a);
}

template <typename T> static void all(void)
{
	lu<T>(50);
	cholesky<T>(40);
	qr<T>(30, 12);
}

int main(void)
{
	const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;
	memory<double> a(16);
	memory<int64_t> pivots(4);
	memory<int> info(1);
	size_t on_device, on_host;

	begin();
	OK(cusolverDnCreateParams(&params));
	FAILS(cusolverDnSetAdvOptions(params, (cusolverDnFunction_t)77, CUSOLVER_ALG_0));
	FAILS(cusolverDnSetAdvOptions(params, CUSOLVERDN_GETRF, (cusolverAlgMode_t)77));
	FAILS(cusolverDnXgetrf_bufferSize(NULL, params, 4, 4, CUDA_R_64F, a, 4, CUDA_R_64F, &on_device, &on_host));
	FAILS(cusolverDnXgetrs(NULL, params, CUBLAS_OP_N, 4, 1, CUDA_R_64F, a, 4, pivots, CUDA_R_64F, a, 4, info));
	FAILS(cusolverDnXgetrs(handle, params, CUBLAS_OP_N, -4, 1, CUDA_R_64F, a, 4, pivots, CUDA_R_64F, a, 4, info));
	/* No function computes with bytes. */
	FAILS(cusolverDnXgeqrf_bufferSize(handle, params, 4, 4, CUDA_R_8I, a, 4, CUDA_R_8I, a, CUDA_R_8I, &on_device,
					  &on_host));
	FAILS(cusolverDnXtrtri_bufferSize(handle, lower, CUBLAS_DIAG_UNIT, 4, CUDA_R_8I, a, 4, &on_device, &on_host));
	FAILS(cusolverDnXpotrf(handle, params, lower, 4, CUDA_R_8I, a, 4, CUDA_R_8I, a, 64, NULL, 0, info));
	all<float>();
	all<double>();
	all<C>();
	all<Z>();
	OK(cusolverDnDestroyParams(params));
	OK(cusolverDnDestroy(handle));
	printf("LU by two algorithms, Cholesky, QR and inverses with 64-bit sizes in four types\n");
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Singular values of tall matrices with cuSOLVER's newer functions: the largest ones of a batch; all, by a
 * polar decomposition; and the largest ones by chance. They are known beforehand.
 */
#include "solver.h"

FOR_TYPES(gesvda_size, gesvdaStridedBatched_bufferSize, gesvdaStridedBatched_bufferSize)
FOR_TYPES(gesvda, gesvdaStridedBatched, gesvdaStridedBatched)

static const cusolverEigMode_t vectors = CUSOLVER_EIG_MODE_VECTOR;
static const cudaDataType wide = CUDA_R_64F;
static cusolverDnParams_t params;

/* start, start / 2, start / 4, ... */
template <typename R> static std::vector<R> halving(int n, double start)
{
	std::vector<R> v;

	for (; n; n--, start /= 2)
		v.push_back(R(start));
	return v;
}

/*
 * The `rank` largest values of each matrix. The residual that is told is at most the norm of what is left out.
 * NVIDIA's library tells only how exact the vectors are.
 */
template <typename T> static void largest(int m, int n, int rank)
{
	const int count = 3;
	const std::vector<real<T>> want = halving<real<T>>(n, 8);
	std::vector<T> a;
	std::vector<double> residual(count, -1);
	double squares = 0;
	int size = 0;

	for (int i = 0; i < count; i++)
		append(a, with_values<T>(want, m, n));
	for (int i = rank; i < n; i++)
		squares += want[i] * want[i];

	memory<T> ga(a), u(m * rank * count), v(n * rank * count);
	memory<real<T>> values(rank * count);
	memory<int> info(std::vector<int>(count, 77));

	OK(gesvda_size(T(), handle, vectors, rank, m, n, ga, m, m * n, values, rank, u, m, m * rank, v, n, n * rank,
		       &size, count));

	memory<T> work(size);

	OK(gesvda(T(), handle, vectors, rank, m, n, ga, m, m * n, values, rank, u, m, m * rank, v, n, n * rank, work,
		  size, info, residual.data(), count));
	check_all(info);
	for (int i = 0; i < count; i++) {
		std::vector<T> left = part(u.get(), i, m * rank), right = part(v.get(), i, n * rank);
		std::vector<real<T>> got = part(values.get(), i, rank);

		REQUIRE(residual[i] >= 0 && residual[i] < sqrt(squares) + 1e-2, "the residual is %g", residual[i]);
		near("the largest values", got, part(want, 0, rank), 1e-3);
		near("the left vectors", times(adjoint(left, m, rank), left, rank, m, rank), identity<T>(rank), 1e-3);
		/* A times a right vector is the value times the left one. */
		near("the right vectors", times(part(a, i, m * n), right, m, n, rank),
		     times(left, diagonal<T>(got, rank, rank), m, rank, rank), 1e-3);
	}
}

/* a = u * values * adjoint(v), where u is m times k and v is n times k. */
template <typename T>
static void check(const char *what, const std::vector<T> &a, int m, int n, int k, std::vector<T> u,
		  const std::vector<real<T>> &values, std::vector<T> v, double tolerance = precision<T>())
{
	u.resize(m * k);
	v.resize(n * k);
	check_columns(what, u, m, k);
	check_columns(what, v, n, k);
	near(what, times(times(u, diagonal<T>(values, k, k), m, k, k), adjoint(v, n, k), m, k, n), a, tolerance);
}

template <typename T> static void polar(int64_t m, int64_t n)
{
	const cudaDataType type = number<T>::type, kind = number<real<T>>::type;
	const std::vector<real<T>> want = halving<real<T>>((int)n, 8);
	const std::vector<T> a = with_values<T>(want, m, n);
	memory<T> ga(a), u(m * m), v(n * n);
	memory<real<T>> values(n);
	memory<int> info(1);
	double lost = -1;
	space s;

	OK(cusolverDnXgesvdp_bufferSize(handle, params, vectors, 1, m, n, type, ga, m, kind, values, type, u, m, type,
					v, n, type, &s.on_device, &s.on_host));
	s.get();
	OK(cusolverDnXgesvdp(handle, params, vectors, 1, m, n, type, ga, m, kind, values, type, u, m, type, v, n, type,
			     s.device, s.on_device, s.host, s.on_host, info, &lost));
	check_info(info);
	REQUIRE(lost >= 0 && lost < 1e-3, "%g is lost", lost);
	near("singular values by a polar decomposition", values.get(), want);
	check("a matrix by a polar decomposition", a, m, n, n, u.get(), values.get(), v.get());
}

/* Each value is half of the one before, so the largest four are easily found. */
static void by_chance(int64_t m, int64_t n)
{
	const int64_t count = 4, more = 8, rounds = 2;
	const std::vector<double> left = reflection<double>(m), right = reflection<double>(n);
	const std::vector<double> want = halving<double>(count, 16);
	const std::vector<double> whole = diagonal<double>(halving<double>((int)n, 16), m, n);
	const std::vector<double> largest = diagonal<double>(want, m, n);
	memory<double> a(times(times(left, whole, m, m, n), right, m, n, n)), u(m * m), v(n * n), values(n);
	memory<int> info(1);
	space s;

	OK(cusolverDnXgesvdr_bufferSize(handle, params, 'S', 'S', m, n, count, more, rounds, wide, a, m, wide, values,
					wide, u, m, wide, v, n, wide, &s.on_device, &s.on_host));
	s.get();
	OK(cusolverDnXgesvdr(handle, params, 'S', 'S', m, n, count, more, rounds, wide, a, m, wide, values, wide, u, m,
			     wide, v, n, wide, s.device, s.on_device, s.host, s.on_host, info));
	check_info(info);

	std::vector<double> got = part(values.get(), 0, count);

	near("the largest singular values", got, want, 1e-6);
	check("the largest part of a matrix", times(times(left, largest, m, m, n), right, m, n, n), m, n, count,
	      u.get(), got, v.get(), 1e-4);
}

int main(void)
{
	memory<double> a(16);
	size_t on_device, on_host;

	begin();
	OK(cusolverDnCreateParams(&params));
	FAILS(cusolverDnXgesvdp_bufferSize(NULL, params, vectors, 1, 4, 4, wide, a, 4, wide, a, wide, a, 4, wide, a, 4,
					   wide, &on_device, &on_host));
	FAILS(cusolverDnXgesvdr_bufferSize(NULL, params, 'S', 'S', 4, 4, 1, 1, 1, wide, a, 4, wide, a, wide, a, 4, wide,
					   a, 4, wide, &on_device, &on_host));
	/* More values than there are. */
	FAILS(cusolverDnXgesvdr_bufferSize(handle, params, 'S', 'S', 4, 4, 5, 1, 1, wide, a, 4, wide, a, wide, a, 4,
					   wide, a, 4, wide, &on_device, &on_host));
	FAILS(cusolverDnXgesvdr_bufferSize(handle, params, 'X', 'S', 4, 4, 1, 1, 1, wide, a, 4, wide, a, wide, a, 4,
					   wide, a, 4, wide, &on_device, &on_host));
	largest<double>(60, 8, 8);
	largest<double>(60, 8, 3);
	largest<C>(40, 5, 5);
	polar<float>(20, 9);
	polar<double>(30, 12);
	polar<Z>(16, 16);
	by_chance(60, 30);
	OK(cusolverDnDestroyParams(params));
	OK(cusolverDnDestroy(handle));
	printf("singular values of tall matrices in three ways\n");
	return 0;
}

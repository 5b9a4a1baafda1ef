// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Symmetric matrices that are not positive definite, with cuSOLVER: factors with pivots, of one and of
 * two rows, then solutions and the inverse. The complex ones are symmetric, too, not Hermitian. The last
 * example is the least sum of squares under conditions, by Lagrange's multipliers.
 */
#include "solver.h"

FOR_TYPES(sytrf_size, sytrf_bufferSize, sytrf_bufferSize)
FOR_TYPES(sytrf, sytrf, sytrf)
FOR_TYPES(sytri_size, sytri_bufferSize, sytri_bufferSize)
FOR_TYPES(sytri, sytri, sytri)

/* Fills the other triangle. */
template <typename T> static std::vector<T> mirrored(std::vector<T> a, int n, cublasFillMode_t from)
{
	for (int j = 0; j < n; j++)
		for (int i = 0; i < j; i++)
			if (from == CUBLAS_FILL_MODE_LOWER)
				a[i + j * n] = a[j + i * n];
			else
				a[j + i * n] = a[i + j * n];
	return a;
}

/* The factors of a matrix, and where its rows went. */
template <typename T> struct factored {
	int n;
	cublasFillMode_t fill;
	memory<T> a;
	memory<int> pivots, info;

	factored(const std::vector<T> &matrix, int size, cublasFillMode_t triangle)
	    : n(size), fill(triangle), a(matrix), pivots(std::vector<int>(size, 0)), info(1)
	{
		int room = 0;

		OK(sytrf_size(T(), handle, n, a, n, &room));

		memory<T> work(room);

		OK(sytrf(T(), handle, fill, n, a, n, pivots, work, room, info));
		check_info(info);
		/* Rows that go in pairs have negative numbers. */
		for (int p : pivots.get())
			REQUIRE(p && abs(p) <= n, "a row goes to %d", p);
	}
	std::vector<T> solve(const std::vector<T> &b, int columns)
	{
		std::vector<int> narrow = pivots.get();
		memory<int64_t> wide(std::vector<int64_t>(narrow.begin(), narrow.end()));
		memory<T> x(b);
		space s;

		OK(cusolverDnXsytrs_bufferSize(handle, fill, n, columns, number<T>::type, a, n, wide, number<T>::type,
					       x, n, &s.on_device, &s.on_host));
		s.get();
		OK(cusolverDnXsytrs(handle, fill, n, columns, number<T>::type, a, n, wide, number<T>::type, x, n,
				    s.device, s.on_device, s.host, s.on_host, info));
		check_info(info);
		return x.get();
	}
	/*
	 * The inverse in the place of the factors. NVIDIA's documentation lacks this function. That of CUDA 13.0
	 * reports success, but leaves the factors as they are.
	 */
	void invert(const std::vector<T> &inverse)
	{
		const std::vector<T> before = a.get();
		int room = 0;

		OK(sytri_size(T(), handle, fill, n, a, n, pivots, &room));

		memory<T> work(room);

		OK(sytri(T(), handle, fill, n, a, n, pivots, work, room, info));
		check_info(info);
		if (a.get() != before)
			near("an inverse in place", mirrored(a.get(), n, fill), inverse);
	}
};

template <typename T> static void matrix(int n, cublasFillMode_t fill)
{
	const std::vector<T> a = mirrored(regular<T>(n), n, CUBLAS_FILL_MODE_LOWER), b = numbers<T>(n * 3);
	factored<T> f(a, n, fill);

	near("a solution", times(a, f.solve(b, 3), n, n, 3), b);

	const std::vector<T> inverse = f.solve(identity<T>(n), n);

	near("a matrix times its inverse", times(a, inverse, n, n, n), identity<T>(n));
	f.invert(inverse);
}

/*
 * The x nearest to 1, 2, 3, ... whose sum is 0 and in which the first and the last number are the same.
 * The zeros on the diagonal need pivots of two rows.
 */
static void nearest(void)
{
	const int n = 12, all = n + 2;
	std::vector<double> a(all * all), b(all), x;

	for (int i = 0; i < n; i++) {
		a[i + i * all] = 1;
		a[n + i * all] = a[i + n * all] = 1;
		b[i] = i + 1;
	}
	a[n + 1] = a[(n + 1) * all] = 1;
	a[n + 1 + (n - 1) * all] = a[n - 1 + (n + 1) * all] = -1;

	factored<double> f(a, all, CUBLAS_FILL_MODE_LOWER);

	x = f.solve(b, 1);
	/* The mean is taken away; the two ends meet in their middle. */
	for (int i = 1; i < n - 1; i++)
		REQUIRE(fabs(x[i] - (i + 1 - 6.5)) < 1e-9, "number %d is %g", i, x[i]);
	REQUIRE(fabs(x[0]) < 1e-9 && fabs(x[n - 1]) < 1e-9, "the ends are %g and %g", x[0], x[n - 1]);
}

int main(void)
{
	memory<double> a(16);
	memory<int> pivots(4), info(1);
	int size;

	begin();
	FAILS(cusolverDnDsytrf_bufferSize(NULL, 4, a, 4, &size));
	FAILS(cusolverDnDsytrf(NULL, CUBLAS_FILL_MODE_LOWER, 4, a, 4, pivots, a, 16, info));
	FAILS(cusolverDnDsytrf(handle, CUBLAS_FILL_MODE_LOWER, -4, a, 4, pivots, a, 16, info));
	FAILS(cusolverDnDsytrf(handle, CUBLAS_FILL_MODE_LOWER, 4, a, 3, pivots, a, 16, info));
	for (cublasFillMode_t fill : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
		matrix<float>(20, fill);
		matrix<double>(60, fill);
		matrix<C>(9, fill);
		matrix<Z>(31, fill);
	}
	nearest();
	OK(cusolverDnDestroy(handle));
	printf("symmetric matrices of both triangles in four types, and Lagrange's multipliers\n");
	return 0;
}

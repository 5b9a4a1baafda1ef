// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Equations and least squares with cuSOLVER, whose factors are computed in a lower precision (single,
 * half, bfloat16, TF32) and whose solution is then refined: it must be as good as one of the higher
 * precision. The size of the work space is in bytes, and the number of steps comes back to the host.
 */
#include "solver.h"

#define N     64
#define ROWS  100
#define NEVER 12345 /* no number of steps */

/* A function, and the one that tells its work space, for a type. */
#define PAIR(name) cusolverDn##name, cusolverDn##name##_bufferSize, #name

template <typename T>
static void equations(cusolverStatus_t (*solve)(cusolverDnHandle_t, int, int, typename number<T>::gpu *, int, int *,
						typename number<T>::gpu *, int, typename number<T>::gpu *, int, void *,
						size_t, int *, int *),
		      cusolverStatus_t (*room)(cusolverDnHandle_t, int, int, typename number<T>::gpu *, int, int *,
					       typename number<T>::gpu *, int, typename number<T>::gpu *, int, void *,
					       size_t *),
		      const char *what)
{
	std::vector<T> a = regular<T>(N), b = numbers<T>(N);
	memory<T> ga(a), gb(b), gx(N);
	memory<int> pivots(N), info(1);
	int steps = NEVER;
	size_t size = 0;

	FAILS(room(NULL, N, 1, ga, N, pivots, gb, N, gx, N, NULL, &size));
	FAILS(room(handle, N, 1, ga, N - 1, pivots, gb, N, gx, N, NULL, &size));
	OK(room(handle, N, 1, ga, N, pivots, gb, N, gx, N, NULL, &size));

	memory<char> work(size);

	OK(solve(handle, N, 1, ga, N, pivots, gb, N, gx, N, work, size, &steps, info));
	check_info(info);
	REQUIRE(steps != NEVER, "%s: the number of steps is not told", what);
	near(what, times(a, gx.get(), N, N, 1), b);
}

/* What remains is at right angles to each column. */
template <typename T>
static void squares(cusolverStatus_t (*solve)(cusolverDnHandle_t, int, int, int, typename number<T>::gpu *, int,
					      typename number<T>::gpu *, int, typename number<T>::gpu *, int, void *,
					      size_t, int *, int *),
		    cusolverStatus_t (*room)(cusolverDnHandle_t, int, int, int, typename number<T>::gpu *, int,
					     typename number<T>::gpu *, int, typename number<T>::gpu *, int, void *,
					     size_t *),
		    const char *what)
{
	const int n = 20;
	std::vector<T> a = numbers<T>(ROWS * n), b = numbers<T>(ROWS), rest;
	memory<T> ga(a), gb(b), gx(n);
	memory<int> info(1);
	int steps = NEVER;
	size_t size = 0;

	OK(room(handle, ROWS, n, 1, ga, ROWS, gb, ROWS, gx, n, NULL, &size));

	memory<char> work(size);

	OK(solve(handle, ROWS, n, 1, ga, ROWS, gb, ROWS, gx, n, work, size, &steps, info));
	check_info(info);
	REQUIRE(steps != NEVER, "%s: the number of steps is not told", what);
	rest = times(a, gx.get(), ROWS, n, 1);
	for (int i = 0; i < ROWS; i++)
		rest[i] -= b[i];
	/* The products are sums of a hundred terms. */
	near(what, times(adjoint(a, ROWS, n), rest, n, ROWS, 1), std::vector<T>(n), 10 * precision<T>());
}

int main(void)
{
	int major;

	begin();
	CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
	equations<double>(PAIR(DDgesv));
	equations<double>(PAIR(DSgesv));
	equations<double>(PAIR(DHgesv));
	equations<float>(PAIR(SSgesv));
	equations<float>(PAIR(SHgesv));
	equations<Z>(PAIR(ZZgesv));
	equations<Z>(PAIR(ZCgesv));
	equations<C>(PAIR(CKgesv));
	squares<double>(PAIR(DDgels));
	squares<double>(PAIR(DSgels));
	squares<double>(PAIR(DHgels));
	squares<float>(PAIR(SSgels));
	squares<Z>(PAIR(ZCgels));
	squares<C>(PAIR(CCgels));
	/* Older GPUs have no bfloat16 and no TF32. */
	if (major >= 8) {
		equations<double>(PAIR(DBgesv));
		equations<double>(PAIR(DXgesv));
		equations<float>(PAIR(SXgesv));
		squares<float>(PAIR(SBgels));
	}
	OK(cusolverDnDestroy(handle));
	printf("equations and least squares, refined from several precisions\n");
	return 0;
}

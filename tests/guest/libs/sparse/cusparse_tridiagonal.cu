// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Matrices that are only diagonals: many steps of the heat in a rod, several rods at once, one after the other or
 * interleaved; and systems with five diagonals.
 */
#include "sparse.h"

#define M     37 /* equations in a system */
#define COUNT 6	 /* systems */

/* The diagonals of several systems, from the lowest to the highest, system by system. */
template <typename T> struct diagonals {
	int half;
	std::vector<std::vector<T>> d;

	/* The main diagonal is larger than the sum of all others, so no row has to change its place. */
	explicit diagonals(int h) : half(h), d(2 * h + 1)
	{
		for (int k = -half; k <= half; k++) {
			d[k + half] = full<T>(COUNT * M);
			for (int i = 0; i < COUNT * M; i++) {
				int column = i % M + k;

				if (column < 0 || column >= M)
					d[k + half][i] = T(0);
				else if (!k)
					d[k + half][i] = T(11 + i % 3);
			}
		}
	}
	std::vector<T> times(const std::vector<T> &x) const
	{
		std::vector<T> b(x.size());

		for (int k = -half; k <= half; k++)
			for (int i = 0; i < COUNT * M; i++)
				if (d[k + half][i] != T(0))
					b[i] += d[k + half][i] * x[i + k];
		return b;
	}
};

/* The first elements of all systems, then the second ones, and so on; or back. */
template <typename T> static std::vector<T> interleaved(const std::vector<T> &v)
{
	return applied(flipped, v, COUNT, M);
}

template <typename T> static std::vector<T> in_order(const std::vector<T> &v)
{
	return applied(flipped, v, M, COUNT);
}

static void wrong(void)
{
	diagonals<double> a(1);
	array<double> l(a.d[0]), d(a.d[1]), u(a.d[2]), x(a.d[1]);
	size_t size = 0;

	OK(cusparseDgtsv2_bufferSizeExt(handle, M, COUNT, l, d, u, x, M, &size));
	array<char> buffer(size + 1);

	FAILS(cusparseDgtsv2(handle, -M, COUNT, l, d, u, x, M, buffer));
	FAILS(cusparseDgtsv2(handle, M, COUNT, l, d, u, x, M - 1, buffer));
	FAILS(cusparseDgtsvInterleavedBatch(NULL, 0, M, l, d, u, x, COUNT, buffer));
	FAILS(cusparseDgtsvInterleavedBatch(handle, 0, -M, l, d, u, x, COUNT, buffer));
	must_be("after wrong calls", x.host(), a.d[1]);
}

/* One matrix, several right sides, step by step: what comes out of one step goes into the next one. */
static void rod(bool pivot)
{
	diagonals<double> a(1);
	std::vector<double> now = full<double>(COUNT * M), then;
	array<double> l(a.d[0]), d(a.d[1]), u(a.d[2]), x(now);
	size_t size = 0;

	/* All systems have the first one's matrix. */
	for (std::vector<double> &v : a.d)
		for (int i = M; i < COUNT * M; i++)
			v[i] = v[i - M];
	if (pivot)
		OK(cusparseDgtsv2_bufferSizeExt(handle, M, COUNT, l, d, u, x, M, &size));
	else
		OK(cusparseDgtsv2_nopivot_bufferSizeExt(handle, M, COUNT, l, d, u, x, M, &size));
	array<char> buffer(size + 1);

	for (int step = 0; step < 5; step++) {
		if (pivot)
			OK(cusparseDgtsv2(handle, M, COUNT, l, d, u, x, M, buffer));
		else
			OK(cusparseDgtsv2_nopivot(handle, M, COUNT, l, d, u, x, M, buffer));
		then = x.host();
		must_be_near("a step", a.times(then), now);
		now = then;
	}
	printf("a rod with%s pivots: right\n", pivot ? "" : "out");
}

static void rods(void)
{
	typedef std::complex<float> C;
	typedef std::complex<double> Z;
	diagonals<Z> a(1);
	diagonals<C> b(1);
	diagonals<float> five(2);
	std::vector<Z> x = full<Z>(COUNT * M);
	std::vector<C> y = full<C>(COUNT * M);
	std::vector<float> z = full<float>(COUNT * M);
	array<Z> l(a.d[0]), d(a.d[1]), u(a.d[2]), gx(a.times(x));
	size_t size = 0;

	OK(cusparseZgtsv2StridedBatch_bufferSizeExt(handle, M, pairs(l), pairs(d), pairs(u), pairs(gx), COUNT, M,
						    &size));
	array<char> buffer(size + 1);

	OK(cusparseZgtsv2StridedBatch(handle, M, pairs(l), pairs(d), pairs(u), pairs(gx), COUNT, M, buffer));
	near("rods one after the other", gx.host(), x);
	/* The functions use the diagonals up. */
	for (int algorithm = 0; algorithm < 3; algorithm++) {
		array<C> bl(interleaved(b.d[0])), bd(interleaved(b.d[1])), bu(interleaved(b.d[2])),
			gy(interleaved(b.times(y)));

		OK(cusparseCgtsvInterleavedBatch_bufferSizeExt(handle, algorithm, M, pairs(bl), pairs(bd), pairs(bu),
							       pairs(gy), COUNT, &size));
		array<char> more(size + 1);

		OK(cusparseCgtsvInterleavedBatch(handle, algorithm, M, pairs(bl), pairs(bd), pairs(bu), pairs(gy),
						 COUNT, more));
		must_be_near("rods interleaved", in_order(gy.host()), y, 1e-4);
	}
	printf("rods interleaved, by three algorithms: right\n");
	array<float> f0(interleaved(five.d[0])), f1(interleaved(five.d[1])), f2(interleaved(five.d[2])),
		f3(interleaved(five.d[3])), f4(interleaved(five.d[4])), gz(interleaved(five.times(z)));

	OK(cusparseSgpsvInterleavedBatch_bufferSizeExt(handle, 0, M, f0, f1, f2, f3, f4, gz, COUNT, &size));
	array<char> more(size + 1);

	OK(cusparseSgpsvInterleavedBatch(handle, 0, M, f0, f1, f2, f3, f4, gz, COUNT, more));
	must_be_near("five diagonals", in_order(gz.host()), z, 1e-4);
	printf("five diagonals: right\n");
}

int main(void)
{
	begin();
	wrong();
	rod(true);
	rod(false);
	rods();
	OK(cusparseDestroy(handle));
	return 0;
}

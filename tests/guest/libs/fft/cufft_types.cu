// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every type of transform twice: by the function of its own, and by cufftXtExec with the types of its
 * elements; in place and to another place, for even and odd lengths, in one and two dimensions. Single
 * precision stands beside double: both are right, and double is more exact. Wrong types come first.
 */
#include "fft.h"

static void wrong_types(void)
{
	const cudaDataType mixed[][3] = {{CUDA_R_32F, CUDA_C_64F, CUDA_C_32F},
					 {CUDA_R_64F, CUDA_C_32F, CUDA_C_64F},
					 {CUDA_R_32F, CUDA_R_32F, CUDA_C_32F},
					 {CUDA_C_64F, CUDA_C_64F, CUDA_C_32F}};
	long long n = 16;

	for (const cudaDataType *t : mixed) {
		cufftHandle plan;
		size_t size;

		OK(cufftCreate(&plan));
		FAILS(cufftXtMakePlanMany(plan, 1, &n, NULL, 1, n, t[0], NULL, 1, n, t[1], 1, &size, t[2]));
		OK(cufftDestroy(plan));
	}
}

/* How far the numbers are off, as a part of the largest one. */
template <typename T> static double error(const std::vector<T> &got, const std::vector<Z> &want)
{
	double most = 0, off = 0;

	for (size_t i = 0; i < want.size(); i++) {
		most = std::max(most, std::abs(want[i]));
		off = std::max(off, std::abs(Z(got[i]) - want[i]));
	}
	return off / most;
}

/* What works on floats or on doubles. Planes of h x w, or rows of w if h is 0. */
template <typename R> struct precision {
	typedef std::complex<R> T;
	static const bool single = sizeof(R) == 4;
	const int h, w, rows, half;
	const cudaDataType real, complex;

	precision(int height, int width)
		: h(height), w(width), rows(h ? h : 1), half(w / 2 + 1),
		  real(single ? CUDA_R_32F : CUDA_R_64F), complex(single ? CUDA_C_32F : CUDA_C_64F)
	{
	}
	cufftHandle make(cufftType type)
	{
		int n[] = {h, w};
		cufftHandle plan;

		OK(cufftPlanMany(&plan, h ? 2 : 1, h ? n : n + 1, NULL, 1, 0, NULL, 1, 0, type, 1));
		return plan;
	}
	cufftHandle make(cudaDataType in, cudaDataType out)
	{
		long long n[] = {h, w};
		cufftHandle plan;
		size_t size;

		OK(cufftCreate(&plan));
		OK(cufftXtMakePlanMany(plan, h ? 2 : 1, h ? n : n + 1, NULL, 1, 0, in, NULL, 1, 0, out, 1, &size,
				       complex));
		return plan;
	}
	/* There and back. How far the way there was off. */
	double complex_numbers(const std::vector<Z> &numbers)
	{
		const double scale = 1.0 / numbers.size();
		std::vector<T> x(numbers.begin(), numbers.end());
		std::vector<Z> y = transform(x, {rows, w}, -1);
		T *a = up(x), *b = up(x);
		cufftHandle plan = make(single ? CUFFT_C2C : CUFFT_Z2Z), xt = make(complex, complex);
		double off;

		OK(execute(plan, a, b, CUFFT_FORWARD));
		REQUIRE(down(a, x.size()) == x, "the input has changed");
		OK(cufftXtExec(xt, a, a, CUFFT_FORWARD));
		compare("complex, in place", down(a, x.size()), y);
		compare("complex", down(b, x.size()), y);
		off = error(down(b, x.size()), y);
		OK(cufftXtExec(xt, b, a, CUFFT_INVERSE));
		OK(execute(plan, b, b, CUFFT_INVERSE));
		compare("complex, back", down(a, x.size()), x, scale);
		compare("complex, back in place", down(b, x.size()), x, scale);
		OK(cufftDestroy(plan));
		OK(cufftDestroy(xt));
		CHECK(cudaFree(a));
		CHECK(cudaFree(b));
		return off;
	}
	/* In place, each row of w numbers has room for `half` complex ones. */
	void real_numbers(const std::vector<R> &x)
	{
		const double scale = 1.0 / x.size();
		std::vector<Z> whole = transform(x, {rows, w}, -1), y;
		std::vector<R> lay(rows * 2 * half);

		for (int i = 0; i < rows; i++) {
			std::copy(&x[i * w], &x[i * w] + w, &lay[i * 2 * half]);
			y.insert(y.end(), whole.begin() + i * w, whole.begin() + i * w + half);
		}

		R *a = up(x), *padded = up(lay);
		T *b = up(std::vector<T>(y.size()));
		cufftHandle there = make(single ? CUFFT_R2C : CUFFT_D2Z), there_xt = make(real, complex);
		cufftHandle back = make(single ? CUFFT_C2R : CUFFT_Z2D), back_xt = make(complex, real);

		OK(execute(there, a, b));
		REQUIRE(down(a, x.size()) == x, "the input has changed");
		compare("real", down(b, y.size()), y);
		/* By the documentation, the direction does not count. NVIDIA's library wants the right one. */
		OK(cufftXtExec(there_xt, padded, padded, CUFFT_FORWARD));
		compare("real, in place", down((T *)padded, y.size()), y);
		OK(cufftXtExec(back_xt, b, a, CUFFT_INVERSE));
		compare("real, back", down(a, x.size()), x, scale);
		OK(execute(back, (T *)padded, padded));
		lay = down(padded, lay.size());
		for (int i = 0; i < rows; i++)
			compare("real, back in place", &lay[i * 2 * half], &x[i * w], w, scale);
		for (cufftHandle plan : {there, there_xt, back, back_xt})
			OK(cufftDestroy(plan));
		for (void *p : {(void *)a, (void *)b, (void *)padded})
			CHECK(cudaFree(p));
	}
};

int main(void)
{
	begin();
	wrong_types();
	for (std::vector<int> shape : {std::vector<int>{0, 16}, {0, 35}, {0, 210}, {6, 10}, {9, 7}, {16, 16}}) {
		const size_t n = (size_t)(shape[0] ? shape[0] : 1) * shape[1];
		precision<float> single(shape[0], shape[1]);
		precision<double> twice(shape[0], shape[1]);
		std::vector<Z> x = numbers<Z>(n);
		double rough = single.complex_numbers(x), fine = twice.complex_numbers(x);

		REQUIRE(fine < rough / 1e6, "single precision is off by %g, double by %g", rough, fine);
		single.real_numbers(numbers<float>(n));
		twice.real_numbers(numbers<double>(n));
		printf("%d x %d: six types, in place and not\n", single.rows, single.w);
	}
	return 0;
}

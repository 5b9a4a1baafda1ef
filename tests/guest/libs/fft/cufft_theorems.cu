// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What holds for every transform, checked without computing one on the CPU, in float and in double and
 * for several lengths: a sum of signals, Parseval's equation, shifts in time and in frequency, symmetry
 * of real signals, four transforms in a row, impulses, repeated signals. Wrong calls come first.
 */
#include "fft.h"

static void wrong_calls(void)
{
	cufftHandle plan;

	FAILS(cufftPlan1d(&plan, -1, CUFFT_Z2Z, 1));
	FAILS(cufftPlan1d(&plan, 8, (cufftType)1, 1));
	FAILS(execute(CUFFT_PLAN_NULL, (Z *)NULL, (Z *)NULL, CUFFT_INVERSE));
}

/* All transforms of one length. */
template <typename T> struct theorems {
	typedef std::vector<T> row;
	const int n;
	const double root; /* sums of n numbers become about as large as this */
	cufftHandle plan;
	T *gpu;

	theorems(int length, cufftType type) : n(length), root(sqrt(length))
	{
		OK(cufftPlan1d(&plan, n, type, 1));
		CHECK(cudaMalloc(&gpu, n * sizeof(T)));
	}
	~theorems()
	{
		OK(cufftDestroy(plan));
		CHECK(cudaFree(gpu));
	}
	row there(const row &x, int direction = CUFFT_FORWARD)
	{
		CHECK(cudaMemcpy(gpu, x.data(), n * sizeof(T), cudaMemcpyHostToDevice));
		OK(execute(plan, gpu, gpu, direction));
		return down(gpu, n);
	}
	template <typename F> row each(F f)
	{
		row y(n);

		for (int i = 0; i < n; i++)
			y[i] = T(f(i));
		return y;
	}
	Z turn(int times)
	{
		return std::polar(1.0, 2 * M_PI * (times % n) / n);
	}

	void sum(const row &x, const row &fx)
	{
		row y = numbers<T>(n), fy = there(y);
		const Z a(0.5, -0.25), b(-2, 1);

		compare("a sum", there(each([&](int i) { return a * Z(x[i]) + b * Z(y[i]); })),
			each([&](int k) { return a * Z(fx[k]) + b * Z(fy[k]); }));
	}
	void parseval(const row &x, const row &fx)
	{
		double before = 0, after = 0;

		for (int i = 0; i < n; i++) {
			before += std::norm(Z(x[i]));
			after += std::norm(Z(fx[i]));
		}
		after /= n;
		REQUIRE(fabs(after - before) <= tolerance<T>() * before, "the energy is %g, not %g", after, before);
	}
	void shifts(const row &x, const row &fx)
	{
		const int by = n / 3 + 1;

		compare("a shift in time", there(each([&](int i) { return x[(i + by) % n]; })),
			each([&](int k) { return Z(fx[k]) * turn(k * by); }));
		compare("a shift in frequency", there(each([&](int i) { return Z(x[i]) * turn(i * by); })),
			each([&](int k) { return fx[(k + n - by % n) % n]; }));
	}
	void symmetry(const row &x, const row &fx)
	{
		row fr = there(each([&](int i) { return x[i].real(); }));
		row even = there(each([&](int i) { return x[i].real() + x[(n - i) % n].real(); }));

		compare("of conjugate numbers", there(each([&](int i) { return std::conj(x[i]); })),
			each([&](int k) { return std::conj(fx[(n - k) % n]); }));
		compare("of real numbers", fr, each([&](int k) { return std::conj(fr[(n - k) % n]); }));
		compare("of even numbers", even, each([&](int k) { return 2 * fr[k].real(); }));
	}
	/* Each transform divides by the root of n, so the numbers stay small. */
	void four(const row &x, const row &fx)
	{
		row y = there(each([&](int k) { return Z(fx[k]) / root; }));

		compare("twice is backwards", y, each([&](int i) { return root * Z(x[(n - i) % n]); }));
		y = there(each([&](int i) { return Z(y[i]) / root; }));
		y = there(each([&](int k) { return Z(y[k]) / root; }));
		compare("four times", y, each([&](int i) { return root * Z(x[i]); }));
		compare("there and back", there(fx, CUFFT_INVERSE), each([&](int i) { return (double)n * Z(x[i]); }));
	}
	void impulses(void)
	{
		const int at = n / 2;

		compare("an impulse", there(each([&](int i) { return i == at ? 1.0 : 0.0; })),
			each([&](int k) { return std::conj(turn(k * at)); }));
		compare("a constant", there(each([&](int) { return Z(1, -1); })),
			each([&](int k) { return k ? Z(0) : Z(n, -n); }));
	}
	/* A signal that repeats three times has every third wave only. */
	void repeated(const row &x)
	{
		row y = there(each([&](int i) { return x[i % (n / 3)]; }));

		for (int k = 0; k < n; k++)
			REQUIRE(k % 3 == 0 || std::abs(y[k]) < tolerance<T>() * root, "%d: a wave %d of size %g", n, k,
				std::abs(Z(y[k])));
	}
	void all(void)
	{
		row x = numbers<T>(n), fx = there(x);

		sum(x, fx);
		parseval(x, fx);
		shifts(x, fx);
		symmetry(x, fx);
		four(x, fx);
		impulses();
		if (n % 3 == 0)
			repeated(x);
	}
};

int main(void)
{
	begin();
	wrong_calls();
	for (int n : {1, 3, 16, 45, 101, 360, 512}) {
		theorems<C>(n, CUFFT_C2C).all();
		theorems<Z>(n, CUFFT_Z2Z).all();
		printf("length %d: all theorems hold\n", n);
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Plans: calls with none, with one that is not made, made twice or ended; many at once, of all types
 * and many lengths, ended in another order, with new ones between them; several threads that make, use
 * and end their own; the version.
 */
#include <thread>

#include "fft.h"

#define MANY    60
#define LONGEST 120
#define THREADS 4

static const cufftType types[] = {CUFFT_C2C, CUFFT_R2C, CUFFT_C2R, CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D};

static void wrong_plans(void)
{
	std::vector<C> x = numbers<C>(16);
	cufftHandle plan, other;
	C *gpu = up(x);
	size_t size;

	FAILS(cufftDestroy(0x7fffffff));
	for (cufftHandle none : {CUFFT_PLAN_NULL, 0x7fffffff}) {
		FAILS(execute(none, gpu, gpu, CUFFT_FORWARD));
		FAILS(cufftMakePlan1d(none, 16, CUFFT_C2C, 1, &size));
		FAILS(cufftXtExec(none, gpu, gpu, CUFFT_FORWARD));
	}
	OK(cufftCreate(&plan));
	/* It is not made yet. */
	FAILS(execute(plan, gpu, gpu, CUFFT_FORWARD));
	OK(cufftMakePlan1d(plan, 16, CUFFT_C2C, 1, &size));
	FAILS(cufftMakePlan1d(plan, 16, CUFFT_C2C, 1, &size));
	FAILS(cufftMakePlan2d(plan, 4, 4, CUFFT_C2C, &size));
	REQUIRE(down(gpu, 16) == x, "a wrong plan has transformed something");
	OK(execute(plan, gpu, gpu, CUFFT_FORWARD));
	compare("the plan that was made once", down(gpu, 16), transform(x.data(), 16, -1));
	/* The same call with another plan, which is not made. */
	OK(cufftCreate(&other));
	FAILS(execute(other, gpu, gpu, CUFFT_FORWARD));
	OK(cufftDestroy(other));
	OK(cufftDestroy(plan));
	FAILS(execute(plan, gpu, gpu, CUFFT_FORWARD));
	CHECK(cudaFree(gpu));
}

struct one {
	cufftHandle plan;
	cufftType type;
	int n;

	one(int i) : type(types[i % 6]), n(2 + 11 * i % (LONGEST - 1))
	{
		OK(cufftPlan1d(&plan, n, type, 1));
	}
	template <typename R> void check(bool real_in, bool real_out, R *real, std::complex<R> *complex) const
	{
		std::vector<std::complex<R>> y = numbers<std::complex<R>>(n);
		std::vector<R> x = numbers<R>(n);
		std::vector<Z> spectrum = transform(x.data(), n, -1);
		const int half = n / 2 + 1;

		if (real_out)
			y.assign(spectrum.begin(), spectrum.end());
		CHECK(cudaMemcpy(real, x.data(), n * sizeof(R), cudaMemcpyHostToDevice));
		CHECK(cudaMemcpy(complex, y.data(), n * sizeof(y[0]), cudaMemcpyHostToDevice));
		if (real_in) {
			OK(execute(plan, real, complex));
			compare("from real numbers", down(complex, half).data(), spectrum.data(), half);
		} else if (real_out) {
			CHECK(cudaMemset(real, 0xff, n * sizeof(R)));
			OK(execute(plan, complex, real));
			compare("to real numbers", down(real, n), x, 1.0 / n);
		} else {
			OK(execute(plan, complex, complex, CUFFT_INVERSE));
			compare("complex numbers", down(complex, n), transform(y.data(), n, 1));
		}
	}
	void check(double *real, Z *complex) const
	{
		if (type == CUFFT_C2C || type == CUFFT_R2C || type == CUFFT_C2R)
			check(type == CUFFT_R2C, type == CUFFT_C2R, (float *)real, (C *)complex);
		else
			check(type == CUFFT_D2Z, type == CUFFT_Z2D, real, complex);
	}
};

static void many_at_once(void)
{
	double *real = up(std::vector<double>(LONGEST));
	Z *complex = up(std::vector<Z>(LONGEST));
	std::vector<one> all;

	for (int i = 0; i < MANY; i++)
		all.push_back(one(i));
	for (const one &o : all)
		o.check(real, complex);
	/* Every other one is replaced by one of another type. */
	for (int i = 0; i < MANY; i += 2)
		OK(cufftDestroy(all[i].plan));
	for (int i = 0; i < MANY; i += 2)
		all[i] = one(i + 3);
	for (const one &o : all)
		o.check(real, complex);
	for (int i = MANY; i--;)
		OK(cufftDestroy(all[i].plan));
	CHECK(cudaFree(real));
	CHECK(cudaFree(complex));
}

static void in_threads(void)
{
	std::vector<std::thread> threads;

	for (int t = 0; t < THREADS; t++)
		threads.emplace_back([t] {
			for (int i = 0; i < 12; i++) {
				const int n = 16 + 5 * t + i;
				std::vector<Z> x(n);
				cufftHandle plan;
				Z *gpu;

				for (int j = 0; j < n; j++)
					x[j] = Z((j * (t + 1) + i) % 9 / 8.0, j % 5 / 4.0);
				gpu = up(x);
				OK(cufftPlan1d(&plan, n, CUFFT_Z2Z, 1));
				OK(execute(plan, gpu, gpu, CUFFT_FORWARD));
				compare("in a thread", down(gpu, n), transform(x.data(), n, -1));
				OK(cufftDestroy(plan));
				CHECK(cudaFree(gpu));
			}
		});
	for (std::thread &t : threads)
		t.join();
}

int main(void)
{
	int version, major, minor, patch;

	begin();
	wrong_plans();
	many_at_once();
	in_threads();
	OK(cufftGetVersion(&version));
	OK(cufftGetProperty(MAJOR_VERSION, &major));
	OK(cufftGetProperty(MINOR_VERSION, &minor));
	OK(cufftGetProperty(PATCH_LEVEL, &patch));
	REQUIRE(version == 1000 * major + 100 * minor + patch, "%d is not %d.%d.%d", version, major, minor, patch);
	CHECK(cudaDeviceSynchronize());
	printf("%d plans at once, %d threads\n", MANY, THREADS);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A complex number class with operators, in float and double: roots of a polynomial by Newton's
 * method, where each thread starts from its own point. Every thread must end at a root. It must
 * be the root that the CPU reaches from the same start, except where the paths are chaotic.
 */
#include <math.h>

#include "check.h"

template <typename T> struct complex {
	T re, im;

	__host__ __device__ complex(T r = 0, T i = 0) : re(r), im(i)
	{
	}
	__host__ __device__ complex operator+(complex o) const
	{
		return complex(re + o.re, im + o.im);
	}
	__host__ __device__ complex operator-(complex o) const
	{
		return complex(re - o.re, im - o.im);
	}
	__host__ __device__ complex operator*(complex o) const
	{
		return complex(re * o.re - im * o.im, re * o.im + im * o.re);
	}
	__host__ __device__ complex operator/(complex o) const
	{
		T d = o.re * o.re + o.im * o.im;

		return complex((re * o.re + im * o.im) / d, (im * o.re - re * o.im) / d);
	}
	__host__ __device__ T norm(void) const
	{
		return re * re + im * im;
	}
};

/* z^3 - 1 from every point of a grid. */
template <typename T> __host__ __device__ complex<T> newton(int i)
{
	complex<T> z((T)(i % 32 - 15.5) / 8, (T)(i / 32 - 15.5) / 8);

	for (int step = 0; step < 40; step++) {
		complex<T> square = z * z, f = square * z - complex<T>(1);

		if (f.norm() < (T)1e-12)
			break;
		z = z - f / (complex<T>(3) * square);
	}
	return z;
}

template <typename T> __global__ void roots(complex<T> *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = newton<T>(i);
}

template <typename T> static int test(double tolerance)
{
	static complex<T> got[1024];
	complex<T> *dev;
	int same = 0;

	CHECK(cudaMalloc(&dev, sizeof(got)));
	roots<<<8, 128>>>(dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 1024; i++) {
		complex<T> z = newton<T>(i);
		complex<double> r(got[i].re, got[i].im), off = r * r * r - complex<double>(1);

		REQUIRE(off.norm() < tolerance, "%zu bytes, start %d: %g%+gi is no root", sizeof(T),
			i, (double)got[i].re, (double)got[i].im);
		same += (z - got[i]).norm() < (T)tolerance;
	}
	REQUIRE(same > 1024 * 95 / 100, "%zu bytes: only %d starts agree", sizeof(T), same);
	CHECK(cudaFree(dev));
	return same;
}

int main(void)
{
	int single = test<float>(1e-8), wide = test<double>(1e-10);

	return verified("1024 starts: %d (float) and %d (double) at the CPU's root", single, wide);
}

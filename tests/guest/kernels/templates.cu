// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Generic code: kernels instantiated for many types and sizes, functors and lambdas of the
 * device, variadic templates, recursion at compile time, constexpr tables.
 */
#include "check.h"

#define N 300

template <int K> struct power {
	template <typename T> __host__ __device__ static T of(T x)
	{
		return (T)(power<K - 1>::of(x) * x);
	}
};

template <> struct power<0> {
	template <typename T> __host__ __device__ static T of(T)
	{
		return 1;
	}
};

template <typename T> __host__ __device__ T sum_of(T x)
{
	return x;
}

template <typename T, typename... Rest> __host__ __device__ T sum_of(T x, Rest... rest)
{
	return (T)(x + 3 * sum_of((T)rest...));
}

__host__ __device__ constexpr int squares(int n)
{
	return n == 0 ? 0 : n * n + squares(n - 1);
}

template <typename T> struct axpy {
	T a;

	__host__ __device__ T operator()(T x, T y) const
	{
		return (T)(a * x + y);
	}
};

template <typename T> struct cubes {
	__host__ __device__ T operator()(T x, T y) const
	{
		return (T)(power<3>::of(x) - sum_of(y, x, (T)2) + (T)squares(6));
	}
};

template <typename T, typename F> __global__ void zip(const T *x, const T *y, T *out, int n, F f)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	auto guarded = [&](int k) { return k < n ? f(x[k], y[k]) : (T)-1; };
	T value = guarded(i);

	if (i < n)
		out[i] = value;
}

template <typename T, typename F> static void test(F f, const char *name)
{
	T x[N], y[N], out[N], *dev;

	for (int i = 0; i < N; i++) {
		x[i] = (T)(scramble(i, 1) % 20);
		y[i] = (T)(scramble(i, 2) % 100);
	}
	CHECK(cudaMalloc(&dev, 3 * sizeof(x)));
	CHECK(cudaMemcpy(dev, x, sizeof(x), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev + N, y, sizeof(y), cudaMemcpyHostToDevice));
	zip<<<(N + 63) / 64, 64>>>(dev, dev + N, dev + 2 * N, N, f);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev + 2 * N, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		REQUIRE(out[i] == f(x[i], y[i]), "%s, element %d: %g, expected %g", name, i,
			(double)out[i], (double)f(x[i], y[i]));
	CHECK(cudaFree(dev));
}

template <typename T> static void test_type(const char *name)
{
	test<T>(axpy<T>{(T)3}, name);
	test<T>(cubes<T>(), name);
}

int main(void)
{
	test_type<signed char>("int8");
	test_type<unsigned short>("uint16");
	test_type<int>("int32");
	test_type<unsigned long long>("uint64");
	test_type<float>("float");
	test_type<double>("double");
	return verified("two functors for six types");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Division and remainder of integers from 8 to 64 bits, signed and unsigned, at the edges of
 * their ranges, by variables and by constants. Division truncates. The remainder has the sign of
 * the dividend.
 */
#include "check.h"

#define EDGES 17

template <typename T> struct results {
	T quotient, remainder, by_7, by_1000, by_16, mod_10;
};

template <typename T> __host__ __device__ T edge(int i)
{
	const T most = (T)(sizeof(T) == 8 ? ~0ull >> ((T)-1 < (T)0)
					  : (1ull << (8 * sizeof(T) - ((T)-1 < (T)0))) - 1);
	const T least = (T)((T)-1 < (T)0 ? -most - 1 : 0);

	switch (i) {
	case 0:
		return most;
	case 1:
		return least;
	case 2:
		return (T)(most - 1);
	case 3:
		return (T)(least + 1);
	case 4:
		return (T)(most / 2);
	case 5:
		return (T)(most / 2 + 1);
	case 6:
		return (T)-1;
	case 7:
		return (T)(most / 3);
	default:
		return (T)((i - 8) * (i & 1 ? 1 : -1));
	}
}

template <typename T> __host__ __device__ results<T> divide(T a, T b)
{
	results<T> r;

	r.quotient = (T)(a / b);
	r.remainder = (T)(a % b);
	r.by_7 = (T)(a / 7);
	r.by_1000 = (T)(a / (T)(sizeof(T) == 1 ? 100 : 1000));
	r.by_16 = (T)(a / 16);
	r.mod_10 = (T)(a % 10);
	return r;
}

/* False for the one signed quotient that does not fit, and for a division by zero. */
template <typename T> __host__ __device__ bool defined(T a, T b)
{
	return b != 0 && !((T)-1 < (T)0 && b == (T)-1 && a == edge<T>(1));
}

template <typename T> __global__ void divide_all(results<T> *out)
{
	int i = threadIdx.y * EDGES + threadIdx.x;
	T a = edge<T>(threadIdx.y), b = edge<T>(threadIdx.x);

	if (defined(a, b))
		out[i] = divide(a, b);
}

template <typename T> static int test(const char *name)
{
	static results<T> out[EDGES * EDGES];
	results<T> *dev;
	int count = 0;

	CHECK(cudaMalloc(&dev, sizeof(out)));
	divide_all<T><<<1, dim3(EDGES, EDGES)>>>(dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < EDGES * EDGES; i++) {
		T a = edge<T>(i / EDGES), b = edge<T>(i % EDGES);
		results<T> want, got = out[i];

		if (!defined(a, b))
			continue;
		want = divide(a, b);
		REQUIRE(got.quotient == want.quotient && got.remainder == want.remainder &&
				got.by_7 == want.by_7 && got.by_1000 == want.by_1000 &&
				got.by_16 == want.by_16 && got.mod_10 == want.mod_10,
			"%s: %lld by %lld: %lld rest %lld", name, (long long)a, (long long)b,
			(long long)got.quotient, (long long)got.remainder);
		count++;
	}
	CHECK(cudaFree(dev));
	return count;
}

int main(void)
{
	int count = test<signed char>("int8") + test<unsigned char>("uint8") +
		    test<short>("int16") + test<unsigned short>("uint16") + test<int>("int32") +
		    test<unsigned int>("uint32") + test<long long>("int64") +
		    test<unsigned long long>("uint64");

	return verified("%d divisions of eight types", count);
}

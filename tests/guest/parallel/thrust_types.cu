// SPDX-License-Identifier: GPL-2.0-or-later
/* Thrust and CUB over more types: small and long integers, half precision, complex numbers,
 * structures. */
#include <cuda_fp16.h>
#include <thrust/complex.h>
#include <thrust/transform_reduce.h>

#include "thrust_cub.h"

/* A structure as a value, and compared by an operator of its own. */
struct particle {
	float weight;
	int id;
	double at[2];
};

struct heavier {
	__host__ __device__ bool operator()(const particle &a, const particle &b) const
	{
		return a.weight > b.weight;
	}
};

static std::vector<particle> particles(size_t n)
{
	std::vector<float> weight = numbers<float>(n, 17);
	std::vector<particle> v(n);

	for (size_t i = 0; i < n; i++)
		v[i] = {weight[i], (int)i, {(double)i, -(double)i}};
	return v;
}

static void same_particles(const char *what, const thrust::device_vector<particle> &got,
			   const std::vector<particle> &want)
{
	std::vector<particle> host(got.size());

	thrust::copy(got.begin(), got.end(), host.begin());
	for (size_t i = 0; i < want.size(); i++)
		REQUIRE(host[i].id == want[i].id && host[i].weight == want[i].weight &&
				host[i].at[1] == want[i].at[1],
			"%s: element %zu of %zu: %d instead of %d", what, i, want.size(),
			host[i].id, want[i].id);
}

static void structures()
{
	for (size_t n : sizes) {
		std::vector<particle> h = particles(n), want = h;
		std::vector<int64_t> key = numbers<int64_t>(n, 19), sorted = key;
		thrust::device_vector<particle> d(h), by_key(h);
		thrust::device_vector<int64_t> k(key);
		std::vector<size_t> order(n);

		std::stable_sort(want.begin(), want.end(), heavier());
		thrust::stable_sort(d.begin(), d.end(), heavier());
		same_particles("sort of structures", d, want);
		std::iota(order.begin(), order.end(), 0);
		std::stable_sort(order.begin(), order.end(),
				 [&](size_t a, size_t b) { return key[a] < key[b]; });
		for (size_t i = 0; i < n; i++) {
			want[i] = h[order[i]];
			sorted[i] = key[order[i]];
		}
		thrust::stable_sort_by_key(k.begin(), k.end(), by_key.begin());
		same("long keys", k, sorted);
		same_particles("structures by key", by_key, want);
	}
}

typedef thrust::complex<float> complex;

struct squared {
	__host__ __device__ complex operator()(const complex &z) const
	{
		return z * z;
	}
};

static void complex_numbers()
{
	for (size_t n : sizes) {
		std::vector<float> re = numbers<float>(n, 23), im = numbers<float>(n, 29);
		std::vector<complex> h(n);
		complex want(0), got;

		/* Small enough that each sum is exact. */
		for (size_t i = 0; i < n; i++) {
			h[i] = complex((float)((int)re[i] % 8), (float)((int)im[i] % 8));
			want += h[i] * h[i];
		}
		thrust::device_vector<complex> d(h);
		got = thrust::transform_reduce(d.begin(), d.end(), squared(), complex(0),
					       thrust::plus<complex>());
		REQUIRE(got == want, "complex: %g %g instead of %g %g", got.real(), got.imag(),
			want.real(), want.imag());
	}
}

static void halves()
{
	for (size_t n : sizes) {
		std::vector<float> want = numbers<float>(n, 31);
		std::vector<__half> h(n), back(n);

		for (size_t i = 0; i < n; i++)
			h[i] = __float2half(want[i]);
		thrust::device_vector<__half> d(h), sorted(n), most(1);
		cub_call([&](void *t, size_t &bytes) {
			return cub::DeviceRadixSort::SortKeys(t, bytes, raw(d), raw(sorted),
							      (int)n);
		});
		std::sort(want.begin(), want.end());
		thrust::copy(sorted.begin(), sorted.end(), back.begin());
		for (size_t i = 0; i < n; i++)
			REQUIRE(__half2float(back[i]) == want[i], "half: element %zu of %zu", i, n);
		cub_call([&](void *t, size_t &bytes) {
			return cub::DeviceReduce::Max(t, bytes, raw(d), raw(most), (int)n);
		});
		back[0] = most[0];
		REQUIRE(__half2float(back[0]) == want[n - 1], "half: most %g",
			__half2float(back[0]));
	}
}

int main()
{
	test_sort<short>("sort of short");
	test_sort<unsigned char>("sort of unsigned char");
	test_sort<long long>("sort of long long");
	test_scan<long long>("scan of long long");
	test_scan<unsigned int>("scan of unsigned int");
	test_reduce<short>("reduction of short");
	test_reduce<long long>("reduction of long long");
	halves();
	complex_numbers();
	structures();
	return verified("Thrust and CUB over integers, halves, complex numbers and structures");
}

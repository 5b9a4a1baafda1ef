/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Thrust and CUB over the types that programs use, against the CPU: sort, scan, reduce, select,
 * unique, histogram, and their kin with segments. Two programs run this: one compiled as a whole,
 * and one with -rdc=true.
 *
 * Sizes are such that small, middle and large kernels of each algorithm run. Floats are small whole
 * numbers, so that sums in any order are exact.
 */
#ifndef THRUST_CUB_H
#define THRUST_CUB_H

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include <cub/cub.cuh>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#include "check.h"

static const size_t sizes[] = {1, 37, 1000, 70001};

template <class T> static T number(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (T)(int64_t)((*seed >> 40) % 2000) - (std::is_signed<T>::value ? (T)1000 : (T)0);
}

template <class T> static std::vector<T> numbers(size_t n, uint64_t seed)
{
	std::vector<T> v(n);

	for (T &x : v)
		x = number<T>(&seed);
	return v;
}

template <class T>
static void same(const char *what, const thrust::device_vector<T> &got, const std::vector<T> &want)
{
	std::vector<T> host(got.size());

	thrust::copy(got.begin(), got.end(), host.begin());
	REQUIRE(host.size() >= want.size(), "%s: %zu of %zu", what, host.size(), want.size());
	for (size_t i = 0; i < want.size(); i++)
		REQUIRE(host[i] == want[i], "%s: element %zu of %zu: %g instead of %g", what, i,
			want.size(), (double)host[i], (double)want[i]);
}

/* Calls a function of CUB twice, as it wants it: first it says how much memory it needs. */
template <class F> static void cub_call(F call)
{
	size_t bytes = 0;

	CHECK(call((void *)NULL, bytes));
	thrust::device_vector<char> temp(bytes + 1);
	CHECK(call((void *)thrust::raw_pointer_cast(temp.data()), bytes));
	CHECK(cudaDeviceSynchronize());
}

template <class T> static T *raw(thrust::device_vector<T> &v)
{
	return thrust::raw_pointer_cast(v.data());
}

template <class T> static void test_sort(const char *what)
{
	for (size_t n : sizes) {
		std::vector<T> h = numbers<T>(n, n), down = h;
		thrust::device_vector<T> d(h), k(h), sorted(n);
		std::vector<int> order(n);
		thrust::device_vector<int> place(n), by(n);

		std::iota(order.begin(), order.end(), 0);
		thrust::copy(order.begin(), order.end(), place.begin());
		std::stable_sort(order.begin(), order.end(),
				 [&](int a, int b) { return h[b] < h[a]; });
		cub_call([&](void *t, size_t &bytes) {
			return cub::DeviceRadixSort::SortPairsDescending(
				t, bytes, raw(k), raw(sorted), raw(place), raw(by), (int)n);
		});
		same(what, by, order);
		std::sort(h.begin(), h.end());
		std::sort(down.begin(), down.end(), std::greater<T>());
		same(what, sorted, down);
		thrust::sort(d.begin(), d.end());
		same(what, d, h);
	}
}

struct by_last_digit {
	__host__ __device__ bool operator()(int a, int b) const
	{
		return (a + 1000) % 10 < (b + 1000) % 10;
	}
};

static void test_merge_sort()
{
	for (size_t n : sizes) {
		std::vector<int> h = numbers<int>(n, 3);
		thrust::device_vector<int> d(h);

		std::stable_sort(h.begin(), h.end(), by_last_digit());
		thrust::stable_sort(d.begin(), d.end(), by_last_digit());
		same("stable sort", d, h);
	}
}

template <class T> static void test_scan(const char *what)
{
	for (size_t n : sizes) {
		std::vector<T> h = numbers<T>(n, n + 1), want(n);
		thrust::device_vector<T> d(h), out(n);
		T sum = 5, before;

		thrust::inclusive_scan(d.begin(), d.end(), out.begin());
		std::partial_sum(h.begin(), h.end(), want.begin());
		same(what, out, want);
		thrust::exclusive_scan(d.begin(), d.end(), out.begin(), sum);
		for (size_t i = 0; i < n; i++) {
			before = sum;
			sum = (T)(sum + h[i]);
			want[i] = before;
		}
		same(what, out, want);
	}
}

template <class T> static void test_reduce(const char *what)
{
	for (size_t n : sizes) {
		std::vector<T> h = numbers<T>(n, n + 2);
		thrust::device_vector<T> d(h), least(1);
		T want = std::accumulate(h.begin(), h.end(), (T)0);
		T got = thrust::reduce(d.begin(), d.end(), (T)0);

		REQUIRE(got == want, "%s: sum %g instead of %g", what, (double)got, (double)want);
		cub_call([&](void *t, size_t &bytes) {
			return cub::DeviceReduce::Min(t, bytes, raw(d), raw(least), (int)n);
		});
		REQUIRE(least[0] == *std::min_element(h.begin(), h.end()), "%s: least %g", what,
			(double)least[0]);
	}
}

struct is_odd {
	__host__ __device__ bool operator()(long long v) const
	{
		return v & 1;
	}
};

static void test_select()
{
	for (size_t n : sizes) {
		std::vector<int> h = numbers<int>(n, 9), want;
		thrust::device_vector<int> d(h), out(n), count(1);
		std::vector<char> flag(n);
		size_t kept;

		for (size_t i = 0; i < n; i++)
			flag[i] = h[i] % 3 == 0;
		thrust::device_vector<char> df(flag);
		kept = (size_t)(thrust::copy_if(d.begin(), d.end(), out.begin(), is_odd()) -
				out.begin());
		std::copy_if(h.begin(), h.end(), std::back_inserter(want), is_odd());
		REQUIRE(kept == want.size(), "copy_if: %zu of %zu", kept, want.size());
		same("copy_if", out, want);
		want.clear();
		for (size_t i = 0; i < n; i++)
			if (flag[i])
				want.push_back(h[i]);
		cub_call([&](void *t, size_t &bytes) {
			return cub::DeviceSelect::Flagged(t, bytes, raw(d), raw(df), raw(out),
							  raw(count), (int)n);
		});
		REQUIRE((size_t)count[0] == want.size(), "flagged: %d of %zu", (int)count[0],
			want.size());
		same("flagged", out, want);
	}
}

/* Runs of equal numbers: unique, run lengths, and sums by key. */
static void test_runs()
{
	for (size_t n : sizes) {
		std::vector<int> h = numbers<int>(n, 5), unique, length;
		std::vector<double> sum;
		size_t kept;

		for (size_t i = 0; i < n; i++)
			h[i] = h[i] < -300 && i ? h[i - 1] : h[i] / 400;
		for (size_t i = 0; i < n; i++) {
			if (!i || h[i] != h[i - 1]) {
				unique.push_back(h[i]);
				length.push_back(0);
				sum.push_back(0);
			}
			length.back()++;
			sum.back() += (double)(i % 100);
		}
		std::vector<double> value(n);
		for (size_t i = 0; i < n; i++)
			value[i] = (double)(i % 100);
		thrust::device_vector<int> d(h), out(n), lengths(n), count(1);
		thrust::device_vector<double> v(value), sums(n);

		cub_call([&](void *t, size_t &bytes) {
			return cub::DeviceRunLengthEncode::Encode(t, bytes, raw(d), raw(out),
								  raw(lengths), raw(count), (int)n);
		});
		REQUIRE((size_t)count[0] == unique.size(), "runs: %d of %zu", (int)count[0],
			unique.size());
		same("runs", out, unique);
		same("lengths of runs", lengths, length);
		thrust::reduce_by_key(d.begin(), d.end(), v.begin(), out.begin(), sums.begin());
		same("sums by key", sums, sum);
		kept = (size_t)(thrust::unique(d.begin(), d.end()) - d.begin());
		REQUIRE(kept == unique.size(), "unique: %zu of %zu", kept, unique.size());
		same("unique", d, unique);
	}
}

static void test_histogram()
{
	for (size_t n : sizes) {
		std::vector<unsigned char> h = numbers<unsigned char>(n, 11);
		std::vector<int> want(256);
		thrust::device_vector<unsigned char> d(h);
		thrust::device_vector<int> bins(256);

		for (unsigned char x : h)
			want[x]++;
		cub_call([&](void *t, size_t &bytes) {
			return cub::DeviceHistogram::HistogramEven(t, bytes, raw(d), raw(bins), 257,
								   0, 256, (int)n);
		});
		same("histogram", bins, want);
	}
}

/* Segments of 0 to a few thousand elements. */
static void test_segments()
{
	std::vector<int> begin = {0};
	uint64_t seed = 1;

	for (int i = 0; i < 60; i++)
		begin.push_back(begin.back() +
				(int)(number<uint64_t>(&seed) % 200) * (i % 7 ? 1 : 20));
	int n = begin.back(), segments = (int)begin.size() - 1;
	std::vector<float> h = numbers<float>((size_t)n, 13), want = h, sum((size_t)segments);
	thrust::device_vector<float> d(h), out((size_t)n), sums((size_t)segments);
	thrust::device_vector<int> at(begin);

	for (int s = 0; s < segments; s++) {
		sum[s] = std::accumulate(h.begin() + begin[s], h.begin() + begin[s + 1], 0.0f);
		std::sort(want.begin() + begin[s], want.begin() + begin[s + 1]);
	}
	cub_call([&](void *t, size_t &bytes) {
		return cub::DeviceSegmentedSort::SortKeys(t, bytes, raw(d), raw(out), n, segments,
							  raw(at), raw(at) + 1);
	});
	same("segmented sort", out, want);
	cub_call([&](void *t, size_t &bytes) {
		return cub::DeviceSegmentedReduce::Sum(t, bytes, raw(d), raw(sums), segments,
						       raw(at), raw(at) + 1);
	});
	same("segmented sum", sums, sum);
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parameters of kernels: every scalar type, structures by value with padding and alignment,
 * arrays in structures that are indexed at run time, template types, and blocks of 4000 bytes.
 * What gives a parameter may launch, too.
 */
#include "check.h"

struct odd {
	char c;
	double d;
	short s[3];
	char tail;
};

struct __align__(32) aligned
{
	int a;
	float4 v;
};

struct block {
	int word[900];
	odd o;
};

__global__ void scalars(bool b, char c, unsigned char uc, short s, unsigned short us, int i,
			unsigned int u, long long ll, unsigned long long ull, float f, double d,
			const int *p, char3 c3, double2 d2, long long *out)
{
	long long sum = b;

	sum = sum * 31 + c;
	sum = sum * 31 + uc;
	sum = sum * 31 + s;
	sum = sum * 31 + us;
	sum = sum * 31 + i;
	sum = sum * 31 + u;
	sum = sum * 31 + ll;
	sum = sum * 31 + (long long)ull;
	sum = sum * 31 + (long long)(f * 4);
	sum = sum * 31 + (long long)(d * 8);
	sum = sum * 31 + (p == nullptr);
	sum = sum * 31 + c3.x + 2 * c3.y + 3 * c3.z;
	*out = sum * 31 + (long long)(d2.x * 2 + d2.y * 16);
}

__global__ void structures(odd o, char between, aligned a, odd again, int *out)
{
	int t = threadIdx.x;

	out[t] = o.c + (int)(o.d * 2) + o.s[t % 3] * 10 + o.tail + between * 100 + a.a +
		 (int)(a.v.x + a.v.y * 2 + a.v.z * 3 + a.v.w * 4) - again.s[(t + 1) % 3];
}

/* The kernel also writes to its parameters: each thread has its own copy. */
__global__ void large(block b, int *out)
{
	int t = threadIdx.x;

	b.word[t % 7] += t;
	out[t] = b.word[(t * 37) % 900] + b.word[t % 7] + b.o.s[t % 3] + (int)b.o.d;
}

template <typename T, int K> struct vec {
	T x[K];
};

template <typename T, int K> __global__ void generic(vec<T, K> a, vec<T, K> b, T *out)
{
	T sum = 0;

	for (int k = 0; k < K; k++)
		sum += a.x[k] * b.x[(k + threadIdx.x) % K];
	out[threadIdx.x] = sum;
}

template <typename T, int K> static void test_generic(void)
{
	vec<T, K> a, b;
	T out[K], *dev;

	for (int k = 0; k < K; k++) {
		a.x[k] = (T)(k + 1);
		b.x[k] = (T)(k * k);
	}
	CHECK(cudaMalloc(&dev, sizeof(out)));
	generic<T, K><<<1, K>>>(a, b, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, sizeof(out), cudaMemcpyDeviceToHost));
	for (int t = 0; t < K; t++) {
		T want = 0;

		for (int k = 0; k < K; k++)
			want += a.x[k] * b.x[(k + t) % K];
		REQUIRE(out[t] == want, "%zu bytes, %d of them: %g, expected %g", sizeof(T), K,
			(double)out[t], (double)want);
	}
	CHECK(cudaFree(dev));
}

__global__ void size_and_value(int *out, int value)
{
	*out = (int)blockDim.x * 1000 + value;
}

/* The launch of N begins before that of N - 1, which is among its parameters. */
static int launch_inside(int *out, int n)
{
	if (n)
		size_and_value<<<1, n>>>(out + n, launch_inside(out, n - 1));
	return n;
}

int main(void)
{
	odd o = {'x', 2.5, {3, -4, 5}, 'y'}, again = {'z', -1, {100, 200, 300}, 'w'};
	aligned a = {7, {1, 2, 3, 4}};
	int out[900], *dev;
	long long sum = 1, *dev_sum;
	block b;

	CHECK(cudaMalloc(&dev, sizeof(out)));
	CHECK(cudaMalloc(&dev_sum, sizeof(sum)));
	scalars<<<1, 1>>>(true, -3, 200, -3000, 60000, -70000, 4000000000u, -1ll << 40, 1ull << 50,
			  1.25f, -2.625, nullptr, make_char3(1, -2, 3), make_double2(0.5, 0.0625),
			  dev_sum);
	CHECK_LAUNCH();
	for (long long x : {-3ll, 200ll, -3000ll, 60000ll, -70000ll, 4000000000ll, -1ll << 40,
			    1ll << 50, 5ll, -21ll, 1ll, 1ll - 4 + 9, 2ll})
		sum = (long long)((unsigned long long)sum * 31 + (unsigned long long)x);
	CHECK(cudaMemcpy(out, dev_sum, sizeof(sum), cudaMemcpyDeviceToHost));
	REQUIRE(!memcmp(out, &sum, sizeof(sum)), "scalars: not %lld", sum);

	structures<<<1, 32>>>(o, 5, a, again, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, 32 * sizeof(int), cudaMemcpyDeviceToHost));
	for (int t = 0; t < 32; t++) {
		int want = 'x' + 5 + o.s[t % 3] * 10 + 'y' + 500 + 7 + 30 - again.s[(t + 1) % 3];

		REQUIRE(out[t] == want, "structures, thread %d: %d, expected %d", t, out[t], want);
	}

	for (int i = 0; i < 900; i++)
		b.word[i] = (int)scramble(i, 5) % 1000;
	b.o = o;
	large<<<1, 512>>>(b, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, 512 * sizeof(int), cudaMemcpyDeviceToHost));
	for (int t = 0; t < 512; t++) {
		int at = t * 37 % 900,
		    want = b.word[at] + (at == t % 7 ? t : 0) + b.word[t % 7] + t + o.s[t % 3] + 2;

		REQUIRE(out[t] == want, "large, thread %d: %d, expected %d", t, out[t], want);
	}
	test_generic<int, 5>();
	test_generic<float, 17>();
	test_generic<double, 100>();
	test_generic<unsigned short, 33>();
	launch_inside(dev, 40);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, 41 * sizeof(int), cudaMemcpyDeviceToHost));
	for (int n = 1; n <= 40; n++)
		REQUIRE(out[n] == n * 1000 + n - 1, "launch %d: %d", n, out[n]);
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_sum));
	return verified("scalars, structures and %zu bytes by value", sizeof(block));
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loads and stores of two and four elements at once, of every width, through plain pointers,
 * __ldg and the cache operators; vectors in shared memory; unions that read the same bits in two
 * ways.
 */
#include "check.h"

#define N 256

template <typename V> __global__ void reverse(const V *in, V *out, int n)
{
	__shared__ V box[N];
	int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;

	box[t] = i & 1 ? __ldg(&in[i]) : in[i];
	__syncthreads();
	if (i & 2)
		__stcs(&out[n - 1 - i], box[t]);
	else
		out[n - 1 - i] = box[t];
}

__global__ void sums(const int4 *in, int *out)
{
	int i = threadIdx.x;
	int4 v = in[i];
	union {
		int2 pair;
		long long whole;
		unsigned char byte[8];
	} u;

	u.pair = make_int2(v.x, v.w);
	v.y += u.byte[3];
	out[i] = v.x + 2 * v.y + 3 * v.z + 4 * v.w + (int)(u.whole >> 40);
}

template <typename V> static void test(const char *name)
{
	static V in[N], out[N];
	V *dev;

	fill_words(in, sizeof(in), sizeof(V));
	CHECK(cudaMalloc(&dev, 2 * sizeof(in)));
	CHECK(cudaMemcpy(dev, in, sizeof(in), cudaMemcpyHostToDevice));
	reverse<V><<<2, N / 2>>>(dev, dev + N, N);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev + N, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		REQUIRE(!memcmp(&out[i], &in[N - 1 - i], sizeof(V)), "%s, element %d", name, i);
	CHECK(cudaFree(dev));
}

int main(void)
{
	int4 in[N], *dev;
	int out[N], *dev_out;

	test<char2>("char2");
	test<uchar4>("uchar4");
	test<short2>("short2");
	test<ushort4>("ushort4");
	test<int2>("int2");
	test<uint4>("uint4");
	test<longlong2>("longlong2");
	test<float2>("float2");
	test<float4>("float4");
	test<double2>("double2");

	fill_words(in, sizeof(in), 3);
	CHECK(cudaMalloc(&dev, sizeof(in)));
	CHECK(cudaMalloc(&dev_out, sizeof(out)));
	CHECK(cudaMemcpy(dev, in, sizeof(in), cudaMemcpyHostToDevice));
	sums<<<1, N>>>(dev, dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev_out, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		unsigned int x = in[i].x, y = in[i].y + (x >> 24), z = in[i].z, w = in[i].w;
		int want = (int)(x + 2 * y + 3 * z + 4 * w + (unsigned int)((int)w >> 8));

		REQUIRE(out[i] == want, "element %d: %d, expected %d", i, out[i], want);
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_out));
	return verified("ten vector types, %d of each", N);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared memory whose size the launch sets: several arrays are placed in it, beside static
 * arrays. More than 48 KiB is possible only after cudaFuncSetAttribute has allowed it.
 */
#include "check.h"

__global__ void carve(int n, int *out)
{
	extern __shared__ __align__(16) unsigned char pool[];
	__shared__ int before[16];
	double *d = (double *)pool;
	int *i = (int *)(d + n);
	short *s = (short *)(i + n);
	int t = threadIdx.x;

	if (t < 16)
		before[t] = 1000 * t;
	if (t < n) {
		d[t] = t * 0.5;
		i[t] = -t;
		s[t] = (short)(3 * t);
	}
	__syncthreads();
	if (t < n) {
		int k = n - 1 - t;

		out[t] = (int)(d[k] * 2) + i[k] + s[k] + before[t % 16];
	}
}

__global__ void big(int words, unsigned long long *sum)
{
	extern __shared__ uint32_t word[];
	unsigned long long mine = 0;

	for (int i = threadIdx.x; i < words; i += blockDim.x)
		word[i] = scramble(i, blockIdx.x);
	__syncthreads();
	/* Reads what the next warp wrote. */
	for (int i = (threadIdx.x + 32) % blockDim.x; i < words; i += blockDim.x)
		mine += word[i];
	atomicAdd(&sum[blockIdx.x], mine);
}

int main(void)
{
	const int blocks = 3;
	int out[256], *dev, most;
	unsigned long long sum[blocks], *dev_sum;

	CHECK(cudaMalloc(&dev, sizeof(out)));
	CHECK(cudaMalloc(&dev_sum, sizeof(sum)));
	for (int n = 1; n <= 256; n = n * 2 + 1) {
		carve<<<1, 256, n * 14>>>(n, dev);
		CHECK_LAUNCH();
		CHECK(cudaMemcpy(out, dev, n * sizeof(int), cudaMemcpyDeviceToHost));
		for (int t = 0; t < n; t++)
			REQUIRE(out[t] == 3 * (n - 1 - t) + 1000 * (t % 16), "%d of %d: %d", t, n,
				out[t]);
	}
	CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
	REQUIRE(most >= 64 << 10, "at most %d bytes", most);
	big<<<1, 128, most>>>(most / 4, dev_sum);
	EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
	EXPECT(cudaFuncSetAttribute(big, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 4),
	       cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaFuncSetAttribute(big, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
	CHECK(cudaMemset(dev_sum, 0, sizeof(sum)));
	big<<<blocks, 128, most>>>(most / 4, dev_sum);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(sum, dev_sum, sizeof(sum), cudaMemcpyDeviceToHost));
	for (int b = 0; b < blocks; b++) {
		unsigned long long want = 0;

		for (int i = 0; i < most / 4; i++)
			want += scramble(i, b);
		REQUIRE(sum[b] == want, "block %d: %llu, expected %llu", b, sum[b], want);
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_sum));
	return verified("carved pools, and %d KiB in each of %d blocks", most >> 10, blocks);
}

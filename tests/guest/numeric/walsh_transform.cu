// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The fast Walsh-Hadamard transform: large strides in global memory with four points per thread,
 * small strides in shared memory. In integers, so the result is exact. Transforming twice
 * multiplies by the length.
 */
#include "check.h"

#define LOG    13
#define N      (1 << LOG)
#define SHARED 512 /* the length divided by a power of four */

/* Two levels at once: strides s and 2s. */
__global__ void radix4(int *data, int stride)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	int low = i & (stride - 1), at = (i - low) * 4 + low;
	int a = data[at], b = data[at + stride], c = data[at + 2 * stride],
	    d = data[at + 3 * stride];
	int ab = a + b, a_b = a - b, cd = c + d, c_d = c - d;

	data[at] = ab + cd;
	data[at + stride] = a_b + c_d;
	data[at + 2 * stride] = ab - cd;
	data[at + 3 * stride] = a_b - c_d;
}

__global__ void small_strides(int *data)
{
	__shared__ int part[SHARED];
	int base = blockIdx.x * SHARED, t = threadIdx.x;

	part[t] = data[base + t];
	part[t + SHARED / 2] = data[base + t + SHARED / 2];
	for (int stride = SHARED / 2; stride; stride /= 2) {
		int low = t & (stride - 1), at = 2 * (t - low) + low, a, b;

		__syncthreads();
		a = part[at];
		b = part[at + stride];
		part[at] = a + b;
		part[at + stride] = a - b;
	}
	__syncthreads();
	data[base + t] = part[t];
	data[base + t + SHARED / 2] = part[t + SHARED / 2];
}

static void transform(int *dev)
{
	for (int stride = N / 4; stride >= SHARED; stride /= 4)
		radix4<<<N / 4 / 128, 128>>>(dev, stride);
	small_strides<<<N / SHARED, SHARED / 2>>>(dev);
	CHECK_LAUNCH();
}

int main(void)
{
	static int in[N], got[N];
	int *dev;

	for (int i = 0; i < N; i++)
		in[i] = (int)(scramble(i, 6) % 201) - 100;
	CHECK(cudaMalloc(&dev, sizeof(in)));
	CHECK(cudaMemcpy(dev, in, sizeof(in), cudaMemcpyHostToDevice));
	transform(dev);
	CHECK(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
	/* Checks some of the outputs with the definition. */
	for (int k = 0; k < N; k += 73) {
		int want = 0;

		for (int i = 0; i < N; i++)
			want += __builtin_parity(i & k) ? -in[i] : in[i];
		REQUIRE(got[k] == want, "coefficient %d: %d, expected %d", k, got[k], want);
	}
	transform(dev);
	CHECK(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		REQUIRE(got[i] == in[i] * N, "twice, element %d: %d, expected %d", i, got[i],
			in[i] * N);
	CHECK(cudaFree(dev));
	return verified("%d points there and back", N);
}

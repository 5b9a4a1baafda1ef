// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Variables of a module: __device__ and __constant__, with and without initial values, written
 * and read by name and by address, and used by kernels.
 */
#include "check.h"

#define N 256

__constant__ float scale[4] = {0.5f, 2.0f, -1.0f, 8.0f};
__constant__ int offset;
__device__ int table[N] = {7, 6, 5, 4};
__device__ unsigned char bytes[1001];
__device__ unsigned long long launches;

struct pair {
	short small;
	double big;
};
__device__ pair both = {-3, 0.125};

__global__ void use(float *out)
{
	int i = threadIdx.x;

	out[i] = (float)(table[i] + offset) * scale[i & 3];
	if (i == 0) {
		launches++;
		both.big += both.small;
	}
}

static float on_cpu(const int *values, const float *factors, int add, int i)
{
	return (float)(values[i] + add) * factors[i & 3];
}

int main(void)
{
	float factors[4] = {0.5f, 2.0f, -1.0f, 8.0f}, out[N], *dev;
	int values[N] = {7, 6, 5, 4}, add = 0, not_a_symbol = 0, back[N];
	unsigned char text[1001], text_back[1001];
	unsigned long long count = 99;
	size_t size = 0;
	void *addr = NULL;
	cudaStream_t stream;
	pair p;

	CHECK(cudaMalloc(&dev, sizeof(out)));
	for (int round = 0; round < 3; round++) {
		use<<<1, N>>>(dev);
		CHECK_LAUNCH();
		CHECK(cudaMemcpy(out, dev, sizeof(out), cudaMemcpyDeviceToHost));
		for (int i = 0; i < N; i++)
			REQUIRE(out[i] == on_cpu(values, factors, add, i),
				"round %d, %d: %g, expected %g", round, i, out[i],
				on_cpu(values, factors, add, i));
		/* The next round has other values, and only a part of the tables. */
		add = 1000 + round;
		factors[2] = 3.5f + round;
		for (int i = 100; i < 200; i++)
			values[i] = i * round - 17;
		CHECK(cudaMemcpyToSymbol(offset, &add, sizeof(add)));
		CHECK(cudaMemcpyToSymbol(scale, &factors[2], sizeof(float), 2 * sizeof(float)));
		CHECK(cudaMemcpyToSymbol(table, &values[100], 100 * sizeof(int),
					 100 * sizeof(int)));
	}
	CHECK(cudaMemcpyFromSymbol(&count, launches, sizeof(count)));
	REQUIRE(count == 3, "%llu launches counted", count);
	CHECK(cudaMemcpyFromSymbol(&p, both, sizeof(p)));
	REQUIRE(p.small == -3 && p.big == 0.125 - 9, "%d, %g", p.small, p.big);
	CHECK(cudaMemcpyFromSymbol(back, table, sizeof(back)));
	REQUIRE(!memcmp(back, values, sizeof(back)), "the table differs");

	CHECK(cudaGetSymbolSize(&size, bytes));
	REQUIRE(size == sizeof(text), "%zu", size);
	CHECK(cudaGetSymbolAddress(&addr, bytes));
	fill_words(text, sizeof(text), 5);
	CHECK(cudaMemcpy(addr, text, sizeof(text), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyFromSymbol(text_back, bytes, sizeof(text) - 1, 1));
	REQUIRE(!memcmp(text_back, text + 1, sizeof(text) - 1), "written by address, read by name");

	/* In a stream, between other work. */
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMemcpyToSymbolAsync(bytes, text + 1, 500, 100, cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemsetAsync((char *)addr + 200, 7, 10, stream));
	CHECK(cudaMemcpyFromSymbolAsync(text_back, bytes, 600, 50, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	memmove(text + 100, text + 1, 500);
	memset(text + 200, 7, 10);
	REQUIRE(!memcmp(text_back, text + 50, 600), "written and read in a stream");
	CHECK(cudaStreamDestroy(stream));

	EXPECT(cudaMemcpyToSymbol(&not_a_symbol, &add, sizeof(add)), cudaErrorInvalidSymbol);
	EXPECT(cudaGetSymbolSize(&size, &not_a_symbol), cudaErrorInvalidSymbol);
	EXPECT(cudaGetSymbolAddress(&addr, &not_a_symbol), cudaErrorInvalidSymbol);
	EXPECT(cudaMemcpyToSymbol(offset, values, 8), cudaErrorInvalidValue);
	EXPECT(cudaMemcpyFromSymbol(values, table, sizeof(values), 4), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaFree(dev));
	return verified("constants and variables, by name, by address and in kernels");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Example: plain malloc memory to the GPU, as most programs do it. Natively the driver copies it
 *into pinned memory first. Here large allocations lie in pinned chunks of the guest, so the GPU
 *reads them where they are.
 *
 *	pageable_upload [MiB]
 */
#include "rate.h"

#define BLOCKS	256
#define THREADS 128

/* Adds up all words, so that each one must have arrived. */
__global__ void add_up(const uint32_t *word, size_t words, unsigned long long *sum)
{
	unsigned long long mine = 0;

	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
	     i += gridDim.x * blockDim.x)
		mine += word[i];
	atomicAdd(sum, mine);
}

static double upload(uint32_t *dev, const uint32_t *host, size_t bytes)
{
	double start = now();

	CHECK(cudaMemcpy(dev, host, bytes, cudaMemcpyHostToDevice));
	CHECK(cudaDeviceSynchronize());
	return now() - start;
}

static void compare(const uint32_t *dev, const uint32_t *host, size_t bytes)
{
	unsigned long long *dev_sum, got, want = 0;

	for (size_t i = 0; i < bytes / 4; i++)
		want += host[i];
	CHECK(cudaMalloc(&dev_sum, sizeof(*dev_sum)));
	CHECK(cudaMemset(dev_sum, 0, sizeof(*dev_sum)));
	add_up<<<BLOCKS, THREADS>>>(dev, bytes / 4, dev_sum);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&got, dev_sum, sizeof(got), cudaMemcpyDeviceToHost));
	REQUIRE(got == want, "the sum on the GPU is %llu, not %llu", got, want);
	CHECK(cudaFree(dev_sum));
}

int main(int argc, char **argv)
{
	size_t bytes = size_argument(argc, argv);
	uint32_t *host = (uint32_t *)malloc(bytes), *dev;

	REQUIRE(host, "out of memory");
	CHECK(cudaMalloc(&dev, bytes));
	fill_words(host, bytes, 1);
	rate("first time", (double)bytes, upload(dev, host, bytes),
	     "the chunks of this memory are mapped and registered with the GPU");
	compare(dev, host, bytes);
	fill_words(host, bytes, 2);
	rate("again", (double)bytes, upload(dev, host, bytes),
	     "they still are: the GPU reads the guest's pages, nothing copies them");
	compare(dev, host, bytes);
	CHECK(cudaFree(dev));
	free(host);
	return verified("%zu MiB of malloc memory uploaded twice", bytes >> 20);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory of malloc is pageable. The program overwrites its buffer as soon as cudaMemcpyAsync has
 * returned, ten thousand times, while the stream is kept busy. The device must never get the new
 * bytes. The first argument is the number of copies.
 */
#include "check.h"

#define LEN (256 << 10)

__global__ void wait_and_check(const unsigned char *data, int len, unsigned char want, int *wrong)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < len && data[i * (LEN / len)] != want)
		atomicAdd(wrong, 1);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 10000, i, wrong = 0, *dev_wrong;
	unsigned char *src = (unsigned char *)malloc(LEN), *dev[2];
	struct cudaPointerAttributes attr;
	cudaStream_t stream;

	REQUIRE(src, "malloc");
	CHECK(cudaPointerGetAttributes(&attr, src));
	REQUIRE(attr.type == cudaMemoryTypeUnregistered, "type %d", attr.type);
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&dev[0], LEN));
	CHECK(cudaMalloc(&dev[1], LEN));
	CHECK(cudaMalloc(&dev_wrong, sizeof(wrong)));
	CHECK(cudaMemset(dev_wrong, 0, sizeof(wrong)));
	for (i = 0; i < rounds; i++) {
		unsigned char want = (unsigned char)(i % 255 + 1);

		memset(src, want, LEN);
		CHECK(cudaMemcpyAsync(dev[i % 2], src, LEN, cudaMemcpyHostToDevice, stream));
		memset(src, 0, LEN);
		wait_and_check<<<1, 64, 0, stream>>>(dev[i % 2], 64, want, dev_wrong);
		CHECK_LAUNCH();
	}
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(&wrong, dev_wrong, sizeof(wrong), cudaMemcpyDeviceToHost));
	REQUIRE(wrong == 0, "%d samples of %d are wrong", wrong, 64 * rounds);
	free(src);
	CHECK(cudaFree(dev[0]));
	CHECK(cudaFree(dev[1]));
	CHECK(cudaFree(dev_wrong));
	CHECK(cudaStreamDestroy(stream));
	return verified("%d asynchronous copies out of a buffer overwritten at once", rounds);
}

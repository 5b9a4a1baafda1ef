// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Four streams, each with its part of one array: copy up, run a kernel, copy down, and wait only
 * at the end. This is done once with pinned memory and once with memory of malloc. A pageable
 * source may be overwritten as soon as the call returns; the device must still get the old
 * bytes.
 */
#include "check.h"

#define STREAMS 4
#define PART	100001 /* words per stream, odd on purpose */
#define ROUNDS	3

__global__ void twist(uint32_t *word, int n, uint32_t key)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		word[i] = (word[i] ^ key) + i;
}

static void pipeline(uint32_t *host, uint32_t *out, uint32_t *dev, cudaStream_t *stream,
		     bool overwrite, const char *kind)
{
	size_t bytes = PART * sizeof(uint32_t);

	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < STREAMS * PART; i++)
			host[i] = scramble(i, round);
		memset(out, 0, STREAMS * bytes);
		for (int s = 0; s < STREAMS; s++) {
			uint32_t *part = dev + s * PART;

			CHECK(cudaMemcpyAsync(part, host + s * PART, bytes, cudaMemcpyHostToDevice,
					      stream[s]));
			if (overwrite)
				memset(host + s * PART, 0xee, bytes);
			twist<<<(PART + 255) / 256, 256, 0, stream[s]>>>(part, PART, s + round);
			CHECK_LAUNCH();
			CHECK(cudaMemcpyAsync(out + s * PART, part, bytes, cudaMemcpyDeviceToHost,
					      stream[s]));
		}
		CHECK(cudaDeviceSynchronize());
		for (int s = 0; s < STREAMS; s++) {
			for (int i = 0; i < PART; i++) {
				uint32_t want = (scramble(s * PART + i, round) ^ (s + round)) + i;

				REQUIRE(out[s * PART + i] == want,
					"%s, round %u, stream %d, word %d: %08x, expected %08x",
					kind, round, s, i, out[s * PART + i], want);
			}
		}
	}
}

int main(void)
{
	size_t bytes = (size_t)STREAMS * PART * sizeof(uint32_t);
	uint32_t *pinned, *pinned_out, *pageable, *pageable_out, *dev;
	cudaStream_t stream[STREAMS];

	CHECK(cudaMalloc(&dev, bytes));
	CHECK(cudaMallocHost(&pinned, bytes));
	CHECK(cudaMallocHost(&pinned_out, bytes));
	pageable = (uint32_t *)malloc(bytes);
	pageable_out = (uint32_t *)malloc(bytes);
	REQUIRE(pageable && pageable_out, "out of memory");
	for (int s = 0; s < STREAMS; s++)
		CHECK(cudaStreamCreate(&stream[s]));

	pipeline(pinned, pinned_out, dev, stream, false, "pinned");
	pipeline(pageable, pageable_out, dev, stream, true, "pageable");
	pipeline(pageable, pinned_out, dev, stream, true, "pageable to pinned");

	for (int s = 0; s < STREAMS; s++)
		CHECK(cudaStreamDestroy(stream[s]));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFreeHost(pinned_out));
	CHECK(cudaFree(dev));
	free(pageable);
	free(pageable_out);
	return verified("%d rounds in %d streams, sources overwritten at once", 3 * ROUNDS,
			STREAMS);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Example: a stream of data through the GPU. Pinned memory is cut into pieces, and each piece is
 *uploaded, changed by a kernel and downloaded in one of a few streams. While one stream computes,
 *the others copy, so the time is that of the slowest of the three steps and not of all three.
 *
 *	stream_pipeline [MiB]
 */
#include "rate.h"

#define STREAMS 3
#define PIECE	((size_t)4 << 20)

__global__ void scale(uint32_t *word, uint32_t words)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
	     i += gridDim.x * blockDim.x)
		word[i] = word[i] * 3 + 1;
}

struct pipeline {
	cudaStream_t stream[STREAMS];
	uint32_t *dev[STREAMS];
	uint32_t *in, *out;
	size_t bytes;
};

/* Sends everything through `streams` streams. With one stream, each step waits for the one before.
 */
static double run(struct pipeline *p, int streams)
{
	double start = now();
	int turn = 0;

	for (size_t at = 0; at < p->bytes; at += PIECE, turn = (turn + 1) % streams) {
		size_t part = p->bytes - at < PIECE ? p->bytes - at : PIECE;
		cudaStream_t s = p->stream[turn];
		uint32_t *dev = p->dev[turn];

		CHECK(cudaMemcpyAsync(dev, p->in + at / 4, part, cudaMemcpyHostToDevice, s));
		scale<<<64, 128, 0, s>>>(dev, (uint32_t)(part / 4));
		CHECK_LAUNCH();
		CHECK(cudaMemcpyAsync(p->out + at / 4, dev, part, cudaMemcpyDeviceToHost, s));
	}
	for (int i = 0; i < streams; i++)
		CHECK(cudaStreamSynchronize(p->stream[i]));
	return now() - start;
}

static void compare(const struct pipeline *p)
{
	for (size_t i = 0; i < p->bytes / 4; i++)
		REQUIRE(p->out[i] == p->in[i] * 3 + 1, "word %zu is %u", i, p->out[i]);
	memset(p->out, 0, p->bytes);
}

int main(int argc, char **argv)
{
	struct pipeline p;

	p.bytes = size_argument(argc, argv);
	CHECK(cudaMallocHost(&p.in, p.bytes));
	CHECK(cudaMallocHost(&p.out, p.bytes));
	for (int i = 0; i < STREAMS; i++) {
		CHECK(cudaStreamCreate(&p.stream[i]));
		CHECK(cudaMalloc(&p.dev[i], PIECE));
	}
	fill_words(p.in, p.bytes, 1);
	memset(p.out, 0, p.bytes);

	/* Each byte goes up and down. */
	rate("first time", 2.0 * p.bytes, run(&p, STREAMS),
	     "the kernel is loaded, and pinned memory is used for the first time");
	compare(&p);
	rate("again", 2.0 * p.bytes, run(&p, STREAMS),
	     "uploads, kernels and downloads of three streams overlap");
	compare(&p);
	rate("again, one stream", 2.0 * p.bytes, run(&p, 1), "each step waits for the one before");
	compare(&p);

	for (int i = 0; i < STREAMS; i++) {
		CHECK(cudaStreamDestroy(p.stream[i]));
		CHECK(cudaFree(p.dev[i]));
	}
	CHECK(cudaFreeHost(p.in));
	CHECK(cudaFreeHost(p.out));
	return verified("%zu MiB through the GPU, three times", p.bytes >> 20);
}

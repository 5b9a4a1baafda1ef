// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cudaMemset and its asynchronous, two- and three-dimensional forms: every byte of the range is
 * set, and no byte beside it, at odd addresses and lengths.
 */
#include "check.h"

#define BYTES (1 << 20)

static unsigned char host[BYTES], want[BYTES];

static void compare(const unsigned char *dev, const char *what)
{
	size_t at;

	CHECK(cudaMemcpy(host, dev, BYTES, cudaMemcpyDeviceToHost));
	at = first_difference(host, want, BYTES);
	REQUIRE(at == BYTES, "%s: byte %zu is %02x, expected %02x", what, at, host[at], want[at]);
}

int main(void)
{
	static const struct {
		size_t at, len;
		int value;
	} cases[] = {
		{0, BYTES, 0x11},     {1, 1, 0x22},	    {3, 5, 0xff},
		{4095, 4098, 0x33},   {65536, 65536, 0x44}, {70001, 333333, 0x155},
		{BYTES - 7, 7, 0x66}, {500, 0, 0x77},	    {BYTES - 4096, 4096, -1},
	};
	const size_t pitch = 1000, width = 77, height = 50, at = 12345;
	cudaStream_t stream;
	unsigned char *dev;

	CHECK(cudaMalloc(&dev, BYTES));
	CHECK(cudaStreamCreate(&stream));
	for (int async = 0; async < 2; async++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			unsigned char *p = dev + cases[i].at;

			memset(want + cases[i].at, cases[i].value + async, cases[i].len);
			if (async)
				CHECK(cudaMemsetAsync(p, cases[i].value + async, cases[i].len,
						      stream));
			else
				CHECK(cudaMemset(p, cases[i].value, cases[i].len));
			if (async)
				CHECK(cudaStreamSynchronize(stream));
			compare(dev, async ? "cudaMemsetAsync" : "cudaMemset");
		}
	}

	CHECK(cudaMemset2D(dev + at, pitch, 0xab, width, height));
	for (size_t y = 0; y < height; y++)
		memset(want + at + y * pitch, 0xab, width);
	compare(dev, "cudaMemset2D");

	CHECK(cudaMemset2DAsync(dev + at + 1, pitch, 0xcd, width - 2, height - 1, stream));
	for (size_t y = 0; y < height - 1; y++)
		memset(want + at + 1 + y * pitch, 0xcd, width - 2);
	CHECK(cudaStreamSynchronize(stream));
	compare(dev, "cudaMemset2DAsync");

	/* Only the first 7 rows of slices of 10 rows. */
	CHECK(cudaMemset3DAsync(make_cudaPitchedPtr(dev + 256, pitch, width, 10), 0xef,
				make_cudaExtent(width, 7, 4), stream));
	for (size_t y = 0; y < 40; y++)
		if (y % 10 < 7)
			memset(want + 256 + y * pitch, 0xef, width);
	CHECK(cudaStreamSynchronize(stream));
	compare(dev, "cudaMemset3DAsync");

	EXPECT(cudaMemset2D(dev, 10, 0, 20, 2), cudaErrorInvalidValue);
	EXPECT(cudaMemset(dev, 0, (size_t)1 << 40), cudaErrorInvalidValue);
	EXPECT(cudaMemset(NULL, 0, 16), cudaErrorInvalidValue);
	compare(dev, "after refused calls");
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(dev));
	return verified("%zu ranges set exactly", 2 * sizeof(cases) / sizeof(cases[0]) + 3);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How fast are copies, and does every byte arrive? Pageable (malloc) and pinned (cudaMallocHost)
 * memory, both directions, 4 KiB to 64 MiB. After each upload a kernel checks the memory on the
 * device. After each download the CPU compares all of it.
 */
#include "check.h"

#define CHECKERS 1024

/*
 * Each thread checks words spread over the whole buffer. The first and the last word are always
 * checked.
 */
__global__ void check_words(const uint32_t *word, uint32_t words, uint32_t seed, uint32_t *bad)
{
	uint32_t t = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t step = words > CHECKERS ? words / CHECKERS : 1;

	for (uint32_t n = 0; n < 4; n++) {
		uint32_t i = n == 3 ? words - 1 : t * step + n * (step / 3);

		if (i < words && word[i] != scramble(i, seed))
			bad[t]++;
	}
}

struct rates {
	double up, down;
};

/*
 * Returns the seconds per copy: the best of a few rounds, each long enough for a guest's clock.
 */
static double timed(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
	double best = 1e9;
	int count = bytes < (1 << 20) ? 16 : bytes < (16 << 20) ? 4 : 1;

	for (int round = 0; round < 3; round++) {
		double start = now(), took;

		for (int i = 0; i < count; i++)
			CHECK(cudaMemcpy(to, from, bytes, kind));
		took = (now() - start) / count;
		if (took > 0 && took < best)
			best = took;
	}
	return best;
}

static struct rates measure(uint32_t *host, uint32_t *back, uint32_t *dev, size_t bytes,
			    uint32_t seed, uint32_t *dev_bad)
{
	uint32_t words = (uint32_t)(bytes / 4), bad[CHECKERS];
	struct rates r;
	size_t at;

	fill_words(host, bytes, seed);
	memset(back, 0x5a, bytes);
	CHECK(cudaMemset(dev, 0xa5, bytes));
	r.up = (double)bytes / timed(dev, host, bytes, cudaMemcpyHostToDevice) / 1e9;

	CHECK(cudaMemset(dev_bad, 0, sizeof(bad)));
	check_words<<<CHECKERS / 128, 128>>>(dev, words, seed, dev_bad);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(bad, dev_bad, sizeof(bad), cudaMemcpyDeviceToHost));
	for (int t = 0; t < CHECKERS; t++)
		REQUIRE(!bad[t], "%zu bytes up: checker %d found %u wrong words", bytes, t, bad[t]);

	r.down = (double)bytes / timed(back, dev, bytes, cudaMemcpyDeviceToHost) / 1e9;
	at = first_difference(host, back, bytes);
	REQUIRE(at == bytes, "%zu bytes down: byte %zu is wrong", bytes, at);
	return r;
}

int main(int argc, char **argv)
{
	size_t max = (argc > 1 ? (size_t)atoi(argv[1]) : 64) << 20;
	uint32_t *pageable, *pageable_back, *pinned, *pinned_back, *dev, *dev_bad, seed = 1;
	size_t bytes, moved = 0;

	REQUIRE(max >= 1 << 20 && max <= (size_t)1 << 30, "usage: bandwidth [largest size in MiB]");
	pageable = (uint32_t *)malloc(max);
	pageable_back = (uint32_t *)malloc(max);
	REQUIRE(pageable && pageable_back, "out of memory");
	CHECK(cudaMallocHost(&pinned, max));
	CHECK(cudaMallocHost(&pinned_back, max));
	CHECK(cudaMalloc(&dev, max));
	CHECK(cudaMalloc(&dev_bad, CHECKERS * sizeof(uint32_t)));

	printf("                 pageable GB/s          pinned GB/s\n");
	printf("        size     H2D      D2H          H2D      D2H\n");
	for (bytes = 4096; bytes <= max; bytes *= 4) {
		struct rates page = measure(pageable, pageable_back, dev, bytes, seed++, dev_bad);
		struct rates pin = measure(pinned, pinned_back, dev, bytes, seed++, dev_bad);

		printf("  %6zu %s %8.3f %8.3f     %8.3f %8.3f\n",
		       bytes < 1 << 20 ? bytes >> 10 : bytes >> 20, bytes < 1 << 20 ? "KiB" : "MiB",
		       page.up, page.down, pin.up, pin.down);
		fflush(stdout);
		moved += bytes;
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_bad));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFreeHost(pinned_back));
	free(pageable);
	free(pageable_back);
	return verified("%.0f MiB unchanged up and down, pageable and pinned",
			(double)moved / (1 << 20));
}

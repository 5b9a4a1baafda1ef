// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A request for more memory than there is returns cudaErrorMemoryAllocation: pinned or on the
 * device, in one piece or in many. Earlier allocations are not touched, and after they are freed
 * there is room again. The argument is how many GiB are too many for pinned memory.
 */
#include "check.h"

#define PIECE  ((size_t)64 << 20)
#define PIECES 65536

static void *piece[PIECES];

int main(int argc, char **argv)
{
	size_t too_much = (size_t)(argc > 1 ? atoi(argv[1]) : 1 << 20) << 30, free_bytes, total,
	       now_free;
	unsigned char *keep, *dev, *back = (unsigned char *)malloc(1 << 20);
	void *p = NULL;
	int count = 0;

	REQUIRE(too_much && back, "usage: out_of_memory [GiB]");
	CHECK(cudaMallocHost(&keep, 1 << 20));
	fill_words(keep, 1 << 20, 9);
	CHECK(cudaMalloc(&dev, 1 << 20));
	CHECK(cudaMemcpy(dev, keep, 1 << 20, cudaMemcpyHostToDevice));
	CHECK(cudaMemGetInfo(&free_bytes, &total));

	for (int round = 0; round < 3; round++) {
		EXPECT(cudaMallocHost(&p, too_much), cudaErrorMemoryAllocation);
		EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
		EXPECT(cudaMalloc(&p, total + 1), cudaErrorMemoryAllocation);
		EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
		CHECK(cudaGetLastError());
	}
	while (count < PIECES && cudaMalloc(&piece[count], PIECE) == cudaSuccess)
		count++;
	EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
	REQUIRE(count * PIECE <= total && (count + 2) * PIECE >= free_bytes,
		"%d pieces of 64 MiB, but %zu MiB were free", count, free_bytes >> 20);
	while (count)
		CHECK(cudaFree(piece[--count]));
	CHECK(cudaMemGetInfo(&now_free, &total));
	REQUIRE(now_free + PIECE >= free_bytes, "%zu MiB are gone", (free_bytes - now_free) >> 20);

	CHECK(cudaMemcpy(back, dev, 1 << 20, cudaMemcpyDeviceToHost));
	REQUIRE(!memcmp(back, keep, 1 << 20), "what was there has changed");
	CHECK(cudaMalloc(&p, PIECE));
	CHECK(cudaMemset(p, 1, PIECE));
	CHECK(cudaFree(p));
	CHECK(cudaFree(dev));
	CHECK(cudaFreeHost(keep));
	free(back);
	return verified("too much is refused, and nothing is lost by asking");
}

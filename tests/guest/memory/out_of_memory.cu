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

/* Takes all there is, and gives it back. Returns the number of pieces. */
static int take_all(void)
{
	size_t left, total;
	int count = 0, pieces;

	while (count < PIECES && cudaMalloc(&piece[count], PIECE) == cudaSuccess)
		count++;
	EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
	CHECK(cudaMemGetInfo(&left, &total));
	REQUIRE(count * PIECE <= total && left < 2 * PIECE, "%d pieces of 64 MiB, and %zu MiB are free", count,
		left >> 20);
	for (pieces = count; count;)
		CHECK(cudaFree(piece[--count]));
	return pieces;
}

int main(int argc, char **argv)
{
	size_t too_much = (size_t)(argc > 1 ? atoi(argv[1]) : 1 << 20) << 30, free_bytes, total;
	unsigned char *keep, *dev, *back = (unsigned char *)malloc(1 << 20);
	int pieces = -1, before = -2;
	void *p = NULL;

	REQUIRE(too_much && back, "usage: out_of_memory [GiB]");
	CHECK(cudaMallocHost(&keep, 1 << 20));
	fill_words(keep, 1 << 20, 9);
	CHECK(cudaMalloc(&dev, 1 << 20));
	CHECK(cudaMemcpy(dev, keep, 1 << 20, cudaMemcpyHostToDevice));
	CHECK(cudaMemGetInfo(&free_bytes, &total));
	REQUIRE(free_bytes <= total, "%zu of %zu bytes are free", free_bytes, total);

	for (int round = 0; round < 3; round++) {
		EXPECT(cudaMallocHost(&p, too_much), cudaErrorMemoryAllocation);
		EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
		EXPECT(cudaMalloc(&p, total + 1), cudaErrorMemoryAllocation);
		EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
		CHECK(cudaGetLastError());
	}
	/*
	 * As much fits the next time. Another process of the host may take memory once, for example a
	 * spare mirror that makes its context. If some were lost each time, no two counts would agree.
	 */
	for (int round = 0; pieces != before; round++) {
		REQUIRE(round < 5, "less and less fits: %d pieces, %d before", pieces, before);
		before = pieces;
		pieces = take_all();
	}

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

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cooperative groups: the block as an object, tiles of 4 to 32 of its threads, groups of the
 * threads that took a branch, and the shuffles, votes and reductions of these groups.
 */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.h"

namespace cg = cooperative_groups;

#define THREADS 96

struct seen {
	int rank, size, tile_sum, tile_max, meta_rank, meta_size, across, any, all;
	int branch_size, branch_rank, branch_first;
};

template <int SIZE> __global__ void groups(const int *in, seen *out)
{
	cg::thread_block block = cg::this_thread_block();
	cg::thread_block_tile<SIZE> tile = cg::tiled_partition<SIZE>(block);
	int i = block.thread_rank(), x = in[i];
	seen s = {};

	s.rank = tile.thread_rank();
	s.size = tile.size();
	s.meta_rank = tile.meta_group_rank();
	s.meta_size = tile.meta_group_size();
	s.tile_sum = x;
	for (int step = tile.size() / 2; step; step /= 2)
		s.tile_sum += tile.shfl_xor(s.tile_sum, step);
	s.tile_max = cg::reduce(tile, x, cg::greater<int>());
	s.across = tile.shfl(x, SIZE - 1);
	s.any = tile.any(x > 900);
	s.all = tile.all(x > 100);
	tile.sync();
	if (x % 3 == 0) {
		cg::coalesced_group branch = cg::coalesced_threads();

		s.branch_size = branch.size();
		s.branch_rank = branch.thread_rank();
		s.branch_first = branch.shfl(i, 0);
	}
	block.sync();
	out[i] = s;
}

template <int SIZE> static void test(const int *in, const int *dev_in, seen *dev_out)
{
	seen out[THREADS];

	CHECK(cudaMemset(dev_out, 0, sizeof(out)));
	groups<SIZE><<<1, dim3(THREADS / 4, 2, 2)>>>(dev_in, dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev_out, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < THREADS; i++) {
		int first = i / SIZE * SIZE, warp = i / 32 * 32, sum = 0, max = 0, any = 0, all = 1;
		const seen &s = out[i];

		for (int k = first; k < first + SIZE; k++) {
			sum += in[k];
			max = in[k] > max ? in[k] : max;
			any |= in[k] > 900;
			all &= in[k] > 100;
		}
		REQUIRE(s.rank == i % SIZE && s.size == SIZE && s.meta_rank == i / SIZE &&
				s.meta_size == THREADS / SIZE,
			"tiles of %d, thread %d: %d of %d in %d of %d", SIZE, i, s.rank, s.size,
			s.meta_rank, s.meta_size);
		REQUIRE(s.tile_sum == sum && s.tile_max == max && s.across == in[first + SIZE - 1],
			"tiles of %d, thread %d: %d, %d, %d", SIZE, i, s.tile_sum, s.tile_max,
			s.across);
		REQUIRE(!!s.any == any && !!s.all == all, "tiles of %d, thread %d: votes", SIZE, i);
		if (in[i] % 3 == 0) {
			/*
			 * The machine may choose how many threads meet, but the threads must
			 * agree on the number.
			 */
			REQUIRE(s.branch_size >= 1 && s.branch_size <= 32 &&
					s.branch_rank < s.branch_size && s.branch_first >= warp &&
					s.branch_first <= i,
				"tiles of %d, thread %d: %d of %d from %d", SIZE, i, s.branch_rank,
				s.branch_size, s.branch_first);
		}
	}
}

int main(void)
{
	int in[THREADS], *dev_in;
	seen *dev_out;

	for (int i = 0; i < THREADS; i++)
		in[i] = scramble(i, 4) % 1000;
	CHECK(cudaMalloc(&dev_in, sizeof(in)));
	CHECK(cudaMalloc(&dev_out, THREADS * sizeof(seen)));
	CHECK(cudaMemcpy(dev_in, in, sizeof(in), cudaMemcpyHostToDevice));
	test<32>(in, dev_in, dev_out);
	test<16>(in, dev_in, dev_out);
	test<8>(in, dev_in, dev_out);
	test<4>(in, dev_in, dev_out);
	CHECK(cudaFree(dev_in));
	CHECK(cudaFree(dev_out));
	return verified("tiles of 4, 8, 16 and 32 threads");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stream compaction: the elements that pass a test are moved together and keep their order.
 * Ranks in a warp come from a ballot and a population count, ranks in a block from shared
 * memory. Also the unordered kind, where one lane asks for space for all active lanes.
 */
#include <algorithm>
#include <vector>

#include "check.h"

#define THREADS 256
#define WARPS	(THREADS / 32)

__host__ __device__ static bool wanted(uint32_t x)
{
	return x % 3 == 0;
}

__global__ void count(const uint32_t *in, int n, int *kept)
{
	int i = blockIdx.x * THREADS + threadIdx.x;
	int sum = __syncthreads_count(i < n && wanted(in[i]));

	if (threadIdx.x == 0)
		kept[blockIdx.x] = sum;
}

__global__ void move(const uint32_t *in, int n, const int *start, uint32_t *out)
{
	__shared__ int before[WARPS];
	int i = blockIdx.x * THREADS + threadIdx.x, warp = threadIdx.x / 32,
	    lane = threadIdx.x % 32;
	bool keep = i < n && wanted(in[i]);
	unsigned int mask = __ballot_sync(0xffffffffu, keep);

	if (lane == 0)
		before[warp] = __popc(mask);
	__syncthreads();
	if (threadIdx.x == 0) {
		for (int w = 0, sum = 0; w < WARPS; w++) {
			int here = before[w];

			before[w] = sum;
			sum += here;
		}
	}
	__syncthreads();
	if (keep)
		out[start[blockIdx.x] + before[warp] + __popc(mask & ((1u << lane) - 1))] = in[i];
}

__global__ void gather(const uint32_t *in, int n, uint32_t *out, int *used, int *requests)
{
	int i = blockIdx.x * THREADS + threadIdx.x;

	if (i < n && wanted(in[i])) {
		unsigned int mask = __activemask();
		int leader = __ffs(mask) - 1, lane = threadIdx.x % 32, base = 0;

		if (lane == leader) {
			base = atomicAdd(used, __popc(mask));
			atomicAdd(requests, 1);
		}
		base = __shfl_sync(mask, base, leader);
		out[base + __popc(mask & ((1u << lane) - 1))] = in[i];
	}
}

int main(void)
{
	const int n = 20011, blocks = (n + THREADS - 1) / THREADS;
	std::vector<uint32_t> in(n), want, got(n);
	std::vector<int> kept(blocks);
	uint32_t *dev_in, *dev_out;
	int *dev_kept, used[2], sum = 0;

	for (int i = 0; i < n; i++) {
		in[i] = scramble(i, 3);
		if (wanted(in[i]))
			want.push_back(in[i]);
	}
	CHECK(cudaMalloc(&dev_in, n * 4));
	CHECK(cudaMalloc(&dev_out, n * 4));
	CHECK(cudaMalloc(&dev_kept, blocks * 4));
	CHECK(cudaMemcpy(dev_in, in.data(), n * 4, cudaMemcpyHostToDevice));
	count<<<blocks, THREADS>>>(dev_in, n, dev_kept);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(kept.data(), dev_kept, blocks * 4, cudaMemcpyDeviceToHost));
	for (int b = 0; b < blocks; b++) {
		int here = kept[b];

		kept[b] = sum;
		sum += here;
	}
	REQUIRE(sum == (int)want.size(), "%d pass, expected %zu", sum, want.size());
	CHECK(cudaMemcpy(dev_kept, kept.data(), blocks * 4, cudaMemcpyHostToDevice));
	move<<<blocks, THREADS>>>(dev_in, n, dev_kept, dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(got.data(), dev_out, sum * 4, cudaMemcpyDeviceToHost));
	REQUIRE(std::equal(want.begin(), want.end(), got.begin()), "elements out of place");

	CHECK(cudaMemset(dev_kept, 0, 8));
	CHECK(cudaMemset(dev_out, 0, n * 4));
	gather<<<blocks, THREADS>>>(dev_in, n, dev_out, dev_kept, dev_kept + 1);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(used, dev_kept, 8, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(got.data(), dev_out, sum * 4, cudaMemcpyDeviceToHost));
	REQUIRE(used[0] == sum, "%d gathered, expected %d", used[0], sum);
	REQUIRE(used[1] < sum, "%d requests for %d elements: nobody shared one", used[1], sum);
	std::sort(want.begin(), want.end());
	std::sort(got.begin(), got.begin() + sum);
	REQUIRE(std::equal(want.begin(), want.end(), got.begin()), "wrong elements gathered");
	CHECK(cudaFree(dev_in));
	CHECK(cudaFree(dev_out));
	CHECK(cudaFree(dev_kept));
	return verified("%d of %d elements moved together", sum, n);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernels for test_ptx_sm90.c: nvcc's code for barriers, pipelines and collectives on a GPU that
 * has instructions for them. compute_90 has them, compute_75 does not.
 */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_fp8.h>

namespace cg = cooperative_groups;

#define N 256

/*
 * In each round all threads write, arrive, wait and read a neighbour's value; then half of the
 * threads drop out.
 */
extern "C" __global__ void rounds(int *out)
{
	__shared__ cuda::barrier<cuda::thread_scope_block> bar;
	__shared__ int s[N];
	int t = threadIdx.x, sum = 0;

	if (!t)
		init(&bar, N);
	__syncthreads();
	for (int k = 0; k < 6; k++) {
		s[t] = t + k;
		auto token = bar.arrive();
		bar.wait(std::move(token));
		sum += s[t ^ 37];
		bar.arrive_and_wait();
	}
	/* Blocks write the same values, and none reads what another may have written. */
	if (t & 1) {
		out[t] = sum;
		bar.arrive_and_drop();
		return;
	}
	s[t] = sum;
	bar.arrive_and_wait();
	bar.arrive_and_wait();
	out[t] = sum + s[t ^ 2];
}

/* Copies through a barrier, and in a pipeline of two stages. */
extern "C" __global__ void copies(int *out, const int *in, int tiles)
{
	__shared__ cuda::barrier<cuda::thread_scope_block> bar;
	__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
	__shared__ alignas(16) int s[2][N];
	auto block = cg::this_thread_block();
	auto pipe = cuda::make_pipeline(block, &state);
	int t = threadIdx.x, sum = 0;

	if (!t)
		init(&bar, N);
	block.sync();
	cuda::memcpy_async(block, s[0], in, sizeof(s[0]), bar);
	bar.arrive_and_wait();
	sum = s[0][N - 1 - t];
	block.sync();
	for (int k = 0; k < tiles + 1; k++) {
		if (k < tiles) {
			pipe.producer_acquire();
			cuda::memcpy_async(block, s[k & 1], in + k * N, sizeof(s[0]), pipe);
			pipe.producer_commit();
		}
		if (k > 0) {
			pipe.consumer_wait();
			sum += s[(k - 1) & 1][N - 1 - t];
			pipe.consumer_release();
		}
	}
	out[t] = sum;
}

/* Tiles larger than a warp meet in memory that the system reserves. */
extern "C" __global__ void tiles(int *out)
{
	__shared__ cg::block_tile_memory<N> memory;
	auto block = cg::this_thread_block(memory);
	auto tile = cg::tiled_partition<128>(block);
	int t = threadIdx.x;

	out[t] = cg::reduce(tile, t, cg::plus<int>());
	out[t + N] = cg::exclusive_scan(tile, t, cg::plus<int>());
	out[t + 2 * N] = tile.any(t == 5) + 2 * tile.all(t < 128);
}

extern "C" __global__ void eights(unsigned char *codes, float *back, const float *in)
{
	int t = threadIdx.x;
	__nv_fp8_e4m3 a(in[t]);
	__nv_fp8_e5m2 b(in[t]);

	codes[t] = a.__x;
	codes[t + N] = b.__x;
	back[t] = float(a);
	back[t + N] = float(b);
}

/* Vectors of floats in one atomic, memory on the stack, and a different size for each thread. */
extern "C" __global__ void mixed(float *sums, int *out)
{
	int t = threadIdx.x, n = t % 13 + 1;
	int *p = (int *)alloca(n * sizeof(int));

#if __CUDA_ARCH__ >= 900
	atomicAdd((float4 *)sums, make_float4(1, t, 2, -t));
#endif
	for (int i = 0; i < n; i++)
		p[i] = t + i;
	out[t] = 0;
	for (int i = 0; i < n; i++)
		out[t] += p[n - 1 - i] * (i + 1);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cooperative launches: all blocks of the grid run at the same time and meet at grid.sync(). As
 * many blocks as the occupancy functions report can be launched; one more per multiprocessor
 * cannot. Also the attributes of cudaLaunchKernelExC, and how much shared memory a block may
 * have.
 */
#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

#define THREADS 64
#define ROUNDS	20

/* In every round each block needs what all other blocks wrote in the round before. */
__global__ void rounds(int *a, int *b, int blocks, int *late)
{
	cg::grid_group grid = cg::this_grid();
	int *from = a, *to = b;

	for (int r = 0; r < ROUNDS; r++) {
		if (threadIdx.x == 0) {
			int sum = 0;

			for (int i = 0; i < blocks; i++) {
				sum += from[i];
				if (from[i] < 0)
					atomicAdd(late, 1);
			}
			to[blockIdx.x] = (sum + blockIdx.x) % 1000003;
		}
		grid.sync();
		int *swap = from;

		from = to;
		to = swap;
	}
	if (grid.thread_rank() == 0)
		b[blocks] = (int)grid.size();
}

__global__ void plain(int *out)
{
	out[blockIdx.x] = blockIdx.x;
}

static void check_rounds(const int *got, int blocks)
{
	int *a = new int[blocks], *b = new int[blocks];

	for (int i = 0; i < blocks; i++)
		a[i] = i;
	for (int r = 0; r < ROUNDS; r++) {
		long sum = 0;

		for (int i = 0; i < blocks; i++)
			sum += a[i];
		for (int i = 0; i < blocks; i++)
			b[i] = (int)((sum + i) % 1000003);
		int *swap = a;

		a = b;
		b = swap;
	}
	for (int i = 0; i < blocks; i++)
		REQUIRE(got[i] == a[i], "block %d of %d: %d, not %d", i, blocks, got[i], a[i]);
	delete[] a;
	delete[] b;
}

static void run(int blocks, bool ex)
{
	int *a, *b, *late;
	void *args[] = {&a, &b, &blocks, &late};

	CHECK(cudaMallocManaged(&a, blocks * sizeof(int)));
	CHECK(cudaMallocManaged(&b, (blocks + 1) * sizeof(int)));
	CHECK(cudaMallocManaged(&late, sizeof(int)));
	for (int i = 0; i < blocks; i++) {
		a[i] = i;
		b[i] = -1;
	}
	*late = 0;
	if (ex) {
		cudaLaunchAttribute attr[3] = {};
		cudaLaunchConfig_t config = {};

		attr[0].id = cudaLaunchAttributeCooperative;
		attr[0].val.cooperative = 1;
		attr[1].id = cudaLaunchAttributePriority;
		attr[1].val.priority = 0;
		attr[2].id = cudaLaunchAttributeIgnore;
		config.gridDim = blocks;
		config.blockDim = THREADS;
		config.attrs = attr;
		config.numAttrs = 3;
		CHECK(cudaLaunchKernelExC(&config, (const void *)rounds, args));
	} else {
		CHECK(cudaLaunchCooperativeKernel(rounds, blocks, THREADS, args, 0, NULL));
	}
	CHECK(cudaDeviceSynchronize());
	REQUIRE(!*late, "%d reads came too early", *late);
	REQUIRE(b[blocks] == blocks * THREADS, "the grid has %d threads", b[blocks]);
	check_rounds(ROUNDS % 2 ? b : a, blocks);
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	CHECK(cudaFree(late));
}

static void attributes(void)
{
	cudaLaunchAttribute attr[2] = {};
	cudaLaunchConfig_t config = {};
	cudaEvent_t event;
	int *out, n = 0;
	void *args[] = {&out};
	size_t bytes;

	CHECK(cudaMallocManaged(&out, 8 * sizeof(int)));
	memset(out, 0xff, 8 * sizeof(int));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	config.gridDim = 8;
	config.blockDim = 1;
	config.attrs = attr;
	config.numAttrs = 1;
	attr[0].id = cudaLaunchAttributeLaunchCompletionEvent;
	attr[0].val.launchCompletionEvent.event = event;
	CHECK(cudaLaunchKernelExC(&config, (const void *)plain, args));
	CHECK(cudaEventSynchronize(event));
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < 8; i++)
		REQUIRE(out[i] == i, "block %d wrote %d", i, out[i]);
	config.attrs = NULL;
	EXPECT(cudaLaunchKernelExC(&config, (const void *)plain, args), cudaErrorInvalidValue);

	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, plain, 128, 0, 0));
	REQUIRE(n > 1, "%d blocks fit", n);
	CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, plain, 2, 128));
	REQUIRE(bytes >= 16 << 10, "%zu bytes for each of two blocks", bytes);
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, (const void *)plain, 128, bytes));
	REQUIRE(n >= 2, "%d blocks fit with %zu bytes", n, bytes);
	EXPECT(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, plain, 0, 128),
	       cudaErrorInvalidValue);
	EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, plain, 128, 0),
	       cudaErrorInvalidValue);
	/*
	 * The largest cluster has at least one block. As many clusters of one block fit as
	 * blocks do.
	 */
	attr[0].id = cudaLaunchAttributeClusterDimension;
	attr[0].val.clusterDim.x = attr[0].val.clusterDim.y = attr[0].val.clusterDim.z = 1;
	config.attrs = attr;
	n = 0;
	CHECK(cudaOccupancyMaxActiveClusters(&n, (const void *)plain, &config));
	REQUIRE(n > 1, "%d clusters fit", n);
	config.numAttrs = 0;
	n = 0;
	CHECK(cudaOccupancyMaxPotentialClusterSize(&n, (const void *)plain, &config));
	REQUIRE(n >= 1, "%d blocks in a cluster", n);
	CHECK(cudaOccupancyMaxActiveClusters(&n, (const void *)plain, &config));
	REQUIRE(n == 0, "%d clusters of no size", n);
	EXPECT(cudaOccupancyMaxPotentialClusterSize(NULL, (const void *)plain, &config),
	       cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaEventDestroy(event));
	CHECK(cudaFree(out));
}

int main(void)
{
	int per_sm, sms, most;
	int *none = NULL, zero = 0;
	void *args[] = {&none, &none, &zero, &none};

	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, rounds, THREADS, 0));
	CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	most = per_sm * sms;
	REQUIRE(per_sm > 0 && sms > 0, "%d blocks on %d multiprocessors", per_sm, sms);
	run(1, false);
	run(most < 100 ? most : 100, false);
	run(most, true);
	EXPECT(cudaLaunchCooperativeKernel(rounds, most + 1, THREADS, args, 0, NULL),
	       cudaErrorCooperativeLaunchTooLarge);
	(void)cudaGetLastError();
	CHECK(cudaDeviceSynchronize());
	attributes();
	return verified("grids of as many blocks as fit met %d times", ROUNDS);
}

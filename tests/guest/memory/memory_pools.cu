// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stream-ordered memory: cudaMallocAsync and cudaFreeAsync in the order of their stream, pools
 * with their attributes, a device's pool, and a row of allocations that add up to more memory
 * than the device has.
 */
#include "check.h"

#define N   (1 << 18)
#define MIB ((size_t)1 << 20)

__global__ void count_up(int *p, int n, int from)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = from + i;
}

__global__ void add(int *to, const int *a, const int *b, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		to[i] = a[i] + b[i];
}

static size_t get(cudaMemPool_t pool, cudaMemPoolAttr attr)
{
	uint64_t value = ~0ull;

	CHECK(cudaMemPoolGetAttribute(pool, attr, &value));
	return value;
}

/* The program waits only at the end: each free is behind the last use of its memory. */
static void in_order(void)
{
	static int got[8][N];
	cudaStream_t stream;
	int *a, *b, *sum;

	CHECK(cudaStreamCreate(&stream));
	for (int round = 0; round < 8; round++) {
		CHECK(cudaMallocAsync(&a, N * sizeof(int), stream));
		CHECK(cudaMallocAsync(&b, N * sizeof(int), stream));
		CHECK(cudaMallocAsync(&sum, N * sizeof(int), stream));
		count_up<<<16, 128, 0, stream>>>(a, N, round);
		count_up<<<16, 128, 0, stream>>>(b, N, 10 * round);
		add<<<16, 128, 0, stream>>>(sum, a, b, N);
		CHECK_LAUNCH();
		CHECK(cudaFreeAsync(a, stream));
		CHECK(cudaMemcpyAsync(got[round], sum, sizeof(got[0]), cudaMemcpyDeviceToHost,
				      stream));
		CHECK(cudaFreeAsync(b, stream));
		CHECK(cudaFreeAsync(sum, stream));
	}
	CHECK(cudaStreamSynchronize(stream));
	for (int round = 0; round < 8; round++)
		for (int i = 0; i < N; i++)
			REQUIRE(got[round][i] == 11 * round + 2 * i, "round %d: element %d is %d",
				round, i, got[round][i]);
	CHECK(cudaStreamDestroy(stream));
}

static void attributes(cudaMemPool_t pool)
{
	uint64_t threshold = 64 * MIB, zero = 0, one = 1;
	int flag = -1, off = 0;
	void *p;

	REQUIRE(get(pool, cudaMemPoolAttrUsedMemCurrent) == 0, "in use at first");
	CHECK(cudaMallocFromPoolAsync(&p, 3 * MIB, pool, NULL));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(get(pool, cudaMemPoolAttrUsedMemCurrent) >= 3 * MIB, "in use %zu",
		get(pool, cudaMemPoolAttrUsedMemCurrent));
	REQUIRE(get(pool, cudaMemPoolAttrReservedMemCurrent) >= 3 * MIB, "reserved");
	CHECK(cudaFreeAsync(p, NULL));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(get(pool, cudaMemPoolAttrUsedMemCurrent) == 0, "in use %zu after the free",
		get(pool, cudaMemPoolAttrUsedMemCurrent));
	REQUIRE(get(pool, cudaMemPoolAttrUsedMemHigh) >= 3 * MIB, "in use at most");
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
	REQUIRE(get(pool, cudaMemPoolAttrUsedMemHigh) == 0, "in use at most since then");
	EXPECT(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &one),
	       cudaErrorInvalidValue);
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	REQUIRE(get(pool, cudaMemPoolAttrReleaseThreshold) == threshold, "threshold");
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &flag));
	REQUIRE(flag == 1, "flag %d", flag);
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &off));
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &flag));
	REQUIRE(flag == 0, "flag %d", flag);
	CHECK(cudaMemPoolTrimTo(pool, 0));
	EXPECT(cudaMemPoolGetAttribute(pool, (cudaMemPoolAttr)100, &zero), cudaErrorInvalidValue);
	EXPECT(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, NULL),
	       cudaErrorInvalidValue);
	(void)cudaGetLastError();
}

static void pools(void)
{
	cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
	cudaMemAccessDesc access = {here, cudaMemAccessFlagsProtReadWrite};
	cudaMemPool_t first, pool, now;
	cudaMemAccessFlags flags;
	cudaMemPoolProps props = {};
	int *p, back[4];

	CHECK(cudaDeviceGetDefaultMemPool(&first, 0));
	CHECK(cudaDeviceGetMemPool(&now, 0));
	REQUIRE(now == first, "the device has another pool than its own");
	attributes(first);
	props.allocType = cudaMemAllocationTypePinned;
	props.location = here;
	CHECK(cudaMemPoolCreate(&pool, &props));
	REQUIRE(pool != first, "it is the default pool");
	attributes(pool);
	CHECK(cudaMemPoolGetAccess(&flags, pool, &here));
	REQUIRE(flags == cudaMemAccessFlagsProtReadWrite, "access %d", flags);
	CHECK(cudaMemPoolSetAccess(pool, &access, 1));

	CHECK(cudaDeviceSetMemPool(0, pool));
	CHECK(cudaDeviceGetMemPool(&now, 0));
	REQUIRE(now == pool, "the device has not got the pool");
	/* The same with the newer functions. */
	CHECK(cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, first));
	CHECK(cudaDeviceGetMemPool(&now, 0));
	REQUIRE(now == first, "the device has not got its own pool");
	CHECK(cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, pool));
	CHECK(cudaMemGetMemPool(&now, &here, cudaMemAllocationTypePinned));
	REQUIRE(now == pool, "the place has not got the pool");
	CHECK(cudaMemGetDefaultMemPool(&now, &here, cudaMemAllocationTypePinned));
	REQUIRE(now == first, "another default pool");
	CHECK(cudaMallocAsync(&p, MIB, NULL));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(get(pool, cudaMemPoolAttrUsedMemCurrent) >= MIB, "it comes from elsewhere");
	/*
	 * The pool is destroyed. Its memory stays until it is freed. cudaFree can free it, too.
	 */
	CHECK(cudaDeviceSetMemPool(0, first));
	CHECK(cudaMemPoolDestroy(pool));
	count_up<<<1, 4>>>(p, 4, 5);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, p, sizeof(back), cudaMemcpyDeviceToHost));
	REQUIRE(back[3] == 8, "%d", back[3]);
	CHECK(cudaFree(p));

	EXPECT(cudaMemPoolCreate(NULL, &props), cudaErrorInvalidValue);
	EXPECT(cudaMallocAsync((void **)NULL, 1, NULL), cudaErrorInvalidValue);
	EXPECT(cudaDeviceGetDefaultMemPool(&first, 1000), cudaErrorInvalidDevice);
	EXPECT(cudaMallocAsync(&p, (size_t)1 << 50, NULL), cudaErrorMemoryAllocation);
	(void)cudaGetLastError();
}

/* 12 GiB and more on devices of 4 GiB. Each piece is in use when the next one is allocated. */
static void one_after_another(void)
{
	size_t total, free_before, piece;
	char last = 0;
	void *p;

	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemGetInfo(&free_before, &total));
	piece = free_before / 3 < 256 * MIB ? free_before / 3 : 256 * MIB;
	for (int i = 0; i < 48; i++) {
		CHECK(cudaMallocAsync(&p, piece, NULL));
		CHECK(cudaMemsetAsync((char *)p + piece - 16, i, 16, NULL));
		CHECK(cudaMemcpyAsync(&last, (char *)p + piece - 1, 1, cudaMemcpyDeviceToHost,
				      NULL));
		CHECK(cudaFreeAsync(p, NULL));
	}
	CHECK(cudaDeviceSynchronize());
	REQUIRE(last == 47, "%d", last);
}

int main(void)
{
	int supported;

	CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
	REQUIRE(supported, "no memory pools");
	in_order();
	pools();
	one_after_another();
	return verified("memory came and went in the order of its streams");
}

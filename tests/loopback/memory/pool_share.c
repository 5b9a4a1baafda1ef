// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pools that processes share, as one process sees them: bad input, files that are no pools, and the
 * order of the stream, held by a gate.
 */
#define _GNU_SOURCE
#include <fcntl.h>

#include "tests/loopback/check.h"

#define LEN (1u << 20)
#define FD  cudaMemHandleTypePosixFileDescriptor

static _Atomic int hold;

static void wait_here(void *unused)
{
	(void)unused;
	while (hold)
		usleep(1000);
}

static uint64_t count(cudaMemPool_t pool, enum cudaMemPoolAttr attr)
{
	uint64_t value = 0;

	OK(cudaMemPoolGetAttribute(pool, attr, &value));
	return value;
}

static cudaMemPool_t make(size_t max)
{
	struct cudaMemPoolProps props = {
		.allocType = cudaMemAllocationTypePinned,
		.handleTypes = FD,
		.location = {cudaMemLocationTypeDevice, 0},
		.maxSize = max,
	};
	cudaMemPool_t pool;

	OK(cudaMemPoolCreate(&pool, &props));
	return pool;
}

static void *as_handle(int fd)
{
	return (void *)(intptr_t)fd;
}

static void bad_pools(cudaMemPool_t pool)
{
	cudaMemPool_t in, def;
	char junk[64] = "no pool";
	int fd = -1, file;

	OK(cudaDeviceGetDefaultMemPool(&def, 0));
	REFUSED(cudaMemPoolExportToShareableHandle(NULL, pool, FD, 0), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolExportToShareableHandle(&fd, NULL, FD, 0), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolExportToShareableHandle(&fd, def, FD, 0), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypeNone, 0),
		cudaErrorInvalidValue);
	REFUSED(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypeFabric, 0),
		cudaErrorNotSupported);
	REFUSED(cudaMemPoolExportToShareableHandle(&fd, pool, FD, 4), cudaErrorInvalidValue);
	REQUIRE(fd == -1, "a file all the same");

	REFUSED(cudaMemPoolImportFromShareableHandle(NULL, as_handle(0), FD, 0),
		cudaErrorInvalidValue);
	REFUSED(cudaMemPoolImportFromShareableHandle(&in, as_handle(-1), FD, 0),
		cudaErrorInvalidValue);
	REFUSED(cudaMemPoolImportFromShareableHandle(&in, as_handle(9999), FD, 0),
		cudaErrorInvalidValue);
	file = open("/dev/null", O_RDWR);
	REFUSED(cudaMemPoolImportFromShareableHandle(&in, as_handle(file), FD, 0),
		cudaErrorInvalidValue);
	close(file);
	/* A memfd that anyone may still change, and a sealed one with something else in it. */
	file = memfd_create("junk", MFD_ALLOW_SEALING);
	REQUIRE(write(file, junk, sizeof(junk)) == sizeof(junk), "write");
	REFUSED(cudaMemPoolImportFromShareableHandle(&in, as_handle(file), FD, 0),
		cudaErrorInvalidValue);
	REQUIRE(!fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW), "seal");
	REFUSED(cudaMemPoolImportFromShareableHandle(&in, as_handle(file), FD, 0),
		cudaErrorInvalidValue);
	close(file);
}

static void bad_pointers(cudaMemPool_t pool)
{
	struct cudaMemPoolPtrExportData data, wrong;
	cudaMemPool_t other = make(0), in, in_other;
	void *p, *plain, *got;
	int fd, fd_other;

	OK(cudaMalloc(&plain, LEN));
	OK(cudaMallocFromPoolAsync(&p, LEN, pool, NULL));
	OK(cudaMemPoolExportToShareableHandle(&fd, pool, FD, 0));
	OK(cudaMemPoolExportToShareableHandle(&fd_other, other, FD, 0));
	OK(cudaMemPoolImportFromShareableHandle(&in, as_handle(fd), FD, 0));
	OK(cudaMemPoolImportFromShareableHandle(&in_other, as_handle(fd_other), FD, 0));
	close(fd);
	close(fd_other);
	REFUSED(cudaMemPoolExportPointer(NULL, p), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolExportPointer(&data, NULL), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolExportPointer(&data, plain), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolExportPointer(&data, (char *)p + 256), cudaErrorInvalidValue);
	OK(cudaMemPoolExportPointer(&data, p));
	REFUSED(cudaMemPoolImportPointer(NULL, in, &data), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolImportPointer(&got, in, NULL), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolImportPointer(&got, NULL, &data), cudaErrorInvalidValue);
	/* Not a pool that was imported, and the import of another pool. */
	REFUSED(cudaMemPoolImportPointer(&got, pool, &data), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolImportPointer(&got, in_other, &data), cudaErrorInvalidValue);
	memset(&wrong, 0, sizeof(wrong));
	REFUSED(cudaMemPoolImportPointer(&got, in, &wrong), cudaErrorInvalidValue);
	wrong = data;
	wrong.reserved[sizeof(wrong.reserved) - 1] = 1;
	REFUSED(cudaMemPoolImportPointer(&got, in, &wrong), cudaErrorInvalidValue);
	/* The host's secret is wrong. */
	wrong = data;
	wrong.reserved[24] ^= 1;
	REQUIRE(cudaMemPoolImportPointer(&got, in, &wrong) != cudaSuccess, "a wrong secret");
	(void)cudaGetLastError();
	REFUSED(cudaMallocFromPoolAsync(&got, LEN, in, NULL), cudaErrorInvalidValue);
	REFUSED(cudaDeviceSetMemPool(0, in), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolExportToShareableHandle(&fd, in, FD, 0), cudaErrorInvalidValue);
	REFUSED(cudaFreeAsync((char *)p + 256, NULL), cudaErrorInvalidValue);
	OK(cudaFreeAsync(p, NULL));
	REFUSED(cudaFreeAsync(p, NULL), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolExportPointer(&data, p), cudaErrorInvalidValue);
	OK(cudaMemPoolDestroy(in_other));
	OK(cudaMemPoolDestroy(in));
	OK(cudaMemPoolDestroy(other));
	OK(cudaFree(plain));
}

/* A block whose free the stream has not reached is used again only behind the free. */
static void order(cudaMemPool_t pool)
{
	unsigned char byte = 0, *p, *again;
	cudaStream_t a, b;

	OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	OK(cudaDeviceSynchronize());
	OK(cudaMemPoolTrimTo(pool, 0));
	REQUIRE(!count(pool, cudaMemPoolAttrReservedMemCurrent), "trimmed to nothing");
	OK(cudaMallocFromPoolAsync((void **)&p, LEN, pool, a));
	REQUIRE(count(pool, cudaMemPoolAttrUsedMemCurrent) == LEN, "in use");
	hold = 1;
	OK(cudaLaunchHostFunc(a, wait_here, NULL));
	OK(cudaMemsetAsync(p, 1, LEN, a));
	OK(cudaFreeAsync(p, a));
	REQUIRE(!count(pool, cudaMemPoolAttrUsedMemCurrent), "in use");
	REQUIRE(count(pool, cudaMemPoolAttrUsedMemHigh) >= LEN, "the highest use");
	/* The stream is held before the free, so the block stays. */
	OK(cudaMemPoolTrimTo(pool, 0));
	REQUIRE(count(pool, cudaMemPoolAttrReservedMemCurrent) == LEN, "reserved");
	OK(cudaMallocFromPoolAsync((void **)&again, LEN, pool, b));
	REQUIRE(again == p, "another block");
	OK(cudaMemsetAsync(again, 2, LEN, b));
	EXPECT(cudaStreamQuery(b), cudaErrorNotReady);
	hold = 0;
	OK(cudaMemcpyAsync(&byte, again, 1, cudaMemcpyDeviceToHost, b));
	OK(cudaStreamSynchronize(b));
	REQUIRE(byte == 2, "the earlier stream's %d", byte);
	OK(cudaFree(again));
	OK(cudaMemPoolTrimTo(pool, 0));
	REQUIRE(!count(pool, cudaMemPoolAttrReservedMemCurrent), "trimmed to nothing");
	OK(cudaStreamDestroy(a));
	OK(cudaStreamDestroy(b));
}

static void limit(void)
{
	cudaMemPool_t pool = make(2 * LEN);
	void *p, *q, *r;

	REFUSED(cudaMallocFromPoolAsync(&p, 3 * LEN, pool, NULL), cudaErrorMemoryAllocation);
	OK(cudaMallocFromPoolAsync(&p, LEN, pool, NULL));
	OK(cudaMallocFromPoolAsync(&q, LEN, pool, NULL));
	REFUSED(cudaMallocFromPoolAsync(&r, LEN, pool, NULL), cudaErrorMemoryAllocation);
	/* What is free makes room for a larger block. */
	OK(cudaFreeAsync(p, NULL));
	OK(cudaFreeAsync(q, NULL));
	OK(cudaDeviceSynchronize());
	OK(cudaMallocFromPoolAsync(&r, 2 * LEN, pool, NULL));
	/* The block outlives the pool. */
	OK(cudaMemPoolDestroy(pool));
	OK(cudaMemset(r, 1, 2 * LEN));
	OK(cudaFreeAsync(r, NULL));
	OK(cudaDeviceSynchronize());
}

/* After a reset nothing of the old pool is left, and a new one with the same number works. */
static void reset(void)
{
	cudaMemPool_t pool = make(0);
	void *p, *q, *again;

	OK(cudaMallocFromPoolAsync(&p, LEN, pool, NULL));
	OK(cudaMallocFromPoolAsync(&q, LEN, pool, NULL));
	OK(cudaFreeAsync(q, NULL));
	OK(cudaDeviceReset());
	REFUSED(cudaFreeAsync(p, NULL), cudaErrorInvalidValue);
	pool = make(0);
	REQUIRE(!count(pool, cudaMemPoolAttrReservedMemCurrent), "reserved from the start");
	OK(cudaMallocFromPoolAsync(&again, LEN, pool, NULL));
	REQUIRE(count(pool, cudaMemPoolAttrReservedMemCurrent) == LEN, "reserved");
	OK(cudaMemset(again, 1, LEN));
	OK(cudaFree(again));
	OK(cudaMemPoolTrimTo(pool, 0));
	REQUIRE(!count(pool, cudaMemPoolAttrReservedMemCurrent), "trimmed to nothing");
	OK(cudaMemPoolDestroy(pool));
	OK(cudaGetLastError());
}

int main(void)
{
	cudaMemPool_t pool = make(0);

	bad_pools(pool);
	bad_pointers(pool);
	order(pool);
	limit();
	OK(cudaMemPoolDestroy(pool));
	reset();
	return 0;
}

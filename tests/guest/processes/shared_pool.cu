// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A memory pool that two processes share: one passes the pool's file descriptor and pointers to the
 * other, kernels of both work on the same memory, and each frees it in the order of a stream.
 */
#include "ipc.h"

#define COUNT (1u << 18)
#define BYTES (COUNT * sizeof(uint32_t))

static const cudaMemAllocationHandleType FD = cudaMemHandleTypePosixFileDescriptor;

__global__ void add(uint32_t *p, uint32_t n, uint32_t value)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += value;
}

static void run_add(uint32_t *p, uint32_t value, cudaStream_t stream)
{
	add<<<(COUNT + 255) / 256, 256, 0, stream>>>(p, COUNT, value);
	CHECK_LAUNCH();
}

static void expect(const uint32_t *p, uint32_t value, const char *what, cudaStream_t stream)
{
	uint32_t *host = (uint32_t *)malloc(BYTES), i;

	CHECK(cudaMemcpyAsync(host, p, BYTES, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (i = 0; i < COUNT; i++)
		REQUIRE(host[i] == value, "%s: %u at %u", what, host[i], i);
	free(host);
}

static cudaMemPool_t make(cudaMemAllocationHandleType type)
{
	struct cudaMemPoolProps props;
	cudaMemPool_t pool;

	memset(&props, 0, sizeof(props));
	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = type;
	props.location.type = cudaMemLocationTypeDevice;
	CHECK(cudaMemPoolCreate(&pool, &props));
	return pool;
}

static void child(const struct peer *parent)
{
	struct cudaMemPoolPtrExportData data[2], wrong;
	uint32_t *a, *b, *none;
	cudaStream_t stream;
	cudaMemPool_t pool;
	int fd = hear_file(parent);

	hear(parent, data, sizeof(data));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, FD, 0));
	close(fd);
	memset(&wrong, 0xff, sizeof(wrong));
	REQUIRE(cudaMemPoolImportPointer((void **)&none, pool, &wrong) != cudaSuccess, "a made-up pointer");
	(void)cudaGetLastError();
	REQUIRE(cudaMallocFromPoolAsync((void **)&none, BYTES, pool, stream) != cudaSuccess,
		"an imported pool gave memory");
	(void)cudaGetLastError();
	CHECK(cudaMemPoolImportPointer((void **)&a, pool, &data[0]));
	CHECK(cudaMemPoolImportPointer((void **)&b, pool, &data[1]));
	expect(a, 1, "what the parent wrote", stream);
	run_add(a, 10, stream);
	run_add(b, 20, stream);
	expect(b, 22, "what parent and child wrote", stream);
	/* In the order of the stream: the kernel before it still uses the memory. */
	run_add(a, 100, stream);
	CHECK(cudaFreeAsync(a, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaFree(b));
	CHECK(cudaMemPoolDestroy(pool));
	CHECK(cudaStreamDestroy(stream));
	meet(parent);
}

int main(void)
{
	struct peer peer = start_peer();
	struct cudaMemPoolPtrExportData data[2];
	uint32_t *a, *b, *c;
	cudaStream_t stream;
	cudaMemPool_t pool, own;
	uint64_t used = 0;
	int fd = -1, types = 0;

	if (!peer.pid) {
		child(&peer);
		return 0;
	}
	CHECK(cudaDeviceGetAttribute(&types, cudaDevAttrMemoryPoolSupportedHandleTypes, 0));
	REQUIRE(types & FD, "handle types %d", types);
	own = make(cudaMemHandleTypeNone);
	REQUIRE(cudaMemPoolExportToShareableHandle(&fd, own, FD, 0) != cudaSuccess,
		"a pool that is not for sharing");
	(void)cudaGetLastError();
	CHECK(cudaMemPoolDestroy(own));
	pool = make(FD);
	EXPECT(cudaMemPoolExportToShareableHandle(&fd, pool, FD, 1), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaMemPoolExportToShareableHandle(&fd, pool, FD, 0));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocFromPoolAsync((void **)&a, BYTES, pool, stream));
	CHECK(cudaMallocFromPoolAsync((void **)&b, BYTES, pool, stream));
	CHECK(cudaMemsetAsync(a, 0, BYTES, stream));
	CHECK(cudaMemsetAsync(b, 0, BYTES, stream));
	run_add(a, 1, stream);
	run_add(b, 2, stream);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemPoolExportPointer(&data[0], a));
	CHECK(cudaMemPoolExportPointer(&data[1], b));
	tell_file(&peer, fd);
	close(fd);
	tell(&peer, data, sizeof(data));
	meet(&peer);
	expect(a, 111, "what the child added", stream);
	expect(b, 22, "what the child added", stream);
	end_peer(&peer);

	/* Memory that comes back is right, whatever happens to the block in between. */
	run_add(a, 5, stream);
	CHECK(cudaFreeAsync(a, stream));
	CHECK(cudaMallocFromPoolAsync((void **)&c, BYTES, pool, stream));
	CHECK(cudaMemsetAsync(c, 0, BYTES, stream));
	run_add(c, 7, stream);
	expect(c, 7, "memory of the pool, used again", stream);
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
	REQUIRE(used >= 2 * BYTES && used < 4 * BYTES, "%llu bytes in use", (unsigned long long)used);
	CHECK(cudaFreeAsync(c, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemPoolTrimTo(pool, 0));
	CHECK(cudaMemPoolDestroy(pool));
	CHECK(cudaFree(b));
	return verified("two processes use the memory of one pool");
}

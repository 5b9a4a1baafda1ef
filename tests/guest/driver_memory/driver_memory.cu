// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory of a device and of the host: blocks, pitches, ranges, copies of runs, and wrong calls. */
#include "driver.h"

#define BYTES 70000

static void blocks(void)
{
	size_t free_bytes, total, pitch, size;
	CUdeviceptr a, base;

	DCHECK(cuMemGetInfo(&free_bytes, &total));
	REQUIRE(free_bytes && free_bytes <= total, "%zu of %zu", free_bytes, total);
	DEXPECT(cuMemAlloc(&a, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemAlloc(NULL, 100), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemAlloc(&a, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
	DCHECK(cuMemAlloc(&a, BYTES));
	DCHECK(cuMemGetAddressRange(&base, &size, a + 1000));
	REQUIRE(base == a && size == BYTES, "%zu", size);
	DEXPECT(cuMemFree(a + 1), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemFree(a));
	DEXPECT(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemGetAddressRange(&base, &size, 16), CUDA_ERROR_NOT_FOUND);
	DCHECK(cuMemAllocPitch(&a, &pitch, 1001, 7, 4));
	REQUIRE(pitch >= 1001, "%zu", pitch);
	DCHECK(cuMemFree(a));
	DEXPECT(cuMemAllocPitch(&a, &pitch, 1001, 7, 3), CUDA_ERROR_INVALID_VALUE);
}

static void pinned(void)
{
	unsigned char *p, *q;
	CUdeviceptr a, at;
	unsigned int flags;

	DCHECK(cuMemAlloc(&a, BYTES));
	DCHECK(cuMemAllocHost((void **)&p, BYTES));
	DCHECK(cuMemHostAlloc((void **)&q, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
	DCHECK(cuMemHostGetDevicePointer(&at, q, 0));
	DCHECK(cuMemHostGetFlags(&flags, q));
	REQUIRE(flags & CU_MEMHOSTALLOC_DEVICEMAP, "%x", flags);
	fill_words(p, BYTES, 1);
	memset(q, 0, BYTES);
	DCHECK(cuMemcpyHtoDAsync(a, p, BYTES, NULL));
	DCHECK(cuMemcpyDtoHAsync(q, a, BYTES, NULL));
	DCHECK(cuStreamSynchronize(NULL));
	REQUIRE(!memcmp(p, q, BYTES), "at %zu", first_difference(p, q, BYTES));
	/* Through the address that the device uses. */
	DCHECK(cuMemsetD8(at, 0x5a, BYTES));
	DCHECK(cuCtxSynchronize());
	REQUIRE(q[0] == 0x5a && q[BYTES - 1] == 0x5a, "%d %d", q[0], q[BYTES - 1]);
	DEXPECT(cuMemHostAlloc((void **)&q, BYTES, 0x100), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemFreeHost(p));
	DEXPECT(cuMemFreeHost(p), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemFreeHost(q));
	DCHECK(cuMemFree(a));
}

static void copies(void)
{
	static unsigned char from[BYTES], to[BYTES];
	CUdeviceptr a, b;

	fill_words(from, BYTES, 2);
	DCHECK(cuMemAlloc(&a, BYTES));
	DCHECK(cuMemAlloc(&b, BYTES));
	DCHECK(cuMemcpyHtoD(a, from, BYTES));
	DCHECK(cuMemcpyDtoD(b, a, BYTES));
	DCHECK(cuMemcpyDtoH(to, b, BYTES));
	REQUIRE(!memcmp(from, to, BYTES), "at %zu", first_difference(from, to, BYTES));
	memset(to, 0, BYTES);
	DCHECK(cuMemsetD8(b, 0, BYTES));
	DCHECK(cuMemcpyDtoDAsync(b + 100, a + 100, BYTES - 100, NULL));
	DCHECK(cuMemcpy((CUdeviceptr)(uintptr_t)to, b, BYTES));
	REQUIRE(!memcmp(from + 100, to + 100, BYTES - 100) && !to[99], "after 100");
	DEXPECT(cuMemcpyDtoH(to, a, BYTES + 1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemcpyHtoD(0, from, 4), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemcpyHtoD(a, from, 0));
	DCHECK(cuMemFree(a));
	DCHECK(cuMemFree(b));
}

static void registered(void)
{
	unsigned char *p = (unsigned char *)aligned_alloc(4096, 8192);
	CUdeviceptr at;

	REQUIRE(p, "no memory");
	DCHECK(cuMemHostRegister(p, 8192, CU_MEMHOSTREGISTER_DEVICEMAP));
	DEXPECT(cuMemHostRegister(p, 8192, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	DCHECK(cuMemHostGetDevicePointer(&at, p, 0));
	DCHECK(cuMemsetD32(at, 0x01020304, 2048));
	DCHECK(cuCtxSynchronize());
	REQUIRE(p[0] == 4 && p[8191] == 1, "%d %d", p[0], p[8191]);
	DCHECK(cuMemHostUnregister(p));
	DEXPECT(cuMemHostUnregister(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	free(p);
}

int main()
{
	driver_start();
	blocks();
	pinned();
	copies();
	registered();
	return verified("memory and copies of runs");
}

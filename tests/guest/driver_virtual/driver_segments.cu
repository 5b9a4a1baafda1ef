// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A segment that grows and shrinks, as an allocator uses one: a large reservation, in which pieces of
 * two sizes are mapped side by side, unmapped in the middle and mapped again. Kernels and copies cross
 * the borders of the pieces.
 */
#include "driver.h"

#define SMALL (2u << 20)
#define LARGE (20u << 20)
#define GIB   (1ull << 30)
#define COUNT ((2 * SMALL + LARGE) / 4)

static CUmemAccessDesc access_desc;
static CUmemAllocationProp prop;

static CUmemGenericAllocationHandle put(CUdeviceptr at, size_t size)
{
	CUmemGenericAllocationHandle handle;

	DCHECK(cuMemCreate(&handle, size, &prop, 0));
	DCHECK(cuMemMap(at, size, 0, handle, 0));
	DCHECK(cuMemSetAccess(at, size, &access_desc, 1));
	return handle;
}

static void take(CUdeviceptr at, size_t size, CUmemGenericAllocationHandle handle)
{
	DCHECK(cuMemUnmap(at, size));
	DCHECK(cuMemRelease(handle));
}

static void check_all(const unsigned int *got, unsigned int first)
{
	unsigned int i;

	for (i = 0; i < COUNT; i++)
		REQUIRE(got[i] == first + i, "%u is %u", i, got[i]);
}

int main()
{
	static unsigned int got[COUNT];
	CUmemGenericAllocationHandle piece[3];
	size_t before, after, total;
	unsigned int n = COUNT, value = 3, round;
	CUdeviceptr at;
	void *params[] = {&at, &n, &value};
	CUfunction fill;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	prop.location.id = driver_start();
	access_desc.location = prop.location;
	access_desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	fill = driver_function(driver_module(), "fill");
	DCHECK(cuMemGetInfo(&before, &total));
	DCHECK(cuMemAddressReserve(&at, 160 * GIB, 0, 0, 0));
	for (round = 0; round < 3; round++) {
		piece[0] = put(at, SMALL);
		piece[1] = put(at + SMALL, LARGE);
		piece[2] = put(at + SMALL + LARGE, SMALL);
		DCHECK(cuMemGetInfo(&after, &total));
		REQUIRE(after + 4 * COUNT <= before, "%zu of %zu", after, before);
		DCHECK(cuLaunchKernel(fill, (COUNT + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, params,
				      NULL));
		DCHECK(cuMemcpyDtoH(got, at, 4 * COUNT));
		check_all(got, value);
		/* New memory in the middle, at the address of the old. */
		take(at + SMALL, LARGE, piece[1]);
		DEXPECT(cuMemcpyDtoH(got, at, 4 * COUNT), CUDA_ERROR_INVALID_VALUE);
		piece[1] = put(at + SMALL, LARGE);
		DCHECK(cuMemcpyHtoD(at, got, 4 * COUNT));
		memset(got, 0, sizeof(got));
		DCHECK(cuMemcpyDtoH(got, at, 4 * COUNT));
		check_all(got, value);
		take(at + SMALL + LARGE, SMALL, piece[2]);
		take(at, SMALL, piece[0]);
		take(at + SMALL, LARGE, piece[1]);
		value += 1000;
	}
	DCHECK(cuMemAddressFree(at, 160 * GIB));
	DCHECK(cuMemGetInfo(&after, &total));
	REQUIRE(after == before, "%zu of %zu are free", after, before);
	return verified("a segment grows and shrinks");
}

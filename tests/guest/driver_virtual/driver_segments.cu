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

/*
 * Puts the pieces, uses them, takes them again. Returns whether less memory was free meanwhile, and as
 * much as before afterwards.
 */
static bool grow_and_shrink(CUdeviceptr at, CUfunction fill, unsigned int value)
{
	static unsigned int got[COUNT];
	CUmemGenericAllocationHandle piece[3];
	size_t before, meanwhile, after, total;
	unsigned int n = COUNT;
	void *params[] = {&at, &n, &value};

	DCHECK(cuMemGetInfo(&before, &total));
	piece[0] = put(at, SMALL);
	piece[1] = put(at + SMALL, LARGE);
	piece[2] = put(at + SMALL + LARGE, SMALL);
	DCHECK(cuMemGetInfo(&meanwhile, &total));
	DCHECK(cuLaunchKernel(fill, (COUNT + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
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
	DCHECK(cuMemGetInfo(&after, &total));
	return meanwhile + 4 * COUNT <= before && after == before;
}

int main()
{
	unsigned int round, same = 0;
	CUdeviceptr at;
	CUfunction fill;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	prop.location.id = driver_start();
	access_desc.location = prop.location;
	access_desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	fill = driver_function(driver_module(), "fill");
	DCHECK(cuMemAddressReserve(&at, 160 * GIB, 0, 0, 0));
	/* Other programs may use the GPU's memory at the same time, but not in every round. */
	for (round = 0; round < 3 || (!same && round < 40); round++)
		same += grow_and_shrink(at, fill, 3 + 1000 * round);
	REQUIRE(same, "the free memory is wrong in each of %u rounds", round);
	DCHECK(cuMemAddressFree(at, 160 * GIB));
	return verified("a segment grows and shrinks");
}

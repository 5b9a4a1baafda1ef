// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory without an address in two processes: one exports a file descriptor, the other imports it.
 */
#include "driver.h"
#include "processes/ipc.h"

static CUmemAllocationProp prop;
static CUmemAccessDesc access_desc;
static size_t unit;

static CUdeviceptr map(CUmemGenericAllocationHandle handle)
{
	CUdeviceptr at;

	DCHECK(cuMemAddressReserve(&at, unit, 0, 0, 0));
	DCHECK(cuMemMap(at, unit, 0, handle, 0));
	DCHECK(cuMemSetAccess(at, unit, &access_desc, 1));
	return at;
}

static unsigned int word_at(CUdeviceptr at)
{
	unsigned int value;

	DCHECK(cuMemcpyDtoH(&value, at, 4));
	return value;
}

static void start(void)
{
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = driver_start();
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	access_desc.location = prop.location;
	access_desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	DCHECK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

static void wrong(CUmemGenericAllocationHandle handle)
{
	const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	CUmemGenericAllocationHandle other;
	CUmemAllocationProp own = prop;
	int fd;

	own.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	DCHECK(cuMemCreate(&other, unit, &own, 0));
	DEXPECT(cuMemExportToShareableHandle(&fd, other, type, 0), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemRelease(other));
	DEXPECT(cuMemExportToShareableHandle(&fd, other, type, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemExportToShareableHandle(NULL, handle, type, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemExportToShareableHandle(&fd, handle, type, 1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_WIN32, 0),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemImportFromShareableHandle(&other, (void *)-1, type), CUDA_ERROR_UNKNOWN);
	DEXPECT(cuMemImportFromShareableHandle(&other, (void *)0, type), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemImportFromShareableHandle(NULL, (void *)0, type), CUDA_ERROR_INVALID_VALUE);
}

static void parent(const struct peer *p)
{
	CUmemGenericAllocationHandle handle, again;
	CUdeviceptr at;
	int fd;

	DCHECK(cuMemCreate(&handle, unit, &prop, 0));
	wrong(handle);
	at = map(handle);
	DCHECK(cuMemsetD32(at, 5, unit / 4));
	DCHECK(cuCtxSynchronize());
	DCHECK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					    0));
	/* The process itself gets another handle to the same memory. */
	DCHECK(cuMemImportFromShareableHandle(&again, (void *)(size_t)fd,
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	REQUIRE(word_at(map(again)) == 5, "another memory");
	tell_file(p, fd);
	meet(p);
	REQUIRE(word_at(at + 4) == 6, "%u", word_at(at + 4));
	REQUIRE(word_at(at) == 5, "%u", word_at(at));
}

static void child(const struct peer *p)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	int fd = hear_file(p);

	DCHECK(cuMemImportFromShareableHandle(&handle, (void *)(size_t)fd,
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	at = map(handle);
	REQUIRE(word_at(at + unit - 4) == 5, "%u", word_at(at + unit - 4));
	DCHECK(cuMemsetD32(at + 4, 6, 1));
	DCHECK(cuCtxSynchronize());
	meet(p);
	DCHECK(cuMemUnmap(at, unit));
	DCHECK(cuMemRelease(handle));
}

int main()
{
	const struct peer p = start_peer();

	start();
	if (!p.pid) {
		child(&p);
		return 0;
	}
	parent(&p);
	end_peer(&p);
	return verified("two processes see the same memory");
}

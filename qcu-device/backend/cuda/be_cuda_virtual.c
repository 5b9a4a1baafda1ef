// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Virtual memory of the cuda backend, by the driver's own functions. The table of ranges has the
 * mappings that a device may use. Mappings belong to the process and not to a context, so they
 * survive a reset.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qcu-device/backend/cuda/be_cuda.h"

_Static_assert(sizeof(struct be_pass_handle) <= BE_IPC_BYTES, "handles of files fit");

struct be_phys {
	CUmemGenericAllocationHandle h;
	unsigned int dev;
	uint64_t size;
	int fd; /* of imported memory, which CUDA does not export again; else -1 */
	bool offered;
	struct be_pass_handle offer;
};

#define FIND(be, name, version, fn) \
	PFN_##name##_##version fn;  \
	int ret = cu_driver_function(be, #name, &fn)

int cu_va_reserve(struct be *be, uint64_t size, uint64_t align, uint64_t *addr)
{
	CUdeviceptr p = 0;
	int ret = be->place.possible ? cu_use(be, cu_current()) : (int)QCU_ERR_NotSupported;

	*addr = 0;
	if (!ret && be->wanting)
		return cu_reserve_wanted(be, size, align, addr);
	if (!ret)
		ret = cu_area_take(be, size, align, 0, &p);
	*addr = ret ? 0 : p;
	return ret;
}

int cu_va_free(struct be *be, uint64_t addr, uint64_t size)
{
	return be->place.possible ? cu_area_give(be, addr, size) : (int)QCU_ERR_NotSupported;
}

static CUmemAllocationProp properties(unsigned int dev)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)dev},
	};
}

int cu_phys_grain(struct be *be, unsigned int dev, bool recommended, uint64_t *bytes)
{
	CUmemAllocationProp prop = properties(dev);
	size_t n = 0;
	FIND(be, cuMemGetAllocationGranularity, v10020, granularity);

	if (!ret)
		ret = cu_use(be, dev);
	if (!ret)
		ret = (int)granularity(&n, &prop,
				       recommended ? CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
						   : CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	*bytes = n;
	return ret;
}

static int make_phys_record(struct be *be, unsigned int dev, uint64_t size, struct be_phys **p)
{
	int ret = cu_use(be, dev);

	if (ret)
		return ret;
	*p = malloc(sizeof(**p));
	if (!*p)
		return QCU_ERR_MemoryAllocation;
	**p = (struct be_phys){.dev = dev, .size = size, .fd = -1};
	return QCU_ERR_Success;
}

/* Whether memory is compressible is known only when it is there. */
static bool is_compressible(struct be *be, const struct be_phys *p)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_INVALID};
	FIND(be, cuMemGetAllocationPropertiesFromHandle, v10020, ask);

	return !ret && !ask(&prop, p->h) &&
	       prop.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_GENERIC;
}

int cu_phys_create(struct be *be, unsigned int dev, uint64_t size, uint32_t flags,
		   struct be_phys **out, bool *compressible)
{
	CUmemAllocationProp prop = properties(dev);
	struct be_phys *p;
	FIND(be, cuMemCreate, v10020, create);

	if (flags & QCU_PHYS_SHAREABLE)
		prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	if (flags & QCU_PHYS_COMPRESSIBLE)
		prop.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
	if (!ret)
		ret = make_phys_record(be, dev, size, &p);
	if (ret)
		return ret;
	ret = (int)create(&p->h, size, &prop, 0);
	/* Kept memory may be what this allocation lacks. */
	if (ret == QCU_ERR_MemoryAllocation && cu_kept_drop(be, dev))
		ret = (int)create(&p->h, size, &prop, 0);
	if (ret) {
		free(p);
		return ret;
	}
	*compressible = flags & QCU_PHYS_COMPRESSIBLE && is_compressible(be, p);
	*out = p;
	return QCU_ERR_Success;
}

int cu_phys_destroy(struct be *be, struct be_phys *p)
{
	FIND(be, cuMemRelease, v10020, release);

	if (p->offered)
		be_pass_withdraw(&be->pass, &p->offer);
	if (p->fd >= 0)
		close(p->fd);
	if (!ret)
		ret = (int)release(p->h);
	free(p);
	return ret;
}

int cu_phys_map(struct be *be, struct be_phys *p, uint64_t offset, uint64_t addr, uint64_t size)
{
	FIND(be, cuMemMap, v10020, map);

	if (!ret)
		ret = cu_use(be, p->dev);
	return ret ? ret : (int)map(addr, size, offset, p->h, 0);
}

/* The driver takes the memory away at once, so all work must have ended. */
int cu_phys_unmap(struct be *be, uint64_t addr, uint64_t size)
{
	unsigned int dev;
	FIND(be, cuMemUnmap, v10020, unmap);

	cu_mem_unsee(be, addr);
	for (dev = 0; dev < be->devices; dev++)
		if (atomic_load(&be->used[dev]) && !cu_use(be, dev))
			(void)CU(be, cudaDeviceSynchronize);
	return ret ? ret : (int)unmap(addr, size);
}

int cu_phys_access(struct be *be, uint64_t addr, uint64_t size, unsigned int dev, uint32_t flags)
{
	const CUmemAccessDesc desc = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)dev},
		.flags = (CUmemAccess_flags)flags,
	};
	FIND(be, cuMemSetAccess, v10020, set_access);

	if (!ret)
		ret = cu_use(be, dev);
	if (!ret)
		ret = (int)set_access(addr, size, &desc, 1);
	return ret ? ret : cu_mem_see(be, addr, size, dev, flags != 0);
}

int cu_phys_file(struct be *be, struct be_phys *p, int *fd, uint64_t *size)
{
	FIND(be, cuMemExportToShareableHandle, v10020, export);

	*size = p->size;
	if (!ret && p->fd >= 0) {
		*fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
		return *fd < 0 ? QCU_ERR_OperatingSystem : QCU_ERR_Success;
	}
	return ret ? ret : (int)export(fd, p->h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

/* The memory lives on while its file is open, so the file is closed with it. */
int cu_phys_export(struct be *be, struct be_phys *p, void *handle)
{
	if (!p->offered) {
		uint64_t size;
		int fd, ret = cu_phys_file(be, p, &fd, &size);

		if (ret)
			return ret;
		p->offered = be_pass_offer(&be->pass, fd, &p->offer);
		if (!p->offered) {
			close(fd);
			return QCU_ERR_OperatingSystem;
		}
	}
	memcpy(handle, &p->offer, sizeof(p->offer));
	return QCU_ERR_Success;
}

int cu_phys_import(struct be *be, unsigned int dev, const void *handle, uint64_t size,
		   struct be_phys **out)
{
	struct be_pass_handle h;
	struct be_phys *p;
	FIND(be, cuMemImportFromShareableHandle, v10020, import);

	if (!ret)
		ret = make_phys_record(be, dev, size, &p);
	if (ret)
		return ret;
	memcpy(&h, handle, sizeof(h));
	p->fd = be_pass_take(&be->pass, &h);
	ret = QCU_ERR_InvalidValue;
	if (p->fd >= 0)
		ret = (int)import(&p->h, (void *)(uintptr_t)p->fd,
				  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (!ret) {
		*out = p;
		return QCU_ERR_Success;
	}
	if (p->fd >= 0)
		close(p->fd);
	free(p);
	return ret;
}

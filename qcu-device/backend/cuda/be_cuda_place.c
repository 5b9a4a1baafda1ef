// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device memory at addresses that the caller chooses. CUDA gives a reservation the address that it
 * is asked for if this address was free when CUDA started, and begins at a multiple of 32 MiB. So
 * the mirror frees its window while the backend opens. The addresses themselves are freed here just
 * before CUDA gets them. If CUDA chooses other addresses all the same, the memory cannot be placed,
 * and the answer is "not supported".
 *
 * All devices get access, so that a kernel of another device can use the memory, too. If a pair of
 * devices cannot reach each other, nothing is placed.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "qcu-device/backend/cuda/be_cuda.h"

/* Memory that is placed now. */
struct cu_placed {
	uint64_t addr;
	CUmemGenericAllocationHandle memory;
	struct cu_placed *next;
};

int cu_place_open(struct be *be)
{
	struct cu_place *p = &be->place;
	int ret = cu_driver_function(be, "cuMemAddressReserve", &p->reserve);

	if (!ret)
		ret = cu_driver_function(be, "cuMemAddressFree", &p->unreserve);
	if (!ret)
		ret = cu_driver_function(be, "cuMemCreate", &p->create);
	if (!ret)
		ret = cu_driver_function(be, "cuMemRelease", &p->release);
	if (!ret)
		ret = cu_driver_function(be, "cuMemMap", &p->map);
	if (!ret)
		ret = cu_driver_function(be, "cuMemUnmap", &p->unmap);
	if (!ret)
		ret = cu_driver_function(be, "cuMemSetAccess", &p->access);
	p->possible = !ret;
	if (cu_driver_function(be, "cuMemMapArrayAsync", &p->map_array))
		p->map_array = NULL;
	return pthread_mutex_init(&p->lock, NULL) ? QCU_ERR_OperatingSystem : QCU_ERR_Success;
}

/* May all devices use memory of this one? */
static bool reachable(struct be *be, unsigned int dev)
{
	unsigned int i;

	for (i = 0; i < be->devices; i++) {
		int can = i == dev;

		if (!can && (CU(be, cudaDeviceCanAccessPeer, &can, (int)i, (int)dev) || !can))
			return false;
	}
	return true;
}

static CUmemAccessDesc access_of(unsigned int dev)
{
	return (CUmemAccessDesc){
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)dev},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
}

/* The legacy stream would wait for all others. */
static int zero_mapped_memory(struct be *be, uint64_t addr, uint64_t len)
{
	cudaStream_t s;
	int ret = CU(be, cudaStreamCreateWithFlags, &s, cudaStreamNonBlocking);

	if (ret)
		return ret;
	ret = CU(be, cudaMemsetAsync, (void *)(uintptr_t)addr, 0, len, s);
	if (!ret)
		ret = CU(be, cudaStreamSynchronize, s);
	CU(be, cudaStreamDestroy, s);
	return ret;
}

/* Gives the mapped memory to all devices, all zero. */
static int give_to_all_devices(struct be *be, uint64_t addr, uint64_t len)
{
	CUmemAccessDesc access[CU_DEVICES];
	unsigned int i;
	int ret;

	for (i = 0; i < be->devices; i++)
		access[i] = access_of(i);
	ret = CU_DRIVER(be, access, (CUdeviceptr)addr, len, access, be->devices);
	return ret ? ret : zero_mapped_memory(be, addr, len);
}

static int map_new_memory(struct be *be, unsigned int dev, uint64_t addr, uint64_t len,
			  struct cu_placed *p)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)dev},
	};
	int ret = CU_DRIVER(be, create, &p->memory, len, &prop, 0);

	if (ret == QCU_ERR_MemoryAllocation && cu_kept_drop(be, dev))
		ret = CU_DRIVER(be, create, &p->memory, len, &prop, 0);
	if (ret)
		return ret;
	ret = CU_DRIVER(be, map, (CUdeviceptr)addr, len, 0, p->memory, 0);
	if (ret)
		goto err_release;
	ret = give_to_all_devices(be, addr, len);
	if (!ret)
		return ret;
	CU_DRIVER(be, unmap, (CUdeviceptr)addr, len);
err_release:
	CU_DRIVER(be, release, p->memory);
	return ret;
}

int cu_mem_place(struct be *be, unsigned int dev, uint64_t addr, uint64_t len, uint64_t room)
{
	struct cu_placed *p;
	int ret = cu_use(be, dev);

	if (ret)
		return ret;
	if (!be->place.possible || !reachable(be, dev))
		return QCU_ERR_NotSupported;
	p = calloc(1, sizeof(*p));
	if (!p)
		return QCU_ERR_MemoryAllocation;
	p->addr = addr;
	munmap((void *)(uintptr_t)addr, room);
	ret = cu_reserve_there(be, room, addr);
	if (ret)
		goto err_free;
	ret = map_new_memory(be, dev, addr, len, p);
	if (ret)
		goto err_unreserve;
	pthread_mutex_lock(&be->place.lock);
	p->next = be->place.placed;
	be->place.placed = p;
	pthread_mutex_unlock(&be->place.lock);
	return QCU_ERR_Success;

err_unreserve:
	CU_DRIVER(be, unreserve, (CUdeviceptr)addr, room);
err_free:
	free(p);
	return ret;
}

static struct cu_placed *take_placed_at(struct be *be, uint64_t addr)
{
	struct cu_placed **at, *p;

	pthread_mutex_lock(&be->place.lock);
	at = &be->place.placed;
	while (*at && (*at)->addr != addr)
		at = &(*at)->next;
	p = *at;
	if (p)
		*at = p->next;
	pthread_mutex_unlock(&be->place.lock);
	return p;
}

/* The memory goes even after an error, because the caller takes the addresses back. */
int cu_mem_unplace(struct be *be, unsigned int dev, uint64_t addr, uint64_t len, uint64_t room)
{
	struct cu_placed *p = take_placed_at(be, addr);
	int ret, err;
	unsigned int i;

	if (!p)
		return QCU_ERR_InvalidValue;
	ret = cu_use(be, dev);
	for (i = 0; i < be->devices && !ret; i++)
		if (atomic_load(&be->used[i])) {
			ret = cu_use(be, i);
			err = CU(be, cudaDeviceSynchronize);
			ret = ret ? ret : err;
		}
	err = CU_DRIVER(be, unmap, (CUdeviceptr)addr, len);
	ret = ret ? ret : err;
	err = CU_DRIVER(be, release, p->memory);
	ret = ret ? ret : err;
	err = CU_DRIVER(be, unreserve, (CUdeviceptr)addr, room);
	free(p);
	return ret ? ret : err;
}

void cu_place_close(struct be *be)
{
	pthread_mutex_destroy(&be->place.lock);
}

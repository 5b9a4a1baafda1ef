// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Host memory that the GPU may use in place. Guest chunks lie in a window at addresses that CUDA
 * never chooses itself. So after cudaHostRegister, the host pointer and the device pointer are the
 * same number.
 */
#include <stdlib.h>

#include "qcu-device/backend/cuda/be_cuda.h"

#define FLAGS (cudaHostRegisterPortable | cudaHostRegisterMapped)

/* Called under the lock. */
static void restore(struct be *be, unsigned int dev)
{
	struct cu_host *h;

	for (h = be->hosts; h < be->hosts + be->host_count; h++) {
		if (h->dev != dev || !h->lost)
			continue;
		CU(be, cudaHostRegister, h->addr, h->len, FLAGS);
		h->lost = false;
	}
}

/* The calling thread is the first one to use the device in this life of the device. */
static void first_use(struct be *be, unsigned int dev)
{
	pthread_mutex_lock(&be->host_lock);
	restore(be, dev);
	cu_fault_prepare(dev);
	cu_rooms_make(be);
	atomic_store_explicit(&be->used[dev], true, memory_order_release);
	pthread_mutex_unlock(&be->host_lock);
}

int cu_host_open(struct be *be)
{
	be->first_use = first_use;
	return pthread_mutex_init(&be->host_lock, NULL) ? QCU_ERR_OperatingSystem : 0;
}

void cu_host_close(struct be *be)
{
	size_t i;

	for (i = 0; i < be->host_count; i++) {
		if (!be->hosts[i].lost && !cu_use(be, be->hosts[i].dev))
			CU(be, cudaHostUnregister, be->hosts[i].addr);
	}
	free(be->hosts);
	pthread_mutex_destroy(&be->host_lock);
}

static bool make_room_in_hosts(struct be *be)
{
	size_t room = be->host_room ? 2 * be->host_room : 64;
	struct cu_host *more;

	if (be->host_count < be->host_room)
		return true;
	more = realloc(be->hosts, room * sizeof(*more));
	if (!more)
		return false;
	be->hosts = more;
	be->host_room = room;
	return true;
}

int cu_host_register(struct be *be, void *addr, size_t len)
{
	unsigned int dev = cu_current();
	void *mapped = NULL;
	int ret = cu_use(be, dev);

	if (ret)
		return ret;
	pthread_mutex_lock(&be->host_lock);
	if (!make_room_in_hosts(be)) {
		ret = QCU_ERR_MemoryAllocation;
		goto out;
	}
	ret = CU(be, cudaHostRegister, addr, len, FLAGS);
	if (ret)
		goto out;
	/* All code above relies on one number for both. A GPU that needs two is refused here. */
	ret = CU(be, cudaHostGetDevicePointer, &mapped, addr, 0);
	if (!ret && mapped != addr)
		ret = QCU_ERR_NotSupported;
	if (ret) {
		CU(be, cudaHostUnregister, addr);
		goto out;
	}
	be->hosts[be->host_count++] = (struct cu_host){.addr = addr, .len = len, .dev = dev};
out:
	pthread_mutex_unlock(&be->host_lock);
	return ret;
}

/*
 * CUDA does not say that cudaHostUnregister waits for work that uses the memory, and the pages go
 * to another owner next. So wait for every device that this process uses.
 */
static void wait_for_devices(struct be *be)
{
	unsigned int back = cu_current();
	unsigned int i;

	for (i = 0; i < be->devices; i++) {
		if (atomic_load(&be->used[i]) && !cu_use(be, i))
			CU(be, cudaDeviceSynchronize);
	}
	if (cu_current() != back)
		cu_use(be, back);
}

int cu_host_unregister(struct be *be, void *addr)
{
	struct cu_host h = {0};
	bool found = false;
	size_t i;
	int ret;

	pthread_mutex_lock(&be->host_lock);
	for (i = 0; i < be->host_count && !found; i++) {
		if (be->hosts[i].addr != addr)
			continue;
		found = true;
		h = be->hosts[i];
		be->hosts[i] = be->hosts[--be->host_count];
	}
	pthread_mutex_unlock(&be->host_lock);
	if (!found)
		return QCU_ERR_HostMemoryNotRegistered;
	wait_for_devices(be);
	if (h.lost)
		return QCU_ERR_Success;
	ret = cu_use(be, h.dev);
	return ret ? ret : CU(be, cudaHostUnregister, addr);
}

/*
 * A reset of the device ends the registrations made on it, but the caller still counts on them. For
 * most programs, a reset is the last thing that they do. So the memory is registered again, in a
 * new context, only when the device is used again. But if other devices are in use, they may be
 * using the memory now, and it is registered again at once.
 */
void cu_host_reset(struct be *be, unsigned int dev)
{
	bool others = false;
	size_t i;

	pthread_mutex_lock(&be->host_lock);
	for (i = 0; i < be->host_count; i++)
		be->hosts[i].lost |= be->hosts[i].dev == dev;
	for (i = 0; i < be->devices; i++)
		others |= i != dev && atomic_load(&be->used[i]);
	if (others)
		restore(be, dev);
	else
		atomic_store(&be->used[dev], false);
	pthread_mutex_unlock(&be->host_lock);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Asynchronous notifications. CUDA has one kind: the process uses more memory than its budget. Here
 * an allocation beyond the budget fails, so no process is ever over it, and no callback is called.
 * Registrations are kept and checked as in CUDA.
 */
#include <stdlib.h>
#include <sys/queue.h>

#include "qcu-library/device/device.h"
#include "qcu-library/link/fork.h"

struct cudaAsyncCallbackEntry {
	int device;
	LIST_ENTRY(cudaAsyncCallbackEntry) link;
};

static struct {
	LIST_HEAD(, cudaAsyncCallbackEntry) entries;
} process;
QCUL_AT_FORK(QCUL_FORK_NOTIFY)

static cudaError_t add_registration(int device, cudaAsyncCallbackHandle_t *handle)
{
	struct cudaAsyncCallbackEntry *e = malloc(sizeof(*e));

	if (!e)
		return cudaErrorMemoryAllocation;
	e->device = device;
	pthread_mutex_lock(&at_fork.lock);
	LIST_INSERT_HEAD(&process.entries, e, link);
	pthread_mutex_unlock(&at_fork.lock);
	*handle = e;
	return cudaSuccess;
}

cudaError_t cudaDeviceRegisterAsyncNotification(int device, cudaAsyncCallback callback, void *data,
						cudaAsyncCallbackHandle_t *handle)
{
	cudaError_t err = callback && handle ? qcul_device_ready(device) : cudaErrorInvalidValue;

	(void)data;
	return qcul_done(err ? err : add_registration(device, handle));
}

static cudaError_t remove_registration(int device, cudaAsyncCallbackHandle_t handle)
{
	struct cudaAsyncCallbackEntry *e;
	bool found;

	pthread_mutex_lock(&at_fork.lock);
	LIST_FOREACH(e, &process.entries, link)
		if (e == handle && e->device == device)
			break;
	found = e;
	if (found)
		LIST_REMOVE(e, link);
	pthread_mutex_unlock(&at_fork.lock);
	free(e);
	return found ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaDeviceUnregisterAsyncNotification(int device, cudaAsyncCallbackHandle_t handle)
{
	cudaError_t err = handle ? qcul_device_ready(device) : cudaErrorInvalidValue;

	return qcul_done(err ? err : remove_registration(device, handle));
}

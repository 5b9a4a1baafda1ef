// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What all other files of this backend call: the thread's device, the driver's functions, and
 * CUDA's results.
 */
#include <stdio.h>
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"

/* cudaSetDevice binds a context at each call, and a lane seldom changes its device. */
static _Thread_local int current_device = -1;

int cu_result(const struct be *be, cudaError_t err, const char *call)
{
	if (err == cudaSuccess)
		return QCU_ERR_Success;
	cudaGetLastError();
	cu_note_fault(err);
	if (be && be->verbose && be->complain && err != cudaErrorNotReady) {
		char text[160];

		snprintf(text, sizeof(text), "%s: %d, %s", call, err, cudaGetErrorString(err));
		be->complain("cuda", text, strlen(text));
	}
	return err;
}

/* Of each function the newest form up to this version; all names that are asked for exist in it. */
#define DRIVER_VERSION 12080

int cu_driver_function(const struct be *be, const char *name, void *fn)
{
	enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
	int ret = CU(be, cudaGetDriverEntryPointByVersion, name, fn, DRIVER_VERSION,
		     cudaEnableLegacyStream, &found);

	if (!ret && (found != cudaDriverEntryPointSuccess || !*(void **)fn))
		ret = QCU_ERR_CallRequiresNewerDriver;
	return ret;
}

int cu_use(struct be *be, unsigned int dev)
{
	int ret;

	if (dev >= be->devices)
		return QCU_ERR_InvalidDevice;
	if (current_device != (int)dev) {
		ret = CU(be, cudaSetDevice, dev);
		if (ret)
			return ret;
		current_device = dev;
	}
	/*
	 * Only read it here: with a write, lanes would take the cache line from one another at each
	 * launch.
	 */
	if (!atomic_load_explicit(&be->used[dev], memory_order_acquire))
		be->first_use(be, dev);
	return QCU_ERR_Success;
}

unsigned int cu_current(void)
{
	return current_device < 0 ? 0 : current_device;
}

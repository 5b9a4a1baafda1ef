// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The driver that is not there: how often it is open, its properties and its parameters. The values
 * are those of NVIDIA's library in compatibility mode. They change nothing.
 */
#include <pthread.h>
#include <stdint.h>

#include "qcu-library/cufile/cufile.h"

#define VERSION 1200 /* 1.20 */
#define SIZES	12
#define BOOLS	14

static struct {
	pthread_mutex_t lock;
	long uses;
	size_t size[SIZES];
	bool flag[BOOLS];
} driver = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.size = {[CUFILE_PARAM_EXECUTION_MAX_IO_QUEUE_DEPTH] = 128,
		 [CUFILE_PARAM_EXECUTION_MAX_IO_THREADS] = 8,
		 [CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB] = 1024,
		 [CUFILE_PARAM_EXECUTION_MAX_REQUEST_PARALLELISM] = 4,
		 [CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB] = 16384,
		 [CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB] = 131072,
		 [CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB] = 1024,
		 [CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB] = SIZE_MAX >> 10 & ~3ul,
		 [CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE] = QCUF_BATCH_MOST,
		 [CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB] = 4,
		 [CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS] = 5},
	.flag = {[CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE] = true,
		 [CUFILE_PARAM_EXECUTION_PARALLEL_IO] = true,
		 [CUFILE_PARAM_PROPERTIES_ALLOW_SYSTEM_MEMORY] = true},
};

/* `first`: only if nobody has. */
static CUfileError_t open_driver(bool first)
{
	int devices;
	CUfileError_t err = qcuf_cuda(cudaGetDeviceCount(&devices));

	if (err.err)
		return err;
	pthread_mutex_lock(&driver.lock);
	if (!first || !driver.uses)
		driver.uses++;
	pthread_mutex_unlock(&driver.lock);
	return err;
}

CUfileError_t qcuf_open_once(void)
{
	return open_driver(true);
}

QCUF_PUBLIC CUfileError_t cuFileDriverOpen(void)
{
	return open_driver(false);
}

QCUF_PUBLIC CUfileError_t cuFileDriverClose(void)
{
	CUfileOpError err = CU_FILE_DRIVER_NOT_INITIALIZED;

	pthread_mutex_lock(&driver.lock);
	if (driver.uses) {
		driver.uses--;
		err = CU_FILE_SUCCESS;
	}
	pthread_mutex_unlock(&driver.lock);
	return qcuf_error(err);
}

#undef cuFileDriverClose
QCUF_PUBLIC CUfileError_t cuFileDriverClose(void);

/* The name before version 2. */
QCUF_PUBLIC CUfileError_t cuFileDriverClose(void)
{
	return cuFileDriverClose_v2();
}

QCUF_PUBLIC long cuFileUseCount(void)
{
	long uses;

	pthread_mutex_lock(&driver.lock);
	uses = driver.uses;
	pthread_mutex_unlock(&driver.lock);
	return uses;
}

QCUF_PUBLIC CUfileError_t cuFileDriverGetProperties(CUfileDrvProps_t *props)
{
	const size_t *size = driver.size;

	if (!props)
		return qcuf_error(CU_FILE_INVALID_VALUE);
	pthread_mutex_lock(&driver.lock);
	*props = (CUfileDrvProps_t){
		.nvfs.poll_thresh_size = size[CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB],
		.nvfs.max_direct_io_size = size[CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB],
		.nvfs.dcontrolflags =
			(unsigned)driver.flag[CUFILE_PARAM_PROPERTIES_USE_POLL_MODE]
				<< CU_FILE_USE_POLL_MODE |
			(unsigned)driver.flag[CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE]
				<< CU_FILE_ALLOW_COMPAT_MODE,
		/* Dynamic routing, batches, streams, parallel transfers. */
		.fflags = 0xf,
		.max_device_cache_size =
			(unsigned)size[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB],
		.per_buffer_cache_size =
			(unsigned)size[CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB],
		.max_device_pinned_mem_size =
			(unsigned)size[CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB],
		.max_batch_io_size = QCUF_BATCH_MOST,
		.max_batch_io_timeout_msecs =
			(unsigned)size[CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS],
	};
	pthread_mutex_unlock(&driver.lock);
	return qcuf_error(CU_FILE_SUCCESS);
}

/* Natively, too, an open driver keeps what it had, and the call succeeds. */
static CUfileError_t set_property(bool right, CUFileSizeTConfigParameter_t param, size_t kb)
{
	if (!right)
		return qcuf_error(CU_FILE_INVALID_VALUE);
	pthread_mutex_lock(&driver.lock);
	if (!driver.uses)
		driver.size[param] = kb;
	pthread_mutex_unlock(&driver.lock);
	return qcuf_error(CU_FILE_SUCCESS);
}

QCUF_PUBLIC CUfileError_t cuFileDriverSetPollMode(bool poll, size_t kb)
{
	CUfileError_t err = set_property(kb && kb % 4 == 0, CUFILE_PARAM_POLLTHRESHOLD_SIZE_KB, kb);

	if (!err.err)
		(void)cuFileSetParameterBool(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE, poll);
	return err;
}

QCUF_PUBLIC CUfileError_t cuFileDriverSetMaxDirectIOSize(size_t kb)
{
	return set_property(kb >= 64 && kb <= 16384 && kb % 64 == 0,
			    CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB, kb);
}

QCUF_PUBLIC CUfileError_t cuFileDriverSetMaxCacheSize(size_t kb)
{
	return set_property(true, CUFILE_PARAM_PROPERTIES_MAX_DEVICE_CACHE_SIZE_KB, kb);
}

QCUF_PUBLIC CUfileError_t cuFileDriverSetMaxPinnedMemSize(size_t kb)
{
	return set_property(true, CUFILE_PARAM_PROPERTIES_MAX_DEVICE_PINNED_MEM_SIZE_KB, kb);
}

QCUF_PUBLIC CUfileError_t cuFileGetVersion(int *version)
{
	if (!version)
		return qcuf_error(CU_FILE_INVALID_VALUE);
	*version = VERSION;
	return qcuf_error(CU_FILE_SUCCESS);
}

/* ---- parameters ---- */

static bool is_size(CUFileSizeTConfigParameter_t param)
{
	return (unsigned int)param < SIZES;
}

static bool is_flag(CUFileBoolConfigParameter_t param)
{
	return (unsigned int)param < BOOLS && param != CUFILE_PARAM_PROFILE_NVTX;
}

QCUF_PUBLIC CUfileError_t cuFileGetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t *value)
{
	if (!is_size(param) || !value)
		return qcuf_error(CU_FILE_INVALID_VALUE);
	pthread_mutex_lock(&driver.lock);
	*value = driver.size[param];
	pthread_mutex_unlock(&driver.lock);
	return qcuf_error(CU_FILE_SUCCESS);
}

QCUF_PUBLIC CUfileError_t cuFileGetParameterBool(CUFileBoolConfigParameter_t param, bool *value)
{
	if (!is_flag(param) || !value)
		return qcuf_error(CU_FILE_INVALID_VALUE);
	pthread_mutex_lock(&driver.lock);
	*value = driver.flag[param];
	pthread_mutex_unlock(&driver.lock);
	return qcuf_error(CU_FILE_SUCCESS);
}

/* Only before the driver is open. */
QCUF_PUBLIC CUfileError_t cuFileSetParameterSizeT(CUFileSizeTConfigParameter_t param, size_t value)
{
	CUfileOpError err = CU_FILE_SUCCESS;

	if (!is_size(param))
		return qcuf_error(CU_FILE_INVALID_VALUE);
	pthread_mutex_lock(&driver.lock);
	if (driver.uses)
		err = CU_FILE_DRIVER_ALREADY_OPEN;
	else
		driver.size[param] = value;
	pthread_mutex_unlock(&driver.lock);
	return qcuf_error(err);
}

QCUF_PUBLIC CUfileError_t cuFileSetParameterBool(CUFileBoolConfigParameter_t param, bool value)
{
	CUfileOpError err = CU_FILE_SUCCESS;

	if (!is_flag(param))
		return qcuf_error(CU_FILE_INVALID_VALUE);
	pthread_mutex_lock(&driver.lock);
	if (driver.uses)
		err = CU_FILE_DRIVER_ALREADY_OPEN;
	else
		driver.flag[param] = value;
	pthread_mutex_unlock(&driver.lock);
	return qcuf_error(err);
}

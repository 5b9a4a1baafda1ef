// SPDX-License-Identifier: LGPL-2.1-or-later
/* Devices: the current device of each thread, flags, synchronising, resetting. */
#include <stdio.h>
#include <string.h>

#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/libs/libs.h"

static struct {
	atomic_uint device_flags;
	atomic_int cache_config;
} process = {.device_flags = cudaDeviceMapHost, .cache_config = cudaFuncCachePreferNone};

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t err;

	if (!count)
		return qcul_done(cudaErrorInvalidValue);
	err = qcul_open();
	*count = err ? 0 : qcul_device_count();
	return qcul_done(err);
}

cudaError_t cudaSetDevice(int device)
{
	cudaError_t err = qcul_device_check(device);

	if (!err) {
		qcul_self.device = device;
		qcul_self.device_chosen = true;
		qcul_self_context(NULL, NULL, NULL);
		qcul_device_bind();
	}
	return qcul_done(err);
}

cudaError_t cudaGetDevice(int *device)
{
	cudaError_t err = device ? qcul_open() : cudaErrorInvalidValue;

	if (!err)
		*device = qcul_self.device;
	return qcul_done(err);
}

/* The flags also decide how this process waits for the mirror. */
static void set_flags(unsigned int flags)
{
	unsigned int how = flags & cudaDeviceScheduleMask;

	atomic_store(&process.device_flags, flags | cudaDeviceMapHost);
	if (how & (cudaDeviceScheduleSpin | cudaDeviceScheduleYield))
		qcul_wait_how(QCU_WAIT_LOOK);
	else
		qcul_wait_how(how & cudaDeviceScheduleBlockingSync ? QCU_WAIT_SLEEP
								   : QCU_WAIT_ADAPT);
}

cudaError_t cudaInitDevice(int device, unsigned int device_mask, unsigned int flags)
{
	cudaError_t err = qcul_device_check(device);

	/* Unknown bits in `flags` are not an error here. */
	if (!err && flags & cudaInitDeviceFlagsAreValid && device_mask & ~cudaDeviceMask)
		err = cudaErrorInvalidValue;
	if (!err && flags & cudaInitDeviceFlagsAreValid)
		set_flags(device_mask);
	return qcul_done(err);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	if (flags & ~cudaDeviceMask)
		return qcul_done(cudaErrorInvalidValue);
	set_flags(flags);
	return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	if (!flags)
		return qcul_done(cudaErrorInvalidValue);
	*flags = atomic_load(&process.device_flags);
	return cudaSuccess;
}

/* This is only a preference. Hardware with one pool for L1 cache and shared memory may ignore it.
 */
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
	cudaError_t err = config > cudaFuncCachePreferEqual ? cudaErrorInvalidValue : qcul_ready();

	if (!err)
		atomic_store(&process.cache_config, (int)config);
	return qcul_done(err);
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
	cudaError_t err = config ? qcul_ready() : cudaErrorInvalidValue;

	if (!err)
		*config = (enum cudaFuncCache)atomic_load(&process.cache_config);
	return qcul_done(err);
}

cudaError_t cudaDeviceSynchronize(void)
{
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_capture_unsafe();
	if (err)
		return qcul_done(err);
	err = qcul_device_wait(qcul_self.device);
	qcul_print_flush();
	return qcul_done(err);
}

/*
 * Frees everything that the process has on the device. This does not repair a broken context: as
 * with NVIDIA's runtime, later calls find the device unavailable.
 */
cudaError_t cudaDeviceReset(void)
{
	struct qCUcmd cmd;
	cudaError_t err = qcul_open();

	if (err)
		return qcul_done(err);
	if (qcul_broken()) {
		qcul_break(cudaErrorDevicesUnavailable);
		return cudaSuccess;
	}
	qcul_host_drop();
	qcul_ahead_drop();
	cmd = qcul_cmd(QCU_OP_DEVICE_RESET);
	err = qcul_send(&cmd, 1);
	qcul_print_flush();
	if (!err) {
		qcul_limits_forget();
		qcul_forget(qcul_self.device);
		qcul_device_unbind(qcul_self.device);
	}
	return qcul_done(err);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	struct qCUcmd cmd;
	cudaError_t err = qcul_ready();

	if (err)
		return qcul_done(err);
	qcul_ahead_drop();
	cmd = qcul_cmd(QCU_OP_MEM_INFO);
	err = qcul_send(&cmd, 1);
	if (!err && free_bytes)
		*free_bytes = cmd.mem_info.free;
	if (!err && total_bytes)
		*total_bytes = cmd.mem_info.total;
	return qcul_done(err);
}

/* Without a device there is no GPU driver either. The version is then 0, and this is no error. */
cudaError_t cudaDriverGetVersion(int *version)
{
	if (!version)
		return qcul_done(cudaErrorInvalidValue);
	*version = qcul_open() == cudaSuccess ? (int)qcul_info()->driver_version : 0;
	return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return qcul_done(cudaErrorInvalidValue);
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int len, int device)
{
	const struct qcu_device_desc *d;
	char full[32];
	cudaError_t err;
	int n;

	if (!text)
		return qcul_done(cudaErrorInvalidValue);
	err = qcul_device_desc(device, &d);
	if (err)
		return qcul_done(err);
	n = snprintf(full, sizeof(full), "%04X:%02X:%02X.0",
		     (unsigned int)d->attr[cudaDevAttrPciDomainId],
		     (unsigned int)d->attr[cudaDevAttrPciBusId],
		     (unsigned int)d->attr[cudaDevAttrPciDeviceId]);
	if (len <= n)
		return qcul_done(cudaErrorInvalidValue);
	memcpy(text, full, (size_t)n + 1);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
	unsigned int domain = 0, bus, slot, function = 0;
	int i, used = 0;
	cudaError_t err;

	if (!device || !text)
		return qcul_done(cudaErrorInvalidValue);
	if (sscanf(text, "%x:%x:%x%n.%x", &domain, &bus, &slot, &used, &function) < 3) {
		domain = 0;
		if (sscanf(text, "%x:%x%n.%x", &bus, &slot, &used, &function) < 2)
			return qcul_done(cudaErrorInvalidValue);
	}
	err = qcul_open();
	if (err)
		return qcul_done(err);
	for (i = 0; i < qcul_device_count(); i++) {
		const struct qcu_device_desc *d;

		err = qcul_device_desc(i, &d);
		if (err)
			return qcul_done(err);
		if ((unsigned int)d->attr[cudaDevAttrPciDomainId] == domain &&
		    (unsigned int)d->attr[cudaDevAttrPciBusId] == bus &&
		    (unsigned int)d->attr[cudaDevAttrPciDeviceId] == slot && function == 0) {
			*device = i;
			return cudaSuccess;
		}
	}
	return qcul_done(cudaErrorInvalidDevice);
}

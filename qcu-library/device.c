// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Devices: which of them the program sees, the current device of each thread, synchronising and
 * resetting. The library asks for the description of a device once and keeps it (struct
 * qcu_device_desc); properties.c turns it into CUDA's structures.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-library/device.h"
#include "qcu-library/graph_capture.h"

static unsigned int visible[QCUL_DEVICES];
static int visible_count;

static struct qcu_device_desc desc[QCUL_DEVICES];
static atomic_bool desc_known[QCUL_DEVICES]; /* release: desc is filled in */
static pthread_mutex_t desc_lock = PTHREAD_MUTEX_INITIALIZER;

static _Atomic uint64_t used; /* a bit for each device that this session has used */
_Static_assert(QCUL_DEVICES <= 64, "a bit for each device");

static atomic_uint device_flags = cudaDeviceMapHost;
static atomic_int cache_config = cudaFuncCachePreferNone;

/* CUDA_VISIBLE_DEVICES is a list of numbers; as in CUDA, the first wrong number ends the list. */
void qcul_devices_start(unsigned int count)
{
	const char *text = getenv("CUDA_VISIBLE_DEVICES");
	unsigned int i;

	if (count > QCUL_DEVICES)
		count = QCUL_DEVICES;
	visible_count = 0;
	atomic_store_explicit(&used, 0, memory_order_relaxed);
	if (!text) {
		for (i = 0; i < count; i++)
			visible[visible_count++] = i;
		return;
	}
	while (*text && visible_count < QCUL_DEVICES) {
		char *end;
		unsigned long n = strtoul(text, &end, 10);

		if (end == text || (*end && *end != ',') || n >= count)
			break;
		for (i = 0; i < (unsigned int)visible_count; i++) {
			/* If a device is named twice, the whole list is void. */
			if (visible[i] == n) {
				visible_count = 0;
				return;
			}
		}
		visible[visible_count++] = (unsigned int)n;
		text = *end ? end + 1 : end;
	}
}

int qcul_device_count(void)
{
	return visible_count;
}

uint8_t qcul_device_ordinal(int device)
{
	return device < visible_count ? (uint8_t)visible[device] : 0;
}

void qcul_device_used(int device)
{
	uint64_t bit = (uint64_t)1 << device;

	if (!(atomic_load_explicit(&used, memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(&used, bit, memory_order_relaxed);
}

cudaError_t qcul_devices_idle(void)
{
	uint64_t left = atomic_load_explicit(&used, memory_order_relaxed);
	cudaError_t err = cudaSuccess;
	int i;

	for (i = 0; left && !err; i++, left >>= 1) {
		struct qCUcmd cmd = qcul_cmd(QCU_OP_DEVICE_SYNC);

		if (!(left & 1))
			continue;
		cmd.device = qcul_device_ordinal(i);
		err = qcul_send(&cmd, 1);
	}
	return err;
}

static cudaError_t fetch_desc(int device)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_DEVICE_INFO);
	cudaError_t err;

	cmd.device = qcul_device_ordinal(device);
	cmd.buf.addr = (uint64_t)(uintptr_t)&desc[device];
	cmd.buf.len = sizeof(desc[device]);
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	desc[device].name[sizeof(desc[device].name) - 1] = 0;
	/* The mirror maps all guest memory for reading and writing (register.c). */
	desc[device].attr[cudaDevAttrHostRegisterReadOnlySupported] = 0;
	atomic_store_explicit(&desc_known[device], true, memory_order_release);
	return cudaSuccess;
}

cudaError_t qcul_device_desc(int device, const struct qcu_device_desc **out)
{
	cudaError_t err = qcul_open();

	if (err)
		return err;
	if (device < 0 || device >= visible_count)
		return cudaErrorInvalidDevice;
	if (!atomic_load_explicit(&desc_known[device], memory_order_acquire)) {
		pthread_mutex_lock(&desc_lock);
		if (!atomic_load(&desc_known[device]))
			err = fetch_desc(device);
		pthread_mutex_unlock(&desc_lock);
	}
	*out = &desc[device];
	return err;
}

static cudaError_t check_device(int device)
{
	cudaError_t err = qcul_open();

	if (err)
		return err;
	return device >= 0 && device < visible_count ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t err;

	if (!count)
		return qcul_done(cudaErrorInvalidValue);
	err = qcul_open();
	*count = err ? 0 : visible_count;
	return qcul_done(err);
}

cudaError_t cudaSetDevice(int device)
{
	cudaError_t err = check_device(device);

	if (!err) {
		qcul_self.device = device;
		qcul_self.device_chosen = true;
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

	atomic_store(&device_flags, flags | cudaDeviceMapHost);
	if (how & (cudaDeviceScheduleSpin | cudaDeviceScheduleYield))
		qcul_wait_how(QCU_WAIT_LOOK);
	else
		qcul_wait_how(how & cudaDeviceScheduleBlockingSync ? QCU_WAIT_SLEEP
								   : QCU_WAIT_ADAPT);
}

cudaError_t cudaInitDevice(int device, unsigned int device_mask, unsigned int flags)
{
	cudaError_t err = check_device(device);

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
	*flags = atomic_load(&device_flags);
	return cudaSuccess;
}

/* This is only a preference. Hardware with one pool for L1 cache and shared memory may ignore it.
 */
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
	cudaError_t err = config > cudaFuncCachePreferEqual ? cudaErrorInvalidValue : qcul_ready();

	if (!err)
		atomic_store(&cache_config, (int)config);
	return qcul_done(err);
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
	cudaError_t err = config ? qcul_ready() : cudaErrorInvalidValue;

	if (!err)
		*config = (enum cudaFuncCache)atomic_load(&cache_config);
	return qcul_done(err);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	int supported = 0;
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_device_attr(qcul_self.device, cudaDevAttrStreamPrioritiesSupported,
				       &supported);
	if (err)
		return qcul_done(err);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = supported ? QCUL_GREATEST_PRIORITY : 0;
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
	struct qCUcmd cmd;
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_capture_unsafe();
	if (err)
		return qcul_done(err);
	cmd = qcul_cmd(QCU_OP_DEVICE_SYNC);
	err = qcul_send(&cmd, 1);
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
	qcul_recycle_drop();
	cmd = qcul_cmd(QCU_OP_DEVICE_RESET);
	err = qcul_send(&cmd, 1);
	qcul_print_flush();
	if (!err) {
		qcul_limits_forget();
		qcul_handles_forget(qcul_self.device);
		qcul_graph_memory_forget(qcul_self.device);
		qcul_mem_forget_device(qcul_self.device);
		qcul_variables_forget(qcul_self.device);
	}
	return qcul_done(err);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
	struct qCUcmd cmd;
	cudaError_t err = qcul_ready();

	if (err)
		return qcul_done(err);
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
	for (i = 0; i < visible_count; i++) {
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

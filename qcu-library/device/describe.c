// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The descriptions of devices. The library asks for each once and keeps it (struct
 * qcu_device_desc); properties.c turns it into CUDA's structures.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/device/device.h"
#include "qcu-library/link/fork.h"

static struct {
	struct qcu_device_desc desc[QCUL_DEVICES];
	atomic_bool desc_known[QCUL_DEVICES]; /* release: desc is filled in */
} process;
QCUL_AT_FORK(QCUL_FORK_DESCRIPTIONS)

cudaError_t qcul_device_wait(int device)
{
	struct qCUcmd cmd;

	if (qcul_wait_needless(qcul_device_waited(device)))
		return qcul_known(cudaSuccess);
	cmd = qcul_cmd(QCU_OP_DEVICE_SYNC);
	cmd.device = qcul_device_ordinal(device);
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_devices_idle(void)
{
	uint64_t left = qcul_devices_used();
	cudaError_t err = cudaSuccess;
	int i;

	for (i = 0; left && !err; i++, left >>= 1)
		if (left & 1)
			err = qcul_device_wait(i);
	return err;
}

bool qcul_managed_in_place(void)
{
	static atomic_int known; /* 0: not looked at yet */
	static atomic_flag said = ATOMIC_FLAG_INIT;
	int is = atomic_load_explicit(&known, memory_order_relaxed);
	const char *text;

	if (is)
		return is > 0;
	text = getenv("QCU_MANAGED");
	is = text && !strcmp(text, "inplace") ? 1 : -1;
	if (text && *text && is < 0 && strcmp(text, "move"))
		qcul_say_once(&said, "QCU_MANAGED=%s is neither move nor inplace; ignored", text);
	atomic_store_explicit(&known, is, memory_order_relaxed);
	return is > 0;
}

static cudaError_t fetch_desc(int device)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_DEVICE_INFO);
	cudaError_t err;

	cmd.device = qcul_device_ordinal(device);
	cmd.buf.addr = (uint64_t)(uintptr_t)&process.desc[device];
	cmd.buf.len = sizeof(process.desc[device]);
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	process.desc[device].name[sizeof(process.desc[device].name) - 1] = 0;
	/* The mirror maps all guest memory for reading and writing (register.c). */
	process.desc[device].attr[cudaDevAttrHostRegisterReadOnlySupported] = 0;
	/* A program must not touch managed memory that moves while the GPU may use it. */
	if (!qcul_managed_in_place())
		process.desc[device].attr[cudaDevAttrConcurrentManagedAccess] = 0;
	/* Pools can be shared through file descriptors only (pool_share.c). */
	if (process.desc[device].attr[cudaDevAttrMemoryPoolsSupported])
		process.desc[device].attr[cudaDevAttrMemoryPoolSupportedHandleTypes] =
			cudaMemHandleTypePosixFileDescriptor;
	atomic_store_explicit(&process.desc_known[device], true, memory_order_release);
	return cudaSuccess;
}

cudaError_t qcul_device_desc(int device, const struct qcu_device_desc **out)
{
	cudaError_t err = qcul_open();

	if (err)
		return err;
	if (device < 0 || device >= qcul_device_count())
		return cudaErrorInvalidDevice;
	if (!atomic_load_explicit(&process.desc_known[device], memory_order_acquire)) {
		pthread_mutex_lock(&at_fork.lock);
		if (!atomic_load(&process.desc_known[device]))
			err = fetch_desc(device);
		pthread_mutex_unlock(&at_fork.lock);
	}
	*out = &process.desc[device];
	return err;
}

static cudaError_t device_exists(int device)
{
	return device >= 0 && device < qcul_device_count() ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t qcul_device_check(int device)
{
	cudaError_t err = qcul_open();

	return err ? err : device_exists(device);
}

cudaError_t qcul_device_ready(int device)
{
	cudaError_t err = qcul_ready();

	return err ? err : device_exists(device);
}

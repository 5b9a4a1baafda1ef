// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What this VM uses of a device: its memory, its programs, and how busy these keep it. Other VMs
 * and the host's programs are not seen.
 */
#include <stdatomic.h>
#include <time.h>

#include "qcu-library/nvml/api.h"
#include "qcu-library/nvml/state.h"

static nv_return read_memory_use(nv_device_t device, nv_memory *to)
{
	struct qcu_vm_use_desc use;
	nv_return err = qcul_nvml_use(device, &use);

	if (err)
		return err;
	to->total = use.total;
	to->used = use.used < use.total ? use.used : use.total;
	to->free = to->total - to->used;
	return NV_SUCCESS;
}

nv_return nvmlDeviceGetMemoryInfo(nv_device_t device, nv_memory *to)
{
	nv_return err = qcul_nvml_check(device);

	if (err)
		return err;
	return to ? read_memory_use(device, to) : NV_INVALID_ARGUMENT;
}

nv_return nvmlDeviceGetMemoryInfo_v2(nv_device_t device, nv_memory_v2 *to)
{
	nv_return err = qcul_nvml_check(device);
	nv_memory now;

	if (err)
		return err;
	if (!to)
		return NV_INVALID_ARGUMENT;
	if (to->version != NV_VERSION(nv_memory_v2, 2))
		return NV_ARGUMENT_VERSION_MISMATCH;
	err = read_memory_use(device, &now);
	if (err)
		return err;
	to->total = now.total;
	to->reserved = 0;
	to->free = now.free;
	to->used = now.used;
	return NV_SUCCESS;
}

/*
 * Writes the programs to one of the lists. *count is the room before, and how many there are after
 * the call.
 */
static nv_return processes(nv_device_t device, unsigned int *count, nv_process_v1 *list_v1,
			   nv_process *list)
{
	nv_return err = qcul_nvml_check(device);
	struct qcu_vm_use_desc use;
	unsigned int room, i;

	if (err)
		return err;
	if (!count || (*count && !list && !list_v1))
		return NV_INVALID_ARGUMENT;
	err = qcul_nvml_use(device, &use);
	if (err)
		return err;
	room = *count;
	*count = use.count;
	if (room < use.count)
		return NV_INSUFFICIENT_SIZE;
	for (i = 0; i < use.count; i++) {
		if (list)
			list[i] = (nv_process){
				.pid = use.user[i].pid,
				.bytes = use.user[i].bytes,
				.gpu_instance = NV_NO_INSTANCE,
				.compute_instance = NV_NO_INSTANCE,
			};
		else
			list_v1[i] = (nv_process_v1){
				.pid = use.user[i].pid,
				.bytes = use.user[i].bytes,
			};
	}
	return NV_SUCCESS;
}

nv_return nvmlDeviceGetComputeRunningProcesses(nv_device_t device, unsigned int *count,
					       nv_process_v1 *list)
{
	return processes(device, count, list, NULL);
}

nv_return nvmlDeviceGetComputeRunningProcesses_v2(nv_device_t device, unsigned int *count,
						  nv_process *list)
{
	return processes(device, count, NULL, list);
}

nv_return nvmlDeviceGetComputeRunningProcesses_v3(nv_device_t device, unsigned int *count,
						  nv_process *list)
{
	return processes(device, count, NULL, list);
}

/* Shares are measured at least this far apart, in microseconds. */
#define MEASURED_APART 100000u

/* When the shares were measured. The answer tells in milliseconds; all answers about one
 * measurement must say the same.
 */
static unsigned long long time_of_shares(nv_device_t device, unsigned int age_ms)
{
	unsigned long long last = atomic_load(&device->measured), when;
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	when = (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000 -
	       age_ms * 1000ull;
	if (when - last < MEASURED_APART || last - when < MEASURED_APART)
		return last;
	atomic_store(&device->measured, when);
	return when;
}

/*
 * The programs that kept the device busy when that was last measured, if it was after `since`. So
 * that a list has room for the next answer, too, the room that is asked for is for all that there
 * can be.
 */
nv_return nvmlDeviceGetProcessUtilization(nv_device_t device, nv_process_busy *list,
					  unsigned int *count, unsigned long long since)
{
	nv_return err = qcul_nvml_check(device);
	struct qcu_vm_use_desc use;
	struct qcu_sensors now;
	unsigned long long when;
	unsigned int i, n = 0;

	if (err)
		return err;
	if (!count)
		return NV_INVALID_ARGUMENT;
	/* This has them measured. */
	err = qcul_nvml_sensors(device, &now);
	if (!err)
		err = qcul_nvml_use(device, &use);
	if (!err && !use.busy_age)
		err = NV_NOT_SUPPORTED;
	if (err)
		return err;
	when = time_of_shares(device, use.busy_age - 1);
	for (i = 0; i < use.count && when > since; i++)
		n += use.user[i].busy || use.user[i].busy_memory;
	if (!n)
		return NV_NOT_FOUND;
	if (!list || *count < n) {
		*count = QCU_VM_USERS;
		return NV_INSUFFICIENT_SIZE;
	}
	for (i = n = 0; i < use.count; i++)
		if (use.user[i].busy || use.user[i].busy_memory)
			list[n++] = (nv_process_busy){
				.pid = use.user[i].pid,
				.when = when,
				.sm = use.user[i].busy,
				.memory = use.user[i].busy_memory,
			};
	*count = n;
	return NV_SUCCESS;
}

/* No program uses graphics, and none a server of MPS. */
static nv_return list_no_processes(nv_device_t device, unsigned int *count, const void *list)
{
	nv_return err = qcul_nvml_check(device);

	if (err)
		return err;
	if (!count || (*count && !list))
		return NV_INVALID_ARGUMENT;
	*count = 0;
	return NV_SUCCESS;
}

#define NO_PROCESSES(name)                                                             \
	nv_return name(nv_device_t device, unsigned int *count, nv_process_v1 *list)   \
	{                                                                              \
		return list_no_processes(device, count, list);                         \
	}                                                                              \
	nv_return name##_v2(nv_device_t device, unsigned int *count, nv_process *list) \
	{                                                                              \
		return list_no_processes(device, count, list);                         \
	}                                                                              \
	nv_return name##_v3(nv_device_t device, unsigned int *count, nv_process *list) \
	{                                                                              \
		return list_no_processes(device, count, list);                         \
	}
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)

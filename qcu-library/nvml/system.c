// SPDX-License-Identifier: LGPL-2.1-or-later
/* NVML's beginning and end, its errors, and what it knows without a device. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "qcu-library/nvml/api.h"
#include "qcu-library/nvml/state.h"

/* The NVML whose functions nvml.syms lists. */
#define NVML_VERSION "13.5"

nv_return nvmlInit(void)
{
	return qcul_nvml_init(false);
}

nv_return nvmlInit_v2(void)
{
	return qcul_nvml_init(false);
}

/* The other flags change nothing here: no device is attached, and none has to be initialized. */
nv_return nvmlInitWithFlags(unsigned int flags)
{
	return qcul_nvml_init(flags & NV_INIT_NO_GPUS);
}

nv_return nvmlShutdown(void)
{
	return qcul_nvml_shutdown();
}

const char *nvmlErrorString(nv_return result)
{
	switch (result) {
	case NV_SUCCESS:
		return "Success";
#define X(n, NAME, text) \
	case NV_##NAME:  \
		return text;
		NVML_ERRORS(X)
#undef X
	}
	return "Unknown error";
}

static nv_return write_system_text(const char *text, char *to, unsigned int length)
{
	nv_return err = qcul_nvml_ready();

	if (err)
		return err;
	if (!to)
		return NV_INVALID_ARGUMENT;
	if (strlen(text) >= length)
		return NV_INSUFFICIENT_SIZE;
	strcpy(to, text);
	return NV_SUCCESS;
}

/*
 * The host's driver, in NVIDIA's form. The driver of this VM is ours: if the host's is not known,
 * what matters to programs is the CUDA version that it serves.
 */
nv_return nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	struct qcu_sensors now = {0};
	int cuda = qcul_nvml_cuda_version();
	char text[48];

	if (!qcul_nvml_ready() && qcul_nvml_device(0))
		qcul_nvml_sensors(qcul_nvml_device(0), &now);
	if (now.known >> QCU_SENSOR_driver & 1)
		snprintf(text, sizeof(text), "%u.%02u.%02u", now.driver >> 20,
			 now.driver >> 10 & 0x3ff, now.driver & 0x3ff);
	else
		snprintf(text, sizeof(text), "%d.%d", cuda / 1000, cuda % 1000 / 10);
	return write_system_text(text, version, length);
}

nv_return nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	return write_system_text(NVML_VERSION, version, length);
}

nv_return nvmlSystemGetCudaDriverVersion(int *version)
{
	nv_return err = qcul_nvml_ready();

	if (err)
		return err;
	if (!version)
		return NV_INVALID_ARGUMENT;
	*version = qcul_nvml_cuda_version();
	return *version ? NV_SUCCESS : NV_GPU_NOT_FOUND;
}

nv_return nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	return nvmlSystemGetCudaDriverVersion(version);
}

/* A name that is too long is cut off. */
nv_return nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
	nv_return err = qcul_nvml_ready();
	char path[40], text[4096];
	ssize_t n;
	int fd;

	if (err)
		return err;
	if (!name || !length)
		return NV_INVALID_ARGUMENT;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NV_NOT_FOUND;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return NV_NOT_FOUND;
	text[n] = 0;
	snprintf(name, length, "%s", text);
	return NV_SUCCESS;
}

static nv_return write_zero_count(unsigned int *count)
{
	nv_return err = qcul_nvml_ready();

	if (err)
		return err;
	if (!count)
		return NV_INVALID_ARGUMENT;
	*count = 0;
	return NV_SUCCESS;
}

nv_return nvmlUnitGetCount(unsigned int *count)
{
	return write_zero_count(count);
}

nv_return nvmlGetExcludedDeviceCount(unsigned int *count)
{
	return write_zero_count(count);
}

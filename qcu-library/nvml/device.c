// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which devices there are, and what each of them is. All of it comes from their descriptions. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <cuda_runtime_api.h>

#include "qcu-library/nvml/api.h"
#include "qcu-library/nvml/state.h"

#define UUID_TEXT 41 /* with the 0 at its end */

nv_return nvmlDeviceGetCount_v2(unsigned int *count)
{
	nv_return err = qcul_nvml_ready();

	if (err)
		return err;
	if (!count)
		return NV_INVALID_ARGUMENT;
	*count = qcul_nvml_count();
	return NV_SUCCESS;
}

nv_return nvmlDeviceGetCount(unsigned int *count)
{
	return nvmlDeviceGetCount_v2(count);
}

nv_return nvmlDeviceGetHandleByIndex_v2(unsigned int index, nv_device_t *device)
{
	nv_return err = qcul_nvml_ready();

	if (err)
		return err;
	if (!device || !qcul_nvml_device(index))
		return NV_INVALID_ARGUMENT;
	*device = qcul_nvml_device(index);
	return NV_SUCCESS;
}

nv_return nvmlDeviceGetHandleByIndex(unsigned int index, nv_device_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static void uuid_text(const struct nv_device *device, char text[UUID_TEXT])
{
	const __u8 *u = device->desc.uuid;

	snprintf(text, UUID_TEXT,
		 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
		 u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
		 u[14], u[15]);
}

nv_return nvmlDeviceGetHandleByUUID(const char *uuid, nv_device_t *device)
{
	nv_return err = qcul_nvml_ready();
	char text[UUID_TEXT];
	unsigned int i;

	if (err)
		return err;
	if (!uuid || !device)
		return NV_INVALID_ARGUMENT;
	for (i = 0; i < qcul_nvml_count(); i++) {
		uuid_text(qcul_nvml_device(i), text);
		if (strcasecmp(uuid, text))
			continue;
		*device = qcul_nvml_device(i);
		return NV_SUCCESS;
	}
	return NV_NOT_FOUND;
}

static unsigned int attr(const struct nv_device *device, enum cudaDeviceAttr what)
{
	return (unsigned int)device->desc.attr[what];
}

/* The id is domain:bus:device.function; domain and function may be left out. */
nv_return nvmlDeviceGetHandleByPciBusId_v2(const char *id, nv_device_t *device)
{
	unsigned int domain = 0, bus, slot, function = 0, i;
	nv_return err = qcul_nvml_ready();
	int end = -1;

	if (err)
		return err;
	if (!id || !device)
		return NV_INVALID_ARGUMENT;
	if (sscanf(id, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &end) != 4 || id[end]) {
		domain = function = 0;
		end = -1;
		if (sscanf(id, "%x:%x.%x%n", &bus, &slot, &function, &end) != 3 || id[end])
			return NV_INVALID_ARGUMENT;
	}
	for (i = 0; i < qcul_nvml_count() && !function; i++) {
		const struct nv_device *d = qcul_nvml_device(i);

		if (attr(d, cudaDevAttrPciDomainId) != domain ||
		    attr(d, cudaDevAttrPciBusId) != bus || attr(d, cudaDevAttrPciDeviceId) != slot)
			continue;
		*device = qcul_nvml_device(i);
		return NV_SUCCESS;
	}
	return NV_NOT_FOUND;
}

nv_return nvmlDeviceGetHandleByPciBusId(const char *id, nv_device_t *device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

static nv_return write_device_text(const struct nv_device *device, const char *text, char *to,
				   unsigned int length)
{
	nv_return err = qcul_nvml_check(device);

	if (err)
		return err;
	if (!to)
		return NV_INVALID_ARGUMENT;
	if (strlen(text) >= length)
		return NV_INSUFFICIENT_SIZE;
	strcpy(to, text);
	return NV_SUCCESS;
}

nv_return nvmlDeviceGetName(nv_device_t device, char *name, unsigned int length)
{
	nv_return err = qcul_nvml_check(device);

	return err ? err : write_device_text(device, device->desc.name, name, length);
}

nv_return nvmlDeviceGetUUID(nv_device_t device, char *uuid, unsigned int length)
{
	nv_return err = qcul_nvml_check(device);
	char text[UUID_TEXT];

	if (err)
		return err;
	uuid_text(device, text);
	return write_device_text(device, text, uuid, length);
}

/* Writes a number of the device. */
static nv_return write_device_number(unsigned int n, unsigned int *to)
{
	if (!to)
		return NV_INVALID_ARGUMENT;
	*to = n;
	return NV_SUCCESS;
}

/* X(function, type, what it writes): functions of a device that write one number. */
#define NUMBERS(X)                                                                            \
	X(nvmlDeviceGetIndex, unsigned int, qcul_nvml_index(device))                          \
	X(nvmlDeviceGetMinorNumber, unsigned int, qcul_nvml_index(device))                    \
	X(nvmlDeviceGetBrand, nv_brand, brand(device))                                        \
	X(nvmlDeviceGetArchitecture, nv_arch, arch(device))                                   \
	X(nvmlDeviceGetComputeMode, nv_mode, attr(device, cudaDevAttrComputeMode))            \
	X(nvmlDeviceGetDisplayMode, nv_enabled, 0)                                            \
	X(nvmlDeviceGetDisplayActive, nv_enabled, 0)                                          \
	X(nvmlDeviceGetMultiGpuBoard, unsigned int, attr(device, cudaDevAttrIsMultiGpuBoard)) \
	X(nvmlDeviceIsMigDeviceHandle, unsigned int, 0)                                       \
	X(nvmlDeviceGetMaxMigDeviceCount, unsigned int, 0)

static nv_brand brand(const struct nv_device *device)
{
	static const struct {
		const char *word;
		nv_brand brand;
	} brands[] = {
		{"GeForce", NV_BRAND_GEFORCE}, {"Quadro", NV_BRAND_QUADRO},
		{"TITAN", NV_BRAND_TITAN},     {"Tesla", NV_BRAND_TESLA},
		{"NVIDIA", NV_BRAND_NVIDIA},
	};
	unsigned int i;

	for (i = 0; i < sizeof(brands) / sizeof(*brands); i++)
		if (strstr(device->desc.name, brands[i].word))
			return brands[i].brand;
	return NV_BRAND_UNKNOWN;
}

static nv_arch arch(const struct nv_device *device)
{
	unsigned int minor = attr(device, cudaDevAttrComputeCapabilityMinor);

	switch (attr(device, cudaDevAttrComputeCapabilityMajor)) {
	case 3:
		return NV_ARCH_KEPLER;
	case 5:
		return NV_ARCH_MAXWELL;
	case 6:
		return NV_ARCH_PASCAL;
	case 7:
		return minor < 5 ? NV_ARCH_VOLTA : NV_ARCH_TURING;
	case 8:
		return minor < 9 ? NV_ARCH_AMPERE : NV_ARCH_ADA;
	case 9:
		return NV_ARCH_HOPPER;
	case 10:
	case 11:
	case 12:
		return NV_ARCH_BLACKWELL;
	}
	return NV_ARCH_UNKNOWN;
}

#define X(name, type, value)                                       \
	nv_return name(nv_device_t device, type *to)               \
	{                                                          \
		nv_return err = qcul_nvml_check(device);           \
                                                                   \
		return err ? err : write_device_number(value, to); \
	}
NUMBERS(X)
#undef X

nv_return nvmlDeviceGetCudaComputeCapability(nv_device_t device, int *major, int *minor)
{
	nv_return err = qcul_nvml_check(device);

	if (err)
		return err;
	if (!major || !minor)
		return NV_INVALID_ARGUMENT;
	*major = (int)attr(device, cudaDevAttrComputeCapabilityMajor);
	*minor = (int)attr(device, cudaDevAttrComputeCapabilityMinor);
	return NV_SUCCESS;
}

nv_return nvmlDeviceGetEccMode(nv_device_t device, nv_enabled *now, nv_enabled *later)
{
	nv_return err = qcul_nvml_check(device);

	if (err)
		return err;
	if (!now || !later)
		return NV_INVALID_ARGUMENT;
	*now = *later = attr(device, cudaDevAttrEccEnabled);
	return NV_SUCCESS;
}

/* Numbers that are 0 in the description are not known. */
static nv_return write_known_number(unsigned int n, unsigned int *to)
{
	if (!to)
		return NV_INVALID_ARGUMENT;
	if (!n)
		return NV_NOT_SUPPORTED;
	*to = n;
	return NV_SUCCESS;
}

nv_return nvmlDeviceGetMaxClockInfo(nv_device_t device, nv_clock clock, unsigned int *mhz)
{
	nv_return err = qcul_nvml_check(device);

	if (err)
		return err;
	switch (clock) {
	case NV_CLOCK_GRAPHICS:
	case NV_CLOCK_SM:
		return write_known_number(attr(device, cudaDevAttrClockRate) / 1000, mhz);
	case NV_CLOCK_MEM:
		return write_known_number(attr(device, cudaDevAttrMemoryClockRate) / 1000, mhz);
	case NV_CLOCK_VIDEO:
		return write_known_number(0, mhz);
	}
	return NV_INVALID_ARGUMENT;
}

nv_return nvmlDeviceGetMemoryBusWidth(nv_device_t device, unsigned int *bits)
{
	nv_return err = qcul_nvml_check(device);

	return err ? err : write_known_number(attr(device, cudaDevAttrGlobalMemoryBusWidth), bits);
}

static void pci_id(const struct nv_device *device, char id[32])
{
	snprintf(id, 32, "%08X:%02X:%02X.0", attr(device, cudaDevAttrPciDomainId),
		 attr(device, cudaDevAttrPciBusId), attr(device, cudaDevAttrPciDeviceId));
}

nv_return nvmlDeviceGetPciInfo_v3(nv_device_t device, nv_pci *pci)
{
	nv_return err = nvmlDeviceGetPciInfo_v2(device, pci);

	if (!err)
		pci_id(device, pci->id);
	return err;
}

/* The older forms have nothing behind the number of the subsystem, or what the caller ignores. */
nv_return nvmlDeviceGetPciInfo_v2(nv_device_t device, nv_pci *pci)
{
	nv_return err = qcul_nvml_check(device);

	if (err)
		return err;
	if (!pci)
		return NV_INVALID_ARGUMENT;
	pci->domain = attr(device, cudaDevAttrPciDomainId);
	pci->bus = attr(device, cudaDevAttrPciBusId);
	pci->device = attr(device, cudaDevAttrPciDeviceId);
	pci->pci_id = attr(device, cudaDevAttrGpuPciDeviceId);
	pci->subsystem_id = attr(device, cudaDevAttrGpuPciSubsystemId);
	snprintf(pci->legacy_id, sizeof(pci->legacy_id), "%04X:%02X:%02X.0", pci->domain & 0xffff,
		 pci->bus & 0xff, pci->device & 0xff);
	return NV_SUCCESS;
}

nv_return nvmlDeviceGetPciInfo(nv_device_t device, nv_pci *pci)
{
	return nvmlDeviceGetPciInfo_v2(device, pci);
}

nv_return nvmlDeviceGetPciInfoExt(nv_device_t device, nv_pci_ext *pci)
{
	nv_return err = qcul_nvml_check(device);

	if (err)
		return err;
	if (!pci)
		return NV_INVALID_ARGUMENT;
	if (pci->version != NV_VERSION(nv_pci_ext, 1))
		return NV_ARGUMENT_VERSION_MISMATCH;
	pci->domain = attr(device, cudaDevAttrPciDomainId);
	pci->bus = attr(device, cudaDevAttrPciBusId);
	pci->device = attr(device, cudaDevAttrPciDeviceId);
	pci->pci_id = attr(device, cudaDevAttrGpuPciDeviceId);
	pci->subsystem_id = attr(device, cudaDevAttrGpuPciSubsystemId);
	pci->base_class = 3; /* a display controller, */
	pci->sub_class = 2;  /* without a display */
	pci_id(device, pci->id);
	return NV_SUCCESS;
}

/* None of the fields can be known in a guest. Each says so for itself. */
nv_return nvmlDeviceGetFieldValues(nv_device_t device, int count, nv_field *values)
{
	nv_return err = qcul_nvml_check(device);
	int i;

	if (err)
		return err;
	if (count < 1 || !values)
		return NV_INVALID_ARGUMENT;
	for (i = 0; i < count; i++)
		values[i].status = NV_NOT_SUPPORTED;
	return NV_SUCCESS;
}

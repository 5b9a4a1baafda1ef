// SPDX-License-Identifier: LGPL-2.1-or-later
/* The version and the properties of devices, as CUDA 12 describes them. */
#include <stddef.h>
#include <string.h>

#include "qcu-library/cuda12/cuda12.h"

cudaError_t cuda12_RuntimeGetVersion(int *version)
{
	cudaError_t err = cudaRuntimeGetVersion(version);

	if (!err)
		*version = CUDA12_RUNTIME_VERSION;
	return err;
}

/* The attribute's value is 0, whatever the GPU can, because the launch is not supported. */
cudaError_t cuda12_DeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	cudaError_t err = cudaDeviceGetAttribute(value, attr, device);

	if (!err && attr == CUDA12_ATTR_MULTI_DEVICE_LAUNCH)
		*value = 0;
	return err;
}

#define FITS(type, name, size)                                             \
	_Static_assert(sizeof(((struct cuda12_device_prop *)0)->name) ==   \
			       sizeof(((struct cudaDeviceProp *)0)->name), \
		       #name " has the same size in CUDA 12 and 13");
#define NONE(name, attribute)
CUDA12_DEVICE_PROP(FITS, NONE)

static cudaError_t properties(struct cuda12_device_prop *to, int device)
{
	struct cudaDeviceProp from;
	cudaError_t err = cudaGetDeviceProperties(&from, device);

	if (err)
		return err;
	memset(to, 0, sizeof(*to));
#define BOTH(type, name, size) memcpy(&to->name, &from.name, sizeof(to->name));
#define OLD(name, attribute) \
	if (!err)            \
		err = cuda12_DeviceGetAttribute(&to->name, attribute, device);
	CUDA12_DEVICE_PROP(BOTH, OLD)
#undef BOTH
#undef OLD
	return err;
}

cudaError_t cuda12_GetDeviceProperties_v2(struct cuda12_device_prop *prop, int device)
{
	return prop ? properties(prop, device) : cudaGetDeviceProperties(NULL, device);
}

/* CUDA 11's form, whose structure ends where 12's new fields begin. */
cudaError_t cuda12_GetDeviceProperties(struct cuda12_device_prop *prop, int device)
{
	struct cuda12_device_prop all;
	cudaError_t err;

	if (!prop)
		return cudaGetDeviceProperties(NULL, device);
	err = properties(&all, device);
	if (!err)
		memcpy(prop, &all, offsetof(struct cuda12_device_prop, hostRegisterSupported));
	return err;
}

cudaError_t cuda12_ChooseDevice(int *device, const struct cuda12_device_prop *from)
{
	struct cudaDeviceProp to = {0};

	if (!from)
		return cudaChooseDevice(device, NULL);
#define BOTH(type, name, size) memcpy(&to.name, &from->name, sizeof(to.name));
	CUDA12_DEVICE_PROP(BOTH, NONE)
#undef BOTH
	return cudaChooseDevice(device, &to);
}

/* These have changed nothing since the GPUs without double precision. */
cudaError_t cuda12_SetDoubleForDevice(double *d)
{
	(void)d;
	return cudaSuccess;
}

cudaError_t cuda12_SetDoubleForHost(double *d)
{
	(void)d;
	return cudaSuccess;
}

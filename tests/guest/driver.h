/* SPDX-License-Identifier: GPL-2.0-or-later */
/* check.h for programs that use the driver API. Their kernels are those of driver_kernels.cu. */
#ifndef DRIVER_H
#define DRIVER_H

#include <cuda.h>

#include "check.h"
#include "ours.h"
#include "driver_kernels.h"

#define DCHECK(call)	    driver_code(__FILE__, __LINE__, #call, (call), CUDA_SUCCESS)
#define DEXPECT(call, code) driver_code(__FILE__, __LINE__, #call, (call), (code))

/*
 * A call that NVIDIA's driver must not see: it crashes, or does what happens to come out. These are
 * mostly handles after their end, and null pointers. Ours refuses them.
 */
#define ONLY_OURS(call)                \
	do {                           \
		if (is_ours("cuInit")) \
			call;          \
	} while (0)

static inline const char *result_name(CUresult result)
{
	const char *name;

	return cuGetErrorName(result, &name) ? "no result" : name;
}

static inline void driver_code(const char *file, int line, const char *call, CUresult got,
			       CUresult want)
{
	if (got == want)
		return;
	fprintf(stderr, "%s:%d: %s\n\tgave %d %s, expected %d %s\n", file, line, call, (int)got,
		result_name(got), (int)want, result_name(want));
	exit(1);
}

/* The first device, with its primary context as the thread's current one. */
static inline CUdevice driver_start(void)
{
	CUcontext context;
	CUdevice device;

	DCHECK(cuInit(0));
	DCHECK(cuDeviceGet(&device, 0));
	DCHECK(cuDevicePrimaryCtxRetain(&context, device));
	DCHECK(cuCtxSetCurrent(context));
	return device;
}

static inline CUmodule driver_module(void)
{
	CUmodule module;

	DCHECK(cuModuleLoadData(&module, driver_kernels));
	return module;
}

static inline CUfunction driver_function(CUmodule module, const char *name)
{
	CUfunction function;

	DCHECK(cuModuleGetFunction(&function, module, name));
	return function;
}

#endif

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * All functions of cuda.h that this library does not implement. A program that contains such a call
 * loads and runs. If it makes the call, a message names the function and the call returns
 * CUDA_ERROR_NOT_SUPPORTED.
 *
 * The list comes from cuda.syms. The functions are defined without their parameters, because they
 * do not read them; on x86-64 the caller removes the parameters itself. This file must not include
 * cuda.h.
 */
#include <stdatomic.h>

#define EXPORT __attribute__((visibility("default")))

/* Returns a CUresult. This file cannot include driver.h. */
int qcul_driver_unsupported(const char *name, atomic_flag *said);

#define UNSUPPORTED(name)                                     \
	EXPORT int qcul_drv_##name(void);                     \
	EXPORT int qcul_drv_##name(void)                      \
	{                                                     \
		static atomic_flag said = ATOMIC_FLAG_INIT;   \
                                                              \
		return qcul_driver_unsupported(#name, &said); \
	}

#include "driver_unsupported.inc"

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libcufile.so.0: GPUDirect Storage, which a guest does not have. A program that is linked with it
 * starts, and each call says that it is not served. Nothing depends on a call's arguments.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>

#define NOT_SUPPORTED 5007 /* CU_FILE_PLATFORM_NOT_SUPPORTED */

struct cufile_error {
	int err;
	int cu_err; /* a CUresult, beside CU_FILE_CUDA_DRIVER_ERROR only */
};

static void refuse_cufile_call(atomic_flag *said, const char *name)
{
	if (!atomic_flag_test_and_set(said))
		fprintf(stderr,
			"qcuda: cuFile: %s is not supported: read the file, and copy with CUDA\n",
			name);
}

#define FUNCTION(type, name, ...)                               \
	__attribute__((visibility("default"))) type name(void); \
	type name(void)                                         \
	{                                                       \
		static atomic_flag said = ATOMIC_FLAG_INIT;     \
                                                                \
		refuse_cufile_call(&said, #name);               \
		return __VA_ARGS__;                             \
	}

#define ERROR(name)   FUNCTION(struct cufile_error, name, (struct cufile_error){.err = NOT_SUPPORTED})
#define SIZE(name)    FUNCTION(ssize_t, name, -NOT_SUPPORTED)
#define NONE(name)    FUNCTION(long, name, 0)
#define NOTHING(name) FUNCTION(void, name, )

#include "functions.inc"

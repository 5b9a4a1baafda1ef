// SPDX-License-Identifier: LGPL-2.1-or-later
/* Functions that we do not implement (cufile.syms). Each prints its name on stderr, once. */
#include <stdatomic.h>
#include <stdio.h>

#include "qcu-library/cufile/cufile.h"

#define UNSUPPORTED(name)                                                               \
	QCUF_PUBLIC CUfileError_t name(void);                                           \
	CUfileError_t name(void)                                                        \
	{                                                                               \
		static atomic_flag said = ATOMIC_FLAG_INIT;                             \
                                                                                        \
		if (!atomic_flag_test_and_set(&said))                                   \
			fprintf(stderr, "qcuda: cuFile: " #name " is not supported\n"); \
		return qcuf_error(CU_FILE_PLATFORM_NOT_SUPPORTED);                      \
	}

#include "unsupported.inc"

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Functions that we do not implement (nccl.syms). Each prints its name on stderr, once. */
#include <stdatomic.h>

#include "qcu-library/nccl/errors.h"

#define UNSUPPORTED(name)                                                              \
	QCCL_PUBLIC ncclResult_t name(void);                                           \
	ncclResult_t name(void)                                                        \
	{                                                                              \
		static atomic_flag said = ATOMIC_FLAG_INIT;                            \
                                                                                       \
		if (atomic_flag_test_and_set(&said))                                   \
			return qccl_fail(ncclInvalidUsage, #name " is not supported"); \
		return qccl_refuse(ncclInvalidUsage, #name " is not supported");       \
	}

#include "unsupported.inc"

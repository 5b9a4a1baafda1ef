// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The functions that are the runtime's, with the types of cuda.h. cuda.syms names them (runtime:),
 * and the declarations in both headers say the rest.
 */
#include "qcu-library/driver_base/driver.h"

#define SAME(type, other) _Static_assert(sizeof(type) == sizeof(other), #type " and " #other);
#define ENTRY(name, needs, stream, parameters, ...)
#define FORWARD(name, other, parameters, ...)            \
	CUresult name parameters                         \
	{                                                \
		return QCUL_RUNTIME(other(__VA_ARGS__)); \
	}

#include "driver_calls.inc"

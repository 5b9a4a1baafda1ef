// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * All functions that NVIDIA's library has and this library does not implement. A program that
 * contains such a call loads and runs. If it makes the call, a message names the function and the
 * call returns an error.
 *
 * The list comes from cudart.syms. The functions are defined without their parameters, because they
 * do not read them; on x86-64 the caller removes the parameters itself. This file must not include
 * CUDA's header.
 */
#include <stdatomic.h>

#define EXPORT __attribute__((visibility("default")))

/* Returns a cudaError_t. This file cannot include link.h. */
int qcul_unsupported(const char *name, atomic_flag *said);

#define UNSUPPORTED(name)                                   \
	EXPORT int name(void);                              \
	EXPORT int name(void)                               \
	{                                                   \
		static atomic_flag said = ATOMIC_FLAG_INIT; \
                                                            \
		return qcul_unsupported(#name, &said);      \
	}

#include "unsupported.inc"

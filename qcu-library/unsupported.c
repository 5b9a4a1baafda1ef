// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Every function that NVIDIA's library has and this one does not implement. A program that has such
 * a call in it loads and runs; if it makes the call, it is told so, by name, and gets an error.
 *
 * The list comes from cudart.syms. The functions are defined without their parameters, which they
 * do not read; on x86-64 the caller puts them away itself. CUDA's header must not be seen here.
 */
#include <stdatomic.h>

#define EXPORT __attribute__((visibility("default")))

/* cudaError_t in CUDA's terms; qcul.h cannot be included. */
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

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions that return NVML_ERROR_NOT_SUPPORTED (nvml.syms). Those marked "quiet" ask a device for
 * something that a guest cannot know, such as its fans, or that this VM does not have.
 * Tools ask for these again and again, and show that there is no answer. All others say their names
 * on stderr, once.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "qcu-library/nvml/state.h"

#define PUBLIC __attribute__((visibility("default")))

/* A function of a device. Its last pointer is argument `to`, counted from 0. */
static nv_return quiet(const void *const *args, unsigned int to)
{
	nv_return err = qcul_nvml_check(args[0]);

	return err ? err : args[to] ? NV_NOT_SUPPORTED : NV_INVALID_ARGUMENT;
}

static nv_return unsupported(const char *name, atomic_flag *said)
{
	nv_return err = qcul_nvml_ready();

	if (err)
		return err;
	if (!atomic_flag_test_and_set(said))
		fprintf(stderr, "qcuda: %s is not supported\n", name);
	return NV_NOT_SUPPORTED;
}

/*
 * Pointers and numbers are passed in the same registers, so that these six parameters are any six.
 * A caller that passes fewer leaves the others undefined, and they are not looked at.
 */
#define QUIET(name, to)                                                                           \
	PUBLIC nv_return name(const void *a, const void *b, const void *c, const void *d,         \
			      const void *e, const void *f);                                      \
	nv_return name(const void *a, const void *b, const void *c, const void *d, const void *e, \
		       const void *f)                                                             \
	{                                                                                         \
		return quiet((const void *[]){a, b, c, d, e, f}, to);                             \
	}

#define UNSUPPORTED(name)                                   \
	PUBLIC nv_return name(void);                        \
	nv_return name(void)                                \
	{                                                   \
		static atomic_flag said = ATOMIC_FLAG_INIT; \
                                                            \
		return unsupported(#name, &said);           \
	}

#include "unknown.inc"

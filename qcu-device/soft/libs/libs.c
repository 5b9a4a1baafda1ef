// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The libraries of the software GPU, for the mirror: which there are, and their functions by name.
 */
#include <stdio.h>
#include <string.h>

#include "qcu-device/soft/libs/libs.h"

static const struct soft_symbol *const blas[] = {soft_blas_handle, soft_blas_level1,
						 soft_blas_level2, soft_blas_level3, NULL};
static const struct soft_symbol *const blaslt[] = {soft_blaslt, NULL};

void *soft_lib_open(struct be *be, const char *soname, char *why, size_t size)
{
	const struct soft_symbol *const *lib = NULL;

	(void)be;
	*why = 0;
	if (!strcmp(soname, "libcublas.so.13"))
		lib = blas;
	else if (!strcmp(soname, "libcublasLt.so.13"))
		lib = blaslt;
	if (!lib) {
		snprintf(why, size, "the software GPU has no %s", soname);
		return NULL;
	}
	if (!soft_openblas(NULL))
		snprintf(why, size,
			 "the software GPU needs libopenblas.so.0 for %s: install the package "
			 "libopenblas0-pthread on the host",
			 soname);
	return *why ? NULL : (void *)lib;
}

void *soft_lib_symbol(struct be *be, void *lib, const char *name)
{
	const struct soft_symbol *const *lists = lib;
	const struct soft_symbol *s;

	(void)be;
	for (; *lists; lists++)
		for (s = *lists; s->name; s++)
			if (!strcmp(s->name, name))
				return s->fn;
	return NULL;
}

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
static const struct soft_symbol *const fft[] = {soft_fft, NULL};
static const struct soft_symbol *const numbers[] = {soft_rand, NULL};

static bool have_openblas(void)
{
	return soft_openblas(NULL);
}

static bool have_fftw(void)
{
	return soft_fftw(false, NULL) && soft_fftw(true, NULL);
}

/* `have`: is there on the host what it needs? */
static const struct {
	const char *soname;
	const struct soft_symbol *const *lists;
	bool (*have)(void);
	const char *needs, *packages;
} libraries[] = {
	{"libcublas.so.13", blas, have_openblas, "libopenblas.so.0",
	 "the package libopenblas0-pthread"},
	{"libcublasLt.so.13", blaslt, have_openblas, "libopenblas.so.0",
	 "the package libopenblas0-pthread"},
	{"libcufft.so.12", fft, have_fftw, "libfftw3.so.3 and libfftw3f.so.3",
	 "the packages libfftw3-double3 and libfftw3-single3"},
	{"libcurand.so.10", numbers, NULL, NULL, NULL},
};

void *soft_lib_open(struct be *be, const char *soname, char *why, size_t size)
{
	size_t i = 0;

	(void)be;
	*why = 0;
	while (i < sizeof(libraries) / sizeof(libraries[0]) && strcmp(libraries[i].soname, soname))
		i++;
	if (i == sizeof(libraries) / sizeof(libraries[0]))
		snprintf(why, size, "the software GPU has no %s", soname);
	else if (libraries[i].have && !libraries[i].have())
		snprintf(why, size, "the software GPU needs %s for %s: install %s on the host",
			 libraries[i].needs, soname, libraries[i].packages);
	return *why ? NULL : (void *)libraries[i].lists;
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

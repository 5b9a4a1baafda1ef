// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * OpenBLAS and FFTW, loaded when a program first uses a library; and the instance that a thread
 * works with.
 */
#define _GNU_SOURCE /* RTLD_* */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "qcu-device/soft/libs/libs.h"

__thread struct be *soft_library_be;

static void *openblas, *fftw[2];
static pthread_once_t openblas_once = PTHREAD_ONCE_INIT, fftw_once = PTHREAD_ONCE_INIT;

/* The streams have threads of their own, so it needs no more. */
static void load_openblas(void)
{
	setenv("OPENBLAS_NUM_THREADS", "1", 0);
	openblas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
}

static void load_fftw(void)
{
	fftw[0] = dlopen("libfftw3f.so.3", RTLD_NOW | RTLD_LOCAL);
	fftw[1] = dlopen("libfftw3.so.3", RTLD_NOW | RTLD_LOCAL);
}

void *soft_openblas(const char *name)
{
	pthread_once(&openblas_once, load_openblas);
	return openblas && name ? dlsym(openblas, name) : openblas;
}

void *soft_fftw(bool twice, const char *name)
{
	char full[64];

	pthread_once(&fftw_once, load_fftw);
	if (!fftw[twice] || !name)
		return fftw[twice];
	snprintf(full, sizeof(full), "%s_%s", twice ? "fftw" : "fftwf", name);
	return dlsym(fftw[twice], full);
}

int soft_native(struct be *be, struct be_stream *s, void **stream)
{
	int sticky = atomic_load(&be->sticky);

	soft_library_be = be;
	*stream = s;
	return sticky;
}

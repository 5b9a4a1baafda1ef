// SPDX-License-Identifier: GPL-2.0-or-later
/* OpenBLAS, loaded when a program first uses a library; and the instance that a thread works with.
 */
#define _GNU_SOURCE /* RTLD_* */
#include <dlfcn.h>
#include <stdlib.h>

#include "qcu-device/soft/libs/libs.h"

__thread struct be *soft_library_be;

static void *openblas;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The streams have threads of their own, so it needs no more. */
static void load(void)
{
	setenv("OPENBLAS_NUM_THREADS", "1", 0);
	openblas = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
}

void *soft_openblas(const char *name)
{
	pthread_once(&once, load);
	return openblas && name ? dlsym(openblas, name) : openblas;
}

int soft_native(struct be *be, struct be_stream *s, void **stream)
{
	int sticky = atomic_load(&be->sticky);

	soft_library_be = be;
	*stream = s;
	return sticky;
}

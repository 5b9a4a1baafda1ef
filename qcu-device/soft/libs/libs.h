/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the libraries of the software GPU share. */
#ifndef SOFT_LIBS_H
#define SOFT_LIBS_H

#include "qcu-device/soft/libs/blas.h"

/* The instance that the thread works with: a function that makes a handle has no other way. */
extern __thread struct be *soft_library_be;

/* A function of OpenBLAS, or NULL. Without a name: is OpenBLAS there? */
void *soft_openblas(const char *name);

/* The same of FFTW for double, or for float. The name is what follows "fftw_". */
void *soft_fftw(bool twice, const char *name);

extern const struct soft_symbol soft_fft[], soft_rand[];

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Libraries that a program has loaded (library.c). */
#ifndef QCUL_LIBRARY_H
#define QCUL_LIBRARY_H

#include "qcu-library/module/module.h"

struct CUlib_st;
/* The library with this module. NULL: the module was registered, or is unloaded. */
struct CUlib_st *qcul_library_of(const struct qcul_module *module);

/* It was loaded as a module of the driver API. */
void qcul_library_alone(struct CUlib_st *lib);
/* Is it a library, and not such a module? Any pointer may be passed. */
bool qcul_library_shared(const struct CUlib_st *lib);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of all functions of cuda.h. */
#ifndef QCUL_DRIVER_TABLE_H
#define QCUL_DRIVER_TABLE_H

#include <stddef.h>

enum { QCUL_ANY_STREAM, QCUL_OWN_STREAM };

/* The entries of one name follow one another, the oldest first. */
struct qcul_driver_function {
	const char *name; /* without _v2 and the like */
	int since;	  /* the version of CUDA that first has it */
	int stream;	  /* QCUL_OWN_STREAM: stream 0 is the thread's own (_ptsz, _ptds) */
	void (*address)(void);
};
/* proc.c looks functions up in this table. */
void qcul_driver_functions_are(const struct qcul_driver_function *list, size_t count);

#endif

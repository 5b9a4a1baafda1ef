/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists the functions that a program takes from qCUDA's libraries and that do not work there. */
#ifndef QCUL_CALLS_H
#define QCUL_CALLS_H

#include "qcu-library/loader/elf.h"

/* Said at most so often. */
#define QCUL_CALLS_MAX 4096u

/*
 * Writes the path of a library beside this program, where qCUDA's lie. False: there is none of this
 * name.
 */
bool qcul_calls_library(const char *name, char *path, size_t size);

/*
 * Calls `say` for each function that the file imports from a library of ours: one that answers "not
 * supported", or one that is not there at all (lacking), and which the file cannot do without.
 */
void qcul_calls_read(const struct qcul_elf *e,
		     void (*say)(const char *library, const char *name, bool lacking));

#endif

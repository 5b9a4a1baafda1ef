/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libqcuda-loader.so: makes the functions of a runtime that is linked into a program jump to those
 * of our library.
 */
#ifndef QCUL_LOADER_H
#define QCUL_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qcu-library/loader/linked.h"

#define QCUL_MAJOR_MIN 11u
#define QCUL_MAJOR_MAX 13u

/* Places for names. A stub is a few instructions that jump to where its slot points. */
#define QCUL_STUBS 2048

/* say.c: prints "qcuda: " and one line. */
void qcul_loader_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- bind.c ---- */

/*
 * The address that a function of this name shall jump to. It stays valid, and nothing is loaded
 * yet. NULL: there are too many names. Calls must not overlap: the dynamic linker's lock is held.
 */
void *qcul_bind_stub(unsigned int major, const char *name);
/* Loads the libraries of all functions that were asked for, and ends the program if it cannot. */
void qcul_bind_load(void);
/* Called by a stub that is used for the first time. Returns the function. */
void *qcul_bind(unsigned long slot);

/* ---- traced.c ---- */

/* In libcudart.so.13: a call begins. False: it is not to be told when it ends. */
typedef bool qcul_call_begins_fn(const char *name);
typedef void qcul_call_ends_fn(void);

/*
 * Makes the trace see the calls of a library that is loaded with the offset `base`. If it cannot,
 * the trace does not have them. The dynamic linker's lock is held, and nothing is bound yet.
 */
void qcul_trace_object(const struct qcul_elf *e, uintptr_t base);

/* ---- patch.c ---- */

/*
 * Writes the jumps into the code of a file that is loaded with the offset `base`. Returns NULL, or
 * why that is impossible. Then nothing is changed.
 */
const char *qcul_patch(const struct qcul_elf *e, int fd, const struct qcul_linked *l,
		       uintptr_t base, void *const *to);
/* True if a function begins with such a jump. NULL is none. */
bool qcul_is_patched(const void *function);

#endif

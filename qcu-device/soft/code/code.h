/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device code of a program: PTX text, from fat binaries, linked.
 */
#ifndef QCU_SOFT_CODE_H
#define QCU_SOFT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/qcuerror.h"

/* The PTX text of one translation unit. */
struct soft_unit {
	char *text; /* NUL-terminated */
	size_t len;
	unsigned int arch;
	unsigned int max_regs; /* 0: not said */
};

struct soft_units {
	struct soft_unit *unit;
	size_t count;
};

/*
 * fatbin.c: reads an image: a fat binary, several of them in a row, or PTX text. Takes the parts
 * that a device of compute capability `sm` can run. If there are none, returns an error and writes
 * a sentence to `why`.
 */
int soft_fatbin_read(const void *image, size_t len, unsigned int sm, struct soft_units *units,
		     char *why, size_t why_size);
void soft_units_free(struct soft_units *units);

/* link.c: links several units into one text. The caller still owns the units. */
int soft_link(const struct soft_units *units, char **text, size_t *len, char *why, size_t why_size);

#endif

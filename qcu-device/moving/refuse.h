/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sentence that says why something is not taken. */
#ifndef QCU_REFUSE_H
#define QCU_REFUSE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes the reason, and returns false. */
static inline bool __attribute__((format(printf, 3, 4)))
refuse_moving(char *why, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return false;
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/* How be_check reports a result, and counts. */
#include <stdarg.h>

#include "qcu-device/backend/cuda/check/be_check.h"

unsigned int passed, failed;
FILE *report;

bool check(bool good, const char *fmt, ...)
{
	va_list ap;

	fprintf(report, good ? "ok      " : "FAILED  ");
	va_start(ap, fmt);
	vfprintf(report, fmt, ap);
	va_end(ap);
	fputc('\n', report);
	if (good)
		passed++;
	else
		failed++;
	return good;
}

bool want(int got, int wanted, const char *what)
{
	if (got == wanted)
		return check(true, "%s", what);
	return check(false, "%s: %d instead of %d", what, got, wanted);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the software GPU prints. */
#include <stdarg.h>
#include <stdio.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/soft/gpu/soft.h"

void soft_say(const char *fmt, ...)
{
	char text[480];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	complain("soft GPU: %s", text);
}

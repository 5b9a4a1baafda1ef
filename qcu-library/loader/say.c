// SPDX-License-Identifier: LGPL-2.1-or-later
/* One line on the program's stderr. It uses no stream, because the program may be starting still.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "qcu-library/loader/loader.h"

void qcul_loader_say(const char *format, ...)
{
	static const char who[] = "qcuda: ";
	char line[4096 + 512];
	va_list ap;
	size_t len;
	int n;

	memcpy(line, who, sizeof(who));
	va_start(ap, format);
	n = vsnprintf(line + sizeof(who) - 1, sizeof(line) - sizeof(who), format, ap);
	va_end(ap);
	if (n < 0)
		return;
	len = strlen(line);
	line[len++] = '\n';
	/* There is nothing to do if nobody hears it. */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}

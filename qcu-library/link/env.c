// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The environment variables that tune the library, read with one syntax. A value that makes no
 * sense is reported and ignored: a typing error must not change what a program computes.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qcu-library/link/link.h"

bool qcul_env_bytes(const char *name, uint64_t *bytes)
{
	const char *text = getenv(name);
	unsigned long long n;
	unsigned int shift = 0;
	char *end;

	if (!text || !*text)
		return false;
	n = strtoull(text, &end, 10);
	if (end == text || *text == '-')
		goto bad;
	switch (*end) {
	case 'K':
	case 'k':
		shift = 10;
		end++;
		break;
	case 'M':
	case 'm':
		shift = 20;
		end++;
		break;
	case 'G':
	case 'g':
		shift = 30;
		end++;
		break;
	}
	if (*end || n > UINT64_MAX >> shift)
		goto bad;
	*bytes = (uint64_t)n << shift;
	return true;

bad:
	fprintf(stderr, "qcuda: %s=%s is no size such as 4194304, 512K or 4M; ignored\n", name,
		text);
	return false;
}

bool qcul_env_on(const char *name)
{
	const char *text = getenv(name);

	return text && *text && strcmp(text, "0") != 0;
}

void qcul_trace(const char *format, ...)
{
	static const char who[] = "qcuda: ";
	char line[200];
	va_list ap;
	int n;

	if (!qcul_env_on("QCU_TRACE"))
		return;
	memcpy(line, who, sizeof(who));
	va_start(ap, format);
	n = vsnprintf(line + sizeof(who) - 1, sizeof(line) - sizeof(who), format, ap);
	va_end(ap);
	if (n < 0)
		return;
	strcat(line, "\n");
	/* The caller of malloc may hold the lock of stderr. */
	if (write(STDERR_FILENO, line, strlen(line)) < 0)
		return;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Says what the host does not give to the sandbox. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "qcu-device/jail/jail_impl.h"

bool jail_lacks(const struct jail *j, const char *what)
{
	const char *why = strerror(errno);

	if (!j->weak)
		fprintf(stderr, "qcu-device: sandbox: the host does not give %s: %s\n", what, why);
	else if (!j->told)
		fprintf(stderr, "qcu-device: WEAK SANDBOX: without %s: %s\n", what, why);
	return j->weak;
}

void jail_lacks_extra(const struct jail *j, const char *what)
{
	if (!j->told)
		fprintf(stderr, "qcu-device: sandbox: without %s: %s\n", what, strerror(errno));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls with no handle: what each returns natively, and a line that is compared with a native
 * run's. */
#ifndef BARE_H
#define BARE_H

#include <string>

#include "libs.h"

#define ANSWERS(want, call) answers(__FILE__, __LINE__, #call, (int)(want), (int)(call))

static inline void answers(const char *file, int line, const char *call, int want, int got)
{
	printf("%s: %d\n", call, got);
	REQUIRE(got == want, "%s:%d: %s gave %d, not %d", file, line, call, got, want);
}

/* The texts of all statuses that have one. */
template <typename S> static void texts(const char *(*text)(S), int greatest)
{
	std::string unknown = text((S)(greatest + 1));

	printf("unknown: %s\n", unknown.c_str());
	for (int i = 0; i <= greatest; i++)
		if (unknown != text((S)i))
			printf("%d: %s\n", i, text((S)i));
}

#endif

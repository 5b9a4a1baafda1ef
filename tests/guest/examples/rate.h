/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the examples share: the size from the command line, and one line for each measurement, with
 * the reason for its speed.
 */
#ifndef RATE_H
#define RATE_H

#include "check.h"

static inline size_t size_argument(int argc, char **argv)
{
	size_t mib = argc > 1 ? (size_t)atoi(argv[1]) : 32;

	REQUIRE(argc <= 2 && mib >= 1 && mib <= 16384, "usage: %s [MiB]", argv[0]);
	return mib << 20;
}

static inline void rate(const char *when, double bytes, double seconds, const char *why)
{
	printf("%-18s %8.3f GB/s  %s\n", when, bytes / seconds / 1e9, why);
	fflush(stdout);
}

#endif

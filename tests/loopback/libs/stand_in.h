/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of a library that stands in for one of NVIDIA's. */
#ifndef STAND_IN_H
#define STAND_IN_H

#include <stddef.h>
#include <string.h>

struct stand_in {
	const char *name;
	void *fn;
};

#define STAND_IN_FIND(all, name) find_stand_in(all, sizeof(all) / sizeof(*(all)), name)

/* NULL: it is not among them. */
static inline void *find_stand_in(const struct stand_in *all, size_t count, const char *name)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!strcmp(all[i].name, name))
			return all[i].fn;
	return NULL;
}

#endif

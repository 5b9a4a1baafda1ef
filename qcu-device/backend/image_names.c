// SPDX-License-Identifier: GPL-2.0-or-later
/* A list of names, each once. */
#define _GNU_SOURCE /* strndup */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/image.h"

void image_names_add(struct image_names *names, const char *name, size_t len)
{
	char **more = names->name, *copy = strndup(name, len);

	if (copy && names->count == names->room) {
		names->room = 2 * names->room + 16;
		more = realloc(more, names->room * sizeof(*more));
	}
	if (!copy || !more) {
		free(copy);
		names->room = names->count;
		names->no_memory = true;
		return;
	}
	names->name = more;
	names->name[names->count++] = copy;
}

void image_names_free(struct image_names *names)
{
	while (names->count)
		free(names->name[--names->count]);
	free(names->name);
	*names = (struct image_names){0};
}

static int compare_image_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void drop_equal_names(struct image_names *names)
{
	size_t i, n = 0;

	for (i = 0; i < names->count; i++) {
		if (n && !strcmp(names->name[n - 1], names->name[i]))
			free(names->name[i]);
		else
			names->name[n++] = names->name[i];
	}
	names->count = n;
}

void image_names_sort(struct image_names *names)
{
	if (names->count)
		qsort(names->name, names->count, sizeof(*names->name), compare_image_names);
	drop_equal_names(names);
}

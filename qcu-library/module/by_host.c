// SPDX-License-Identifier: LGPL-2.1-or-later
/* The table by host address. */
#include <stdint.h>
#include <stdlib.h>

#include "qcu-library/module/by_host.h"

/* The slot of a host address, or the empty slot where it belongs. The table is never full. */
static struct qcul_host_slot *slot_of(const struct qcul_by_host *t, const void *host)
{
	size_t i = ((uint64_t)(uintptr_t)host * 0x9e3779b97f4a7c15ull) >> 32;

	for (i &= t->room - 1; t->v[i].host && t->v[i].host != host;)
		i = (i + 1) & (t->room - 1);
	return &t->v[i];
}

static bool grow_host_table(struct qcul_by_host *t)
{
	struct qcul_by_host bigger = {.count = t->count, .room = t->room ? 2 * t->room : 64};
	size_t i;

	bigger.v = calloc(bigger.room, sizeof(*bigger.v));
	if (!bigger.v)
		return false;
	for (i = 0; i < t->room; i++)
		if (t->v[i].host)
			*slot_of(&bigger, t->v[i].host) = t->v[i];
	free(t->v);
	*t = bigger;
	return true;
}

bool qcul_by_host_put(struct qcul_by_host *t, const void *host, void *value)
{
	struct qcul_host_slot *slot;

	if (t->count >= t->room / 2 && !grow_host_table(t))
		return false;
	slot = slot_of(t, host);
	if (!slot->host)
		t->count++;
	slot->host = host;
	slot->value = value;
	return true;
}

void *qcul_by_host_get(const struct qcul_by_host *t, const void *host)
{
	return host && t->room ? slot_of(t, host)->value : NULL;
}

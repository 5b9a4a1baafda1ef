/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A table by host address: a hash table with open addressing. A value of NULL marks an entry that
 * is no longer registered. The caller locks.
 */
#ifndef QCUL_BY_HOST_H
#define QCUL_BY_HOST_H

#include <stdbool.h>
#include <stddef.h>

struct qcul_host_slot {
	const void *host; /* NULL: the slot is empty */
	void *value;
};

struct qcul_by_host {
	struct qcul_host_slot *v;
	size_t count, room; /* used slots, slots */
};

/* False: there is no memory. */
bool qcul_by_host_put(struct qcul_by_host *t, const void *host, void *value);
void *qcul_by_host_get(const struct qcul_by_host *t, const void *host);

#endif

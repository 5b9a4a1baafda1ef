// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * fork() and the reset of a device: the list of files that must act, in the order of their
 * locks.
 */
#include <stdbool.h>
#include <string.h>

#include "qcu-library/link/fork.h"

/* Sorted by `order`. The list needs no lock, because modules register before there is a second
 * thread. */
static struct {
	struct qcul_fork_entry *entries;
} process;

void qcul_at_fork(struct qcul_fork_entry *entry)
{
	struct qcul_fork_entry **at = &process.entries;

	while (*at && (*at)->order < entry->order)
		at = &(*at)->next;
	entry->next = *at;
	*at = entry;
}

/* The lock that was taken last is released first. */
static void release_from(struct qcul_fork_entry *p, bool child)
{
	void (*act)(void);

	if (!p)
		return;
	release_from(p->next, child);
	act = child ? p->child : p->parent;
	if (act)
		act();
	pthread_mutex_unlock(&p->lock);
}

static void forget_from(const struct qcul_fork_entry *p, int device)
{
	if (!p)
		return;
	forget_from(p->next, device);
	if (p->reset)
		p->reset(device);
	if (device >= 0)
		return;
	if (p->forget)
		p->forget();
	if (p->session)
		memset(p->session, 0, p->bytes);
}

void qcul_fork_before(void)
{
	struct qcul_fork_entry *p;

	for (p = process.entries; p; p = p->next) {
		pthread_mutex_lock(&p->lock);
		if (p->before)
			p->before();
	}
}

void qcul_fork_parent(void)
{
	release_from(process.entries, false);
}

void qcul_fork_child(void)
{
	release_from(process.entries, true);
}

void qcul_forget(int device)
{
	forget_from(process.entries, device);
}

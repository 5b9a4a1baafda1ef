// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * fork(): the list of modules that must act before and after it, in the order of their locks.
 */
#include <stddef.h>

#include "qcu-library/link/fork.h"

/* Sorted by `order`. The list needs no lock, because modules register before there is a second
 * thread. */
static struct qcul_fork_part *parts;

void qcul_at_fork(struct qcul_fork_part *part)
{
	struct qcul_fork_part **at = &parts;

	while (*at && (*at)->order < part->order)
		at = &(*at)->next;
	part->next = *at;
	*at = part;
}

static void act_before_fork(const struct qcul_fork_part *p)
{
	if (p->before)
		p->before();
	else if (p->lock)
		pthread_mutex_lock(p->lock);
}

static void act_after_fork(const struct qcul_fork_part *p, bool child)
{
	void (*instead)(void) = child ? p->child : p->parent;

	if (instead)
		instead();
	else if (p->lock)
		pthread_mutex_unlock(p->lock);
}

/* The lock that was taken last is released first. */
static void release_from(const struct qcul_fork_part *p, bool child)
{
	if (!p)
		return;
	release_from(p->next, child);
	act_after_fork(p, child);
}

static void forget_from(const struct qcul_fork_part *p, bool had_session)
{
	if (!p)
		return;
	forget_from(p->next, had_session);
	if (p->forget)
		p->forget(had_session);
}

void qcul_fork_before(void)
{
	const struct qcul_fork_part *p;

	for (p = parts; p; p = p->next)
		act_before_fork(p);
}

void qcul_fork_parent(void)
{
	release_from(parts, false);
}

void qcul_fork_child(void)
{
	release_from(parts, true);
}

void qcul_fork_forget(bool had_session)
{
	forget_from(parts, had_session);
}

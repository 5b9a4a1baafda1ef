// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chooses the mirror's addresses of registered memory: the process's own address, or an address in
 * the annex. Only this file gives out annex addresses. A program may register as many ranges as it
 * likes, and all of its threads need the lock. So the number of steps is logarithmic in the number
 * of ranges.
 *
 * Each session has two trees of ranges that do not overlap. In the tree of the annex each range
 * knows the gap in front of it and the largest such gap in its subtree. A new range goes to the
 * lowest address with a gap that is large enough.
 */
#include <linux/rbtree_augmented.h>

#include "qcuda.h"

static u64 qcud_place_len(const struct qcud_group *group)
{
	return group->mem.end - group->mem.start;
}

static inline u64 qcud_place_gap(struct qcud_group *group)
{
	return group->gap;
}

RB_DECLARE_CALLBACKS_MAX(static, qcud_place_callbacks, struct qcud_group, placed_node, u64,
			 most_gap, qcud_place_gap)

static struct qcud_group *qcud_placed(struct rb_node *node)
{
	return rb_entry(node, struct qcud_group, placed_node);
}

static u64 qcud_annex(const struct qcud_session *session)
{
	return session->dev->config.window_base + session->dev->config.window_size;
}

/* Places the group at the process's own address, if that is possible. */
static bool qcud_place_own(struct qcud_group *group, unsigned int *steps)
{
	struct qcud_session *session = group->session;
	u64 at = group->mem.start, len = qcud_place_len(group);
	struct rb_node **link = &session->own.rb_node, *parent = NULL;

	/* The mirror keeps the window for chunks, whatever this process has mapped there. */
	if (at + len > session->dev->config.window_base &&
	    at < qcud_annex(session) + QCU_ANNEX_SIZE)
		return false;
	while (*link) {
		struct qcud_group *other = qcud_placed(*link);

		(*steps)++;
		parent = *link;
		if (at + len <= other->at)
			link = &parent->rb_left;
		else if (at >= other->at + qcud_place_len(other))
			link = &parent->rb_right;
		else
			return false;
	}
	group->at = at;
	group->placed = QCUD_PLACED_OWN;
	rb_link_node(&group->placed_node, parent, link);
	rb_insert_color(&group->placed_node, &session->own);
	return true;
}

/*
 * The first group in the annex with a gap of this size in front of it. NULL: there is only room
 * behind the last group.
 */
static struct qcud_group *qcud_place_find(struct rb_node *node, u64 len, unsigned int *steps)
{
	while (node && qcud_placed(node)->most_gap >= len) {
		struct rb_node *left = node->rb_left;

		(*steps)++;
		if (left && qcud_placed(left)->most_gap >= len)
			node = left;
		else if (qcud_placed(node)->gap >= len)
			return qcud_placed(node);
		else
			node = node->rb_right;
	}
	return NULL;
}

static bool qcud_place_annex(struct qcud_group *group, unsigned int *steps)
{
	struct qcud_session *session = group->session;
	u64 at = qcud_annex(session), len = qcud_place_len(group);
	u64 end = at + QCU_ANNEX_SIZE;
	struct qcud_group *next = qcud_place_find(session->annex.rb_node, len, steps);
	struct rb_node *last = next ? rb_prev(&next->placed_node) : rb_last(&session->annex);
	struct rb_node **link = &session->annex.rb_node, *parent = NULL;

	if (last)
		at = qcud_placed(last)->at + qcud_place_len(qcud_placed(last));
	if (len > end - at)
		return false;
	if (next && !next->placed_node.rb_left) {
		parent = &next->placed_node;
		link = &parent->rb_left;
	} else if (last) {
		parent = last;
		link = &parent->rb_right;
	}
	group->at = at;
	group->placed = QCUD_PLACED_ANNEX;
	group->gap = 0;
	group->most_gap = 0;
	rb_link_node(&group->placed_node, parent, link);
	if (next) {
		next->gap -= len;
		qcud_place_callbacks.propagate(&next->placed_node, NULL);
	}
	rb_insert_augmented(&group->placed_node, &session->annex, &qcud_place_callbacks);
	return true;
}

/*
 * Chooses group->at. With `own`, tries the process's own address first. Returns false if there is
 * no room.
 */
bool qcud_place(struct qcud_group *group, bool own)
{
	struct qcud_session *session = group->session;
	unsigned int steps = 0;
	bool found;

	spin_lock(&session->lock);
	found = (own && qcud_place_own(group, &steps)) || qcud_place_annex(group, &steps);
	spin_unlock(&session->lock);
	group->unmap->cmd.unmap.va = group->at;
	qcud_stat_add(QCUD_STAT_PLACE_STEPS, steps);
	return found;
}

/* Gives the group's addresses back. The mirror has no part of the group any more. */
void qcud_place_end(struct qcud_group *group)
{
	struct qcud_session *session = group->session;
	struct qcud_group *next;
	struct rb_node *node;

	lockdep_assert_held(&session->lock);

	if (group->placed == QCUD_PLACED_OWN)
		rb_erase(&group->placed_node, &session->own);
	if (group->placed == QCUD_PLACED_ANNEX) {
		node = rb_next(&group->placed_node);
		rb_erase_augmented(&group->placed_node, &session->annex, &qcud_place_callbacks);
		if (node) {
			next = qcud_placed(node);
			next->gap += group->gap + qcud_place_len(group);
			qcud_place_callbacks.propagate(node, NULL);
		}
	}
	group->placed = QCUD_PLACED_NOWHERE;
}

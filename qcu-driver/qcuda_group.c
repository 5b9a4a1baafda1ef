// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Groups: a range of addresses and its chunks. A new group only has addresses. A chunk is made at
 * its first touch by the CPU or by a command. Of registered memory, qcuda_register.c makes the
 * chunks.
 */
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "qcuda.h"

struct qcud_group *qcud_group_new(struct qcud_session *session, unsigned long start,
				  unsigned long end)
{
	const struct qcu_config *config = &session->dev->config;
	struct qcud_group *group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);

	if (!group)
		return NULL;
	group->unmap = qcud_request_new(QCU_OP_UNMAP);
	if (!group->unmap) {
		kfree(group);
		return NULL;
	}
	group->unmap->cmd.unmap.va = start;
	group->unmap->cmd.unmap.len = end - start;
	kref_init(&group->refs);
	refcount_set(&group->users, 1);
	kref_get(&session->refs);
	group->session = session;
	group->at = start;
	group->in_window =
		start >= config->window_base && end - config->window_base <= config->window_size;
	RB_CLEAR_NODE(&group->node);
	INIT_LIST_HEAD(&group->closing_node);
	INIT_LIST_HEAD(&group->managed_node);
	qcud_chunks_init(&group->mem, start, end);
	qcud_stat_add(QCUD_STAT_GROUPS, 1);
	return group;
}

static void qcud_group_release(struct kref *refs)
{
	struct qcud_group *group = container_of(refs, struct qcud_group, refs);

	qcud_request_put(group->unmap);
	qcud_session_put(group->session);
	if (group->mm)
		mmdrop(group->mm);
	kfree(group);
	qcud_stat_add(QCUD_STAT_GROUPS, -1);
}

void qcud_group_put(struct qcud_group *group)
{
	kref_put(&group->refs, qcud_group_release);
}

/*
 * Returns a chunk of the group, and makes it if necessary. For any use except reading, the group
 * becomes its only owner.
 */
struct qcud_chunk *qcud_group_chunk(struct qcud_group *group, unsigned long index,
				    enum qcud_use use)
{
	struct qcud_chunk *chunk;

	lockdep_assert_held(&group->mem.lock);

	if (group->freed)
		return ERR_PTR(-EFAULT);
	chunk = xa_load(&group->mem.xa, index);
	if (!chunk) {
		chunk = qcud_chunk_make(&group->mem, index, group->session, group->blocks,
					use == QCUD_USE_FAULT);
		if (!IS_ERR(chunk)) {
			group->nr_chunks++;
			group->nr_pages += chunk->nr;
			qcud_chunk_count(group, chunk, chunk->nr);
		}
	} else if (use != QCUD_USE_READ) {
		chunk = qcud_chunk_unshare(&group->mem, index, chunk, true);
	}
	if (use == QCUD_USE_GPU && !IS_ERR(chunk))
		chunk->gpu = true;
	return chunk;
}

/* Is there enough memory for all missing chunks from `first` to `last`? */
static bool qcud_memory_enough(struct qcud_group *group, unsigned long first, unsigned long last)
{
	unsigned long pages, end;
	struct qcud_chunk *chunk;
	unsigned long index;

	end = group->mem.start + (last << group->mem.shift) + qcud_chunk_bytes(&group->mem, last);
	pages = (end - group->mem.start - (first << group->mem.shift)) >> PAGE_SHIFT;
	xa_for_each_range(&group->mem.xa, index, chunk, first, last)
		pages -= chunk->nr;
	return pages <= (unsigned long)max(si_mem_available(), 0L);
}

/* Makes chunks resident for a command. *mapped: the mirror has all of them already. */
int qcud_group_populate(struct qcud_group *group, unsigned long first, unsigned long last,
			enum qcud_use use, bool *mapped)
{
	bool checked = false;
	unsigned long i;
	int ret = 0;

	*mapped = true;
	for (i = first; i <= last && !ret; i++) {
		struct qcud_chunk *chunk;

		/*
		 * The lock is taken for one chunk at a time, so that page faults in the same
		 * mapping can go on.
		 */
		mutex_lock(&group->mem.lock);
		if (!checked && !xa_load(&group->mem.xa, i)) {
			checked = true;
			if (!qcud_memory_enough(group, i, last))
				ret = -ENOMEM;
		}
		chunk = ret ? NULL : qcud_group_chunk(group, i, use);
		if (IS_ERR(chunk))
			ret = PTR_ERR(chunk);
		else if (chunk && !chunk->mapped)
			*mapped = false;
		mutex_unlock(&group->mem.lock);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return ret;
}

/* Gives the pages back. No mirror and no command uses them any more. */
void qcud_group_free(struct qcud_group *group)
{
	mutex_lock(&group->mem.lock);
	group->freed = true;
	qcud_chunks_free(&group->mem);
	qcud_mm_count(group->mm, -group->counted);
	group->counted = 0;
	if (group->registered) {
		atomic64_sub(group->accounted, &group->mm->pinned_vm);
		group->accounted = 0;
	}
	qcud_memory_returned(group->nr_pages);
	mutex_unlock(&group->mem.lock);
}

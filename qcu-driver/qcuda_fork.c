// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A snapshot: what a forked child gets of its parent's chunks. The snapshot shares the parent's
 * chunks. They are taken out of page tables, and the first of the two processes that touches a
 * chunk makes the copy. The parent keeps its pages, because a GPU may know them; the child gets the
 * copy.
 *
 * Two kinds of chunks are copied at once: chunks that a GPU may write without the driver's
 * knowledge, because they are registered, and chunks that may be written at this moment. vfork and
 * posix_spawn do not call this code.
 *
 * In the driver a snapshot has neither session nor group. For the child it is ordinary memory: the
 * child may cut it, move it, and pass it on to its own children. If there is no memory for a copy,
 * the child loses the content. A touch then gives SIGBUS, as with a file whose pages cannot be
 * read.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "qcuda.h"

struct qcud_snapshot {
	struct kref refs;	/* VMAs */
	struct mm_struct *mm;	/* only compared, never used */
	bool incomplete;	/* a missing chunk is lost; else it was never touched */
	struct qcud_chunks mem; /* chunk numbers are the same as the parent's */
};

static void qcud_snapshot_release(struct kref *refs)
{
	struct qcud_snapshot *snapshot = container_of(refs, struct qcud_snapshot, refs);

	qcud_chunks_free(&snapshot->mem);
	kfree(snapshot);
	qcud_stat_add(QCUD_STAT_SNAPSHOTS, -1);
}

static void qcud_snapshot_close(struct vm_area_struct *vma)
{
	struct qcud_snapshot *snapshot = vma->vm_private_data;

	if (snapshot)
		kref_put(&snapshot->refs, qcud_snapshot_release);
}

/* The VMA was forked again, or cut, or moved. */
static void qcud_snapshot_open(struct vm_area_struct *vma)
{
	struct qcud_snapshot *snapshot = vma->vm_private_data;

	if (!snapshot)
		return;
	if (vma->vm_mm != snapshot->mm)
		qcud_fork(vma, &snapshot->mem, NULL, true);
	else
		kref_get(&snapshot->refs);
}

static struct qcud_chunk *qcud_snapshot_chunk(struct qcud_snapshot *snapshot, unsigned long index)
{
	struct qcud_chunk *chunk = xa_load(&snapshot->mem.xa, index);

	if (!chunk && snapshot->incomplete)
		return NULL;
	if (!chunk)
		return qcud_chunk_make(&snapshot->mem, index, NULL, NULL, true);
	return qcud_chunk_unshare(&snapshot->mem, index, chunk, false);
}

static vm_fault_t qcud_snapshot_fault(struct vm_fault *vmf)
{
	struct qcud_snapshot *snapshot = vmf->vma->vm_private_data;
	struct qcud_chunk *chunk;
	struct qcud_span part;
	unsigned long index;
	vm_fault_t ret;

	if (!snapshot)
		goto lost;
	index = qcud_chunk_index(&snapshot->mem, vmf->pgoff);
	part = qcud_chunk_span(&snapshot->mem, index);
	mutex_lock(&snapshot->mem.lock);
	chunk = qcud_snapshot_chunk(snapshot, index);
	if (IS_ERR(chunk))
		ret = VM_FAULT_OOM;
	else if (!chunk || !chunk->nr)
		ret = VM_FAULT_SIGBUS;
	else
		ret = qcud_chunk_insert(vmf, &snapshot->mem, index, chunk, &part);
	mutex_unlock(&snapshot->mem.lock);
	if (ret != VM_FAULT_SIGBUS)
		return ret;
lost:
	pr_warn_ratelimited(
		"qcuda: process %d: there was no memory for its copy of its parent's memory at %#lx\n",
		task_tgid_nr(current), vmf->address);
	return VM_FAULT_SIGBUS;
}

static const struct vm_operations_struct qcud_snapshot_ops = {
	.open = qcud_snapshot_open,
	.close = qcud_snapshot_close,
	.fault = qcud_snapshot_fault,
};

/*
 * Takes a range of the file out of the page tables of all processes that map it. Other processes of
 * the family lose their entries, too. That costs them only a page fault.
 */
static void qcud_zap(struct address_space *mapping, unsigned long start, unsigned long end)
{
	if (start < end)
		unmap_mapping_range(mapping, start, end - start, 1);
}

/*
 * Takes the chunks that can be shared out of page tables, run by run. If `group` is not NULL, the
 * chunks belong to it.
 */
static void qcud_zap_shareable(struct address_space *mapping, struct qcud_chunks *from,
			       struct qcud_group *group, unsigned long first, unsigned long last)
{
	unsigned long index, start = 0, end = 0;
	struct qcud_chunk *chunk;

	xa_for_each_range(&from->xa, index, chunk, first, last) {
		unsigned long at = from->start + (index << from->shift);

		if (chunk->gpu)
			continue;
		if (at != end) {
			qcud_zap(mapping, start, end);
			start = at;
		}
		end = at + qcud_chunk_bytes(from, index);
		if (group)
			qcud_chunk_count(group, chunk, chunk->nr);
	}
	qcud_zap(mapping, start, end);
}

/*
 * Is it sure that the chunk cannot change? It has been taken out of page tables, so no page may
 * have a reference except ours. get_user_pages_fast() takes its reference before it reads the page
 * table again. The barrier here pairs with the barrier in get_user_pages_fast().
 */
static bool qcud_chunk_still(const struct qcud_chunk *chunk)
{
	unsigned int i;

	if (chunk->gpu)
		return false;
	smp_mb();
	for (i = 0; i < chunk->nr; i++)
		if (page_count(chunk->pages[i]) != 1)
			return false;
	return true;
}

/* Gives the child the chunk, shared or as a copy. Returns false if the child gets neither. */
static bool qcud_snapshot_take(struct qcud_snapshot *snapshot, unsigned long index,
			       struct qcud_chunk *chunk, bool share)
{
	struct qcud_chunk *mine = chunk;

	if (share) {
		refcount_inc(&chunk->refs);
	} else {
		mutex_lock(&chunk->lock);
		mine = qcud_chunk_copy(chunk);
		mutex_unlock(&chunk->lock);
		if (!mine)
			return false;
	}
	if (!xa_err(xa_store(&snapshot->mem.xa, index, mine, GFP_KERNEL)))
		return true;
	qcud_chunk_put(mine);
	return false;
}

static struct qcud_snapshot *qcud_snapshot_new(struct mm_struct *mm, const struct qcud_chunks *from)
{
	struct qcud_snapshot *snapshot = kzalloc(sizeof(*snapshot), GFP_KERNEL_ACCOUNT);

	if (!snapshot)
		return NULL;
	kref_init(&snapshot->refs);
	snapshot->mm = mm;
	qcud_chunks_init(&snapshot->mem, from->start, from->end);
	snapshot->mem.shift = from->shift;
	qcud_stat_add(QCUD_STAT_SNAPSHOTS, 1);
	return snapshot;
}

/*
 * Called for the VMA of a child while the kernel sets it up, with the mmap_lock of parent and child
 * held for writing. `from` holds the parent's chunks. `group` is the parent's group, and its
 * `writers` counts the commands that let the device write to any of the chunks. If `group` is NULL,
 * no device knows the chunks. If not `whole`, the chunks do not have all of the content, and the
 * child gets none of it.
 *
 * A command that is about to begin takes from->lock after it has been counted in `writers`. So
 * either it is counted by now, or it finds the state that this function leaves behind.
 */
void qcud_fork(struct vm_area_struct *vma, struct qcud_chunks *from, struct qcud_group *group,
	       bool whole)
{
	unsigned long first = qcud_chunk_index(from, vma->vm_pgoff);
	unsigned long last = qcud_chunk_index(from, vma->vm_pgoff + vma_pages(vma) - 1);
	struct address_space *mapping = vma->vm_file->f_mapping;
	struct qcud_snapshot *snapshot;
	struct qcud_chunk *chunk;
	unsigned long index;
	bool share;

	snapshot = qcud_snapshot_new(vma->vm_mm, from);
	vma->vm_ops = &qcud_snapshot_ops;
	vma->vm_private_data = snapshot;

	mutex_lock(&from->lock);
	share = !group || !atomic_read(&group->writers);
	if (!(vma->vm_flags & VM_WIPEONFORK)) {
		/*
		 * The driver cannot refuse MADV_KEEPONFORK. The kernel fills the child's page
		 * tables after this call. Before 6.9's commit 35e351780fa9 it filled them earlier;
		 * then this call empties them.
		 */
		qcud_zap(mapping, vma->vm_pgoff << PAGE_SHIFT,
			 (vma->vm_pgoff + vma_pages(vma)) << PAGE_SHIFT);
#ifdef QCUD_HAVE_VM_FLAGS_SET
		vm_flags_set(vma, VM_WIPEONFORK);
#else
		vma->vm_flags |= VM_WIPEONFORK;
#endif
	} else if (share && snapshot) {
		qcud_zap_shareable(mapping, from, group, first, last);
	}
	if (!snapshot)
		goto out;
	if (!whole) {
		snapshot->incomplete = true;
		goto out;
	}
	xa_for_each_range(&from->xa, index, chunk, first, last) {
		/* A child whose fork fails anyway need not be complete. */
		if (fatal_signal_pending(current) ||
		    !qcud_snapshot_take(snapshot, index, chunk, share && qcud_chunk_still(chunk)))
			snapshot->incomplete = true;
		cond_resched();
	}
out:
	mutex_unlock(&from->lock);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a forked child has of its parent's chunks: a snapshot. It shares the parent's chunks, which
 * are taken out of page tables for that, and whichever of the two touches one first makes the copy.
 * The parent's pages stay the parent's, as a GPU may know them; so the copy is the child's then.
 *
 * A chunk that a GPU may write without the driver's knowledge, because it is registered, or that
 * someone may be writing at this moment, is copied at once. vfork and posix_spawn do not come here.
 *
 * To the driver a snapshot has neither session nor group; to the child it is ordinary memory, which
 * it may cut, move and hand down to children of its own. Without memory for a copy the child loses
 * it, as it would lose a file's pages that cannot be read: SIGBUS.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "qcuda.h"

struct qcud_snapshot {
	struct kref refs;	/* VMAs */
	struct mm_struct *mm;	/* compared, never entered */
	bool incomplete;	/* a chunk that is missing is lost, else it was never touched */
	struct qcud_chunks mem; /* numbered as the parent's */
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

/* Forked once more, or cut, or moved. */
static void qcud_snapshot_open(struct vm_area_struct *vma)
{
	struct qcud_snapshot *snapshot = vma->vm_private_data;

	if (!snapshot)
		return;
	if (vma->vm_mm != snapshot->mm)
		qcud_fork(vma, &snapshot->mem, NULL);
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
	unsigned long index;
	vm_fault_t ret;

	if (!snapshot)
		goto lost;
	index = qcud_chunk_index(&snapshot->mem, vmf->pgoff);
	mutex_lock(&snapshot->mem.lock);
	chunk = qcud_snapshot_chunk(snapshot, index);
	if (IS_ERR(chunk))
		ret = VM_FAULT_OOM;
	else if (!chunk || !chunk->nr)
		ret = VM_FAULT_SIGBUS;
	else
		ret = qcud_chunk_insert(vmf, &snapshot->mem, index, chunk);
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
 * Out of the page tables of all who have these pages of the file. That others of the family lose
 * theirs, too, only costs them a fault.
 */
static void qcud_zap(struct address_space *mapping, unsigned long start, unsigned long end)
{
	if (start < end)
		unmap_mapping_range(mapping, start, end - start, 1);
}

/* Takes what can be shared out of page tables, run by run. The chunks are `group`'s if not NULL. */
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
			qcud_chunk_count(group, chunk, true);
	}
	qcud_zap(mapping, start, end);
}

/*
 * Whether nobody can change the chunk: it has been taken out of page tables, and no page has a
 * reference left but ours. get_user_pages_fast() takes its reference before it looks at the page
 * table again; the barrier pairs with the one in there.
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

/* The child's reference to a chunk, shared or a copy. False: it has none. */
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
 * Called for the VMA of a child while it is being made, with the mmap_lock of parent and child held
 * for writing. The parent has these chunks; they are `group`'s, whose `writers` counts the commands
 * that let the device write to any of them, or if that is NULL, no device knows them.
 *
 * A command that is about to begin is either counted by now, or finds what this leaves behind: it
 * takes from->lock after it has been counted.
 */
void qcud_fork(struct vm_area_struct *vma, struct qcud_chunks *from, struct qcud_group *group)
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
		 * MADV_KEEPONFORK cannot be refused. The child's page tables are filled after this,
		 * or, before 6.9's commit 35e351780fa9, have been, and then this empties them.
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
	xa_for_each_range(&from->xa, index, chunk, first, last) {
		/* A child that is given up anyway need not be complete. */
		if (fatal_signal_pending(current) ||
		    !qcud_snapshot_take(snapshot, index, chunk, share && qcud_chunk_still(chunk)))
			snapshot->incomplete = true;
		cond_resched();
	}
out:
	mutex_unlock(&from->lock);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chunks: memory of a guest process in blocks as large as a GPU's copy engine likes them. They are
 * ordinary pages, so all that the kernel does with user memory (O_DIRECT, ptrace, vmsplice) works
 * on them. Here they are made, copied, shared and freed; qcuda_vma.c and qcuda_fork.c put them
 * under addresses.
 *
 * A chunk belongs to whoever has a reference. With one owner it may be in page tables and written.
 * With several, the ones that a fork has made, it is in nobody's page tables and does not change:
 * who wants to touch it first becomes the only owner of a chunk with the same content.
 */
#include <linux/highmem.h>
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "qcuda.h"

unsigned long qcud_chunk_bytes(const struct qcud_chunks *chunks, unsigned long index)
{
	unsigned long start = chunks->start + (index << chunks->shift);

	return min(chunks->end - start, 1UL << chunks->shift);
}

void qcud_chunks_init(struct qcud_chunks *chunks, unsigned long start, unsigned long end)
{
	chunks->start = start;
	chunks->end = end;
	mutex_init(&chunks->lock);
	xa_init_flags(&chunks->xa, XA_FLAGS_ACCOUNT);
}

/* Memory that munmap gave back and that only waits for the mirror to let go of it. */
static bool qcud_memory_coming(struct qcud_session *session)
{
	bool coming;

	spin_lock(&session->lock);
	coming = !list_empty(&session->closing) && !session->detached &&
		 !READ_ONCE(session->queue->dead);
	spin_unlock(&session->lock);
	return coming;
}

/*
 * Large blocks are a matter of speed: a short try, no complaint. Single pages are a matter of
 * success. Before the kernel is pressed for one, which may end in the OOM killer, wait a moment for
 * pages that are on their way back, once for each chunk. Only for a page that a program touches
 * need any process be killed: a command can fail, and so can a copy.
 */
static struct page *qcud_block_alloc(struct qcud_session *session, unsigned int order, gfp_t gfp,
				     bool *waited)
{
	struct page *page;

	page = alloc_pages(gfp | __GFP_NORETRY | __GFP_NOWARN, order);
	if (page || order)
		return page;
	if (session && !*waited && qcud_memory_coming(session)) {
		*waited = true;
		wait_event_killable_timeout(session->wait, !qcud_memory_coming(session), HZ);
	}
	if (fatal_signal_pending(current))
		return NULL;
	return alloc_page(gfp);
}

/* A chunk that has room for `want` pages and no page yet. */
struct qcud_chunk *qcud_chunk_new(unsigned int want)
{
	struct qcud_chunk *chunk;

	chunk = kvzalloc(struct_size(chunk, pages, want), GFP_KERNEL_ACCOUNT);
	if (!chunk)
		return NULL;
	refcount_set(&chunk->refs, 1);
	mutex_init(&chunk->lock);
	return chunk;
}

static void qcud_chunk_drop_pages(struct qcud_chunk *chunk)
{
	unsigned int i;

	if (chunk->pinned)
		unpin_user_pages_dirty_lock(chunk->pages, chunk->nr, true);
	else
		for (i = 0; i < chunk->nr; i++)
			put_page(chunk->pages[i]);
	qcud_stat_add(chunk->pinned ? QCUD_STAT_PINNED_PAGES : QCUD_STAT_CHUNK_PAGES,
		      -(s64)chunk->nr);
	chunk->nr = chunk->runs = 0;
}

void qcud_chunk_put(struct qcud_chunk *chunk)
{
	if (!refcount_dec_and_test(&chunk->refs))
		return;
	qcud_chunk_drop_pages(chunk);
	kvfree(chunk);
}

/* All of its pages or none; blocks[order] are counted. */
static bool qcud_chunk_fill(struct qcud_chunk *chunk, unsigned int want,
			    struct qcud_session *session, gfp_t gfp, unsigned long *blocks)
{
	unsigned int order = QCUD_BLOCK_ORDER;
	unsigned int got[QCUD_BLOCK_ORDER + 1] = {};
	bool waited = false;
	unsigned int i;

	while (chunk->nr < want) {
		struct page *page;

		order = min_t(unsigned int, order, ilog2(want - chunk->nr));
		page = qcud_block_alloc(session, order, gfp, &waited);
		if (!page && order) {
			order--;
			continue;
		}
		if (!page) {
			qcud_chunk_drop_pages(chunk);
			return false;
		}
		/* Single pages, each with its own count, are what page tables and GUP deal in. */
		if (order)
			split_page(page, order);
		if (!chunk->nr || chunk->pages[chunk->nr - 1] + 1 != page)
			chunk->runs++;
		for (i = 0; i < 1U << order; i++)
			chunk->pages[chunk->nr++] = page + i;
		qcud_stat_add(QCUD_STAT_CHUNK_PAGES, 1L << order);
		got[order]++;
	}
	for (i = 0; i <= QCUD_BLOCK_ORDER && blocks; i++)
		blocks[i] += got[i];
	return true;
}

/*
 * Makes a chunk of zeros where there is none. `blocks` and the session that may have memory to come
 * back are a group's, else NULL.
 */
struct qcud_chunk *qcud_chunk_make(struct qcud_chunks *chunks, unsigned long index,
				   struct qcud_session *session, unsigned long *blocks, bool fault)
{
	gfp_t gfp = GFP_HIGHUSER | __GFP_ZERO | __GFP_ACCOUNT;
	unsigned int want = qcud_chunk_bytes(chunks, index) >> PAGE_SHIFT;
	struct qcud_chunk *chunk;
	int ret;

	lockdep_assert_held(&chunks->lock);

	chunk = qcud_chunk_new(want);
	if (!chunk)
		return ERR_PTR(-ENOMEM);
	if (!fault)
		gfp |= __GFP_RETRY_MAYFAIL | __GFP_NOWARN;
	if (!qcud_chunk_fill(chunk, want, session, gfp, blocks)) {
		qcud_chunk_put(chunk);
		return ERR_PTR(-ENOMEM);
	}
	ret = xa_err(xa_store(&chunks->xa, index, chunk, GFP_KERNEL));
	if (ret) {
		qcud_chunk_put(chunk);
		return ERR_PTR(ret);
	}
	return chunk;
}

/*
 * A chunk with the same content. One without pages, which is what a chunk becomes whose content is
 * lost, if there is no memory for them; NULL if there is none at all. The caller sees to it that
 * the content stands still.
 */
struct qcud_chunk *qcud_chunk_copy(struct qcud_chunk *chunk)
{
	gfp_t gfp = GFP_HIGHUSER | __GFP_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;
	struct qcud_chunk *copy = qcud_chunk_new(chunk->nr);
	unsigned int i;

	if (!copy)
		return NULL;
	/* Whether it can be had at all, before everyone else is pressed for it. */
	if (chunk->nr > max(si_mem_available(), 0L) ||
	    !qcud_chunk_fill(copy, chunk->nr, NULL, gfp, NULL))
		return copy;
	for (i = 0; i < chunk->nr; i++) {
		copy_highpage(copy->pages[i], chunk->pages[i]);
		cond_resched();
	}
	qcud_stat_add(QCUD_STAT_FORK_COPIED_PAGES, chunk->nr);
	return copy;
}

/*
 * Whether others have this chunk, too. The answer "no" stays true as long as the caller's own lock
 * of its chunks is held. Acquire pairs with refcount_dec in qcud_chunk_put(): whoever has left has
 * read the pages before.
 */
static bool qcud_chunk_shared(const struct qcud_chunk *chunk)
{
	return atomic_read_acquire(&chunk->refs.refs) > 1;
}

/*
 * Makes the caller the only owner of what is stored under this number. The copy goes to the others
 * if `keep`, because a GPU may know the pages, else to the caller. When there is no memory for a
 * copy, the one whom it was for is left with a chunk without pages. Returns the caller's chunk.
 */
struct qcud_chunk *qcud_chunk_unshare(struct qcud_chunks *chunks, unsigned long index,
				      struct qcud_chunk *chunk, bool keep)
{
	struct qcud_chunk *mine;
	unsigned int i;

	lockdep_assert_held(&chunks->lock);

	if (!qcud_chunk_shared(chunk))
		return chunk;
	mutex_lock(&chunk->lock);
	if (!qcud_chunk_shared(chunk)) {
		mutex_unlock(&chunk->lock);
		return chunk;
	}
	mine = qcud_chunk_copy(chunk);
	if (mine && keep) {
		unsigned int nr = mine->nr, runs = mine->runs;

		for (i = 0; i < chunk->nr; i++)
			swap(mine->pages[i], chunk->pages[i]);
		mine->nr = chunk->nr;
		mine->runs = chunk->runs;
		mine->mapped = chunk->mapped;
		mine->counted = chunk->counted;
		chunk->nr = nr;
		chunk->runs = runs;
		chunk->mapped = false;
		chunk->counted = false;
		if (!nr)
			pr_warn_ratelimited(
				"qcuda: no memory for the copy that a fork has made of process %d's memory\n",
				task_tgid_nr(current));
	}
	mutex_unlock(&chunk->lock);
	if (!mine)
		return ERR_PTR(-ENOMEM);
	/* An entry that is there is replaced in place. */
	xa_store(&chunks->xa, index, mine, GFP_KERNEL);
	qcud_chunk_put(chunk);
	return mine;
}

/* Gives all of them back. */
void qcud_chunks_free(struct qcud_chunks *chunks)
{
	struct qcud_chunk *chunk;
	unsigned long index;

	xa_for_each(&chunks->xa, index, chunk) {
		qcud_chunk_put(chunk);
		cond_resched();
	}
	xa_destroy(&chunks->xa);
}

/* Puts the chunk into page tables, as much of it as the VMA has, and the touched page for sure. */
vm_fault_t qcud_chunk_insert(struct vm_fault *vmf, const struct qcud_chunks *chunks,
			     unsigned long index, struct qcud_chunk *chunk)
{
	struct vm_area_struct *vma = vmf->vma;
	pgoff_t base = (chunks->start + (index << chunks->shift)) >> PAGE_SHIFT;
	pgoff_t first = max(base, vma->vm_pgoff);
	unsigned long left = min(base + chunk->nr, vma->vm_pgoff + vma_pages(vma)) - first;
	int ret;

	lockdep_assert_held(&chunks->lock);

	ret = vm_insert_pages(vma, vma->vm_start + ((first - vma->vm_pgoff) << PAGE_SHIFT),
			      chunk->pages + (first - base), &left);
	qcud_mm_settle(vma->vm_mm);
	if (!ret)
		return VM_FAULT_NOPAGE;
	/*
	 * Some are there already, or there is no memory for page tables. If this one is there by
	 * now, the kernel drops the reference.
	 */
	vmf->page = chunk->pages[vmf->pgoff - base];
	get_page(vmf->page);
	return 0;
}

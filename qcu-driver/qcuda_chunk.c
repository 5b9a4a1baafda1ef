// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chunks: memory of a guest process in blocks that are large enough for a GPU's copy engine to be
 * fast. They are ordinary pages. So everything that the kernel does with user memory (O_DIRECT,
 * ptrace, vmsplice) works on them. This file makes, copies, shares and frees chunks. qcuda_vma.c
 * and qcuda_fork.c map them at addresses.
 *
 * Where the kernel allows it, 2 MiB of a chunk are one huge page and one entry of the page tables.
 * The entry is of the kind for memory that has no pages: the kernel counts neither references nor
 * the process's memory by it, and does not keep its dirty bit. The chunk has the reference, and
 * qcud_chunk_count() counts. So chunks of managed memory that moves have no huge pages.
 *
 * Every holder of a reference owns the chunk. A chunk with one owner may be in page tables and may
 * be written. A chunk gets several owners by fork. It is then in no page tables and does not
 * change. The first owner that wants to touch it becomes the only owner of a chunk with the same
 * content.
 */
#include <linux/highmem.h>
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "qcuda.h"

#ifdef QCUD_HAVE_INSERT_PMD
#include <linux/pfn_t.h>
#endif

unsigned long qcud_chunk_bytes(const struct qcud_chunks *chunks, unsigned long index)
{
	unsigned long start = chunks->start + (index << chunks->shift);

	return min(chunks->end - start, 1UL << chunks->shift);
}

/* In bytes from the start of the chunks. */
struct qcud_span qcud_chunk_span(const struct qcud_chunks *chunks, unsigned long index)
{
	u64 from = (u64)index << chunks->shift;

	return (struct qcud_span){from, from + qcud_chunk_bytes(chunks, index)};
}

void qcud_chunks_init(struct qcud_chunks *chunks, unsigned long start, unsigned long end)
{
	chunks->start = start;
	chunks->end = end;
#ifdef QCUD_HAVE_INSERT_PMD
	chunks->huge = IS_ALIGNED(start, PMD_SIZE);
#endif
	mutex_init(&chunks->lock);
	xa_init_flags(&chunks->xa, XA_FLAGS_ACCOUNT);
}

/* Is there memory that munmap gave back and that only waits for the mirror to release it? */
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
 * Large blocks only make copies faster: one short try without a warning. Single pages must succeed.
 * An allocation of a single page under pressure may end in the OOM killer. So before that, wait a
 * moment for pages that are on their way back, once for each chunk. The kernel may kill a process
 * only for a page that a program touches: a command can fail, and so can a copy.
 */
static struct page *qcud_block_alloc(struct qcud_session *session, unsigned int order, gfp_t gfp,
				     bool *waited)
{
	struct page *page;

	if (order != QCUD_HUGE_ORDER)
		gfp &= ~__GFP_COMP;
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

/* Makes a chunk with room for `want` pages and without pages. */
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
	unsigned int i, nr;

	if (chunk->pinned)
		unpin_user_pages_dirty_lock(chunk->pages, chunk->nr, true);
	for (i = 0; i < chunk->nr && !chunk->pinned; i += nr) {
		nr = compound_nr(chunk->pages[i]);
		put_page(chunk->pages[i]);
	}
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

/*
 * Allocates all pages of the chunk or none, with __GFP_COMP in huge pages where it can. Counts the
 * blocks of each order in blocks[].
 */
static bool qcud_chunk_fill(struct qcud_chunk *chunk, unsigned int want,
			    struct qcud_session *session, gfp_t gfp, unsigned long *blocks)
{
	unsigned int order = gfp & __GFP_COMP ? QCUD_HUGE_ORDER : QCUD_BLOCK_ORDER;
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
		/* Page tables and GUP work with single pages, each with its own count. */
		if (PageCompound(page))
			chunk->huge = true;
		else if (order)
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
 * Makes a chunk of zeros where none exists. For a group, `blocks` and `session` are the group's;
 * the session may have memory that comes back. Else both are NULL.
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
	if (chunks->huge)
		gfp |= __GFP_COMP;
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
 * Makes a chunk with the same content. If there is no memory for the pages, returns a chunk without
 * pages; that means that its content is lost. Returns NULL if there is no memory at all. The caller
 * makes sure that the content does not change meanwhile.
 */
struct qcud_chunk *qcud_chunk_copy(struct qcud_chunk *chunk)
{
	gfp_t gfp = GFP_HIGHUSER | __GFP_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;
	struct qcud_chunk *copy = qcud_chunk_new(chunk->nr);
	unsigned int i;

	if (!copy)
		return NULL;
	if (chunk->huge)
		gfp |= __GFP_COMP;
	/* Check first that the memory is there, before the kernel takes it from others. */
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
 * Do others own this chunk, too? The answer "no" stays true while the caller holds the lock of its
 * own chunks. The acquire pairs with refcount_dec in qcud_chunk_put(): an owner that has dropped
 * its reference has read the pages before.
 */
static bool qcud_chunk_shared(const struct qcud_chunk *chunk)
{
	return atomic_read_acquire(&chunk->refs.refs) > 1;
}

/*
 * Makes the caller the only owner of the chunk that is stored under this number. With `keep`, the
 * caller keeps the pages, because a GPU may know them, and the other owners get the copy. Else the
 * caller gets the copy. If there is no memory for the copy, the side that should get it gets a
 * chunk without pages. Returns the caller's chunk.
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
		swap(mine->huge, chunk->huge);
		mine->nr = chunk->nr;
		mine->runs = chunk->runs;
		mine->mapped = chunk->mapped;
		mine->counted = chunk->counted;
		mine->here = chunk->here;
		chunk->nr = nr;
		chunk->runs = runs;
		chunk->mapped = false;
		chunk->counted = 0;
		chunk->here = 0;
		if (!nr)
			pr_warn_ratelimited(
				"qcuda: no memory for the copy that a fork has made of process %d's memory\n",
				task_tgid_nr(current));
	}
	mutex_unlock(&chunk->lock);
	if (!mine)
		return ERR_PTR(-ENOMEM);
	/* Cannot fail: the entry exists and is replaced in place. */
	xa_store(&chunks->xa, index, mine, GFP_KERNEL);
	qcud_chunk_put(chunk);
	return mine;
}

/* Adds pages of the chunk to a table of segments. Returns how many there was room for. */
unsigned int qcud_chunk_segs(const struct qcud_chunk *chunk, unsigned int page, unsigned int pages,
			     struct qcu_seg *segs, unsigned int *nr, unsigned int max)
{
	unsigned int i;

	if (chunk->runs == 1)
		return qcud_seg_add(segs, nr, max, page_to_phys(chunk->pages[page]),
				    (u64)pages << PAGE_SHIFT)
			       ? pages
			       : 0;
	for (i = 0; i < pages; i++)
		if (!qcud_seg_add(segs, nr, max, page_to_phys(chunk->pages[page + i]), PAGE_SIZE))
			break;
	return i;
}

/* Drops the references to all chunks. */
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

#ifdef QCUD_HAVE_INSERT_PMD
/*
 * The touched page lies in a chunk with huge pages. Enters its huge page, and returns what the
 * fault handler returns. 0: single pages from *first to *end may be entered.
 */
static vm_fault_t qcud_chunk_insert_huge(struct vm_fault *vmf, struct qcud_chunk *chunk,
					 pgoff_t base, pgoff_t *first, pgoff_t *end)
{
	pgoff_t at = vmf->pgoff - ((vmf->address & ~PMD_MASK) >> PAGE_SHIFT);
	bool fits = at >= *first && at + (1 << QCUD_HUGE_ORDER) <= *end;

	/* Another thread was faster. */
	if (pmd_trans_huge(*vmf->pmd))
		return VM_FAULT_NOPAGE;
	/* In the middle of a page lies none of its heads. */
	if (fits && PageHead(chunk->pages[at - base]) && pmd_none(*vmf->pmd))
		return vmf_insert_pfn_pmd(vmf, page_to_pfn_t(chunk->pages[at - base]),
					  vmf->flags & FAULT_FLAG_WRITE);
	/* Beside these may be huge pages, which vm_insert_pages() takes for tables. */
	*first = max(*first, at);
	*end = min(*end, at + (1 << QCUD_HUGE_ORDER));
	return 0;
}
#endif

/*
 * Puts a part of the chunk that has the touched page into page tables: as much of it as lies in the
 * VMA, and in any case the touched page. `part` is in bytes from the start of the chunks;
 * afterwards it is what the page tables count now.
 *
 * The kernel must not map a page by itself, after this function: by then the part may have been
 * taken out of page tables for good, and it would count a huge page.
 */
vm_fault_t qcud_chunk_insert(struct vm_fault *vmf, const struct qcud_chunks *chunks,
			     unsigned long index, struct qcud_chunk *chunk, struct qcud_span *part)
{
	struct vm_area_struct *vma = vmf->vma;
	pgoff_t origin = chunks->start >> PAGE_SHIFT;
	pgoff_t base = origin + (index << (chunks->shift - PAGE_SHIFT));
	pgoff_t first = max(origin + (part->from >> PAGE_SHIFT), vma->vm_pgoff);
	pgoff_t end = min(origin + (part->to >> PAGE_SHIFT), vma->vm_pgoff + vma_pages(vma));
	unsigned long left;
	int ret;

	lockdep_assert_held(&chunks->lock);

	part->to = part->from;
#ifdef QCUD_HAVE_INSERT_PMD
	if (chunk->huge) {
		vm_fault_t done = qcud_chunk_insert_huge(vmf, chunk, base, &first, &end);

		if (done)
			return done;
	}
#endif
	left = end - first;
	ret = vm_insert_pages(vma, vma->vm_start + ((first - vma->vm_pgoff) << PAGE_SHIFT),
			      chunk->pages + (first - base), &left);
	qcud_mm_settle(vma->vm_mm);
	part->from = (first - origin) << PAGE_SHIFT;
	part->to = (end - left - origin) << PAGE_SHIFT;
	/* Some pages are mapped already, or there is no memory for page tables. */
	if (ret && vmf->pgoff >= end - left)
		ret = vm_insert_page(vma, vmf->address & PAGE_MASK,
				     chunk->pages[vmf->pgoff - base]);
	return ret == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_NOPAGE;
}

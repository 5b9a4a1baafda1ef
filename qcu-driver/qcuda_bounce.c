// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KERNEL_COPY: copies through memory of the guest's kernel, as in a driver that cannot give user
 * pages to its device. It exists only for comparison with the other ways; programs should not use
 * it. The module parameter kernel_copy switches it on. It applies to copies from and to memory that
 * is not registered and that is not copied later in stream order. The driver copies the bytes at
 * the time of the call. So a cudaMemcpy from pinned memory may miss what a running kernel writes
 * there.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "qcuda.h"

/* The same size as chunks, if the kernel has blocks of that size. */
#define QCUD_BOUNCE_ORDER min(10, QCUD_BLOCK_ORDER)

struct qcud_pages {
	struct page *page;
	unsigned int order;
};

struct qcud_bounce {
	u64 user, len;
	unsigned int nr;
	struct qcud_pages pages[];
};

static void qcud_bounce_free(struct qcud_request *req)
{
	struct qcud_bounce *bounce = req->bounce;
	unsigned int i;

	for (i = 0; i < bounce->nr; i++)
		__free_pages(bounce->pages[i].page, bounce->pages[i].order);
	kvfree(bounce);
}

static struct page *qcud_bounce_pages(u64 left, unsigned int *order)
{
	struct page *page;

	for (*order = min_t(unsigned int, get_order(left), QCUD_BOUNCE_ORDER); *order; (*order)--) {
		page = alloc_pages(GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN, *order);
		if (page)
			return page;
	}
	/* This memory is on no process's account, so the kernel must not kill a process for it. */
	return alloc_page(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
}

/*
 * Gives a copy request kernel memory in place of the user's memory. If the device will read the
 * memory, the user's bytes are copied into it. From then on the request owns the memory, also when
 * this function fails.
 */
int qcud_bounce(struct qcud_request *req, bool out)
{
	u64 addr = req->cmd.buf.addr, left = req->cmd.buf.len;
	unsigned int max = min_t(u64, DIV_ROUND_UP(left, PAGE_SIZE), QCU_SEGS_MAX), nr = 0;
	struct qcud_bounce *bounce;
	struct qcu_seg *segs;

	bounce = kvzalloc(struct_size(bounce, pages, max), GFP_KERNEL_ACCOUNT);
	if (!bounce)
		return -ENOMEM;
	req->bounce = bounce;
	req->release = qcud_bounce_free;
	bounce->user = addr;
	bounce->len = left;
	segs = kvmalloc_array(max, sizeof(*segs), GFP_KERNEL_ACCOUNT);
	if (!segs)
		return -ENOMEM;
	req->payload = segs;

	while (left) {
		struct qcud_pages *pages = &bounce->pages[bounce->nr];
		u64 n;

		if (bounce->nr == max)
			return -E2BIG;
		pages->page = qcud_bounce_pages(left, &pages->order);
		if (!pages->page)
			return -ENOMEM;
		bounce->nr++;
		n = min_t(u64, left, PAGE_SIZE << pages->order);
		if (!out && copy_from_user(page_address(pages->page), u64_to_user_ptr(addr), n))
			return -EFAULT;
		qcud_seg_add(segs, &nr, max, page_to_phys(pages->page), n);
		addr += n;
		left -= n;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	req->cmd.flags |= QCU_F_SEGS;
	qcud_stat_add(QCUD_STAT_PAGES_BYTES, bounce->len);
	qcud_stat_add(QCUD_STAT_COPIED_IN_GUEST, bounce->len);
	return qcud_request_payload(req, segs, nr * sizeof(*segs));
}

/* The device has filled all of the request's kernel memory. Copies it to the user's memory. */
int qcud_bounce_out(const struct qcud_request *req)
{
	const struct qcud_bounce *bounce = req->bounce;
	u64 addr = bounce->user, left = bounce->len;
	unsigned int i;

	for (i = 0; i < bounce->nr; i++) {
		u64 n = min_t(u64, left, PAGE_SIZE << bounce->pages[i].order);

		if (copy_to_user(u64_to_user_ptr(addr), page_address(bounce->pages[i].page), n))
			return -EFAULT;
		addr += n;
		left -= n;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

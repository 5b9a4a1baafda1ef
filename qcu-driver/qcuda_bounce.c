// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KERNEL_COPY: copies through memory of the guest's kernel, as a driver does that cannot show user
 * pages to its device. It is what the other ways are compared with, and nothing that anyone should
 * use: the module's parameter kernel_copy switches it on, for copies from and to memory that is not
 * registered and that no stream comes to later. Bytes are taken when the call is made: what a
 * kernel that still runs writes into pinned memory, a cudaMemcpy from there may miss.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "qcuda.h"

/* As large as chunks are, where the kernel has such blocks. */
#define QCUD_BOUNCE_ORDER min(10, QCUD_BLOCK_ORDER)

struct qcud_block {
	struct page *page;
	unsigned int order;
};

struct qcud_bounce {
	u64 user, len;
	unsigned int nr;
	struct qcud_block block[];
};

void qcud_bounce_free(struct qcud_bounce *bounce)
{
	unsigned int i;

	if (!bounce)
		return;
	for (i = 0; i < bounce->nr; i++)
		__free_pages(bounce->block[i].page, bounce->block[i].order);
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
	/* Memory that no process has on its account is no reason to kill one. */
	return alloc_page(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
}

/*
 * Gives a copy's request kernel memory in place of the user's; with the user's bytes in it when the
 * device will read them. The request owns it from then on, also when this fails.
 */
int qcud_bounce(struct qcud_request *req, bool out)
{
	u64 addr = req->cmd.buf.addr, left = req->cmd.buf.len;
	unsigned int max = min_t(u64, DIV_ROUND_UP(left, PAGE_SIZE), QCU_SEGS_MAX), nr = 0;
	struct qcud_bounce *bounce;
	struct qcu_seg *segs;

	bounce = kvzalloc(struct_size(bounce, block, max), GFP_KERNEL_ACCOUNT);
	if (!bounce)
		return -ENOMEM;
	req->bounce = bounce;
	bounce->user = addr;
	bounce->len = left;
	segs = kvmalloc_array(max, sizeof(*segs), GFP_KERNEL_ACCOUNT);
	if (!segs)
		return -ENOMEM;
	req->payload = segs;

	while (left) {
		struct qcud_block *block = &bounce->block[bounce->nr];
		u64 n;

		if (bounce->nr == max)
			return -E2BIG;
		block->page = qcud_bounce_pages(left, &block->order);
		if (!block->page)
			return -ENOMEM;
		bounce->nr++;
		n = min_t(u64, left, PAGE_SIZE << block->order);
		if (!out && copy_from_user(page_address(block->page), u64_to_user_ptr(addr), n))
			return -EFAULT;
		qcud_seg_add(segs, &nr, max, page_to_phys(block->page), n);
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

/* The device has filled the request's memory, all of it: to the user. */
int qcud_bounce_out(const struct qcud_request *req)
{
	const struct qcud_bounce *bounce = req->bounce;
	u64 addr = bounce->user, left = bounce->len;
	unsigned int i;

	for (i = 0; i < bounce->nr; i++) {
		u64 n = min_t(u64, left, PAGE_SIZE << bounce->block[i].order);

		if (copy_to_user(u64_to_user_ptr(addr), page_address(bounce->block[i].page), n))
			return -EFAULT;
		addr += n;
		left -= n;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * User memory that is not in chunks: stack, static data, files, memory from before the library
 * started. The driver pins its pages for the time of one command and describes them to the host as
 * segments. It copies nothing.
 *
 * The pins are short-term pins, although a command may wait for its stream. FOLL_LONGTERM would
 * refuse pages of file mappings. It would also move pages out of CMA and movable zones first, for a
 * pin that usually ends with the call. Registered memory has chunks for that.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "qcuda.h"

#define QCUD_PIN_BATCH ((int)(PAGE_SIZE / sizeof(struct page *)))

static unsigned long qcud_seg_pages(const struct qcu_seg *seg)
{
	return ((seg->gpa + seg->len - 1) >> PAGE_SHIFT) - (seg->gpa >> PAGE_SHIFT) + 1;
}

static void qcud_unpin(struct qcud_request *req)
{
	const struct qcu_seg *segs = req->payload;
	size_t i, nr = req->payload_bytes / sizeof(*segs);
	s64 pages = 0;

	/* Only the end of the range can lie inside a page, so no page is in two segments. */
	for (i = 0; i < nr; i++) {
		unsigned long n = qcud_seg_pages(&segs[i]);

		unpin_user_page_range_dirty_lock(pfn_to_page(segs[i].gpa >> PAGE_SHIFT), n,
						 req->pinned_dirty);
		pages += n;
	}
	qcud_stat_add(QCUD_STAT_PINNED_PAGES, -pages);
	qcud_pin_end(req);
}

/* The number of pages that [addr, addr + len) touches. The range is not empty and does not wrap. */
unsigned long qcud_pin_pages(u64 addr, u64 len)
{
	return ((addr + len - 1) >> PAGE_SHIFT) - (addr >> PAGE_SHIFT) + 1;
}

/*
 * Pins [addr, addr + len) as the request's segments. The range is not empty and does not wrap.
 * Returns -ENOBUFS if the user has too much memory pinned now.
 */
int qcud_pin(struct qcud_user *user, struct qcud_request *req, u64 addr, u64 len, bool write)
{
	unsigned long left = qcud_pin_pages(addr, len);
	unsigned int max = min_t(unsigned long, left, QCU_SEGS_MAX);
	unsigned int nr = 0;
	struct page **pages;
	struct qcu_seg *segs;
	int ret;

	ret = qcud_pin_begin(user, req, left);
	if (ret)
		return ret;
	req->release = qcud_unpin;
	segs = kvmalloc_array(max, sizeof(*segs), GFP_KERNEL_ACCOUNT);
	if (!segs)
		return -ENOMEM;
	pages = (struct page **)__get_free_page(GFP_KERNEL);
	if (!pages) {
		kvfree(segs);
		return -ENOMEM;
	}

	while (left && !ret) {
		int i, got;

		got = pin_user_pages_fast(addr & PAGE_MASK,
					  min_t(unsigned long, left, QCUD_PIN_BATCH),
					  write ? FOLL_WRITE : 0, pages);
		if (got <= 0) {
			ret = got ?: -EFAULT;
			break;
		}
		qcud_stat_add(QCUD_STAT_PINNED_PAGES, got);
		for (i = 0; i < got; i++) {
			u64 n = min_t(u64, PAGE_SIZE - offset_in_page(addr), len);

			if (!qcud_seg_add(segs, &nr, max,
					  page_to_phys(pages[i]) + offset_in_page(addr), n)) {
				unpin_user_pages(pages + i, got - i);
				qcud_stat_add(QCUD_STAT_PINNED_PAGES, i - got);
				ret = -E2BIG;
				break;
			}
			addr += n;
			len -= n;
		}
		left -= got;
		if (!ret && fatal_signal_pending(current))
			ret = -EINTR;
		cond_resched();
	}
	free_page((unsigned long)pages);

	/* The request owns the table and the pins now, also if it is never sent. */
	req->pinned_dirty = write;
	if (!ret)
		return qcud_request_payload(req, segs, nr * sizeof(*segs));
	req->payload = segs;
	req->payload_bytes = nr * sizeof(*segs);
	return ret;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies and fills, as work in a stream. Registered host memory is read or written when the stream
 * reaches the work. Memory that is not registered may change as soon as the call returns. So a copy
 * from it first copies up to SMALL bytes aside; all other copies from or to it are done before the
 * call returns.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/gpu/soft.h"

#define SMALL (64u << 10)

struct copy_work {
	struct soft_work work;
	struct be *be;
	void *to;
	const void *from;
	size_t len;
	unsigned char aside[];
};

struct fill_work {
	struct soft_work work;
	struct be *be;
	struct be_memset m;
};

static int copy_run(struct soft_work *w)
{
	struct copy_work *c = (struct copy_work *)w;

	if (!soft_work_usable(c->be, w, (uintptr_t)c->to, c->len) ||
	    (c->from != c->aside && !soft_work_usable(c->be, w, (uintptr_t)c->from, c->len)))
		return QCU_ERR_IllegalAddress;
	memmove(c->to, c->from, c->len);
	soft_check_copied(c->be, c->to, c->from, c->len);
	return 0;
}

static int submit_copy(struct be_stream *s, void *to, const void *from, size_t len,
		       enum soft_how how, bool aside)
{
	struct copy_work *c = malloc(sizeof(*c) + (aside ? len : 0));

	if (!c)
		return QCU_ERR_MemoryAllocation;
	c->work =
		(struct soft_work){.run = copy_run, .busy = BE_BUSY_COPIES, .free = soft_work_free};
	c->be = s->be;
	c->to = to;
	c->from = from;
	c->len = len;
	if (aside) {
		c->work.bytes = (uint32_t)len;
		memcpy(c->aside, from, len);
		c->from = c->aside;
	}
	return soft_submit(s, &c->work, how, NULL);
}

static void *pointer(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

int soft_copy_h2d(struct be *be, uint64_t dst, const void *src, size_t len, struct be_stream *s)
{
	int err = atomic_load(&be->sticky);

	if (err || !len)
		return err;
	if (!soft_mem_usable(be, dst, len))
		return QCU_ERR_InvalidValue;
	if (soft_host_registered(be, (uintptr_t)src, len))
		return submit_copy(s, pointer(dst), src, len,
				   len <= SMALL ? SOFT_SMALL : SOFT_QUEUE, false);
	if (len <= SMALL)
		return submit_copy(s, pointer(dst), src, len, SOFT_SMALL, true);
	return submit_copy(s, pointer(dst), src, len, SOFT_WAIT, false);
}

int soft_copy_d2h(struct be *be, void *dst, uint64_t src, size_t len, struct be_stream *s)
{
	int err = atomic_load(&be->sticky);
	enum soft_how how = SOFT_WAIT;

	if (err || !len)
		return err;
	if (!soft_mem_usable(be, src, len))
		return QCU_ERR_InvalidValue;
	if (soft_host_registered(be, (uintptr_t)dst, len))
		how = len <= SMALL ? SOFT_SMALL : SOFT_QUEUE;
	return submit_copy(s, dst, pointer(src), len, how, false);
}

int soft_copy_d2h_wait(struct be *be, void *dst, uint64_t src, size_t len, struct be_stream *s)
{
	int err = soft_copy_d2h(be, dst, src, len, s);

	return err ? err : soft_stream_sync(be, s);
}

int soft_copy_pieces(struct be *be, bool h2d, uint64_t device, const struct iovec *host,
		     size_t count, struct be_stream *s)
{
	int ret = QCU_ERR_Success;
	size_t i;

	for (i = 0; i < count && !ret; device += host[i++].iov_len)
		ret = h2d ? soft_copy_h2d(be, device, host[i].iov_base, host[i].iov_len, s)
			  : soft_copy_d2h(be, host[i].iov_base, device, host[i].iov_len, s);
	return ret;
}

int soft_copy_d2d(struct be *be, uint64_t dst, uint64_t src, size_t len, unsigned int host,
		  struct be_stream *s)
{
	int err = atomic_load(&be->sticky);

	(void)host;
	if (err || !len)
		return err;
	if (!soft_mem_usable(be, dst, len) || !soft_mem_usable(be, src, len))
		return QCU_ERR_InvalidValue;
	return submit_copy(s, pointer(dst), pointer(src), len,
			   len <= SMALL ? SOFT_SMALL : SOFT_QUEUE, false);
}

static void fill_row(unsigned char *p, size_t width, uint32_t value, uint32_t elem)
{
	size_t i;

	if (elem == 1) {
		memset(p, (int)(value & 0xff), width);
		return;
	}
	for (i = 0; i < width; i += elem)
		memcpy(p + i, &value, elem);
}

static int fill_run(struct soft_work *w)
{
	const struct fill_work *f = (struct fill_work *)w;
	const struct be_memset *m = &f->m;
	uint64_t y;

	if (!soft_work_usable(f->be, w, m->dst, (m->height - 1) * m->pitch + m->width))
		return QCU_ERR_IllegalAddress;
	for (y = 0; y < m->height; y++) {
		fill_row(pointer(m->dst + y * m->pitch), m->width, m->value, m->elem);
		soft_check_filled(f->be, m->dst + y * m->pitch, m->width);
	}
	return 0;
}

int soft_mem_set(struct be *be, const struct be_memset *m, struct be_stream *s)
{
	int err = atomic_load(&be->sticky);
	uint64_t bytes = m->width;
	struct fill_work *w;

	if (err)
		return err;
	if (m->elem != 1 && m->elem != 2 && m->elem != 4)
		return QCU_ERR_InvalidValue;
	if (m->dst % m->elem || m->width % m->elem || m->pitch % m->elem)
		return QCU_ERR_InvalidValue;
	if (m->height > 1 && m->pitch < m->width)
		return QCU_ERR_InvalidValue;
	if (!m->width || !m->height)
		return QCU_ERR_Success;
	if (m->height > 1 && (__builtin_mul_overflow(m->height - 1, m->pitch, &bytes) ||
			      __builtin_add_overflow(bytes, m->width, &bytes)))
		return QCU_ERR_InvalidValue;
	if (!soft_mem_usable(be, m->dst, bytes))
		return QCU_ERR_InvalidValue;
	w = malloc(sizeof(*w));
	if (!w)
		return QCU_ERR_MemoryAllocation;
	w->work =
		(struct soft_work){.run = fill_run, .busy = BE_BUSY_COPIES, .free = soft_work_free};
	w->be = be;
	w->m = *m;
	return soft_submit(s, &w->work, bytes <= SMALL ? SOFT_SMALL : SOFT_QUEUE, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The small steps that most commands need: the memory of the command's buffer, which is a list of
 * pieces, and the check of device addresses.
 */
#include <string.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/commands/call.h"

unsigned int mir_try_users(struct mirror *m)
{
	unsigned int i, busy;

	for (i = 0; i < MIR_USERS && !pthread_mutex_trylock(&m->use[i].lock); i++)
		;
	busy = i;
	while (busy < MIR_USERS && i)
		pthread_mutex_unlock(&m->use[--i].lock);
	return busy;
}

void mir_give_users(struct mirror *m)
{
	unsigned int i;

	for (i = 0; i < MIR_USERS; i++)
		pthread_mutex_unlock(&m->use[i].lock);
}

static int add_segments(struct call *c, struct pieces *ps)
{
	const struct guestmem *mem = c->m->cfg.mem;
	int rc = QCU_ERR_Success;
	size_t i;

	if (c->m->restore)
		return pieces_add(ps, c->m->restore->data, c->m->restore->len,
				  c->m->restore->registered);
	for (i = 0; i < c->req->seg_count && !rc; i++) {
		uint64_t gpa = c->req->segs[i].gpa, left = c->req->segs[i].len;

		while (left && !rc) {
			void *host = (void *)gpa;
			uint64_t part = mem ? guestmem_run(mem, gpa, left, &host) : left;

			if (!part)
				return MIR_RULE_BROKEN;
			rc = pieces_add(ps, host, part, false);
			gpa += part;
			left -= part;
		}
	}
	return rc;
}

static int pieces(struct call *c, struct pieces *ps, typeof(window_resolve) *resolve)
{
	int rc = c->cmd->flags & QCU_F_WINDOW
			 ? resolve(&c->m->window, c->cmd->buf.addr, c->cmd->buf.len, ps, &c->holds)
			 : add_segments(c, ps);

	if (rc)
		pieces_free(ps);
	return rc;
}

int mir_pieces(struct call *c, struct pieces *ps)
{
	return pieces(c, ps, window_resolve);
}

int mir_pieces_to_carry(struct call *c, struct pieces *ps)
{
	return pieces(c, ps, window_resolve_to_carry);
}

int mir_buf_write(struct call *c, size_t off, const void *src, size_t len)
{
	struct pieces ps = {0};
	const uint8_t *from = src;
	size_t i;
	int rc;

	if (off > c->cmd->buf.len || len > c->cmd->buf.len - off)
		return QCU_ERR_InvalidValue;
	rc = mir_pieces(c, &ps);
	if (rc)
		return rc;
	for (i = 0; i < ps.count && len; i++) {
		size_t part = ps.p[i].len;

		if (off >= part) {
			off -= part;
			continue;
		}
		part -= off;
		if (part > len)
			part = len;
		memcpy(ps.p[i].host + off, from, part);
		from += part;
		len -= part;
		off = 0;
	}
	pieces_free(&ps);
	return QCU_ERR_Success;
}

int mir_buf_read(struct call *c, void *dst, size_t len)
{
	struct pieces ps = {0};
	uint8_t *to = dst;
	size_t i;
	int rc;

	if (len > c->cmd->buf.len)
		return QCU_ERR_InvalidValue;
	rc = mir_pieces(c, &ps);
	if (rc)
		return rc;
	for (i = 0; i < ps.count && len; i++) {
		size_t part = ps.p[i].len > len ? len : ps.p[i].len;

		memcpy(to, ps.p[i].host, part);
		to += part;
		len -= part;
	}
	pieces_free(&ps);
	return QCU_ERR_Success;
}

int mir_memory_range(struct call *c, uint64_t addr, uint64_t len, bool *window)
{
	*window = false;
	if (!len || len - 1 > UINT64_MAX - addr)
		return QCU_ERR_InvalidValue;
	if (addr - QCU_WINDOW_BASE >= QCU_WINDOW_SIZE) {
		c->holds_memory = true;
		if (held_take(&c->m->held, c->req->order.slot, addr, len) &&
		    c->m->cfg.ops->mem_valid(c->m->be, addr, len))
			return QCU_ERR_Success;
	}
	*window = true;
	return window_pinned(&c->m->window, addr, len, &c->holds) ? QCU_ERR_Success
								  : QCU_ERR_InvalidValue;
}

int mir_device_range(struct call *c, uint64_t addr, uint64_t len)
{
	bool window;

	return mir_memory_range(c, addr, len, &window);
}

bool mir_on_host(struct mirror *m, uint64_t addr)
{
	unsigned int dev;

	return !window_placed(&m->window, addr, 1, &dev, NULL);
}

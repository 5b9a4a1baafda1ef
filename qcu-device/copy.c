// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The data path: where a command's buffer lies, and the copies from and to it.
 *
 * A buffer is a list of pieces. Those in the window are registered, and the copy engines use them
 * in place. Those of other guest memory are used in place when they are long enough; short
 * scattered ones go through the slots of staging.c, the only bytes that a CPU copies on the way.
 */
#include <string.h>

#include "qcu-device/mirror_impl.h"

/*
 * Pieces from here on are worth a copy of their own. CUDA stages memory that is not registered
 * itself, piece by piece. Measured on an H200 with pieces of 64 KiB, 256 KiB, 1 MiB, 4 MiB, GB/s up
 * that way: 10.7, 16.5, 18.8, 18.3, down: 5.4, 10.3, 13.0, 17.3; through our slots: 16.3 up, 16.6
 * down whatever their size. Up it pays from 256 KiB on, down from 3 MiB.
 */
#define DIRECT_MIN (1u << 20)
/* With all of guest memory registered. Pieces of 64 KiB move at 18 GB/s then. */
#define RAM_DIRECT_MIN (64u << 10)

static int add_segments(struct call *c, struct pieces *ps)
{
	const struct guestmem *mem = c->m->cfg.mem;
	int rc = QCU_ERR_Success;
	size_t i;

	for (i = 0; i < c->req->seg_count && !rc; i++) {
		uint64_t gpa = c->req->segs[i].gpa, left = c->req->segs[i].len;

		while (left && !rc) {
			void *host = (void *)gpa;
			uint64_t part = mem ? guestmem_run(mem, gpa, left, &host) : left;

			if (!part)
				return MIR_RULE_BROKEN;
			rc = pieces_add(ps, host, part,
					c->m->window.ram_registered && part >= RAM_DIRECT_MIN);
			gpa += part;
			left -= part;
		}
	}
	return rc;
}

int mir_pieces(struct call *c, struct pieces *ps)
{
	int rc;

	if (c->cmd->flags & QCU_F_WINDOW)
		rc = window_resolve(&c->m->window, c->cmd->buf.addr, c->cmd->buf.len, ps);
	else
		rc = add_segments(c, ps);
	if (rc)
		pieces_free(ps);
	return rc;
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

int mir_device_range(struct call *c, uint64_t addr, uint64_t len)
{
	MIR_NEED(c, mem_valid);
	if (!len || len - 1 > UINT64_MAX - addr)
		return QCU_ERR_InvalidValue;
	if (addr - QCU_WINDOW_BASE >= QCU_WINDOW_SIZE &&
	    c->m->cfg.ops->mem_valid(c->m->be, addr, len))
		return QCU_ERR_Success;
	return window_pinned(&c->m->window, addr, len) ? QCU_ERR_Success : QCU_ERR_InvalidValue;
}

/* Bytes of a slot under way: where in the buffer's pieces they belong. */
struct flight {
	struct stage_slot *slot;
	size_t piece, off, len;
};

/* A host-device copy under way. */
struct copy {
	struct call *c;
	bool h2d;
	uint64_t device; /* where the next byte goes to or comes from */
	struct stream_ref stream;
	struct pieces ps;
	struct flight flight[STAGE_DEPTH]; /* a ring, the oldest first */
	unsigned int first, flights;
	bool timed;
	uint64_t spent; /* ns in the backend, if timed */
};

static uint64_t tick(const struct copy *cp)
{
	return cp->timed ? mir_now_ns() : 0;
}

static int issue(struct copy *cp, void *host, size_t len)
{
	struct mirror *m = cp->c->m;
	const struct be_ops *ops = m->cfg.ops;
	uint64_t began = tick(cp);
	int rc = cp->h2d ? ops->copy_h2d(m->be, cp->device, host, len, cp->stream.s)
			 : ops->copy_d2h(m->be, host, cp->device, len, cp->stream.s);

	cp->spent += tick(cp) - began;
	if (!rc) {
		cp->device += len;
		m->stats.copies++;
	}
	return rc;
}

static void count_direct(struct copy *cp, size_t len)
{
	if (cp->c->cmd->flags & QCU_F_WINDOW)
		cp->c->m->stats.window_bytes += len;
	else
		cp->c->m->stats.pages_bytes += len;
}

/* A piece from an offset on, by the backend from where it lies. */
static int issue_direct(struct copy *cp, const struct piece *p, size_t off)
{
	int rc = issue(cp, p->host + off, p->len - off);

	if (!rc)
		count_direct(cp, p->len - off);
	return rc;
}

/* How many pieces the backend is given at once, at most. */
#define TOGETHER 64

/* Registered pieces in one call of the backend, [i, *next). */
static int issue_together(struct copy *cp, size_t i, size_t end, size_t *next)
{
	struct mirror *m = cp->c->m;
	struct iovec host[TOGETHER];
	uint64_t began = tick(cp);
	size_t n, len = 0;
	int rc;

	for (n = 0; n < TOGETHER && i < end; n++, i++) {
		host[n] = (struct iovec){cp->ps.p[i].host, cp->ps.p[i].len};
		len += host[n].iov_len;
	}
	*next = i;
	rc = m->cfg.ops->copy_pieces(m->be, cp->h2d, cp->device, host, n, cp->stream.s);
	cp->spent += tick(cp) - began;
	if (!rc) {
		cp->device += len;
		m->stats.copies += n;
		count_direct(cp, len);
	}
	return rc;
}

static bool small(const struct piece *p)
{
	return !p->registered && p->len < DIRECT_MIN;
}

/* The CPU's part: between a slot and the pieces. */
static void carry(struct copy *cp, const struct flight *f)
{
	size_t i = f->piece, off = f->off, done = 0;

	while (done < f->len) {
		const struct piece *p = &cp->ps.p[i++];
		size_t part = p->len - off < f->len - done ? p->len - off : f->len - done;

		if (cp->h2d)
			memcpy(f->slot->buf + done, p->host + off, part);
		else
			memcpy(p->host + off, f->slot->buf + done, part);
		done += part;
		off = 0;
	}
	cp->c->m->stats.staged_bytes += f->len;
}

/* Waits for the oldest flight. What came down is carried to its place; the slot is the caller's. */
static int land(struct copy *cp, struct stage_slot **slot)
{
	struct flight *f = &cp->flight[cp->first];
	uint64_t began = tick(cp);
	int rc;

	cp->first = (cp->first + 1) % STAGE_DEPTH;
	cp->flights--;
	*slot = f->slot;
	cp->c->waited = true;
	rc = staging_wait(&cp->c->m->staging, f->slot);
	cp->spent += tick(cp) - began;
	if (!rc && !cp->h2d)
		carry(cp, f);
	return rc;
}

/* A slot of the mirror's, or the oldest of this copy's own; NULL: there is none. */
static int get_slot(struct copy *cp, struct stage_slot **slot)
{
	struct staging *st = &cp->c->m->staging;
	int rc = QCU_ERR_Success;

	*slot = NULL;
	if (cp->flights < STAGE_DEPTH)
		rc = staging_take(st, cp->stream.device, slot);
	if (rc || *slot || !cp->flights)
		return rc;
	rc = land(cp, slot);
	if (rc)
		staging_give(st, *slot);
	return rc;
}

/* Gives all slots back. Up, nobody needs to wait for them. Down, what is in them is wanted. */
static int land_all(struct copy *cp, int rc)
{
	struct staging *st = &cp->c->m->staging;

	while (cp->flights && cp->h2d) {
		staging_leave(st, cp->flight[cp->first].slot);
		cp->first = (cp->first + 1) % STAGE_DEPTH;
		cp->flights--;
	}
	while (cp->flights) {
		struct stage_slot *slot;
		int err = land(cp, &slot);

		staging_give(st, slot);
		rc = rc ? rc : err;
	}
	return rc;
}

/* Sends one slot's worth off. On an error the slot is free again. */
static int fly(struct copy *cp, const struct flight *f)
{
	struct staging *st = &cp->c->m->staging;
	int rc;

	if (cp->h2d)
		carry(cp, f);
	rc = issue(cp, f->slot->buf, f->len);
	if (!rc) {
		rc = staging_mark(st, f->slot, cp->stream.s);
		/* Without a mark, only the stream itself can tell when the slot is free. */
		if (rc)
			mir_stream_wait(cp->c, &cp->stream);
	}
	if (rc) {
		staging_give(st, f->slot);
		return rc;
	}
	cp->flight[(cp->first + cp->flights++) % STAGE_DEPTH] = *f;
	return QCU_ERR_Success;
}

/*
 * The short pieces [i, end), slot by slot. While the copy engine is at one slot, the CPU fills or
 * empties another. Where there is no slot to be had, the pieces go one by one.
 */
static int issue_staged(struct copy *cp, size_t i, size_t end)
{
	size_t off = 0, left = 0, k;
	int rc = QCU_ERR_Success;

	for (k = i; k < end; k++)
		left += cp->ps.p[k].len;
	while (left && !rc) {
		struct flight f = {.piece = i, .off = off};

		f.len = left < STAGE_BYTES ? left : STAGE_BYTES;
		rc = get_slot(cp, &f.slot);
		if (rc)
			break;
		if (!f.slot) {
			for (; i < end && !rc; i++, off = 0)
				rc = issue_direct(cp, &cp->ps.p[i], off);
			break;
		}
		left -= f.len;
		for (k = f.len; k && k >= cp->ps.p[i].len - off; off = 0)
			k -= cp->ps.p[i++].len - off;
		off += k;
		rc = fly(cp, &f);
	}
	return rc;
}

static int issue_all(struct copy *cp)
{
	const struct pieces *ps = &cp->ps;
	bool together = cp->c->m->cfg.ops->copy_pieces;
	size_t i = 0, end;
	int rc = QCU_ERR_Success;

	while (i < ps->count && !rc) {
		for (end = i; together && end < ps->count && ps->p[end].registered; end++)
			;
		if (end > i + 1) {
			rc = issue_together(cp, i, end, &i);
			continue;
		}
		for (end = i; end < ps->count && small(&ps->p[end]); end++)
			;
		/* One on its own costs the backend no more calls than a slot does. */
		if (end <= i + 1) {
			rc = issue_direct(cp, &ps->p[i++], 0);
		} else {
			rc = issue_staged(cp, i, end);
			i = end;
		}
	}
	return land_all(cp, rc);
}

static int copy_host(struct copy *cp, uint32_t stream, uint32_t flags)
{
	struct call *c = cp->c;
	bool window = c->cmd->flags & QCU_F_WINDOW, wait;
	int rc;

	MIR_NEED(c, copy_h2d);
	MIR_NEED(c, copy_d2h);
	if (flags & ~(QCU_COPY_FLAGS | QCU_COPY_TIMED))
		return QCU_ERR_InvalidValue;
	cp->timed = flags & QCU_COPY_TIMED;
	rc = mir_stream_get(c, stream, &cp->stream);
	if (rc)
		return rc;
	if (!c->cmd->buf.len)
		goto out;
	rc = mir_device_range(c, cp->device, c->cmd->buf.len);
	if (!rc)
		rc = mir_pieces(c, &cp->ps);
	if (rc)
		goto out;
	rc = issue_all(cp);
	/*
	 * The buffer must be the guest's again when we answer, unless it is pinned and the guest
	 * said that it waits itself. What is not registered has been read by now.
	 */
	wait = !window || !(flags & QCU_COPY_QUEUED);
	if (cp->h2d && !window && !c->m->window.ram_registered)
		wait = false;
	if (wait || flags & QCU_COPY_SYNC) {
		uint64_t began = tick(cp);
		int err = mir_stream_wait(c, &cp->stream);

		cp->spent += tick(cp) - began;
		rc = rc ? rc : err;
	}
	pieces_free(&cp->ps);
out:
	mir_stream_put(c, &cp->stream);
	return rc;
}

static uint32_t short_ns(uint64_t ns)
{
	return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

int mir_do_copy_h2d(struct call *c)
{
	struct qcu_copy_h2d *h = &c->cmd->copy_h2d;
	struct copy cp = {.c = c, .h2d = true, .device = h->dst};
	int rc = copy_host(&cp, h->stream, h->flags);

	if (!rc)
		c->m->stats.h2d_bytes += h->buf.len;
	if (cp.timed) {
		h->mirror_ns = short_ns(mir_now_ns() - c->req->taken);
		h->copy_ns = short_ns(cp.spent);
	}
	return rc;
}

int mir_do_copy_d2h(struct call *c)
{
	struct qcu_copy_d2h *h = &c->cmd->copy_d2h;
	struct copy cp = {.c = c, .device = h->src};
	int rc = copy_host(&cp, h->stream, h->flags);

	if (!rc)
		c->m->stats.d2h_bytes += h->buf.len;
	if (cp.timed) {
		h->mirror_ns = short_ns(mir_now_ns() - c->req->taken);
		h->copy_ns = short_ns(cp.spent);
	}
	return rc;
}

/* The backend has read the message when it returns: it is no registered memory. */
int mir_do_copy_small(struct call *c)
{
	const struct qcu_copy_small *cs = &c->cmd->copy_small;
	struct mirror *m = c->m;
	struct stream_ref s;
	int rc;

	MIR_NEED(c, copy_h2d);
	rc = mir_stream_get(c, cs->stream, &s);
	if (rc)
		return rc;
	if (cs->buf.len) {
		rc = mir_device_range(c, cs->dst, cs->buf.len);
		if (!rc)
			rc = m->cfg.ops->copy_h2d(m->be, cs->dst, c->req->msg, cs->buf.len, s.s);
		if (!rc) {
			m->stats.copies++;
			m->stats.h2d_bytes += cs->buf.len;
			m->stats.staged_bytes += cs->buf.len;
		}
	}
	mir_stream_put(c, &s);
	return rc;
}

/* Either end may be host memory that consists of several registrations. */
static int issue_d2d(struct mirror *m, struct qcu_copy_d2d d, struct be_stream *s)
{
	while (d.len) {
		uint64_t part = window_span(&m->window, d.dst, d.len);
		int rc;

		part = window_span(&m->window, d.src, part);
		rc = m->cfg.ops->copy_d2d(m->be, d.dst, d.src, part, s);
		if (rc)
			return rc;
		m->stats.d2d_bytes += part;
		m->stats.copies++;
		d.dst += part;
		d.src += part;
		d.len -= part;
	}
	return QCU_ERR_Success;
}

int mir_do_copy_d2d(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_copy_d2d *d = &c->cmd->copy_d2d;
	struct stream_ref s;
	int rc;

	MIR_NEED(c, copy_d2d);
	if (d->flags & ~QCU_COPY_FLAGS)
		return QCU_ERR_InvalidValue;
	rc = mir_stream_get(c, d->stream, &s);
	if (rc)
		return rc;
	if (d->len) {
		rc = mir_device_range(c, d->dst, d->len);
		if (!rc)
			rc = mir_device_range(c, d->src, d->len);
		if (!rc)
			rc = issue_d2d(m, *d, s.s);
	}
	if (!rc && d->flags & QCU_COPY_SYNC)
		rc = mir_stream_wait(c, &s);
	mir_stream_put(c, &s);
	return rc;
}

/* How many bytes lie between the first and the last that a memset writes. */
static int memset_extent(const struct qcu_memset *s, uint64_t *len)
{
	uint64_t above;

	if (s->elem != 1 && s->elem != 2 && s->elem != 4)
		return QCU_ERR_InvalidValue;
	if (s->dst % s->elem || s->width % s->elem)
		return QCU_ERR_InvalidValue;
	*len = s->width;
	if (s->height <= 1)
		return QCU_ERR_Success;
	if (s->pitch < s->width || s->pitch % s->elem)
		return QCU_ERR_InvalidPitchValue;
	if (__builtin_mul_overflow(s->pitch, s->height - 1, &above) ||
	    __builtin_add_overflow(above, s->width, len))
		return QCU_ERR_InvalidValue;
	return QCU_ERR_Success;
}

/* In one call, or row by row and piece by piece where the memory has several registrations. */
static int issue_memset(struct mirror *m, const struct be_memset *op, uint64_t extent,
			struct be_stream *s)
{
	struct be_memset part = *op;
	uint64_t row, left;
	int rc = QCU_ERR_Success;

	if (window_span(&m->window, op->dst, extent) == extent)
		return m->cfg.ops->mem_set(m->be, op, s);
	part.height = 1;
	part.pitch = 0;
	for (row = 0; row < op->height && !rc; row++) {
		part.dst = op->dst + row * op->pitch;
		for (left = op->width; left && !rc; left -= part.width) {
			part.width = window_span(&m->window, part.dst, left);
			rc = m->cfg.ops->mem_set(m->be, &part, s);
			part.dst += part.width;
		}
	}
	return rc;
}

int mir_do_memset(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_memset *ms = &c->cmd->memset;
	struct be_memset op = {
		.dst = ms->dst,
		.pitch = ms->pitch,
		.width = ms->width,
		.height = ms->height,
		.value = ms->value,
		.elem = ms->elem,
	};
	struct stream_ref s;
	uint64_t len;
	int rc;

	MIR_NEED(c, mem_set);
	if (ms->flags & ~QCU_COPY_SYNC)
		return QCU_ERR_InvalidValue;
	rc = memset_extent(ms, &len);
	if (rc)
		return rc;
	rc = mir_stream_get(c, ms->stream, &s);
	if (rc)
		return rc;
	if (ms->width && ms->height) {
		rc = mir_device_range(c, ms->dst, len);
		if (!rc)
			rc = issue_memset(m, &op, len, s.s);
	}
	if (!rc && ms->flags & QCU_COPY_SYNC)
		rc = mir_stream_wait(c, &s);
	mir_stream_put(c, &s);
	return rc;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copies rows between guest memory and the GPU's side. Rows that lie in one piece of the buffer are
 * one copy of the backend, in place and with the guest's own pitch. The CPU carries the other rows
 * through a buffer of ours: rows that the end of a piece cuts, and rows in short scattered pieces.
 * That buffer is limited, so a longer row is carried in several parts.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/commands/commands.h"

/*
 * If memory is not registered and one piece has less than this, it is carried with others (see
 * copy.c).
 */
#define DIRECT_MIN (1u << 20)
#define CARRY_MAX  (1u << 20)

struct rows {
	struct call *c;
	const struct mir_rect *r;
	struct stream_ref stream;
	struct pieces ps;
	size_t piece, start; /* the current piece, and its offset in the buffer */
	uint8_t *carry;	     /* at most CARRY_MAX bytes; NULL: not allocated yet */
};

/* Rows, or a part of each: `width` bytes from `off` on. */
struct row_range {
	uint64_t row, count;
	uint64_t off, width;
};

static int issue(struct rows *x, const struct row_range *pt, void *host, uint64_t pitch)
{
	struct mirror *m = x->c->m;
	const struct mir_rect *r = x->r;
	struct be_side mem = {
		.addr = (uintptr_t)host, .pitch = pitch, .rows = pt->count, .host = true};
	struct be_side far = r->side;
	struct be_box box = {.width = pt->width, .height = pt->count, .depth = 1};
	int rc;

	if (far.array) {
		far.x += (uint32_t)pt->off;
		far.y += (uint32_t)pt->row;
	} else {
		far.addr += pt->row * far.pitch + pt->off;
	}
	far.rows = pt->count;
	box.dst = r->down ? mem : far;
	box.src = r->down ? far : mem;
	rc = m->cfg.ops->copy_box(m->be, &box, x->stream.s);
	if (!rc)
		count_add(m->counts, COUNT_COPIES, 1);
	return rc;
}

/* Copies between the carrying buffer, where rows have no gaps, and the pieces. */
static void carry_rows(struct rows *x, const struct row_range *pt)
{
	const struct mir_rect *r = x->r;
	size_t piece = x->piece, start = x->start;
	uint8_t *at = x->carry;
	uint64_t i;

	for (i = pt->row; i < pt->row + pt->count; i++) {
		uint64_t off = i * r->pitch + pt->off, left = pt->width;

		while (left) {
			const struct piece *p = &x->ps.p[piece];
			uint64_t part;

			if (off - start >= p->len) {
				start += p->len;
				piece++;
				continue;
			}
			part = p->len - (off - start);
			if (part > left)
				part = left;
			if (r->down)
				memcpy(p->host + (off - start), at, part);
			else
				memcpy(at, p->host + (off - start), part);
			at += part;
			off += part;
			left -= part;
		}
	}
	count_add(x->c->m->counts, r->down ? COUNT_D2H_STAGED : COUNT_H2D_STAGED,
		  pt->count * pt->width);
}

static int carry_part(struct rows *x, const struct row_range *pt)
{
	bool down = x->r->down;
	int rc;

	if (!down)
		carry_rows(x, pt);
	rc = issue(x, pt, x->carry, pt->width);
	if (!rc && down)
		rc = mir_stream_wait(x->c, &x->stream);
	if (!rc && down)
		carry_rows(x, pt);
	return rc;
}

/*
 * Carries several rows for which the buffer has room, or one row. The buffer's size is a multiple
 * of the size of any element.
 */
static int issue_carried(struct rows *x, uint64_t row, uint64_t count)
{
	struct row_range pt = {.row = row, .count = count, .width = x->r->width};
	uint64_t left = x->r->width;
	int rc = QCU_ERR_Success;

	if (!x->carry)
		x->carry =
			malloc(x->r->width < CARRY_MAX / x->r->height ? x->r->width * x->r->height
								      : CARRY_MAX);
	if (!x->carry)
		return QCU_ERR_MemoryAllocation;
	if (left <= CARRY_MAX)
		return carry_part(x, &pt);
	for (pt.width = CARRY_MAX; left && !rc; pt.off += pt.width, left -= pt.width) {
		if (pt.width > left)
			pt.width = left;
		rc = carry_part(x, &pt);
	}
	return rc;
}

/* Returns how many rows, from this one on, end in the piece in which this one begins. */
static uint64_t rows_here(const struct rows *x, uint64_t row)
{
	const struct mir_rect *r = x->r;
	uint64_t left = x->ps.p[x->piece].len - (row * r->pitch - x->start), rows;

	if (left < r->width)
		return 0;
	if (r->height == 1)
		return 1;
	rows = 1 + (left - r->width) / r->pitch;
	return rows < r->height - row ? rows : r->height - row;
}

static int issue_all(struct rows *x)
{
	const struct mir_rect *r = x->r;
	bool window = x->c->cmd->flags & QCU_F_WINDOW;
	enum count path = r->down ? (window ? COUNT_D2H_WINDOW : COUNT_D2H_PAGES)
				  : (window ? COUNT_H2D_WINDOW : COUNT_H2D_PAGES);
	uint64_t row = 0, count;
	int rc = QCU_ERR_Success;

	while (row < r->height && !rc) {
		const struct piece *p;

		for (p = &x->ps.p[x->piece]; row * r->pitch - x->start >= p->len; p++) {
			x->start += p->len;
			x->piece++;
		}
		count = rows_here(x, row);
		if (count &&
		    (p->registered || x->ps.count == 1 || count * r->width >= DIRECT_MIN)) {
			const struct row_range pt = {.row = row, .count = count, .width = r->width};

			rc = issue(x, &pt, p->host + (row * r->pitch - x->start), r->pitch);
			count_add(x->c->m->counts, path, count * r->width);
		} else {
			/* In registered memory, carry only the row that is cut. */
			count = p->registered || r->width > CARRY_MAX ? 1 : CARRY_MAX / r->width;
			if (count > r->height - row)
				count = r->height - row;
			rc = issue_carried(x, row, count);
		}
		row += count;
	}
	return rc;
}

int mir_rect(struct call *c, const struct mir_rect *r)
{
	bool window = c->cmd->flags & QCU_F_WINDOW, wait;
	struct rows x = {.c = c, .r = r};
	uint64_t len;
	int rc;

	if (!r->width || !r->height || r->flags & ~(QCU_COPY_QUEUED | QCU_COPY_SYNC))
		return QCU_ERR_InvalidValue;
	if (r->height > 1 && r->pitch < r->width)
		return QCU_ERR_InvalidPitchValue;
	if (__builtin_mul_overflow(r->pitch, r->height - 1, &len) ||
	    __builtin_add_overflow(len, r->width, &len) || len != c->cmd->buf.len)
		return QCU_ERR_InvalidValue;
	rc = mir_stream_get(c, r->stream, &x.stream);
	if (rc)
		return rc;
	rc = mir_pieces(c, &x.ps);
	if (rc)
		goto out;
	rc = issue_all(&x);
	/* As for copies of one row: see copy_host() in copy.c. */
	wait = !window || !(r->flags & QCU_COPY_QUEUED);
	if (!r->down && !window)
		wait = false;
	if (wait || r->flags & QCU_COPY_SYNC) {
		int err = mir_stream_wait(c, &x.stream);

		rc = rc ? rc : err;
	}
	if (!rc)
		count_add(c->m->counts, r->down ? COUNT_D2H : COUNT_H2D, r->width * r->height);
	pieces_free(&x.ps);
	free(x.carry);
out:
	mir_stream_put(c, &x.stream);
	return rc;
}

/*
 * Describes rows of device memory. They must lie in one allocation or one registration, as
 * window_span() sees it.
 */
static int device_rows(struct call *c, uint64_t addr, uint64_t pitch, uint64_t width,
		       uint64_t height, struct be_side *side)
{
	uint64_t len;
	bool window;
	int rc;

	if (!width || !height)
		return QCU_ERR_InvalidValue;
	if (height > 1 && pitch < width)
		return QCU_ERR_InvalidPitchValue;
	len = pitch * (height - 1) + width; /* cannot overflow: all values have 32 bits */
	rc = mir_memory_range(c, addr, len, &window);
	if (!rc && window_span(&c->m->window, addr, len) != len)
		rc = QCU_ERR_InvalidValue;
	*side = (struct be_side){.addr = addr,
				 .pitch = pitch,
				 .rows = height,
				 .host = !rc && window && mir_on_host(c->m, addr)};
	return rc;
}

int mir_do_rect_h2d(struct call *c)
{
	const struct qcu_rect_h2d *h = &c->cmd->rect_h2d;
	struct mir_rect r = {
		.width = h->width,
		.height = h->height,
		.pitch = h->pitch,
		.stream = h->stream,
		.flags = h->flags,
	};
	int rc = device_rows(c, h->dst, h->dst_pitch, h->width, h->height, &r.side);

	return rc ? rc : mir_rect(c, &r);
}

int mir_do_rect_d2h(struct call *c)
{
	const struct qcu_rect_d2h *h = &c->cmd->rect_d2h;
	struct mir_rect r = {
		.down = true,
		.width = h->width,
		.height = h->height,
		.pitch = h->pitch,
		.stream = h->stream,
		.flags = h->flags,
	};
	int rc = device_rows(c, h->src, h->src_pitch, h->width, h->height, &r.side);

	return rc ? rc : mir_rect(c, &r);
}

int mir_do_rect_d2d(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_rect_d2d *d = &c->cmd->rect_d2d;
	struct be_box box = {.width = d->width, .height = d->height, .depth = 1};
	struct stream_ref s;
	int rc;

	if (d->flags & ~QCU_COPY_SYNC)
		return QCU_ERR_InvalidValue;
	rc = device_rows(c, d->dst, d->dst_pitch, d->width, d->height, &box.dst);
	if (!rc)
		rc = device_rows(c, d->src, d->src_pitch, d->width, d->height, &box.src);
	if (!rc)
		rc = mir_stream_get(c, d->stream, &s);
	if (rc)
		return rc;
	rc = m->cfg.ops->copy_box(m->be, &box, s.s);
	if (!rc) {
		count_add(m->counts, COUNT_COPIES, 1);
		count_add(m->counts, COUNT_D2D, box.width * box.height);
	}
	if (!rc && d->flags & QCU_COPY_SYNC)
		rc = mir_stream_wait(c, &s);
	mir_stream_put(c, &s);
	return rc;
}

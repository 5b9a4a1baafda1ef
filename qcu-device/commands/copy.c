// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The data path: copies between the buffer of a command and device memory.
 *
 * A buffer is a list of pieces (call.c). Pieces in the window are registered, but for large ones in
 * their first copy: the copy engines use them in place. Other pieces go to the backend as they are
 * if they are long enough; short scattered ones go through the slots of staging.c. If there is a
 * lot of such memory, all of it goes through the slots, and several threads copy it.
 */
#include <string.h>

#include "qcu-device/commands/commands.h"

/*
 * Pieces of this length and more are worth a copy of their own. CUDA itself stages memory that is
 * not registered, piece by piece. Measured on an H200, in GB/s, with pieces of 64 KiB, 256 KiB,
 * 1 MiB and 4 MiB:
 *
 * - staged by CUDA: up 10.7, 16.5, 18.8, 18.3; down 5.4, 10.3, 13.0, 17.3;
 * - through our slots: 16.3 up and 16.6 down, for any piece size.
 *
 * So a copy of its own is faster up from 256 KiB on, and down from 3 MiB on.
 */
#define DIRECT_MIN (1u << 20)
/*
 * A CPU copies more slowly than PCIe transfers, so several CPUs carry the unregistered memory of a
 * large copy. This includes long pieces, for which CUDA would use a single CPU. Waking a thread
 * takes 50 us on that host. In that time a CPU copies half a megabyte, so each thread must have
 * twice that to do.
 */
#define SPREAD_EACH (1u << 20)

/* The most registered pieces that the backend gets in one call. */
#define TOGETHER 64

/* What the backend gets at once: through a slot, or from its place in memory. */
struct load {
	enum { PIECEWISE, REGISTERED, STAGED } how;
	struct stage_slot *slot; /* NULL: none */
	uint64_t device;
	size_t piece, off, len; /* position of its start in the buffer's pieces */
};

/* A host-device copy in progress, and the state that its threads share. */
struct copy {
	struct call *c;
	bool h2d;
	struct stream_ref stream;
	struct pieces ps;
	bool spread; /* over several threads */
	bool timed;
	uint64_t spent;	      /* ns of copying, if timed */
	pthread_mutex_t lock; /* protects what follows */
	uint64_t device;      /* device address of the next load */
	size_t piece, off;    /* and its position in the pieces */
	int rc;		      /* the first error; no load is started after it */
	bool waited;
};

/* One thread's part of a copy. */
struct hand {
	struct copy *cp;
	struct call call;		 /* the thread's own copy, because it is written to */
	struct load flight[STAGE_DEPTH]; /* slots in use by the GPU: a ring, the oldest first */
	unsigned int first, flights;
};

static uint64_t tick(const struct copy *cp)
{
	return cp->timed ? spin_clock() : 0;
}

/* May this piece go through a slot? staged() also looks at its neighbours. */
static bool for_slots(const struct copy *cp, size_t i)
{
	const struct piece *p = &cp->ps.p[i];

	return i < cp->ps.count && !p->registered && (cp->spread || p->len < DIRECT_MIN);
}

static bool staged(const struct copy *cp, size_t i)
{
	/*
	 * A short piece without such a neighbour is copied directly: that costs the backend no more
	 * calls than a slot does.
	 */
	return for_slots(cp, i) &&
	       (cp->spread || for_slots(cp, i + 1) || (i && for_slots(cp, i - 1)));
}

/* Takes as much as fits into a slot, from the copy's present position on. */
static void load_slot(struct copy *cp, struct load *l)
{
	while (l->len < STAGE_BYTES && staged(cp, cp->piece)) {
		size_t left = cp->ps.p[cp->piece].len - cp->off, room = STAGE_BYTES - l->len;

		l->len += left < room ? left : room;
		cp->off += left < room ? left : room;
		if (left > room)
			break;
		cp->piece++;
		cp->off = 0;
	}
}

/* Takes one piece, or several registered pieces if the backend accepts several in one call. */
static void load_whole(struct copy *cp, struct load *l)
{
	size_t most = cp->c->m->cfg.ops->copy_pieces ? TOGETHER : 1, n = 0;
	const struct piece *p = &cp->ps.p[cp->piece];

	if (!p->registered)
		most = 1;
	do
		l->len += p[n++].len;
	while (n < most && cp->piece + n < cp->ps.count && p[n].registered);
	cp->piece += n;
	l->how = n > 1 ? REGISTERED : PIECEWISE;
}

/* Takes the next load. False: there is none. If several threads copy, the caller holds the lock. */
static bool next_load(struct copy *cp, struct load *l)
{
	if (cp->rc || cp->piece == cp->ps.count)
		return false;
	*l = (struct load){.device = cp->device, .piece = cp->piece, .off = cp->off};
	if (staged(cp, cp->piece)) {
		l->how = STAGED;
		load_slot(cp, l);
	} else {
		load_whole(cp, l);
	}
	cp->device += l->len;
	return true;
}

/* A walk through the pieces of a load. */
struct walk {
	const struct piece *p;
	size_t off, left;
};

static struct walk walk_begin(const struct copy *cp, const struct load *l)
{
	return (struct walk){.p = &cp->ps.p[l->piece], .off = l->off, .left = l->len};
}

/* Returns the length of the next contiguous part, which begins at *host. 0: the end. */
static size_t next_part_of_walk(struct walk *w, uint8_t **host)
{
	size_t part;

	if (!w->left)
		return 0;
	part = w->p->len - w->off < w->left ? w->p->len - w->off : w->left;
	*host = w->p->host + w->off;
	w->p++;
	w->off = 0;
	w->left -= part;
	return part;
}

static void count_direct(const struct copy *cp, size_t copies, size_t len)
{
	struct counts *counts = cp->c->m->counts;

	count_add(counts, COUNT_COPIES, copies);
	if (cp->c->cmd->flags & QCU_F_WINDOW)
		count_add(counts, cp->h2d ? COUNT_H2D_WINDOW : COUNT_D2H_WINDOW, len);
	else
		count_add(counts, cp->h2d ? COUNT_H2D_PAGES : COUNT_D2H_PAGES, len);
}

/* The backend copies each piece where it lies, or several registered pieces in one call. */
static int copy_in_place(const struct copy *cp, const struct load *l)
{
	const struct be_ops *ops = cp->c->m->cfg.ops;
	struct be *be = cp->c->m->be;
	struct walk w = walk_begin(cp, l);
	struct iovec together[TOGETHER];
	uint64_t device = l->device;
	int rc = QCU_ERR_Success;
	size_t n = 0, part;
	uint8_t *host;

	while (!rc && (part = next_part_of_walk(&w, &host))) {
		if (l->how == REGISTERED) {
			together[n++] = (struct iovec){host, part};
			continue;
		}
		rc = cp->h2d ? ops->copy_h2d(be, device, host, part, cp->stream.s)
			     : ops->copy_d2h(be, host, device, part, cp->stream.s);
		device += part;
		if (!rc)
			count_direct(cp, 1, part);
	}
	if (n) {
		rc = ops->copy_pieces(be, cp->h2d, device, together, n, cp->stream.s);
		if (!rc)
			count_direct(cp, n, l->len);
	}
	return rc;
}

/* The CPU's part: copies between a slot and the pieces. */
static void carry_load(const struct copy *cp, const struct load *l)
{
	struct walk w = walk_begin(cp, l);
	uint8_t *slot = l->slot->buf, *host;
	size_t part;

	for (; (part = next_part_of_walk(&w, &host)); slot += part) {
		if (!cp->h2d && (cp->c->cmd->flags & QCU_F_WINDOW))
			window_enter(&cp->c->m->window, host, part);
		memcpy(cp->h2d ? slot : host, cp->h2d ? host : slot, part);
	}
	count_add(cp->c->m->counts, cp->h2d ? COUNT_H2D_STAGED : COUNT_D2H_STAGED, l->len);
}

/*
 * Waits for the oldest slot in use. For a copy down, carries its data to the pieces. The slot is
 * then the caller's.
 */
static int land(struct hand *h, struct stage_slot **slot)
{
	const struct load *l = &h->flight[h->first];
	int rc;

	h->first = (h->first + 1) % STAGE_DEPTH;
	h->flights--;
	*slot = l->slot;
	h->call.waited = true;
	rc = staging_wait(&h->call.m->staging, l->slot);
	if (!rc && !h->cp->h2d)
		carry_load(h->cp, l);
	return rc;
}

/*
 * Takes a slot from the mirror, or else this thread's oldest one. *slot is NULL if there is none.
 */
static int get_slot(struct hand *h, struct stage_slot **slot)
{
	struct staging *st = &h->call.m->staging;
	int rc = QCU_ERR_Success;

	*slot = NULL;
	if (h->flights < STAGE_DEPTH)
		rc = staging_take(st, h->cp->stream.device, slot);
	if (rc || *slot || !h->flights)
		return rc;
	rc = land(h, slot);
	if (rc)
		staging_give(st, *slot);
	return rc;
}

/*
 * Gives all slots back. For a copy up, nothing needs to wait for them. For a copy down, their data
 * must first be carried to the pieces.
 */
static int land_all(struct hand *h)
{
	struct staging *st = &h->call.m->staging;
	int rc = QCU_ERR_Success;

	while (h->flights && h->cp->h2d) {
		staging_leave(st, h->flight[h->first].slot);
		h->first = (h->first + 1) % STAGE_DEPTH;
		h->flights--;
	}
	while (h->flights) {
		struct stage_slot *slot;
		int err = land(h, &slot);

		staging_give(st, slot);
		rc = rc ? rc : err;
	}
	return rc;
}

/* Starts the copy of one slot. On an error the slot is free again. */
static int fly(struct hand *h, const struct load *l)
{
	struct staging *st = &h->call.m->staging;
	const struct be_ops *ops = h->call.m->cfg.ops;
	struct be_stream *s = h->cp->stream.s;
	struct be *be = h->call.m->be;
	int rc;

	if (h->cp->h2d) {
		carry_load(h->cp, l);
		rc = ops->copy_h2d(be, l->device, l->slot->buf, l->len, s);
	} else {
		rc = ops->copy_d2h(be, l->slot->buf, l->device, l->len, s);
	}
	if (!rc) {
		count_add(h->call.m->counts, COUNT_COPIES, 1);
		rc = staging_mark(st, l->slot, s);
		/* Without a mark, only waiting for the stream shows when the slot is free. */
		if (rc)
			mir_stream_wait(&h->call, &h->cp->stream);
	}
	if (rc) {
		staging_give(st, l->slot);
		return rc;
	}
	h->flight[(h->first + h->flights++) % STAGE_DEPTH] = *l;
	return QCU_ERR_Success;
}

static void note(struct hand *h, int rc)
{
	struct copy *cp = h->cp;

	pthread_mutex_lock(&cp->lock);
	cp->rc = cp->rc ? cp->rc : rc;
	cp->waited |= h->call.waited;
	pthread_mutex_unlock(&cp->lock);
}

static bool next_load_of(struct hand *h, struct load *l)
{
	struct copy *cp = h->cp;
	bool more;

	pthread_mutex_lock(&cp->lock);
	more = next_load(cp, l);
	pthread_mutex_unlock(&cp->lock);
	return more;
}

/*
 * The work of one thread, until no load is left to start. While the copy engine works on one slot,
 * the CPU fills or empties another. If no slot is available, the rest is copied piece by piece.
 */
static void carry_out_loads(void *arg)
{
	struct copy *cp = arg;
	struct hand h = {.cp = cp, .call = *cp->c};
	struct load l;
	bool slots = true;
	int rc = QCU_ERR_Success;

	while (!rc && next_load_of(&h, &l)) {
		if (l.how == STAGED && slots) {
			rc = get_slot(&h, &l.slot);
			slots = l.slot;
		}
		if (rc)
			break;
		rc = l.slot ? fly(&h, &l) : copy_in_place(cp, &l);
	}
	note(&h, rc);
	note(&h, land_all(&h));
}

static size_t unregistered_bytes(const struct copy *cp)
{
	size_t i, bytes = 0;

	for (i = 0; i < cp->ps.count; i++)
		if (!cp->ps.p[i].registered)
			bytes += cp->ps.p[i].len;
	return bytes;
}

/* A copy with memory that is not registered: by as many threads as have enough to do. */
static int copy_carried(struct copy *cp, size_t unregistered)
{
	struct carriers *cs = &cp->c->m->carriers;
	size_t threads = unregistered / SPREAD_EACH;

	if (threads > CARRIERS_MAX)
		threads = CARRIERS_MAX;
	cp->spread = threads > 1 && cs->max > 1;
	pthread_mutex_init(&cp->lock, NULL);
	carriers_run(cs, (unsigned int)threads, carry_out_loads, cp);
	pthread_mutex_destroy(&cp->lock);
	cp->c->waited |= cp->waited;
	return cp->rc;
}

int mir_copy_segments(struct call *c, bool h2d, uint64_t device, const struct stream_ref *s)
{
	struct copy cp = {.c = c, .h2d = h2d, .device = device, .stream = *s};
	int rc, err;

	rc = mir_pieces(c, &cp.ps);
	if (rc)
		return rc;
	rc = copy_carried(&cp, unregistered_bytes(&cp));
	err = c->m->cfg.ops->stream_sync(c->m->be, s->s);
	pieces_free(&cp.ps);
	return rc ? rc : err;
}

/*
 * A copy of one piece for which the guest waits is one call of the backend. What is not registered
 * must be too short for several threads.
 */
static bool for_one_call(const struct copy *cp, size_t unregistered)
{
	return !cp->h2d && cp->ps.count == 1 && unregistered < 2 * SPREAD_EACH &&
	       cp->c->m->cfg.ops->copy_d2h_wait;
}

static int copy_in_one_call(struct copy *cp)
{
	const struct piece *p = &cp->ps.p[0];
	struct mirror *m = cp->c->m;
	int rc;

	cp->c->waited = true;
	rc = m->cfg.ops->copy_d2h_wait(m->be, p->host, cp->device, p->len, cp->stream.s);
	if (!rc)
		count_direct(cp, 1, p->len);
	return rc;
}

static int copy_host(struct copy *cp, uint32_t stream, uint32_t flags)
{
	struct call *c = cp->c;
	bool window = c->cmd->flags & QCU_F_WINDOW, wait, one;
	size_t unregistered;
	uint64_t began;
	struct load l;
	int rc;

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
		rc = mir_pieces_to_carry(c, &cp->ps);
	if (rc)
		goto out;
	began = tick(cp);
	unregistered = unregistered_bytes(cp);
	/*
	 * The guest must own the buffer again when we answer, unless the buffer is pinned and the
	 * guest has said that it waits itself. Unregistered memory that goes up has been read when
	 * its copy has been started.
	 */
	wait = window ? !(flags & QCU_COPY_QUEUED) : !cp->h2d;
	wait = wait || flags & QCU_COPY_SYNC;
	one = wait && for_one_call(cp, unregistered);
	if (one)
		rc = copy_in_one_call(cp);
	else if (unregistered)
		rc = copy_carried(cp, unregistered);
	while (!one && !unregistered && !rc && next_load(cp, &l))
		rc = copy_in_place(cp, &l);
	if (wait && !one) {
		int err = mir_stream_wait(c, &cp->stream);

		rc = rc ? rc : err;
	}
	cp->spent = tick(cp) - began;
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
		count_add(c->m->counts, COUNT_H2D, h->buf.len);
	if (cp.timed) {
		h->mirror_ns = short_ns(spin_clock() - c->req->taken);
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
		count_add(c->m->counts, COUNT_D2H, h->buf.len);
	if (cp.timed) {
		h->mirror_ns = short_ns(spin_clock() - c->req->taken);
		h->copy_ns = short_ns(cp.spent);
	}
	return rc;
}

/*
 * When the backend returns it has read the message, because the message is not registered memory.
 */
int mir_do_copy_small(struct call *c)
{
	const struct qcu_copy_small *cs = &c->cmd->copy_small;
	struct mirror *m = c->m;
	struct stream_ref s;
	int rc;

	rc = mir_stream_get(c, cs->stream, &s);
	if (rc)
		return rc;
	if (cs->buf.len) {
		rc = mir_device_range(c, cs->dst, cs->buf.len);
		if (!rc)
			rc = m->cfg.ops->copy_h2d(m->be, cs->dst, c->req->msg, cs->buf.len, s.s);
		if (!rc) {
			count_add(m->counts, COUNT_COPIES, 1);
			count_add(m->counts, COUNT_H2D, cs->buf.len);
			count_add(m->counts, COUNT_H2D_STAGED, cs->buf.len);
		}
	}
	mir_stream_put(c, &s);
	return rc;
}

/* Either end may be host memory in several registrations, so the copy is split. */
static int issue_d2d(struct mirror *m, struct qcu_copy_d2d d, bool dst_window, bool src_window,
		     struct be_stream *s)
{
	while (d.len) {
		uint64_t part = window_span(&m->window, d.dst, d.len);
		unsigned int host = 0;
		int rc;

		part = window_span(&m->window, d.src, part);
		if (dst_window && mir_on_host(m, d.dst))
			host |= BE_HOST_DST;
		if (src_window && mir_on_host(m, d.src))
			host |= BE_HOST_SRC;
		rc = m->cfg.ops->copy_d2d(m->be, d.dst, d.src, part, host, s);
		if (rc)
			return rc;
		count_add(m->counts, COUNT_D2D, part);
		count_add(m->counts, COUNT_COPIES, 1);
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
	bool dst_window, src_window;
	struct stream_ref s;
	int rc;

	if (d->flags & ~QCU_COPY_FLAGS)
		return QCU_ERR_InvalidValue;
	rc = mir_stream_get(c, d->stream, &s);
	if (rc)
		return rc;
	if (d->len) {
		rc = mir_memory_range(c, d->dst, d->len, &dst_window);
		if (!rc)
			rc = mir_memory_range(c, d->src, d->len, &src_window);
		if (!rc)
			rc = issue_d2d(m, *d, dst_window, src_window, s.s);
	}
	if (!rc && d->flags & QCU_COPY_SYNC)
		rc = mir_stream_wait(c, &s);
	mir_stream_put(c, &s);
	return rc;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The memory of pools that can leave (options.movable). CUDA's own pools choose their addresses and
 * cannot give memory back and get it again there. So a pool has plots of its own (be_cuda_plot.c),
 * which are divided into lots. CUDA's pool stays empty; it only keeps the attributes.
 *
 * Stream order: a lot that is freed gets a mark, an event in the stream of the free. Until the
 * stream has reached the mark, only the same stream may have the lot again, because what it does
 * then comes later. After that anybody may. Nothing here waits for a stream, unless there is no
 * memory.
 *
 * A plot without a used lot goes back to the driver when the pool has more than its threshold and
 * is asked how much it has, or needs another plot; when it is trimmed; and when memory is short or
 * shall leave. A lot of a plot that is away may be given out: what uses it brings it back.
 */
#include <stdlib.h>

#include "qcu-device/backend/cuda/be_cuda.h"

#define GRAIN ((uint64_t)512)	   /* CUDA's own addresses are multiples of this */
#define MARKS 65536u		   /* more frees that no stream has reached wait for it */
#define PLOT  ((uint64_t)32 << 20) /* as much as CUDA's pools take at a time */
#define NEAR  64u		   /* a search looks at so many lots of one kind */
#define FAR   4096u		   /* and for frees that have been reached at so many more */
#define WAITS 16u		   /* so many streams are asked at once whether they have */

/* Where the stream of a free is at the free. */
struct cu_mark {
	struct be_event event;
	uint64_t stream;   /* its number */
	unsigned int refs; /* a lot that is divided shares its mark */
};

struct cu_lot {
	uint64_t addr, size;
	struct be_pool *pool;
	bool used;
	bool first;		  /* of its plot */
	struct cu_mark *mark;	  /* of a lot that is free and not idle yet */
	TAILQ_ENTRY(cu_lot) link; /* all lots, those of a plot by address */
	TAILQ_ENTRY(cu_lot) free; /* those with a mark, oldest first, or those of one bin */
};

int cu_lots_open(struct be *be)
{
	LIST_INIT(&be->pools);
	return pthread_mutex_init(&be->lot_lock, NULL) ? QCU_ERR_OperatingSystem : 0;
}

/* All that follows is done under the lock, unless it begins with cu_. */

static void drop_lot_mark(struct be *be, struct cu_mark *m)
{
	if (--m->refs)
		return;
	atomic_fetch_sub(&be->marks, 1);
	/* A reset has destroyed it. */
	if (!cu_event_use(be, &m->event))
		CU(be, cudaEventDestroy, m->event.e);
	free(m);
}

static bool is_mark_reached(struct be *be, const struct cu_mark *m)
{
	return cu_event_use(be, &m->event) ||
	       CU(be, cudaEventQuery, m->event.e) != QCU_ERR_NotReady;
}

static bool is_lot_idle(const struct cu_lot *b)
{
	return !b->used && !b->mark;
}

static struct cu_lot *lot_after(struct cu_lot *b)
{
	struct cu_lot *next = TAILQ_NEXT(b, link);

	return next && !next->first ? next : NULL;
}

/* Idle lots lie in bins: each is for at least a size and less than twice as much. */
static unsigned int bin_of_lot(uint64_t size)
{
	unsigned int bin = 0;

	for (size /= 2 * GRAIN; size && bin < CU_LOT_BINS - 1; size /= 2)
		bin++;
	return bin;
}

static void list_idle_lot(struct be_pool *p, struct cu_lot *b)
{
	TAILQ_INSERT_TAIL(&p->idle[bin_of_lot(b->size)], b, free);
}

static void unlist_idle_lot(struct be_pool *p, struct cu_lot *b)
{
	TAILQ_REMOVE(&p->idle[bin_of_lot(b->size)], b, free);
}

/* Neither is listed. */
static void append_lot(struct be_pool *p, struct cu_lot *b, struct cu_lot *next)
{
	b->size += next->size;
	TAILQ_REMOVE(&p->lots, next, link);
	free(next);
}

static void make_lot_idle(struct be_pool *p, struct cu_lot *b)
{
	struct cu_lot *next = lot_after(b);
	struct cu_lot *before = b->first ? NULL : TAILQ_PREV(b, cu_lots, link);

	if (next && is_lot_idle(next)) {
		unlist_idle_lot(p, next);
		append_lot(p, b, next);
	}
	if (before && is_lot_idle(before)) {
		unlist_idle_lot(p, before);
		append_lot(p, before, b);
		b = before;
	}
	list_idle_lot(p, b);
}

/* Streams that have not reached a mark, so what comes later in them need not be asked. */
struct waited_streams {
	const struct cu_mark *mark[WAITS];
	unsigned int count;
};

static bool is_waited_for(const struct waited_streams *w, const struct cu_mark *m)
{
	unsigned int i;

	for (i = 0; i < w->count; i++)
		if (w->mark[i]->stream == m->stream && w->mark[i]->event.dev == m->event.dev)
			return true;
	return false;
}

/* Lots whose mark has been reached become idle; of very many some later. */
static void settle_frees(struct be *be, struct be_pool *p)
{
	struct waited_streams w = {.count = 0};
	unsigned int passed = 0;
	struct cu_lot *b, *next;

	for (b = TAILQ_FIRST(&p->marked); b && w.count < WAITS && passed < FAR; b = next) {
		next = TAILQ_NEXT(b, free);
		if (is_waited_for(&w, b->mark)) {
			passed++;
			continue;
		}
		if (!is_mark_reached(be, b->mark)) {
			w.mark[w.count++] = b->mark;
			continue;
		}
		TAILQ_REMOVE(&p->marked, b, free);
		drop_lot_mark(be, b->mark);
		b->mark = NULL;
		make_lot_idle(p, b);
	}
}

static bool is_whole_plot(struct cu_lot *b)
{
	return b->first && !lot_after(b);
}

/* Gives plots without a used lot back, the largest first, while the pool has more than this. */
static uint64_t give_plots_back(struct be *be, struct be_pool *p, uint64_t keep)
{
	const unsigned int least = bin_of_lot(CU_UNIT); /* a plot has at least that */
	unsigned int bin = CU_LOT_BINS;
	struct cu_lot *b, *next;
	uint64_t given = 0;

	while (bin-- > least)
		for (b = TAILQ_FIRST(&p->idle[bin]); b && p->reserved > keep; b = next) {
			next = TAILQ_NEXT(b, free);
			if (!is_whole_plot(b))
				continue;
			unlist_idle_lot(p, b);
			TAILQ_REMOVE(&p->lots, b, link);
			p->reserved -= b->size;
			given += b->size;
			/* Its work is done. Even if the driver keeps the memory, nobody uses it. */
			(void)cu_plot_drop(be, b->addr);
			free(b);
		}
	return given;
}

/* A pool that has been destroyed ends with its last lot. */
static void end_if_gone(struct be_pool *p)
{
	if (!p->gone || !TAILQ_EMPTY(&p->lots))
		return;
	LIST_REMOVE(p, link);
	free(p);
}

/* Of all pools of the device, up to `want` bytes, or only what is above the pools' thresholds. */
static uint64_t give_back_of_device(struct be *be, unsigned int dev, uint64_t want, bool all)
{
	struct be_pool *p, *next;
	uint64_t given = 0, keep;

	for (p = LIST_FIRST(&be->pools); p; p = next) {
		next = LIST_NEXT(p, link);
		if (p->dev != dev)
			continue;
		settle_frees(be, p);
		keep = p->reserved > want - given ? p->reserved - (want - given) : 0;
		if (!all && !p->gone && keep < p->threshold)
			keep = p->threshold;
		given += give_plots_back(be, p, keep);
		end_if_gone(p);
		if (given >= want)
			break;
	}
	return given;
}

static bool may_have(const struct be_stream *s, const struct cu_lot *b)
{
	return b->mark->stream == s->number && b->mark->event.dev == s->dev;
}

static bool is_better_lot(const struct cu_lot *b, uint64_t size, const struct cu_lot *best)
{
	return b->size >= size && (!best || b->size < best->size);
}

/*
 * A lot that is large enough, and that this stream may have now: the smallest one of those that the
 * stream has freed last, and of the idle ones of the first bin that has any.
 */
static struct cu_lot *find_lot(struct be_pool *p, uint64_t size, const struct be_stream *s)
{
	unsigned int bin = bin_of_lot(size), looked = 0;
	struct cu_lot *b, *best = NULL;

	for (b = TAILQ_LAST(&p->marked, cu_lots); b && looked++ < NEAR;
	     b = TAILQ_PREV(b, cu_lots, free))
		if (is_better_lot(b, size, best) && may_have(s, b))
			best = b;
	for (; bin < CU_LOT_BINS; bin++) {
		looked = 0;
		for (b = TAILQ_FIRST(&p->idle[bin]); b && looked++ < NEAR; b = TAILQ_NEXT(b, free))
			if (is_better_lot(b, size, best))
				best = b;
		if (best)
			break;
	}
	return best;
}

/* What is left of a free lot after its first bytes. NULL: there is no host memory for its record.
 */
static struct cu_lot *cut_lot(struct be_pool *p, struct cu_lot *b, uint64_t size)
{
	struct cu_lot *rest = malloc(sizeof(*rest));

	if (!rest)
		return NULL;
	*rest = *b;
	rest->addr += size;
	rest->size -= size;
	rest->first = false;
	TAILQ_INSERT_AFTER(&p->lots, b, rest, link);
	if (b->mark) {
		b->mark->refs++;
		TAILQ_INSERT_AFTER(&p->marked, b, rest, free);
		b->size = size;
	} else {
		unlist_idle_lot(p, b);
		b->size = size;
		list_idle_lot(p, b);
		list_idle_lot(p, rest);
	}
	return rest;
}

/* Takes the first bytes of a free lot. False: there is no host memory for the rest's record. */
static bool use_lot(struct be *be, struct be_pool *p, struct cu_lot *b, uint64_t size)
{
	if (b->size > size && !cut_lot(p, b, size))
		return false;
	if (b->mark) {
		TAILQ_REMOVE(&p->marked, b, free);
		drop_lot_mark(be, b->mark);
	} else {
		unlist_idle_lot(p, b);
	}
	b->mark = NULL;
	b->used = true;
	p->used += size;
	if (p->used_high < p->used)
		p->used_high = p->used;
	return true;
}

/* A plot that has just been made becomes one lot. */
static void add_first_lot(struct be_pool *p, struct cu_lot *b)
{
	b->pool = p;
	b->first = true;
	TAILQ_INSERT_TAIL(&p->lots, b, link);
	list_idle_lot(p, b);
	p->reserved += b->size;
	if (p->reserved_high < p->reserved)
		p->reserved_high = p->reserved;
}

static int add_pool_plot(struct be *be, struct be_pool *p, uint64_t size)
{
	struct cu_lot *b = calloc(1, sizeof(*b));
	int ret = b ? cu_use(be, p->dev) : (int)QCU_ERR_MemoryAllocation;

	if (!ret) {
		b->size = size > PLOT ? cu_units(size) : PLOT;
		ret = cu_plot_of_pool(be, p, b->size, &b->addr);
	}
	/* There may be room for a smaller one. */
	if (ret == QCU_ERR_MemoryAllocation && b && size < PLOT) {
		b->size = cu_units(size);
		ret = cu_plot_of_pool(be, p, b->size, &b->addr);
	}
	if (ret)
		free(b);
	else
		add_first_lot(p, b);
	return ret;
}

static int new_lot(struct be *be, struct be_pool *p, uint64_t size, const struct be_stream *s,
		   struct cu_lot **b)
{
	int ret = QCU_ERR_Success;

	*b = find_lot(p, size, s);
	if (*b)
		return ret;
	settle_frees(be, p);
	*b = find_lot(p, size, s);
	if (*b)
		return ret;
	(void)give_plots_back(be, p, p->threshold);
	ret = add_pool_plot(be, p, size);
	if (ret == QCU_ERR_MemoryAllocation && give_back_of_device(be, p->dev, UINT64_MAX, true))
		ret = add_pool_plot(be, p, size);
	*b = ret ? NULL : find_lot(p, size, s);
	return ret;
}

/* There is no memory. What streams have yet to free may be enough. The lock is free meanwhile. */
static int wait_for_frees(struct be *be, unsigned int dev)
{
	const struct be_pool *p;
	bool marked = false;
	int ret;

	LIST_FOREACH(p, &be->pools, link)
		marked = marked || (p->dev == dev && !TAILQ_EMPTY(&p->marked));
	ret = marked || cu_kept_bytes(be, dev) ? cu_use(be, dev) : (int)QCU_ERR_MemoryAllocation;
	if (ret)
		return ret;
	pthread_mutex_unlock(&be->lot_lock);
	ret = CU(be, cudaDeviceSynchronize);
	(void)cu_kept_drop(be, dev);
	pthread_mutex_lock(&be->lot_lock);
	return ret;
}

/* May the pool not have so many bytes more? */
static bool is_pool_full(const struct be_pool *p, uint64_t size)
{
	return p->max_size && (size > p->max_size || p->used > p->max_size - size);
}

static uint64_t lot_bytes(uint64_t size)
{
	return (size + GRAIN - 1) / GRAIN * GRAIN;
}

int cu_lot_alloc(struct be *be, struct be_pool *p, uint64_t size, const struct be_stream *s,
		 struct cu_range *r)
{
	struct cu_lot *b = NULL;
	int ret = QCU_ERR_MemoryAllocation;

	if (!size || size > UINT64_MAX / 2)
		return ret;
	size = lot_bytes(size);
	pthread_mutex_lock(&be->lot_lock);
	if (is_pool_full(p, size))
		goto out;
	ret = new_lot(be, p, size, s, &b);
	if (ret == QCU_ERR_MemoryAllocation) {
		ret = wait_for_frees(be, p->dev);
		if (!ret)
			ret = new_lot(be, p, size, s, &b);
	}
	if (!ret && !use_lot(be, p, b, size))
		ret = QCU_ERR_MemoryAllocation;
	if (ret)
		goto out;
	r->addr = b->addr;
	r->lot = b;
out:
	pthread_mutex_unlock(&be->lot_lock);
	return ret;
}

/* ---- at an address that is wanted ---- */

static bool is_inside(uint64_t addr, uint64_t size, uint64_t from, uint64_t bytes)
{
	return addr >= from && addr - from < bytes && size <= bytes - (addr - from);
}

/* Is it an idle lot of the pool, with these bytes? */
static bool may_use_there(const struct be_pool *p, const struct cu_lot *b, uint64_t addr,
			  uint64_t size)
{
	return b && b->pool == p && is_lot_idle(b) && is_inside(addr, size, b->addr, b->size);
}

/* Behind the used lot before the address, or before the used lot behind it. NULL: nowhere. */
static struct cu_lot *find_lot_between(const struct be_pool *p, const struct cu_lots_near *near,
				       uint64_t addr, uint64_t size)
{
	struct cu_lot *b = near->before ? lot_after(near->before) : NULL;

	if (may_use_there(p, b, addr, size))
		return b;
	b = near->after && !near->after->first ? TAILQ_PREV(near->after, cu_lots, link) : NULL;
	return may_use_there(p, b, addr, size) ? b : NULL;
}

static int add_plot_at(struct be *be, struct be_pool *p, const struct be_wanted *place,
		       struct cu_lot **b)
{
	int ret;

	*b = calloc(1, sizeof(**b));
	if (!*b)
		return QCU_ERR_MemoryAllocation;
	(*b)->addr = place->addr;
	(*b)->size = place->size;
	ret = cu_plot_at(be, p->dev, p, place->size, place->addr);
	if (!ret) {
		add_first_lot(p, *b);
		return ret;
	}
	free(*b);
	*b = NULL;
	return ret;
}

/* Uses what lies there in a lot that is idle. */
static bool use_lot_at(struct be *be, struct be_pool *p, struct cu_lot *b, uint64_t size,
		       struct cu_range *r)
{
	struct cu_lot *at = b->addr < r->addr ? cut_lot(p, b, r->addr - b->addr) : b;

	if (!at || !use_lot(be, p, at, size))
		return false;
	r->lot = at;
	return true;
}

/* The mirror has charged `size` bytes. A plot that is new is charged while it is made. */
int cu_lot_at(struct be *be, struct be_pool *p, uint64_t size, const struct be_wanted *place,
	      const struct cu_lots_near *near, struct cu_range *r)
{
	struct cu_lot *b = NULL;
	struct be_wanted there;
	int ret = QCU_ERR_MemoryAllocation;
	bool new;

	if (!place->size || place->size % CU_UNIT || !size || (r->addr - place->addr) % GRAIN ||
	    !is_inside(r->addr, size, place->addr, place->size))
		return QCU_ERR_InvalidValue;
	new = !cu_plot_place(be, place->addr, &there);
	if (!new && (there.addr != place->addr || there.size != place->size))
		return ret;
	if (new && !cu_charge(be, p->dev, place->size - size))
		return ret;
	pthread_mutex_lock(&be->lot_lock);
	if (is_pool_full(p, lot_bytes(size)))
		goto out;
	if (!new)
		b = find_lot_between(p, near, r->addr, lot_bytes(size));
	else
		ret = add_plot_at(be, p, place, &b);
	if (b)
		ret = use_lot_at(be, p, b, lot_bytes(size), r) ? QCU_ERR_Success
							       : QCU_ERR_MemoryAllocation;
out:
	pthread_mutex_unlock(&be->lot_lock);
	if (new)
		cu_uncharge(be, p->dev, place->size - size);
	return ret;
}

/* A guest cannot have any number of events by frees that its streams never reach. */
static bool may_mark(struct be *be)
{
	struct be_pool *p;

	if (atomic_load(&be->marks) < MARKS)
		return true;
	pthread_mutex_lock(&be->lot_lock);
	LIST_FOREACH(p, &be->pools, link)
		settle_frees(be, p);
	pthread_mutex_unlock(&be->lot_lock);
	return atomic_load(&be->marks) < MARKS;
}

/* NULL: it could not be made. */
static struct cu_mark *mark_free(struct be *be, const struct be_stream *s)
{
	struct cu_mark *m = cu_stream_use(be, s) ? NULL : calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->event.dev = s->dev;
	m->event.life = atomic_load(&be->life[s->dev]);
	m->stream = s->number;
	m->refs = 1;
	if (CU(be, cudaEventCreateWithFlags, &m->event.e, cudaEventDisableTiming)) {
		free(m);
		return NULL;
	}
	if (!CU(be, cudaEventRecord, m->event.e, s->s)) {
		atomic_fetch_add(&be->marks, 1);
		return m;
	}
	CU(be, cudaEventDestroy, m->event.e);
	free(m);
	return NULL;
}

static void end_lot_use(struct be *be, struct cu_lot *b, struct cu_mark *m)
{
	struct be_pool *p = b->pool;

	pthread_mutex_lock(&be->lot_lock);
	p->used -= b->size;
	b->used = false;
	b->mark = m;
	if (m)
		TAILQ_INSERT_TAIL(&p->marked, b, free);
	else
		make_lot_idle(p, b);
	if (p->gone)
		(void)give_plots_back(be, p, 0);
	end_if_gone(p);
	pthread_mutex_unlock(&be->lot_lock);
}

int cu_lot_free(struct be *be, const struct cu_range *r, const struct be_stream *s)
{
	struct cu_mark *m = may_mark(be) ? mark_free(be, s) : NULL;
	int ret = QCU_ERR_Success;

	if (!m)
		ret = cu_stream_use(be, s);
	if (!m && !ret)
		ret = CU(be, cudaStreamSynchronize, s->s);
	end_lot_use(be, r->lot, m);
	return ret;
}

int cu_lot_end(struct be *be, const struct cu_range *r)
{
	int ret = cu_plot_wait(be, r->addr);

	end_lot_use(be, r->lot, NULL);
	return ret;
}

/* ---- pools ---- */

static void init_lot_lists(struct be_pool *p)
{
	unsigned int i;

	TAILQ_INIT(&p->lots);
	TAILQ_INIT(&p->marked);
	for (i = 0; i < CU_LOT_BINS; i++)
		TAILQ_INIT(&p->idle[i]);
}

/* As CUDA makes it. */
static void set_pool_defaults(struct be_pool *p)
{
	unsigned int i;

	p->threshold = p->used_high = p->reserved_high = 0;
	for (i = 0; i < CU_DEVICES; i++)
		p->access[i] = i == p->dev ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0;
}

void cu_pool_begin(struct be *be, struct be_pool *p, uint64_t max_size)
{
	pthread_mutex_lock(&be->lot_lock);
	if (!p->listed) {
		init_lot_lists(p);
		p->max_size = max_size;
		set_pool_defaults(p);
		p->listed = true;
		LIST_INSERT_HEAD(&be->pools, p, link);
	}
	pthread_mutex_unlock(&be->lot_lock);
}

void cu_pool_end(struct be *be, struct be_pool *p)
{
	pthread_mutex_lock(&be->lot_lock);
	p->gone = true;
	settle_frees(be, p);
	(void)give_plots_back(be, p, 0);
	end_if_gone(p);
	pthread_mutex_unlock(&be->lot_lock);
}

void cu_pool_give_back(struct be *be, struct be_pool *p, uint64_t keep)
{
	pthread_mutex_lock(&be->lot_lock);
	settle_frees(be, p);
	(void)give_plots_back(be, p, keep);
	pthread_mutex_unlock(&be->lot_lock);
}

uint64_t cu_pool_settled(struct be *be, struct be_pool *p, const uint64_t *count)
{
	uint64_t value;

	pthread_mutex_lock(&be->lot_lock);
	settle_frees(be, p);
	(void)give_plots_back(be, p, p->threshold);
	value = *count;
	pthread_mutex_unlock(&be->lot_lock);
	return value;
}

uint64_t cu_pools_give_back(struct be *be, unsigned int dev, uint64_t want)
{
	uint64_t given;

	pthread_mutex_lock(&be->lot_lock);
	given = give_back_of_device(be, dev, want, true);
	pthread_mutex_unlock(&be->lot_lock);
	return given;
}

void cu_pools_settle(struct be *be, unsigned int dev)
{
	pthread_mutex_lock(&be->lot_lock);
	(void)give_back_of_device(be, dev, UINT64_MAX, false);
	pthread_mutex_unlock(&be->lot_lock);
}

static void forget_lots(struct be *be, struct be_pool *p, bool in_cuda)
{
	struct cu_lot *b;

	while ((b = TAILQ_FIRST(&p->lots))) {
		TAILQ_REMOVE(&p->lots, b, link);
		if (b->mark)
			drop_lot_mark(be, b->mark);
		if (b->first && in_cuda && !cu_use(be, p->dev))
			(void)cu_plot_free(be, b->addr);
		free(b);
	}
	init_lot_lists(p);
	p->used = p->reserved = 0;
}

static void forget_pools(struct be *be, const unsigned int *dev)
{
	struct be_pool *p, *next;

	pthread_mutex_lock(&be->lot_lock);
	for (p = LIST_FIRST(&be->pools); p; p = next) {
		next = LIST_NEXT(p, link);
		if (dev && p->dev != *dev)
			continue;
		forget_lots(be, p, !dev);
		set_pool_defaults(p);
		end_if_gone(p);
	}
	pthread_mutex_unlock(&be->lot_lock);
}

void cu_pools_forget(struct be *be, unsigned int dev)
{
	forget_pools(be, &dev);
}

void cu_lots_close(struct be *be)
{
	forget_pools(be, NULL);
	pthread_mutex_destroy(&be->lot_lock);
}

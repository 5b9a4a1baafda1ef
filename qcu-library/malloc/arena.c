// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How chunk memory is divided among allocations. Each large allocation has its own mapping. The
 * others share regions: mappings of one chunk or a few (malloc_region.c). Regions are kept in lists
 * by their longest free run, so that a region with room is found at once.
 *
 * A mapping costs addresses. A chunk of it costs memory from its first touch until the whole
 * mapping is given back, because the driver takes back whole mappings only. So an empty mapping is
 * given back unless it is likely to be needed again soon: a new one must be filled with zeroes (by
 * the kernel) and registered with the GPU. Together this often costs far more than the program's
 * own work with the memory. SPARE_BYTES limits what is kept.
 *
 * The lock is held for table work only. Mappings are made and given back without the lock: both
 * are calls into the driver, and giving back 16 GiB takes a long time.
 */
#include "qcu-library/malloc/arena.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-library/malloc/malloc_region.h"
#include "qcu-library/malloc/malloc_tree.h"
#include "qcu-library/malloc/addresses.h"

/* The smallest size of a region, for any chunk size. Smaller regions would mean more mappings to
 * make and to search. */
#define REGION_MIN ((size_t)4 << 20)

/*
 * A block that has grown once often grows on, up to many times its size. So it gets this many times
 * the addresses that it needs, or at least twice as many, and then grows in place: realloc moves
 * nothing. Addresses that are never touched cost next to nothing. All growing blocks together get
 * at most a part of the window.
 */
#define GROWTH	    128
#define SLACK_BYTES ((size_t)(QCU_WINDOW_SIZE / 8))

/* Empty mappings that are kept: this many used bytes of large ones, and this many regions. */
#define SPARE_BYTES   ((size_t)128 << 20)
#define SPARE_REGIONS 2

/* The most regions that a search tries in one list, where not every region has enough room. */
#define TRIES 8

#define BUCKETS 32

struct mapping {
	struct qcul_node node;
	struct qcul_region *region; /* NULL: one allocation has the whole mapping */
	struct mapping *prev, *next;
	unsigned int bucket; /* of a region: the list that it is in */
	unsigned int epoch;
	bool spare;	   /* freed, and kept */
	uint64_t at, used; /* the allocation: its address, and its bytes */
	uint64_t high;	   /* the bytes from this offset on have never been handed out */
	size_t slack;	   /* its addresses for growth, as far as they count in slack_bytes */
};

/* A doubly linked list; the newest mapping comes first. */
struct list {
	struct mapping *first, *last;
};

static struct {
	pthread_mutex_t mutex;
	_Atomic(pthread_t) forking; /* the thread that holds the mutex across fork(), or 0 */
	atomic_size_t region_bytes;
	/* The mutex protects everything below. */
	struct qcul_tree tree;
	struct list buckets[BUCKETS]; /* regions of this epoch by log2 of `largest` */
	struct list spares;	      /* freed large mappings */
	size_t spare_bytes, slack_bytes;
	unsigned int empty_regions;
	unsigned int epoch;
} process = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool in_fork(void)
{
	return atomic_load_explicit(&process.forking, memory_order_relaxed) == pthread_self();
}

bool qcul_arena_in_fork(void)
{
	return in_fork();
}

static void lock(void)
{
	if (!in_fork())
		pthread_mutex_lock(&process.mutex);
}

static void unlock(void)
{
	if (!in_fork())
		pthread_mutex_unlock(&process.mutex);
}

static void link_first(struct list *l, struct mapping *m)
{
	m->prev = NULL;
	m->next = l->first;
	if (m->next)
		m->next->prev = m;
	else
		l->last = m;
	l->first = m;
}

static void unlink_from(struct list *l, struct mapping *m)
{
	if (m->prev)
		m->prev->next = m->next;
	else
		l->first = m->next;
	if (m->next)
		m->next->prev = m->prev;
	else
		l->last = m->prev;
}

static struct mapping *find_mapping_at(const void *p)
{
	/* The node is the first member. */
	return (struct mapping *)qcul_tree_find(&process.tree, (uint64_t)(uintptr_t)p);
}

static uint64_t align_upward(uint64_t n, uint64_t align)
{
	return (n + align - 1) & ~(align - 1);
}

/* ---- mappings ---- */

static struct mapping *mapping_new(size_t len, bool shared)
{
	struct mapping *m;
	void *addr;

	if (in_fork())
		return NULL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	if (shared) {
		m->region = qcul_region_new((uint32_t)(len / QCUL_PAGE));
		if (!m->region)
			goto no_region;
	}
	addr = qcul_window_map(len);
	if (!addr)
		goto no_addresses;
	m->node.start = (uint64_t)(uintptr_t)addr;
	m->node.len = len;
	return m;

no_addresses:
	qcul_region_delete(m->region);
no_region:
	free(m);
	return NULL;
}

/* Call it without the lock. The mapping is no longer in any table; m may be NULL. */
static void mapping_delete(struct mapping *m)
{
	while (m) {
		struct mapping *next = m->next;

		qcul_window_unmap((void *)(uintptr_t)m->node.start, m->node.len);
		qcul_region_delete(m->region);
		free(m);
		m = next;
	}
}

/* Takes m out of the tree and adds it to the front of the list for mapping_delete. */
static void discard_mapping(struct mapping *m, struct mapping **gone)
{
	qcul_tree_remove(&process.tree, &m->node);
	process.slack_bytes -= m->slack;
	m->next = *gone;
	*gone = m;
}

/* ---- regions ---- */

static unsigned int log2_of(uint32_t n)
{
	return n ? 31 - (unsigned int)__builtin_clz(n) : 0;
}

static void put_in_bucket(struct mapping *m)
{
	m->bucket = log2_of(m->region->largest);
	link_first(&process.buckets[m->bucket], m);
}

/* Call it after every change to a region of this epoch. */
static void move_to_its_bucket(struct mapping *m)
{
	if (log2_of(m->region->largest) == m->bucket)
		return;
	unlink_from(&process.buckets[m->bucket], m);
	put_in_bucket(m);
}

static void *take_from(struct mapping *m, size_t size, size_t align, size_t *dirty)
{
	uint32_t dirty_pages, n = (uint32_t)(size / QCUL_PAGE);
	bool was_empty = !m->region->used;
	uint32_t page;

	page = qcul_region_take(m->region, m->node.start, n, align, &dirty_pages);
	move_to_its_bucket(m);
	if (page == QCUL_REGION_FULL)
		return NULL;
	if (was_empty)
		process.empty_regions--;
	*dirty = dirty_pages * QCUL_PAGE;
	return (void *)(uintptr_t)(m->node.start + page * QCUL_PAGE);
}

/* Takes pages from the existing regions. */
static void *take_from_regions(size_t size, size_t align, size_t *dirty)
{
	uint32_t n = (uint32_t)(size / QCUL_PAGE);
	unsigned int i;

	for (i = log2_of(n); i < BUCKETS; i++) {
		struct mapping *m, *next;
		unsigned int tries = TRIES;

		for (m = process.buckets[i].first; m && tries > 0; m = next, tries--) {
			void *p;

			next = m->next; /* m may move to another list */
			p = take_from(m, size, align, dirty);
			if (p)
				return p;
		}
	}
	return NULL;
}

static void *shared_alloc(size_t size, size_t align, size_t *dirty)
{
	struct mapping *m;
	void *p;

	lock();
	p = take_from_regions(size, align, dirty);
	unlock();
	if (p)
		return p;
	m = mapping_new(process.region_bytes, true);
	if (!m)
		return NULL;
	lock();
	m->epoch = process.epoch;
	qcul_tree_add(&process.tree, &m->node);
	put_in_bucket(m);
	process.empty_regions++;
	p = take_from(m, size, align, dirty);
	unlock();
	return p;
}

/* Frees the block that begins at p. False: no block begins there. */
static bool shared_free(struct mapping *m, const void *p, struct mapping **gone)
{
	uint64_t offset = (uint64_t)(uintptr_t)p - m->node.start;
	uint32_t page = (uint32_t)(offset / QCUL_PAGE);
	bool mine = m->epoch == process.epoch;

	if (offset % QCUL_PAGE || !qcul_region_block(m->region, page))
		return false;
	qcul_region_give(m->region, page);
	if (mine)
		move_to_its_bucket(m);
	if (m->region->used)
		return true;
	if (mine && (process.empty_regions < SPARE_REGIONS || in_fork())) {
		process.empty_regions++;
	} else if (!in_fork()) {
		if (mine)
			unlink_from(&process.buckets[m->bucket], m);
		discard_mapping(m, gone);
	}
	return true;
}

/* ---- large allocations ---- */

static void *place_block_in_mapping(struct mapping *m, size_t size, size_t align, size_t *dirty)
{
	uint64_t offset;

	m->at = align_upward(m->node.start, align);
	m->used = size;
	offset = m->at - m->node.start;
	*dirty = m->high > offset ? m->high - offset : 0;
	if (*dirty > size)
		*dirty = size;
	if (offset + size > m->high)
		m->high = offset + size;
	return (void *)(uintptr_t)m->at;
}

/* A block that grows needs a mapping in which it can go on growing. */
static size_t room_with_growth(size_t size, bool grows)
{
	return grows && size <= SLACK_BYTES / GROWTH ? size * (GROWTH / 4) : size;
}

static bool spare_fits(const struct mapping *m, size_t size, size_t align, bool grows)
{
	uint64_t lost = align_upward(m->node.start, align) - m->node.start;

	return lost <= m->node.len && m->node.len - lost >= room_with_growth(size, grows) &&
	       (m->high <= size || m->high - size <= size / 4 + REGION_MIN);
}

static struct mapping *spare_take(size_t size, size_t align, bool grows)
{
	struct mapping *m;

	for (m = process.spares.first; m && !spare_fits(m, size, align, grows);)
		m = m->next;
	if (!m)
		return NULL;
	unlink_from(&process.spares, m);
	process.spare_bytes -= m->high;
	m->spare = false;
	return m;
}

/* Drops the oldest spare mappings until at most `most` bytes of them are left. */
static void spare_limit(size_t most, struct mapping **gone)
{
	while (process.spare_bytes > most) {
		struct mapping *m = process.spares.last;

		unlink_from(&process.spares, m);
		process.spare_bytes -= m->high;
		discard_mapping(m, gone);
	}
}

static bool slack_take(size_t slack)
{
	bool ok;

	lock();
	ok = slack <= SLACK_BYTES - process.slack_bytes;
	if (ok)
		process.slack_bytes += slack;
	unlock();
	return ok;
}

/* A mapping with addresses for growth; NULL: there are not enough. */
static struct mapping *growing_new(size_t len)
{
	size_t times;

	for (times = GROWTH; times; times = times > 2 ? 2 : 0) {
		struct mapping *m;
		size_t slack;

		if (len > SLACK_BYTES / times)
			continue;
		slack = (times - 1) * len;
		if (!slack_take(slack))
			continue;
		m = mapping_new(len + slack, false);
		if (m) {
			m->slack = slack;
			return m;
		}
		lock();
		process.slack_bytes -= slack;
		unlock();
	}
	return NULL;
}

static void *large_alloc(size_t size, size_t align, bool grows, size_t *dirty)
{
	/* A mapping begins at least at a page boundary. */
	size_t slack = align > QCUL_PAGE ? align : 0, len;
	struct mapping *m;
	void *p;

	if (__builtin_add_overflow(size, slack, &len))
		return NULL;
	lock();
	m = spare_take(size, align, grows);
	if (m) {
		p = place_block_in_mapping(m, size, align, dirty);
		unlock();
		return p;
	}
	unlock();

	m = grows ? growing_new(len) : NULL;
	if (!m)
		m = mapping_new(len, false);
	if (!m)
		return NULL;
	lock();
	m->epoch = process.epoch;
	qcul_tree_add(&process.tree, &m->node);
	p = place_block_in_mapping(m, size, align, dirty);
	unlock();
	return p;
}

static bool large_free(struct mapping *m, const void *p, struct mapping **gone)
{
	if (m->spare || m->at != (uint64_t)(uintptr_t)p)
		return false;
	if (!in_fork() && (m->epoch != process.epoch || m->high > SPARE_BYTES)) {
		discard_mapping(m, gone);
		return true;
	}
	m->spare = true;
	process.spare_bytes += m->high;
	link_first(&process.spares, m);
	if (!in_fork())
		spare_limit(SPARE_BYTES, gone);
	return true;
}

/*
 * A large allocation grows in place up to the end of its mapping. It shrinks in place, unless most
 * of its memory would stay unused.
 */
static bool large_resize(struct mapping *m, size_t size)
{
	uint64_t offset = m->at - m->node.start;

	if (size > m->node.len - offset)
		return false;
	if (size < m->high / 2 && m->high - size >= REGION_MIN && !in_fork())
		return false;
	m->used = size;
	if (offset + size > m->high)
		m->high = offset + size;
	return true;
}

/* ---- what malloc calls ---- */

void qcul_arena_start(size_t chunk_bytes)
{
	atomic_store(&process.region_bytes, chunk_bytes > REGION_MIN ? chunk_bytes : REGION_MIN);
}

void *qcul_arena_alloc(size_t size, size_t align, bool zero, bool grows)
{
	size_t most = atomic_load_explicit(&process.region_bytes, memory_order_relaxed) / 2;
	size_t dirty = 0;
	void *p;

	if (size > PTRDIFF_MAX || align > PTRDIFF_MAX)
		return NULL;
	size = align_upward(size, QCUL_PAGE);
	if (align < QCUL_PAGE)
		align = QCUL_PAGE;
	if (size <= most && align <= most)
		p = shared_alloc(size, align, &dirty);
	else
		p = large_alloc(size, align, grows, &dirty);
	if (p && zero && dirty)
		memset(p, 0, dirty);
	return p;
}

size_t qcul_arena_size(const void *p)
{
	size_t size = 0;
	struct mapping *m;

	lock();
	m = find_mapping_at(p);
	if (m && m->region) {
		uint64_t offset = (uint64_t)(uintptr_t)p - m->node.start;

		if (offset % QCUL_PAGE == 0)
			size = QCUL_PAGE *
			       qcul_region_block(m->region, (uint32_t)(offset / QCUL_PAGE));
	} else if (m && !m->spare && m->at == (uint64_t)(uintptr_t)p) {
		size = m->used;
	}
	unlock();
	return size;
}

bool qcul_arena_free(void *p)
{
	struct mapping *m, *gone = NULL;
	bool ok = false;

	lock();
	m = find_mapping_at(p);
	if (m)
		ok = m->region ? shared_free(m, p, &gone) : large_free(m, p, &gone);
	unlock();
	mapping_delete(gone);
	return ok;
}

bool qcul_arena_resize(void *p, size_t size)
{
	struct mapping *m;
	bool ok = false;

	if (size > PTRDIFF_MAX)
		return false;
	size = align_upward(size, QCUL_PAGE);
	lock();
	m = find_mapping_at(p);
	if (m && m->region) {
		uint64_t offset = (uint64_t)(uintptr_t)p - m->node.start;

		if (size <= m->node.len)
			ok = qcul_region_resize(m->region, (uint32_t)(offset / QCUL_PAGE),
						(uint32_t)(size / QCUL_PAGE));
		if (m->epoch == process.epoch)
			move_to_its_bucket(m);
	} else if (m) {
		ok = large_resize(m, size);
	}
	unlock();
	return ok;
}

bool qcul_arena_holds(const void *addr, size_t len)
{
	struct mapping *m;
	bool ok;

	lock();
	m = find_mapping_at(addr);
	ok = m && m->epoch == process.epoch &&
	     len <= m->node.len - ((uint64_t)(uintptr_t)addr - m->node.start);
	unlock();
	return ok;
}

void qcul_arena_before_fork(void)
{
	pthread_mutex_lock(&process.mutex);
	atomic_store(&process.forking, pthread_self());
}

/* Takes the existing regions out of use for new allocations, and discards the empty ones. */
static void drop_regions(struct mapping **gone)
{
	struct mapping *m, *next;
	unsigned int i;

	for (i = 0; i < BUCKETS; i++) {
		for (m = process.buckets[i].first; m; m = next) {
			next = m->next;
			if (!m->region->used)
				discard_mapping(m, gone);
		}
	}
	memset(process.buckets, 0, sizeof(process.buckets));
	process.empty_regions = 0;
}

/* In the child, the copies of the parent's memory are not chunk memory: the child keeps the
 * allocations in them, but makes no new ones there. */
void qcul_arena_after_fork(bool child)
{
	struct mapping *gone = NULL;

	if (child) {
		drop_regions(&gone);
		process.epoch++;
	}
	spare_limit(child ? 0 : SPARE_BYTES, &gone);
	atomic_store(&process.forking, (pthread_t)0);
	pthread_mutex_unlock(&process.mutex);
	mapping_delete(gone);
}

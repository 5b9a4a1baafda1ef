/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Device memory that leaves and comes back. With options.movable each allocation has pages of its
 * own (mem.c). It leaves in pieces: a piece is copied to the store, its pages go back to the
 * operating system, and its addresses cannot be accessed until it is back. The table of ranges does
 * not change, so an address stays valid and is given to nobody else.
 *
 * Memory that another process may have open (SOFT_KNOWN), variables and memory that is mapped
 * elsewhere stay. What a pool has freed is no memory: the caller has waited for all streams.
 */
#include <string.h>
#include <sys/mman.h>

#include "qcu-device/soft/gpu/soft.h"

#define PIECE ((uint64_t)2 << 20) /* small, so that tests have many */
#define GRAIN 512u		  /* in which memory is counted, see mem.c */
#define PAGE  4096u

/* A piece that is away. */
struct away {
	uint64_t addr, bytes;
	void *copy;
	struct be_store store;
};

_Static_assert(PIECE <= BE_PIECE, "the store gives no more at a time");

bool soft_resident(const struct soft_mem *m, int64_t bytes)
{
	return !m->be->resident || !bytes || m->be->resident(m->be->charge_ctx, m->index, bytes);
}

void soft_move_init(struct soft_mem *m)
{
	m->away = (struct sorted){.size = sizeof(struct away)};
	m->away_bytes = 0;
}

static struct away *away_at(const struct soft_mem *m, size_t i)
{
	return (struct away *)m->away.v + i;
}

static void give_copy(struct soft_mem *m, const struct away *a)
{
	a->store.give(a->store.ctx, a->copy, a->bytes);
	m->away_bytes -= a->bytes;
}

void soft_move_fini(struct soft_mem *m)
{
	soft_resident(m, -(int64_t)(m->used - m->away_bytes));
	while (m->away.count) {
		give_copy(m, away_at(m, m->away.count - 1));
		sorted_remove(&m->away, m->away.count - 1);
	}
	sorted_free(&m->away);
}

static bool set_access(uint64_t addr, uint64_t bytes, int access)
{
	return !mprotect((void *)(uintptr_t)addr, soft_round_up(bytes, PAGE), access);
}

bool soft_move_forget(struct soft_mem *m, const struct soft_range *r, uint64_t *bytes)
{
	size_t i = sorted_upto(&m->away, r->lo - 1);
	uint64_t before = m->away_bytes;
	bool usable = true;

	while (i < m->away.count && away_at(m, i)->addr < r->hi) {
		const struct away a = *away_at(m, i);

		usable = set_access(a.addr, a.bytes, PROT_READ | PROT_WRITE) && usable;
		give_copy(m, &a);
		sorted_remove(&m->away, i);
	}
	*bytes = before - m->away_bytes;
	return usable;
}

static bool is_away(const struct soft_mem *m, uint64_t addr, size_t *at)
{
	*at = sorted_upto(&m->away, addr);
	return *at && away_at(m, *at - 1)->addr == addr;
}

/* Pages that cannot be given back are cleared. Bytes of another session must not show up. */
static void drop_pages(const struct soft_mem *m, uint64_t addr, uint64_t bytes)
{
	void *p = (void *)(uintptr_t)addr;

	if (madvise(p, soft_round_up(bytes, PAGE), m->fd < 0 ? MADV_DONTNEED : MADV_REMOVE))
		memset(p, 0, bytes);
}

/* False: there is no room for the piece in the store, or it cannot be taken away. It stays. */
static bool leave_piece(struct soft_mem *m, uint64_t addr, uint64_t bytes, size_t at,
			const struct be_store *store)
{
	void *p = (void *)(uintptr_t)addr, *copy, *to = NULL;
	struct away *new = NULL;
	bool soon = false;

	/* It may wait for streams. The caller keeps everybody else out. */
	pthread_mutex_unlock(&m->lock);
	copy = store->take(store->ctx, bytes);
	if (copy)
		to = be_store_at(store, copy, false, &soon);
	pthread_mutex_lock(&m->lock);
	if (to)
		new = sorted_insert(&m->away, at);
	if (!new)
		goto err_give;
	memcpy(to, p, bytes);
	if (soon && !store->keep(store->ctx, copy))
		goto err_remove;
	drop_pages(m, addr, bytes);
	if (!set_access(addr, bytes, PROT_NONE))
		goto err_copy_back;
	*new = (struct away){.addr = addr, .bytes = bytes, .copy = copy, .store = *store};
	m->away_bytes += bytes;
	soft_resident(m, -(int64_t)bytes);
	return true;

err_copy_back:
	memcpy(p, to, bytes);
err_remove:
	sorted_remove(&m->away, at);
err_give:
	if (copy)
		store->give(store->ctx, copy, bytes);
	return false;
}

/*
 * Goes through all pieces that could leave, until `want` bytes have left. Without a store: only
 * counts.
 */
static uint64_t leave_pieces(struct soft_mem *m, uint64_t want, const struct be_store *store)
{
	uint64_t done = 0, addr, end, bytes;
	struct soft_range r;
	size_t i, at;

	for (i = 0; soft_ranges_at(&m->table, i, &r); i++) {
		end = r.lo + soft_round_up(r.hi - r.lo, GRAIN);
		if (r.tag != SOFT_MEMORY && r.tag != SOFT_POOL)
			continue;
		for (addr = r.lo; addr < end; addr += bytes) {
			bytes = end - addr < PIECE ? end - addr : PIECE;
			if (done >= want)
				return done;
			if (is_away(m, addr, &at))
				continue;
			if (store && !leave_piece(m, addr, bytes, at, store))
				return done;
			done += bytes;
		}
	}
	return done;
}

int soft_mem_leave(struct be *be, unsigned int dev, uint64_t want, const struct be_store *store,
		   uint64_t *left)
{
	struct soft_mem *m = &be->dev[dev].mem;

	*left = 0;
	if (!be->movable)
		return QCU_ERR_NotSupported;
	pthread_mutex_lock(&m->lock);
	*left = leave_pieces(m, want, store);
	pthread_mutex_unlock(&m->lock);
	return QCU_ERR_Success;
}

static int return_piece(struct soft_mem *m, const struct away *a)
{
	const void *from;
	bool soon;

	if (!soft_resident(m, (int64_t)a->bytes))
		return QCU_ERR_MemoryAllocation;
	from = be_store_at(&a->store, a->copy, true, &soon);
	if (!from || !set_access(a->addr, a->bytes, PROT_READ | PROT_WRITE)) {
		soft_resident(m, -(int64_t)a->bytes);
		return from ? QCU_ERR_MemoryAllocation : QCU_ERR_OperatingSystem;
	}
	memcpy((void *)(uintptr_t)a->addr, from, a->bytes);
	give_copy(m, a);
	return QCU_ERR_Success;
}

int soft_mem_return(struct be *be, unsigned int dev, uint64_t *back)
{
	struct soft_mem *m = &be->dev[dev].mem;
	int ret = QCU_ERR_Success;

	*back = 0;
	pthread_mutex_lock(&m->lock);
	/* From the end, so that nothing in the table moves. */
	while (m->away.count) {
		const struct away a = *away_at(m, m->away.count - 1);

		ret = return_piece(m, &a);
		if (ret)
			break;
		sorted_remove(&m->away, m->away.count - 1);
		*back += a.bytes;
	}
	pthread_mutex_unlock(&m->lock);
	return ret;
}

uint64_t soft_mem_movable(struct be *be, unsigned int dev)
{
	struct soft_mem *m = &be->dev[dev].mem;
	uint64_t bytes = 0;

	pthread_mutex_lock(&m->lock);
	if (be->movable)
		bytes = leave_pieces(m, UINT64_MAX, NULL);
	pthread_mutex_unlock(&m->lock);
	return bytes;
}

uint64_t soft_mem_away(struct be *be, unsigned int dev)
{
	struct soft_mem *m = &be->dev[dev].mem;
	uint64_t bytes;

	pthread_mutex_lock(&m->lock);
	bytes = m->away_bytes;
	pthread_mutex_unlock(&m->lock);
	return bytes;
}

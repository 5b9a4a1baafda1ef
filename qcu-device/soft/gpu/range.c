/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An ordered table of address ranges. Kernels look addresses up on many threads while the program
 * allocates memory on others, so readers take no lock. A reader reads a sequence number before and
 * after the lookup, and tries again if a writer was active in between.
 *
 * The table lies in reserved address space of its maximum size and is never moved. So a slow reader
 * may read old entries, but never freed memory.
 */
#include <sched.h>
#include <sys/mman.h>

#include "qcu-device/soft/gpu/soft.h"

#define RANGES_MAX (1u << 20)

_Atomic uint64_t soft_mem_gone;

bool soft_ranges_init(struct soft_ranges *t)
{
	void *p = mmap(NULL, RANGES_MAX * sizeof(struct soft_range_entry), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return false;
	t->entries = p;
	t->max = RANGES_MAX;
	atomic_store(&t->seq, 0);
	atomic_store(&t->count, 0);
	return true;
}

void soft_ranges_fini(struct soft_ranges *t)
{
	if (t->entries)
		munmap(t->entries, t->max * sizeof(struct soft_range_entry));
	t->entries = NULL;
	atomic_fetch_add_explicit(&soft_mem_gone, 1, memory_order_release);
}

/* Returns how many of the first n ranges begin at or below addr. */
static size_t ranges_search(struct soft_ranges *t, size_t n, uint64_t addr)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (atomic_load_explicit(&t->entries[mid].lo, memory_order_acquire) <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool soft_ranges_find(struct soft_ranges *t, uint64_t addr, struct soft_range *out)
{
	struct soft_range r;
	uint32_t seq;
	size_t i;

	for (;;) {
		/* Pairs with the release stores of ranges_end and set_range_entry. */
		seq = atomic_load_explicit(&t->seq, memory_order_acquire);
		if (seq & 1) {
			sched_yield();
			continue;
		}
		i = ranges_search(t, atomic_load_explicit(&t->count, memory_order_acquire), addr);
		r = (struct soft_range){0};
		if (i) {
			struct soft_range_entry *s = &t->entries[i - 1];

			r.lo = atomic_load_explicit(&s->lo, memory_order_acquire);
			r.hi = atomic_load_explicit(&s->hi, memory_order_acquire);
			r.tag = atomic_load_explicit(&s->tag, memory_order_acquire);
		}
		/* The acquire loads above keep this load after them. */
		if (atomic_load_explicit(&t->seq, memory_order_relaxed) == seq)
			break;
	}
	if (addr < r.lo || addr >= r.hi)
		return false;
	*out = r;
	return true;
}

size_t soft_ranges_upper(struct soft_ranges *t, uint64_t addr)
{
	return ranges_search(t, atomic_load(&t->count), addr);
}

bool soft_ranges_at(struct soft_ranges *t, size_t i, struct soft_range *out)
{
	struct soft_range_entry *s;

	if (i >= atomic_load(&t->count))
		return false;
	s = &t->entries[i];
	out->lo = atomic_load_explicit(&s->lo, memory_order_relaxed);
	out->hi = atomic_load_explicit(&s->hi, memory_order_relaxed);
	out->tag = atomic_load_explicit(&s->tag, memory_order_relaxed);
	return true;
}

static void ranges_begin(struct soft_ranges *t)
{
	atomic_fetch_add_explicit(&t->seq, 1, memory_order_relaxed);
}

static void ranges_end(struct soft_ranges *t)
{
	atomic_fetch_add_explicit(&t->seq, 1, memory_order_release);
	atomic_fetch_add_explicit(&soft_mem_gone, 1, memory_order_release);
}

/*
 * Release pairs with the acquire loads of soft_ranges_find: a reader that sees the new entry also
 * sees the odd sequence number from ranges_begin, never the old, even one.
 */
static void set_range_entry(struct soft_range_entry *s, const struct soft_range *r)
{
	atomic_store_explicit(&s->lo, r->lo, memory_order_release);
	atomic_store_explicit(&s->hi, r->hi, memory_order_release);
	atomic_store_explicit(&s->tag, r->tag, memory_order_release);
}

static void move_range_entry(struct soft_ranges *t, size_t to, size_t from)
{
	struct soft_range r;

	if (soft_ranges_at(t, from, &r))
		set_range_entry(&t->entries[to], &r);
}

bool soft_ranges_insert(struct soft_ranges *t, size_t i, const struct soft_range *r)
{
	size_t n = atomic_load(&t->count), k;

	if (n == t->max)
		return false;
	ranges_begin(t);
	for (k = n; k > i; k--)
		move_range_entry(t, k, k - 1);
	set_range_entry(&t->entries[i], r);
	atomic_store_explicit(&t->count, n + 1, memory_order_release);
	ranges_end(t);
	return true;
}

void soft_ranges_set(struct soft_ranges *t, size_t i, const struct soft_range *r)
{
	ranges_begin(t);
	set_range_entry(&t->entries[i], r);
	ranges_end(t);
}

void soft_ranges_remove(struct soft_ranges *t, size_t i)
{
	size_t n = atomic_load(&t->count), k;

	ranges_begin(t);
	for (k = i; k + 1 < n; k++)
		move_range_entry(t, k, k + 1);
	atomic_store_explicit(&t->count, n - 1, memory_order_release);
	ranges_end(t);
}

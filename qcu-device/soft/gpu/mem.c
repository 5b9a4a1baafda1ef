/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Device memory. Each device owns a range of addresses that nothing else in the process uses. So a
 * device pointer can be told from a host pointer, and the PTX machine can dereference it as it is.
 * Allocations take ascending addresses and wrap late, and there is a hole between any two of them.
 * So a pointer that is used soon after its cudaFree points into a hole, not at other data.
 *
 * All memory of a device is one file, so that other processes can map what this process exports. If
 * RLIMIT_FSIZE forbids such a file, the memory is anonymous and cannot be exported. Imported memory
 * is mapped at addresses of the importing device. Pages of the device's own file that were there
 * are hidden until the memory is unimported.
 *
 * Host memory that kernels may use in place is kept in a second table of the same kind.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/soft/gpu/soft.h"

#define ARENA_HINT   0x300000000000ull /* above the window, below what mmap() chooses */
#define ARENA_STRIDE (1ull << 40)
#define ARENA_MIN    (16ull << 30)
#define ARENA_STEP   (64ull << 20) /* how much is made usable at a time */

#define ALIGN_SMALL 512ull
#define ALIGN_BIG   4096ull
#define BIG	    (64ull << 10)

static uint64_t round_down(uint64_t v, uint64_t to)
{
	return v / to * to;
}

uint64_t soft_mem_default(void)
{
	uint64_t half = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2;
	uint64_t most = 4ull << 30;

	return round_down(half < most ? half : most, 1 << 20);
}

static bool is_arena_in_window(uint64_t base, uint64_t size)
{
	return base < QCU_WINDOW_BASE + QCU_WINDOW_SIZE && QCU_WINDOW_BASE < base + size;
}

/* The mmap() flags for device memory. */
static int mapping(int fd)
{
	return MAP_NORESERVE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);
}

/*
 * The hint only makes addresses of different devices easy to recognise. If it is taken, any other
 * place outside the window is as good.
 */
static void *reserve_arena(uint64_t hint, uint64_t size, int fd)
{
	void *p = mmap((void *)(uintptr_t)hint, size, PROT_NONE, mapping(fd), fd, 0);

	if (p != MAP_FAILED && is_arena_in_window((uintptr_t)p, size)) {
		munmap(p, size);
		p = MAP_FAILED;
	}
	return p;
}

bool soft_mem_init(struct soft_mem *m, struct be *be, unsigned int index, uint64_t vram)
{
	uint64_t size =
		vram > ARENA_STRIDE / 4 ? ARENA_STRIDE : soft_round_up(vram * 4, ARENA_STEP);
	void *p;

	_Static_assert(SOFT_VRAM_MAX <= ARENA_STRIDE / 4 * 3, "there is room beside it");
	if (size < ARENA_MIN)
		size = ARENA_MIN;
	if (!soft_ranges_init(&m->table))
		return false;
	m->fd = soft_file_new(size);
	p = reserve_arena(ARENA_HINT + index * ARENA_STRIDE, size, m->fd);
	if (p == MAP_FAILED) {
		if (m->fd >= 0)
			soft_file_close(m->fd);
		soft_ranges_fini(&m->table);
		return false;
	}
	m->base = (uintptr_t)p;
	m->size = size;
	m->next = m->base;
	m->usable = 0;
	m->vram = vram;
	m->used = 0;
	m->be = be;
	m->index = index;
	m->wanted = NULL;
	soft_move_init(m);
	pthread_mutex_init(&m->lock, NULL);
	return true;
}

void soft_mem_fini(struct soft_mem *m)
{
	if (!m->size)
		return;
	soft_move_fini(m);
	soft_check_fini(m);
	munmap((void *)(uintptr_t)m->base, m->size);
	if (m->fd >= 0)
		soft_file_close(m->fd);
	soft_ranges_fini(&m->table);
	pthread_mutex_destroy(&m->lock);
	m->size = 0;
}

/*
 * The edges of a range for its neighbours. Imported memory is mapped in whole pages, and memory
 * that can leave leaves in whole pages, so no neighbour may share them.
 */
static bool has_whole_pages(const struct soft_mem *m, uint32_t tag)
{
	return tag == SOFT_IMPORT || (m->be->movable && (soft_mem_tag(tag) || tag == SOFT_POOL));
}

static uint64_t lower_edge(const struct soft_mem *m, const struct soft_range *r)
{
	return has_whole_pages(m, r->tag) ? round_down(r->lo, ALIGN_BIG) : r->lo;
}

static uint64_t upper_edge(const struct soft_mem *m, const struct soft_range *r)
{
	return has_whole_pages(m, r->tag) ? soft_round_up(r->hi, ALIGN_BIG) : r->hi;
}

/*
 * Finds room for `size` bytes at or above `from`. *index gets the position of the new range in the
 * table. 0: no room.
 */
static uint64_t find_arena_room(struct soft_mem *m, uint64_t size, uint64_t align, uint64_t from,
				size_t *index)
{
	size_t i = soft_ranges_upper(&m->table, from);
	struct soft_range r;
	uint64_t at = from;

	/* Each allocation begins at least one guard of `align` bytes after the previous one. */
	if (i && soft_ranges_at(&m->table, i - 1, &r) && upper_edge(m, &r) + align > at)
		at = upper_edge(m, &r) + align;
	for (;; i++) {
		bool more = soft_ranges_at(&m->table, i, &r);
		uint64_t end = more ? lower_edge(m, &r) - ALIGN_SMALL : m->base + m->size;

		at = soft_round_up(at, align);
		if (at <= end && size <= end - at) {
			*index = i;
			return at;
		}
		if (!more)
			return 0;
		at = upper_edge(m, &r) + align;
	}
}

static bool make_arena_usable(struct soft_mem *m, uint64_t end)
{
	uint64_t want = soft_round_up(end - m->base, ARENA_STEP);

	if (want <= m->usable)
		return true;
	if (want > m->size)
		want = m->size;
	if (mprotect((void *)(uintptr_t)(m->base + m->usable), want - m->usable,
		     PROT_READ | PROT_WRITE))
		return false;
	m->usable = want;
	return true;
}

void soft_mem_want(struct soft_mem *m, const struct be_wanted *wanted, size_t count)
{
	pthread_mutex_lock(&m->lock);
	m->wanted = wanted;
	m->wanted_count = count;
	pthread_mutex_unlock(&m->lock);
}

/* The next address that is wanted, if it is free and good for this size. Else 0. */
static uint64_t find_wanted_room(struct soft_mem *m, uint64_t size, uint64_t align, size_t *index)
{
	uint64_t full = soft_round_up(size, ALIGN_SMALL), at;
	struct soft_range r;
	size_t i;

	while (m->wanted_count && m->wanted->dev != m->index) {
		m->wanted++;
		m->wanted_count--;
	}
	if (!m->wanted_count || (m->wanted->size && m->wanted->size != size))
		return 0;
	at = m->wanted->addr;
	m->wanted++;
	m->wanted_count--;
	if (at % align || at < m->base || full > m->size || at - m->base > m->size - full)
		return 0;
	i = soft_ranges_upper(&m->table, at);
	if ((i && soft_ranges_at(&m->table, i - 1, &r) && upper_edge(m, &r) > at) ||
	    (soft_ranges_at(&m->table, i, &r) && lower_edge(m, &r) < at + full))
		return 0;
	*index = i;
	return at;
}

static uint64_t arena_alloc(struct soft_mem *m, uint64_t size, uint32_t tag)
{
	bool pages = size >= BIG || has_whole_pages(m, tag);
	uint64_t align = pages ? ALIGN_BIG : ALIGN_SMALL, full, at = 0;
	struct soft_range r;
	size_t i;

	pthread_mutex_lock(&m->lock);
	if (size > m->vram || soft_round_up(size, ALIGN_SMALL) > m->vram - m->used)
		goto out;
	full = soft_round_up(size, ALIGN_SMALL);
	at = m->wanted ? find_wanted_room(m, size, align, &i)
		       : find_arena_room(m, full, align, m->next, &i);
	if (m->wanted && (!at || !make_arena_usable(m, at + full))) {
		at = 0;
		goto out;
	}
	/*
	 * No room above m->next, or mprotect() failed: look from the start for addresses that were
	 * freed.
	 */
	if (!at || !make_arena_usable(m, at + full)) {
		at = find_arena_room(m, full, align, m->base, &i);
		if (!at || !make_arena_usable(m, at + full)) {
			at = 0;
			goto out;
		}
	}
	if (!soft_resident(m, (int64_t)full)) {
		at = 0;
		goto out;
	}
	r = (struct soft_range){.lo = at, .hi = at + size, .tag = tag};
	if (!soft_ranges_insert(&m->table, i, &r)) {
		soft_resident(m, -(int64_t)full);
		at = 0;
		goto out;
	}
	m->used += full;
	if (!m->wanted || m->next < at + full)
		m->next = at + full;
	/*
	 * Variables are initialised or zero, so they count as written. Memory from malloc() in a
	 * kernel has the same tag, and is not checked either.
	 */
	soft_check_set_written(m, at, size, tag == SOFT_VARIABLE);
out:
	pthread_mutex_unlock(&m->lock);
	return at;
}

/*
 * When the i-th allocation is freed, returns its pages to the operating system, except those that
 * another allocation also uses.
 */
static void return_freed_pages(struct soft_mem *m, size_t i, const struct soft_range *r)
{
	uint64_t lo = round_down(r->lo, ALIGN_BIG), hi = soft_round_up(r->hi, ALIGN_BIG);
	struct soft_range n;

	if (i && soft_ranges_at(&m->table, i - 1, &n) && n.hi > lo)
		lo = soft_round_up(n.hi, ALIGN_BIG);
	if (soft_ranges_at(&m->table, i + 1, &n) && n.lo < hi)
		hi = round_down(n.lo, ALIGN_BIG);
	/*
	 * madvise() fails on locked pages. They stay, so clear them: old content must not come
	 * back.
	 */
	if (lo < hi &&
	    madvise((void *)(uintptr_t)lo, hi - lo, m->fd < 0 ? MADV_DONTNEED : MADV_REMOVE))
		memset((void *)(uintptr_t)lo, 0, hi - lo);
}

static void arena_drop(struct soft_mem *m, size_t i, const struct soft_range *r)
{
	uint64_t full = soft_round_up(r->hi - r->lo, ALIGN_SMALL);
	struct soft_range dead = {.lo = r->lo, .hi = r->hi, .tag = SOFT_PHYS};
	uint64_t away = 0;

	/* Addresses that cannot be made usable again stay taken, and nobody may use them. */
	if (soft_move_forget(m, r, &away)) {
		return_freed_pages(m, i, r);
		soft_ranges_remove(&m->table, i);
	} else {
		soft_ranges_set(&m->table, i, &dead);
	}
	m->used -= full;
	soft_resident(m, (int64_t)away - (int64_t)full);
}

static bool has_tag(const struct soft_range *r, uint32_t tag)
{
	return tag == SOFT_MEMORY ? soft_mem_tag(r->tag) : r->tag == tag;
}

static bool arena_free(struct soft_mem *m, uint64_t addr, uint32_t tag)
{
	struct soft_range r;
	bool found;
	size_t i;

	pthread_mutex_lock(&m->lock);
	i = soft_ranges_upper(&m->table, addr);
	found = i && soft_ranges_at(&m->table, i - 1, &r) && r.lo == addr && has_tag(&r, tag);
	if (found)
		arena_drop(m, i - 1, &r);
	pthread_mutex_unlock(&m->lock);
	return found;
}

bool soft_mem_usual(const struct soft_mem *m)
{
	return m->base == ARENA_HINT + m->index * ARENA_STRIDE;
}

uint64_t soft_mem_variables(struct soft_mem *m)
{
	struct soft_range r;
	uint64_t bytes = 0;
	size_t i;

	pthread_mutex_lock(&m->lock);
	for (i = 0; soft_ranges_at(&m->table, i, &r); i++)
		bytes += r.tag == SOFT_VARIABLE ? r.hi - r.lo : 0;
	pthread_mutex_unlock(&m->lock);
	return bytes;
}

void soft_mem_reset(struct soft_mem *m)
{
	struct soft_range r;
	size_t i = 0;

	pthread_mutex_lock(&m->lock);
	while (soft_ranges_at(&m->table, i, &r)) {
		if (soft_mem_tag(r.tag))
			arena_drop(m, i, &r);
		else
			i++;
	}
	pthread_mutex_unlock(&m->lock);
}

struct soft_device *soft_mem_device(struct be *be, uint64_t addr)
{
	unsigned int i;

	for (i = 0; i < be->gpus; i++)
		if (addr - be->dev[i].mem.base < be->dev[i].mem.size)
			return &be->dev[i];
	return NULL;
}

static bool is_inside_one_range(struct soft_ranges *t, uint64_t addr, uint64_t len)
{
	struct soft_range r;

	return soft_ranges_find(t, addr, &r) && len <= r.hi - addr;
}

bool soft_mem_valid(struct be *be, uint64_t addr, uint64_t len)
{
	struct soft_device *d = soft_mem_device(be, addr);
	struct soft_range r;

	if (!d)
		return soft_virtual_valid(be, addr, len);
	return soft_ranges_find(&d->mem.table, addr, &r) && r.tag != SOFT_PHYS &&
	       len <= r.hi - addr;
}

bool soft_host_registered(struct be *be, uint64_t addr, uint64_t len)
{
	return is_inside_one_range(&be->host, addr, len);
}

bool soft_mem_usable(struct be *be, uint64_t addr, uint64_t len)
{
	return soft_mem_valid(be, addr, len) || soft_host_registered(be, addr, len);
}

int soft_mem_info(struct be *be, unsigned int dev, uint64_t *free, uint64_t *total)
{
	struct soft_mem *m = &be->dev[dev].mem;
	int sticky = atomic_load(&be->sticky);

	if (sticky)
		return sticky;
	pthread_mutex_lock(&m->lock);
	*free = m->vram - m->used;
	*total = m->vram;
	pthread_mutex_unlock(&m->lock);
	return QCU_ERR_Success;
}

int soft_mem_alloc(struct be *be, unsigned int dev, uint64_t size, uint64_t *addr)
{
	int sticky = atomic_load(&be->sticky);

	*addr = 0;
	if (sticky)
		return sticky;
	if (!size)
		return QCU_ERR_Success;
	*addr = arena_alloc(&be->dev[dev].mem, size, SOFT_MEMORY);
	return *addr ? QCU_ERR_Success : QCU_ERR_MemoryAllocation;
}

int soft_mem_end(struct be *be, uint64_t addr)
{
	struct soft_device *d = soft_mem_device(be, addr);
	struct soft_range r;
	int sticky = atomic_load(&be->sticky);

	if (sticky)
		return sticky;
	if (!addr)
		return QCU_ERR_Success;
	if (!d || !soft_ranges_find(&d->mem.table, addr, &r) || r.lo != addr ||
	    !soft_mem_tag(r.tag))
		return QCU_ERR_InvalidValue;
	soft_wait(be, NULL);
	if (!arena_free(&d->mem, addr, SOFT_MEMORY))
		return QCU_ERR_InvalidValue;
	return atomic_load(&be->sticky);
}

uint64_t soft_mem_take(struct soft_mem *m, uint64_t size)
{
	return arena_alloc(m, size, SOFT_POOL);
}

void soft_mem_give(struct soft_mem *m, uint64_t addr)
{
	arena_free(m, addr, SOFT_POOL);
}

/* A device of which only the memory is used. No kernel or copy of a program knows its addresses. */
void *soft_store_take(struct be *be, uint64_t bytes)
{
	return be->store.size ? (void *)(uintptr_t)soft_mem_take(&be->store, bytes) : NULL;
}

void soft_store_give(struct be *be, void *p, uint64_t bytes)
{
	(void)bytes;
	soft_mem_give(&be->store, (uintptr_t)p);
}

uint64_t soft_phys_take(struct soft_mem *m, uint64_t size)
{
	return arena_alloc(m, size, SOFT_PHYS);
}

void soft_phys_give(struct soft_mem *m, uint64_t addr)
{
	arena_free(m, addr, SOFT_PHYS);
}

/* ---- memory of other processes ---- */

static void set_known(struct soft_mem *m, uint64_t addr)
{
	struct soft_range r;
	size_t i;

	pthread_mutex_lock(&m->lock);
	i = soft_ranges_upper(&m->table, addr);
	if (i && soft_ranges_at(&m->table, i - 1, &r) && r.lo == addr && r.tag == SOFT_MEMORY) {
		r.tag = SOFT_KNOWN;
		soft_ranges_set(&m->table, i - 1, &r);
	}
	pthread_mutex_unlock(&m->lock);
}

int soft_mem_export(struct be *be, unsigned int dev, uint64_t addr, void *handle)
{
	struct soft_mem *m = &be->dev[dev].mem;
	struct soft_file f = {0};
	struct soft_range r;
	int sticky = atomic_load(&be->sticky);

	if (sticky)
		return sticky;
	if (!soft_ranges_find(&m->table, addr, &r) || r.lo != addr ||
	    (!soft_mem_tag(r.tag) && r.tag != SOFT_PHYS))
		return QCU_ERR_InvalidValue;
	if (m->fd < 0)
		return QCU_ERR_NotSupported;
	if (!soft_file_tell(m->fd, &f))
		return QCU_ERR_OperatingSystem;
	if (r.tag == SOFT_MEMORY)
		set_known(m, addr);
	f.offset = r.lo - m->base;
	f.len = r.hi - r.lo;
	memcpy(handle, &f, sizeof(f));
	return QCU_ERR_Success;
}

/* Maps pages of a file over what is there now; fd -1: empty pages. m->lock is held. */
static bool map_pages_over(uint64_t at, uint64_t len, int fd, uint64_t offset)
{
	return mmap((void *)(uintptr_t)at, len, PROT_READ | PROT_WRITE, mapping(fd) | MAP_FIXED, fd,
		    (off_t)offset) != MAP_FAILED;
}

static uint64_t arena_import(struct soft_mem *m, const struct soft_file *f, int fd)
{
	uint64_t in_page = f->offset % ALIGN_BIG, full = soft_round_up(in_page + f->len, ALIGN_BIG),
		 at;
	struct soft_range r = {.tag = SOFT_IMPORT};
	size_t i;

	pthread_mutex_lock(&m->lock);
	at = find_arena_room(m, full, ALIGN_BIG, m->next, &i);
	if (!at || !make_arena_usable(m, at + full))
		goto fail;
	r.lo = at + in_page;
	r.hi = r.lo + f->len;
	if (!soft_ranges_insert(&m->table, i, &r))
		goto fail;
	if (!map_pages_over(at, full, fd, f->offset - in_page)) {
		soft_ranges_remove(&m->table, i);
		goto fail;
	}
	m->next = at + full;
	soft_check_set_written(m, r.lo, f->len, true);
	pthread_mutex_unlock(&m->lock);
	return r.lo;
fail:
	pthread_mutex_unlock(&m->lock);
	return 0;
}

/* Imported memory takes addresses of this device, but does not count as its memory. */
int soft_mem_import(struct be *be, unsigned int dev, const void *handle, uint64_t size,
		    uint64_t *addr)
{
	struct soft_file f;
	int fd, sticky = atomic_load(&be->sticky);

	*addr = 0;
	if (sticky)
		return sticky;
	memcpy(&f, handle, sizeof(f));
	if (f.len != size)
		return QCU_ERR_InvalidValue;
	fd = soft_file_open(&f);
	if (fd < 0)
		return QCU_ERR_MapBufferObjectFailed;
	*addr = arena_import(&be->dev[dev].mem, &f, fd);
	close(fd);
	return *addr ? QCU_ERR_Success : QCU_ERR_MapBufferObjectFailed;
}

/* Works after a sticky error, too, because the caller no longer uses the memory. */
int soft_mem_unimport(struct be *be, uint64_t addr)
{
	struct soft_device *d = soft_mem_device(be, addr);
	int err = QCU_ERR_InvalidValue;
	struct soft_range r;
	size_t i;

	if (!d)
		return err;
	soft_wait(be, NULL);
	pthread_mutex_lock(&d->mem.lock);
	i = soft_ranges_upper(&d->mem.table, addr);
	if (i && soft_ranges_at(&d->mem.table, i - 1, &r) && r.lo == addr && r.tag == SOFT_IMPORT) {
		uint64_t lo = lower_edge(&d->mem, &r);

		/* If mmap() fails, the addresses stay taken. */
		if (map_pages_over(lo, upper_edge(&d->mem, &r) - lo, d->mem.fd, lo - d->mem.base))
			soft_ranges_remove(&d->mem.table, i - 1);
		err = atomic_load(&be->sticky);
	}
	pthread_mutex_unlock(&d->mem.lock);
	return err;
}

int soft_host_register(struct be *be, void *addr, size_t len)
{
	uint64_t lo = (uintptr_t)addr;
	struct soft_range r = {.lo = lo, .hi = lo + len, .tag = SOFT_HOST}, n;
	int err = atomic_load(&be->sticky);
	size_t i;

	if (err)
		return err;
	if (!addr || !len || r.hi < lo || soft_mem_device(be, lo) ||
	    soft_mem_device(be, r.hi - 1) || soft_virtual_holds(be, lo) ||
	    soft_virtual_holds(be, r.hi - 1))
		return QCU_ERR_InvalidValue;
	pthread_mutex_lock(&be->host_lock);
	i = soft_ranges_upper(&be->host, lo);
	if ((i && soft_ranges_at(&be->host, i - 1, &n) && n.hi > lo) ||
	    (soft_ranges_at(&be->host, i, &n) && n.lo < r.hi))
		err = QCU_ERR_HostMemoryAlreadyRegistered;
	else if (!soft_ranges_insert(&be->host, i, &r))
		err = QCU_ERR_MemoryAllocation;
	pthread_mutex_unlock(&be->host_lock);
	return err;
}

/*
 * The caller will unmap the memory, so this must work after an error, too. The first wait is for
 * work that was queued before: it must still find the range. The second wait is for work that
 * another thread queued during the first one: it must not use the memory after the return.
 */
int soft_host_unregister(struct be *be, void *addr)
{
	uint64_t lo = (uintptr_t)addr;
	struct soft_range r;
	bool found;
	size_t i;

	if (!addr)
		return QCU_ERR_InvalidValue;
	if (!soft_ranges_find(&be->host, lo, &r))
		return QCU_ERR_HostMemoryNotRegistered;
	if (r.lo != lo)
		return QCU_ERR_InvalidValue;
	soft_wait(be, NULL);
	pthread_mutex_lock(&be->host_lock);
	i = soft_ranges_upper(&be->host, lo);
	found = i && soft_ranges_at(&be->host, i - 1, &r) && r.lo == lo;
	if (found)
		soft_ranges_remove(&be->host, i - 1);
	pthread_mutex_unlock(&be->host_lock);
	if (!found)
		return QCU_ERR_HostMemoryNotRegistered;
	soft_wait(be, NULL);
	return atomic_load(&be->sticky);
}

/*
 * Placed memory is plain memory at the caller's address. Kernels and copies find it among the host
 * memory that they may use in place.
 */
int soft_mem_place(struct be *be, unsigned int dev, uint64_t addr, uint64_t len, uint64_t room)
{
	struct soft_mem *m = &be->dev[dev].mem;
	int err = atomic_load(&be->sticky);
	bool fits;

	(void)room;
	if (err)
		return err;
	pthread_mutex_lock(&m->lock);
	fits = len <= m->vram - m->used && soft_resident(m, (int64_t)len);
	m->used += fits ? len : 0;
	pthread_mutex_unlock(&m->lock);
	if (!fits)
		return QCU_ERR_MemoryAllocation;
	err = map_pages_over(addr, len, -1, 0)
		      ? soft_host_register(be, (void *)(uintptr_t)addr, len)
		      : QCU_ERR_MemoryAllocation;
	if (!err)
		return QCU_ERR_Success;
	pthread_mutex_lock(&m->lock);
	m->used -= len;
	soft_resident(m, -(int64_t)len);
	pthread_mutex_unlock(&m->lock);
	return err;
}

int soft_mem_unplace(struct be *be, unsigned int dev, uint64_t addr, uint64_t len, uint64_t room)
{
	struct soft_mem *m = &be->dev[dev].mem;
	int err = soft_host_unregister(be, (void *)(uintptr_t)addr);

	(void)room;
	pthread_mutex_lock(&m->lock);
	m->used -= len;
	soft_resident(m, -(int64_t)len);
	pthread_mutex_unlock(&m->lock);
	return err;
}

uint64_t soft_env_alloc(void *ctx, size_t size)
{
	struct soft_device *d = ctx;
	uint64_t at = arena_alloc(&d->mem, size ? size : 1, SOFT_VARIABLE);

	/*
	 * Whole pages are already zero. A page that is shared with other allocations may hold old
	 * content, so clear that part.
	 */
	if (at && size < BIG)
		memset((void *)(uintptr_t)at, 0, size);
	else if (at)
		memset((void *)(uintptr_t)round_down(at + size, ALIGN_BIG), 0,
		       (at + size) % ALIGN_BIG);
	return at;
}

void soft_env_free(void *ctx, uint64_t addr)
{
	struct soft_device *d = ctx;

	arena_free(&d->mem, addr, SOFT_VARIABLE);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the mirror has registered of the guest's memory. Registering costs time and pins pages of
 * the host. So each map is registered once, and stays registered until the guest takes the pages
 * back: a cache. With a limit (--pin-limit), the maps that have been unused for longest lose their
 * registration. Copies from and to them still work, at the speed of pageable memory, and their next
 * use registers them again. Memory that HOST_REGISTER has promised to kernels stays registered.
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/memory/window_impl.h"

#define TOUCH_SLICE (2u << 20)
#define TOUCH_EACH  (4u << 20) /* bytes for which a thread is worth waking */

/*
 * Errors with which CUDA says, in whatever call comes next, that a fault has ended the context. The
 * context then does no more work, so these errors do not keep memory from leaving the window.
 */
bool registered_lost(int rc)
{
	switch (rc) {
	case QCU_ERR_ECCUncorrectable:
	case QCU_ERR_NvlinkUncorrectable:
	case QCU_ERR_Contained:
	case QCU_ERR_IllegalAddress:
	case QCU_ERR_LaunchTimeout:
	case QCU_ERR_ContextIsDestroyed:
	case QCU_ERR_Assert:
	case QCU_ERR_HardwareStackError:
	case QCU_ERR_IllegalInstruction:
	case QCU_ERR_MisalignedAddress:
	case QCU_ERR_InvalidAddressSpace:
	case QCU_ERR_InvalidPc:
	case QCU_ERR_LaunchFailure:
	case QCU_ERR_TensorMemoryLeak:
		return true;
	}
	return false;
}

struct touch {
	uint8_t *at;
	size_t len;
	_Atomic size_t next;
};

/*
 * To populate for reading is enough: all pages exist, and what is entered for a shared mapping may
 * be written to as well. The kernel then enters 16 neighbours with each page.
 *
 * Before Linux 5.14 madvise() always fails, and the pages are entered when they are used.
 */
static void enter_pages(uint8_t *at, size_t len)
{
	madvise(at, len, MADV_POPULATE_READ);
}

void window_enter(const struct window *w, void *host, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1, from = (uintptr_t)host & ~page;

	if (w->mem)
		enter_pages((uint8_t *)from, (uintptr_t)host + len - from);
}

/* What one thread does. If it fails, registering the memory will say why. */
static void touch(void *arg)
{
	struct touch *t = arg;
	size_t off;

	while ((off = atomic_fetch_add(&t->next, TOUCH_SLICE)) < t->len) {
		size_t left = t->len - off;

		enter_pages(t->at + off, left < TOUCH_SLICE ? left : TOUCH_SLICE);
	}
}

/*
 * Fills the page tables of memory that is about to be registered. Otherwise NVIDIA's driver does
 * it, page by page. Measured on an H200, 256 MiB: registering alone takes 45 ms. This function and
 * then registering take 8 and 12 ms with one thread, 4 and 13 ms with four, 9 and 12 ms with eight.
 * To populate for writing takes 38, 10 and 24 ms.
 */
static void populate(struct window *w, void *addr, uint64_t len)
{
	struct touch t = {.at = addr, .len = len};
	uint64_t threads = len / TOUCH_EACH;

	if (!w->mem)
		return;
	if (w->carriers)
		carriers_run(w->carriers, threads < CARRIERS_MAX ? threads : CARRIERS_MAX, touch,
			     &t);
	else
		touch(&t);
}

static void count_registered(struct window *w, uint64_t more)
{
	w->registered_bytes += more;
	if (w->counts)
		count_add(w->counts, COUNT_REGISTERED, more);
}

static int register_and_count(struct window *w, void *addr, uint64_t len)
{
	int rc = w->ops->host_register(w->be, addr, len);

	if (!rc)
		count_registered(w, len);
	return rc;
}

static int unregister_and_count(struct window *w, void *addr, uint64_t len)
{
	int rc = w->ops->host_unregister(w->be, addr);

	count_registered(w, -len);
	return registered_lost(rc) ? QCU_ERR_Success : rc;
}

static void set_when(struct window *w, struct window_map *wm, enum window_when when)
{
	w->late += (when != WINDOW_MAPPED) - (wm->when != WINDOW_MAPPED);
	wm->when = when;
}

static void know(struct window *w, struct window_map *wm, bool known)
{
	pthread_mutex_lock(&w->lock);
	wm->known = known;
	set_when(w, wm, WINDOW_MAPPED);
	wm->used = ++w->clock;
	pthread_mutex_unlock(&w->lock);
}

static int drop_runs(struct window *w, struct window_map *wm)
{
	int rc = QCU_ERR_Success, err;

	/* From now on, copies that begin treat the memory as pageable. */
	if (wm->registered)
		know(w, wm, false);
	while (wm->registered) {
		struct window_run *run = &wm->run[--wm->registered];

		err = unregister_and_count(w, run->host, run->len);
		rc = rc ? rc : err;
	}
	return rc;
}

/* May `len` more bytes be registered? Other maps lose their registration to make room. */
static bool make_registration_room(struct window *w, uint64_t len)
{
	if (!w->limit)
		return true;
	if (len > w->limit)
		return false;
	while (w->registered_bytes > w->limit - len) {
		struct window_map *wm, *oldest = NULL;

		LIST_FOREACH(wm, &w->maps, link)
			if (wm->registered && !wm->pinned && (!oldest || wm->used < oldest->used))
				oldest = wm;
		if (!oldest)
			return false;
		drop_runs(w, oldest);
	}
	return true;
}

static int add_runs(struct window *w, struct window_map *wm)
{
	int rc;

	for (; wm->registered < wm->count; wm->registered++) {
		const struct window_run *run = &wm->run[wm->registered];

		populate(w, run->host, run->len);
		rc = register_and_count(w, run->host, run->len);
		if (rc)
			return rc;
	}
	know(w, wm, true);
	return QCU_ERR_Success;
}

int registered_add(struct window *w, struct window_map *wm)
{
	if (wm->len >= w->late_bytes && w->carriers && w->carriers->max > 1) {
		set_when(w, wm, WINDOW_USED_AGAIN);
		return QCU_ERR_Success;
	}
	return make_registration_room(w, wm->len) ? add_runs(w, wm) : QCU_ERR_Success;
}

int registered_add_extra(struct window *w, struct window_map *wm)
{
	int rc;

	if (wm->direct && wm->known)
		return QCU_ERR_Success;
	/* To make room, this very map may have lost its registration. */
	make_registration_room(w, wm->len);
	/*
	 * Copies use the runs and kernels use the address. Copies must be in order with these
	 * kernels, so the runs are registered, too.
	 */
	rc = wm->known ? (int)QCU_ERR_Success : add_runs(w, wm);
	if (!rc && !wm->direct) {
		populate(w, (void *)wm->va, wm->len);
		rc = register_and_count(w, (void *)wm->va, wm->len);
		wm->extra = !rc;
	}
	return rc;
}

int registered_drop(struct window *w, struct window_map *wm)
{
	int rc = QCU_ERR_Success, err;

	if (wm->extra)
		rc = unregister_and_count(w, (void *)wm->va, wm->len);
	wm->extra = false;
	set_when(w, wm, WINDOW_MAPPED);
	err = drop_runs(w, wm);
	return rc ? rc : err;
}

void registered_use(struct window *w, struct window_map *wm)
{
	/* If this fails, the memory is pageable, as before. */
	if (!wm->known && make_registration_room(w, wm->len) && add_runs(w, wm))
		drop_runs(w, wm);
}

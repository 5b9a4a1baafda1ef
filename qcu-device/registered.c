// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the backend has registered of the guest's memory. Registering costs time and pins pages of
 * the host, so it is done once for each map and kept until the guest takes the pages back: a cache.
 * With a limit (--pin-limit) the maps that have not been used for longest lose their registration;
 * copies from and to them still work, at the speed of pageable memory, and their next use brings it
 * back. What HOST_REGISTER has promised to kernels stays.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "qcu-device/window_impl.h"

#define TOUCH_SLICE (2u << 20)
#define TOUCH_EACH  (4u << 20) /* for a thread that has to be woken */

/*
 * Errors with which CUDA says, at whatever call comes next, that a fault has ended the context. It
 * does no more work, so for memory that is to leave the window this is no obstacle.
 */
static bool context_lost(int rc)
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
 * What one thread does. If it cannot be done, registering will say why; before Linux 5.14 it never
 * can, and registering does it.
 */
static void touch(void *arg)
{
	struct touch *t = arg;
	size_t off;

	while ((off = atomic_fetch_add(&t->next, TOUCH_SLICE)) < t->len) {
		size_t left = t->len - off;

		madvise(t->at + off, left < TOUCH_SLICE ? left : TOUCH_SLICE, MADV_POPULATE_WRITE);
	}
}

/*
 * Fills the page tables of memory that is about to be registered. NVIDIA's driver would do it page
 * by page. Measured on an H200, 256 MiB in 64 mappings: 36 ms to register them; 16 and 10 when one
 * thread has done this before; 7 and 11 with four threads, 19 and 12 with eight.
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

static int add(struct window *w, void *addr, uint64_t len)
{
	int rc = w->ops->host_register(w->be, addr, len);

	if (!rc)
		w->registered_bytes += len;
	return rc;
}

static int drop(struct window *w, void *addr, uint64_t len)
{
	int rc = w->ops->host_unregister(w->be, addr);

	w->registered_bytes -= len;
	return context_lost(rc) ? QCU_ERR_Success : rc;
}

static void know(struct window *w, struct window_map *wm, bool known)
{
	pthread_mutex_lock(&w->lock);
	wm->known = known;
	wm->used = ++w->clock;
	pthread_mutex_unlock(&w->lock);
}

static int drop_runs(struct window *w, struct window_map *wm)
{
	int rc = QCU_ERR_Success, err;

	/* Copies that begin from now on take the memory for pageable. */
	if (wm->registered)
		know(w, wm, false);
	while (wm->registered) {
		struct window_run *run = &wm->run[--wm->registered];

		err = drop(w, run->host, run->len);
		rc = rc ? rc : err;
	}
	return rc;
}

/* Whether `len` more bytes may be registered, after others have made room. */
static bool make_room(struct window *w, uint64_t len)
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
		rc = add(w, run->host, run->len);
		if (rc)
			return rc;
	}
	know(w, wm, true);
	return QCU_ERR_Success;
}

int registered_add(struct window *w, struct window_map *wm)
{
	if (!w->ops->host_register || !w->ops->host_unregister)
		return QCU_ERR_NotSupported;
	return make_room(w, wm->len) ? add_runs(w, wm) : QCU_ERR_Success;
}

int registered_add_extra(struct window *w, struct window_map *wm)
{
	int rc;

	if (wm->direct && wm->known)
		return QCU_ERR_Success;
	/* It may be this map itself that has made room. */
	make_room(w, wm->len);
	/* Copies go by the runs, and must be in order with the kernels that go by the address. */
	rc = wm->known ? (int)QCU_ERR_Success : add_runs(w, wm);
	if (!rc && !wm->direct) {
		populate(w, (void *)wm->va, wm->len);
		rc = add(w, (void *)wm->va, wm->len);
		wm->extra = !rc;
	}
	return rc;
}

int registered_drop(struct window *w, struct window_map *wm)
{
	int rc = QCU_ERR_Success, err;

	if (wm->extra)
		rc = drop(w, (void *)wm->va, wm->len);
	wm->extra = false;
	err = drop_runs(w, wm);
	return rc ? rc : err;
}

void registered_use(struct window *w, struct window_map *wm)
{
	/* What does not work now is pageable memory, as before. */
	if (!wm->known && make_room(w, wm->len) && add_runs(w, wm))
		drop_runs(w, wm);
}

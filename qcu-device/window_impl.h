/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What window.c, which maps, and registered.c, which keeps the backend informed of what is mapped,
 * share: one MAP, and what either has done with it.
 */
#ifndef QCU_WINDOW_IMPL_H
#define QCU_WINDOW_IMPL_H

#include "qcu-device/window.h"

struct window_run {
	uint8_t *host;
	uint64_t off; /* from the start of the map */
	uint64_t len;
};

#define WINDOW_LEAVING (1u << 31)

struct window_map {
	uint64_t va, len;
	bool direct;		/* lies at va itself, as one run */
	bool pinned;		/* HOST_REGISTER has made it memory that kernels may use */
	bool remapped;		/* mapped at va by us */
	bool extra;		/* registered at va, besides the runs */
	bool known;		/* the backend has all runs registered; under window->lock */
	_Atomic uint32_t holds; /* by commands; and WINDOW_LEAVING when UNMAP waits for them */
	uint64_t used;		/* when, by window->clock; under window->lock */
	LIST_ENTRY(window_map) link;
	size_t count, registered; /* runs */
	struct window_run run[];
};

/*
 * All of these are called under `change`, except for a map that nobody finds any more. They return
 * a value of enum qcu_error.
 */

/* A new map: its runs, if there is room for them, or the RAM that they lie in is registered. */
int registered_add(struct window *w, struct window_map *wm);
/* At va itself, which is mapped. Never undone for lack of room. */
int registered_add_extra(struct window *w, struct window_map *wm);
/* Everything, before the map goes. Waits until the GPU does not use it any more. */
int registered_drop(struct window *w, struct window_map *wm);
/* The map is about to be used: what lack of room has undone is done again. */
void registered_use(struct window *w, struct window_map *wm);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What window.c and registered.c share: one MAP, and what each of them has done with it. window.c
 * maps. registered.c keeps the backend informed of what is mapped.
 */
#ifndef QCU_WINDOW_IMPL_H
#define QCU_WINDOW_IMPL_H

#include "qcu-device/memory/window.h"

struct window_run {
	uint8_t *host;
	uint64_t off; /* from the start of the map */
	uint64_t len;
};

#define WINDOW_LEAVING (1u << 31)

/* When a map that is not registered will be; a map that is, or was, has WINDOW_MAPPED. */
enum window_when { WINDOW_MAPPED, WINDOW_USED, WINDOW_USED_AGAIN };

struct window_map {
	uint64_t va, len;
	uint64_t usable;	/* the first bytes of it that kernels may use */
	bool placed;		/* device memory, not guest memory */
	unsigned int device;	/* if placed */
	bool direct;		/* lies at `va` itself, as one run */
	bool pinned;		/* HOST_REGISTER has made it usable by kernels */
	bool remapped;		/* we have mapped it at `va` */
	bool extra;		/* registered at `va`, besides the runs */
	bool known;		/* the backend has all runs registered; under window->lock */
	_Atomic uint32_t holds; /* commands that hold it; WINDOW_LEAVING: UNMAP waits for them */
	enum window_when when;	/* under window->lock */
	uint64_t used;		/* last use, by window->clock; under window->lock */
	LIST_ENTRY(window_map) link;
	uint64_t chunks;	  /* how many chunks it is made of, for the counts */
	size_t count, registered; /* runs, and how many of them are registered */
	struct window_run run[];
};

/*
 * All of these are called under `change`, except for a map that no search finds any more. They
 * return a value of enum qcu_error.
 */

/* Registers the runs of a new map, if there is room for them. A large one has time. */
int registered_add(struct window *w, struct window_map *wm);
/* Registers the map at `va` itself, where it is mapped. Lack of room never undoes this. */
int registered_add_extra(struct window *w, struct window_map *wm);
/* Is this an error with which CUDA says that a fault has ended the context? */
bool registered_lost(int rc);
/*
 * Ends all registrations of a map that is about to go. Waits until the GPU does not use it any
 * more.
 */
int registered_drop(struct window *w, struct window_map *wm);
/* The map is about to be used: registers it again if lack of room had ended that. */
void registered_use(struct window *w, struct window_map *wm);

#endif

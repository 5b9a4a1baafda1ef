/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The window: the range of addresses in which guest process and mirror see the same chunks. MAP
 * brings chunks in and registers them with the backend. UNMAP takes them out. In between, copies
 * ask where the bytes of a range lie.
 */
#ifndef QCU_WINDOW_H
#define QCU_WINDOW_H

#include <pthread.h>
#include <sys/queue.h>

#include "qcu-device/backend/backend.h"
#include "qcu-device/base/carriers.h"
#include "qcu-device/base/counts.h"
#include "qcu-device/memory/guestmem.h"

enum mir_map { MIR_MAP_CVM, MIR_MAP_NCVM };

/*
 * From this length on, a map is registered when it is used for the second time. Measured on an
 * H100, 256 MiB: to register takes 8 to 14 ms after 7 to 12 ms to populate, and while CUDA
 * registers it starts no kernel. Four threads carry as much in 10 ms.
 */
#define WINDOW_LATE_BYTES (16ull << 20)

/*
 * A reply with this status must not be sent. It means: the guest broke a rule of the wire, which
 * showed only when the command was carried out (it has been reported on stderr). The caller must
 * end the session.
 */
#define MIR_RULE_BROKEN (-71) /* -EPROTO */

/* A contiguous part of a buffer of the guest. */
struct piece {
	uint8_t *host;
	size_t len;
	bool registered; /* all of it lies in one registration */
};

struct pieces {
	struct piece *p;
	size_t count, room;
};

/* Returns 0 or QCU_ERR_MemoryAllocation. Joins neighbours that are not registered. */
int pieces_add(struct pieces *ps, void *host, size_t len, bool registered);
void pieces_free(struct pieces *ps);

/* Maps that a command uses. They stay until the command releases them. */
#define WINDOW_HOLDS_FEW 4
struct window_map;
struct window_holds {
	struct window_map **map;
	size_t count, room;
	struct window_map *few[WINDOW_HOLDS_FEW];
};

/* Addresses that are set aside for maps. */
#define WINDOW_RANGES 4
struct window_range {
	uint64_t va, len;
};

struct window {
	const struct guestmem *mem; /* NULL: one process, addresses are pointers */
	enum mir_map map;
	const struct be_ops *ops;
	struct be *be;
	struct carriers *carriers; /* may be NULL */
	pthread_mutex_t leave;	   /* one UNMAP at a time, which waits for the GPU; taken first */
	pthread_mutex_t change;	   /* one MAP or HOST_REGISTER at a time; taken second */
	pthread_mutex_t lock;	   /* protects the tree */
	void *tree;		   /* of struct window_map, by address */
	uint64_t leaving_va, leaving_len; /* under `lock`: out of the tree, not gone yet */
	pthread_cond_t unheld;		  /* with `lock`: a leaving map is not held any more */
	struct window_range range[WINDOW_RANGES];
	unsigned int ranges;
	_Atomic uint64_t mapped_bytes, registered_bytes;
	struct counts *counts;	/* may be NULL */
	uint64_t outside_bytes; /* under `change`: mapped outside of the window and the annex */
	/* Called when device memory that was placed in the window is gone. */
	void (*unplaced)(void *ctx, unsigned int dev, uint64_t bytes);
	void *unplaced_ctx;
	uint64_t limit;				 /* bytes that may be registered; 0: no limit */
	uint64_t late_bytes;			 /* maps from this length on are registered late */
	_Atomic unsigned int late;		 /* maps that are not registered yet */
	uint64_t clock;				 /* under `lock` */
	LIST_HEAD(window_maps, window_map) maps; /* under `change` */
};

/*
 * Reserves the addresses. The backend comes later. pin_limit: the bytes that may be registered; 0:
 * all. Returns 0 or -errno, which has been reported on stderr.
 */
int window_init(struct window *w, const struct be_ops *ops, const struct guestmem *mem,
		enum mir_map map, uint64_t pin_limit);
void window_set_backend(struct window *w, struct be *be);
void window_fini(struct window *w); /* unmaps everything */

/* These return a value of enum qcu_error or MIR_RULE_BROKEN. */
int window_map_chunks(struct window *w, uint64_t va, uint64_t len, const struct qcu_seg *segs,
		      size_t count, uint32_t chunk_bytes);
int window_unmap(struct window *w, uint64_t va, uint64_t len);

/* Memory that no chunks hold. */
static inline int window_map(struct window *w, uint64_t va, uint64_t len,
			     const struct qcu_seg *segs, size_t count)
{
	return window_map_chunks(w, va, len, segs, count, 0);
}

/*
 * Places device memory in the window: the first `bytes` of [va, va + len). There it takes the place
 * of a map: kernels and d2d copies can use it, and UNMAP takes it away. It holds no guest memory.
 */
int window_place(struct window *w, unsigned int dev, uint64_t va, uint64_t len, uint64_t bytes);
/* Takes it away. QCU_ERR_InvalidValue: none was placed at just this range. */
int window_unplace(struct window *w, uint64_t va, uint64_t len);
/* Takes all of it away. */
void window_unplace_all(struct window *w);
/* The device of the placed memory that has all of the range. False: there is none. */
bool window_placed(struct window *w, uint64_t va, uint64_t len, unsigned int *dev,
		   struct window_holds *holds);

/*
 * Frees the window's addresses for a moment, before the backend opens, and reserves them again.
 * Returns 0 or -errno, which has been reported.
 */
void window_lend(struct window *w);
int window_take_back(struct window *w);

/* Is the range wholly within one of the ranges that were set aside at the beginning? */
bool window_set_aside(const struct window *w, uint64_t va, uint64_t len);

/* Makes a mapped range usable at its own address by kernels and d2d copies. */
int window_pin(struct window *w, uint64_t va, uint64_t len);

/*
 * A CPU is about to write to guest memory, for the first time perhaps. Page by page, entering it in
 * the page tables would take longer than writing.
 */
void window_enter(const struct window *w, void *host, size_t len);

/*
 * The functions below hold the maps that they find until window_release(). `holds` may be NULL if
 * the caller does not touch the memory. The maps are released before the command is answered.
 */
void window_holds_init(struct window_holds *holds);
void window_release(struct window *w, struct window_holds *holds);

/* Can kernels use all of the range? */
bool window_pinned(struct window *w, uint64_t va, uint64_t len, struct window_holds *holds);
/* A map that HOST_REGISTER has made usable, or device memory. */
struct window_pinned {
	uint64_t va, len;
	uint64_t bytes;	     /* the first bytes of it that kernels may use */
	bool placed;	     /* device memory */
	unsigned int device; /* if placed */
};

/* The one from `va` on with the least address. False: there is none. */
bool window_next_pinned(struct window *w, uint64_t va, struct window_pinned *p);
/*
 * Returns how many bytes, from `va` on, a backend can take in one call: up to the end of the
 * registration in which `va` lies, or all of them if it lies in none.
 */
uint64_t window_span(struct window *w, uint64_t va, uint64_t len);

/*
 * Finds where [va, va + len) lies, and registers it if it is not yet. QCU_ERR_InvalidValue: some
 * part is not mapped.
 */
int window_resolve(struct window *w, uint64_t va, uint64_t len, struct pieces *ps,
		   struct window_holds *holds);
/* The same for a caller that can carry what is large and used for the first time. */
int window_resolve_to_carry(struct window *w, uint64_t va, uint64_t len, struct pieces *ps,
			    struct window_holds *holds);

#endif

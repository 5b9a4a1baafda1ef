/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where device memory lies that has left the GPU (docs/vm/memory.md), in blocks: in memory of the
 * host, which is private to this process, in huge pages where there are any, and registered with
 * the backend; or, if there is one, in a file (store_file.h).
 *
 * A block lies in memory as long as there is room. If there is none, it is written to the file from
 * a window, memory that all such blocks share. store_demote() brings blocks from memory to the file
 * later. Memory of blocks that are given back is kept for the next time, until store_trim() has
 * found it unused for long.
 */
#ifndef QCU_STORE_H
#define QCU_STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "qcu-device/backend/backend.h"
#include "qcu-device/memory/store_file.h"

#define STORE_LEAST   4096ull /* blocks are multiples of it, */
#define STORE_CLASSES 15u     /* and those of a class at most twice as large as of the one before */
_Static_assert(STORE_LEAST << (STORE_CLASSES - 1) == BE_PIECE, "the largest block");

/* In the order in which they are used. */
enum store_medium { STORE_GPU, STORE_MEMORY, STORE_FILE, STORE_MEDIA };

struct store_entry {
	struct store_entry *next, **at; /* in a list of those in memory */
	uint64_t bytes;
	enum store_medium medium; /* where it lies */
	void *p;		  /* its memory; NULL: it lies in the file */
	uint64_t number;	  /* in the file */
	uint64_t sum;		  /* of its bytes there */
	unsigned int looks;	  /* how often store_trim() has seen it unused */
	bool moving;		  /* store_demote() writes it to the file */
	bool given;		  /* back, while it moved */
};

/* What the store asks its owner for, and tells it. */
struct store_owner {
	void *ctx;
	/* Takes or gives back what the store may have there. */
	bool (*charge)(void *ctx, enum store_medium medium, int64_t bytes);
	/* So many bytes are written there (out) or read, if it is not memory of the host. */
	void (*moved)(void *ctx, enum store_medium medium, bool out, uint64_t bytes);
	/* Memory of another GPU, which copy engines use in place; NULL: there is none now. Neither
	 * calls the store. */
	void *(*borrow)(void *ctx, uint64_t bytes);
	void (*hand_back)(void *ctx, void *p, uint64_t bytes);
};

struct store {
	struct be_store be; /* what the backend gets */
	const struct be_ops *ops;
	struct be *backend;
	struct store_owner owner;
	/* For who moves memory. Only one thread does so at a time. */
	void *window; /* of BE_PIECE bytes, or NULL */
	unsigned int window_looks;
	pthread_mutex_t lock; /* protects what follows */
	struct store_file file;
	bool ended;
	_Atomic uint64_t kept_bytes; /* may be read without the lock */
	struct store_entry *kept[STORE_CLASSES];
	struct store_entry *used, **last; /* the oldest first */
};

/* fd: a file for what finds no room in memory (store_file.h), or -1. */
void store_init(struct store *s, const struct be_ops *ops, struct be *backend,
		const struct store_owner *owner, int fd);
/*
 * The backend is about to be closed, and no block is registered any more. Those that it gives back
 * while it closes are unmapped at once.
 */
void store_end(struct store *s);
void store_fini(struct store *s);
/* Unmaps the memory that so many calls have found unused; 0: all. */
void store_trim(struct store *s, unsigned int looks);
/*
 * Takes the window away if so many calls have found it unused; else NULL. No memory may be moving,
 * but it may be when the window is unmapped: that may wait for the GPU.
 */
void *store_take_window(struct store *s, unsigned int looks);
void store_unmap_window(struct store *s, void *window);
/*
 * Brings the block that has been in memory longest to the file. Its memory is kept. False: there is
 * none, or it finds no room there. No memory may be moving.
 */
bool store_demote(struct store *s);

#endif

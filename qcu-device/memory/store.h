/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Host memory for device memory that has left the GPU (docs/vm/memory.md): private to this process,
 * in huge pages where there are any, and registered with the backend. Blocks that are given back
 * are kept for the next time, until store_trim() has found them unused for long.
 */
#ifndef QCU_STORE_H
#define QCU_STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "qcu-device/backend/backend.h"

#define STORE_LEAST   4096ull /* blocks are multiples of it, */
#define STORE_CLASSES 15u     /* and those of a class at most twice as large as of the one before */
_Static_assert(STORE_LEAST << (STORE_CLASSES - 1) == BE_PIECE, "the largest block");

struct store {
	struct be_store be; /* what the backend gets */
	const struct be_ops *ops;
	struct be *backend;
	/* Takes or gives back what the store may have of the host's memory. */
	bool (*charge)(void *ctx, int64_t bytes);
	void *charge_ctx;
	pthread_mutex_t lock; /* protects what follows */
	bool ended;
	_Atomic uint64_t kept_bytes; /* may be read without the lock */
	struct store_kept {
		struct store_kept *next;
		uint64_t bytes;
		unsigned int looks; /* how often store_trim() has seen it unused */
	} * kept[STORE_CLASSES];
};

void store_init(struct store *s, const struct be_ops *ops, struct be *backend,
		bool (*charge)(void *ctx, int64_t bytes), void *ctx);
/*
 * The backend is about to be closed, and no block is registered any more. Those that it gives back
 * while it closes are unmapped at once.
 */
void store_end(struct store *s);
void store_fini(struct store *s);
/* Unmaps the blocks that so many calls have found unused; 0: all. */
void store_trim(struct store *s, unsigned int looks);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chunk memory in pieces, for malloc. malloc_hook.c says when it is used, arena.c how it works. */
#ifndef QCUL_ARENA_H
#define QCUL_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* A session exists. Mappings of an earlier session (the parent's) can be freed, but not used again.
 */
void qcul_arena_start(size_t chunk_bytes);

/*
 * Returns size bytes (not 0) of memory at a multiple of align, a power of two; NULL: there is no
 * memory. zero: the bytes are zero; bytes that are already zero are not touched. grows: the
 * allocation has just been reallocated, so leave room behind it. That room costs only addresses
 * until it is touched.
 */
void *qcul_arena_alloc(size_t size, size_t align, bool zero, bool grows);

/* Bytes of the allocation that begins at p; 0: no allocation begins there. */
size_t qcul_arena_size(const void *p);
/* False: no allocation begins at p. */
bool qcul_arena_free(void *p);
/* Resizes the allocation at p in place to size bytes (not 0). False: it is better to move it. */
bool qcul_arena_resize(void *p, size_t size);

/* Whether a command can take [addr, addr + len) as one piece of chunk memory. */
bool qcul_arena_holds(const void *addr, size_t len);

/* Between these two calls, malloc and free work in the thread that forks, but change no mappings.
 */
void qcul_arena_before_fork(void);
void qcul_arena_after_fork(bool child);
/* True in the thread that forks, between the two calls above. */
bool qcul_arena_in_fork(void);

#endif

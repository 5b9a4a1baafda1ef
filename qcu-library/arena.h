/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Chunk memory in pieces, for malloc. malloc_hook.c says when it is used, arena.c how it works. */
#ifndef QCUL_ARENA_H
#define QCUL_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* A session is there. Mappings of an earlier one, the parent's, can be freed but not used anew. */
void qcul_arena_start(size_t chunk_bytes);

/*
 * Memory of size bytes (not 0) at a multiple of align, a power of two; NULL: there is none.
 * zero: its bytes are zero, without touching what is so already. grows: it has just been
 * reallocated, so leave room behind it, which is addresses only until it is touched.
 */
void *qcul_arena_alloc(size_t size, size_t align, bool zero, bool grows);

/* Bytes of the allocation that begins at p; 0: none does. */
size_t qcul_arena_size(const void *p);
/* False: no allocation begins at p. */
bool qcul_arena_free(void *p);
/* Makes the allocation at p size bytes (not 0) long where it is. False: better somewhere else. */
bool qcul_arena_resize(void *p, size_t size);

/* Whether a command can take [addr, addr + len) as one piece of chunk memory. */
bool qcul_arena_holds(const void *addr, size_t len);

/* Between these, malloc and free work in the thread that forks, but change no mappings. */
void qcul_arena_before_fork(void);
void qcul_arena_after_fork(bool child);
/* Is this the thread that forks, between these? */
bool qcul_arena_in_fork(void);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The heap while a library works: each piece ends at a page that cannot be used, and cannot be used
 * itself when it has been freed. So what breaks a library's heap is caught where it happens. It is
 * slow, and not for a sanitizer, which has a heap of its own.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/fuzz/libs/fence.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define PAGE  4096ull
#define ARENA (64ull << 30)
#define PAGES (ARENA / PAGE)
#define LIVE  15000u /* pieces at once: the kernel counts mappings */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *at);

static uint8_t *arena;
/* For each page on which a piece begins: its size. */
static uint64_t *sizes;
static _Atomic uint64_t next_page;
static _Atomic uint32_t live;
static _Thread_local bool fenced;

void fuzz_fence(bool on)
{
	if (on && !arena) {
		arena = mmap(NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			     -1, 0);
		sizes = mmap(NULL, PAGES * sizeof(*sizes), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (arena == MAP_FAILED || sizes == MAP_FAILED)
			abort();
	}
	fenced = on;
}

bool fuzz_fence_has(uint64_t address)
{
	return arena && address - (uintptr_t)arena < ARENA;
}

static void *take_piece(size_t size, size_t align)
{
	uint64_t whole = (size + PAGE - 1) / PAGE, from;
	uint8_t *at;

	if (!fenced || align > 64 || live >= LIVE || size > ARENA / 16)
		return NULL;
	from = atomic_fetch_add(&next_page, whole + 2);
	if (from + whole + 2 > PAGES)
		return NULL;
	at = arena + (from + 1) * PAGE;
	if (whole && mprotect(at, whole * PAGE, PROT_READ | PROT_WRITE))
		return NULL;
	live++;
	at += whole * PAGE - ((size + align - 1) & ~(uint64_t)(align - 1));
	sizes[(uint64_t)(at - arena) / PAGE] = size;
	return at;
}

static void give_piece(void *p)
{
	uint8_t *at = p, *first = arena + (uint64_t)(at - arena) / PAGE * PAGE;
	uint64_t size = sizes[(uint64_t)(at - arena) / PAGE];

	mmap(first, (size + PAGE - 1) / PAGE * PAGE + PAGE, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	live--;
}

FUZZ_ENTRY void *malloc(size_t size)
{
	void *at = take_piece(size, 16);

	if (at)
		memset(at, 0xa5, size);
	return at ? at : __libc_malloc(size);
}

FUZZ_ENTRY void *calloc(size_t count, size_t size)
{
	void *at = size && count > SIZE_MAX / size ? NULL : take_piece(count * size, 16);

	return at ? at : __libc_calloc(count, size);
}

FUZZ_ENTRY void free(void *at)
{
	if (at && fuzz_fence_has((uintptr_t)at))
		give_piece(at);
	else
		__libc_free(at);
}

FUZZ_ENTRY void *realloc(void *old, size_t size)
{
	void *at;
	size_t had;

	if (!old || !fuzz_fence_has((uintptr_t)old))
		return __libc_realloc(old, size);
	had = sizes[(uint64_t)((uint8_t *)old - arena) / PAGE];
	at = malloc(size);
	if (!at)
		return NULL;
	memcpy(at, old, had < size ? had : size);
	free(old);
	return at;
}

FUZZ_ENTRY void *memalign(size_t align, size_t size)
{
	void *at = take_piece(size, align < 16 ? 16 : align);

	return at ? at : __libc_memalign(align, size);
}

FUZZ_ENTRY void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

FUZZ_ENTRY int posix_memalign(void **to, size_t align, size_t size)
{
	void *at = memalign(align, size);

	if (at)
		*to = at;
	return at ? 0 : ENOMEM;
}

#else

void fuzz_fence(bool on)
{
	(void)on;
}

bool fuzz_fence_has(uint64_t address)
{
	(void)address;
	return false;
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/* Host memory for device memory that has left the GPU (store.h). */
#include <string.h>
#include <sys/mman.h>

#include "qcu-device/memory/store.h"

#define HUGE_BYTES (2ull << 20)

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + STORE_LEAST - 1) / STORE_LEAST * STORE_LEAST;
}

/* The class of blocks with so many bytes; STORE_CLASSES: none is so large. */
static unsigned int find_class(uint64_t bytes)
{
	unsigned int i = 0;

	while (i < STORE_CLASSES && STORE_LEAST << i < bytes)
		i++;
	return i;
}

/* Huge pages need an address that is a multiple of theirs. */
static void *map_block(uint64_t bytes)
{
	uint64_t more = bytes >= HUGE_BYTES ? HUGE_BYTES : 0, head;
	char *p = mmap(NULL, bytes + more, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (more) {
		head = -(uintptr_t)p % HUGE_BYTES;
		if (head)
			munmap(p, head);
		p += head;
		if (more - head)
			munmap(p + bytes, more - head);
		madvise(p, bytes, MADV_HUGEPAGE);
	}
	/* It is not to be read in a file by others. */
	madvise(p, bytes, MADV_DONTDUMP);
	return p;
}

static void unmap_block(struct store *s, void *p, uint64_t bytes)
{
	s->ops->host_unregister(s->backend, p);
	munmap(p, bytes);
	s->charge(s->charge_ctx, -(int64_t)bytes);
}

static void *new_block(struct store *s, uint64_t bytes)
{
	void *p;

	if (!s->charge(s->charge_ctx, (int64_t)bytes)) {
		store_trim(s, 0);
		if (!s->charge(s->charge_ctx, (int64_t)bytes))
			return NULL;
	}
	p = map_block(bytes);
	if (p && s->ops->host_register(s->backend, p, bytes)) {
		munmap(p, bytes);
		p = NULL;
	}
	if (!p)
		s->charge(s->charge_ctx, -(int64_t)bytes);
	return p;
}

/* Blocks have the size that is asked for: what a store has is what lies in it. */
static void *take_block(void *ctx, uint64_t bytes)
{
	struct store *s = ctx;
	unsigned int i = find_class(bytes);
	struct store_kept **at, *b;

	if (i == STORE_CLASSES)
		return NULL;
	bytes = round_up(bytes);
	pthread_mutex_lock(&s->lock);
	for (at = &s->kept[i]; (b = *at) && b->bytes != bytes;)
		at = &b->next;
	if (b) {
		*at = b->next;
		s->kept_bytes -= bytes;
	}
	pthread_mutex_unlock(&s->lock);
	return b ? (void *)b : new_block(s, bytes);
}

static void give_block(void *ctx, void *p, uint64_t bytes)
{
	struct store *s = ctx;
	unsigned int i = find_class(bytes);
	struct store_kept *b = p;
	bool keep;

	bytes = round_up(bytes);
	pthread_mutex_lock(&s->lock);
	keep = !s->ended;
	if (keep) {
		*b = (struct store_kept){.next = s->kept[i], .bytes = bytes};
		s->kept[i] = b;
		s->kept_bytes += bytes;
	}
	pthread_mutex_unlock(&s->lock);
	if (keep)
		return;
	munmap(p, bytes);
	s->charge(s->charge_ctx, -(int64_t)bytes);
}

void store_trim(struct store *s, unsigned int looks)
{
	struct store_kept **at, *b, *old[STORE_CLASSES] = {NULL};
	uint64_t bytes;
	unsigned int i;

	pthread_mutex_lock(&s->lock);
	for (i = 0; i < STORE_CLASSES; i++) {
		for (at = &s->kept[i]; (b = *at);) {
			if (b->looks++ < looks) {
				at = &b->next;
				continue;
			}
			*at = b->next;
			b->next = old[i];
			old[i] = b;
		}
	}
	pthread_mutex_unlock(&s->lock);
	for (i = 0; i < STORE_CLASSES; i++) {
		while ((b = old[i])) {
			old[i] = b->next;
			bytes = b->bytes;
			unmap_block(s, b, bytes);
			atomic_fetch_sub(&s->kept_bytes, bytes);
		}
	}
}

void store_init(struct store *s, const struct be_ops *ops, struct be *backend,
		bool (*charge)(void *ctx, int64_t bytes), void *ctx)
{
	memset(s, 0, sizeof(*s));
	s->be = (struct be_store){.ctx = s, .take = take_block, .give = give_block};
	s->ops = ops;
	s->backend = backend;
	s->charge = charge;
	s->charge_ctx = ctx;
	pthread_mutex_init(&s->lock, NULL);
}

void store_end(struct store *s)
{
	store_trim(s, 0);
	s->ended = true;
}

void store_fini(struct store *s)
{
	pthread_mutex_destroy(&s->lock);
}

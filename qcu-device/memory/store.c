// SPDX-License-Identifier: GPL-2.0-or-later
/* Where device memory lies that has left the GPU (store.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "qcu-device/base/complain.h"
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

static bool charge_owner(struct store *s, enum store_medium medium, uint64_t bytes)
{
	return s->owner.charge(s->owner.ctx, medium, (int64_t)bytes);
}

static void give_charge_back(struct store *s, enum store_medium medium, uint64_t bytes)
{
	(void)s->owner.charge(s->owner.ctx, medium, -(int64_t)bytes);
}

/* ---- memory ---- */

/* Huge pages need an address that is a multiple of theirs. */
static void *map_memory(uint64_t bytes)
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

static void *map_registered(struct store *s, uint64_t bytes)
{
	void *p = map_memory(bytes);

	if (p && s->ops->host_register(s->backend, p, bytes)) {
		munmap(p, bytes);
		return NULL;
	}
	return p;
}

static void unmap_registered(struct store *s, void *p, uint64_t bytes)
{
	s->ops->host_unregister(s->backend, p);
	munmap(p, bytes);
}

static bool charge_memory(struct store *s, uint64_t bytes)
{
	if (charge_owner(s, STORE_MEMORY, bytes))
		return true;
	store_trim(s, 0);
	return charge_owner(s, STORE_MEMORY, bytes);
}

/* ---- lists ---- */

/* The caller holds the lock. */
static void append_used(struct store *s, struct store_entry *b)
{
	b->next = NULL;
	b->at = s->last;
	*s->last = b;
	s->last = &b->next;
}

static void remove_used(struct store *s, struct store_entry *b)
{
	*b->at = b->next;
	if (b->next)
		b->next->at = b->at;
	else
		s->last = b->at;
}

static struct store_entry *find_kept(struct store *s, uint64_t bytes)
{
	struct store_entry **at = &s->kept[find_class(bytes)], *b;

	while ((b = *at) && b->bytes != bytes)
		at = &b->next;
	if (b) {
		*at = b->next;
		s->kept_bytes -= bytes;
	}
	return b;
}

/* For the next time. */
static void keep_memory(struct store *s, struct store_entry *b)
{
	const unsigned int class = find_class(b->bytes);

	b->looks = 0;
	b->next = s->kept[class];
	s->kept[class] = b;
	s->kept_bytes += b->bytes;
}

/* ---- blocks ---- */

static bool put_onto_gpu(struct store *s, struct store_entry *b)
{
	b->p = s->owner.borrow ? s->owner.borrow(s->owner.ctx, b->bytes) : NULL;
	return b->p;
}

static void leave_gpu(struct store *s, struct store_entry *b)
{
	s->owner.hand_back(s->owner.ctx, b->p, b->bytes);
}

static bool put_into_memory(struct store *s, struct store_entry *b)
{
	if (!charge_memory(s, b->bytes))
		return false;
	b->p = map_registered(s, b->bytes);
	if (!b->p)
		give_charge_back(s, STORE_MEMORY, b->bytes);
	return b->p;
}

/* The backend is closed, or about to be: nothing is registered any more. */
static void leave_memory(struct store *s, struct store_entry *b)
{
	munmap(b->p, b->bytes);
	give_charge_back(s, STORE_MEMORY, b->bytes);
}

/* The block gets a number there. It is not written yet. */
static bool put_into_file(struct store *s, struct store_entry *b)
{
	bool ok;

	if (s->file.fd < 0 || !charge_owner(s, STORE_FILE, b->bytes))
		return false;
	pthread_mutex_lock(&s->lock);
	ok = store_file_take(&s->file, &b->number);
	pthread_mutex_unlock(&s->lock);
	if (!ok)
		give_charge_back(s, STORE_FILE, b->bytes);
	return ok;
}

static void leave_file(struct store *s, struct store_entry *b)
{
	/* At the end the whole file goes. */
	if (!s->ended)
		store_file_drop(&s->file, b->number, b->bytes);
	pthread_mutex_lock(&s->lock);
	store_file_give(&s->file, b->number);
	pthread_mutex_unlock(&s->lock);
	give_charge_back(s, STORE_FILE, b->bytes);
}

/* In the order in which they are used. put: false if there is no room. */
static const struct {
	bool (*put)(struct store *s, struct store_entry *b);
	void (*leave)(struct store *s, struct store_entry *b);
} media[STORE_MEDIA] = {
	[STORE_GPU] = {put_onto_gpu, leave_gpu},
	[STORE_MEMORY] = {put_into_memory, leave_memory},
	[STORE_FILE] = {put_into_file, leave_file},
};

static struct store_entry *find_kept_block(struct store *s, uint64_t bytes)
{
	struct store_entry *b;

	pthread_mutex_lock(&s->lock);
	b = find_kept(s, bytes);
	pthread_mutex_unlock(&s->lock);
	return b;
}

static struct store_entry *new_block(struct store *s, uint64_t bytes)
{
	struct store_entry *b = calloc(1, sizeof(*b)), *kept;

	if (!b)
		return NULL;
	b->bytes = bytes;
	for (; b->medium < STORE_MEDIA; b->medium++) {
		kept = b->medium == STORE_MEMORY ? find_kept_block(s, bytes) : NULL;
		if (!kept && media[b->medium].put(s, b))
			return b;
		if (kept) {
			free(b);
			return kept;
		}
	}
	free(b);
	return NULL;
}

/* Blocks have the size that is asked for: what a store has is what lies in it. */
static void *take_block(void *ctx, uint64_t bytes)
{
	struct store *s = ctx;
	struct store_entry *b;

	if (find_class(bytes) == STORE_CLASSES)
		return NULL;
	b = new_block(s, round_up(bytes));
	if (b && b->medium == STORE_MEMORY) {
		pthread_mutex_lock(&s->lock);
		append_used(s, b);
		pthread_mutex_unlock(&s->lock);
	}
	return b;
}

static void give_block(void *ctx, void *block, uint64_t bytes)
{
	struct store *s = ctx;
	struct store_entry *b = block;
	bool keep;

	(void)bytes;
	pthread_mutex_lock(&s->lock);
	if (b->moving) {
		b->given = true;
		pthread_mutex_unlock(&s->lock);
		return;
	}
	keep = b->medium == STORE_MEMORY;
	if (keep)
		remove_used(s, b);
	keep = keep && !s->ended;
	if (keep)
		keep_memory(s, b);
	pthread_mutex_unlock(&s->lock);
	if (keep)
		return;
	media[b->medium].leave(s, b);
	free(b);
}

/* ---- the file ---- */

static bool open_window(struct store *s)
{
	s->window_looks = 0;
	if (!s->window)
		s->window = map_registered(s, BE_PIECE);
	return s->window;
}

static void *block_at(void *ctx, void *block, bool read, bool *soon)
{
	struct store *s = ctx;
	struct store_entry *b = block;

	*soon = !b->p;
	if (b->medium == STORE_GPU)
		s->owner.moved(s->owner.ctx, STORE_GPU, !read, b->bytes);
	if (b->p)
		return b->p;
	if (!open_window(s)) {
		complain("no memory for what goes to the file of --swap-file, or comes from it");
		return NULL;
	}
	if (!read)
		return s->window;
	if (!store_file_read(&s->file, b->number, s->window, b->bytes, b->sum)) {
		complain("what has left the GPU cannot be read in the file of --swap-file: %s",
			 errno == EBADMSG ? "it has other bytes" : strerror(errno));
		return NULL;
	}
	s->owner.moved(s->owner.ctx, STORE_FILE, false, b->bytes);
	return s->window;
}

static bool write_block(struct store *s, struct store_entry *b, const void *p)
{
	if (!store_file_write(&s->file, b->number, p, b->bytes, &b->sum)) {
		complain("the file of --swap-file cannot be written: %s", strerror(errno));
		return false;
	}
	s->owner.moved(s->owner.ctx, STORE_FILE, true, b->bytes);
	return true;
}

static bool keep_block(void *ctx, void *block)
{
	struct store *s = ctx;
	struct store_entry *b = block;

	return b->p || write_block(s, b, s->window);
}

/* Until it has been written, the block is in memory, and has a number in the file as well. */
static bool copy_to_file(struct store *s, struct store_entry *b)
{
	if (!put_into_file(s, b))
		return false;
	if (write_block(s, b, b->p))
		return true;
	leave_file(s, b);
	return false;
}

bool store_demote(struct store *s)
{
	struct store_entry *memory = calloc(1, sizeof(*memory)), *b;
	bool done, given;

	if (!memory)
		return false;
	pthread_mutex_lock(&s->lock);
	b = s->used;
	if (b)
		b->moving = true;
	pthread_mutex_unlock(&s->lock);
	if (!b) {
		free(memory);
		return false;
	}
	done = copy_to_file(s, b);
	pthread_mutex_lock(&s->lock);
	b->moving = false;
	given = b->given;
	b->given = false;
	if (done) {
		remove_used(s, b);
		memory->p = b->p;
		memory->bytes = b->bytes;
		memory->medium = STORE_MEMORY;
		keep_memory(s, memory);
		b->p = NULL;
		b->medium = STORE_FILE;
	}
	pthread_mutex_unlock(&s->lock);
	if (!done)
		free(memory);
	if (given)
		give_block(s, b, b->bytes);
	return done;
}

/* ---- the store ---- */

void store_trim(struct store *s, unsigned int looks)
{
	struct store_entry **at, *b, *old[STORE_CLASSES] = {NULL};
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
			unmap_registered(s, b->p, b->bytes);
			give_charge_back(s, STORE_MEMORY, b->bytes);
			atomic_fetch_sub(&s->kept_bytes, b->bytes);
			free(b);
		}
	}
}

void *store_take_window(struct store *s, unsigned int looks)
{
	void *p = s->window;

	if (!p || s->window_looks++ < looks)
		return NULL;
	s->window = NULL;
	return p;
}

void store_unmap_window(struct store *s, void *window)
{
	if (window)
		unmap_registered(s, window, BE_PIECE);
}

void store_init(struct store *s, const struct be_ops *ops, struct be *backend,
		const struct store_owner *owner, int fd)
{
	memset(s, 0, sizeof(*s));
	s->be = (struct be_store){.ctx = s,
				  .take = take_block,
				  .at = block_at,
				  .keep = keep_block,
				  .give = give_block};
	s->ops = ops;
	s->backend = backend;
	s->owner = *owner;
	s->last = &s->used;
	store_file_init(&s->file, fd);
	pthread_mutex_init(&s->lock, NULL);
}

void store_end(struct store *s)
{
	store_trim(s, 0);
	store_unmap_window(s, store_take_window(s, 0));
	s->ended = true;
}

void store_fini(struct store *s)
{
	store_file_fini(&s->file);
	pthread_mutex_destroy(&s->lock);
}

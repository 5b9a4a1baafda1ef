// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table behind shares.h. The sequence number of an entry is odd while the entry is being
 * written.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "qcu-device/memory/shares.h"

struct content {
	uint64_t secret[2];
	struct share share;
};
#define WORDS (sizeof(struct content) / sizeof(uint64_t))
_Static_assert(sizeof(struct content) % sizeof(uint64_t) == 0, "whole words");

struct slot {
	_Atomic uint64_t seq;
	_Atomic uint64_t word[WORDS];
};

struct part {
	_Atomic uint32_t used; /* no slot from this index on holds anything */
	struct slot slot[SHARES_EACH];
};

struct shares {
	struct part part[QCU_MAX_SESSIONS + 1]; /* by session */
};

struct shares *shares_new(int fd)
{
	int flags = MAP_SHARED | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0);
	void *p;

	if (fd >= 0 && ftruncate(fd, sizeof(struct shares)))
		return NULL;
	p = mmap(NULL, sizeof(struct shares), PROT_READ | PROT_WRITE, flags, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

void shares_free(struct shares *s)
{
	if (s)
		munmap(s, sizeof(*s));
}

static void store(struct slot *slot, const struct content *c)
{
	uint64_t word[WORDS];
	/* If a writer died in the middle, the number is odd. */
	uint64_t seq = atomic_load(&slot->seq) | 1;
	size_t i;

	memcpy(word, c, sizeof(word));
	/* Pairs with load(): a reader that sees one of the new words also sees this number. */
	atomic_store(&slot->seq, seq);
	atomic_thread_fence(memory_order_seq_cst);
	for (i = 0; i < WORDS; i++)
		atomic_store_explicit(&slot->word[i], word[i], memory_order_relaxed);
	atomic_store_explicit(&slot->seq, seq + 1, memory_order_release);
}

/* False: the entry is being written. */
static bool load(struct slot *slot, struct content *c)
{
	uint64_t word[WORDS], seq = atomic_load_explicit(&slot->seq, memory_order_acquire);
	size_t i;

	for (i = 0; i < WORDS; i++)
		word[i] = atomic_load_explicit(&slot->word[i], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	memcpy(c, word, sizeof(*c));
	return !(seq & 1) && seq == atomic_load_explicit(&slot->seq, memory_order_relaxed);
}

static bool is_free(struct slot *slot)
{
	struct content c;

	return load(slot, &c) && c.share.kind == SHARE_NONE;
}

bool shares_put(struct shares *s, unsigned int session, const struct share *share,
		struct qcu_ipc_token *token)
{
	struct part *part = &s->part[session];
	struct content c = {.share = *share};
	uint32_t i;

	for (i = 0; i < SHARES_EACH && !is_free(&part->slot[i]); i++)
		;
	if (i == SHARES_EACH ||
	    getrandom(c.secret, sizeof(c.secret), 0) != (ssize_t)sizeof(c.secret))
		return false;
	if (atomic_load(&part->used) <= i)
		atomic_store(&part->used, i + 1);
	store(&part->slot[i], &c);
	*token = (struct qcu_ipc_token){.slot = session * SHARES_EACH + i};
	memcpy(token->secret, c.secret, sizeof(c.secret));
	return true;
}

void shares_drop(struct shares *s, unsigned int session, const struct qcu_ipc_token *token)
{
	static const struct content nothing;

	if (token->slot / SHARES_EACH == session)
		store(&s->part[session].slot[token->slot % SHARES_EACH], &nothing);
}

void shares_end(struct shares *s, unsigned int session)
{
	static const struct content nothing;
	struct part *part = &s->part[session];
	uint32_t i, used = atomic_load(&part->used);

	for (i = 0; i < used; i++)
		store(&part->slot[i], &nothing);
	atomic_store(&part->used, 0);
}

bool shares_find(struct shares *s, const struct qcu_ipc_token *token, struct share *share,
		 unsigned int *session)
{
	struct content c;

	*session = token->slot / SHARES_EACH;
	if (*session > QCU_MAX_SESSIONS || token->rsvd)
		return false;
	/* An entry that is being written will have another token, or none. */
	if (!load(&s->part[*session].slot[token->slot % SHARES_EACH], &c))
		return false;
	/* Compare the whole secret, so that the time that this takes tells nothing. */
	if (c.share.kind == SHARE_NONE ||
	    ((c.secret[0] ^ token->secret[0]) | (c.secret[1] ^ token->secret[1])))
		return false;
	*share = c.share;
	return true;
}

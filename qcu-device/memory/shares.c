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

struct share_slot {
	_Atomic uint64_t opened; /* sessions that have the memory open, a bit for each */
	_Atomic uint64_t seq;
	_Atomic uint64_t word[WORDS];
};

struct session_shares {
	_Atomic uint32_t used; /* no slot from this index on holds anything */
	_Atomic uint32_t left; /* not 0: some slots may hold a share of kind SHARE_LEFT */
	struct share_slot slot[SHARES_EACH];
};

struct shares {
	struct session_shares sessions[QCU_MAX_SESSIONS + 1]; /* by session */
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

static void write_content(struct share_slot *slot, const struct content *c)
{
	uint64_t word[WORDS];
	/* If a writer died in the middle, the number is odd. */
	uint64_t seq = atomic_load(&slot->seq) | 1;
	size_t i;

	memcpy(word, c, sizeof(word));
	/* Pairs with read_content(): a reader that sees one of the new words also sees this number.
	 */
	atomic_store(&slot->seq, seq);
	atomic_thread_fence(memory_order_seq_cst);
	for (i = 0; i < WORDS; i++)
		atomic_store_explicit(&slot->word[i], word[i], memory_order_relaxed);
	atomic_store_explicit(&slot->seq, seq + 1, memory_order_release);
}

/* False: the entry is being written. */
static bool read_content(struct share_slot *slot, struct content *c)
{
	uint64_t word[WORDS], seq = atomic_load_explicit(&slot->seq, memory_order_acquire);
	size_t i;

	for (i = 0; i < WORDS; i++)
		word[i] = atomic_load_explicit(&slot->word[i], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	memcpy(c, word, sizeof(*c));
	return !(seq & 1) && seq == atomic_load_explicit(&slot->seq, memory_order_relaxed);
}

static bool is_free(struct share_slot *slot)
{
	struct content c;

	return read_content(slot, &c) &&
	       (c.share.kind == SHARE_NONE || c.share.kind == SHARE_LEFT) &&
	       !atomic_load(&slot->opened);
}

_Static_assert(QCU_MAX_SESSIONS < 64, "a word has a bit for each session");

static uint64_t bit(unsigned int session)
{
	return 1ull << session;
}

/*
 * Ends what the slot holds. First it cannot be opened any more; then this looks who has opened it.
 * Who opens first says so, and then looks whether it is there.
 */
static bool empty(struct session_shares *own, struct share_slot *slot)
{
	static const struct content nothing;
	struct content c = nothing, old;
	bool memory;

	/*
	 * A writer may have died in the middle. If the memory is open, that was here, and these
	 * words were not about to change.
	 */
	(void)read_content(slot, &old);
	memory = old.share.kind == SHARE_MEMORY || old.share.kind == SHARE_PHYS ||
		 old.share.kind == SHARE_LEFT;
	if (memory) {
		c.share.kind = SHARE_LEFT;
		c.share.device = old.share.device;
		c.share.charged = old.share.charged;
	}
	write_content(slot, &c);
	if (memory && atomic_load(&slot->opened)) {
		atomic_store(&own->left, 1);
		return false;
	}
	write_content(slot, &nothing);
	return true;
}

bool shares_put(struct shares *s, unsigned int session, const struct share *share,
		struct qcu_ipc_token *token)
{
	struct session_shares *own = &s->sessions[session];
	struct content c = {.share = *share};
	uint32_t i;

	for (i = 0; i < SHARES_EACH && !is_free(&own->slot[i]); i++)
		;
	if (i == SHARES_EACH ||
	    getrandom(c.secret, sizeof(c.secret), 0) != (ssize_t)sizeof(c.secret))
		return false;
	if (atomic_load(&own->used) <= i)
		atomic_store(&own->used, i + 1);
	write_content(&own->slot[i], &c);
	*token = (struct qcu_ipc_token){.slot = session * SHARES_EACH + i};
	memcpy(token->secret, c.secret, sizeof(c.secret));
	return true;
}

void shares_drop(struct shares *s, unsigned int session, const struct qcu_ipc_token *token)
{
	struct session_shares *own = &s->sessions[session];

	if (token->slot / SHARES_EACH == session)
		empty(own, &own->slot[token->slot % SHARES_EACH]);
}

static struct share_slot *slot_of_token(struct shares *s, const struct qcu_ipc_token *token)
{
	unsigned int session = token->slot / SHARES_EACH;

	return session > QCU_MAX_SESSIONS ? NULL
					  : &s->sessions[session].slot[token->slot % SHARES_EACH];
}

void shares_opening(struct shares *s, unsigned int session, const struct qcu_ipc_token *token)
{
	struct share_slot *slot = slot_of_token(s, token);

	if (slot)
		atomic_fetch_or(&slot->opened, bit(session));
}

void shares_closed(struct shares *s, unsigned int session, const struct qcu_ipc_token *token)
{
	struct share_slot *slot = slot_of_token(s, token);

	if (slot)
		atomic_fetch_and(&slot->opened, ~bit(session));
}

uint64_t shares_left(struct shares *s, unsigned int device, unsigned int session)
{
	uint64_t sum = 0, who = session == SHARES_ALL ? UINT64_MAX : bit(session);
	struct content c;
	uint32_t i, k, used;

	for (i = 0; i <= QCU_MAX_SESSIONS; i++) {
		struct session_shares *own = &s->sessions[i];

		used = atomic_load(&own->left) ? atomic_load(&own->used) : 0;
		for (k = 0; k < used && k < SHARES_EACH; k++)
			if (atomic_load(&own->slot[k].opened) & who &&
			    read_content(&own->slot[k], &c) && c.share.kind == SHARE_LEFT &&
			    c.share.device == device)
				sum += c.share.charged;
	}
	return sum;
}

void shares_end(struct shares *s, unsigned int session)
{
	uint32_t i, k, used, kept = 0;

	/* What the session had opened is closed. */
	for (i = 0; i <= QCU_MAX_SESSIONS; i++) {
		used = atomic_load(&s->sessions[i].used);
		for (k = 0; k < used && k < SHARES_EACH; k++)
			atomic_fetch_and(&s->sessions[i].slot[k].opened, ~bit(session));
	}
	used = atomic_load(&s->sessions[session].used);
	for (i = 0; i < used && i < SHARES_EACH; i++)
		if (!empty(&s->sessions[session], &s->sessions[session].slot[i]))
			kept = i + 1;
	atomic_store(&s->sessions[session].used, kept);
	if (!kept)
		atomic_store(&s->sessions[session].left, 0);
}

bool shares_find(struct shares *s, const struct qcu_ipc_token *token, struct share *share,
		 unsigned int *session)
{
	struct content c;

	*session = token->slot / SHARES_EACH;
	if (*session > QCU_MAX_SESSIONS || token->rsvd)
		return false;
	/* An entry that is being written will have another token, or none. */
	if (!read_content(&s->sessions[*session].slot[token->slot % SHARES_EACH], &c))
		return false;
	/* Compare the whole secret, so that the time that this takes tells nothing. */
	if (c.share.kind == SHARE_NONE || c.share.kind == SHARE_LEFT ||
	    ((c.secret[0] ^ token->secret[0]) | (c.secret[1] ^ token->secret[1])))
		return false;
	*share = c.share;
	return true;
}

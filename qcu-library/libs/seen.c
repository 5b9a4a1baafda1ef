// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Remembers the calls that a library has accepted, and answers that it has given.
 *
 * The accepted calls are a set of hashes. A call that is not in the set waits for the library's
 * answer, so a lost entry only costs a wait. A false hit needs two calls with the same 64 bits. Its
 * only effect is that the status of a wrong call comes with a later call.
 */
#include <string.h>

#include "qcu-library/libs/impl.h"

#define SETS 2048u
#define WAYS 4u

#define ANSWERS 1024u
#define WORDS	8u

static struct {
	_Atomic uint64_t set[SETS][WAYS];
	/*
	 * An answer of some words. Its key is the call's hash, mixed with all words: so words that
	 * two threads have written at the same time are those of no call, and nobody needs a lock.
	 */
	struct {
		_Atomic uint64_t key, words[WORDS];
	} answers[ANSWERS];
} process;

bool qcul_lib_seen(uint64_t hash)
{
	_Atomic uint64_t *way = process.set[hash % SETS];
	unsigned int i;

	for (i = 0; i < WAYS; i++)
		if (atomic_load_explicit(&way[i], memory_order_relaxed) == hash)
			return true;
	return false;
}

void qcul_lib_see(uint64_t hash)
{
	_Atomic uint64_t *way = process.set[hash % SETS];
	unsigned int i;

	for (i = WAYS - 1; i; i--)
		atomic_store_explicit(&way[i],
				      atomic_load_explicit(&way[i - 1], memory_order_relaxed),
				      memory_order_relaxed);
	atomic_store_explicit(&way[0], hash, memory_order_relaxed);
}

static uint64_t key_of(uint64_t hash, const uint64_t *words)
{
	unsigned int i;

	for (i = 0; i < WORDS; i++)
		qcul_lib_mix(&hash, words[i]);
	return hash;
}

bool qcul_lib_recall(uint64_t hash, const struct qcul_pack *p)
{
	uint64_t words[WORDS], key;
	unsigned int i, at = 0;

	key = atomic_load(&process.answers[hash % ANSWERS].key);
	for (i = 0; i < WORDS; i++)
		words[i] = atomic_load(&process.answers[hash % ANSWERS].words[i]);
	if (!key || key != key_of(hash, words) || p->outs > sizeof(words))
		return false;
	for (i = 0; i < p->out_count; i++) {
		memcpy(p->out[i].to, (unsigned char *)words + at, p->out[i].len);
		at += p->out[i].padded;
	}
	return true;
}

void qcul_lib_remember(uint64_t hash, const struct qcul_pack *p)
{
	uint64_t words[WORDS] = {0};
	unsigned int i, at = 0;

	if (p->outs > sizeof(words))
		return;
	for (i = 0; i < p->out_count; i++) {
		memcpy((unsigned char *)words + at, p->out[i].to, p->out[i].len);
		at += p->out[i].padded;
	}
	for (i = 0; i < WORDS; i++)
		atomic_store(&process.answers[hash % ANSWERS].words[i], words[i]);
	atomic_store(&process.answers[hash % ANSWERS].key, key_of(hash, words));
}

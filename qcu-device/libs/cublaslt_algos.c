// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The algorithms of cuBLASLt. An algorithm consists of 64 bytes, which the library does not check.
 * So the library only gets algorithms that it has made itself, in this session. There are two
 * tables. If the young one is full, the old one is emptied and takes its place. An algorithm that
 * is used moves to the young table. So a program may try any number of algorithms, and those that
 * it uses stay.
 */
#include <pthread.h>
#include <string.h>

#include "qcu-device/libs/cublaslt.h"
#include "qcu-device/libs/impl.h"

#define SLOTS (2 * LIB_ALGOS)

typedef struct {
	uint64_t word[8];
} algo_t;
_Static_assert(sizeof(algo_t) == sizeof(cublasLtMatmulAlgo_t), "an algorithm");

struct algo_table {
	uint32_t count;
	uint32_t slot[SLOTS]; /* 1 more than the algorithm's index; 0: none */
	algo_t algo[LIB_ALGOS];
};

struct lib_algos {
	unsigned int young;
	struct algo_table table[2];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Where it is, or would be. */
static uint32_t *slot_of_algo(struct algo_table *t, const algo_t *a)
{
	uint64_t hash = 0xcbf29ce484222325ull;
	unsigned int i;

	for (i = 0; i < 8; i++)
		hash = (hash ^ a->word[i]) * 0x9e3779b97f4a7c15ull;
	hash ^= hash >> 32;
	for (;; hash++) {
		uint32_t *slot = &t->slot[hash % SLOTS];

		if (!*slot || !memcmp(&t->algo[*slot - 1], a, sizeof(*a)))
			return slot;
	}
}

static void add_algo(struct lib_algos *all, const algo_t *a)
{
	struct algo_table *t = &all->table[all->young];
	uint32_t *slot = slot_of_algo(t, a);

	if (*slot)
		return;
	if (t->count == LIB_ALGOS) {
		all->young = !all->young;
		t = &all->table[all->young];
		t->count = 0;
		memset(t->slot, 0, sizeof(t->slot));
		slot = slot_of_algo(t, a);
	}
	t->algo[t->count] = *a;
	*slot = ++t->count;
}

void lib_algo_made(struct lib_call *c, const void *algo)
{
	struct lib_algos *all;
	algo_t a;

	memcpy(&a, algo, sizeof(a));
	pthread_mutex_lock(&lock);
	all = lib_own(c, sizeof(*all));
	if (all)
		add_algo(all, &a);
	pthread_mutex_unlock(&lock);
	if (!all)
		c->rc = QCU_ERR_MemoryAllocation;
}

bool lib_repeats(uint16_t library, uint16_t function)
{
	static const char *const makers[] = {"cublasLtMatmulAlgoGetHeuristic",
					     "cublasLtMatmulAlgoInit",
					     "cublasLtMatmulAlgoConfigSetAttribute"};
	size_t i;

	if (library != QCU_LIB_CUBLASLT || function >= lib_cublaslt.count)
		return false;
	for (i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
		if (!strcmp(lib_cublaslt.functions[function].name, makers[i]))
			return true;
	return false;
}

bool lib_needs_handle(uint16_t function)
{
	return strcmp(lib_cublaslt.functions[function].name,
		      "cublasLtMatmulAlgoConfigSetAttribute");
}

bool lib_algo_known(struct lib_call *c, const void *algo)
{
	struct lib_algos *all;
	bool known = false;
	algo_t a;

	memcpy(&a, algo, sizeof(a));
	pthread_mutex_lock(&lock);
	all = lib_own(c, sizeof(*all));
	if (all && *slot_of_algo(&all->table[all->young], &a)) {
		known = true;
	} else if (all && *slot_of_algo(&all->table[!all->young], &a)) {
		known = true;
		add_algo(all, &a);
	}
	pthread_mutex_unlock(&lock);
	return known;
}

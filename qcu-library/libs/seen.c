// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which calls a library has accepted: a set of hashes. A call that is not in the set waits for the
 * library's answer, so an entry that is lost costs a wait, and no more. A wrong hit needs two calls
 * with the same 64 bits, and costs the status of a wrong call: it then comes with a later call.
 */
#include "qcu-library/libs/impl.h"

#define SETS 2048u
#define WAYS 4u

static _Atomic uint64_t set[SETS][WAYS];

bool qcul_lib_seen(uint64_t hash)
{
	_Atomic uint64_t *way = set[hash % SETS];
	unsigned int i;

	for (i = 0; i < WAYS; i++)
		if (atomic_load_explicit(&way[i], memory_order_relaxed) == hash)
			return true;
	return false;
}

void qcul_lib_see(uint64_t hash)
{
	_Atomic uint64_t *way = set[hash % SETS];
	unsigned int i;

	for (i = WAYS - 1; i; i--)
		atomic_store_explicit(&way[i],
				      atomic_load_explicit(&way[i - 1], memory_order_relaxed),
				      memory_order_relaxed);
	atomic_store_explicit(&way[0], hash, memory_order_relaxed);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sums of what is in device memory, as memory/ahead.h has them, without copying it. */
#ifndef QCU_SUMS_H
#define QCU_SUMS_H

#include <stdbool.h>
#include <stdint.h>

struct be_wanted;
struct mirror;
struct sums;

/* The most pieces of AHEAD_BYTES in one call. */
#define SUMS_MOST 256u

struct piece_sum {
	uint64_t sum;
	uint64_t any; /* 0: all of its bytes are */
};

/*
 * kernel: the GPU computes them; else this processor does, from a copy. NULL: it is not possible.
 * The first use of a kernel takes long, so this does it.
 */
struct sums *sums_new(struct mirror *m, unsigned int device, bool kernel);
void sums_free(struct mirror *m, struct sums *s);
/*
 * For each piece of [addr, addr + len), of which the last one may be shorter. Nothing writes there.
 * Returns a value of enum qcu_error.
 */
int sums_of(struct mirror *m, const struct sums *s, unsigned int device, uint64_t addr,
	    uint64_t len, struct piece_sum *out);
/*
 * The sums of memory of any size, which is given to `take` in parts, each with the sums of its
 * pieces. False: there are none, or `take` has said so.
 */
bool sums_in_parts(struct mirror *m, const struct sums *s, const struct be_wanted *memory,
		   bool (*take)(void *arg, const struct be_wanted *part,
				const struct piece_sum *sum),
		   void *arg);

#endif

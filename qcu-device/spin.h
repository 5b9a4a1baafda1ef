/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long to look for something that may come soon, before sleeping for it: about as long as it
 * took lately. What comes within the longest time worth it makes the next look long enough, what
 * does not halves it, down to nothing; the first that would have been seen brings it back.
 */
#ifndef QCU_SPIN_H
#define QCU_SPIN_H

#include <stdint.h>

#define SPIN_DEFAULT_US 50u
#define SPIN_MAX_US	10000u

struct spin {
	uint64_t max_ns; /* 0: never */
	uint64_t now_ns;
};

/* Never on a machine with one processor: whoever is waited for may need it. */
void spin_init(struct spin *s, unsigned int max_us);

/* What was waited for has come, so long after the wait began. */
void spin_came(struct spin *s, uint64_t after_ns);

uint64_t spin_clock(void);

static inline void spin_pause(void)
{
	__builtin_ia32_pause();
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long to look for something that may come soon, before sleeping for it: as long as it is worth
 * at most, while that pays. What comes later than that halves the time, down to 20 us, which costs
 * no more than the waking up before it; the first that would have been seen brings it back.
 *
 * A wait that ends with waking up takes longer for that, so the longest time is to be more than
 * what is waited for takes and waking up together: else who sleeps once would sleep ever after.
 */
#ifndef QCU_SPIN_H
#define QCU_SPIN_H

#include <stdint.h>

#define SPIN_MAX_US 10000u

struct spin {
	uint64_t max_ns; /* 0: never */
	uint64_t now_ns;
};

/*
 * The longest time that is worth it for a mirror. Three look at once: the thread that takes
 * commands, the one that carries them out, and the guest for the answer. Where they have not a
 * processor each, and one to spare, they keep each other from work.
 */
unsigned int spin_default_us(void);

/* Processors that this process may use; 1: or it is not known. */
unsigned int spin_cpus(void);

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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long to poll for something that may come soon, before sleeping. As long as polling pays, the
 * time is max_ns. Whatever comes later than max_ns halves the time, down to 20 us; polling that
 * long costs no more than the wake-up before it. The first thing that comes within max_ns brings
 * the full time back.
 *
 * A wait that ends with a wake-up is longer by that wake-up. So max_ns must be more than the time
 * of the work and of the wake-up together. Otherwise a thread that sleeps once would always sleep.
 */
#ifndef QCU_SPIN_H
#define QCU_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_MAX_US 1000000u

struct spin {
	uint64_t max_ns; /* 0: never poll */
	uint64_t now_ns;
};

/*
 * The longest time that pays for a mirror: a wake-up takes 15 to 40 us, which is little beside
 * 2 ms, and a tenth of the time in which the GPU copies 16 MiB. Three threads poll at once: the one
 * that takes commands, the one that carries them out, and the guest's, for the answer. If they do
 * not have a processor each, and one to spare, they keep each other from work.
 */
unsigned int spin_default_us(void);

/* The number of processors that this process may use. 1 also if it is not known. */
unsigned int spin_cpus(void);

/* On a machine with one processor nothing is polled: the thread that is waited for may need it. */
void spin_init(struct spin *s, unsigned int max_us);

/* What the caller waited for has come, `after_ns` after the wait began. */
void spin_came(struct spin *s, uint64_t after_ns);

uint64_t spin_clock(void);

/*
 * May a thread that has polled since `began` go on, for ns in all? One that has polled for long
 * first offers its processor to others.
 */
bool spin_more(uint64_t began, uint64_t ns);

static inline void spin_pause(void)
{
	__builtin_ia32_pause();
}

#endif

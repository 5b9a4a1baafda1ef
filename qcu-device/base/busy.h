/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long, and what part of the time, each session keeps a GPU busy. A backend that runs the work
 * itself says when it begins and ends (struct busy_time, in memory that the mirrors of a VM share).
 * For others the main process asks NVML (sensors.h).
 *
 * A mirror writes only its own session's time. What other mirrors wrote is not believed beyond what
 * is possible: no session is busy for longer than the clock has run.
 */
#ifndef QCU_BUSY_H
#define QCU_BUSY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/qcucmd.h"

enum busy_kind { BUSY_KERNELS, BUSY_COPIES, BUSY_KINDS };

/* The microseconds of the clock that all processes have. */
uint64_t busy_now(void);

/*
 * The time in which at least one piece of work ran. One number, so that a reader never sees half of
 * a change: while work runs, the time at which it would have begun if all had been without a pause,
 * and 1 in the last bit; else the sum, and 0 there.
 */
struct busy_time {
	_Atomic uint64_t v;
};
void busy_begin(struct busy_time *t, uint64_t now);
void busy_end(struct busy_time *t, uint64_t now);
/* The sum until now, in microseconds. */
uint64_t busy_spent(const struct busy_time *t, uint64_t now);

/* In percent of the time. */
struct busy_percent {
	uint8_t of[BUSY_KINDS];
};

/* Who reads how busy a GPU is keeps what the last question found. */
#define BUSY_SESSIONS (QCU_MAX_SESSIONS + 1)
struct busy_meter {
	uint64_t from;	/* since when it measures; 0: it does not */
	uint64_t taken; /* when the shares were measured; 0: never */
	struct {
		uint32_t pid;
		uint64_t spent[BUSY_KINDS];
		struct busy_percent share;
	} session[BUSY_SESSIONS];
};

/* What is read of one session: its program, and its time. */
struct busy_reading {
	uint32_t pid;
	uint64_t spent[BUSY_KINDS];
};

/* A share is measured over at least the first time, and over no more than the second. */
#define BUSY_LEAST_US 160000u
#define BUSY_MOST_US  2000000u

/*
 * Returns whether there are shares of a moment ago. If not, the meter has begun to measure, and the
 * caller asks again.
 */
bool busy_measure(struct busy_meter *m, const struct busy_reading *now_of, uint64_t now);

#endif

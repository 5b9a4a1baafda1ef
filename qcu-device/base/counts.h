/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a session has done so far: what STATS answers and what the metrics show (host/metrics.h).
 * The counts of a session lie in its part of the memory that all processes of the VM share
 * (usage.h). They order nothing, so adding is relaxed: one instruction.
 */
#ifndef QCU_COUNTS_H
#define QCU_COUNTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "include/qcucmd.h"

/*
 * X(NAME, kind, "metric", "labels"). COUNTER: only grows. GAUGE: what there is now. Those without a
 * metric are only for STATS. Lines with the same metric stand together.
 */
/* clang-format off */
#define COUNTS(X) \
	X(H2D_WINDOW, COUNTER, "copied_bytes_total", "direction=\"h2d\",path=\"chunks\"") \
	X(H2D_PAGES,  COUNTER, "copied_bytes_total", "direction=\"h2d\",path=\"pages\"") \
	X(H2D_STAGED, COUNTER, "copied_bytes_total", "direction=\"h2d\",path=\"staged\"") \
	X(D2H_WINDOW, COUNTER, "copied_bytes_total", "direction=\"d2h\",path=\"chunks\"") \
	X(D2H_PAGES,  COUNTER, "copied_bytes_total", "direction=\"d2h\",path=\"pages\"") \
	X(D2H_STAGED, COUNTER, "copied_bytes_total", "direction=\"d2h\",path=\"staged\"") \
	X(D2D,        COUNTER, "copied_bytes_total", "direction=\"d2d\",path=\"device\"") \
	X(MOVED_UP,   COUNTER, "moved_bytes_total", "direction=\"up\"") \
	X(MOVED_DOWN, COUNTER, "moved_bytes_total", "direction=\"down\"") \
	X(SWAP_OUT,   COUNTER, "swapped_bytes_total", "direction=\"out\"") \
	X(SWAP_IN,    COUNTER, "swapped_bytes_total", "direction=\"in\"") \
	X(AWAY,       GAUGE,   "away_bytes", "") \
	X(LENT,       GAUGE,   "lent_bytes", "") \
	X(LENT_OUT,   COUNTER, "swap_gpu_bytes_total", "direction=\"out\"") \
	X(LENT_IN,    COUNTER, "swap_gpu_bytes_total", "direction=\"in\"") \
	X(FILED,      GAUGE,   "filed_bytes", "") \
	X(FILE_OUT,   COUNTER, "swap_file_bytes_total", "direction=\"out\"") \
	X(FILE_IN,    COUNTER, "swap_file_bytes_total", "direction=\"in\"") \
	X(STAYED,     COUNTER, "swap_refusals_total", "") \
	X(COPIES,     COUNTER, "copies_total", "") \
	X(LAUNCHES,   COUNTER, "launches_total", "") \
	X(WAITS,      COUNTER, "waits_total", "") \
	X(ERRORS,     COUNTER, "errors_total", "") \
	X(REGISTERED, GAUGE,   "registered_bytes", "") \
	X(CHUNKS,     GAUGE,   "chunks", "") \
	X(TURNS_US,   COUNTER, NULL, "") \
	X(ROOM_US,    COUNTER, NULL, "") \
	X(H2D,        COUNTER, NULL, "") \
	X(D2H,        COUNTER, NULL, "") \
	X(DEVICE,     GAUGE,   NULL, "")
/* clang-format on */

enum count {
#define X(NAME, kind, metric, labels) COUNT_##NAME,
	COUNTS(X)
#undef X
		COUNT_KINDS
};

struct counts {
	/* Threads that submit write `calls`, lanes write `n`. */
	_Alignas(64) _Atomic uint64_t calls[QCU_OP_COUNT];
	_Alignas(64) _Atomic uint64_t n[COUNT_KINDS];
};

static inline void count_call(struct counts *c, unsigned int op)
{
	atomic_fetch_add_explicit(&c->calls[op], 1, memory_order_relaxed);
}

static inline void count_add(struct counts *c, enum count what, uint64_t n)
{
	atomic_fetch_add_explicit(&c->n[what], n, memory_order_relaxed);
}

static inline void count_sub(struct counts *c, enum count what, uint64_t n)
{
	atomic_fetch_sub_explicit(&c->n[what], n, memory_order_relaxed);
}

static inline uint64_t count_get(const struct counts *c, enum count what)
{
	return atomic_load_explicit(&c->n[what], memory_order_relaxed);
}

static inline uint64_t count_calls(const struct counts *c)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < QCU_OP_COUNT; i++)
		sum += atomic_load_explicit(&c->calls[i], memory_order_relaxed);
	return sum;
}

#endif

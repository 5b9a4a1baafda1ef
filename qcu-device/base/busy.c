// SPDX-License-Identifier: GPL-2.0-or-later
/* How busy sessions keep a GPU (busy.h): the clock of each, and shares of the time. */
#include "qcu-device/base/busy.h"
#include "qcu-device/base/spin.h"

#define RUNS 1u

uint64_t busy_now(void)
{
	return spin_clock() / 1000;
}

uint64_t busy_spent(const struct busy_time *t, uint64_t now)
{
	uint64_t v = atomic_load_explicit(&t->v, memory_order_relaxed), us = v >> 1;

	if (v & RUNS)
		us = us < now ? now - us : 0;
	return us < now ? us : now;
}

void busy_begin(struct busy_time *t, uint64_t now)
{
	uint64_t spent = busy_spent(t, now);

	atomic_store_explicit(&t->v, (now - spent) << 1 | RUNS, memory_order_relaxed);
}

void busy_end(struct busy_time *t, uint64_t now)
{
	atomic_store_explicit(&t->v, busy_spent(t, now) << 1, memory_order_relaxed);
}

static uint8_t percent_of(uint64_t before, uint64_t spent, uint64_t us)
{
	uint64_t more = spent > before ? spent - before : 0;

	return more < us ? (uint8_t)((more * 100 + us / 2) / us) : 100;
}

bool busy_measure(struct busy_meter *m, const struct busy_reading *now_of, uint64_t now)
{
	uint64_t us = now - m->from;
	unsigned int i, kind;
	bool measured = m->from && us >= BUSY_LEAST_US && us <= BUSY_MOST_US;

	if (m->from && us < BUSY_LEAST_US)
		return m->taken && now - m->taken <= BUSY_MOST_US;
	for (i = 0; i < BUSY_SESSIONS; i++) {
		bool same = m->session[i].pid == now_of[i].pid;

		for (kind = 0; kind < BUSY_KINDS; kind++) {
			uint64_t before = same ? m->session[i].spent[kind] : 0;

			if (measured)
				m->session[i].share.of[kind] =
					percent_of(before, now_of[i].spent[kind], us);
			m->session[i].spent[kind] = now_of[i].spent[kind];
		}
		m->session[i].pid = now_of[i].pid;
	}
	m->from = now;
	if (measured)
		m->taken = now;
	return measured;
}

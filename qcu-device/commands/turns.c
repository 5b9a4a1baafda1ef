// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The gate's life (turn.c), and its threads, one for each GPU. When the VM is no longer alone on a
 * GPU, the thread says when the work is done that has no marks.
 */
#define _GNU_SOURCE /* syscall */
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/commands/commands.h"

#define SETTLE_NS 500000   /* how often the thread looks whether the streams are done */
#define CLOSE_NS  100000   /* and whether work is that has no mark at its end */
#define IDLE_NS	  50000000 /* how often it looks for an error that has ended them */

bool mir_streams_done(struct mirror *m, unsigned int device)
{
	bool done = true;
	struct handle *h;
	uint32_t id;

	for (id = 0; done && (h = handles_next(&m->handles, HANDLE_STREAM, &id)); id++) {
		if (h->device == device)
			done = mir_stream_done(m, h->stream);
		handles_put(&m->handles, h);
	}
	return done && mir_stream_done(m, m->cfg.ops->stream_legacy(m->be, device)) &&
	       mir_thread_streams_done(m, device);
}

void mir_turns_await(struct mirror *m, unsigned int device)
{
	uint64_t end = 0;

	while (mir_turn_look_again(m, device, &end) && !mir_streams_done(m, device))
		;
}

/* A context that has had an error marks nothing more. */
static void look_for_error(struct turn_gpu *g)
{
	struct mirror *m = g->m;
	int rc = m->cfg.ops->stream_query(m->be, m->cfg.ops->stream_legacy(m->be, g->device));

	if (!rc || rc == QCU_ERR_NotReady)
		return;
	pthread_mutex_lock(&g->lock);
	mir_turn_unmark(g, rc);
	pthread_mutex_unlock(&g->lock);
}

/* Sleeps until there is something to look at, or the order changes, which was `now`. */
static void sleep_idle(struct turn_gpu *g, uint32_t now)
{
	/* A wake-up may come just before the sleep. */
	const struct timespec idle = {.tv_nsec = now & 1 ? IDLE_NS : IDLE_NS * 10};

	atomic_store(&g->sleeps, true);
	if (!atomic_load(&g->open) && !atomic_load(&g->m->turns.stop))
		syscall(SYS_futex, &mir_turn_orders(g)->measured, FUTEX_WAIT, now, &idle, NULL, 0);
	atomic_store(&g->sleeps, false);
}

static void *settle_main(void *arg)
{
	struct turn_gpu *g = arg;
	struct mirror *m = g->m;
	struct turns_report *r = mir_turn_report(g);
	const _Atomic uint32_t *word = &mir_turn_orders(g)->measured;
	const struct timespec settle = {.tv_nsec = SETTLE_NS}, close = {.tv_nsec = CLOSE_NS};
	bool uses, done;
	uint32_t now;

	while (!atomic_load(&m->turns.stop)) {
		now = atomic_load(word);
		done = true;
		uses = atomic_load(&m->budget.usage->devices) >> g->device & 1;
		pthread_mutex_lock(&m->use[MIR_USER_TURNS].lock);
		if (uses && now & 1 && !m->abandoned) {
			if (atomic_load(&r->settled) != now)
				done = mir_streams_done(m, g->device);
			else if (!atomic_load(&g->open))
				look_for_error(g);
		}
		if (uses && !m->abandoned)
			mir_turn_close_done(g);
		pthread_mutex_unlock(&m->use[MIR_USER_TURNS].lock);
		if (done) {
			atomic_store(&r->settled, now);
			if (!atomic_load(&g->open))
				sleep_idle(g, now);
		}
		if (!done || atomic_load(&g->open))
			nanosleep(atomic_load(&g->open) ? &close : &settle, NULL);
	}
	return NULL;
}

static void begin_gpu(struct turn_gpu *g, struct mirror *m, unsigned int device)
{
	g->m = m;
	g->device = device;
	pthread_mutex_init(&g->lock, NULL);
	memset(mir_turn_report(g), 0, TURNS_PAGE);
	atomic_store(&mir_turn_report(g)->live, 1);
}

void mir_turns_begin(struct mirror *m)
{
	struct turn_gate *t = &m->turns;
	unsigned int gpus = m->cfg.turns.gpus, i;

	if (!m->cfg.turns.orders || !m->cfg.session || m->cfg.session >= TURNS_SESSIONS)
		return;
	if (gpus > m->devices)
		gpus = m->devices;
	t->store = m->cfg.options.store && m->cfg.turns.gpus > m->devices;
	t->gpu = calloc(gpus + t->store, sizeof(*t->gpu));
	if (!t->gpu) {
		complain("no memory to share the GPU by agreement");
		return;
	}
	t->view = m->cfg.turns;
	for (i = 0; i < gpus; i++) {
		begin_gpu(&t->gpu[i], m, i);
		t->gpu[i].running =
			!pthread_create(&t->gpu[i].thread, NULL, settle_main, &t->gpu[i]);
	}
	/* No work is done there, so nobody waits for a turn. */
	if (t->store)
		begin_gpu(&t->gpu[gpus], m, gpus);
	t->gpus = gpus;
}

void mir_turns_stop(struct mirror *m)
{
	unsigned int i;

	atomic_store(&m->turns.stop, true);
	for (i = 0; i < m->turns.gpus; i++)
		mir_turn_wake(&m->turns.gpu[i]);
	pthread_mutex_lock(&m->use[MIR_USER_TURNS].lock);
	pthread_mutex_unlock(&m->use[MIR_USER_TURNS].lock);
}

void mir_turns_fini(struct mirror *m)
{
	struct turn_gate *t = &m->turns;
	unsigned int i;

	mir_turns_stop(m);
	for (i = 0; i < t->gpus + t->store; i++) {
		struct turn_gpu *g = &t->gpu[i];

		if (g->running)
			pthread_join(g->thread, NULL);
		if (g->registered)
			m->cfg.ops->host_unregister(m->be, mir_turn_report(g));
		atomic_store(&mir_turn_report(g)->live, 0);
		pthread_mutex_destroy(&g->lock);
	}
	t->gpus = 0;
	t->store = false;
	free(t->gpu);
}

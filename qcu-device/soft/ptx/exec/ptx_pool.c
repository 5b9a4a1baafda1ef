// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Host threads that help with launches. They live as long as the process, and sleep when there is
 * nothing to do. The thread that launches works too, so a launch never waits for a free helper.
 */
#include <signal.h>
#include <unistd.h>

#include "qcu-device/soft/ptx/exec/ptx_exec.h"

#define MAX_THREADS 256u

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	struct ptx_grid *jobs; /* running launches; g->wanted: helpers that they still want */
	unsigned int threads;
	bool fork_seen;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
	  .work = PTHREAD_COND_INITIALIZER,
	  .idle = PTHREAD_COND_INITIALIZER};

/* The child has none of the threads, and maybe a lock that no thread will unlock. */
static void forked(void)
{
	pthread_mutex_init(&pool.lock, NULL);
	pthread_cond_init(&pool.work, NULL);
	pthread_cond_init(&pool.idle, NULL);
	pool.jobs = NULL;
	pool.threads = 0;
	ptx_block_forked();
}

static struct ptx_grid *take_grid_to_help(void)
{
	for (struct ptx_grid *g = pool.jobs; g; g = g->next)
		if (g->wanted) {
			g->wanted--;
			g->helpers++;
			return g;
		}
	return NULL;
}

static void *help_with_launches(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&pool.lock);
	for (;;) {
		struct ptx_grid *g = take_grid_to_help();

		if (!g) {
			pthread_cond_wait(&pool.work, &pool.lock);
			continue;
		}
		pthread_mutex_unlock(&pool.lock);
		g->work(g);
		pthread_mutex_lock(&pool.lock);
		if (!--g->helpers)
			pthread_cond_broadcast(&pool.idle);
	}
	return NULL;
}

static void start_thread(void)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t t;

	/* Signals belong to the program around the library: helpers block all of them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!pthread_create(&t, &attr, help_with_launches, NULL))
		pool.threads++;
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Runs work(g) in this thread and on up to threads - 1 helpers. Returns when all are done. */
void ptx_pool_run(struct ptx_grid *g, unsigned int threads)
{
	struct ptx_grid **p;

	/* Asking for the number of processors opens a file. */
	if (!threads) {
		long cores = sysconf(_SC_NPROCESSORS_ONLN);

		threads = cores > 0 ? (unsigned int)cores : 1;
	}
	if (threads > MAX_THREADS)
		threads = MAX_THREADS;
	if (threads > g->nblocks)
		threads = (unsigned int)g->nblocks;
	if (threads < 2) {
		g->work(g);
		return;
	}
	pthread_mutex_lock(&pool.lock);
	if (!pool.fork_seen) {
		pthread_atfork(NULL, NULL, forked);
		pool.fork_seen = true;
	}
	while (pool.threads < threads - 1) {
		unsigned int before = pool.threads;

		start_thread();
		if (pool.threads == before)
			break;
	}
	g->wanted = threads - 1;
	g->next = pool.jobs;
	pool.jobs = g;
	pthread_cond_broadcast(&pool.work);
	pthread_mutex_unlock(&pool.lock);

	g->work(g);

	pthread_mutex_lock(&pool.lock);
	for (p = &pool.jobs; *p != g; p = &(*p)->next)
		;
	*p = g->next;
	while (g->helpers)
		pthread_cond_wait(&pool.idle, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
}

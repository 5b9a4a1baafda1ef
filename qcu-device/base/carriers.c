// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Helping threads, see carriers.h. A job is an offer: it stays in the list while it wants more
 * threads. When the first thread returns from the job's function, no work is left to start, so the
 * offer is withdrawn. The caller waits only for the threads that have joined.
 */
#include "qcu-device/base/carriers.h"
#include "qcu-device/base/spin.h"

struct carriers_job {
	void (*fn)(void *arg);
	void *arg;
	unsigned int wanted; /* threads that may still join; 0: not in the list */
	unsigned int at_it;
	TAILQ_ENTRY(carriers_job) link;
};

unsigned int carriers_fit(unsigned int threads)
{
	unsigned int cpus = spin_cpus();

	return threads < cpus ? threads : cpus;
}

void carriers_init(struct carriers *cs, unsigned int max)
{
	*cs = (struct carriers){.max = max < CARRIERS_MAX ? max : CARRIERS_MAX};
	TAILQ_INIT(&cs->jobs);
	pthread_mutex_init(&cs->lock, NULL);
	pthread_cond_init(&cs->more, NULL);
	pthread_cond_init(&cs->left, NULL);
}

void carriers_fini(struct carriers *cs)
{
	unsigned int i;

	pthread_mutex_lock(&cs->lock);
	cs->stop = true;
	pthread_cond_broadcast(&cs->more);
	pthread_mutex_unlock(&cs->lock);
	for (i = 0; i < cs->made; i++)
		pthread_join(cs->thread[i], NULL);
	pthread_cond_destroy(&cs->left);
	pthread_cond_destroy(&cs->more);
	pthread_mutex_destroy(&cs->lock);
}

/* The caller holds the lock. */
static void withdraw(struct carriers *cs, struct carriers_job *job)
{
	if (job->wanted)
		TAILQ_REMOVE(&cs->jobs, job, link);
	job->wanted = 0;
}

/* The caller holds the lock; it is released while fn runs. */
static void help(struct carriers *cs, struct carriers_job *job)
{
	if (!--job->wanted)
		TAILQ_REMOVE(&cs->jobs, job, link);
	job->at_it++;
	pthread_mutex_unlock(&cs->lock);
	job->fn(job->arg);
	pthread_mutex_lock(&cs->lock);
	withdraw(cs, job);
	if (!--job->at_it)
		pthread_cond_broadcast(&cs->left);
}

static void *help_until_stopped(void *arg)
{
	struct carriers *cs = arg;

	pthread_mutex_lock(&cs->lock);
	while (!cs->stop) {
		struct carriers_job *job = TAILQ_FIRST(&cs->jobs);

		if (job) {
			help(cs, job);
			continue;
		}
		cs->idle++;
		pthread_cond_wait(&cs->more, &cs->lock);
		cs->idle--;
	}
	pthread_mutex_unlock(&cs->lock);
	return NULL;
}

/*
 * The caller holds the lock. Creates a thread for each wanted one that is not idle, up to the
 * maximum.
 */
static void make_helpers(struct carriers *cs, unsigned int wanted)
{
	unsigned int idle = cs->idle;

	for (; idle < wanted && cs->made + 1 < cs->max; idle++) {
		if (pthread_create(&cs->thread[cs->made], NULL, help_until_stopped, cs))
			return;
		cs->made++;
	}
}

void carriers_run(struct carriers *cs, unsigned int threads, void (*fn)(void *arg), void *arg)
{
	unsigned int most = threads < cs->max ? threads : cs->max;
	struct carriers_job job = {.fn = fn, .arg = arg, .wanted = most > 1 ? most - 1 : 0};
	unsigned int i;

	if (!job.wanted) {
		fn(arg);
		return;
	}
	pthread_mutex_lock(&cs->lock);
	make_helpers(cs, job.wanted);
	TAILQ_INSERT_TAIL(&cs->jobs, &job, link);
	for (i = 0; i < job.wanted; i++)
		pthread_cond_signal(&cs->more);
	pthread_mutex_unlock(&cs->lock);
	fn(arg);
	pthread_mutex_lock(&cs->lock);
	withdraw(cs, &job);
	while (job.at_it)
		pthread_cond_wait(&cs->left, &cs->lock);
	pthread_mutex_unlock(&cs->lock);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that help others with work which one CPU is too slow for: they are lent out for one job
 * at a time, as many as have nothing to do. A caller never waits for a thread that is busy with
 * another's job, so a job that hangs holds up nobody else's.
 */
#ifndef QCU_CARRIERS_H
#define QCU_CARRIERS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

/*
 * Threads at one job. A CPU of the H200's host copies 7 to 15 GB/s, and four of them about as much
 * as PCIe 5 takes.
 */
#define CARRIERS_DEFAULT 4u
#define CARRIERS_MAX	 8u

TAILQ_HEAD(carriers_jobs, carriers_job);

struct carriers {
	pthread_mutex_t lock; /* what follows */
	pthread_cond_t more, left;
	unsigned int max; /* threads at one job, its caller among them */
	unsigned int made, idle;
	bool stop;
	struct carriers_jobs jobs; /* that take more threads */
	pthread_t thread[CARRIERS_MAX - 1];
};

/* Of that many threads, those that the process has processors for. */
unsigned int carriers_fit(unsigned int threads);

/* No thread is made before a job asks for one. 0 is like 1: nobody ever helps. */
void carriers_init(struct carriers *cs, unsigned int max);
/* No job is under way. */
void carriers_fini(struct carriers *cs);

/*
 * Calls fn(arg) on this thread and, meanwhile, on others, on no more than `threads` in all; returns
 * when all calls have returned. There may be any number of them, down to this thread's alone: each
 * has to go on until nothing is left to be begun.
 */
void carriers_run(struct carriers *cs, unsigned int threads, void (*fn)(void *arg), void *arg);

#endif

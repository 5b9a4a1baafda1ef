/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Carriers: threads that help with work for which one CPU is too slow. Each idle carrier can join
 * one job at a time. A caller never waits for a thread that is busy with another job, so a job that
 * hangs delays no other job.
 */
#ifndef QCU_CARRIERS_H
#define QCU_CARRIERS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

/*
 * Threads per job. A CPU of the H200's host copies 7 to 15 GB/s; four CPUs copy about as much as
 * PCIe 5 can move.
 */
#define CARRIERS_DEFAULT 4u
#define CARRIERS_MAX	 8u

TAILQ_HEAD(carriers_jobs, carriers_job);

struct carriers {
	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t more, left;
	unsigned int max; /* threads per job, including its caller */
	unsigned int made, idle;
	bool stop;
	struct carriers_jobs jobs; /* that want more threads */
	pthread_t thread[CARRIERS_MAX - 1];
};

/* `threads`, or the number of processors of the process if that is lower. */
unsigned int carriers_fit(unsigned int threads);

/* Creates no thread until a job needs one. max 0 means the same as 1: the caller gets no help. */
void carriers_init(struct carriers *cs, unsigned int max);
/* No job may be running. */
void carriers_fini(struct carriers *cs);

/*
 * Calls fn(arg) on this thread and, at the same time, on others: at most `threads` in all. Returns
 * when all calls have returned. There may be fewer calls, down to the one on this thread, so each
 * call must go on until no work is left to start.
 */
void carriers_run(struct carriers *cs, unsigned int threads, void (*fn)(void *arg), void *arg);

#endif

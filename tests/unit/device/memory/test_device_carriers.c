// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Carriers (helping threads): which threads help and which do not, and that no job waits for a busy
 * thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "qcu-device/base/carriers.h"

/* The number of threads that the system still gives. */
static int threads_left;

int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	if (!threads_left)
		return EAGAIN;
	threads_left--;
	return __real_pthread_create(t, attr, fn, arg);
}

/* A job whose threads report when they have come, and stay until they are released. */
struct work {
	sem_t come, go;
	atomic_uint calls, at_it;
	pthread_t caller;
	atomic_bool caller_came;
};

static void begin(struct work *w)
{
	*w = (struct work){.caller = pthread_self()};
	sem_init(&w->come, 0, 0);
	sem_init(&w->go, 0, 0);
}

static void take(sem_t *s, unsigned int n)
{
	while (n)
		if (!sem_wait(s))
			n--;
}

static void give(sem_t *s, unsigned int n)
{
	while (n--)
		sem_post(s);
}

static void stay(void *arg)
{
	struct work *w = arg;

	w->calls++;
	w->at_it++;
	if (pthread_equal(pthread_self(), w->caller))
		w->caller_came = true;
	sem_post(&w->come);
	take(&w->go, 1);
	w->at_it--;
}

static void call(void *arg)
{
	struct work *w = arg;

	w->calls++;
	w->caller_came = pthread_equal(pthread_self(), w->caller);
}

static int init(void **state)
{
	(void)state;
	threads_left = 1000;
	return 0;
}

static void nobody_helps(void **state)
{
	struct carriers cs;
	unsigned int max;
	struct work w;

	(void)state;
	threads_left = 0;
	for (max = 0; max < 2; max++) {
		carriers_init(&cs, max);
		begin(&w);
		carriers_run(&cs, 8, call, &w);
		assert_int_equal(w.calls, 1);
		assert_true(w.caller_came);
		carriers_fini(&cs);
	}
	/* Carriers are allowed, but the job does not want any. */
	threads_left = 1000;
	carriers_init(&cs, 4);
	for (max = 0; max < 2; max++) {
		begin(&w);
		carriers_run(&cs, max, call, &w);
		assert_int_equal(w.calls, 1);
		assert_true(w.caller_came);
	}
	carriers_fini(&cs);
	assert_int_equal(threads_left, 1000);
}

struct run {
	struct carriers *cs;
	unsigned int threads;
	struct work w;
	pthread_t thread;
};

static void *run(void *arg)
{
	struct run *r = arg;

	r->w.caller = pthread_self();
	carriers_run(r->cs, r->threads, stay, &r->w);
	return NULL;
}

/* Begins a job on a thread of its own, and waits until `come` threads work on it. */
static void run_begin(struct run *r, struct carriers *cs, unsigned int threads, unsigned int come)
{
	r->cs = cs;
	r->threads = threads;
	begin(&r->w);
	assert_int_equal(__real_pthread_create(&r->thread, NULL, run, r), 0);
	take(&r->w.come, come);
}

static void run_end(struct run *r, unsigned int calls)
{
	give(&r->w.go, calls);
	pthread_join(r->thread, NULL);
	assert_int_equal(r->w.calls, calls);
	assert_int_equal(r->w.at_it, 0);
	assert_true(r->w.caller_came);
}

/* The job gets only as many threads as the system gives. */
static void few_threads(void **state)
{
	struct carriers cs;
	struct run r;

	(void)state;
	threads_left = 2;
	carriers_init(&cs, 6);
	run_begin(&r, &cs, 6, 3);
	run_end(&r, 3);
	/* Later the system gives more threads. */
	threads_left = 1000;
	run_begin(&r, &cs, 6, 6);
	run_end(&r, 6);
	assert_int_equal(threads_left, 997);
	carriers_fini(&cs);
}

/*
 * All wanted threads come while the job is under way, and no more than are wanted. Threads are made
 * once.
 */
static void all_help(void **state)
{
	static const unsigned int wanted[] = {2, 4, 3, 4, 9, 2};
	struct carriers cs;
	struct run r;
	size_t i;

	(void)state;
	carriers_init(&cs, 4);
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		unsigned int n = wanted[i] < 4 ? wanted[i] : 4;

		run_begin(&r, &cs, wanted[i], n);
		run_end(&r, n);
	}
	assert_int_equal(threads_left, 997);
	carriers_fini(&cs);
	/* Never more than CARRIERS_MAX. */
	threads_left = 1000;
	carriers_init(&cs, 1000);
	run_begin(&r, &cs, 1000, CARRIERS_MAX);
	run_end(&r, CARRIERS_MAX);
	assert_int_equal(threads_left, 1000 - (CARRIERS_MAX - 1));
	carriers_fini(&cs);
}

/*
 * A job that holds all carriers does not hold up other jobs. An offer that no carrier took is not
 * open any more when its job ends.
 */
static void busy(void **state)
{
	struct carriers cs;
	struct run hung;
	struct work w;
	int i;

	(void)state;
	carriers_init(&cs, 4);
	run_begin(&hung, &cs, 4, 4);
	begin(&w);
	for (i = 0; i < 100; i++)
		carriers_run(&cs, 4, call, &w);
	assert_true(w.caller_came);
	assert_int_equal(w.calls, 100);
	run_end(&hung, 4);
	carriers_fini(&cs);
	assert_int_equal(w.calls, 100);
}

/* A carrier that becomes free helps with work under way, the oldest job first. */
static void come_later(void **state)
{
	struct run first, second, third;
	struct carriers cs;

	(void)state;
	carriers_init(&cs, 3);
	run_begin(&first, &cs, 3, 3);
	run_begin(&second, &cs, 2, 1);
	run_begin(&third, &cs, 3, 1);
	assert_int_equal(second.w.at_it, 1);
	assert_int_equal(third.w.at_it, 1);
	run_end(&first, 3);
	take(&second.w.come, 1);
	take(&third.w.come, 1);
	assert_int_equal(second.w.at_it, 2);
	assert_int_equal(third.w.at_it, 2);
	run_end(&third, 2);
	run_end(&second, 2);
	carriers_fini(&cs);
}

#define CALLERS 6
#define ROUNDS	300
#define PARTS	40

/* The parts of the work, and how often each was done, as in a copy. */
struct parts {
	atomic_uint next, done[PARTS];
};

static void do_parts(void *arg)
{
	struct parts *p = arg;
	unsigned int i;

	while ((i = p->next++) < PARTS)
		p->done[i]++;
}

static void *many_jobs(void *arg)
{
	uintptr_t wrong = 0;
	unsigned int round, i;

	for (round = 0; round < ROUNDS; round++) {
		struct parts p = {0};

		carriers_run(arg, 1 + round % 5, do_parts, &p);
		for (i = 0; i < PARTS; i++)
			wrong += p.done[i] != 1;
	}
	return (void *)wrong;
}

static void many_callers(void **state)
{
	pthread_t thread[CALLERS];
	struct carriers cs;
	void *wrong;
	int i;

	(void)state;
	carriers_init(&cs, 4);
	for (i = 0; i < CALLERS; i++)
		assert_int_equal(__real_pthread_create(&thread[i], NULL, many_jobs, &cs), 0);
	for (i = 0; i < CALLERS; i++) {
		pthread_join(thread[i], &wrong);
		assert_ptr_equal(wrong, NULL);
	}
	carriers_fini(&cs);
}

static void fits(void **state)
{
	cpu_set_t all, one;
	int cpu;

	(void)state;
	assert_int_equal(carriers_fit(0), 0);
	assert_int_equal(carriers_fit(1), 1);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(carriers_fit(100000), CPU_COUNT(&all));
	for (cpu = 0; !CPU_ISSET(cpu, &all); cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(carriers_fit(4), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, init)
	static const struct CMUnitTest tests[] = {
		T(nobody_helps), T(few_threads),  T(all_help), T(busy),
		T(come_later),	 T(many_callers), T(fits),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}

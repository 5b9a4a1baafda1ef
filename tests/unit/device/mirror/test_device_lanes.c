// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lanes: order within a guest thread, independence between threads, the end of lanes, and too many
 * threads.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "qcu-device/lanes/lanes.h"

#define TIDS 1000

struct item {
	struct mir_request req;
	pthread_t ran_on;
	sem_t *wait; /* before the item is done */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t next_seq[TIDS + 1];
static unsigned int misordered;
static sem_t finished;

static bool run(void *ctx, struct mir_request *req)
{
	struct item *it = (struct item *)req;

	assert_ptr_equal(ctx, &finished);
	it->ran_on = pthread_self();
	if (it->wait)
		sem_wait(it->wait);
	pthread_mutex_lock(&lock);
	if (next_seq[req->cmd.tid]++ != req->cmd.seq)
		misordered++;
	pthread_mutex_unlock(&lock);
	sem_post(&finished);
	return req->cmd.op == QCU_OP_THREAD_EXIT;
}

static struct lanes *start(void)
{
	struct lanes *l;

	memset(next_seq, 0, sizeof(next_seq));
	misordered = 0;
	sem_init(&finished, 0, 0);
	assert_int_equal(lanes_create(&l, run, NULL, &finished, 20), 0);
	return l;
}

static void submit(struct lanes *l, struct item *it, uint32_t tid, uint32_t seq, uint16_t op)
{
	it->req.cmd.tid = tid;
	it->req.cmd.seq = seq;
	it->req.cmd.op = op;
	assert_int_equal(lanes_submit(l, &it->req), 0);
}

static void wait_for(unsigned int n)
{
	while (n--)
		sem_wait(&finished);
}

/* A lane that blocks does not hold up other lanes or the driver's commands. */
static void independent(void **state)
{
	struct item a = {0}, b = {0}, c = {0}, d = {0};
	struct lanes *l = start();
	sem_t gate;

	(void)state;
	sem_init(&gate, 0, 0);
	a.wait = &gate;
	submit(l, &a, 1, 0, QCU_OP_EVENT_SYNC);
	submit(l, &b, 1, 1, QCU_OP_EVENT_SYNC);
	submit(l, &c, 2, 0, QCU_OP_EVENT_SYNC);
	submit(l, &d, 0, 0, QCU_OP_UNMAP);
	wait_for(2);
	assert_int_equal(next_seq[0], 1);
	assert_int_equal(next_seq[1], 0);
	assert_int_equal(next_seq[2], 1);
	sem_post(&gate);
	wait_for(2);
	assert_int_equal(next_seq[1], 2);
	assert_true(pthread_equal(a.ran_on, b.ran_on));
	assert_false(pthread_equal(a.ran_on, c.ran_on));
	lanes_destroy(l);
	assert_int_equal(misordered, 0);
}

/* Submitted requests are carried out even if the end comes at once. */
static void end_waits(void **state)
{
	static struct item it[500];
	struct lanes *l = start();
	unsigned int i;

	(void)state;
	memset(it, 0, sizeof(it));
	for (i = 0; i < 500; i++)
		submit(l, &it[i], i % 5, i / 5, QCU_OP_INFO);
	lanes_destroy(l);
	for (i = 0; i < 5; i++)
		assert_int_equal(next_seq[i], 100);
	assert_int_equal(misordered, 0);
}

/* A lane that has fallen far behind carries out everything in order, also what comes meanwhile. */
static void far_behind(void **state)
{
	static struct item it[6001];
	unsigned int i, round;
	sem_t gate;

	(void)state;
	sem_init(&gate, 0, 0);
	for (round = 0; round < 20; round++) {
		struct lanes *l = start();

		memset(it, 0, sizeof(it));
		it[0].wait = &gate;
		for (i = 0; i < 3001; i++)
			submit(l, &it[i], 1, i, QCU_OP_INFO);
		sem_post(&gate);
		for (; i < 6001; i++)
			submit(l, &it[i], 1, i, QCU_OP_INFO);
		wait_for(6001);
		assert_int_equal(next_seq[1], 6001);
		assert_int_equal(misordered, 0);
		lanes_destroy(l);
	}
}

/* Requests behind THREAD_EXIT still run, in order. The thread's number may be used again. */
static void thread_exit(void **state)
{
	static struct item it[4000];
	struct lanes *l = start();
	unsigned int i;

	(void)state;
	memset(it, 0, sizeof(it));
	for (i = 0; i < 4000; i++)
		submit(l, &it[i], 1 + i % 7, i / 7, i % 3 ? QCU_OP_INFO : QCU_OP_THREAD_EXIT);
	wait_for(4000);
	lanes_destroy(l);
	assert_int_equal(misordered, 0);
}

/* More guest threads than lanes: all are served, each in order, while other threads come and go. */
static void too_many(void **state)
{
	static struct item it[TIDS * 8];
	struct lanes *l = start();
	unsigned int i, round;

	(void)state;
	memset(it, 0, sizeof(it));
	for (round = 0; round < 8; round++) {
		for (i = 0; i < TIDS; i++)
			submit(l, &it[round * TIDS + i], 1 + i, round,
			       i % 4 == round % 4 ? QCU_OP_THREAD_EXIT : QCU_OP_INFO);
	}
	wait_for(TIDS * 8);
	lanes_destroy(l);
	assert_int_equal(misordered, 0);
	for (i = 1; i <= TIDS; i++)
		assert_int_equal(next_seq[i], 8);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(independent), cmocka_unit_test(end_waits),
		cmocka_unit_test(far_behind),  cmocka_unit_test(thread_exit),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

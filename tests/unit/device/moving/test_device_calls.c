// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program is in a host function again and again when QEMU stops the VM to save it. That is
 * refused, and soon another try finds the program in none.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/device/moving/test_device_moved.h"

/* One is enough, unless the machine takes more than a second for it. */
#define TRIES 10

static int start(void **state)
{
	(void)state;
	start_device(NULL);
	start_queues();
	return fe_open(&fe, 1);
}

/* As QEMU stops a VM to save it. Returns whether it can be saved; else it goes on. */
static bool try_to_save(void)
{
	unsigned int q;
	bool ok;

	stop_queues();
	ok = !*fe_reason(&fe);
	if (!ok)
		assert_non_null(strstr(fe_reason(&fe), "work of the GPU does not end"));
	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_go_on(&fe, q, stopped_at[q]);
	return ok;
}

/* The program queues a function, without waiting. */
static unsigned int queue_function(uint64_t token)
{
	struct qCUcmd c = {.op = QCU_OP_HOST_FUNC, .tid = 1, .seq = fe.seq++};
	unsigned int slot;

	c.host_func.token = token;
	slot = fe_post(&fe, 1, &c, 0, 0);
	fe_kick(&fe, 1);
	return slot;
}

static unsigned int wait_for_function(uint64_t done)
{
	struct qCUcmd c = {.op = QCU_OP_HOST_NEXT, .tid = 3, .seq = fe.seq++};
	unsigned int slot;

	c.host_next.done = done;
	c.host_next.wait = 1;
	slot = fe_post(&fe, 1, &c, 0, 0);
	fe_kick(&fe, 1);
	return slot;
}

static void end_function(uint64_t token)
{
	struct qCUcmd c = {.op = QCU_OP_HOST_NEXT, .tid = 3};

	c.host_next.done = token;
	assert_int_equal(fe_ask(&fe, 1, &c, 0, 0), 0);
}

static void in_a_function(void **state)
{
	unsigned int queued, next, tries;
	struct qCUcmd reply;
	uint64_t token = 5;
	bool saved = false;

	(void)state;
	next = wait_for_function(0);
	queued = queue_function(token);
	fe_wait(&fe, 1, next, &reply);
	assert_int_equal(reply.host_next.token, token);
	fe_wait(&fe, 1, queued, &reply);
	assert_false(try_to_save());
	for (tries = 0; !saved; tries++) {
		assert_true(tries < TRIES);
		/* This function ends, and the program begins the next one at once. */
		end_function(token);
		queued = queue_function(++token);
		/* The mirror could take it meanwhile, and must not. */
		usleep(50000);
		saved = try_to_save();
		/* Nothing is lost: it comes when the VM goes on. */
		next = wait_for_function(0);
		fe_wait(&fe, 1, next, &reply);
		assert_int_equal(reply.host_next.token, token);
		fe_wait(&fe, 1, queued, &reply);
		assert_int_equal(reply.status, 0);
	}
	end_function(token);
	assert_int_equal(fe_close(&fe, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_a_function, start, stop)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

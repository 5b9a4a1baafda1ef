// SPDX-License-Identifier: LGPL-2.1-or-later
/* Entries for fork(): the order of their locks, and what of each is forgotten when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "qcu-library/link/fork.h"

static struct {
	int streams, events;
} session;

static struct {
	int numbers;
} process;

static char did[256];

static void note(const char *what, int device)
{
	size_t len = strlen(did);

	(void)snprintf(did + len, sizeof(did) - len, "%s %d %d, ", what, device, session.streams);
}

static void reset_inner(int device)
{
	note("inner", device);
}

static void reset_outer(int device)
{
	note("outer", device);
}

static void forget_outer(void)
{
	note("gone", -1);
}

static struct qcul_fork_entry inner = {
	.order = QCUL_FORK_TRACE,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.reset = reset_inner,
};
QCUL_AT_FORK(QCUL_FORK_MODULES, .reset = reset_outer, .forget = forget_outer, QCUL_SESSION)

/* An entry whose lock comes last may have been registered first. */
__attribute__((constructor(101))) static void register_inner(void)
{
	qcul_at_fork(&inner);
}

static bool is_held(struct qcul_fork_entry *p)
{
	if (pthread_mutex_trylock(&p->lock))
		return true;
	pthread_mutex_unlock(&p->lock);
	return false;
}

static int fill(void **state)
{
	(void)state;
	session.streams = 3;
	session.events = 4;
	process.numbers = 5;
	did[0] = 0;
	return 0;
}

static void locks_are_held_across_fork(void **state)
{
	(void)state;
	qcul_fork_before();
	assert_true(is_held(&at_fork) && is_held(&inner));
	qcul_fork_parent();
	assert_false(is_held(&at_fork) || is_held(&inner));
	qcul_fork_before();
	qcul_fork_child();
	assert_false(is_held(&at_fork) || is_held(&inner));
	assert_int_equal(session.streams, 3);
}

static void a_reset_is_of_one_device(void **state)
{
	(void)state;
	qcul_forget(2);
	assert_string_equal(did, "inner 2 3, outer 2 3, ");
	assert_int_equal(session.streams, 3);
	assert_int_equal(session.events, 4);
}

/* What an entry does comes before its session is cleared, and the inner entry comes first. */
static void a_child_has_no_session(void **state)
{
	(void)state;
	qcul_forget(-1);
	assert_string_equal(did, "inner -1 3, outer -1 3, gone -1 3, ");
	assert_int_equal(session.streams, 0);
	assert_int_equal(session.events, 0);
	assert_int_equal(process.numbers, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(locks_are_held_across_fork, fill),
		cmocka_unit_test_setup(a_reset_is_of_one_device, fill),
		cmocka_unit_test_setup(a_child_has_no_session, fill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

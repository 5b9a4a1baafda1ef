// SPDX-License-Identifier: GPL-2.0-or-later
/* How long to poll before sleeping. */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "qcu-device/base/spin.h"

static void one_processor(void **state)
{
	cpu_set_t all, one;
	struct spin s;
	int cpu;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (cpu = 0; !CPU_ISSET(cpu, &all); cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(spin_default_us(), 20);
	spin_init(&s, 50);
	assert_int_equal(s.now_ns, 0);
	/* It does not begin to poll later either. */
	spin_came(&s, 0);
	spin_came(&s, 10);
	assert_int_equal(s.now_ns, 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(spin_default_us(), CPU_COUNT(&all) < 4 ? 20 : 2000);
}

static void off(void **state)
{
	struct spin s;

	(void)state;
	spin_init(&s, 0);
	spin_came(&s, 1);
	assert_int_equal(s.now_ns, 0);
}

static void adapts(void **state)
{
	struct spin s = {.max_ns = 50000, .now_ns = 50000},
		    little = {.max_ns = 9000, .now_ns = 9000};
	unsigned int i;

	(void)state;
	/* An early answer does not shorten the time to poll: the next answer may take longer. */
	spin_came(&s, 0);
	assert_int_equal(s.now_ns, 50000);
	spin_came(&s, 40000);
	assert_int_equal(s.now_ns, 50000);
	/*
	 * Answers never come in time: the time to poll shrinks, down to a minimum that costs
	 * nothing.
	 */
	spin_came(&s, 50001);
	assert_int_equal(s.now_ns, 25000);
	for (i = 0; i < 10; i++)
		spin_came(&s, UINT64_MAX);
	assert_int_equal(s.now_ns, 20000);
	spin_came(&little, 9001);
	assert_int_equal(little.now_ns, 9000);
	/* The first answer that a full poll would have caught restores the full time. */
	spin_came(&s, 50000);
	assert_int_equal(s.now_ns, 50000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_processor),
		cmocka_unit_test(off),
		cmocka_unit_test(adapts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

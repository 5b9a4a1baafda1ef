// SPDX-License-Identifier: LGPL-2.1-or-later
/* A kernel's arguments are written to the places of its parameters, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "qcu-library/link/link.h"

static void puts_each_at_its_offset(void **state)
{
	char c = 7;
	double d = 2.5;
	short s = -3;
	void *args[] = {&c, &d, &s};
	const struct qcu_param params[] = {{0, 1}, {8, 8}, {16, 2}};
	unsigned char to[18], want[18] = {0};

	(void)state;
	memset(to, 0xee, sizeof(to));
	memcpy(want, &c, 1);
	memcpy(want + 8, &d, 8);
	memcpy(want + 16, &s, 2);
	assert_true(qcul_pack_args(to, sizeof(to), params, 3, args));
	assert_memory_equal(to, want, sizeof(to));
}

static void refuses_what_does_not_fit(void **state)
{
	long x = 1;
	void *args[] = {&x};
	unsigned char to[9];
	struct qcu_param p = {4, 8};

	(void)state;
	to[8] = 0xee;
	assert_false(qcul_pack_args(to, 8, &p, 1, args));
	p.offset = 9;
	p.size = 0;
	assert_false(qcul_pack_args(to, 8, &p, 1, args));
	p.offset = UINT32_MAX;
	p.size = 8;
	assert_false(qcul_pack_args(to, 8, &p, 1, args));
	assert_int_equal(to[8], 0xee);
}

static void takes_no_arguments_at_all(void **state)
{
	unsigned char to = 0xee;

	(void)state;
	assert_true(qcul_pack_args(&to, 0, NULL, 0, NULL));
	assert_int_equal(to, 0xee);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_does_not_fit),
		cmocka_unit_test(puts_each_at_its_offset),
		cmocka_unit_test(takes_no_arguments_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

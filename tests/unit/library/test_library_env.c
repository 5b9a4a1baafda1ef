// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sizes in environment variables: which texts are accepted, and which are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "qcu-library/link/link.h"

static uint64_t parse(const char *text)
{
	uint64_t bytes = 42;

	setenv("QCU_TEST", text, 1);
	return qcul_env_bytes("QCU_TEST", &bytes) ? bytes : 0xbad;
}

static void refuses_nonsense(void **state)
{
	uint64_t bytes = 42;

	(void)state;
	unsetenv("QCU_TEST");
	assert_false(qcul_env_bytes("QCU_TEST", &bytes));
	assert_int_equal(bytes, 42);
	assert_int_equal(parse(""), 0xbad);
	assert_int_equal(parse("M"), 0xbad);
	assert_int_equal(parse("-1"), 0xbad);
	assert_int_equal(parse("4X"), 0xbad);
	assert_int_equal(parse("4MB"), 0xbad);
	assert_int_equal(parse("99999999999G"), 0xbad);
}

static void reads_sizes(void **state)
{
	(void)state;
	assert_int_equal(parse("0"), 0);
	assert_int_equal(parse("65536"), 65536);
	assert_int_equal(parse("64K"), 65536);
	assert_int_equal(parse("64k"), 65536);
	assert_int_equal(parse("4M"), 4 << 20);
	assert_int_equal(parse("3G"), 3ull << 30);
}

static void reads_switches(void **state)
{
	(void)state;
	unsetenv("QCU_TEST");
	assert_false(qcul_env_on("QCU_TEST"));
	setenv("QCU_TEST", "0", 1);
	assert_false(qcul_env_on("QCU_TEST"));
	setenv("QCU_TEST", "1", 1);
	assert_true(qcul_env_on("QCU_TEST"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_nonsense),
		cmocka_unit_test(reads_sizes),
		cmocka_unit_test(reads_switches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

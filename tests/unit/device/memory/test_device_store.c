// SPDX-License-Identifier: GPL-2.0-or-later
/* Host memory for device memory that has left (qcu-device/memory/store.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "qcu-device/memory/store.h"

#define BOUND (1ull << 20)

static struct store s;
static uint64_t charged;
static unsigned int registered;

static bool charge(void *ctx, int64_t bytes)
{
	(void)ctx;
	if (bytes > 0 && charged + (uint64_t)bytes > BOUND)
		return false;
	charged += (uint64_t)bytes;
	return true;
}

static int host_register(struct be *be, void *p, uint64_t bytes)
{
	(void)be, (void)p, (void)bytes;
	registered++;
	return 0;
}

static int host_unregister(struct be *be, void *p)
{
	(void)be, (void)p;
	registered--;
	return 0;
}

static int begin(void **state)
{
	static struct be_ops ops;

	(void)state;
	ops.host_register = host_register;
	ops.host_unregister = host_unregister;
	charged = registered = 0;
	store_init(&s, &ops, NULL, charge, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	store_end(&s);
	store_fini(&s);
	return charged || registered;
}

/* What does not fit is refused, and nothing is left of it. */
static void test_full(void **state)
{
	void *p;

	(void)state;
	assert_null(s.be.take(&s, BE_PIECE + 1));
	assert_null(s.be.take(&s, BOUND + 1));
	assert_int_equal(charged, 0);
	p = s.be.take(&s, BOUND);
	assert_non_null(p);
	assert_null(s.be.take(&s, 1));
	s.be.give(&s, p, BOUND);
	/* What is kept makes room. */
	p = s.be.take(&s, 1);
	assert_non_null(p);
	assert_int_equal(charged, STORE_LEAST);
	s.be.give(&s, p, 1);
}

/* A block has the size that is asked for, in whole pages. */
static void test_sizes(void **state)
{
	const uint64_t bytes = 33 * STORE_LEAST + 1;
	void *p = s.be.take(&s, bytes), *q;

	(void)state;
	assert_non_null(p);
	assert_int_equal(charged, 34 * STORE_LEAST);
	memset(p, 1, 34 * STORE_LEAST);
	s.be.give(&s, p, bytes);
	assert_int_equal(s.kept_bytes, 34 * STORE_LEAST);
	/* One of the same class that is larger is another block. */
	q = s.be.take(&s, 35 * STORE_LEAST);
	assert_non_null(q);
	assert_int_equal(charged, 69 * STORE_LEAST);
	assert_ptr_equal(s.be.take(&s, bytes), p);
	assert_int_equal(s.kept_bytes, 0);
	s.be.give(&s, p, bytes);
	s.be.give(&s, q, 35 * STORE_LEAST);
	assert_int_equal(s.kept_bytes, 69 * STORE_LEAST);
	store_trim(&s, 1);
	assert_int_equal(s.kept_bytes, 69 * STORE_LEAST);
	store_trim(&s, 1);
	assert_int_equal(s.kept_bytes + charged + registered, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_full, begin, end),
		cmocka_unit_test_setup_teardown(test_sizes, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

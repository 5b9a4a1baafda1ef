// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tables of handles: numbers out of range, duplicate and stale numbers, and objects that are still
 * in use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "qcu-device/lanes/handles.h"

static _Atomic unsigned int released;

static void release(void *ctx, struct handle *h)
{
	assert_ptr_equal(ctx, &released);
	assert_int_equal(h->refs, 0);
	released++;
}

static void bad_numbers(void **state)
{
	static const uint32_t bad[] = {0, 1, QCU_ID_MAX + 1, 0x10002, UINT32_MAX};
	struct handles t;
	struct handle *h;
	unsigned int i;

	(void)state;
	released = 0;
	handles_init(&t, release, &released);
	h = handle_new(HANDLE_STREAM);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(handles_free(&t, HANDLE_STREAM, bad[i]));
		assert_int_equal(handles_add(&t, bad[i], h), QCU_ERR_InvalidResourceHandle);
		assert_null(handles_get(&t, HANDLE_STREAM, bad[i]));
		assert_false(handles_remove(&t, HANDLE_STREAM, bad[i]));
	}
	assert_null(handles_get(&t, HANDLE_STREAM, QCU_ID_FIRST));
	assert_false(handles_remove(&t, HANDLE_STREAM, QCU_ID_MAX));
	handles_put(&t, h);
	handles_put(&t, NULL);
	assert_int_equal(released, 1);
	handles_fini(&t);
}

static void kinds_and_duplicates(void **state)
{
	struct handles t;
	struct handle *a, *b;

	(void)state;
	released = 0;
	handles_init(&t, release, &released);
	a = handle_new(HANDLE_STREAM);
	assert_int_equal(handles_add(&t, QCU_ID_MAX, a), 0);
	assert_false(handles_free(&t, HANDLE_STREAM, QCU_ID_MAX));
	assert_true(handles_free(&t, HANDLE_EVENT, QCU_ID_MAX));
	assert_null(handles_get(&t, HANDLE_EVENT, QCU_ID_MAX));
	assert_false(handles_remove(&t, HANDLE_EVENT, QCU_ID_MAX));
	b = handle_new(HANDLE_STREAM);
	assert_int_equal(handles_add(&t, QCU_ID_MAX, b), QCU_ERR_InvalidResourceHandle);
	handles_put(&t, b);
	assert_int_equal(released, 1);
	assert_true(handles_remove(&t, HANDLE_STREAM, QCU_ID_MAX));
	assert_false(handles_remove(&t, HANDLE_STREAM, QCU_ID_MAX));
	assert_true(handles_free(&t, HANDLE_STREAM, QCU_ID_MAX));
	assert_int_equal(released, 2);
	handles_fini(&t);
}

static bool of_parent(const struct handle *h, const void *arg)
{
	return h->parent == arg;
}

static void in_use(void **state)
{
	struct handles t;
	struct handle *module, *kernel, *used;

	(void)state;
	released = 0;
	handles_init(&t, release, &released);
	module = handle_new(HANDLE_MODULE);
	assert_int_equal(handles_add(&t, 7, module), 0);
	kernel = handle_new(HANDLE_KERNEL);
	kernel->parent = handle_hold(&t, module);
	assert_int_equal(handles_add(&t, 7, kernel), 0);
	used = handles_get(&t, HANDLE_KERNEL, 7);
	assert_ptr_equal(used, kernel);

	assert_true(handles_remove(&t, HANDLE_MODULE, 7));
	handles_remove_if(&t, HANDLE_KERNEL, of_parent, module);
	assert_null(handles_get(&t, HANDLE_KERNEL, 7));
	assert_int_equal(released, 0);
	handles_put(&t, used);
	assert_int_equal(released, 2);
	handles_fini(&t);
}

#define ROUNDS 20000

/*
 * Creates and destroys objects while other threads use them: no object is used after its release.
 */
static void *churn(void *arg)
{
	struct handles *t = arg;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		uint32_t id = QCU_ID_FIRST + i % 5;
		struct handle *h = handle_new(HANDLE_EVENT);

		if (handles_add(t, id, h))
			handles_put(t, h);
		h = handles_get(t, HANDLE_EVENT, id);
		if (h)
			__atomic_store_n(&h->params, i, __ATOMIC_RELAXED);
		handles_remove(t, HANDLE_EVENT, id);
		if (h) {
			__atomic_fetch_add(&h->params, 1, __ATOMIC_RELAXED);
			handles_put(t, h);
		}
	}
	return NULL;
}

static void many_threads(void **state)
{
	pthread_t thread[4];
	struct handles t;
	unsigned int i;

	(void)state;
	released = 0;
	handles_init(&t, release, &released);
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, churn, &t), 0);
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	handles_fini(&t);
	assert_int_equal(released, 4 * ROUNDS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_numbers),
		cmocka_unit_test(kinds_and_duplicates),
		cmocka_unit_test(in_use),
		cmocka_unit_test(many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

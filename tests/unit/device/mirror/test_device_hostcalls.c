// SPDX-License-Identifier: GPL-2.0-or-later
/* Host functions in the mirror: which side waits for which, and what a guest may not answer. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tests/unit/device/mirror/test_device_mirror.h"

#include "qcu-device/commands/commands.h"

/* Streams sleep at once, or poll first: some functions here end within this time, others do not. */
#define POLL_US 10000
static unsigned int poll_us;

static int mirror_start(void **state)
{
	struct mir_config cfg = {.ops = &fake_ops, .session = 1, .poll_us = poll_us};

	(void)state;
	fake_reset();
	return mir_create(&mirror, &cfg);
}

/* A stream that has reached a host function. */
struct stream {
	pthread_t thread;
	void (*fn)(void *arg, int error);
	void *arg;
	int error;
	atomic_bool passed;
};

static void *pass(void *arg)
{
	struct stream *s = arg;

	s->fn(s->arg, s->error);
	atomic_store(&s->passed, true);
	return NULL;
}

static void reach(struct stream *s, int error)
{
	*s = (struct stream){.fn = fake.host_fn, .arg = fake.host_arg, .error = error};
	assert_int_equal(pthread_create(&s->thread, NULL, pass, s), 0);
}

static struct qCUcmd next(uint64_t done, uint32_t wait)
{
	return CMD(HOST_NEXT, host_next, .done = done, .wait = wait);
}

static void refused(void **state)
{
	(void)state;
	assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 0)), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 1, .flags = 2)),
			 QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 1, .stream = 99)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(next(1, 0)), QCU_ERR_InvalidValue);
	assert_int_equal(ask(next(0, 2)), QCU_ERR_InvalidValue);
	fake.lost = true;
	fake.error = QCU_ERR_IllegalAddress;
	assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 1)), QCU_ERR_IllegalAddress);
	/* No function is ready, and the command does not wait. */
	assert_int_equal(ask(next(0, 0)), QCU_ERR_Success);
}

static void one_after_another(void **state)
{
	struct question waiting = {.req.cmd = next(0, 1)};
	struct qCUcmd c = next(0, 1);
	struct stream a, b;

	(void)state;
	assert_true(ask_begin(&waiting));
	/* Only one command can wait. */
	assert_int_equal(ask(next(0, 1)), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 11, .flags = QCU_HOST_ALWAYS)), 0);
	assert_true(fake.host_always);
	reach(&a, 0);
	assert_int_equal(ask_end(&waiting), 0);
	assert_int_equal(waiting.req.cmd.host_next.token, 11);
	assert_int_equal(waiting.req.cmd.host_next.error, 0);
	assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 12)), 0);
	reach(&b, QCU_ERR_Assert);
	usleep(20000);
	assert_false(atomic_load(&a.passed));
	/* The end of another function, or of none, is refused: the stream goes on waiting. */
	assert_int_equal(ask(next(12, 1)), QCU_ERR_InvalidValue);
	assert_int_equal(ask(next(0, 1)), QCU_ERR_InvalidValue);
	assert_false(atomic_load(&a.passed));
	c.host_next.done = 11;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	pthread_join(a.thread, NULL);
	assert_int_equal(c.host_next.token, 12);
	assert_int_equal(c.host_next.error, QCU_ERR_Assert);
	assert_false(atomic_load(&b.passed));
	assert_int_equal(ask(next(12, 0)), 0);
	pthread_join(b.thread, NULL);
	assert_int_equal(ask(next(12, 0)), QCU_ERR_InvalidValue);
}

/* The mirror ends while one function is with the guest, one is ready, and one was dropped. */
static void ends(void **state)
{
	struct mir_config cfg = {.ops = &fake_ops, .session = 1};
	struct qCUcmd c = next(0, 1);
	struct question waiting = {.req.cmd = next(0, 1)};
	struct stream a, b;

	(void)state;
	assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 1)), 0);
	reach(&a, 0);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 2)), 0);
	reach(&b, 0);
	assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 3)), 0);
	usleep(10000);
	mir_host_calls_end(mirror);
	pthread_join(a.thread, NULL);
	pthread_join(b.thread, NULL);
	mir_destroy(mirror);
	assert_int_equal(mir_create(&mirror, &cfg), 0);
	assert_true(ask_begin(&waiting));
	mir_host_calls_end(mirror);
	assert_int_equal(ask_end(&waiting), QCU_ERR_DevicesUnavailable);
}

/* Many short functions: whoever looks first finds the end. */
static void many(void **state)
{
	struct qCUcmd c;
	struct stream s;
	uint64_t i;

	(void)state;
	for (i = 1; i <= 500; i++) {
		assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = i)), 0);
		reach(&s, 0);
		c = next(0, 1);
		assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
		assert_int_equal(c.host_next.token, i);
		assert_int_equal(ask(next(i, 0)), 0);
		pthread_join(s.thread, NULL);
		assert_true(atomic_load(&s.passed));
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, mirror_start, mirror_stop)
	static const struct CMUnitTest tests[] = {T(refused), T(one_after_another), T(many),
						  T(ends)};
#undef T

	if (cmocka_run_group_tests(tests, NULL, NULL))
		return 1;
	poll_us = POLL_US;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The software GPU's memory and events in another process: what both processes see, and what is
 * left when the process that shared them has been killed.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/soft/gpu/soft.h"
#include "tests/unit/soft/test_soft_fake.h"

#define MIB   (1ull << 20)
#define FLAGS 6u /* cudaEventDisableTiming, cudaEventInterprocess */
#define WORDS 40000u

struct exports {
	uint8_t small[BE_IPC_BYTES], big[BE_IPC_BYTES], event[BE_IPC_BYTES];
};

struct other {
	pid_t pid;
	int in, out; /* this process's ends */
	struct exports exports;
};

static void put(struct be *be, uint64_t at, uint32_t words, uint32_t first)
{
	uint32_t host[WORDS], i;

	for (i = 0; i < words; i++)
		host[i] = first + i;
	assert_int_equal(be_soft.copy_h2d(be, at, host, words * 4, be_soft.stream_legacy(be, 0)),
			 0);
	assert_int_equal(be_soft.stream_sync(be, be_soft.stream_legacy(be, 0)), 0);
}

static bool has(struct be *be, uint64_t at, uint32_t words, uint32_t first)
{
	uint32_t host[WORDS], i;

	if (be_soft.copy_d2h(be, host, at, words * 4, be_soft.stream_legacy(be, 0)))
		return false;
	for (i = 0; i < words && host[i] == first + i; i++)
		;
	return i == words;
}

static void hold(void *pipe, int error)
{
	char byte;

	(void)error;
	(void)!read(*(int *)pipe, &byte, 1);
}

/* Exports everything, changes it when told to, and has an event that waits for its end. */
static void __attribute__((noreturn)) other_main(int in, int out)
{
	struct be_options opt = {.vram = 64 * MIB, .threads = 1};
	struct be_event *e;
	struct be_stream *s;
	struct exports x;
	uint64_t small, big;
	struct be *be;
	int never[2];
	char go;

	if (be_soft.open(&be, &opt) || pipe(never) || be_soft.mem_alloc(be, 0, 400, &small) ||
	    be_soft.mem_alloc(be, 0, WORDS * 4, &big) || be_soft.event_create(be, 0, FLAGS, &e) ||
	    be_soft.stream_create(be, 0, 1, 0, &s))
		_exit(1);
	put(be, small, 100, 1);
	put(be, big, WORDS, 1000);
	if (be_soft.mem_export(be, 0, small, x.small) || be_soft.mem_export(be, 0, big, x.big) ||
	    be_soft.event_export(be, e, x.event) || be_soft.host_func(be, hold, never, false, s) ||
	    be_soft.event_record(be, e, s, 0) || write(out, &x, sizeof(x)) != sizeof(x))
		_exit(2);
	if (read(in, &go, 1) != 1 || !has(be, big, WORDS, 5000))
		_exit(3);
	put(be, small, 100, 7);
	(void)!write(out, "", 1);
	for (;;)
		pause();
}

static int start_other(void **state)
{
	struct other *o = calloc(1, sizeof(*o));
	int to[2], from[2];

	if (!o || pipe(to) || pipe(from))
		return -1;
	o->pid = fork();
	if (!o->pid) {
		close(to[1]);
		close(from[0]);
		other_main(to[0], from[1]);
	}
	o->in = from[0];
	o->out = to[1];
	close(to[0]);
	close(from[1]);
	*state = o;
	return read(o->in, &o->exports, sizeof(o->exports)) == sizeof(o->exports) ? 0 : -1;
}

static void kill_other(struct other *o)
{
	if (!o->pid)
		return;
	kill(o->pid, SIGKILL);
	waitpid(o->pid, NULL, 0);
	o->pid = 0;
}

static int end_other(void **state)
{
	struct other *o = *state;

	kill_other(o);
	close(o->in);
	close(o->out);
	free(o);
	return 0;
}

static void bad_handles(void **state)
{
	struct other *o = *state;
	struct be *be = fake_open(1, 64 * MIB);
	uint8_t handle[BE_IPC_BYTES] = {0};
	struct be_event *e;
	uint64_t at, var;

	assert_int_equal(be_soft.mem_import(be, 0, handle, 4096, &at), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.event_import(be, 0, handle, &e), QCU_ERR_MapBufferObjectFailed);
	/* Of another size, of another kind, and of a file that has been replaced. */
	assert_int_equal(be_soft.mem_import(be, 0, o->exports.big, WORDS * 4 + 1, &at),
			 QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.event_import(be, 0, o->exports.big, &e),
			 QCU_ERR_MapBufferObjectFailed);
	memcpy(handle, o->exports.big, sizeof(handle));
	((struct soft_file *)handle)->ino++;
	assert_int_equal(be_soft.mem_import(be, 0, handle, WORDS * 4, &at),
			 QCU_ERR_MapBufferObjectFailed);
	assert_int_equal(be_soft.mem_unimport(be, 0), QCU_ERR_InvalidValue);
	/* What cannot be exported: nothing, the middle of an allocation, imported memory. */
	assert_int_equal(be_soft.mem_export(be, 0, 4096, handle), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.mem_alloc(be, 0, 4096, &var), 0);
	assert_int_equal(be_soft.mem_export(be, 0, var + 512, handle), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.mem_unimport(be, var), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.mem_import(be, 0, o->exports.big, WORDS * 4, &at), 0);
	assert_int_equal(be_soft.mem_export(be, 0, at, handle), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.mem_free(be, at), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.event_create(be, 0, 2, &e), 0);
	assert_int_equal(be_soft.event_export(be, e, handle), QCU_ERR_InvalidResourceHandle);
	be_soft.event_destroy(be, e);
	assert_int_equal(be_soft.event_import(be, 0, o->exports.event, &e), 0);
	assert_int_equal(be_soft.event_export(be, e, handle), QCU_ERR_InvalidResourceHandle);
	be_soft.event_destroy(be, e);
	be_soft.close(be);
}

static void both_see_it(void **state)
{
	struct other *o = *state;
	struct be *be = fake_open(1, 64 * MIB);
	uint64_t small, big, next, free_before, free_after, total;
	char byte;

	be_soft.mem_info(be, 0, &free_before, &total);
	assert_int_equal(be_soft.mem_import(be, 0, o->exports.small, 400, &small), 0);
	assert_int_equal(be_soft.mem_import(be, 0, o->exports.big, WORDS * 4, &big), 0);
	be_soft.mem_info(be, 0, &free_after, &total);
	assert_int_equal(free_before, free_after);
	/* Exactly what was exported, and nothing else on the same pages. */
	assert_true(be_soft.mem_valid(be, small, 400));
	assert_false(be_soft.mem_valid(be, small, 401));
	assert_false(be_soft.mem_valid(be, small - 1, 1));
	assert_int_equal(be_soft.mem_alloc(be, 0, 400, &next), 0);
	assert_true(next / 4096 != small / 4096 && next / 4096 != (small + 400) / 4096);
	assert_true(has(be, small, 100, 1));
	assert_true(has(be, big, WORDS, 1000));
	put(be, big, WORDS, 5000);
	assert_int_equal(write(o->out, "", 1), 1);
	assert_int_equal(read(o->in, &byte, 1), 1);
	assert_true(has(be, small, 100, 7));

	/* After it is closed, the memory is not there any more, and its addresses can be used. */
	assert_int_equal(be_soft.mem_unimport(be, small), 0);
	assert_false(be_soft.mem_valid(be, small, 1));
	assert_int_equal(be_soft.mem_unimport(be, small), QCU_ERR_InvalidValue);
	assert_int_equal(*(uint32_t *)(uintptr_t)small, 0);
	be_soft.close(be);
}

static void memory_outlives_its_process(void **state)
{
	struct other *o = *state;
	struct be *be = fake_open(1, 64 * MIB);
	uint64_t big, again;

	assert_int_equal(be_soft.mem_import(be, 0, o->exports.big, WORDS * 4, &big), 0);
	kill_other(o);
	assert_true(has(be, big, WORDS, 1000));
	put(be, big, WORDS, 3);
	assert_true(has(be, big, WORDS, 3));
	assert_int_equal(be_soft.mem_import(be, 0, o->exports.big, WORDS * 4, &again),
			 QCU_ERR_MapBufferObjectFailed);
	assert_int_equal(be_soft.mem_unimport(be, big), 0);
	be_soft.close(be);
}

static void nobody_waits_for_the_dead(void **state)
{
	struct other *o = *state;
	struct be *be = fake_open(1, 64 * MIB);
	struct be_stream *s;
	struct be_event *e;

	assert_int_equal(be_soft.stream_create(be, 0, 1, 0, &s), 0);
	assert_int_equal(be_soft.event_import(be, 0, o->exports.event, &e), 0);
	assert_int_equal(be_soft.event_query(be, e), QCU_ERR_NotReady);
	assert_int_equal(be_soft.stream_wait_event(be, s, e, 0), 0);
	assert_int_equal(be_soft.stream_query(be, s), QCU_ERR_NotReady);
	kill_other(o);
	assert_int_equal(be_soft.stream_sync(be, s), 0);
	assert_int_equal(be_soft.event_sync(be, e), 0);
	assert_int_equal(be_soft.event_query(be, e), 0);
	be_soft.event_destroy(be, e);
	be_soft.stream_destroy(be, s);
	be_soft.close(be);
}

/* Closing must not wait for another process. */
static void the_end_waits_for_nobody(void **state)
{
	struct other *o = *state;
	struct be *be = fake_open(1, 64 * MIB);
	struct be_event *e;

	assert_int_equal(be_soft.event_import(be, 0, o->exports.event, &e), 0);
	assert_int_equal(be_soft.stream_wait_event(be, be_soft.stream_legacy(be, 0), e, 0), 0);
	be_soft.close(be);
}

/* A wait is for the record that existed then, even if a later record is done earlier. */
static void records_are_told_apart(void **state)
{
	struct be *be = fake_open(1, 64 * MIB);
	struct be_stream *slow, *fast, *waiter;
	struct be_event *e;
	int gate[2];

	(void)state;
	assert_int_equal(pipe(gate), 0);
	assert_int_equal(be_soft.event_create(be, 0, 4, &e), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.event_create(be, 0, FLAGS, &e), 0);
	assert_int_equal(be_soft.stream_create(be, 0, 1, 0, &slow), 0);
	assert_int_equal(be_soft.stream_create(be, 0, 1, 0, &fast), 0);
	assert_int_equal(be_soft.stream_create(be, 0, 1, 0, &waiter), 0);
	assert_int_equal(be_soft.event_query(be, e), 0);
	assert_int_equal(be_soft.host_func(be, hold, gate, false, slow), 0);
	assert_int_equal(be_soft.event_record(be, e, slow, 0), 0);
	assert_int_equal(be_soft.stream_wait_event(be, waiter, e, 0), 0);
	assert_int_equal(be_soft.event_record(be, e, fast, 0), 0);
	assert_int_equal(be_soft.event_sync(be, e), 0);
	assert_int_equal(be_soft.stream_query(be, waiter), QCU_ERR_NotReady);
	assert_int_equal(write(gate[1], "", 1), 1);
	assert_int_equal(be_soft.stream_sync(be, waiter), 0);
	be_soft.event_destroy(be, e);
	be_soft.close(be);
}

/* If files may not be that large, there is still memory, which only this process can use. */
static void works_without_files(void **state)
{
	struct be_options opt = {.vram = 64 * MIB, .threads = 1};
	uint8_t handle[BE_IPC_BYTES];
	struct rlimit old, few;
	struct be *be;
	uint64_t at;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	few = (struct rlimit){.rlim_cur = MIB, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	assert_int_equal(be_soft.open(&be, &opt), 0);
	assert_int_equal(be_soft.mem_alloc(be, 0, WORDS * 4, &at), 0);
	put(be, at, WORDS, 5);
	assert_true(has(be, at, WORDS, 5));
	assert_int_equal(be_soft.mem_export(be, 0, at, handle), QCU_ERR_NotSupported);
	assert_int_equal(be_soft.mem_free(be, at), 0);
	be_soft.close(be);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bad_handles, start_other, end_other),
		cmocka_unit_test_setup_teardown(both_see_it, start_other, end_other),
		cmocka_unit_test_setup_teardown(memory_outlives_its_process, start_other,
						end_other),
		cmocka_unit_test_setup_teardown(nobody_waits_for_the_dead, start_other, end_other),
		cmocka_unit_test_setup_teardown(the_end_waits_for_nobody, start_other, end_other),
		cmocka_unit_test(records_are_told_apart),
		cmocka_unit_test(works_without_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

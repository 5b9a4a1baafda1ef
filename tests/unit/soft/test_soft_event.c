/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of the software GPU: flags, errors, what waits for what, and times. */
#include "tests/unit/soft/test_soft_fake.h"

#define DISABLE_TIMING 2u
#define INTERPROCESS   4u

struct fixture {
	struct be *be;
	struct be_module *m;
	struct be_kernel *step, *gate;
	struct be_stream *a, *b;
	_Atomic int door;
	uint64_t count;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->be = fake_open(2, 16u << 20);
	f->m = fake_module(f->be);
	f->step = fake_kernel(f->be, f->m, "step");
	f->gate = fake_kernel(f->be, f->m, "gate");
	assert_int_equal(be_soft.stream_create(f->be, 0, 1, 0, &f->a), QCU_ERR_Success);
	assert_int_equal(be_soft.stream_create(f->be, 0, 1, 0, &f->b), QCU_ERR_Success);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	be_soft.close(f->be);
	free(f);
	return 0;
}

static struct be_event *event(struct fixture *f, uint32_t flags)
{
	struct be_event *e;

	assert_int_equal(be_soft.event_create(f->be, 0, flags, &e), QCU_ERR_Success);
	return e;
}

static void record(struct fixture *f, struct be_event *e, struct be_stream *s)
{
	assert_int_equal(be_soft.event_record(f->be, e, s, 0), QCU_ERR_Success);
}

static int elapsed(struct fixture *f, struct be_event *a, struct be_event *b, float *ms)
{
	return be_soft.event_elapsed(f->be, a, b, ms);
}

static void gate(struct fixture *f, struct be_stream *s)
{
	assert_int_equal(fake_launch(f->be, f->gate, s, (uintptr_t)&f->door, 0, 0), 0);
}

static void refuses_bad_flags(void **state)
{
	struct fixture *f = *state;
	struct be_event *e, *good = event(f, 0);

	assert_int_equal(be_soft.event_create(f->be, 0, 8, &e), QCU_ERR_InvalidValue);
	assert_null(e);
	assert_int_equal(be_soft.event_create(f->be, 0, INTERPROCESS, &e), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.event_record(f->be, good, f->a, 2), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.event_record(f->be, good, f->a, 1), QCU_ERR_IllegalState);
	assert_int_equal(be_soft.stream_wait_event(f->be, f->a, good, 2), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.stream_wait_event(f->be, f->a, good, 1), QCU_ERR_IllegalState);
	assert_int_equal(be_soft.event_record(f->be, good, be_soft.stream_legacy(f->be, 1), 0),
			 QCU_ERR_InvalidResourceHandle);
}

static void one_never_recorded_is_complete_but_has_no_time(void **state)
{
	struct fixture *f = *state;
	struct be_event *e = event(f, 0), *g = event(f, 0);
	uint64_t slot = 0;
	float ms;

	assert_int_equal(be_soft.event_query(f->be, e), QCU_ERR_Success);
	assert_int_equal(be_soft.event_sync(f->be, e), QCU_ERR_Success);
	assert_int_equal(be_soft.stream_wait_event(f->be, f->a, e, 0), QCU_ERR_Success);
	assert_int_equal(fake_launch(f->be, f->step, f->a, (uintptr_t)&f->count, (uintptr_t)&slot,
				     0),
			 QCU_ERR_Success);
	assert_int_equal(be_soft.stream_sync(f->be, f->a), QCU_ERR_Success);
	assert_int_equal(slot, 1);
	record(f, g, f->a);
	assert_int_equal(elapsed(f, e, g, &ms), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(elapsed(f, g, e, &ms), QCU_ERR_InvalidResourceHandle);
}

static void an_event_is_ready_when_its_stream_gets_there(void **state)
{
	struct fixture *f = *state;
	struct be_event *before = event(f, 0), *after = event(f, 0), *plain = event(f, 2);
	float ms = -1;

	record(f, before, f->a);
	record(f, plain, f->a);
	assert_int_equal(be_soft.event_query(f->be, before), QCU_ERR_Success);
	gate(f, f->a);
	record(f, after, f->a);
	assert_int_equal(be_soft.event_query(f->be, after), QCU_ERR_NotReady);
	assert_int_equal(elapsed(f, before, after, &ms), QCU_ERR_NotReady);
	/* The error that there is no time comes before the error that the event is not ready. */
	assert_int_equal(elapsed(f, plain, after, &ms), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(elapsed(f, after, plain, &ms), QCU_ERR_InvalidResourceHandle);
	atomic_store(&f->door, 1);
	assert_int_equal(be_soft.event_sync(f->be, after), QCU_ERR_Success);
	assert_int_equal(be_soft.event_query(f->be, after), QCU_ERR_Success);
	assert_int_equal(elapsed(f, before, after, &ms), QCU_ERR_Success);
	assert_true(ms >= 0);
}

static void time_is_what_the_work_between_took(void **state)
{
	struct fixture *f = *state;
	struct be_event *e = event(f, 0), *g = event(f, 1);
	uint64_t slot;
	float ms = 0;

	record(f, e, f->a);
	assert_int_equal(fake_launch(f->be, f->step, f->a, (uintptr_t)&f->count, (uintptr_t)&slot,
				     50),
			 QCU_ERR_Success);
	record(f, g, f->a);
	assert_int_equal(be_soft.event_sync(f->be, g), QCU_ERR_Success);
	assert_int_equal(elapsed(f, e, g, &ms), QCU_ERR_Success);
	assert_true(ms >= 50 && ms < 20000);
	assert_int_equal(elapsed(f, g, e, &ms), QCU_ERR_Success);
	assert_true(ms <= -50 && ms > -20000);
}

static void a_stream_waits_for_an_event_of_another(void **state)
{
	struct fixture *f = *state;
	struct be_event *e = event(f, DISABLE_TIMING);
	uint64_t in_a = 0, in_b = 0;

	gate(f, f->a);
	fake_launch(f->be, f->step, f->a, (uintptr_t)&f->count, (uintptr_t)&in_a, 0);
	record(f, e, f->a);
	assert_int_equal(be_soft.stream_wait_event(f->be, f->b, e, 0), QCU_ERR_Success);
	fake_launch(f->be, f->step, f->b, (uintptr_t)&f->count, (uintptr_t)&in_b, 0);
	/* A later record changes nothing for those that already wait. */
	gate(f, f->a);
	record(f, e, f->a);
	assert_int_equal(be_soft.stream_query(f->be, f->b), QCU_ERR_NotReady);
	atomic_store(&f->door, 1);
	assert_int_equal(be_soft.stream_sync(f->be, f->b), QCU_ERR_Success);
	assert_int_equal(in_a, 1);
	assert_int_equal(in_b, 2);
	assert_int_equal(be_soft.event_sync(f->be, e), QCU_ERR_Success);
}

static void a_stream_waits_for_an_event_of_another_device(void **state)
{
	struct fixture *f = *state;
	struct be_stream *far = be_soft.stream_legacy(f->be, 1);
	struct be_event *e = event(f, 0);
	uint64_t slot = 0;

	gate(f, f->a);
	record(f, e, f->a);
	assert_int_equal(be_soft.stream_wait_event(f->be, far, e, 0), QCU_ERR_Success);
	fake_launch(f->be, f->step, far, (uintptr_t)&f->count, (uintptr_t)&slot, 0);
	assert_int_equal(be_soft.stream_query(f->be, far), QCU_ERR_NotReady);
	atomic_store(&f->door, 1);
	assert_int_equal(be_soft.device_sync(f->be, 1), QCU_ERR_Success);
	assert_int_equal(slot, 1);
}

static void an_event_in_the_legacy_stream_waits_for_blocking_streams(void **state)
{
	struct fixture *f = *state;
	struct be_event *e = event(f, 0);
	struct be_stream *s;

	assert_int_equal(be_soft.stream_create(f->be, 0, 0, 0, &s), QCU_ERR_Success);
	gate(f, s);
	record(f, e, be_soft.stream_legacy(f->be, 0));
	assert_int_equal(be_soft.event_query(f->be, e), QCU_ERR_NotReady);
	atomic_store(&f->door, 1);
	assert_int_equal(be_soft.event_sync(f->be, e), QCU_ERR_Success);
	assert_int_equal(be_soft.stream_query(f->be, s), QCU_ERR_Success);
}

static void events_and_streams_may_go_first(void **state)
{
	struct fixture *f = *state;
	struct be_event *e = event(f, 0), *g = event(f, 0);
	uint64_t slot = 0;

	gate(f, f->a);
	record(f, e, f->a);
	record(f, g, f->a);
	assert_int_equal(be_soft.stream_wait_event(f->be, f->b, e, 0), QCU_ERR_Success);
	fake_launch(f->be, f->step, f->b, (uintptr_t)&f->count, (uintptr_t)&slot, 0);
	assert_int_equal(be_soft.event_destroy(f->be, e), QCU_ERR_Success);
	assert_int_equal(be_soft.stream_destroy(f->be, f->a), QCU_ERR_Success);
	assert_int_equal(be_soft.event_query(f->be, g), QCU_ERR_NotReady);
	atomic_store(&f->door, 1);
	assert_int_equal(be_soft.stream_sync(f->be, f->b), QCU_ERR_Success);
	assert_int_equal(be_soft.event_sync(f->be, g), QCU_ERR_Success);
	assert_int_equal(slot, 1);
	assert_int_equal(be_soft.event_destroy(f->be, g), QCU_ERR_Success);
}

static void after_an_error_nothing_is_answered(void **state)
{
	struct fixture *f = *state;
	struct be_event *e = event(f, 0), *g = event(f, 0);
	const int err = QCU_ERR_IllegalAddress;
	float ms;

	record(f, e, f->a);
	fake_launch(f->be, fake_kernel(f->be, f->m, "store"), f->a, 8, 0, 0);
	be_soft.event_record(f->be, g, f->a, 0);
	assert_int_equal(be_soft.event_sync(f->be, g), err);
	assert_int_equal(be_soft.event_query(f->be, e), err);
	assert_int_equal(elapsed(f, e, g, &ms), err);
	assert_int_equal(be_soft.event_record(f->be, e, f->a, 0), err);
	assert_int_equal(be_soft.stream_wait_event(f->be, f->a, e, 0), err);
	assert_int_equal(be_soft.event_destroy(f->be, e), err);
	assert_int_equal(be_soft.stream_destroy(f->be, f->a), err);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(refuses_bad_flags),
		T(one_never_recorded_is_complete_but_has_no_time),
		T(an_event_is_ready_when_its_stream_gets_there),
		T(time_is_what_the_work_between_took),
		T(a_stream_waits_for_an_event_of_another),
		T(a_stream_waits_for_an_event_of_another_device),
		T(an_event_in_the_legacy_stream_waits_for_blocking_streams),
		T(events_and_streams_may_go_first),
		T(after_an_error_nothing_is_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

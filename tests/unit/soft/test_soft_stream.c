/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams of the software GPU: what runs after what, what runs side by side, when a call returns,
 * and what an error does. A gate is a kernel that runs until the test opens it, so nothing here
 * depends on time.
 */
#include "tests/unit/soft/test_soft_fake.h"

struct fixture {
	struct be *be;
	struct be_module *m;
	struct be_kernel *step, *gate, *open, *store, *status;
	struct be_stream *legacy, *a, *b, *free_running;
	_Atomic int door, other_door;
	uint64_t count;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->be = fake_open(2, 256u << 20);
	f->m = fake_module(f->be);
	f->step = fake_kernel(f->be, f->m, "step");
	f->gate = fake_kernel(f->be, f->m, "gate");
	f->open = fake_kernel(f->be, f->m, "open");
	f->store = fake_kernel(f->be, f->m, "store");
	f->status = fake_kernel(f->be, f->m, "status");
	f->legacy = be_soft.stream_legacy(f->be, 0);
	assert_int_equal(be_soft.stream_create(f->be, 0, 0, 0, &f->a), QCU_ERR_Success);
	assert_int_equal(be_soft.stream_create(f->be, 0, 0, 0, &f->b), QCU_ERR_Success);
	assert_int_equal(be_soft.stream_create(f->be, 0, 1, 0, &f->free_running), QCU_ERR_Success);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	be_soft.close(f->be);
	assert_int_equal(atomic_load(&fake_modules), 0);
	free(f);
	return 0;
}

static void gate(struct fixture *f, struct be_stream *s)
{
	assert_int_equal(fake_launch(f->be, f->gate, s, (uintptr_t)&f->door, 0, 0), 0);
}

static void open_gate(struct fixture *f)
{
	atomic_store(&f->door, 1);
}

/* `slot` gets the position of this work in the order of all work. */
static void step(struct fixture *f, struct be_stream *s, uint64_t *slot)
{
	assert_int_equal(fake_launch(f->be, f->step, s, (uintptr_t)&f->count, (uintptr_t)slot, 0),
			 0);
}

static void sync(struct fixture *f, struct be_stream *s)
{
	assert_int_equal(be_soft.stream_sync(f->be, s), QCU_ERR_Success);
}

static void query(struct fixture *f, struct be_stream *s, int want)
{
	assert_int_equal(be_soft.stream_query(f->be, s), want);
}

static void sync_all(struct fixture *f)
{
	assert_int_equal(be_soft.device_sync(f->be, 0), QCU_ERR_Success);
}

static void refuses_bad_flags(void **state)
{
	struct fixture *f = *state;
	struct be_stream *s;

	assert_int_equal(be_soft.stream_create(f->be, 0, 2, 0, &s), QCU_ERR_InvalidValue);
	assert_null(s);
	assert_int_equal(be_soft.stream_destroy(f->be, f->legacy), QCU_ERR_InvalidResourceHandle);
	/* Priorities out of range are moved into the range. */
	assert_int_equal(be_soft.stream_create(f->be, 0, 0, -99, &s), QCU_ERR_Success);
	assert_int_equal(be_soft.stream_create(f->be, 0, 0, 99, &s), QCU_ERR_Success);
}

static void work_of_a_stream_is_in_order(void **state)
{
	struct fixture *f = *state;
	uint64_t slot[32] = {0};
	unsigned int i;

	gate(f, f->a);
	for (i = 0; i < 32; i++)
		step(f, f->a, &slot[i]);
	query(f, f->a, QCU_ERR_NotReady);
	open_gate(f);
	sync(f, f->a);
	for (i = 0; i < 32; i++)
		assert_int_equal(slot[i], i + 1);
	query(f, f->a, QCU_ERR_Success);
}

/* The first waits for what the second does: one after the other, it would never end. */
static void streams_run_side_by_side(void **state)
{
	struct fixture *f = *state;

	gate(f, f->a);
	assert_int_equal(fake_launch(f->be, f->open, f->b, (uintptr_t)&f->door, 0, 0), 0);
	sync_all(f);
}

static void the_legacy_stream_waits_for_blocking_streams(void **state)
{
	struct fixture *f = *state;
	uint64_t in_a = 0, in_legacy = 0, in_free = 0;

	gate(f, f->a);
	step(f, f->a, &in_a);
	step(f, f->legacy, &in_legacy);
	step(f, f->free_running, &in_free);
	sync(f, f->free_running);
	assert_int_equal(in_free, 1);
	query(f, f->legacy, QCU_ERR_NotReady);
	open_gate(f);
	sync(f, f->legacy);
	assert_int_equal(in_a, 2);
	assert_int_equal(in_legacy, 3);
}

static void blocking_streams_wait_for_the_legacy_stream(void **state)
{
	struct fixture *f = *state;
	uint64_t in_a = 0, in_b = 0, in_legacy = 0, in_free = 0;

	gate(f, f->legacy);
	step(f, f->a, &in_a);
	step(f, f->free_running, &in_free);
	sync(f, f->free_running);
	assert_int_equal(in_free, 1);
	query(f, f->a, QCU_ERR_NotReady);
	step(f, f->legacy, &in_legacy);
	step(f, f->b, &in_b);
	open_gate(f);
	sync_all(f);
	/* The second item in the legacy stream came after a's work. */
	assert_int_equal(in_a, 2);
	assert_int_equal(in_legacy, 3);
	assert_int_equal(in_b, 4);
}

/*
 * As on a GPU: a query of the legacy stream includes all blocking streams, but not the other way
 * round.
 */
static void asking_the_legacy_stream_asks_blocking_streams(void **state)
{
	struct fixture *f = *state;

	gate(f, f->a);
	query(f, f->legacy, QCU_ERR_NotReady);
	query(f, f->b, QCU_ERR_Success);
	open_gate(f);
	sync(f, f->legacy);
	query(f, f->a, QCU_ERR_Success);

	atomic_store(&f->door, 0);
	gate(f, f->free_running);
	query(f, f->legacy, QCU_ERR_Success);
	sync(f, f->legacy);
	open_gate(f);
	sync_all(f);

	atomic_store(&f->door, 0);
	gate(f, f->legacy);
	query(f, f->a, QCU_ERR_Success);
	sync(f, f->a);
	open_gate(f);
	sync_all(f);
}

static void devices_do_not_wait_for_each_other(void **state)
{
	struct fixture *f = *state;
	uint64_t slot = 0;

	gate(f, f->legacy);
	step(f, be_soft.stream_legacy(f->be, 1), &slot);
	assert_int_equal(be_soft.device_sync(f->be, 1), QCU_ERR_Success);
	assert_int_equal(slot, 1);
	query(f, f->legacy, QCU_ERR_NotReady);
	open_gate(f);
	sync_all(f);
}

static void a_destroyed_stream_does_its_work(void **state)
{
	struct fixture *f = *state;
	uint64_t in_a = 0, in_legacy = 0;

	gate(f, f->a);
	step(f, f->a, &in_a);
	assert_int_equal(be_soft.stream_destroy(f->be, f->a), QCU_ERR_Success);
	step(f, f->legacy, &in_legacy);
	open_gate(f);
	sync(f, f->legacy);
	assert_int_equal(in_a, 1);
	assert_int_equal(in_legacy, 2);
}

static void many_streams_come_and_go(void **state)
{
	struct fixture *f = *state;
	uint64_t slot[200] = {0};
	struct be_stream *s;
	unsigned int i;

	for (i = 0; i < 200; i++) {
		assert_int_equal(be_soft.stream_create(f->be, 0, i & 1, 0, &s), QCU_ERR_Success);
		step(f, s, &slot[i]);
		assert_int_equal(be_soft.stream_destroy(f->be, s), QCU_ERR_Success);
	}
	sync_all(f);
	for (i = 0; i < 200; i++)
		assert_true(slot[i]);
	assert_int_equal(f->count, 200);
}

static uint64_t alloc(struct fixture *f, uint64_t size)
{
	uint64_t a;

	assert_int_equal(be_soft.mem_alloc(f->be, 0, size, &a), QCU_ERR_Success);
	return a;
}

static void copies_refuse_what_is_no_memory(void **state)
{
	struct fixture *f = *state;
	uint64_t a = alloc(f, 100);
	char host[200] = {0};
	struct be *be = f->be;

	assert_int_equal(be_soft.copy_h2d(be, a, host, 101, f->a), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.copy_h2d(be, 16, host, 1, f->a), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.copy_h2d(be, 0, host, 1, f->a), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.copy_h2d(be, 16, host, 0, f->a), QCU_ERR_Success);
	assert_int_equal(be_soft.copy_d2h(be, host, a + 1, 100, f->a), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.copy_d2h(be, host, a, SIZE_MAX, f->a), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.copy_d2d(be, a, (uintptr_t)host, 10, 0, f->a),
			 QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.copy_d2d(be, (uintptr_t)host, a, 10, 0, f->a),
			 QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.copy_h2d(be, a, host, 100, f->a), QCU_ERR_Success);
	sync_all(f);
}

static void fills_refuse_what_makes_no_sense(void **state)
{
	struct fixture *f = *state;
	uint64_t a = alloc(f, 4096);
	const struct be_memset bad[] = {
		{.dst = a, .width = 4097, .height = 1, .elem = 1},
		{.dst = a, .width = 16, .height = 1, .elem = 3},
		{.dst = a, .width = 16, .height = 1, .elem = 0},
		{.dst = a, .width = 16, .height = 1, .elem = 8},
		{.dst = a + 1, .width = 16, .height = 1, .elem = 2},
		{.dst = a, .width = 15, .height = 1, .elem = 2},
		{.dst = a, .width = 16, .height = 2, .pitch = 8, .elem = 1},
		{.dst = a, .width = 16, .height = 2, .pitch = 18, .elem = 4},
		{.dst = a, .width = 16, .height = 5, .pitch = 1024, .elem = 1},
		{.dst = a, .width = 16, .height = UINT64_MAX, .pitch = 16, .elem = 1},
		{.dst = a, .width = 16, .height = 3, .pitch = UINT64_MAX / 2 + 1, .elem = 1},
		{.dst = a, .width = UINT64_MAX, .height = 1, .elem = 1},
		{.dst = 0, .width = 1, .height = 1, .elem = 1},
	};
	const struct be_memset none = {.dst = 0, .width = 0, .height = 5, .elem = 1};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(be_soft.mem_set(f->be, &bad[i], f->a), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.mem_set(f->be, &none, f->a), QCU_ERR_Success);
}

static void fills_set_rows_and_nothing_between(void **state)
{
	static const struct {
		uint32_t elem, value;
		unsigned char bytes[4];
	} cases[] = {
		{1, 0xffffff41, {0x41, 0x41, 0x41, 0x41}},
		{2, 0xffff1234, {0x34, 0x12, 0x34, 0x12}},
		{4, 0x12345678, {0x78, 0x56, 0x34, 0x12}},
	};
	struct fixture *f = *state;
	uint64_t a = alloc(f, 1000);
	unsigned char got[1000];
	size_t c, i;

	for (c = 0; c < 3; c++) {
		const struct be_memset all = {.dst = a, .width = 1000, .height = 1, .elem = 1};
		const struct be_memset m = {.dst = a + 100,
					    .pitch = 200,
					    .width = 60,
					    .height = 4,
					    .value = cases[c].value,
					    .elem = cases[c].elem};

		assert_int_equal(be_soft.mem_set(f->be, &all, f->a), QCU_ERR_Success);
		assert_int_equal(be_soft.mem_set(f->be, &m, f->a), QCU_ERR_Success);
		assert_int_equal(be_soft.copy_d2h(f->be, got, a, 1000, f->a), QCU_ERR_Success);
		for (i = 0; i < 1000; i++) {
			bool in = i >= 100 && (i - 100) % 200 < 60 && (i - 100) / 200 < 4;

			assert_int_equal(got[i], in ? cases[c].bytes[(i - 100) % 4] : 0);
		}
	}
}

/* Memory that is not registered has been read when the call returns, and is not written before. */
static void pageable_copies_may_be_reused_at_once(void **state)
{
	static const size_t sizes[] = {1, 4096, 64 << 10, (64 << 10) + 1, 8 << 20};
	struct fixture *f = *state;
	unsigned char *host = malloc(8 << 20), *back = malloc(8 << 20);
	uint64_t a = alloc(f, 8 << 20);
	size_t i, k;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		/* Small copies do not even wait for the stream. */
		atomic_store(&f->door, sizes[i] > 64 << 10);
		gate(f, f->a);
		for (k = 0; k < sizes[i]; k++)
			host[k] = (unsigned char)(k * 7 + i);
		assert_int_equal(be_soft.copy_h2d(f->be, a, host, sizes[i], f->a), QCU_ERR_Success);
		memset(host, 0, sizes[i]);
		open_gate(f);
		assert_int_equal(be_soft.copy_d2h(f->be, back, a, sizes[i], f->a), QCU_ERR_Success);
		for (k = 0; k < sizes[i]; k++)
			assert_int_equal(back[k], (unsigned char)(k * 7 + i));
	}
	free(host);
	free(back);
}

static void registered_copies_are_queued(void **state)
{
	struct fixture *f = *state;
	unsigned char *host = calloc(2, 1 << 20);
	uint64_t a = alloc(f, 1 << 20), b = alloc(f, 1 << 20);

	assert_int_equal(be_soft.host_register(f->be, host, 2 << 20), QCU_ERR_Success);
	gate(f, f->a);
	assert_int_equal(be_soft.copy_h2d(f->be, a, host, 1 << 20, f->a), QCU_ERR_Success);
	assert_int_equal(be_soft.copy_d2d(f->be, b, a, 1 << 20, 0, f->a), QCU_ERR_Success);
	assert_int_equal(be_soft.copy_d2h(f->be, host + (1 << 20), b, 1 << 20, f->a),
			 QCU_ERR_Success);
	query(f, f->a, QCU_ERR_NotReady);
	/* The bytes count that are there when the stream reaches the copy. */
	memset(host, 0x5a, 1 << 20);
	open_gate(f);
	/* Unregistering waits. */
	assert_int_equal(be_soft.host_unregister(f->be, host), QCU_ERR_Success);
	assert_memory_equal(host, host + (1 << 20), 1 << 20);
	assert_int_equal(host[(2 << 20) - 1], 0x5a);
	free(host);
}

static void copies_between_devices(void **state)
{
	struct fixture *f = *state;
	uint64_t a = alloc(f, 64), b;
	char in[64] = "from one device to the other", out[64] = "";

	assert_int_equal(be_soft.mem_alloc(f->be, 1, 64, &b), QCU_ERR_Success);
	assert_int_equal(be_soft.copy_h2d(f->be, a, in, 64, f->a), QCU_ERR_Success);
	assert_int_equal(be_soft.copy_d2d(f->be, b, a, 64, 0, f->a), QCU_ERR_Success);
	assert_int_equal(be_soft.copy_d2h(f->be, out, b, 64, f->a), QCU_ERR_Success);
	assert_string_equal(in, out);
}

/*
 * After an error, all calls that CUDA refuses are refused; the calls that CUDA still answers are
 * answered.
 */
static void expect_broken(struct fixture *f, int err)
{
	struct be_memset m = {.dst = 1, .width = 1, .height = 1, .elem = 1};
	struct qcu_device_desc desc;
	struct be_module *mod;
	struct be_kernel *k;
	struct be_stream *s;
	struct be_event *e;
	uint32_t u, v;
	uint64_t x, y;
	unsigned int n;
	char c;

	assert_int_equal(be_soft.device_sync(f->be, 0), err);
	assert_int_equal(be_soft.device_sync(f->be, 1), err);
	assert_int_equal(be_soft.stream_sync(f->be, f->b), err);
	assert_int_equal(be_soft.stream_query(f->be, f->b), err);
	assert_int_equal(be_soft.stream_create(f->be, 0, 0, 0, &s), err);
	assert_int_equal(be_soft.event_create(f->be, 0, 0, &e), err);
	assert_int_equal(be_soft.mem_alloc(f->be, 0, 4, &x), err);
	assert_int_equal(be_soft.mem_free(f->be, 0), err);
	assert_int_equal(be_soft.mem_info(f->be, 0, &x, &y), err);
	assert_int_equal(be_soft.host_register(f->be, &c, 1), err);
	assert_int_equal(be_soft.copy_h2d(f->be, 1, &c, 1, f->a), err);
	assert_int_equal(be_soft.copy_d2h(f->be, &c, 1, 1, f->a), err);
	assert_int_equal(be_soft.copy_d2d(f->be, 1, 1, 1, 0, f->a), err);
	assert_int_equal(be_soft.mem_set(f->be, &m, f->a), err);
	assert_int_equal(be_soft.module_load(f->be, FAKE_PTX, strlen(FAKE_PTX), NULL, &mod), err);
	assert_int_equal(be_soft.kernel_find(f->be, f->m, "step", &k), err);
	assert_int_equal(be_soft.var_find(f->be, 0, f->m, "var", &x, &y), err);
	assert_int_equal(be_soft.occupancy(f->be, 0, f->step, 32, 0, 0, &u), err);
	assert_int_equal(fake_launch(f->be, f->step, f->a, 0, 0, 0), err);
	assert_int_equal(be_soft.device_count(f->be, &n), QCU_ERR_Success);
	assert_int_equal(be_soft.device_desc(f->be, 0, &desc), QCU_ERR_Success);
	assert_int_equal(be_soft.versions(f->be, &u, &v), QCU_ERR_Success);
}

static void faults_are_for_ever(void **state)
{
	static const struct {
		enum ptx_status status;
		int err;
	} cases[] = {
		{PTX_ILLEGAL_ADDRESS, QCU_ERR_IllegalAddress},
		{PTX_MISALIGNED_ADDRESS, QCU_ERR_MisalignedAddress},
		{PTX_TRAP, QCU_ERR_LaunchFailure},
		{PTX_ASSERT, QCU_ERR_Assert},
		{PTX_STACK_OVERFLOW, QCU_ERR_LaunchFailure},
		{PTX_KILLED, QCU_ERR_LaunchTimeout},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture *f;

		setup(state);
		f = *state;
		/* The launch itself succeeds. */
		assert_int_equal(fake_launch(f->be, f->status, f->a, cases[i].status, 0, 0),
				 QCU_ERR_Success);
		assert_int_equal(be_soft.stream_sync(f->be, f->a), cases[i].err);
		expect_broken(f, cases[i].err);
		teardown(state);
	}
}

static void an_error_stops_what_runs_and_drops_what_waits(void **state)
{
	struct fixture *f = *state;
	uint64_t slot = 0;

	gate(f, f->a);
	step(f, f->a, &slot);
	gate(f, f->free_running);
	assert_int_equal(fake_launch(f->be, f->store, f->b, 16, 1, 0), QCU_ERR_Success);
	assert_int_equal(be_soft.device_sync(f->be, 0), QCU_ERR_IllegalAddress);
	assert_int_equal(slot, 0);
	expect_broken(f, QCU_ERR_IllegalAddress);
}

static void a_kernel_has_a_time_limit_on_request(void **state)
{
	struct be_options opt = {0};
	struct fixture *f;
	struct be *be;

	setenv("QCU_SOFT_TIMEOUT", "soon", 1);
	assert_int_equal(be_soft.open(&be, &opt), QCU_ERR_InvalidValue);
	setenv("QCU_SOFT_TIMEOUT", "1", 1);
	setup(state);
	unsetenv("QCU_SOFT_TIMEOUT");
	f = *state;
	assert_int_equal(fake_launch(f->be, f->open, f->b, (uintptr_t)&f->other_door, 0, 0),
			 QCU_ERR_Success);
	sync(f, f->b);
	gate(f, f->a);
	assert_int_equal(be_soft.stream_sync(f->be, f->a), QCU_ERR_LaunchTimeout);
	expect_broken(f, QCU_ERR_LaunchTimeout);
	teardown(state);
}

static void the_first_error_counts(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fake_launch(f->be, f->status, f->a, PTX_ASSERT, 0, 0), QCU_ERR_Success);
	fake_launch(f->be, f->status, f->a, PTX_TRAP, 0, 0);
	assert_int_equal(be_soft.device_sync(f->be, 0), QCU_ERR_Assert);
	assert_int_equal(be_soft.device_sync(f->be, 0), QCU_ERR_Assert);
}

static void the_device_is_gone_after_a_reset(void **state)
{
	struct fixture *f = *state;
	uint64_t a;

	assert_int_equal(fake_launch(f->be, f->status, f->a, PTX_TRAP, 0, 0), QCU_ERR_Success);
	assert_int_equal(be_soft.device_sync(f->be, 0), QCU_ERR_LaunchFailure);
	assert_int_equal(be_soft.device_reset(f->be, 0), QCU_ERR_Success);
	assert_int_equal(be_soft.mem_alloc(f->be, 0, 4, &a), QCU_ERR_DevicesUnavailable);
	assert_int_equal(be_soft.device_sync(f->be, 0), QCU_ERR_DevicesUnavailable);
}

static void an_unsupported_kernel_is_told_once(void **state)
{
	struct fixture *f = *state;
	uint64_t slot = 0;

	assert_int_equal(fake_launch(f->be, f->status, f->a, PTX_UNSUPPORTED, 0, 0),
			 QCU_ERR_Success);
	assert_int_equal(be_soft.stream_sync(f->be, f->a), QCU_ERR_NotSupported);
	sync(f, f->a);
	step(f, f->a, &slot);
	sync(f, f->a);
	assert_int_equal(slot, 1);
}

static void closing_stops_everything(void **state)
{
	struct fixture *f = *state;
	struct be_stream *s;
	uint64_t slot = 0;

	assert_int_equal(be_soft.stream_create(f->be, 1, 0, 0, &s), QCU_ERR_Success);
	gate(f, f->a);
	gate(f, f->legacy);
	gate(f, s);
	step(f, f->b, &slot);
	assert_int_equal(be_soft.stream_destroy(f->be, f->b), QCU_ERR_Success);
}

struct feeder {
	struct fixture *f;
	struct be_stream *s;
	uint64_t slot[100];
};

static void *feed(void *arg)
{
	struct feeder *w = arg;
	uint64_t a;
	char c = 1;
	unsigned int i;

	be_soft.mem_alloc(w->f->be, 0, 64, &a);
	for (i = 0; i < 100; i++) {
		fake_launch(w->f->be, w->f->step, w->s, (uintptr_t)&w->f->count,
			    (uintptr_t)&w->slot[i], 0);
		be_soft.copy_h2d(w->f->be, a, &c, 1, w->s);
		if (i % 16 == 0)
			be_soft.stream_sync(w->f->be, w->s);
		if (i % 32 == 0)
			be_soft.device_sync(w->f->be, 0);
	}
	be_soft.mem_free(w->f->be, a);
	return NULL;
}

static void threads_may_use_all_streams(void **state)
{
	struct fixture *f = *state;
	struct feeder w[4] = {
		{f, f->a, {0}}, {f, f->legacy, {0}}, {f, f->free_running, {0}}, {f, f->a, {0}}};
	pthread_t t[4];
	unsigned int i, k;

	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, feed, &w[i]), 0);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	sync_all(f);
	assert_int_equal(f->count, 400);
	for (i = 0; i < 4; i++)
		for (k = 1; k < 100; k++)
			assert_true(w[i].slot[k] > w[i].slot[k - 1]);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(refuses_bad_flags),
		T(copies_refuse_what_is_no_memory),
		T(fills_refuse_what_makes_no_sense),
		T(work_of_a_stream_is_in_order),
		T(streams_run_side_by_side),
		T(the_legacy_stream_waits_for_blocking_streams),
		T(blocking_streams_wait_for_the_legacy_stream),
		T(asking_the_legacy_stream_asks_blocking_streams),
		T(devices_do_not_wait_for_each_other),
		T(a_destroyed_stream_does_its_work),
		T(many_streams_come_and_go),
		T(fills_set_rows_and_nothing_between),
		T(pageable_copies_may_be_reused_at_once),
		T(registered_copies_are_queued),
		T(copies_between_devices),
		cmocka_unit_test(faults_are_for_ever),
		T(an_error_stops_what_runs_and_drops_what_waits),
		cmocka_unit_test(a_kernel_has_a_time_limit_on_request),
		T(the_first_error_counts),
		T(the_device_is_gone_after_a_reset),
		T(an_unsupported_kernel_is_told_once),
		T(closing_stops_everything),
		T(threads_may_use_all_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

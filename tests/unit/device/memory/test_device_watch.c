// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queries that the mirror goes on asking by itself, and the page in which it writes the results.
 * The page belongs to the guest: its content must not matter to the mirror. When the page is
 * unmapped, the mirror must not write there any more.
 */
#define _GNU_SOURCE /* memfd_create */
#include <time.h>

#include "qcu-device/memory/guestmem.h"
#include "tests/unit/device/memory/test_device_memfd.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define VA   QCU_WINDOW_BASE
#define PAGE 4096u
#define RAM  (64 * PAGE)
#define LEN  64u

static struct guestmem mem;
static uint8_t *ram;
static uint64_t dev;

static int make_ram(void **state)
{
	(void)state;
	ram = memfd_ram(RAM);
	return !ram || guestmem_add(&mem, 0, RAM, ram);
}

static int map(uint64_t va, uint64_t gpa, uint64_t len)
{
	const struct qcu_seg seg = {gpa, len};
	struct qCUcmd c = {.op = QCU_OP_MAP, .flags = QCU_F_SEGS};

	c.map.va = va;
	c.map.len = len;
	return ask_with(&c, NULL, &seg, 1);
}

static int unmap(uint64_t va, uint64_t len)
{
	struct qCUcmd c = {.op = QCU_OP_UNMAP};

	c.unmap.va = va;
	c.unmap.len = len;
	return ask(c);
}

static int watch(uint64_t va, uint64_t len)
{
	struct qCUcmd c = CMD(WATCH, watch, .buf = {va, len});

	c.flags = QCU_F_WINDOW;
	return ask(c);
}

/* The page is at the guest's physical address 0. Behind it is the memory that copies move. */
static int start(enum mir_map how)
{
	struct mir_config cfg = {.ops = &fake_ops, .session = 1, .mem = &mem, .map = how};
	struct qCUcmd c = CMD(MALLOC, malloc, .size = LEN);

	memset(ram, 0, RAM);
	fake_reset();
	if (mir_create(&mirror, &cfg) || ask_with(&c, NULL, NULL, 0))
		return -1;
	dev = c.malloc.ptr;
	return map(VA, 0, 4 * PAGE) ||
	       ask(CMD(STREAM_CREATE, stream_create, .stream = 2, .flags = 1)) ||
	       ask(CMD(EVENT_CREATE, event_create, .event = 2));
}

static int start_cvm(void **state)
{
	(void)state;
	return start(MIR_MAP_CVM);
}

static int start_ncvm(void **state)
{
	(void)state;
	return start(MIR_MAP_NCVM);
}

static int stop(void **state)
{
	/* Queued copies need the memory. */
	ask(CMD(STREAM_SYNC, stream_sync, .stream = 2));
	unmap(VA, 4 * PAGE);
	ask(CMD(FREE, free, .ptr = dev));
	return mirror_stop(state);
}

/* Puts work into the stream that goes on until the stream is waited for. */
static void work(uint32_t stream)
{
	struct qCUcmd c = CMD(COPY_H2D, copy_h2d, .buf = {VA + PAGE, LEN}, .dst = dev,
			      .stream = stream, .flags = QCU_COPY_QUEUED);

	c.flags = QCU_F_WINDOW;
	assert_int_equal(ask(c), 0);
}

static void record(uint32_t event, uint32_t stream)
{
	assert_int_equal(ask(CMD(EVENT_RECORD, event_record, .event = event, .stream = stream)), 0);
}

static void finish(uint32_t stream)
{
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = stream)), 0);
}

/* Sends a query. Returns whether the mirror watches. */
static bool query_event(uint32_t event, uint32_t slot, uint64_t token, int want)
{
	struct qCUcmd c =
		CMD(EVENT_QUERY, event_query, .event = event, .slot = slot, .token = token);

	assert_int_equal(ask_with(&c, NULL, NULL, 0), want);
	return c.event_query.watched;
}

static bool query_stream(uint32_t stream, uint32_t slot, uint64_t token, int want)
{
	struct qCUcmd c =
		CMD(STREAM_QUERY, stream_query, .stream = stream, .slot = slot, .token = token);

	assert_int_equal(ask_with(&c, NULL, NULL, 0), want);
	return c.stream_query.watched;
}

static uint64_t word(unsigned int slot)
{
	return __atomic_load_n((uint64_t *)ram + slot, __ATOMIC_ACQUIRE);
}

static void a_moment(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* There is no time limit except the test's own. */
static void becomes(unsigned int slot, uint64_t want)
{
	while (word(slot) != want)
		a_moment();
}

static void bad_pages(void **state)
{
	(void)state;
	assert_int_equal(watch(VA, 0), QCU_ERR_InvalidValue);
	assert_int_equal(watch(VA, PAGE - 1), QCU_ERR_InvalidValue);
	assert_int_equal(watch(VA, PAGE + 1), QCU_ERR_InvalidValue);
	assert_int_equal(watch(VA, 2 * PAGE), QCU_ERR_InvalidValue);
	assert_int_equal(watch(VA + 8, PAGE), QCU_ERR_InvalidValue);
	assert_int_equal(watch(VA + 4 * PAGE, PAGE), QCU_ERR_InvalidValue);
	assert_int_equal(watch(0, PAGE), QCU_ERR_InvalidValue);
	assert_int_equal(watch(UINT64_MAX - PAGE + 1, PAGE), QCU_ERR_InvalidValue);
	/* Without a page nothing is watched. */
	work(2);
	record(2, 2);
	assert_false(query_event(2, 0, 5, QCU_ERR_NotReady));
	assert_false(query_stream(2, 0, 5, QCU_ERR_NotReady));
}

static void bad_queries(void **state)
{
	unsigned int i;

	(void)state;
	assert_int_equal(watch(VA, PAGE), 0);
	work(2);
	record(2, 2);
	assert_false(query_event(2, 0, 0, QCU_ERR_NotReady));
	assert_false(query_event(2, QCU_WATCH_SLOTS, 5, QCU_ERR_NotReady));
	assert_false(query_event(2, UINT32_MAX, 5, QCU_ERR_NotReady));
	assert_false(query_event(2, 0, QCU_WATCH_ASK, QCU_ERR_NotReady));
	assert_false(query_event(2, 0, QCU_WATCH_ASK | 5, QCU_ERR_NotReady));
	assert_false(query_event(9, 0, 5, QCU_ERR_InvalidResourceHandle));
	assert_false(query_stream(9, 0, 5, QCU_ERR_InvalidResourceHandle));
	finish(2);
	assert_false(query_event(2, 0, 5, 0));
	for (i = 0; i < PAGE / 8; i++)
		assert_int_equal(word(i), 0);
}

static void tells_when_done(void **state)
{
	unsigned int i;

	(void)state;
	assert_int_equal(watch(VA, PAGE), 0);
	for (i = 1; i < 50; i++) {
		/* What the guest writes there does not matter. */
		memset(ram, i % 3 ? 0xff : 0, PAGE);
		work(2);
		record(2, 2);
		assert_true(query_event(2, 7, i, QCU_ERR_NotReady));
		assert_true(query_stream(2, QCU_WATCH_SLOTS - 1, i << 8, QCU_ERR_NotReady));
		if (i % 10 == 0)
			a_moment();
		assert_int_not_equal(word(7), i);
		assert_int_not_equal(word(QCU_WATCH_SLOTS - 1), i << 8);
		finish(2);
		becomes(7, i);
		becomes(QCU_WATCH_SLOTS - 1, i << 8);
	}
	/*
	 * The legacy stream is watched. A per-thread stream is not: only the thread's lane may
	 * query it.
	 */
	work(QCU_STREAM_LEGACY);
	work(QCU_STREAM_PER_THREAD);
	assert_true(query_stream(QCU_STREAM_LEGACY, 1, 77, QCU_ERR_NotReady));
	assert_false(query_stream(QCU_STREAM_PER_THREAD, 2, 78, QCU_ERR_NotReady));
	finish(QCU_STREAM_LEGACY);
	finish(QCU_STREAM_PER_THREAD);
	becomes(1, 77);
	assert_int_equal(ask((struct qCUcmd){.op = QCU_OP_THREAD_EXIT, .tid = 1}), 0);
}

/* The last query that names a slot has the slot. */
static void place_taken(void **state)
{
	(void)state;
	assert_int_equal(watch(VA, PAGE), 0);
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 3, .flags = 1)), 0);
	work(2);
	record(2, 2);
	work(3);
	assert_true(query_event(2, 7, 5, QCU_ERR_NotReady));
	assert_true(query_stream(3, 7, 6, QCU_ERR_NotReady));
	assert_true(query_event(2, 8, 9, QCU_ERR_NotReady));
	finish(2);
	becomes(8, 9);
	assert_int_equal(word(7), 0);
	finish(3);
	becomes(7, 6);
}

/* Watched objects may be destroyed, or may go with a reset of their device. */
static void destroyed(void **state)
{
	(void)state;
	assert_int_equal(watch(VA, PAGE), 0);
	work(2);
	record(2, 2);
	assert_true(query_event(2, 7, 5, QCU_ERR_NotReady));
	assert_int_equal(ask(CMD(EVENT_DESTROY, event_destroy, .event = 2)), 0);
	finish(2);
	becomes(7, 5);
	assert_int_equal(ask(CMD(EVENT_CREATE, event_create, .event = 2)), 0);
	work(2);
	record(2, 2);
	assert_true(query_event(2, 7, 8, QCU_ERR_NotReady));
	assert_true(query_stream(2, 9, 10, QCU_ERR_NotReady));
	assert_int_equal(ask((struct qCUcmd){.op = QCU_OP_DEVICE_RESET, .tid = 1}), 0);
	assert_int_equal(word(7), 8 | QCU_WATCH_ASK);
	assert_int_equal(word(9), 10 | QCU_WATCH_ASK);
	/* The reset has freed the memory. */
	dev = 0;
}

/* An error is not "done". The next query or wait gets it. */
static void errors(void **state)
{
	(void)state;
	assert_int_equal(watch(VA, PAGE), 0);
	work(2);
	record(2, 2);
	assert_true(query_event(2, 7, 5, QCU_ERR_NotReady));
	fake.error = QCU_ERR_LaunchFailure;
	fake.lost = true;
	becomes(7, 5 | QCU_WATCH_ASK);
	assert_false(query_event(2, 7, 5, QCU_ERR_LaunchFailure));
	/* As if the backend reported the error only once. */
	fake.lost = false;
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 2)), QCU_ERR_LaunchFailure);
	finish(2);
}

/* The memory goes back to the guest: the mirror must not write there any more. */
static void page_leaves(void **state)
{
	(void)state;
	assert_int_equal(map(VA + 8 * PAGE, 32 * PAGE, 2 * PAGE), 0);
	assert_int_equal(watch(VA + 9 * PAGE, PAGE), 0);
	work(2);
	record(2, 2);
	assert_true(query_event(2, 7, 5, QCU_ERR_NotReady));
	assert_int_equal(unmap(VA + 8 * PAGE, 2 * PAGE), 0);
	memset(ram + 33 * PAGE, 0x5a, PAGE);
	assert_false(query_event(2, 8, 6, QCU_ERR_NotReady));
	/* Another page is used from now on. Results of earlier queries are written there. */
	assert_int_equal(watch(VA, PAGE), 0);
	assert_true(query_event(2, 9, 7, QCU_ERR_NotReady));
	finish(2);
	becomes(9, 7);
	becomes(7, 5);
	assert_int_equal(ram[33 * PAGE + 7 * 8], 0x5a);
	assert_memory_equal(ram + 33 * PAGE, ram + 33 * PAGE + 8, PAGE - 8);
}

/* An UNMAP whose length wraps unmaps nothing. Afterwards nothing is written to the page either. */
static void page_leaves_by_wrapping(void **state)
{
	static const uint64_t from[] = {PAGE, VA + 8 * PAGE};
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(map(VA + 8 * PAGE, 32 * PAGE, 2 * PAGE), 0);
		assert_int_equal(watch(VA + 9 * PAGE, PAGE), 0);
		work(2);
		record(2, 2);
		assert_true(query_event(2, 7, 5, QCU_ERR_NotReady));
		assert_int_equal(unmap(from[i], 0 - from[i]), MIR_RULE_BROKEN);
		memset(ram + 33 * PAGE, 0x5a, PAGE);
		assert_false(query_event(2, 8, 6, QCU_ERR_NotReady));
		finish(2);
		assert_int_equal(ram[33 * PAGE + 7 * 8], 0x5a);
		assert_int_equal(unmap(VA + 8 * PAGE, 2 * PAGE), 0);
	}
}

int main(void)
{
#define T(f)                                            \
	{#f " (cvm)", f, start_cvm, stop, NULL},        \
	{                                               \
#f " (ncvm)", f, start_ncvm, stop, NULL \
	}
	static const struct CMUnitTest tests[] = {
		T(bad_pages), T(bad_queries), T(tells_when_done), T(place_taken),
		T(destroyed), T(errors),      T(page_leaves),	  T(page_leaves_by_wrapping),
	};
#undef T

	return cmocka_run_group_tests(tests, make_ram, NULL);
}

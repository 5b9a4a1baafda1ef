// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Large copies of memory that is not registered: several threads carry them. First errors, then
 * copies that one thread does alone, the bytes, and lanes that have no thread or slot to spare for
 * one another.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "qcu-device/commands/call.h"
#include "qcu-device/memory/staging.h"
#include "tests/unit/device/memory/test_device_ram.h"

#define THREADS 4u
#define BIG	(3200 * PAGE) /* device memory */
#define MIB	(1ull << 20)
#define SEGS	3000

static struct qcu_seg segs[SEGS];
static uint8_t want[RAM], image[RAM];

static int start_alone(void **state)
{
	(void)state;
	return start((struct mir_config){.copiers = 1}, BIG);
}

static int start_several(void **state)
{
	(void)state;
	return start((struct mir_config){.copiers = THREADS}, BIG);
}

static int start_limited(void **state)
{
	(void)state;
	return start((struct mir_config){.copiers = THREADS, .pin_limit = PAGE}, BIG);
}

/* The guest-physical address of page n. */
static uint64_t page(size_t n)
{
	return n < RAM / 2 / PAGE ? n * PAGE : HIGH + n * PAGE - RAM / 2;
}

/* Scattered pages of 10.2 MiB: for each thread more than fits into the slots that it may have. */
static size_t many_pages(void)
{
	size_t i;

	for (i = 0; i < 2600; i++)
		segs[i] = (struct qcu_seg){page(2599 - i), PAGE};
	return i;
}

/* Copies up, and down again over other content. The bytes around the target must stay. */
static void there_and_back(size_t n, uint32_t flags)
{
	size_t i, len = gather(want, segs, n);

	memset((void *)dev, 0x11, BIG);
	assert_int_equal(copy_segs(true, dev + 1, segs, n, flags), 0);
	memset(ram, 0xcc, RAM);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 0)), 0);
	assert_memory_equal((void *)(dev + 1), want, len);
	assert_int_equal(*(uint8_t *)dev, 0x11);
	assert_int_equal(*(uint8_t *)(dev + 1 + len), 0x11);
	assert_int_equal(copy_segs(false, dev + 1, segs, n, flags), 0);
	memset(image, 0xcc, RAM);
	for (len = i = 0; i < n; len += segs[i++].len)
		memcpy(image + (at_gpa(segs[i].gpa) - ram), want + len, segs[i].len);
	assert_memory_equal(ram, image, RAM);
}

/* An error in any thread is returned. It leaves no slot busy and no copy waiting. */
static void errors_in_between(void **state)
{
	_Atomic int *const turns[] = {&fake.copies_left, &fake.records_left};
	size_t t, n = many_pages();
	int at, up;

	(void)state;
	for (t = 0; t < 2; t++) {
		for (at = 0; at < 20; at++) {
			for (up = 0; up < 2; up++) {
				fake.error = QCU_ERR_LaunchFailure;
				*turns[t] = at;
				assert_int_equal(copy_segs(up, dev, segs, n, 0),
						 QCU_ERR_LaunchFailure);
			}
		}
	}
	/* Parts of the last copy may still be queued, and would come after what is written next. */
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 0)), 0);
	there_and_back(n, 0);
	/* No slot was lost: otherwise more would have been made. */
	assert_in_range(fake.registrations, 1, 2 * THREADS * STAGE_DEPTH);
}

static void lost_context(void **state)
{
	size_t n = many_pages();

	(void)state;
	assert_int_equal(copy_segs(true, dev, segs, n, 0), 0);
	fake.error = QCU_ERR_IllegalAddress;
	fake.sticky = true;
	fake.copies_left = 9;
	assert_int_equal(copy_segs(false, dev, segs, n, 0), QCU_ERR_IllegalAddress);
	assert_int_equal(copy_segs(true, dev, segs, n, 0), QCU_ERR_IllegalAddress);
	assert_int_equal(copy_segs(true, dev, segs, n, QCU_COPY_SYNC), QCU_ERR_IllegalAddress);
}

/* The backend registers no memory for one of the threads. */
static void no_slot_for_one(void **state)
{
	size_t n = many_pages(), len = n * PAGE;
	struct qcu_stats_desc st;
	int granted;

	(void)state;
	for (granted = 0; granted < 10; granted++) {
		fake.error = QCU_ERR_MemoryAllocation;
		fake.registers_left = granted;
		there_and_back(n, 0);
	}
	st = stats();
	balanced(&st);
	assert_int_equal(st.h2d_bytes, 10 * len);
	assert_int_equal(st.d2h_bytes, 10 * len);
}

/* Without other threads, long pieces go to the backend directly, as in small copies. */
static void left_to_one(void **state)
{
	const struct qcu_seg whole = {0, 4 * MIB};

	(void)state;
	assert_int_equal(copy_segs(true, dev, &whole, 1, 0), 0);
	assert_memory_equal((void *)dev, ram, whole.len);
	assert_int_equal(stats().copies, 1);
	assert_int_equal(stats().pages_bytes, whole.len);
	assert_int_equal(stats().staged_bytes, 0);
	many_pages();
	there_and_back(1600, 0);
	assert_int_equal(stats().staged_bytes, 2 * 1600 * PAGE);
}

static void small_ones(void **state)
{
	struct qcu_seg seg = {PAGE, 2 * MIB - 1};

	(void)state;
	assert_int_equal(copy_segs(true, dev, &seg, 1, 0), 0);
	assert_int_equal(stats().copies, 1);
	assert_int_equal(stats().staged_bytes, 0);
	seg.len++;
	assert_int_equal(copy_segs(true, dev, &seg, 1, 0), 0);
	assert_int_equal(stats().copies, 1 + 2 * MIB / STAGE_BYTES);
	assert_int_equal(stats().staged_bytes, seg.len);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 0)), 0);
	assert_memory_equal((void *)dev, ram + PAGE, seg.len);
}

static void add(size_t *n, uint64_t gpa, uint64_t len)
{
	segs[(*n)++] = (struct qcu_seg){gpa, len};
}

/* Pieces of all lengths that end before, at and behind a slot's border. */
static size_t lay_out(unsigned int kind)
{
	const uint64_t near[] = {STAGE_BYTES - 1, STAGE_BYTES, STAGE_BYTES + 1};
	uint64_t at = 3;
	size_t n = 0, i;

	switch (kind) {
	case 0: /* one piece, at an odd address */
		add(&n, 5, 7 * MIB + 77);
		break;
	case 1: /* two, in both parts of the memory */
		add(&n, HIGH + 9, 5 * MIB + 1);
		add(&n, PAGE - 1, 4 * MIB);
		break;
	case 2:
	case 3:
	case 4: /* all of the same length */
		for (i = 0; i < 13; i++, at += near[kind - 2] + 5)
			add(&n, at, near[kind - 2]);
		break;
	case 5: /* long ones among short ones */
		for (i = 0; i < 4; i++) {
			add(&n, at, 1 + i);
			add(&n, at + 100, 4000);
			add(&n, at + 5000, MIB + i * 1000);
			at += 5000 + MIB + i * 1000 + 1;
		}
		add(&n, HIGH, 1);
		break;
	case 6: /* exactly the size of all slots of all threads */
		add(&n, 0, THREADS * STAGE_DEPTH * (uint64_t)STAGE_BYTES);
		break;
	default:
		return many_pages();
	}
	return n;
}

static void odd_pieces(void **state)
{
	struct qcu_stats_desc st;
	unsigned int kind;

	(void)state;
	for (kind = 0; kind <= 7; kind++) {
		there_and_back(lay_out(kind), 0);
		there_and_back(lay_out(kind), QCU_COPY_SYNC);
	}
	st = stats();
	balanced(&st);
	assert_int_equal(st.pages_bytes, 0);
	assert_int_equal(st.h2d_bytes, st.d2h_bytes);
	assert_int_equal(st.staged_bytes, 2 * st.h2d_bytes);
	assert_in_range(fake.registrations, STAGE_DEPTH, THREADS * STAGE_DEPTH);
}

/* Chunks beyond the limit of registered memory. */
static void in_window(void **state)
{
	const struct qcu_seg chunks[] = {{0, 512 * PAGE}, {HIGH, 512 * PAGE}, {600 * PAGE, PAGE}};
	size_t len = 1025 * PAGE - 10;
	uint32_t flags;

	(void)state;
	assert_int_equal(map(VA, chunks, 3), 0);
	gather(want, chunks, 3);
	for (flags = 0; flags <= QCU_COPY_FLAGS; flags++) {
		memcpy((void *)VA, want, 1025 * PAGE);
		memset((void *)dev, 0, len);
		assert_int_equal(copy_window(true, dev, VA + 3, len, flags), 0);
		memset((void *)VA, 0xcc, 1025 * PAGE);
		assert_int_equal(copy_window(false, dev, VA + 3, len, flags), 0);
		assert_memory_equal((void *)dev, want + 3, len);
		assert_memory_equal((void *)(VA + 3), want + 3, len);
	}
	assert_int_equal(stats().registered_bytes, 0);
	assert_int_equal(stats().staged_bytes, 8 * len);
	assert_int_equal(stats().window_bytes, 0);
	assert_int_equal(unmap(VA, 1025 * PAGE), 0);
}

/* The first copy of a large map carries it, in either direction, and the next one does not. */
static void first_use(void **state)
{
	const struct qcu_seg chunks[] = {{0, 512 * PAGE}, {HIGH, 512 * PAGE}};
	size_t len = 1024 * PAGE;
	int up;

	(void)state;
	mirror->window.late_bytes = len;
	for (up = 0; up < 2; up++) {
		struct qcu_stats_desc before = stats();

		assert_int_equal(map(VA, chunks, 2), 0);
		gather(want, chunks, 2);
		want[7] ^= 0xff;
		memcpy(up ? (void *)VA : (void *)dev, want, len);
		memset(up ? (void *)dev : (void *)VA, 0, len);
		assert_int_equal(copy_window(up, dev, VA, len, QCU_COPY_SYNC), 0);
		assert_memory_equal((void *)dev, want, len);
		assert_memory_equal((void *)VA, want, len);
		assert_int_equal(stats().staged_bytes - before.staged_bytes, len);
		assert_int_equal(stats().registered_bytes, before.registered_bytes);
		memset((void *)VA, 0, len);
		assert_int_equal(copy_window(false, dev, VA, len, QCU_COPY_SYNC), 0);
		assert_memory_equal((void *)VA, want, len);
		assert_int_equal(stats().window_bytes - before.window_bytes, len);
		assert_int_equal(stats().registered_bytes - before.registered_bytes, len);
		assert_int_equal(unmap(VA, len), 0);
	}
}

static void until_held(unsigned int threads)
{
	while (fake.held != threads)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Begins a copy of one or two segments. */
static void begin_copy(struct question *qu, bool h2d, uint32_t tid, uint64_t addr,
		       const struct qcu_seg seg[2])
{
	uint64_t len = seg[0].len + seg[1].len;
	struct qCUcmd c;

	if (h2d)
		c = CMD(COPY_H2D, copy_h2d, .buf = {1, len}, .dst = addr);
	else
		c = CMD(COPY_D2H, copy_d2h, .buf = {1, len}, .src = addr);
	c.tid = tid;
	c.flags = QCU_F_SEGS;
	*qu = (struct question){.req = {.cmd = c, .segs = seg, .seg_count = seg[1].len ? 2 : 1}};
	assert_true(ask_begin(qu));
}

/* All threads carry at once, with all slots that they may have. */
static void all_at_once(void **state)
{
	const struct qcu_seg all[2] = {{0, RAM / 2}, {HIGH, BIG - RAM / 2}};
	struct question qu;
	size_t i;

	(void)state;
	for (i = 0; i < BIG; i++)
		((uint8_t *)dev)[i] = (uint8_t)(i * 5 + (i >> 12));
	fake.hold = true;
	begin_copy(&qu, false, 1, dev, all);
	until_held(THREADS);
	assert_int_equal(fake.waiting_most, THREADS * STAGE_DEPTH);
	assert_int_equal(fake.registrations, THREADS * STAGE_DEPTH);
	fake.hold = false;
	assert_int_equal(ask_end(&qu), 0);
	assert_memory_equal(ram, (void *)dev, BIG);
}

/*
 * A thread that comes to help has no device yet. Memory that CUDA registers in such a thread
 * creates a context on the first device.
 */
static void other_device(void **state)
{
	size_t n = many_pages();
	struct qCUcmd c = CMD(COPY_H2D, copy_h2d, .buf = {1, n * PAGE}, .dst = dev);

	(void)state;
	gather(want, segs, n);
	c.device = 1;
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, segs, n), 0);
	assert_int_equal(fake.registered_on, 1u << 1);
	c = CMD(STREAM_SYNC, stream_sync, .stream = 0);
	c.device = 1;
	assert_int_equal(ask(c), 0);
	assert_memory_equal((void *)dev, want, n * PAGE);
}

/*
 * A copy that hangs, with all threads that help, does not hold up other lanes. The same holds for
 * further copies that hang and take the remaining slots.
 */
static void others_go_on(void **state)
{
	enum { HANGING = (STAGE_SLOTS - THREADS * STAGE_DEPTH - STAGE_DEPTH) / STAGE_DEPTH };
	const size_t len = STAGE_DEPTH * (size_t)STAGE_BYTES;
	struct question first, up, hanging[HANGING];
	const struct qcu_seg most[2] = {{HIGH, 8 * MIB}, {0, len}}, from[2] = {{len, len}};
	const struct qcu_seg into[2] = {{2 * len, len}};
	struct qcu_stats_desc st;
	unsigned int i;

	(void)state;
	fake.hold = true;
	begin_copy(&first, false, 9, dev, most);
	until_held(THREADS);

	memcpy(want, ram + len, len);
	begin_copy(&up, true, 2, dev + 8 * MIB + len, from);
	assert_int_equal(ask_end(&up), 0);
	assert_int_equal(stats().staged_bytes, len);

	for (i = 0; i < HANGING; i++)
		begin_copy(&hanging[i], false, 10 + i, dev, into);
	until_held(THREADS + HANGING);
	assert_int_equal(fake.registrations, STAGE_SLOTS);
	memset((void *)dev, 0x77, 8 * MIB + len);
	begin_copy(&up, true, 3, dev + 8 * MIB + len, from);
	assert_int_equal(ask_end(&up), 0);
	st = stats();
	assert_int_equal(st.staged_bytes, len);
	assert_int_equal(st.pages_bytes, len);
	assert_memory_equal((void *)(dev + 8 * MIB + len), want, len);

	fake.hold = false;
	assert_int_equal(ask_end(&first), 0);
	for (i = 0; i < HANGING; i++)
		assert_int_equal(ask_end(&hanging[i]), 0);
	st = stats();
	balanced(&st);
	memset(image, 0x77, 8 * MIB);
	assert_memory_equal(ram + RAM / 2, image, 8 * MIB);
	assert_memory_equal(ram, image, len);
	assert_memory_equal(ram + 2 * len, image, len);
}

#define LANES 3u
#define PAGES 576u

/* Each lane must find its own bytes. */
static void *one_lane(void *arg)
{
	uint32_t lane = (uint32_t)(uintptr_t)arg, round;
	static struct qcu_seg up[LANES][PAGES], down[LANES][PAGES];
	uintptr_t wrong = 0;
	size_t i;

	for (i = 0; i < PAGES; i++) {
		up[lane][i] = (struct qcu_seg){page((2 * lane + 1) * PAGES - 1 - i), PAGE};
		down[lane][i] = (struct qcu_seg){page((2 * lane + 1) * PAGES + i), PAGE};
	}
	for (round = 0; round < 10; round++) {
		struct qCUcmd c = CMD(COPY_H2D, copy_h2d, .buf = {1, PAGES * PAGE},
				      .dst = dev + lane * PAGES * PAGE);

		for (i = 0; i < PAGES; i++)
			memset(at_gpa(up[lane][i].gpa), (int)(lane + round * 3 + i), PAGE);
		c.tid = lane + 1;
		c.flags = QCU_F_SEGS;
		wrong += ask_with(&c, NULL, up[lane], PAGES) != 0;
		c = CMD(COPY_D2H, copy_d2h, .buf = {1, PAGES * PAGE},
			.src = dev + lane * PAGES * PAGE);
		c.tid = lane + 1;
		c.flags = QCU_F_SEGS;
		wrong += ask_with(&c, NULL, down[lane], PAGES) != 0;
		for (i = 0; i < PAGES; i++)
			wrong += memcmp(at_gpa(up[lane][i].gpa), at_gpa(down[lane][i].gpa), PAGE) !=
				 0;
	}
	return (void *)wrong;
}

static void several_lanes(void **state)
{
	struct qcu_stats_desc st;

	(void)state;
	on_lanes(LANES, one_lane);
	st = stats();
	balanced(&st);
	assert_int_equal(st.pages_bytes, 0);
	assert_int_equal(st.h2d_bytes, LANES * 10 * PAGES * PAGE);
}

int main(void)
{
#define T(f, setup) cmocka_unit_test_setup_teardown(f, setup, mirror_stop)
	static const struct CMUnitTest tests[] = {
		T(errors_in_between, start_several), T(lost_context, start_several),
		T(no_slot_for_one, start_several),   T(left_to_one, start_alone),
		T(small_ones, start_several),	     T(odd_pieces, start_several),
		T(in_window, start_limited),	     T(all_at_once, start_several),
		T(others_go_on, start_several),	     T(several_lanes, start_several),
		T(other_device, start_several),	     T(first_use, start_several),
	};
#undef T

	return cmocka_run_group_tests(tests, make_ram, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The data path of a mirror whose guest is another process: first bad input, then the bytes, which
 * side copied them, and when the guest may use the buffer again.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

#include "qcu-device/memory/staging.h"
#include "tests/unit/device/memory/test_device_ram.h"

#define BIG (1700 * PAGE) /* device memory */

static int start_cvm(void **state)
{
	(void)state;
	return start((struct mir_config){.map = MIR_MAP_CVM}, BIG);
}

static int start_ncvm(void **state)
{
	(void)state;
	return start((struct mir_config){.map = MIR_MAP_NCVM}, BIG);
}

static void bad_addresses(void **state)
{
	const struct qcu_seg page = {0, PAGE};
	const struct {
		uint64_t addr, len;
	} bad[] = {
		{0, PAGE},
		{1, PAGE},
		{dev - 1, PAGE},
		{dev + BIG, PAGE},
		{dev + BIG - PAGE + 1, PAGE},
		{~0ull, PAGE},
		{VA, PAGE},
		{(uintptr_t)ram, PAGE},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(copy_segs(true, bad[i].addr, &page, 1, 0), QCU_ERR_InvalidValue);
		assert_int_equal(copy_segs(false, bad[i].addr, &page, 1, 0), QCU_ERR_InvalidValue);
		assert_int_equal(
			ask(CMD(COPY_D2D, copy_d2d, .dst = bad[i].addr, .src = dev, .len = PAGE)),
			QCU_ERR_InvalidValue);
		assert_int_equal(
			ask(CMD(COPY_D2D, copy_d2d, .dst = dev, .src = bad[i].addr, .len = PAGE)),
			QCU_ERR_InvalidValue);
		assert_int_equal(ask(CMD(MEMSET, memset, .dst = bad[i].addr, .width = PAGE,
					 .height = 1, .elem = 1)),
				 QCU_ERR_InvalidValue);
	}
	assert_int_equal(ask(CMD(COPY_D2D, copy_d2d, .dst = dev, .src = dev, .len = ~0ull)),
			 QCU_ERR_InvalidValue);
	assert_int_equal(copy_segs(true, dev, &page, 1, 8), QCU_ERR_InvalidValue);
	assert_int_equal(copy_segs(false, dev, &page, 1, ~0u), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(COPY_D2D, copy_d2d, .dst = dev, .src = dev, .len = 1, .flags = 4)),
			 QCU_ERR_InvalidValue);
	assert_int_equal(
		ask(CMD(COPY_D2D, copy_d2d, .dst = dev, .src = dev, .len = 1, .stream = 44)),
		QCU_ERR_InvalidResourceHandle);
	assert_int_equal(copy_window(true, dev, VA, PAGE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(copy_window(false, dev, ~0ull - 10, 100, 0), QCU_ERR_InvalidValue);
	/* A copy of no bytes works with any addresses. */
	assert_int_equal(ask(CMD(COPY_H2D, copy_h2d, .dst = 5)), 0);
	assert_int_equal(ask(CMD(COPY_D2H, copy_d2h, .src = 5, .flags = QCU_COPY_SYNC)), 0);
	assert_int_equal(ask(CMD(COPY_D2D, copy_d2d, .dst = 5)), 0);
	assert_int_equal(ask(CMD(COPY_H2D, copy_h2d, .stream = 9)), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(stats().copies, 0);
}

/* A copy reports its time only if the command asks for it. */
static void told_times(void **state)
{
	const struct qcu_seg seg = {0, 256 * PAGE};
	int h2d, asked;

	(void)state;
	for (h2d = 0; h2d < 2; h2d++)
		for (asked = 0; asked < 2; asked++) {
			uint32_t flags = QCU_COPY_SYNC | (asked ? QCU_COPY_TIMED : 0);
			struct qCUcmd c;

			if (h2d)
				c = CMD(COPY_H2D, copy_h2d, .buf = {1, seg.len}, .dst = dev,
					.flags = flags);
			else
				c = CMD(COPY_D2H, copy_d2h, .buf = {1, seg.len}, .src = dev,
					.flags = flags);
			c.flags = QCU_F_SEGS;
			assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
			if (asked) {
				assert_true(c.copy_h2d.copy_ns > 0);
				assert_true(c.copy_h2d.mirror_ns >= c.copy_h2d.copy_ns);
				assert_true(c.copy_h2d.mirror_ns < 1000000000u);
			} else {
				assert_int_equal(c.copy_h2d.mirror_ns | c.copy_h2d.copy_ns, 0);
			}
		}
}

/* Memory that the VM does not have is the guest driver's fault: the session ends. */
static void bad_guest_addresses(void **state)
{
	const struct qcu_seg bad[] = {
		{RAM / 2, PAGE},
		{RAM / 2 - 1, 2},
		{HIGH - 1, 2},
		{HIGH + RAM / 2 - 1, 2},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(copy_segs(true, dev, &bad[i], 1, 0), MIR_RULE_BROKEN);
		assert_int_equal(copy_segs(false, dev, &bad[i], 1, 0), MIR_RULE_BROKEN);
	}
	assert_int_equal(map(VA, (struct qcu_seg[]){{RAM / 2, PAGE}}, 1), MIR_RULE_BROKEN);
	assert_int_equal(map(VA + 1, (struct qcu_seg[]){{0, PAGE}}, 1), MIR_RULE_BROKEN);
	assert_int_equal(unmap(VA, 0), MIR_RULE_BROKEN);
}

static void bad_memsets(void **state)
{
#define MEMSET(...) ask(CMD(MEMSET, memset, .dst = dev, __VA_ARGS__))
	(void)state;
	assert_int_equal(MEMSET(.width = 4, .height = 1, .elem = 0), QCU_ERR_InvalidValue);
	assert_int_equal(MEMSET(.width = 4, .height = 1, .elem = 3), QCU_ERR_InvalidValue);
	assert_int_equal(MEMSET(.width = 3, .height = 1, .elem = 2), QCU_ERR_InvalidValue);
	assert_int_equal(MEMSET(.width = 4, .height = 1, .elem = 1, .flags = QCU_COPY_QUEUED),
			 QCU_ERR_InvalidValue);
	assert_int_equal(MEMSET(.width = 8, .height = 2, .pitch = 4, .elem = 1),
			 QCU_ERR_InvalidPitchValue);
	assert_int_equal(MEMSET(.width = 8, .height = ~0ull, .pitch = 1ull << 40, .elem = 1),
			 QCU_ERR_InvalidValue);
	assert_int_equal(MEMSET(.width = 8, .height = BIG / 16 + 1, .pitch = 16, .elem = 1),
			 QCU_ERR_InvalidValue);
	assert_int_equal(MEMSET(.width = 4, .height = 1, .elem = 1, .stream = 5),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(MEMSET(.width = 0, .height = 1, .elem = 1), 0);
	assert_int_equal(MEMSET(.width = 4, .height = 0, .elem = 1), 0);
	/* The last row may end where the memory ends. */
	assert_int_equal(MEMSET(.width = 8, .height = BIG / 16, .pitch = 16, .elem = 2,
				.value = 0x1234, .flags = QCU_COPY_SYNC),
			 0);
	assert_int_equal(((uint16_t *)dev)[3], 0x1234);
	assert_int_equal(((uint16_t *)dev)[4], 0);
#undef MEMSET
}

/* Short scattered segments are staged. Long segments and single segments are not. */
static void segments(void **state)
{
	static struct qcu_seg segs[400];
	static uint8_t want[BIG], got[BIG];
	struct qcu_stats_desc st;
	size_t i, n = 0, len, staged = 0;

	(void)state;
	for (i = 0; i < 100; i++) { /* odd pages in reverse, the first starts one byte late */
		segs[n++] = (struct qcu_seg){(401 - 2 * i) * PAGE + 1, PAGE - 1};
		staged += PAGE - 1;
	}
	segs[n++] = (struct qcu_seg){HIGH, 300 * PAGE};
	segs[n++] = (struct qcu_seg){3, 5};
	segs[n++] = (struct qcu_seg){HIGH + 400 * PAGE, 256 * PAGE};
	segs[n++] = (struct qcu_seg){700 * PAGE, 200 * PAGE};
	len = gather(want, segs, n);
	assert_int_equal(copy_segs(true, dev, segs, n, 0), 0);
	st = stats();
	balanced(&st);
	assert_int_equal(st.h2d_bytes, len);
	assert_int_equal(st.staged_bytes, staged);
	assert_int_equal(st.window_bytes, 0);
	assert_int_equal(st.copies, 5);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 0)), 0);
	assert_memory_equal((void *)dev, want, len);

	/* Back, into memory that held other content. */
	memset(ram, 0xcc, RAM);
	assert_int_equal(copy_segs(false, dev, segs, n, QCU_COPY_QUEUED), 0);
	gather(got, segs, n);
	assert_memory_equal(got, want, len);
	assert_int_equal(ram[401 * PAGE], 0xcc);
	assert_int_equal(ram[2], 0xcc);
	assert_int_equal(ram[8], 0xcc);
	st = stats();
	balanced(&st);
	assert_int_equal(st.d2h_bytes, len);
	assert_int_equal(st.staged_bytes, 2 * staged);
	assert_int_equal(st.copies, 10);
}

/*
 * Data for many slots, at any offset: the GPU copies one slot while the CPU fills or empties
 * another.
 */
static void pipelined(void **state)
{
	static struct qcu_seg segs[1600];
	static uint8_t want[BIG], got[BIG];
	size_t n = 1600, len = n * PAGE, slots = (len + STAGE_BYTES - 1) / STAGE_BYTES;
	struct qcu_stats_desc st;

	(void)state;
	scatter(segs, n);
	segs[0].gpa += 7;
	segs[0].len -= 7;
	segs[n - 1].len = 11; /* the border of a slot is inside a page */
	len = gather(want, segs, n);
	assert_int_equal(copy_segs(true, dev + 1, segs, n, 0), 0);
	/* The command is answered while the last copies still wait in the stream. */
	assert_int_equal(fake.waiting_most, STAGE_DEPTH);
	assert_int_equal(ask(CMD(STREAM_QUERY, stream_query, .stream = 0)), QCU_ERR_NotReady);
	memset(ram, 0xcc, RAM);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 0)), 0);
	assert_memory_equal((void *)(dev + 1), want, len);
	assert_int_equal(*(uint8_t *)dev, 0);

	fake.waiting_most = 0;
	assert_int_equal(copy_segs(false, dev + 1, segs, n, 0), 0);
	assert_int_equal(fake.waiting_most, STAGE_DEPTH);
	gather(got, segs, n);
	assert_memory_equal(got, want, len);
	assert_int_equal(ram[(n - 1) * PAGE + 6], 0xcc);
	assert_int_equal(ram[11], 0xcc);
	st = stats();
	balanced(&st);
	assert_int_equal(st.staged_bytes, 2 * len);
	assert_int_equal(st.copies, 2 * slots);
	assert_int_equal(fake.registrations, STAGE_DEPTH);
	assert_int_equal(fake.registered_bytes, STAGE_DEPTH * STAGE_BYTES);
}

/*
 * Posted copies keep their slots until their stream has done them. When all slots are taken, pieces
 * are copied without a slot. When the stream goes on, the slots come back.
 */
static void slots_run_out(void **state)
{
	static struct qcu_seg segs[16];
	static uint8_t want[16 * PAGE];
	size_t i, len = 16 * PAGE;
	struct qcu_stats_desc st;

	(void)state;
	scatter(segs, 16);
	gather(want, segs, 16);
	for (i = 0; i < STAGE_SLOTS; i++)
		assert_int_equal(copy_segs(true, dev + i * len, segs, 16, 0), 0);
	assert_int_equal(fake.registrations, STAGE_SLOTS);
	st = stats();
	assert_int_equal(st.copies, STAGE_SLOTS);
	assert_int_equal(st.staged_bytes, STAGE_SLOTS * len);
	assert_int_equal(copy_segs(true, dev + i * len, segs, 16, 0), 0);
	st = stats();
	balanced(&st);
	assert_int_equal(st.copies, STAGE_SLOTS + 16);
	assert_int_equal(st.pages_bytes, len);
	/* The last copy read memory directly, so the stream had to do all copies before it. */
	for (i = 0; i <= STAGE_SLOTS; i++)
		assert_memory_equal((uint8_t *)dev + i * len, want, len);
	assert_int_equal(copy_segs(true, dev, segs, 16, 0), 0);
	assert_int_equal(stats().copies, STAGE_SLOTS + 17);
	assert_int_equal(fake.registrations, STAGE_SLOTS);
}

/* The backend registers no more memory, or none at all. */
static void no_slots(void **state)
{
	static struct qcu_seg segs[300];
	static uint8_t want[300 * PAGE];
	struct qcu_stats_desc st;
	int granted;

	(void)state;
	scatter(segs, 300);
	gather(want, segs, 300);
	for (granted = 0; granted < 2; granted++) {
		fake.error = QCU_ERR_MemoryAllocation;
		fake.registers_left = granted;
		memset((void *)dev, 0, sizeof(want));
		assert_int_equal(copy_segs(true, dev, segs, 300, QCU_COPY_SYNC), 0);
		assert_memory_equal((void *)dev, want, sizeof(want));
		st = stats();
		balanced(&st);
		assert_int_equal(st.staged_bytes, granted ? 300 * PAGE : 0);
		fake.registers_left = 0;
		memset(ram, 0xcc, 300 * PAGE);
		assert_int_equal(copy_segs(false, dev, segs, 300, 0), 0);
		assert_int_equal(ram[0], want[299 * PAGE]);
		assert_int_equal(ram[300 * PAGE - 1], want[PAGE - 1]);
	}
}

/* An error at any step is returned. It leaves no slot busy and no copy waiting. */
static void errors_in_between(void **state)
{
	static struct qcu_seg segs[1600];
	static uint8_t want[1600 * PAGE];
	_Atomic int *const turns[] = {&fake.copies_left, &fake.records_left};
	size_t t, at;
	bool up;

	(void)state;
	scatter(segs, 1600);
	gather(want, segs, 1600);
	for (t = 0; t < 2; t++) {
		for (at = 0; at < 13; at++) {
			for (up = false;; up = true) {
				fake.error = QCU_ERR_LaunchFailure;
				*turns[t] = (int)at;
				assert_int_equal(copy_segs(up, dev, segs, 1600, 0),
						 QCU_ERR_LaunchFailure);
				if (up)
					break;
			}
		}
	}
	gather(want, segs, 1600);
	assert_int_equal(copy_segs(true, dev, segs, 1600, QCU_COPY_SYNC), 0);
	assert_memory_equal((void *)dev, want, sizeof(want));
	/* No slot was lost: otherwise more would have been made. */
	assert_in_range(fake.registrations, 1, 2 * STAGE_DEPTH);
}

static void lost_context(void **state)
{
	static struct qcu_seg segs[1600];

	(void)state;
	scatter(segs, 1600);
	assert_int_equal(copy_segs(true, dev, segs, 1600, 0), 0);
	fake.error = QCU_ERR_IllegalAddress;
	fake.sticky = true;
	fake.copies_left = 7;
	assert_int_equal(copy_segs(false, dev, segs, 1600, 0), QCU_ERR_IllegalAddress);
	assert_int_equal(copy_segs(true, dev, segs, 1600, 0), QCU_ERR_IllegalAddress);
	assert_int_equal(copy_segs(false, dev, segs, 2, QCU_COPY_SYNC), QCU_ERR_IllegalAddress);
}

/* Slots serve any device; a mark belongs to one device. A reset destroys the device's marks. */
static void devices_and_reset(void **state)
{
	static struct qcu_seg segs[300];
	static uint8_t want[300 * PAGE];
	struct qCUcmd c;
	int i;

	(void)state;
	scatter(segs, 300);
	gather(want, segs, 300);
	for (i = 0; i < 6; i++) {
		c = CMD(COPY_H2D, copy_h2d, .buf = {1, 300 * PAGE}, .dst = dev);
		c.flags = QCU_F_SEGS;
		c.device = i & 1;
		assert_int_equal(ask_with(&c, NULL, segs, 300), 0);
	}
	c = CMD(DEVICE_RESET, device_reset, .rsvd = 0);
	c.device = 1;
	assert_int_equal(ask(c), 0);
	c.device = 0;
	assert_int_equal(ask(c), 0);
	assert_int_equal(fake.allocations, 0);
	assert_int_equal(fake.objects, 0);
	c = CMD(MALLOC, malloc, .size = BIG);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(copy_segs(true, c.malloc.ptr, segs, 300, QCU_COPY_SYNC), 0);
	assert_memory_equal((void *)c.malloc.ptr, want, sizeof(want));
}

#define LANES 6

/* Copies up and down through slots that the lanes share. Each lane must find its own bytes. */
static void *one_lane(void *arg)
{
	uint32_t lane = (uint32_t)(uintptr_t)arg;
	struct qcu_seg up[256], down[256];
	uint64_t base = lane < 3 ? lane * 512 * PAGE : HIGH + (lane - 3) * 512 * PAGE;
	uintptr_t wrong = 0;
	size_t i, round;

	/* Pages of the lane's own, each with its own first byte. The targets are between them. */
	for (i = 0; i < 256; i++) {
		up[i] = (struct qcu_seg){base + (511 - 2 * i) * PAGE, PAGE};
		down[i] = (struct qcu_seg){base + 2 * i * PAGE, PAGE};
	}
	for (round = 0; round < 40; round++) {
		struct qCUcmd c = CMD(COPY_H2D, copy_h2d, .buf = {1, 256 * PAGE},
				      .dst = dev + lane * 256 * PAGE);

		for (i = 0; i < 256; i++)
			memset(at_gpa(up[i].gpa), (int)(lane + round * 3 + i), PAGE);
		c.tid = lane + 1;
		c.flags = QCU_F_SEGS;
		wrong += ask_with(&c, NULL, up, 256) != 0;
		c = CMD(COPY_D2H, copy_d2h, .buf = {1, 256 * PAGE}, .src = dev + lane * 256 * PAGE);
		c.tid = lane + 1;
		c.flags = QCU_F_SEGS;
		wrong += ask_with(&c, NULL, down, 256) != 0;
		for (i = 0; i < 256; i++)
			wrong += memcmp(at_gpa(up[i].gpa), at_gpa(down[i].gpa), PAGE) != 0;
	}
	return (void *)wrong;
}

static void lanes_share_slots(void **state)
{
	struct qcu_stats_desc st;

	(void)state;
	on_lanes(LANES, one_lane);
	st = stats();
	balanced(&st);
	assert_in_range(fake.registrations, 1, STAGE_SLOTS);
}

static const struct qcu_seg scattered[] = {
	{8 * PAGE, 2 * PAGE}, {2 * PAGE, PAGE}, {HIGH + 3 * PAGE, 5 * PAGE}};

static void in_window(size_t copies)
{
	struct qcu_stats_desc st;
	uint8_t want[8 * PAGE];

	memcpy(want, ram + 8 * PAGE, 2 * PAGE);
	memcpy(want + 2 * PAGE, ram + 2 * PAGE, PAGE);
	memcpy(want + 3 * PAGE, ram + RAM / 2 + 3 * PAGE, 5 * PAGE);
	assert_int_equal(map(VA + PAGE, scattered, 3), 0);
	assert_int_equal(copy_window(true, dev, VA + PAGE, 8 * PAGE + 1, 0), QCU_ERR_InvalidValue);
	assert_int_equal(copy_window(true, dev, VA + PAGE + 1, 8 * PAGE - 2, 0), 0);
	assert_memory_equal((void *)dev, want + 1, 8 * PAGE - 2);
	st = stats();
	assert_int_equal(st.window_bytes, 8 * PAGE - 2);
	assert_int_equal(st.staged_bytes, 0);
	assert_int_equal(st.copies, copies);
	assert_int_equal(st.mapped_bytes, 8 * PAGE);
	assert_int_equal(st.registered_bytes, 8 * PAGE);

	/*
	 * Queued: the answer comes before the copy. The copy takes the bytes that are there when it
	 * runs.
	 */
	assert_int_equal(copy_window(true, dev, VA + PAGE, PAGE, QCU_COPY_QUEUED), 0);
	assert_int_equal(ask(CMD(STREAM_QUERY, stream_query, .stream = 0)), QCU_ERR_NotReady);
	ram[8 * PAGE] = 0x99;
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 0)), 0);
	assert_int_equal(*(uint8_t *)dev, 0x99);
	assert_int_equal(copy_window(true, dev, VA + PAGE, PAGE, QCU_COPY_QUEUED | QCU_COPY_SYNC),
			 0);
	assert_int_equal(ask(CMD(STREAM_QUERY, stream_query, .stream = 0)), 0);

	/* Back, to other addresses of the window. */
	assert_int_equal(copy_window(false, dev, VA + 4 * PAGE + 5, 2 * PAGE, QCU_COPY_QUEUED), 0);
	assert_int_equal(ask(CMD(STREAM_QUERY, stream_query, .stream = 0)), QCU_ERR_NotReady);
	assert_int_equal(copy_window(false, dev, VA + 4 * PAGE + 5, 2 * PAGE, 0), 0);
	assert_memory_equal(ram + RAM / 2 + 3 * PAGE + 5, (void *)dev, 2 * PAGE);
	assert_int_equal(stats().staged_bytes, 0);
	assert_int_equal(unmap(VA, 16 * PAGE), 0);
	assert_int_equal(copy_window(true, dev, VA + PAGE, PAGE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(stats().registered_bytes, 0);
}

static void window_cvm(void **state)
{
	(void)state;
	in_window(1);
}

static void window_ncvm(void **state)
{
	(void)state;
	in_window(3);
}

/* Memory that is contiguous in the guest is one copy, whatever chunks it is in. */
static void neighbours(void **state)
{
	const struct qcu_seg chunks[] = {{0, 16 * PAGE},	 {16 * PAGE, 16 * PAGE},
					 {32 * PAGE, 16 * PAGE}, {64 * PAGE, 16 * PAGE},
					 {80 * PAGE, 16 * PAGE}, {48 * PAGE, 16 * PAGE}};
	static uint8_t want[96 * PAGE];

	(void)state;
	assert_int_equal(map(VA, chunks, 6), 0);
	gather(want, chunks, 6);
	assert_int_equal(copy_window(true, dev, VA, 96 * PAGE, QCU_COPY_SYNC), 0);
	assert_memory_equal((void *)dev, want, 96 * PAGE);
	assert_int_equal(stats().copies, 3);
	assert_int_equal(copy_window(true, dev, VA + 1, 48 * PAGE - 1, 0), 0);
	assert_int_equal(stats().copies, 4);
	assert_int_equal(copy_window(false, dev, VA + 40 * PAGE, 40 * PAGE, 0), 0);
	assert_int_equal(stats().copies, 6);
	assert_int_equal(copy_window(false, dev, VA + 79 * PAGE, 2 * PAGE, 0), 0);
	assert_int_equal(stats().copies, 8);
	assert_int_equal(fake.batches, 3);
	assert_int_equal(stats().staged_bytes, 0);
	assert_int_equal(fake.registrations, 3);
	assert_int_equal(unmap(VA, 96 * PAGE), 0);
}

/* A copy down of one piece for which the guest waits is one call of the backend. */
static void in_one_call(void **state)
{
	const struct qcu_seg chunk = {64 * PAGE, PAGE}, one = {8, 4},
			     two[] = {{10 * PAGE, 4}, {12 * PAGE, 4}}, many = {0, 600 * PAGE};
	struct qcu_stats_desc st;

	(void)state;
	memset((void *)dev, 0x5a, 600 * PAGE);
	memset(ram, 0xcc, RAM);
	assert_int_equal(copy_segs(false, dev, &one, 1, QCU_COPY_SYNC), 0);
	assert_int_equal(fake.at_once, 1);
	assert_true(ram[7] == 0xcc && ram[8] == 0x5a && ram[11] == 0x5a && ram[12] == 0xcc);
	/* The guest's pages are its own after the answer, so it waits for this one, too. */
	assert_int_equal(copy_segs(false, dev, &one, 1, 0), 0);
	assert_int_equal(fake.at_once, 2);
	st = stats();
	balanced(&st);
	assert_int_equal(st.copies, 2);
	assert_int_equal(map(VA, &chunk, 1), 0);
	assert_int_equal(copy_window(false, dev, VA + 8, 4, QCU_COPY_SYNC), 0);
	assert_int_equal(fake.at_once, 3);
	assert_true(ram[64 * PAGE + 7] == 0xcc && ram[64 * PAGE + 8] == 0x5a);
	st = stats();
	balanced(&st);
	assert_int_equal(st.copies, 3);

	/* Not those that the guest does not wait for, those up, of more pieces, or of many bytes.
	 */
	assert_int_equal(copy_window(false, dev, VA, 4, QCU_COPY_QUEUED), 0);
	assert_int_equal(copy_window(true, dev, VA, 4, QCU_COPY_SYNC), 0);
	assert_int_equal(copy_segs(true, dev, &one, 1, QCU_COPY_SYNC), 0);
	assert_int_equal(copy_segs(false, dev, two, 2, QCU_COPY_SYNC), 0);
	assert_int_equal(copy_segs(false, dev, &many, 1, QCU_COPY_SYNC), 0);
	assert_int_equal(fake.at_once, 3);

	fake.copies_left = 0;
	fake.error = QCU_ERR_InvalidValue;
	assert_int_equal(copy_segs(false, dev, &one, 1, QCU_COPY_SYNC), QCU_ERR_InvalidValue);
	assert_int_equal(fake.at_once, 4);
	fake.copies_left = INT_MAX;
	assert_int_equal(unmap(VA, PAGE), 0);
}

/* More pieces than the backend takes in one call. */
static void many_pieces(void **state)
{
	static struct qcu_seg pages[150];
	static uint8_t want[150 * PAGE], got[150 * PAGE];
	const size_t len = sizeof(want);
	struct qcu_stats_desc st;

	(void)state;
	scatter(pages, 150);
	assert_int_equal(map(VA, pages, 150), 0);
	gather(want, pages, 150);
	assert_int_equal(copy_window(true, dev, VA + 1, len - 2, QCU_COPY_SYNC), 0);
	assert_memory_equal((void *)dev, want + 1, len - 2);
	assert_int_equal(fake.batches, 3);
	memset(ram, 0xcc, RAM);
	assert_int_equal(copy_window(false, dev, VA + 1, len - 2, 0), 0);
	gather(got, pages, 150);
	assert_memory_equal(got + 1, want + 1, len - 2);
	assert_int_equal(got[0], 0xcc);
	assert_int_equal(got[len - 1], 0xcc);
	st = stats();
	balanced(&st);
	assert_int_equal(st.copies, 300);

	/* The second call fails, and there is no third. */
	fake.batches = 0;
	fake.copies_left = 100;
	fake.error = QCU_ERR_InvalidValue;
	assert_int_equal(copy_window(true, dev, VA, len, QCU_COPY_SYNC), QCU_ERR_InvalidValue);
	assert_int_equal(fake.batches, 2);
	fake.copies_left = INT_MAX;
	assert_int_equal(unmap(VA, len), 0);
}

/* Kernels and device-to-device copies use pinned window memory by its own address. */
static void pinned(void **state)
{
	struct qCUcmd reg = CMD(HOST_REGISTER, host_register, .buf = {VA + PAGE, 8 * PAGE});
	struct qCUcmd unreg =
		CMD(HOST_UNREGISTER, host_unregister, .addr = VA + PAGE, .len = 8 * PAGE);
	struct qCUcmd c;

	(void)state;
	assert_int_equal(ask(unreg), QCU_ERR_HostMemoryNotRegistered);
	reg.flags = QCU_F_WINDOW;
	assert_int_equal(ask(reg), QCU_ERR_InvalidValue);
	assert_int_equal(map(VA + PAGE, scattered, 3), 0);
	reg.host_register.flags = 16;
	assert_int_equal(ask(reg), QCU_ERR_InvalidValue);
	reg.host_register.flags = 2;
	reg.buf.len++;
	assert_int_equal(ask(reg), QCU_ERR_InvalidValue);
	reg.buf.len--;
	assert_int_equal(ask(reg), 0);
	assert_int_equal(ask(reg), 0);
	c = CMD(COPY_D2D, copy_d2d, .dst = dev, .src = VA + 3 * PAGE + 7, .len = PAGE,
		.flags = QCU_COPY_SYNC);
	assert_int_equal(ask(c), 0);
	assert_memory_equal((void *)dev, (void *)(VA + 3 * PAGE + 7), PAGE);
	assert_memory_equal((void *)dev, ram + 2 * PAGE + 7, PAGE - 7);
	c = CMD(MEMSET, memset, .dst = VA + PAGE, .width = 4, .height = 1, .value = 0x01020304,
		.elem = 4, .flags = QCU_COPY_SYNC);
	assert_int_equal(ask(c), 0);
	assert_int_equal(*(uint32_t *)(ram + 8 * PAGE), 0x01020304);
	assert_int_equal(ask(unreg), 0);
	assert_int_equal(unmap(VA + PAGE, 8 * PAGE), 0);
	assert_int_equal(ask(unreg), QCU_ERR_HostMemoryNotRegistered);
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
}

/* A module's image, and a description, across segments and region borders. */
static void scattered_buffers(void **state)
{
	const size_t len = sizeof(FAKE_IMAGE);
	const struct qcu_seg image[] = {{10, 2}, {HIGH + 5, 1}, {30, len - 3}};
	const struct qcu_seg out[] = {{PAGE - 3, 100}, {HIGH, 28}};
	struct qCUcmd c = CMD(MODULE_LOAD, module_load, .buf = {1, len}, .module = 2);
	struct qcu_stats_desc st = {0};

	(void)state;
	memcpy(ram + 10, FAKE_IMAGE, 2);
	memcpy(ram + RAM / 2 + 5, &FAKE_IMAGE[2], 1);
	memcpy(ram + 30, &FAKE_IMAGE[3], len - 3);
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, image, 3), 0);
	c = CMD(STATS, stats, .buf = {1, 128});
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, out, 2), 0);
	memcpy(&st, ram + PAGE - 3, 100);
	memcpy((uint8_t *)&st + 100, ram + RAM / 2, 28);
	assert_int_equal(st.device_bytes, BIG);
	assert_int_equal(st.file_bytes, 0);
}

int main(void)
{
#define T(f)  cmocka_unit_test_setup_teardown(f, start_cvm, mirror_stop)
#define TN(f) cmocka_unit_test_setup_teardown(f, start_ncvm, mirror_stop)
	static const struct CMUnitTest tests[] = {
		T(told_times),	  T(bad_addresses),	T(bad_guest_addresses),
		T(bad_memsets),	  T(errors_in_between), T(lost_context),
		T(no_slots),	  T(segments),		T(pipelined),
		T(slots_run_out), T(lanes_share_slots), T(devices_and_reset),
		T(window_cvm),	  TN(window_ncvm),	TN(neighbours),
		T(pinned),	  TN(pinned),		T(scattered_buffers),
		TN(many_pieces),  T(in_one_call),	TN(in_one_call),
	};
#undef T
#undef TN

	return cmocka_run_group_tests(tests, make_ram, NULL);
}

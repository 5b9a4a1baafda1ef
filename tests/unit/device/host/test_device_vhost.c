// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device process as QEMU and the guest see it: sessions that open and close, mirrors that are
 * killed or that crash, guests that lie, queues that stop, and memory that changes.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "include/qcuerror.h"
#include "tests/unit/device/host/test_device_born.h"
#include "tests/unit/device/mirror/test_device_fake.h"
#include "tests/unit/device/host/test_device_frontend.h"

#define UNKNOWN 159 /* names no command */

static struct frontend fe;

static int start(void **state)
{
	unsigned int q;

	(void)state;
	fake_reset();
	fake.hold = true; /* EVENT_SYNC never returns */
	fake.crash = true;
	born_tell();
	fe_start(&fe);
	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_start(&fe, q);
	return 0;
}

static int stop(void **state)
{
	int status = fe_stop(&fe);

	(void)state;
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

static int ask(unsigned int q, uint16_t op)
{
	struct qCUcmd c = {.op = op, .tid = 1, .seq = fe.seq++};

	return fe_ask(&fe, q, &c, 0, 0);
}

/* Waits until the device has noticed that a mirror is gone. */
static void wait_reaped(unsigned int session)
{
	struct timespec ms = {.tv_nsec = 1000000};
	unsigned int i;

	for (i = 0; fe_mirror(&fe, session); i++) {
		assert_true(i < 10000);
		nanosleep(&ms, NULL);
	}
}

static void config(void **state)
{
	struct {
		uint32_t offset, size, flags;
		uint8_t region[sizeof(struct qcu_config)];
	} m = {.size = sizeof(m.region)};
	struct qcu_config config, *c = &config;

	(void)state;
	fe_send(&fe, FE_GET_CONFIG, &m, sizeof(m), -1);
	assert_int_equal(fe_recv(&fe, FE_GET_CONFIG, &m, sizeof(m)), sizeof(m));
	memcpy(&config, m.region, sizeof(config));
	assert_int_equal(c->magic, QCU_CONFIG_MAGIC);
	assert_int_equal(c->version, QCU_WIRE_VERSION);
	assert_int_equal(c->sessions, FE_SESSIONS);
	assert_int_equal(c->window_base, QCU_WINDOW_BASE);
	assert_int_equal(c->window_size, QCU_WINDOW_SIZE);
	assert_int_equal(c->rsvd0, 0);
	assert_int_equal(c->rsvd[31], 0);
}

static void bad_control(void **state)
{
	const struct vring_desc shapes[][3] = {
		{{.addr = 0, .len = 64}},
		{{.addr = 0, .len = 64, .flags = VRING_DESC_F_WRITE}},
		{{.addr = 0, .len = 63}, {.addr = 64, .len = 64, .flags = VRING_DESC_F_WRITE}},
		{{.addr = 0, .len = 65}, {.addr = 128, .len = 64, .flags = VRING_DESC_F_WRITE}},
		{{.addr = 0, .len = 64}, {.addr = 128, .len = 63, .flags = VRING_DESC_F_WRITE}},
		{{.addr = 0, .len = 64}, {.addr = 128, .len = 65, .flags = VRING_DESC_F_WRITE}},
		{{.addr = 0, .len = 64},
		 {.addr = FE_RAM - 63, .len = 64, .flags = VRING_DESC_F_WRITE}},
	};
	struct qCUcmd c;
	unsigned int i, slot;

	(void)state;
	assert_int_equal(fe_open(&fe, 0), QCU_ERR_InvalidValue);
	assert_int_equal(fe_open(&fe, FE_SESSIONS + 1), QCU_ERR_InvalidValue);
	assert_int_equal(fe_open(&fe, UINT32_MAX), QCU_ERR_InvalidValue);
	assert_int_equal(fe_close(&fe, 0), QCU_ERR_InvalidValue);
	assert_int_equal(fe_close(&fe, 1), QCU_ERR_InvalidValue);
	assert_int_equal(fe_close(&fe, UINT32_MAX), QCU_ERR_InvalidValue);
	assert_int_equal(ask(0, QCU_OP_INFO), QCU_ERR_InvalidValue);
	assert_int_equal(ask(0, 9999), QCU_ERR_InvalidValue);
	c = (struct qCUcmd){.op = QCU_OP_OPEN, .flags = QCU_F_SEGS};
	c.open.queue = 1;
	assert_int_equal(fe_ask(&fe, 0, &c, 0, 0), QCU_ERR_InvalidValue);
	c = (struct qCUcmd){.op = QCU_OP_OPEN};
	c.open.queue = 1;
	c.open.rsvd = 1;
	assert_int_equal(fe_ask(&fe, 0, &c, 0, 0), QCU_ERR_InvalidValue);
	c = (struct qCUcmd){.op = QCU_OP_CLOSE};
	c.body[47] = 1;
	assert_int_equal(fe_ask(&fe, 0, &c, 0, 0), QCU_ERR_InvalidValue);
	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		slot = driver_add(&fe.q[0], shapes[i], shapes[i][1].len ? 2 : 1);
		fe_kick(&fe, 0);
		assert_int_equal(fe_wait(&fe, 0, slot, &c), 0);
	}
	assert_int_equal(fe_mirror(&fe, 1), 0);
	/* The control queue goes on. */
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 1), QCU_ERR_InvalidValue);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(fe_close(&fe, 1), QCU_ERR_InvalidValue);
}

static void not_started(void **state)
{
	(void)state;
	fe_queue_stop(&fe, 2);
	assert_int_equal(fe_open(&fe, 2), QCU_ERR_InvalidValue);
	assert_int_equal(fe_open(&fe, 1), 0);
}

/* The device gives up an invalid control queue. The sessions live on. */
static void broken_control(void **state)
{
	(void)state;
	assert_int_equal(fe_open(&fe, 1), 0);
	fe.q[0].avail->ring[fe.q[0].added % DRIVER_NUM] = DRIVER_NUM;
	fe.q[0].avail->idx = ++fe.q[0].added;
	fe_kick(&fe, 0);
	assert_int_equal(ask(1, QCU_OP_INFO), 0);
	/* A reset of the queue makes it work again. */
	fe_queue_stop(&fe, 0);
	fe_queue_start(&fe, 0);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 1), 0);
}

static void a_session(void **state)
{
	struct qcu_seg *segs = (void *)(fe.ram + FE_FREE);
	struct qCUcmd c = {.op = QCU_OP_INFO, .tid = 7, .seq = 99};
	uint64_t p;

	(void)state;
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_ask(&fe, 1, &c, 0, 0), 0);
	assert_string_equal(c.info.backend, "fake");
	assert_true(fe_mirror(&fe, 1) > 0);
	assert_int_equal(fe_mirror(&fe, 2), 0);

	c = (struct qCUcmd){.op = QCU_OP_MALLOC, .tid = 1};
	c.malloc.size = 0x4000;
	assert_int_equal(fe_ask(&fe, 1, &c, 0, 0), 0);
	p = c.malloc.ptr;
	/* From pages of the guest to the device, and through the window back to other pages. */
	memset(fe.ram + FE_FREE + 0x10000, 0xa1, 0x2000);
	memset(fe.ram + FE_FREE + 0x20000, 0xb2, 0x2000);
	segs[0] = (struct qcu_seg){FE_FREE + 0x20000, 0x2000};
	segs[1] = (struct qcu_seg){FE_FREE + 0x10000, 0x2000};
	c = (struct qCUcmd){.op = QCU_OP_COPY_H2D, .tid = 1, .flags = QCU_F_SEGS};
	c.copy_h2d.buf.len = 0x4000;
	c.copy_h2d.dst = p;
	assert_int_equal(fe_ask(&fe, 1, &c, FE_FREE, 32), 0);
	segs[0] = (struct qcu_seg){FE_FREE + 0x40000, 0x1000};
	segs[1] = (struct qcu_seg){FE_FREE + 0x30000, 0x3000};
	c = (struct qCUcmd){.op = QCU_OP_MAP, .flags = QCU_F_SEGS};
	c.map.va = QCU_WINDOW_BASE;
	c.map.len = 0x4000;
	assert_int_equal(fe_ask(&fe, 1, &c, FE_FREE, 32), 0);
	c = (struct qCUcmd){.op = QCU_OP_COPY_D2H, .tid = 1, .flags = QCU_F_WINDOW};
	c.copy_d2h.buf = (struct qcu_buf){QCU_WINDOW_BASE, 0x4000};
	c.copy_d2h.src = p;
	assert_int_equal(fe_ask(&fe, 1, &c, 0, 0), 0);
	assert_int_equal(fe.ram[FE_FREE + 0x40000], 0xb2);
	assert_int_equal(fe.ram[FE_FREE + 0x30fff], 0xb2);
	assert_int_equal(fe.ram[FE_FREE + 0x31000], 0xa1);
	assert_int_equal(fe.ram[FE_FREE + 0x32fff], 0xa1);

	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(fe_mirror(&fe, 1), 0);
	/* The next session starts empty. */
	assert_int_equal(fe_open(&fe, 1), 0);
	c = (struct qCUcmd){.op = QCU_OP_FREE, .tid = 1};
	c.free.ptr = p;
	assert_int_equal(fe_ask(&fe, 1, &c, 0, 0), QCU_ERR_InvalidValue);
	assert_int_equal(ask(1, QCU_OP_THREAD_EXIT), 0);
}

static void many_in_flight(void **state)
{
	unsigned int slot[DRIVER_SLOTS], round, i;
	struct qCUcmd c;

	(void)state;
	assert_int_equal(fe_open(&fe, 3), 0);
	for (round = 0; round < 300; round++) {
		for (i = 0; i < DRIVER_SLOTS; i++) {
			c = (struct qCUcmd){.op = QCU_OP_INFO, .tid = 1 + i % 5, .seq = i};
			slot[i] = fe_post(&fe, 3, &c, 0, 0);
			if (i % 3 == 2)
				fe_kick(&fe, 3);
		}
		fe_kick(&fe, 3);
		for (i = 0; i < DRIVER_SLOTS; i++) {
			assert_int_equal(fe_wait(&fe, 3, slot[i], &c), 64);
			assert_int_equal(c.seq, i);
		}
	}
}

/* Blocks an event of a session for ever. Returns the slot of the command that waits. */
static unsigned int block(unsigned int q)
{
	struct qCUcmd c = {.op = QCU_OP_EVENT_CREATE, .tid = 1};
	unsigned int slot;

	c.event_create.event = 5;
	assert_int_equal(fe_ask(&fe, q, &c, 0, 0), 0);
	c = (struct qCUcmd){.op = QCU_OP_EVENT_SYNC, .tid = 1};
	c.event_sync.event = 5;
	slot = fe_post(&fe, q, &c, 0, 0);
	fe_kick(&fe, q);
	return slot;
}

static void killed_mirror(void **state)
{
	struct qCUcmd c;
	unsigned int slot;

	(void)state;
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 2), 0);
	slot = block(1);
	assert_int_equal(ask(2, QCU_OP_INFO), 0);
	assert_int_equal(kill(fe_mirror(&fe, 1), SIGKILL), 0);
	assert_int_equal(fe_wait(&fe, 1, slot, &c), 0);
	/* Commands now come back unserved, until CLOSE. */
	assert_int_equal(ask(1, QCU_OP_INFO), FE_GONE);
	assert_int_equal(ask(1, QCU_OP_INFO), FE_GONE);
	assert_int_equal(fe_open(&fe, 1), QCU_ERR_InvalidValue);
	assert_int_equal(ask(2, QCU_OP_INFO), 0);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(ask(1, QCU_OP_INFO), 0);
	assert_int_equal(ask(2, QCU_OP_INFO), 0);
}

static void crashing_backend(void **state)
{
	(void)state;
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 2), 0);
	assert_int_equal(ask(1, QCU_OP_DEVICE_SYNC), FE_GONE);
	assert_int_equal(ask(1, QCU_OP_INFO), FE_GONE);
	assert_int_equal(ask(2, QCU_OP_INFO), 0);
}

/* CLOSE while commands are outstanding: they come back before CLOSE is answered. */
static void close_while_busy(void **state)
{
	unsigned int a, b;
	struct qCUcmd c = {.op = QCU_OP_INFO, .tid = 1};

	(void)state;
	assert_int_equal(fe_open(&fe, 1), 0);
	a = block(1);
	b = fe_post(&fe, 1, &c, 0, 0);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(driver_take(&fe.q[1]), 2);
	assert_int_equal(fe.q[1].len[a], 0);
	assert_int_equal(fe.q[1].len[b], 0);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(ask(1, QCU_OP_INFO), 0);
}

/* Each of these chains ends its own session and nothing else. */
static void lying_guest(void **state)
{
	const struct vring_desc in = {.addr = FE_FREE + 64, .len = 64, .flags = VRING_DESC_F_WRITE};
	const struct {
		struct vring_desc out;
		uint8_t op, flags;
		uint64_t len;
	} bad[] = {
		{{.len = 63}, QCU_OP_INFO, 0, 0},
		{{.len = 65}, QCU_OP_INFO, 0, 0},
		{{.len = 64}, UNKNOWN, 0, 0},
		{{.len = 64}, QCU_OP_OPEN, 0, 0},
		{{.len = 64}, QCU_OP_KERNEL_FIND, QCU_F_MSG, 1},
		{{.len = 66}, QCU_OP_KERNEL_FIND, QCU_F_MSG, 1},
		{{.len = 64}, QCU_OP_KERNEL_FIND, QCU_F_MSG, ~0ull},
		{{.len = 72}, QCU_OP_COPY_H2D, QCU_F_SEGS, 1},
		{{.len = 80}, QCU_OP_COPY_H2D, QCU_F_SEGS, 1},
		{{.len = 80}, QCU_OP_COPY_H2D, QCU_F_SEGS | QCU_F_MSG, 16},
		{{.len = 0x700000}, QCU_OP_INFO, 0, 0},
	};
	struct qCUcmd *rec = (void *)(fe.ram + FE_FREE), c;
	struct vring_desc parts[2];
	unsigned int i, slot;

	(void)state;
	assert_int_equal(fe_open(&fe, 2), 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(fe_open(&fe, 1), 0);
		memset(rec, 0, 256);
		rec->op = bad[i].op;
		rec->flags = bad[i].flags;
		rec->tid = 1;
		if (bad[i].flags)
			rec->buf.len = bad[i].len;
		parts[0] = bad[i].out;
		parts[0].addr = FE_FREE;
		parts[1] = in;
		parts[1].addr = FE_RAM - 64;
		slot = driver_add(&fe.q[1], parts, 2);
		fe_kick(&fe, 1);
		if (fe_wait(&fe, 1, slot, &c))
			fail_msg("bad chain %u was answered", i);
		assert_int_equal(ask(1, QCU_OP_INFO), FE_GONE);
		assert_int_equal(ask(2, QCU_OP_INFO), 0);
		assert_int_equal(fe_close(&fe, 1), 0);
	}
	/* No room for a reply, or too much. */
	for (i = 0; i < 3; i++) {
		assert_int_equal(fe_open(&fe, 1), 0);
		memset(rec, 0, 256);
		rec->op = QCU_OP_INFO;
		rec->tid = 1;
		parts[0] = (struct vring_desc){.addr = FE_FREE, .len = 64};
		parts[1] = in;
		parts[1].len = i == 1 ? 63 : 65;
		slot = driver_add(&fe.q[1], parts, i ? 2 : 1);
		fe_kick(&fe, 1);
		assert_int_equal(fe_wait(&fe, 1, slot, &c), 0);
		assert_int_equal(fe_close(&fe, 1), 0);
	}
	/* An invalid queue. */
	assert_int_equal(fe_open(&fe, 1), 0);
	fe.q[1].avail->ring[fe.q[1].added % DRIVER_NUM] = 999;
	fe.q[1].avail->idx = ++fe.q[1].added;
	fe_kick(&fe, 1);
	wait_reaped(1);
	assert_int_equal(ask(1, QCU_OP_INFO), FE_GONE);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(ask(1, QCU_OP_INFO), 0);
	/* Memory that the VM does not have; a lane finds the error. */
	c = (struct qCUcmd){.op = QCU_OP_MAP, .flags = QCU_F_SEGS};
	c.map.va = QCU_WINDOW_BASE;
	c.map.len = 0x1000;
	*(struct qcu_seg *)(fe.ram + FE_FREE) = (struct qcu_seg){FE_RAM, 0x1000};
	assert_int_equal(fe_ask(&fe, 1, &c, FE_FREE, 16), FE_GONE);
	assert_int_equal(ask(2, QCU_OP_INFO), 0);
}

/* The mirror's messages and the messages about it name the session and the guest's process. */
static void messages_say_who(void **state)
{
	FILE *f = tmpfile();
	char text[4096] = "";
	unsigned int q;

	(void)state;
	assert_non_null(f);
	fake_reset();
	fe_start_quiet(&fe, fileno(f));
	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_start(&fe, q);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(ask(1, UNKNOWN), FE_GONE);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(stop(NULL), 0);
	rewind(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	assert_non_null(strstr(text, "qcu-device: session 1 (pid 42): command 159 "));
	assert_non_null(strstr(text, "qcu-device: session 1 (te?st-program-16, pid 42): ended, "));
	assert_null(strchr(text, '\033'));
}

/*
 * Whatever a guest does again and again, the host's log stays short, and reports what is left out.
 */
static void flood(void **state)
{
	unsigned int i, q, lines = 0, left_out = 0, n;
	FILE *f = tmpfile();
	char line[512];

	(void)state;
	assert_non_null(f);
	fake_reset();
	born_tell();
	fe_start_quiet(&fe, fileno(f));
	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_start(&fe, q);
	for (i = 0; i < 300; i++) {
		assert_int_equal(fe_open(&fe, 0), QCU_ERR_InvalidValue);
		assert_int_equal(fe_close(&fe, 1), QCU_ERR_InvalidValue);
		assert_int_equal(ask(0, 9999), QCU_ERR_InvalidValue);
	}
	/* Mirrors come and go, but their messages are counted together. */
	for (i = 0; i < 40; i++) {
		assert_int_equal(fe_open(&fe, 1), 0);
		assert_int_equal(ask(1, UNKNOWN), FE_GONE);
		assert_int_equal(fe_close(&fe, 1), 0);
	}
	nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 200000000}, NULL);
	assert_int_equal(fe_close(&fe, 1), QCU_ERR_InvalidValue);
	assert_int_equal(stop(NULL), 0);

	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		lines++;
		if (sscanf(line, "qcu-device: %u messages about the guest are left out", &n) == 1)
			left_out += n;
	}
	fclose(f);
	print_message("%u lines, %u left out\n", lines, left_out);
	assert_in_range(lines, 32, 100);
	assert_true(left_out > 800);
}

/*
 * The mirror is killed at random while commands flow. Each command comes back once, and a new
 * session works.
 */
static void killed_at_random(void **state)
{
	unsigned int round, i, gone = 0, answered = 0;
	uint32_t seed = 7;

	(void)state;
	for (round = 0; round < 100; round++) {
		unsigned int slot[DRIVER_SLOTS];
		struct timespec t = {0};
		struct qCUcmd c;
		pid_t pid;

		assert_int_equal(fe_open(&fe, 1), 0);
		assert_int_equal(ask(1, QCU_OP_INFO), 0);
		pid = fe_mirror(&fe, 1);
		for (i = 0; i < DRIVER_SLOTS; i++) {
			c = (struct qCUcmd){.op = QCU_OP_INFO, .tid = 1 + i % 3};
			slot[i] = fe_post(&fe, 1, &c, 0, 0);
			fe_kick(&fe, 1);
		}
		seed = seed * 1664525 + 1013904223;
		t.tv_nsec = (seed >> 16) % 60000;
		nanosleep(&t, NULL);
		if (round % 4 != 3)
			assert_int_equal(kill(pid, SIGKILL), 0);
		for (i = 0; i < DRIVER_SLOTS && round % 4 != 3; i++) {
			if (fe_wait(&fe, 1, slot[i], &c))
				answered++;
			else
				gone++;
		}
		assert_int_equal(fe_close(&fe, 1), 0);
		assert_true(driver_take(&fe.q[1]) >= 0);
		assert_int_equal(driver_outstanding(&fe.q[1]), 0);
	}
	print_message("%u answered, %u came back unserved\n", answered, gone);
}

static void new_interrupt(void **state)
{
	(void)state;
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(ask(1, QCU_OP_INFO), 0);
	fe_new_call(&fe, 1);
	assert_int_equal(ask(1, QCU_OP_INFO), 0);
	fe_new_call(&fe, 0);
	assert_int_equal(fe_close(&fe, 1), 0);
}

/* The guest reboots: queues stop with sessions open, then everything starts again. */
static void reset(void **state)
{
	unsigned int q, slot;

	(void)state;
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 2), 0);
	slot = block(1);
	assert_int_equal(ask(2, QCU_OP_INFO), 0);
	for (q = 0; q < FE_QUEUES; q++)
		assert_int_equal(fe_queue_stop(&fe, q), fe.q[q].added);
	assert_int_equal(fe_mirror(&fe, 1), 0);
	assert_int_equal(fe_mirror(&fe, 2), 0);
	assert_int_equal(driver_take(&fe.q[1]), 1);
	assert_int_equal(fe.q[1].len[slot], 0);
	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_start(&fe, q);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 2), 0);
	assert_int_equal(ask(1, QCU_OP_INFO), 0);
	assert_int_equal(ask(2, QCU_OP_INFO), 0);
}

static void memory_changes(void **state)
{
	struct qCUcmd c = {.op = QCU_OP_STATS, .tid = 1, .flags = QCU_F_SEGS};
	const uint64_t high = 1ull << 32;
	unsigned int slot;

	(void)state;
	assert_int_equal(fe_open(&fe, 1), 0);
	slot = block(1);
	fe_add_memory(&fe, high);
	assert_int_equal(fe_wait(&fe, 1, slot, &(struct qCUcmd){0}), 0);
	assert_int_equal(ask(1, QCU_OP_INFO), FE_GONE);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 1), 0);
	c.stats.buf.len = sizeof(struct qcu_stats_desc);
	*(struct qcu_seg *)(fe.ram + FE_FREE) =
		(struct qcu_seg){high + 8, sizeof(struct qcu_stats_desc)};
	assert_int_equal(fe_ask(&fe, 1, &c, FE_FREE, 16), 0);
	assert_int_equal(((struct qcu_stats_desc *)(fe.ram + FE_RAM + 8))->commands, 1);
}

/* ---- spare mirrors ---- */

#define UNKNOWN 159 /* names no command */
#define OPEN_MS 1000

static void start_prewarm(unsigned int spares)
{
	unsigned int q;

	fake_reset();
	fake.hold = true;
	fake.open_ms = OPEN_MS;
	born_tell();
	fe_start_prewarm(&fe, spares);
	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_start(&fe, q);
}

/* Waits for a spare that is ready, other than `other`. */
static pid_t wait_spare(pid_t other)
{
	struct timespec ms = {.tv_nsec = 5000000};
	pid_t pid;

	while (!(pid = fe_child(&fe, "qcu-spare", other)))
		nanosleep(&ms, NULL);
	return pid;
}

/* Waits for a spare, ready or not. */
static pid_t wait_any_spare(void)
{
	struct timespec ms = {.tv_nsec = 5000000};
	pid_t pid;

	while (!(pid = fe_child(&fe, "qcu-warming", 0)) && !(pid = fe_child(&fe, "qcu-spare", 0)))
		nanosleep(&ms, NULL);
	return pid;
}

/* Opens a session, and returns the mirror that has done its first command. */
static pid_t open_with_mirror(unsigned int q)
{
	assert_int_equal(fe_open(&fe, q), 0);
	assert_int_equal(ask(q, QCU_OP_INFO), 0);
	return fe_mirror(&fe, q);
}

static void prewarmed(void **state)
{
	pid_t first, second, third;

	(void)state;
	start_prewarm(0);
	assert_true(open_with_mirror(1) > 0);
	assert_int_equal(fe_child(&fe, "qcu-spare", 0), 0);
	assert_int_equal(fe_child(&fe, "qcu-warming", 0), 0);
	assert_int_equal(stop(NULL), 0);

	start_prewarm(1);
	first = wait_spare(0);
	assert_int_equal(open_with_mirror(1), first);
	/* Meanwhile the next spare is made. It is another process. */
	second = wait_spare(first);
	assert_int_equal(open_with_mirror(2), second);
	/* A spare that is not ready yet is taken, too: it is ready sooner than a new mirror. */
	third = wait_any_spare();
	assert_int_equal(open_with_mirror(3), third);
	/*
	 * A spare becomes a mirror like any other: it can be blocked, closed, and given another
	 * interrupt.
	 */
	block(1);
	assert_int_equal(ask(2, QCU_OP_INFO), 0);
	fe_new_call(&fe, 2);
	assert_int_equal(ask(2, QCU_OP_INFO), 0);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(fe_close(&fe, 2), 0);
	assert_int_equal(stop(NULL), 0);
}

static void spare_dies(void **state)
{
	struct timespec ms = {.tv_nsec = 1000000};
	pid_t one, two, new;

	(void)state;
	start_prewarm(2);
	one = wait_spare(0);
	two = wait_spare(one);
	assert_int_equal(kill(one, SIGKILL), 0);
	/*
	 * The device notices the death. It makes a new spare when a session has taken the other
	 * one.
	 */
	while (!kill(one, 0))
		nanosleep(&ms, NULL);
	assert_int_equal(open_with_mirror(1), two);

	/* All spares die, and the device learns of it only when it needs one. */
	one = wait_spare(0);
	two = wait_spare(one);
	assert_int_equal(kill(fe.server, SIGSTOP), 0);
	assert_int_equal(kill(one, SIGKILL), 0);
	assert_int_equal(kill(two, SIGKILL), 0);
	assert_int_equal(kill(fe.server, SIGCONT), 0);
	new = open_with_mirror(2);
	assert_true(new > 0 && new != one &&new != two);
	wait_spare(0);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(stop(NULL), 0);
}

/* How often the text is in the file. */
static unsigned int times_said(int fd, const char *text)
{
	static char said[1 << 16];
	ssize_t n = pread(fd, said, sizeof(said) - 1, 0);
	unsigned int times = 0;
	const char *at;

	assert_true(n >= 0);
	said[n] = 0;
	for (at = said; (at = strstr(at, text)); at++)
		times++;
	return times;
}

/*
 * The backend does not open: the device reports it once and does not try again and again. A session
 * is refused as without spares.
 */
static void spare_fails(void **state)
{
	const char *report = "a spare mirror could not start";
	struct timespec ms = {.tv_nsec = 5000000};
	int errors = dup(STDERR_FILENO), fd;
	FILE *said = tmpfile();

	(void)state;
	fake_reset();
	start_prewarm(1);
	stop(NULL);
	fake.open_error = QCU_ERR_NoDevice;
	fake.open_ms = 0;
	born_tell();
	assert_true(errors >= 0 && said);
	fd = fileno(said);
	assert_true(dup2(fd, STDERR_FILENO) >= 0);
	fe_start_prewarm(&fe, 1);
	assert_true(dup2(errors, STDERR_FILENO) >= 0);
	fe_queue_start(&fe, 0);
	fe_queue_start(&fe, 1);
	while (!times_said(fd, report))
		nanosleep(&ms, NULL);
	assert_int_equal(fe_child(&fe, "qcu-warming", 0), 0);
	assert_int_equal(fe_child(&fe, "qcu-spare", 0), 0);
	assert_int_equal(times_said(fd, report), 1);
	/* Whoever asks for a mirror lets the device try once more. */
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(ask(1, QCU_OP_INFO), FE_GONE);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(stop(NULL), 0);
	fclose(said);
	close(errors);
}

/* The VM's memory changes: a spare that does not know of it must not be used. */
static void spare_and_memory(void **state)
{
	struct qCUcmd c = {.op = QCU_OP_STATS, .tid = 1, .flags = QCU_F_SEGS};
	const uint64_t high = 1ull << 32;
	pid_t old, new;

	(void)state;
	start_prewarm(1);
	old = wait_spare(0);
	fe_add_memory(&fe, high);
	new = wait_spare(old);
	assert_int_equal(kill(old, 0), -1);
	assert_int_equal(open_with_mirror(1), new);
	c.stats.buf.len = sizeof(struct qcu_stats_desc);
	*(struct qcu_seg *)(fe.ram + FE_FREE) =
		(struct qcu_seg){high + 8, sizeof(struct qcu_stats_desc)};
	assert_int_equal(fe_ask(&fe, 1, &c, FE_FREE, 16), 0);
	/* At the end no spare is left, whether ready or not. */
	new = wait_spare(new);
	assert_int_equal(stop(NULL), 0);
	assert_int_equal(kill(new, 0), -1);
}

static void gone_with_sessions(void **state)
{
	pid_t a, b;
	int status;

	(void)state;
	start(NULL);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 2), 0);
	block(1);
	/* The test finds a mirror by its name. The mirror has the name by the time it answers. */
	assert_int_equal(ask(2, QCU_OP_INFO), 0);
	a = fe_mirror(&fe, 1);
	b = fe_mirror(&fe, 2);
	assert_true(a > 0 && b > 0);
	status = fe_stop(&fe);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(kill(a, 0), -1);
	assert_int_equal(kill(b, 0), -1);
}

static void told_to_end(void **state)
{
	pid_t a;
	int status;

	(void)state;
	start(NULL);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(ask(1, QCU_OP_INFO), 0);
	a = fe_mirror(&fe, 1);
	assert_int_equal(kill(fe.server, SIGTERM), 0);
	status = fe_stop(&fe);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(kill(a, 0), -1);
}

/* The device dies, but QEMU does not: the mirrors do not outlive the device. */
static void killed_device(void **state)
{
	struct timespec ms = {.tv_nsec = 1000000};
	unsigned int i;
	pid_t a;

	(void)state;
	start(NULL);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(ask(1, QCU_OP_INFO), 0);
	a = fe_mirror(&fe, 1);
	assert_int_equal(kill(fe.server, SIGKILL), 0);
	assert_true(WIFSIGNALED(fe_stop(&fe)));
	for (i = 0; i < 5000 && !kill(a, 0); i++)
		nanosleep(&ms, NULL);
	assert_int_equal(kill(a, 0), -1);
}

static void nonsense_from_qemu(void **state)
{
	uint32_t header[3] = {1, 1, 100000};
	int status;

	(void)state;
	start(NULL);
	fe_send(&fe, 200, NULL, 0, -1);
	assert_int_equal(recv(fe.sock, &status, 1, 0), 0);
	status = fe_stop(&fe);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);

	start(NULL);
	assert_int_equal(send(fe.sock, header, sizeof(header), 0), sizeof(header));
	status = fe_stop(&fe);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);

	/* Half a message, then the connection ends. */
	start(NULL);
	assert_int_equal(send(fe.sock, header, 5, 0), 5);
	status = fe_stop(&fe);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
	static const struct CMUnitTest tests[] = {
		T(config),
		T(bad_control),
		T(not_started),
		T(broken_control),
		T(a_session),
		T(many_in_flight),
		T(killed_mirror),
		T(crashing_backend),
		T(close_while_busy),
		T(lying_guest),
		T(killed_at_random),
		T(new_interrupt),
		T(reset),
		T(memory_changes),
		cmocka_unit_test(messages_say_who),
		cmocka_unit_test(flood),
		cmocka_unit_test(prewarmed),
		cmocka_unit_test(spare_dies),
		cmocka_unit_test(spare_fails),
		cmocka_unit_test(spare_and_memory),
		cmocka_unit_test(gone_with_sessions),
		cmocka_unit_test(told_to_end),
		cmocka_unit_test(killed_device),
		cmocka_unit_test(nonsense_from_qemu),
	};
#undef T

	born_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

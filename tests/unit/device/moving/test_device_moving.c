// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What QEMU asks of a device whose VM is saved, loaded or migrated: states that the device must not
 * accept, reasons against saving, and the log of written pages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/memory/named.h"
#include "qcu-device/moving/dirty.h"
#include "qcu-device/moving/state.h"
#include "tests/unit/device/host/test_device_born.h"
#include "tests/unit/device/host/test_device_frontend.h"
#include "tests/unit/device/mirror/test_device_fake.h"

enum { SAVE, LOAD };
#define NO_FILE	  (1u << 8)
#define FAILED	  1u
#define LOG_BYTES (2 * FE_RAM / DIRTY_PAGE / 8)

static struct frontend fe;

static int start(void **state)
{
	unsigned int q;

	(void)state;
	fake_reset();
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

/* ---- the state's bytes ---- */

#define ARCHIVE 200

/* A state with two sessions, one of which has died. */
static struct saved {
	struct state head;
	struct state_entry first;
	uint64_t ahead; /* nothing */
	uint64_t length;
	uint8_t archive[ARCHIVE];
	uint64_t no_more;
	struct state_entry second;
	uint64_t sum;
	uint8_t more;
} saved;
_Static_assert(sizeof(saved) - 8 == offsetof(struct saved, more), "no holes");

static void good_state(void)
{
	memset(&saved, 0, sizeof(saved));
	state_make(&saved.head, FE_SESSIONS, 1, 2);
	saved.first = (struct state_entry){.queue = 2, .pid = 7, .name = "train", .waits = 3};
	saved.length = ARCHIVE;
	saved.second = (struct state_entry){
		.queue = 4, .pid = 8, .name = "sixteen letters", .dead = 1, .waits = STATE_NONE};
}

#define GOOD_BYTES offsetof(struct saved, more)

static bool wrong_sum;

static void sum_up(void)
{
	uint64_t sum = state_sum(0, &saved.head, sizeof(saved.head));

	sum = state_sum(sum, &saved.first, sizeof(saved.first));
	sum = state_sum(sum, &saved.ahead, sizeof(saved.ahead));
	sum = state_sum(sum, &saved.length, sizeof(saved.length));
	sum = state_sum(sum, &saved.no_more, sizeof(saved.no_more));
	saved.sum = state_sum(sum, &saved.second, sizeof(saved.second));
}

/* It comes in two parts. What is read must not depend on where they meet. */
static bool fits(size_t len, char *why, size_t size)
{
	static struct state_reader r;
	static size_t middle;
	char early[256];
	struct state_check c = {
		.sessions = FE_SESSIONS, .gpus = 1, .session_memory = 100, .vm_memory = 150};
	struct stat st;
	bool ok;

	if (!wrong_sum)
		sum_up();
	middle = len ? (middle + 1) % len : 0;
	state_begin(&r, &c, NULL);
	state_read(&r, &saved, middle);
	assert_false(state_is_whole(&r, early, sizeof(early)));
	state_read(&r, (const uint8_t *)&saved + middle, len - middle);
	ok = state_is_whole(&r, why, size);
	if (ok) {
		assert_int_equal(r.count, 2);
		assert_int_equal(fstat(r.session[0].file, &st), 0);
		assert_int_equal(st.st_size, ARCHIVE);
		assert_int_equal(r.session[1].file, -1);
	}
	state_end(&r);
	return ok;
}

static void refused(size_t len, const char *reason)
{
	char why[256] = "";

	assert_false(fits(len, why, sizeof(why)));
	if (!strstr(why, reason))
		fail_msg("\"%s\" is not in \"%s\"", reason, why);
	good_state();
}

static void bad_states(void **state)
{
	struct state *h = &saved.head;
	size_t len;

	(void)state;
	good_state();
	for (len = 0; len < sizeof(*h); len++)
		refused(len, "too short");
	h->magic++;
	refused(GOOD_BYTES, "not the state of a qcu-device");
	h->version++;
	refused(GOOD_BYTES, "its version is 5");
	h->wire_version = 9999;
	refused(GOOD_BYTES, "its wire version is 9999");
	h->sessions++;
	refused(GOOD_BYTES, "can have 5 sessions, and this one 4");
	h->window_base += 4096;
	refused(GOOD_BYTES, "lies elsewhere");
	h->window_size = 0;
	refused(GOOD_BYTES, "lies elsewhere");
	h->open = FE_SESSIONS + 1;
	refused(GOOD_BYTES, "more open sessions");
	h->open = UINT32_MAX;
	refused(GOOD_BYTES, "more open sessions");
	h->gpus = 2;
	refused(GOOD_BYTES, "its programs have 2 GPUs in software, and here are 1");
	h->bytes--;
	refused(GOOD_BYTES, "damaged");
}

static void bad_sessions(void **state)
{
	struct state_entry *a = &saved.first, *b = &saved.second;
	char why[256] = "";
	size_t len;

	(void)state;
	good_state();
	for (len = sizeof(saved.head); len < GOOD_BYTES; len++)
		refused(len, "cut off");
	refused(GOOD_BYTES + 1, "damaged");
	saved.head.open = 1;
	refused(GOOD_BYTES, "damaged");
	saved.head.open = 3;
	refused(GOOD_BYTES, "cut off");
	a->queue = 0;
	refused(GOOD_BYTES, "session 0 comes after session 0");
	a->queue = 4;
	refused(GOOD_BYTES, "session 4 comes after session 4");
	b->queue = 1;
	refused(GOOD_BYTES, "session 1 comes after session 2");
	b->queue = FE_SESSIONS + 1;
	refused(GOOD_BYTES, "session 5 comes after session 2");
	a->name[0] = '\n';
	refused(GOOD_BYTES, "session 2 is damaged");
	a->name[0] = '\x80';
	refused(GOOD_BYTES, "session 2 is damaged");
	a->name[15] = 'x';
	refused(GOOD_BYTES, "session 2 is damaged");
	a->dead = 1;
	refused(GOOD_BYTES, "session 2 is damaged");
	a->waits = STATE_HEADS;
	refused(GOOD_BYTES, "session 2 is damaged");
	saved.ahead = 8; /* nothing may come ahead */
	refused(GOOD_BYTES, "session 2 is damaged");
	saved.length = STATE_ARCHIVE_MIN - 1;
	refused(GOOD_BYTES, "");
	saved.length = 0;
	refused(GOOD_BYTES, "session 2 is damaged");
	saved.length = STATE_PIECE + 1;
	refused(GOOD_BYTES, "session 2 is damaged");
	saved.length = UINT64_MAX;
	refused(GOOD_BYTES, "session 2 is damaged");
	saved.length = STATE_PIECE;
	refused(GOOD_BYTES, "cut off");
	saved.no_more = UINT64_MAX;
	refused(GOOD_BYTES, "session 2 is damaged");
	saved.no_more = 8;
	refused(GOOD_BYTES, "");
	b->dead = 2;
	refused(GOOD_BYTES, "session 4 is damaged");
	b->waits = 1;
	refused(GOOD_BYTES, "session 4 is damaged");
	a->memory[0] = 101;
	refused(GOOD_BYTES, "train (pid 7 in the VM) needs more memory of GPU 0");
	a->memory[63] = 76;
	b->memory[63] = 75;
	refused(GOOD_BYTES, "sixteen letters (pid 8 in the VM) needs more memory of GPU 63");
	wrong_sum = true;
	for (len = 0; len < GOOD_BYTES; len++) {
		/* Its mirror finds what is wrong with an archive. */
		if (len == offsetof(struct saved, archive))
			len += ARCHIVE;
		sum_up();
		((uint8_t *)&saved)[len] ^= 1;
		assert_false(fits(GOOD_BYTES, why, sizeof(why)));
		good_state();
	}
	wrong_sum = false;
	*why = '\0';
	a->memory[1] = 75;
	b->memory[1] = 75;
	assert_true(fits(GOOD_BYTES, why, sizeof(why)));
	assert_string_equal(why, "");
}

/* ---- the log ---- */

static bool is_marked(const uint8_t *log, uint64_t page)
{
	return log[page / 8] >> page % 8 & 1;
}

static void marks(void **state)
{
	static uint8_t log[8];
	uint64_t first, last, page;

	(void)state;
	assert_false(dirty_mark(log, sizeof(log), UINT64_MAX, 2));
	assert_false(dirty_mark(log, sizeof(log), UINT64_MAX - 4095, 4096));
	assert_false(dirty_mark(log, sizeof(log), 64 * DIRTY_PAGE, 1));
	assert_false(dirty_mark(log, 0, 0, 1));
	assert_true(dirty_mark(log, sizeof(log), UINT64_MAX, 0));
	for (page = 0; page < 64; page++)
		assert_false(is_marked(log, page));
	/* What lies in the log is marked. */
	assert_false(dirty_mark(log, sizeof(log), 63 * DIRTY_PAGE, DIRTY_PAGE + 1));
	assert_true(is_marked(log, 63));
	for (first = 0; first < 64; first++) {
		for (last = first; last < 64; last++) {
			memset(log, 0, sizeof(log));
			assert_true(dirty_mark(log, sizeof(log), first * DIRTY_PAGE + 4095,
					       (last - first) * DIRTY_PAGE + 1));
			for (page = 0; page < 64; page++)
				assert_int_equal(is_marked(log, page),
						 page >= first && page <= last);
		}
	}
}

/* The pages that any session has named are marked, and those for which there are no bits. */
static void named_pages(void **state)
{
	static uint8_t log[8], byte;
	struct guestmem mem = {.count = 0};
	int fd = named_file(3);
	uint8_t *first = named_map(fd, 0), *last = named_map(fd, 2);
	uint64_t page;

	(void)state;
	assert_false(dirty_mark_named(log, sizeof(log), -1, 3));
	assert_true(dirty_mark_named(log, sizeof(log), fd, 3));
	assert_null(named_map(-1, 0));
	named_note(first, 3 * NAMED_PAGE + 4095, 1);
	named_note(last, 9 * NAMED_PAGE + 4095, 30 * NAMED_PAGE + 2);
	named_note(last, 63 * NAMED_PAGE, 100 * NAMED_PAGE);
	/* Another's bits do not change, nor is there anything behind the last. */
	named_note(first, NAMED_END - NAMED_PAGE, 2 * NAMED_PAGE);
	named_note(last, NAMED_END, UINT64_MAX - NAMED_END);
	assert_true(dirty_mark_named(log, 0, fd, 3));
	assert_int_equal(log[0], 0);
	assert_true(dirty_mark_named(log, sizeof(log), fd, 3));
	for (page = 0; page < 64; page++)
		assert_int_equal(is_marked(log, page),
				 page == 3 || (page >= 9 && page <= 40) || page == 63);
	/* What is marked already stays. */
	memset(log, 0, sizeof(log));
	log[7] = 1;
	named_forget(fd, 2);
	named_forget(-1, 2);
	assert_true(dirty_mark_named(log, sizeof(log), fd, 3));
	for (page = 0; page < 64; page++)
		assert_int_equal(is_marked(log, page), page == 3 || page == 56);
	named_unmap(first);
	named_unmap(last);
	close(fd);

	assert_int_equal(guestmem_add(&mem, 0, 2 * DIRTY_PAGE, &byte), 0);
	assert_int_equal(guestmem_add(&mem, 8 * DIRTY_PAGE, 4 * DIRTY_PAGE, &byte), 0);
	memset(log, 0, sizeof(log));
	assert_true(dirty_mark_from(log, sizeof(log), &mem, 10 * DIRTY_PAGE));
	for (page = 0; page < 64; page++)
		assert_int_equal(is_marked(log, page), page == 10 || page == 11);
	assert_true(dirty_mark_from(log, sizeof(log), &mem, 0));
	assert_true(is_marked(log, 0) && is_marked(log, 8) && !is_marked(log, 2));
	assert_false(dirty_mark_from(log, 1, &mem, 0));
}

/* ---- a device ---- */

static uint64_t transfer(uint32_t direction, uint32_t phase, int fd)
{
	const uint32_t m[2] = {direction, phase};
	uint64_t answer = 0;

	fe_send(&fe, FE_SET_DEVICE_STATE_FD, m, sizeof(m), fd);
	fe_recv(&fe, FE_SET_DEVICE_STATE_FD, &answer, sizeof(answer));
	if (fd >= 0)
		close(fd);
	return answer;
}

/* Loads these bytes. True: the device goes on from them. */
static bool loads(const void *bytes, size_t len)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(transfer(LOAD, 0, fds[0]), NO_FILE);
	while (len) {
		ssize_t n = write(fds[1], bytes, len);

		/* The device reads no more than a state can have. */
		if (n < 0 && errno == EPIPE)
			break;
		assert_true(n > 0);
		bytes = (const char *)bytes + n;
		len -= (size_t)n;
	}
	close(fds[1]);
	return !fe_get(&fe, FE_CHECK_DEVICE_STATE);
}

static void bad_transfers(void **state)
{
	static uint8_t much[1 << 20];
	struct state s;
	int fds[2];

	(void)state;
	good_state();
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(fe_get(&fe, FE_CHECK_DEVICE_STATE), FAILED);
	assert_int_equal(transfer(SAVE, 0, -1), NO_FILE | FAILED);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(transfer(2, 0, fds[0]), NO_FILE | FAILED);
	assert_int_equal(transfer(SAVE, 2, fds[1]), NO_FILE | FAILED);
	assert_int_equal(fe_get(&fe, FE_CHECK_DEVICE_STATE), FAILED);
	/* Nobody reads what is saved. */
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	close(fds[0]);
	assert_int_equal(transfer(SAVE, 0, fds[1]), NO_FILE);
	assert_int_equal(fe_get(&fe, FE_CHECK_DEVICE_STATE), FAILED);
	assert_false(loads(much, 0));
	assert_false(loads(much, sizeof(much)));
	sum_up();
	state_make(&s, FE_SESSIONS, 1, 0);
	assert_false(loads(&s, sizeof(s) - 1));
	assert_false(loads(&s, sizeof(s)));
	s.open = 1;
	assert_false(loads(&s, sizeof(s)));
	assert_false(loads(&saved, GOOD_BYTES - 1));
	saved.second.queue = 2;
	assert_false(loads(&saved, GOOD_BYTES));
	/* One that does not end. */
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(transfer(LOAD, 0, fds[0]), NO_FILE);
	assert_int_equal(fe_get(&fe, FE_CHECK_DEVICE_STATE), FAILED);
	close(fds[1]);
	/* The device is still there. */
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_close(&fe, 1), 0);
}

/* The mirror gets its name when it has taken the session. */
static pid_t wait_for_mirror(unsigned int session)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	unsigned int i;
	pid_t pid;

	for (i = 0; !(pid = fe_mirror(&fe, session)); i++) {
		assert_true(i < 10000);
		nanosleep(&ms, NULL);
	}
	return pid;
}

static void saved_and_loaded(void **state)
{
	struct qCUcmd ask = {.op = QCU_OP_DEVICE_SYNC, .tid = 1};
	uint16_t index[FE_QUEUES];
	unsigned int q, loaded;
	struct {
		struct state head;
		struct state_entry session;
		uint64_t sum;
	} dead;
	struct {
		struct state head;
		uint64_t sum;
	} none, want;
	int fds[2];

	(void)state;
	assert_int_equal(fe_open(&fe, 2), 0);
	assert_non_null(strstr(fe_reason(&fe), "the backend fake cannot save a session yet"));
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_non_null(strstr(fe_reason(&fe), "the backend fake cannot save a session yet"));
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(transfer(SAVE, 0, fds[1]), NO_FILE | FAILED);
	close(fds[0]);
	/* A session whose mirror has died is open until the guest closes it. It can be saved. */
	assert_int_equal(kill(wait_for_mirror(1), SIGKILL), 0);
	assert_int_equal(fe_close(&fe, 2), 0);
	assert_int_equal(fe_ask(&fe, 1, &ask, 0, 0), FE_GONE);
	assert_string_equal(fe_reason(&fe), "");
	for (q = 0; q < FE_QUEUES; q++)
		index[q] = fe_queue_stop(&fe, q);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(transfer(SAVE, 0, fds[1]), NO_FILE);
	assert_int_equal(fe_get(&fe, FE_CHECK_DEVICE_STATE), 0);
	assert_int_equal(read(fds[0], &dead, sizeof(dead)), sizeof(dead));
	assert_int_equal(read(fds[0], &dead, sizeof(dead)), 0);
	close(fds[0]);
	assert_int_equal(dead.head.open, 1);
	assert_int_equal(dead.session.queue, 1);
	assert_int_equal(dead.session.dead, 1);
	/* The VM goes on after savevm, or from what was saved. */
	for (loaded = 0; loaded < 2; loaded++) {
		if (loaded) {
			assert_string_equal(fe_reason(&fe), "");
			for (q = 0; q < FE_QUEUES; q++)
				index[q] = fe_queue_stop(&fe, q);
			dead.session.popped = index[1];
			dead.sum = state_sum(state_sum(0, &dead.head, sizeof(dead.head)),
					     &dead.session, sizeof(dead.session));
			assert_true(loads(&dead, sizeof(dead)));
		}
		for (q = 0; q < FE_QUEUES; q++)
			fe_queue_go_on(&fe, q, index[q]);
		assert_int_equal(fe_ask(&fe, 1, &ask, 0, 0), FE_GONE);
	}
	/* A guest that has set its device up anew has no sessions. */
	assert_string_equal(fe_reason(&fe), "");
	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_stop(&fe, q);
	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_start(&fe, q);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_string_equal(fe_reason(&fe), "");

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(transfer(SAVE, 0, fds[1]), NO_FILE);
	assert_int_equal(fe_get(&fe, FE_CHECK_DEVICE_STATE), 0);
	assert_int_equal(read(fds[0], &none, sizeof(none)), sizeof(none));
	assert_int_equal(read(fds[0], &want, sizeof(want)), 0);
	close(fds[0]);
	state_make(&want.head, FE_SESSIONS, 1, 0);
	want.sum = state_sum(0, &want.head, sizeof(want.head));
	assert_memory_equal(&none, &want, sizeof(none));
	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_stop(&fe, q);
	assert_true(loads(&none, sizeof(none)));
}

static int sync_in(unsigned int session)
{
	return fe_ask(&fe, session, &(struct qCUcmd){.op = QCU_OP_DEVICE_SYNC, .tid = 1}, 0, 0);
}

static void stop_all(uint16_t index[FE_QUEUES])
{
	unsigned int q;

	for (q = 0; q < FE_QUEUES; q++)
		index[q] = fe_queue_stop(&fe, q);
}

static void go_on_all(const uint16_t index[FE_QUEUES])
{
	unsigned int q;

	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_go_on(&fe, q, index[q]);
}

/*
 * Queues that stop after the question hold their sessions, which go on with them. In between, a
 * mirror may die, a state may be loaded, or the guest may begin anew.
 */
static void held(void **state)
{
	struct {
		struct state head;
		uint64_t sum;
	} none = {0};
	uint16_t index[FE_QUEUES];
	unsigned int q;
	int fds[2];

	(void)state;
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 3), 0);
	assert_int_equal(sync_in(1), 0);
	/* What the mirror says against it stands until the queues start. */
	assert_non_null(strstr(fe_reason(&fe), "cannot save"));
	stop_all(index);
	assert_non_null(strstr(fe_reason(&fe), "cannot save"));
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(transfer(SAVE, 0, fds[1]), NO_FILE | FAILED);
	close(fds[0]);
	go_on_all(index);
	assert_int_equal(sync_in(1), 0);
	assert_int_equal(sync_in(3), 0);

	/* A mirror dies while it is held. */
	assert_non_null(strstr(fe_reason(&fe), "cannot save"));
	stop_all(index);
	assert_int_equal(kill(wait_for_mirror(1), SIGKILL), 0);
	go_on_all(index);
	assert_int_equal(sync_in(1), FE_GONE);
	assert_int_equal(sync_in(3), 0);
	assert_int_equal(fe_close(&fe, 1), 0);

	/* Another question after it: the queues stop because the guest resets its device. */
	assert_non_null(strstr(fe_reason(&fe), "cannot save"));
	fe_get(&fe, FE_GET_QUEUE_NUM);
	stop_all(index);
	assert_string_equal(fe_reason(&fe), "");
	go_on_all(index);
	assert_int_equal(fe_open(&fe, 3), 0);

	/* The guest resets its device right after the question. */
	assert_non_null(strstr(fe_reason(&fe), "cannot save"));
	stop_all(index);
	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_start(&fe, q);
	assert_int_equal(fe_open(&fe, 3), 0);
	assert_int_equal(sync_in(3), 0);

	/* A state is loaded over held sessions. */
	assert_non_null(strstr(fe_reason(&fe), "cannot save"));
	stop_all(index);
	assert_false(loads(&none, sizeof(none) - 1));
	go_on_all(index);
	assert_int_equal(sync_in(3), 0);
	assert_non_null(strstr(fe_reason(&fe), "cannot save"));
	stop_all(index);
	state_make(&none.head, FE_SESSIONS, 1, 0);
	none.sum = state_sum(0, &none.head, sizeof(none.head));
	assert_true(loads(&none, sizeof(none)));
	go_on_all(index);
	assert_int_equal(fe_open(&fe, 3), 0);
	assert_int_equal(fe_close(&fe, 3), 0);
}

/* It ends for another one, but not under a program. */
static void makes_room(void **state)
{
	char byte;

	(void)state;
	assert_int_equal(fe_open(&fe, 3), 0);
	assert_int_equal(kill(fe.server, SIGUSR2), 0);
	assert_int_equal(kill(fe.server, SIGUSR2), 0);
	/* The signal is looked at before what is asked after it, or together with it. */
	assert_non_null(strstr(fe_reason(&fe), "cannot save"));
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(fe_close(&fe, 3), 0);
	assert_string_equal(fe_reason(&fe), "");
	assert_int_equal(kill(fe.server, SIGUSR2), 0);
	assert_int_equal(recv(fe.sock, &byte, 1, 0), 0);
}

static uint64_t fe_gpa(const void *p)
{
	return (uint64_t)((const uint8_t *)p - fe.ram);
}

static void log_to(int fd)
{
	const uint64_t m[2] = {LOG_BYTES, 0};
	uint64_t answer[2];

	fe_send(&fe, FE_SET_LOG_BASE, m, sizeof(m), fd);
	fe_recv(&fe, FE_SET_LOG_BASE, answer, sizeof(answer));
}

static void set_features(uint64_t features)
{
	fe_send(&fe, FE_SET_FEATURES, &features, sizeof(features), -1);
}

/* One page, whose address the guest has on another one. */
static int map_page(uint64_t gpa)
{
	struct qCUcmd c = {.op = QCU_OP_MAP, .flags = QCU_F_SEGS};

	*(struct qcu_seg *)(fe.ram + FE_FREE) = (struct qcu_seg){gpa, DIRTY_PAGE};
	c.map.va = QCU_WINDOW_BASE;
	c.map.len = DIRTY_PAGE;
	return fe_ask(&fe, 1, &c, FE_FREE, sizeof(struct qcu_seg));
}

/*
 * Nothing is marked until a session may have written, and then what sessions have named, also if
 * they have ended.
 */
static void logs(void **state)
{
	int fd = memfd_create("log", MFD_CLOEXEC);
	uint64_t page, marked;
	uint8_t *log;

	(void)state;
	/* A log that cannot be mapped is a reason against saving. */
	log_to(open("/dev/null", O_RDONLY | O_CLOEXEC));
	set_features(FE_FEATURES | FE_LOG_ALL);
	assert_non_null(strstr(fe_reason(&fe), "cannot be mapped"));
	set_features(FE_FEATURES);
	assert_string_equal(fe_reason(&fe), "");

	assert_int_equal(ftruncate(fd, LOG_BYTES), 0);
	log = mmap(NULL, LOG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(log, MAP_FAILED);
	log_to(fd);
	set_features(FE_FEATURES | FE_LOG_ALL);
	fe_queue_stop(&fe, 4);
	for (page = 0; page < 2 * FE_RAM / DIRTY_PAGE; page++)
		assert_false(is_marked(log, page));
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(map_page(FE_FREE + 0x40000), 0);
	assert_int_equal(fe_close(&fe, 1), 0);
	fe_queue_stop(&fe, 0);
	for (page = marked = 0; page < 2 * FE_RAM / DIRTY_PAGE; page++)
		marked += is_marked(log, page);
	assert_true(is_marked(log, (FE_FREE + 0x40000) / DIRTY_PAGE));
	assert_true(is_marked(log, fe_gpa(fe.q[0].used) / DIRTY_PAGE));
	assert_true(is_marked(log, fe_gpa(fe.q[1].used) / DIRTY_PAGE));
	/* And the rest of the rings, and what the commands lay in. */
	assert_in_range(marked, 4, 40);
	munmap(log, LOG_BYTES);
	close(fd);
}

int main(int argc, char **argv)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_states),
		cmocka_unit_test(bad_sessions),
		cmocka_unit_test(marks),
		cmocka_unit_test(named_pages),
		T(bad_transfers),
		T(saved_and_loaded),
		T(held),
		T(logs),
		T(makes_room),
	};
#undef T

	born_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

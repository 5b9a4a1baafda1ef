// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the letters with which mirrors pass files to one another: what the main process carries
 * (host/passes.c), and what an honest mirror does with what it gets (backend/pass.c). Two mirrors
 * send anything. The honest one offers one file, which only who has the secret may get.
 */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/backend/pass.h"
#include "qcu-device/base/pass.h"
#include "qcu-device/host/passes.h"
#include "tests/fuzz/fuzz.h"
#include "qcu-device/base/send_files.h"

enum { HONEST = 1, FIRST_BAD, SEATS = 4 };

#define FILES	  3u /* two more than belong to a letter */
#define FILES_MAX 256
#define LIMIT_S	  20 /* only a mirror that hangs takes so long */

static struct be_pass honest;
static struct be_pass_handle offered;
static struct passes passes;
static int mirror_end[SEATS];
static struct stat secret_file;

static void need(bool good)
{
	if (!good)
		abort();
}

static int open_files(void)
{
	int n = 0, fd;

	for (fd = 0; fd < FILES_MAX; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int add_seat(unsigned int seat)
{
	int ends[2];

	need(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	passes_add(&passes, seat, ends[0]);
	return ends[1];
}

static void start(void)
{
	int file = memfd_create("offered", MFD_CLOEXEC);
	unsigned int seat;

	passes_init(&passes);
	for (seat = FIRST_BAD; seat < SEATS; seat++)
		mirror_end[seat] = add_seat(seat);
	be_pass_open(&honest, add_seat(HONEST), HONEST);
	need(!fstat(file, &secret_file) && be_pass_offer(&honest, file, &offered));
}

/* Reads what a bad mirror has got. A letter has at most one file; a question has none. */
static bool take_letter(unsigned int seat, bool knows)
{
	struct pass_envelope e;
	struct cmsghdr *cmsg;
	struct stat st;
	int file = -1;

	pass_envelope(&e);
	if (recvmsg(mirror_end[seat], &e.msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0)
		return false;
	need(!(e.msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && !e.letter.rsvd);
	cmsg = CMSG_FIRSTHDR(&e.msg);
	if (cmsg) {
		memcpy(&file, CMSG_DATA(cmsg), sizeof(file));
		need(!fstat(file, &st) && e.letter.kind == PASS_ANSWER);
		need(knows || st.st_ino != secret_file.st_ino || st.st_dev != secret_file.st_dev);
		close(file);
	}
	need(e.letter.kind == PASS_ASK || e.letter.kind == PASS_ANSWER);
	return true;
}

static uint32_t take(const uint8_t **data, size_t *left, size_t bytes)
{
	uint32_t value = 0;
	size_t n = bytes < *left ? bytes : *left;

	memcpy(&value, *data, n);
	*data += n;
	*left -= n;
	return value;
}

static void send_letter(unsigned int seat, const struct pass_letter *l, size_t bytes, size_t n)
{
	const int files[FILES] = {mirror_end[FIRST_BAD], mirror_end[seat], mirror_end[seat]};

	(void)!send_files(mirror_end[seat], l, bytes, files, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/*
 * Each question gets an answer: from the honest mirror, or from the main process if that mirror had
 * no room for the question. True: it was the mirror.
 */
static bool take_answer(unsigned int seat, bool knows)
{
	struct pollfd p[] = {{.fd = mirror_end[seat], .events = POLLIN},
			     {.fd = passes.mirror[HONEST].fd, .events = POLLIN}};
	bool own;
	int n;

	/* libFuzzer's timer may interrupt it. */
	do {
		n = poll(p, 2, LIMIT_S * 1000);
	} while (n < 0 && errno == EINTR);
	need(n > 0);
	own = !p[0].revents;
	if (own)
		need(passes_carry(&passes, HONEST) == PASSES_CARRIED);
	need(take_letter(seat, knows));
	return own;
}

/* One letter: who sends it, its parts, its length, its files. */
static void step(const uint8_t **data, size_t *left)
{
	unsigned int how = take(data, left, 1), seat = FIRST_BAD + (how & 1);
	struct pass_letter l = {.kind = PASS_ASK + (how >> 1 & 1), .seat = HONEST, .id = how};
	bool knows = how & 4;
	size_t bytes = sizeof(l), n = l.kind == PASS_ANSWER;
	enum passes_result result;

	if (knows)
		memcpy(l.secret, offered.secret, sizeof(l.secret));
	else
		l.secret[0] = take(data, left, 4);
	if (how & 8)
		n = take(data, left, 1) % (FILES + 1);
	if (how & 16)
		bytes = take(data, left, 1) % (sizeof(l) + 1);
	if (how & 32)
		l.seat = take(data, left, 1);
	if (how & 64)
		((uint32_t *)&l)[take(data, left, 1) % 4] = take(data, left, 4);
	send_letter(seat, &l, bytes, n);
	result = passes_carry(&passes, seat);
	if (result != PASSES_CARRIED) {
		passes_remove(&passes, seat);
		close(mirror_end[seat]);
		mirror_end[seat] = add_seat(seat);
	} else if (l.kind == PASS_ASK && l.seat == HONEST) {
		take_answer(seat, knows);
	}
	for (seat = FIRST_BAD; seat < SEATS; seat++)
		while (take_letter(seat, false))
			;
}

/* When the honest mirror has answered, it has read all letters that came before. */
static void wait_for_honest(void)
{
	const struct pass_letter l = {.kind = PASS_ASK, .seat = HONEST};

	do {
		send_letter(FIRST_BAD, &l, sizeof(l), 0);
		need(passes_carry(&passes, FIRST_BAD) == PASSES_CARRIED);
	} while (!take_answer(FIRST_BAD, false));
}

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int seat;
	int before;

	if (!honest.seat)
		start();
	/* Each input may send as much as a mirror may in a second. */
	for (seat = HONEST; seat < SEATS; seat++)
		passes.mirror[seat].sent = 0;
	/* libFuzzer may have opened files since the last input. */
	before = open_files();
	while (size)
		step(&data, &size);
	wait_for_honest();
	need(open_files() == before);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device memory that goes ahead (memory/ahead.h) while QEMU copies the memory of the running VM.
 * QEMU gives a socket for it. At the source, one mirror after another is asked for its next piece;
 * what has been written to QEMU is noted for the session, and left out when the session is saved.
 * The list of it is good for this one migration: QEMU closes its end when that is over. When all
 * has gone, mirrors look what has been written since, and that goes once more. When the VM stands,
 * QEMU gives another socket, and they look for the last time.
 *
 * Nothing here waits: for a mirror's answer and for room in the socket there are callbacks.
 */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/base/spin.h"
#include "qcu-device/base/zero.h"
#include "qcu-device/host/vhost.h"

/* How much of a session may go before the first look, and how many pieces in each. */
#define MOST_BYTES  STATE_ARCHIVE_MAX
#define MOST_PIECES (1u << 18)
/* How long one copy may take. */
#define PATIENCE_MS 2000
/* How often it is looked what has been written since, and how long a session waits for its work. */
#define LOOKS	4
#define LOOK_MS 200
/* What has not gone so long after the VM stopped goes with the state. */
#define LATE_MS 600000

static void go_on_ahead(struct device *d);
static bool ask_for_piece(struct device *d);
static void use_answer(struct device *d, const struct mirror_answer *answer);

/* ---- the source ---- */

/* A buffer to which each mirror copies in its turn. No mirror can make it shorter. */
static int make_buffer(struct ahead_out *a)
{
	int fd = memfd_create("qcu-ahead", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *shared = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, AHEAD_BYTES) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		shared = mmap(NULL, AHEAD_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (shared != MAP_FAILED) {
		a->shared = shared;
		a->frame = malloc(sizeof(struct ahead_piece) + AHEAD_BYTES);
	}
	if (a->frame)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* An answer that comes later is not heard. */
static void forget_question(struct device *d)
{
	struct ahead_out *a = &d->ahead;

	if (a->asked)
		device_unwatch(d, d->session[a->session].mirror.ctl_fd);
	a->asked = false;
}

static void end_ahead(struct device *d)
{
	struct ahead_out *a = &d->ahead;
	unsigned int q;

	if (a->fd < 0)
		return;
	forget_question(d);
	device_unwatch(d, a->fd);
	close(a->fd);
	if (a->buffer >= 0)
		close(a->buffer);
	if (a->shared)
		munmap(a->shared, AHEAD_BYTES);
	free(a->frame);
	for (q = 1; q <= QCU_MAX_SESSIONS; q++)
		if (a->sent[q] > 0)
			close(a->sent[q]);
	*a = (struct ahead_out){.fd = -1, .buffer = -1};
}

/* QEMU writes nothing: its end is closed, so this migration is over. */
static void qemu_has_closed(struct device *d, unsigned int queue)
{
	(void)queue;
	end_ahead(d);
}

/* No piece comes any more. The socket stays open as long as the migration may use the list. */
static void finish_ahead(struct device *d)
{
	struct ahead_out *a = &d->ahead;

	a->session = QCU_MAX_SESSIONS + 1;
	shutdown(a->fd, SHUT_WR);
	device_watch(d, a->fd, qemu_has_closed, 0);
}

/* Notes that QEMU has all of the piece. Without the note it is copied once more. */
static void note_sent(struct ahead_out *a)
{
	struct ahead_piece piece;
	off_t *at;
	int *sent;

	memcpy(&piece, a->frame, sizeof(piece));
	sent = &a->sent[piece.session];
	at = &a->sent_bytes[piece.session];
	if (!*sent)
		*sent = memfd_create("qcu-sent", MFD_CLOEXEC);
	/* The mirror gets this file, too. */
	if (*sent > 0 && pwrite(*sent, &piece, sizeof(piece), *at) == sizeof(piece)) {
		*at += (off_t)sizeof(piece);
		a->went += piece.len;
		a->gone[piece.session] += piece.len;
	} else {
		complain("it cannot be noted what has gone ahead");
	}
}

static void write_frame(struct device *d, unsigned int queue)
{
	struct ahead_out *a = &d->ahead;
	struct mirror_answer answer;
	ssize_t n = 1;

	(void)queue;
	while (a->done < a->bytes && n > 0) {
		n = send(a->fd, a->frame + a->done, a->bytes - a->done, MSG_NOSIGNAL);
		if (n > 0)
			a->done += (size_t)n;
	}
	if (a->done < a->bytes) {
		if (errno != EAGAIN && errno != EINTR)
			end_ahead(d);
		return;
	}
	if (a->bytes)
		note_sent(a);
	a->bytes = 0;
	device_unwatch(d, a->fd);
	answer = a->heard;
	a->heard.what = 0;
	if (answer.what && !a->ends)
		use_answer(d, &answer);
	else if (!a->asked)
		go_on_ahead(d);
}

/* Is it the look when the VM stands? */
static bool is_late(const struct ahead_out *a)
{
	return a->looks > LOOKS;
}

/*
 * How many bytes go once more. With more than half of what has gone before it might never end; the
 * last time it would go with the state.
 */
static uint64_t most_of_look(const struct ahead_out *a)
{
	return is_late(a) ? MOST_BYTES : a->before[a->session] / 2;
}

/* Has something gone that may have been written since? */
static bool is_to_look(const struct ahead_out *a)
{
	return is_late(a) ? a->sent[a->session] > 0 : a->before[a->session];
}

static void begin_session(struct ahead_out *a, unsigned int session)
{
	a->session = session;
	a->left = a->looks ? 0 : MOST_BYTES;
	a->pieces = 0;
	a->begun = a->looking = false;
}

/* The rest of its memory goes with the state; that of the next session goes ahead. */
static void leave_session(struct device *d)
{
	forget_question(d);
	begin_session(&d->ahead, d->ahead.session + 1);
	go_on_ahead(d);
}

/*
 * What is in the buffer goes to QEMU. The mirror may write there at any time, so it is copied.
 * While QEMU reads, the mirror copies the next piece.
 */
static void begin_frame(struct device *d, const struct mirror_answer *answer)
{
	struct ahead_out *a = &d->ahead;
	struct ahead_piece piece = {
		.addr = answer->addr, .session = a->session, .len = answer->len};
	uint8_t *bytes = a->frame + sizeof(piece);

	memcpy(bytes, a->shared, piece.len);
	if (is_all_zero(bytes, piece.len)) {
		go_on_ahead(d);
		return;
	}
	piece.sum = ahead_sum(bytes, piece.len);
	memcpy(a->frame, &piece, sizeof(piece));
	a->bytes = sizeof(piece) + piece.len;
	a->done = 0;
	device_watch_writable(d, a->fd, write_frame);
	(void)ask_for_piece(d);
}

/* So many bytes have been written since. */
static void use_find(struct device *d, const struct mirror_answer *answer)
{
	struct ahead_out *a = &d->ahead;

	a->looking = false;
	if (answer->ok && answer->addr && answer->addr <= most_of_look(a)) {
		a->left = answer->addr;
		go_on_ahead(d);
	} else {
		leave_session(d);
	}
}

/* A mirror may answer anything. */
static void use_answer(struct device *d, const struct mirror_answer *answer)
{
	struct ahead_out *a = &d->ahead;

	if (a->looking) {
		use_find(d, answer);
	} else if (answer->ok && answer->len && answer->len <= AHEAD_BYTES &&
		   answer->len <= a->left && a->pieces++ < MOST_PIECES) {
		a->left -= answer->len;
		begin_frame(d, answer);
	} else {
		/* It has no more, or has died. */
		leave_session(d);
	}
}

static void take_answer(struct device *d, unsigned int queue)
{
	struct mirror_process *p = &d->session[queue].mirror;
	struct ahead_out *a = &d->ahead;
	struct mirror_answer answer;
	ssize_t n = recv(p->ctl_fd, &answer, sizeof(answer), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(answer) || answer.what != MIRROR_AHEAD)
		answer.ok = false;
	p->owes = false;
	forget_question(d);
	answer.what = MIRROR_AHEAD;
	if (a->bytes)
		a->heard = answer;
	else
		use_answer(d, &answer);
}

/*
 * Has the mirror answered what it was asked before? Until then it may wait for the GPU, and must
 * not be asked: it would wait before it takes the program's next command.
 */
static bool has_answered(struct mirror_process *p)
{
	struct mirror_answer answer;

	if (p->owes && recv(p->ctl_fd, &answer, sizeof(answer), MSG_DONTWAIT) == sizeof(answer))
		p->owes = answer.what != MIRROR_AHEAD;
	return !p->owes;
}

static bool ask_for_piece(struct device *d)
{
	struct ahead_out *a = &d->ahead;
	struct session *s = &d->session[a->session];
	const bool again = a->looks && !a->begun;
	const struct mirror_message m = {.what = again ? MIRROR_AGAIN : MIRROR_AHEAD,
					 .session = a->session,
					 .wait_ms = LOOK_MS,
					 .bytes = most_of_look(a)};
	const int files[2] = {a->buffer, a->sent[a->session]};

	if (s->state != SESSION_LIVE || (s->held && !is_late(a)) || (again && !is_to_look(a)) ||
	    (is_late(a) && spin_clock() > a->late_until_ns) || !has_answered(&s->mirror))
		return false;
	atomic_store(&d->states[a->session].told, true);
	if (!mirror_tell(&s->mirror, &m, files, again ? 2 : !a->begun, MSG_DONTWAIT))
		return false;
	a->looking = again;
	a->begun = a->asked = true;
	a->asked_ns = spin_clock();
	s->mirror.owes = true;
	device_watch(d, s->mirror.ctl_fd, take_answer, a->session);
	return true;
}

static void begin_sessions(struct ahead_out *a)
{
	memcpy(a->before, a->gone, sizeof(a->before));
	memset(a->gone, 0, sizeof(a->gone));
	begin_session(a, 1);
}

/* If something has gone since the last one. */
static bool begin_look(struct ahead_out *a)
{
	unsigned int q = 1;

	while (q <= QCU_MAX_SESSIONS && !a->gone[q])
		q++;
	if (a->ends || a->looks >= LOOKS || q > QCU_MAX_SESSIONS)
		return false;
	a->looks++;
	begin_sessions(a);
	return true;
}

/* The next piece, of this session or the next one that has some, when there is none on its way. */
static void go_on_ahead(struct device *d)
{
	struct ahead_out *a = &d->ahead;

	if (a->bytes)
		return;
	do {
		while (!a->ends && a->session <= d->opt->sessions) {
			if (ask_for_piece(d))
				return;
			begin_session(a, a->session + 1);
		}
	} while (begin_look(a));
	finish_ahead(d);
}

bool ahead_start(struct device *d, int fd)
{
	struct ahead_out *a = &d->ahead;

	end_ahead(d);
	a->fd = fd;
	begin_session(a, 1);
	a->buffer = make_buffer(a);
	if (a->buffer < 0) {
		end_ahead(d);
		return false;
	}
	go_on_ahead(d);
	return true;
}

/* Also what one of the looks before has left out. */
bool ahead_last(struct device *d, int fd)
{
	struct ahead_out *a = &d->ahead;

	if (a->fd < 0 || a->session <= QCU_MAX_SESSIONS) {
		close(fd);
		return false;
	}
	device_unwatch(d, a->fd);
	close(a->fd);
	a->fd = fd;
	a->ends = false;
	a->looks = LOOKS + 1;
	a->late_until_ns = spin_clock() + LATE_MS * 1000000ull;
	begin_sessions(a);
	go_on_ahead(d);
	return true;
}

bool ahead_heard(struct device *d, unsigned int queue, const struct mirror_answer *answer)
{
	struct session *s = &d->session[queue];
	struct ahead_out *a = &d->ahead;

	if (!s->mirror.owes)
		return false;
	s->mirror.owes = false;
	if (a->fd < 0 || !a->asked || a->session != queue)
		return true;
	forget_question(d);
	a->heard = *answer;
	device_watch_writable(d, a->fd, write_frame);
	return true;
}

/* How long until ahead_look() has something to do, in milliseconds; -1: nothing. */
int ahead_wait_ms(const struct device *d)
{
	return d->ahead.fd >= 0 && d->ahead.asked ? PATIENCE_MS / 2 : -1;
}

/* A copy may wait for the GPU, and the GPU for the program. Then the rest goes with the state. */
void ahead_look(struct device *d)
{
	struct ahead_out *a = &d->ahead;

	if (a->fd < 0 || !a->asked || spin_clock() - a->asked_ns < PATIENCE_MS * 1000000ull)
		return;
	leave_session(d);
}

/* The device stops. A piece that has begun goes to its end, when QEMU reads it. */
void ahead_stop(struct device *d)
{
	struct ahead_out *a = &d->ahead;

	if (a->fd < 0)
		return;
	a->ends = true;
	if (a->asked) {
		forget_question(d);
		go_on_ahead(d);
	}
}

int ahead_sent(struct device *d, unsigned int queue)
{
	struct ahead_out *a = &d->ahead;
	struct pollfd p = {.fd = a->fd, .events = POLLIN};

	/* QEMU's end is open as long as it is the same migration. */
	if (a->fd < 0 || !d->stands || poll(&p, 1, 0) > 0 || a->sent[queue] <= 0)
		return -1;
	return a->sent[queue];
}

void ahead_mirror_gone(struct device *d, unsigned int queue)
{
	struct ahead_out *a = &d->ahead;

	if (a->fd < 0 || !a->asked || a->session != queue)
		return;
	leave_session(d);
}

/* ---- the target ---- */

void ahead_forget_came(struct device *d)
{
	if (d->coming >= 0) {
		device_unwatch(d, d->coming);
		close(d->coming);
		d->coming = -1;
	}
	if (d->came)
		ahead_end(d->came);
	free(d->came);
	d->came = NULL;
	memset(d->expected, 0, sizeof(d->expected));
	spares_expect_nothing(d);
}

/* A state may bring some, too. */
bool ahead_prepare(struct device *d, uint64_t most)
{
	if (d->came)
		return true;
	d->came = malloc(sizeof(*d->came));
	if (d->came && ahead_begin(d->came, d->opt->sessions, most))
		return true;
	free(d->came);
	d->came = NULL;
	return false;
}

/* Whole sections of the session whose memory comes are made ready meanwhile. */
static void expect_more(struct device *d)
{
	const unsigned int q = d->came->piece.session;
	const struct ahead_file *f;
	uint64_t whole;

	if (d->came->bad || !q || q > d->opt->sessions)
		return;
	f = &d->came->file[q];
	whole = f->size / AHEAD_SECTION * AHEAD_SECTION;
	if (whole <= d->expected[q])
		return;
	d->expected[q] = whole;
	spares_expect(d, q, f->fd, whole);
}

/* After what is wrong nothing is read: QEMU's write fails, and it asks for the reason. */
static void read_coming(struct device *d, unsigned int queue)
{
	static uint8_t bytes[STATE_PIECE];
	ssize_t n;

	(void)queue;
	do {
		n = read(d->coming, bytes, sizeof(bytes));
		if (n > 0)
			ahead_read(d->came, bytes, (size_t)n);
		if (n > 0)
			expect_more(d);
	} while (!d->came->bad && (n > 0 || (n < 0 && errno == EINTR)));
	if (!d->came->bad && n < 0 && errno == EAGAIN)
		return;
	if (d->came->bad)
		snprintf(d->not_loaded, sizeof(d->not_loaded), "%s", d->came->why);
	device_unwatch(d, d->coming);
	close(d->coming);
	d->coming = -1;
}

bool ahead_expect(struct device *d, int fd, uint64_t most)
{
	ahead_forget_came(d);
	if (!ahead_prepare(d, most)) {
		close(fd);
		return false;
	}
	d->coming = fd;
	device_watch(d, fd, read_coming, 0);
	return true;
}

void ahead_arrives(struct device *d)
{
	if (d->coming >= 0)
		read_coming(d, 0);
}

void ahead_over(struct device *d)
{
	end_ahead(d);
	ahead_forget_came(d);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All sessions of the VM stand still and are saved, or are made from what was saved (vhost.h). Each
 * mirror writes and reads its own session, in a file of its own: it sees nothing of the others'.
 * What a mirror answers is not trusted, because a guest may have broken into it.
 */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/host/vhost.h"
#include "qcu-device/moving/refuse.h"

/* How long a mirror may take to answer: more than it may wait itself, and more than work takes. */
#define ANSWER_MS   60000
#define TRANSFER_MS 600000
/* How long the other side of a pipe may do nothing. */
#define PIPE_MS 60000

static bool refuse_session(const struct session *s, const char *text, char *why, size_t size)
{
	return refuse_moving(why, size,
			     "what %s (pid %u in the VM) has on the GPU cannot be saved: %s",
			     s->comm, s->guest_pid, text);
}

/* ---- asking a mirror ---- */

static bool ask_mirror(struct device *d, unsigned int queue, enum mirror_tells what,
		       unsigned int wait_ms, bool vm_stands, int file)
{
	const struct mirror_message m = {
		.what = what, .session = queue, .wait_ms = wait_ms, .vm_stands = vm_stands};

	return mirror_tell(&d->session[queue].mirror, &m, &file, file >= 0, MSG_DONTWAIT);
}

/* A mirror that says nothing in time, or nonsense, is killed. */
static bool hear_answer(struct device *d, unsigned int queue, unsigned int ms,
			struct mirror_answer *a)
{
	struct session *s = &d->session[queue];
	struct pollfd p = {.fd = s->mirror.ctl_fd, .events = POLLIN};
	ssize_t n = -1;
	char *c;

	if (poll(&p, 1, (int)ms) == 1)
		n = recv(s->mirror.ctl_fd, a, sizeof(*a), MSG_DONTWAIT);
	if (n != sizeof(*a)) {
		*a = (struct mirror_answer){.why = "its mirror does not answer"};
		sessions_kill(d, queue, "ended, because its mirror does not answer");
		return false;
	}
	a->why[sizeof(a->why) - 1] = '\0';
	for (c = a->why; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return a->ok;
}

bool sessions_hold(struct device *d, unsigned int wait_ms, bool vm_stands, bool *passes, char *why,
		   size_t size)
{
	struct mirror_answer a;
	bool asked[QCU_MAX_SESSIONS + 1] = {false}, ok = true;
	unsigned int q;

	*passes = true;
	sessions_settle(d);
	for (q = 1; q <= d->opt->sessions; q++) {
		struct session *s = &d->session[q];

		if (s->state == SESSION_NONE)
			continue;
		s->held = true;
		if (s->state != SESSION_LIVE)
			continue;
		atomic_store(&d->states[q].told, true);
		asked[q] = ask_mirror(d, q, MIRROR_HOLD, wait_ms, vm_stands, -1);
		if (!asked[q])
			sessions_kill(d, q, "ended, because its mirror does not respond");
	}
	for (q = 1; q <= d->opt->sessions; q++) {
		struct session *s = &d->session[q];

		if (asked[q] && !hear_answer(d, q, wait_ms + ANSWER_MS, &a)) {
			*passes &= a.passes;
			if (ok || !a.passes)
				refuse_session(s, a.why, why, size);
			ok = false;
		}
	}
	sessions_settle(d);
	for (q = 1; q <= d->opt->sessions; q++)
		d->session[q].popped = (uint16_t)atomic_load(&d->states[q].popped);
	return ok;
}

void sessions_go_on(struct device *d)
{
	unsigned int q;

	for (q = 1; q <= d->opt->sessions; q++) {
		struct session *s = &d->session[q];

		if (s->held && s->state == SESSION_LIVE && !mirror_begin(d, q, &s->mirror, true))
			sessions_kill(d, q, "ended, because its mirror does not respond");
		s->held = false;
	}
}

/* ---- bytes ---- */

/* A file, pipe or socket with a state, and the sum of what went through. */
struct stream {
	int fd;
	uint64_t sum;
};

/* Could it not be written or read now, and can it soon? */
static bool is_worth_waiting(int fd, short events, ssize_t n)
{
	struct pollfd p = {.fd = fd, .events = events};

	if (n < 0 && errno == EINTR)
		return true;
	return n < 0 && errno == EAGAIN && poll(&p, 1, PIPE_MS) == 1;
}

static bool write_to_stream(struct stream *s, const void *from, size_t len)
{
	const uint8_t *at = from;

	s->sum = state_sum(s->sum, from, len);
	while (len) {
		ssize_t n = write(s->fd, at, len);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (!is_worth_waiting(s->fd, POLLOUT, n)) {
			return false;
		}
	}
	return true;
}

static bool read_from_stream(struct stream *s, void *to, size_t len)
{
	size_t left = len;
	uint8_t *at = to;

	while (left) {
		ssize_t n = read(s->fd, at, left);

		if (n > 0) {
			at += n;
			left -= (size_t)n;
		} else if (!is_worth_waiting(s->fd, POLLIN, n)) {
			return false;
		}
	}
	s->sum = state_sum(s->sum, to, len);
	return true;
}

static bool copy_stream(struct stream *from, struct stream *to, uint64_t len)
{
	static uint8_t piece[STATE_PIECE];

	while (len) {
		size_t n = len < sizeof(piece) ? len : sizeof(piece);

		if (!read_from_stream(from, piece, n) || !write_to_stream(to, piece, n))
			return false;
		len -= n;
	}
	return true;
}

bool sessions_copy(int from, int to, uint64_t len)
{
	return copy_stream(&(struct stream){.fd = from}, &(struct stream){.fd = to}, len);
}

/* ---- saving ---- */

/* Which command waits for a host function? Nothing else may be unfinished. */
static bool find_waiting(const struct device *d, unsigned int queue, uint16_t *head)
{
	unsigned int i;

	*head = STATE_NONE;
	for (i = 0; i < RING_MAX; i++) {
		if (!atomic_load(&d->states[queue].inflight[i]))
			continue;
		if (*head != STATE_NONE)
			return false;
		*head = (uint16_t)i;
	}
	return true;
}

static bool write_archive(struct device *d, unsigned int queue, struct state_entry *record, int own,
			  struct stream *to, char *why, size_t size)
{
	const struct session *s = &d->session[queue];
	struct mirror_answer a = {.why = "its mirror does not respond"};
	off_t end;

	if (!ask_mirror(d, queue, MIRROR_SAVE, ANSWER_MS, true, own) ||
	    !hear_answer(d, queue, TRANSFER_MS, &a))
		return refuse_session(s, a.why, why, size);
	if (!find_waiting(d, queue, &record->waits))
		return refuse_session(s, "a command has not ended", why, size);
	end = lseek(own, 0, SEEK_END);
	if (end < (off_t)STATE_ARCHIVE_MIN || (uint64_t)end > STATE_ARCHIVE_MAX ||
	    lseek(own, 0, SEEK_SET))
		return refuse_session(s, "its archive has an impossible size", why, size);
	record->bytes = (uint64_t)end;
	return (write_to_stream(to, record, sizeof(*record)) &&
		copy_stream(&(struct stream){.fd = own}, to, record->bytes)) ||
	       refuse_moving(why, size, "the state cannot be written");
}

static bool save_session(struct device *d, unsigned int queue, struct stream *to, char *why,
			 size_t size)
{
	const struct session *s = &d->session[queue];
	struct state_entry record = {
		.queue = queue,
		.pid = s->guest_pid,
		.dead = s->state == SESSION_DEAD,
		.popped = s->popped,
		.waits = STATE_NONE,
	};
	unsigned int i;
	int own;
	bool ok;

	memcpy(record.name, s->comm, strnlen(s->comm, sizeof(record.name)));
	if (record.dead)
		return write_to_stream(to, &record, sizeof(record)) ||
		       refuse_moving(why, size, "the state cannot be written");
	for (i = 0; i < STATE_GPUS; i++)
		record.memory[i] = atomic_load(&d->usage->sessions[queue].memory[i]);
	own = memfd_create("qcu-session", MFD_CLOEXEC);
	if (own < 0)
		return refuse_moving(why, size, "there is no memory for it");
	ok = write_archive(d, queue, &record, own, to, why, size);
	close(own);
	return ok;
}

struct state_check device_check(const struct device *d)
{
	const struct device_options *o = d->opt;

	return (struct state_check){
		.sessions = o->sessions,
		.gpus = o->plugin    ? 0
			: o->be.gpus ? o->be.gpus
				     : 1,
		.session_memory = o->limits.session[LIMIT_DEVICE_MEMORY],
		.vm_memory = o->limits.vm[LIMIT_DEVICE_MEMORY],
	};
}

bool sessions_save(struct device *d, int fd, char *why, size_t size)
{
	unsigned int q, n = sessions_open(d, NULL);
	struct stream to = {.fd = fd};
	struct state head;
	uint64_t sum;
	bool ok;

	state_make(&head, d->opt->sessions, device_check(d).gpus, n);
	ok = write_to_stream(&to, &head, sizeof(head)) ||
	     refuse_moving(why, size, "the state cannot be written");
	for (q = 1; ok && q <= d->opt->sessions; q++)
		if (d->session[q].state != SESSION_NONE)
			ok = save_session(d, q, &to, why, size);
	sum = to.sum;
	return ok && (write_to_stream(&to, &sum, sizeof(sum)) ||
		      refuse_moving(why, size, "the state cannot be written"));
}

/* ---- restoring ---- */

/*
 * Begins to restore a session. Its mirror's answer comes later. *lost: it gets no mirror, and has
 * died. False: the state cannot be read.
 */
static bool read_session(struct device *d, const struct state_entry *record, struct stream *from,
			 bool *lost, char *why, size_t size)
{
	struct session *s = &d->session[record->queue];
	struct mirror_process mirror = {.pid = 0};
	bool ok = true;
	int own;

	*s = (struct session){.guest_pid = record->pid,
			      .held = true,
			      .restored = true,
			      .popped = record->popped,
			      .waits = record->waits};
	memcpy(s->comm, record->name, sizeof(record->name));
	if (!record->dead) {
		own = memfd_create("qcu-session", MFD_CLOEXEC);
		ok = own >= 0 && copy_stream(from, &(struct stream){.fd = own}, record->bytes) &&
		     !lseek(own, 0, SEEK_SET);
		if (!ok)
			refuse_moving(why, size, "it is cut off, or there is no memory for it");
		else if (!spares_take(d, record->queue, own, &mirror))
			*lost = !refuse_moving(why, size, "%s (pid %u in the VM) gets no mirror",
					       s->comm, s->guest_pid);
		if (own >= 0)
			close(own);
		/* Another one would not have the session. */
		mirror.spare = false;
	}
	sessions_adopt(d, record->queue, &mirror);
	return ok;
}

static bool await_restored(struct device *d, char *why, size_t size)
{
	struct mirror_answer a;
	unsigned int q;
	bool ok = true;

	for (q = 1; q <= d->opt->sessions; q++) {
		struct session *s = &d->session[q];

		if (!s->restored || s->state != SESSION_LIVE || hear_answer(d, q, TRANSFER_MS, &a))
			continue;
		refuse_moving(why, size, "%s (pid %u in the VM) cannot be restored: %s", s->comm,
			      s->guest_pid, a.why);
		sessions_kill(d, q, "ended, because it could not be restored");
		ok = false;
	}
	sessions_settle(d);
	return ok;
}

bool sessions_restore(struct device *d, int fd, bool *lost, char *why, size_t size)
{
	struct state_check check = device_check(d);
	struct stream from = {.fd = fd};
	struct state_entry record;
	uint64_t sum, want;
	struct state head;
	unsigned int i;
	bool ok, all, some_lost = false;

	*lost = false;
	if (sessions_open(d, NULL))
		return refuse_moving(why, size, "the device has sessions already");
	if (!read_from_stream(&from, &head, sizeof(head)))
		return refuse_moving(why, size, "it is cut off");
	ok = state_fits(&check, &head, why, size);
	for (i = 0; ok && i < head.open; i++) {
		ok = read_from_stream(&from, &record, sizeof(record)) ||
		     refuse_moving(why, size, "it is cut off");
		ok = ok && state_entry_fits(&check, &record, why, size) &&
		     read_session(d, &record, &from, &some_lost, why, size);
	}
	want = from.sum;
	if (ok && (!read_from_stream(&from, &sum, sizeof(sum)) || sum != want))
		ok = refuse_moving(why, size, "it is damaged");
	all = await_restored(d, why, size) && !some_lost;
	*lost = ok && !all;
	return ok && all;
}

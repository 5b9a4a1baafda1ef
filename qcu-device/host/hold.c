// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All sessions of the VM stand still and are saved, or are made from what was saved (vhost.h). Each
 * mirror writes its own session into a pipe, and reads it from a file of its own: it sees nothing
 * of the others'. What a mirror answers is not trusted, because a guest may have broken into it.
 */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/base/spin.h"
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
		       unsigned int wait_ms, bool vm_stands, const int *files)
{
	const struct mirror_message m = {
		.what = what, .session = queue, .wait_ms = wait_ms, .vm_stands = vm_stands};

	unsigned int n = 0;

	while (n < 2 && files[n] >= 0)
		n++;
	return mirror_tell(&d->session[queue].mirror, &m, files, n, MSG_DONTWAIT);
}

/* A mirror that says nothing in time, or nonsense, is killed. */
static bool hear_answer(struct device *d, unsigned int queue, enum mirror_tells what,
			unsigned int ms, struct mirror_answer *a)
{
	struct session *s = &d->session[queue];
	struct pollfd p = {.fd = s->mirror.ctl_fd, .events = POLLIN};
	ssize_t n;
	char *c;

	do {
		n = -1;
		if (poll(&p, 1, (int)ms) == 1)
			n = recv(s->mirror.ctl_fd, a, sizeof(*a), MSG_DONTWAIT);
	} while (n == sizeof(*a) && a->what == MIRROR_AHEAD && ahead_heard(d, queue, a));
	if (n != sizeof(*a) || a->what != (uint32_t)what) {
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
		asked[q] = ask_mirror(d, q, MIRROR_HOLD, wait_ms, vm_stands, (const int[]){-1});
		if (!asked[q])
			sessions_kill(d, q, "ended, because its mirror does not respond");
	}
	for (q = 1; q <= d->opt->sessions; q++) {
		struct session *s = &d->session[q];

		if (asked[q] && !hear_answer(d, q, MIRROR_HOLD, wait_ms + ANSWER_MS, &a)) {
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

/* ---- saving ---- */

/* A file, pipe or socket that gets a state, and the sum of it. */
struct state_out {
	int fd;
	uint64_t sum, bytes;
	char *why;
	size_t size;
};

/* Could it not be written or read now, and can it soon? */
static bool is_worth_waiting(int fd, short events, ssize_t n, int ms)
{
	struct pollfd p = {.fd = fd, .events = events};

	if (n < 0 && errno == EINTR)
		return true;
	return n < 0 && errno == EAGAIN && poll(&p, 1, ms) == 1;
}

static bool write_bytes(struct state_out *to, const void *from, size_t len)
{
	const uint8_t *at = from;

	to->bytes += len;
	while (len) {
		ssize_t n = write(to->fd, at, len);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (!is_worth_waiting(to->fd, POLLOUT, n, PIPE_MS)) {
			return refuse_moving(to->why, to->size, "the state cannot be written");
		}
	}
	return true;
}

static bool write_summed(struct state_out *to, const void *from, size_t len)
{
	to->sum = state_sum(to->sum, from, len);
	return write_bytes(to, from, len);
}

/* An archive that comes from a file, or from a mirror through a pipe. */
struct archive_in {
	int fd;
	uint64_t bytes;
	uint64_t waited; /* for the mirror, in nanoseconds: it may not keep the VM for ever */
};

/* Fills a piece, if so much comes. Returns its length, which is 0 at the end or after an error. */
static uint64_t read_piece(struct archive_in *from, uint8_t piece[STATE_PIECE])
{
	uint64_t len = 0, since;
	bool goes_on = true;
	ssize_t n;

	while (len < STATE_PIECE && goes_on) {
		n = read(from->fd, piece + len, STATE_PIECE - len);
		if (n > 0) {
			len += (uint64_t)n;
			continue;
		}
		since = spin_clock();
		goes_on = is_worth_waiting(from->fd, POLLIN, n, TRANSFER_MS);
		from->waited += spin_clock() - since;
		goes_on &= from->waited < TRANSFER_MS * 1000000ull;
	}
	from->bytes += len;
	return len;
}

static bool carry_archive(struct archive_in *from, struct state_out *to)
{
	static uint8_t piece[STATE_PIECE];
	uint64_t len;

	do {
		len = read_piece(from, piece);
		if (!write_summed(to, &len, sizeof(len)) || !write_bytes(to, piece, len))
			return false;
	} while (len && from->bytes <= STATE_ARCHIVE_MAX);
	return true;
}

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

/* The mirror writes into a pipe. When it has closed its end, it answers. */
static bool save_archive(struct device *d, unsigned int queue, const int ends[2],
			 struct state_out *to)
{
	const struct session *s = &d->session[queue];
	struct mirror_answer a = {.why = "its mirror does not respond"};
	struct archive_in from = {.fd = ends[0]};
	const int files[2] = {ends[1], ahead_sent(d, queue)};
	bool asked = ask_mirror(d, queue, MIRROR_SAVE, ANSWER_MS, true, files);
	bool carried = true, saved;

	close(ends[1]);
	if (asked)
		carried = carry_archive(&from, to);
	/* If it is not carried to its end, the mirror's next write fails. */
	close(ends[0]);
	saved = asked && hear_answer(d, queue, MIRROR_SAVE, TRANSFER_MS, &a);
	if (!carried)
		return false;
	if (!saved)
		return refuse_session(s, a.why, to->why, to->size);
	return (from.bytes >= STATE_ARCHIVE_MIN && from.bytes <= STATE_ARCHIVE_MAX) ||
	       refuse_session(s, "its archive has an impossible size", to->why, to->size);
}

static bool save_live(struct device *d, unsigned int queue, struct state_entry *entry,
		      struct state_out *to)
{
	const struct session *s = &d->session[queue];
	uint16_t waits;
	int ends[2];

	const uint64_t none = 0; /* comes with the state of what could have gone ahead */

	if (!find_waiting(d, queue, &entry->waits))
		return refuse_session(s, "a command has not ended", to->why, to->size);
	if (pipe2(ends, O_CLOEXEC))
		return refuse_moving(to->why, to->size, "there is no pipe for it");
	/* More than a pipe has by itself, if that may be. */
	(void)fcntl(ends[0], F_SETPIPE_SZ, STATE_PIECE);
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) || !write_summed(to, entry, sizeof(*entry)) ||
	    !write_summed(to, &none, sizeof(none))) {
		close(ends[0]);
		close(ends[1]);
		return false;
	}
	if (!save_archive(d, queue, ends, to))
		return false;
	return (find_waiting(d, queue, &waits) && waits == entry->waits) ||
	       refuse_session(s, "a command has not ended", to->why, to->size);
}

static bool save_session(struct device *d, unsigned int queue, struct state_out *to)
{
	const struct session *s = &d->session[queue];
	struct state_entry entry = {
		.queue = queue,
		.pid = s->guest_pid,
		.dead = s->state == SESSION_DEAD,
		.popped = s->popped,
		.waits = STATE_NONE,
	};
	unsigned int i;

	memcpy(entry.name, s->comm, strnlen(s->comm, sizeof(entry.name)));
	if (entry.dead)
		return write_summed(to, &entry, sizeof(entry));
	for (i = 0; i < STATE_GPUS; i++)
		entry.memory[i] = atomic_load(&d->usage->sessions[queue].memory[i]);
	return save_live(d, queue, &entry, to);
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
	struct state_out to = {.fd = fd, .why = why, .size = size};
	struct state head;
	uint64_t sum;
	bool ok;

	state_make(&head, d->opt->sessions, device_check(d).gpus, n);
	ok = write_summed(&to, &head, sizeof(head));
	for (q = 1; ok && q <= d->opt->sessions; q++)
		if (d->session[q].state != SESSION_NONE)
			ok = save_session(d, q, &to);
	sum = to.sum;
	ok = ok && write_bytes(&to, &sum, sizeof(sum));
	if (ok && d->ahead.went)
		complain("%llu KiB of the programs' GPU memory went ahead, and %llu KiB with the "
			 "rest",
			 (unsigned long long)d->ahead.went >> 10,
			 (unsigned long long)to.bytes >> 10);
	return ok;
}

/* A piece of the state. */
static bool write_piece(struct state_out *to, const void *bytes, uint64_t len)
{
	return write_summed(to, &len, sizeof(len)) && write_bytes(to, bytes, len);
}

static bool write_came(struct state_out *to, unsigned int queue, const struct ahead_list *l, int fd)
{
	static uint8_t bytes[STATE_PIECE];
	struct ahead_piece piece;
	uint64_t at, len;
	size_t i;
	bool ok = true;

	for (i = 0; ok && i < l->count; i++) {
		const struct ahead_listed *p = &l->listed[i];

		piece = (struct ahead_piece){p->addr, p->sum, queue, p->len};
		ok = write_piece(to, &piece, sizeof(piece));
		for (at = 0; ok && at < p->len; at += len) {
			len = p->len - at < STATE_PIECE ? p->len - at : STATE_PIECE;
			ok = pread(fd, bytes, len, (off_t)(p->at + at)) == (ssize_t)len &&
			     write_piece(to, bytes, len);
		}
	}
	return ok && write_piece(to, NULL, 0);
}

/* What has come ahead goes once more, as the device before has sent it. */
static bool save_came(const struct device *d, unsigned int queue, struct state_out *to)
{
	const int fd = d->came ? d->came->file[queue].fd : -1;
	struct ahead_list l = {0};
	bool ok;

	if (fd >= 0 && !ahead_list(&l, fd))
		return refuse_moving(to->why, to->size, "there is no memory for it");
	ok = write_came(to, queue, &l, fd);
	ahead_unlist(&l);
	return ok;
}

bool sessions_save_again(const struct device *d, int fd, char *why, size_t size)
{
	const struct state_reader *state = d->loaded;
	struct state_out to = {.fd = fd, .why = why, .size = size};
	bool ok = write_summed(&to, &state->head, sizeof(state->head));
	unsigned int i;
	uint64_t sum;

	for (i = 0; ok && i < state->count; i++) {
		const struct state_session *s = &state->session[i];

		ok = write_summed(&to, &s->entry, sizeof(s->entry)) &&
		     (s->entry.dead ||
		      (save_came(d, s->entry.queue, &to) && !lseek(s->file, 0, SEEK_SET) &&
		       carry_archive(&(struct archive_in){.fd = s->file}, &to)));
	}
	sum = to.sum;
	return ok && write_bytes(&to, &sum, sizeof(sum));
}

/* ---- restoring ---- */

/* Begins to restore a session. Its mirror's answer comes later. False: it has died. */
static bool begin_restored(struct device *d, const struct state_session *saved, char *why,
			   size_t size)
{
	const struct state_entry *e = &saved->entry;
	struct session *s = &d->session[e->queue];
	const struct saved_files files = {saved->file, d->came ? d->came->file[e->queue].fd : -1};
	struct mirror_process mirror = {.pid = 0};
	bool ok = true;

	*s = (struct session){.guest_pid = e->pid,
			      .held = true,
			      .restored = true,
			      .popped = e->popped,
			      .waits = e->waits};
	memcpy(s->comm, e->name, sizeof(e->name));
	if (!e->dead) {
		ok = (!lseek(saved->file, 0, SEEK_SET) &&
		      spares_take(d, e->queue, &files, &mirror)) ||
		     refuse_moving(why, size, "%s (pid %u in the VM) gets no mirror", s->comm,
				   s->guest_pid);
		/* Another one would not have the session. */
		mirror.spare = false;
	}
	sessions_adopt(d, e->queue, &mirror);
	return ok;
}

static bool await_restored(struct device *d, char *why, size_t size)
{
	struct mirror_answer a;
	unsigned int q;
	bool ok = true;

	for (q = 1; q <= d->opt->sessions; q++) {
		struct session *s = &d->session[q];

		if (!s->restored || s->state != SESSION_LIVE ||
		    hear_answer(d, q, MIRROR_RESTORE, TRANSFER_MS, &a))
			continue;
		refuse_moving(why, size, "%s (pid %u in the VM) cannot be restored: %s", s->comm,
			      s->guest_pid, a.why);
		sessions_kill(d, q, "ended, because it could not be restored");
		ok = false;
	}
	sessions_settle(d);
	return ok;
}

bool sessions_restore(struct device *d, const struct state_reader *state, bool *lost, char *why,
		      size_t size)
{
	unsigned int i;
	bool all = true;

	*lost = false;
	if (sessions_open(d, NULL))
		return refuse_moving(why, size, "the device has sessions already");
	for (i = 0; i < state->count; i++)
		all &= begin_restored(d, &state->session[i], why, size);
	all &= await_restored(d, why, size);
	*lost = !all;
	return all;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions, seen from the main process: OPEN and CLOSE on the control queue, a mirror for each
 * session (made by spares.c), and what happens to the session's queue when the mirror is gone. The
 * main process has one thread, has no CUDA, and waits only in poll().
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/host/nursery.h"
#include "qcu-device/host/vhost.h"
#include "qcu-device/memory/named.h"

static void say_of_session(struct device *d, unsigned int queue, const char *what)
{
	const struct session *s = &d->session[queue];

	complain("session %u (%s, pid %u): %s", queue, s->comm, s->guest_pid, what);
}

/* Notifies the guest, if it wants that, of chains that have been pushed. */
static void call_guest(struct device *d, unsigned int queue)
{
	VuVirtq *vq = &d->vu.vq[queue];

	if (d->ring[queue].num && vq->call_fd >= 0 && ring_wants_call(&d->ring[queue]))
		eventfd_write(vq->call_fd, 1);
}

/* ---- a queue without a mirror ---- */

/* Returns everything that the guest still puts into the queue, with length 0. */
static void return_all_chains(struct device *d, unsigned int queue)
{
	struct ring *r = &d->ring[queue];
	unsigned int n = 0;

	do {
		n += ring_drain(r);
	} while (n < RING_MAX && !ring_kicks_on(r));
	if (n)
		call_guest(d, queue);
	/*
	 * A guest that adds chains faster than we return them must not keep us from other queues.
	 */
	if (n >= RING_MAX)
		eventfd_write(d->vu.vq[queue].kick_fd, 1);
}

static void dead_queue_kicked(struct device *d, unsigned int queue)
{
	eventfd_t kicks;

	if (!eventfd_read(d->vu.vq[queue].kick_fd, &kicks))
		return_all_chains(d, queue);
}

static void answer_control(struct device *d, uint16_t head, const struct iovec *in,
			   struct qCUcmd *cmd, int status)
{
	if (!d->ring[0].num)
		return;
	cmd->status = status;
	ring_copy_in(in, 1, cmd, sizeof(*cmd));
	ring_push(&d->ring[0], head, sizeof(*cmd));
	call_guest(d, 0);
}

static void describe_mirror_end(struct device *d, unsigned int queue, int status)
{
	char text[80];

	if (d->session[queue].state == SESSION_CLOSING) {
		if (d->opt->verbose)
			say_of_session(d, queue, "closed");
		return;
	}
	if (d->session[queue].state == SESSION_ENDING)
		return;
	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "its mirror was killed by signal %d (%s)",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == MIRROR_EXIT_RULE)
		snprintf(text, sizeof(text), "ended, because the guest broke the protocol");
	else if (WEXITSTATUS(status) == MIRROR_EXIT_TIMEOUT)
		snprintf(text, sizeof(text), "ended, because a kernel ran for too long");
	else if (WEXITSTATUS(status) == MIRROR_EXIT_SETUP)
		snprintf(text, sizeof(text), "ended, because its mirror could not start");
	else
		snprintf(text, sizeof(text), "its mirror exited with code %d", WEXITSTATUS(status));
	say_of_session(d, queue, text);
}

/* The mirror has been reaped: its queue is ours again. */
static void take_over(struct device *d, unsigned int queue)
{
	struct session *s = &d->session[queue];
	VuVirtq *vq = &d->vu.vq[queue];

	device_unwatch(d, s->mirror.pidfd);
	ahead_mirror_gone(d, queue);
	mirror_gone(d, &s->mirror);
	s->mirror.pid = 0;
	if (d->shares)
		shares_end(d->shares, queue);
	board_end(d->board, d->usage, queue);
	turns_session_ended(&d->turns, queue);
	/* What it has written since QEMU began to copy must still be marked. */
	if (!device_logs(d))
		named_forget(d->shared.named, queue);
	ring_take_over(&d->ring[queue]);
	ring_drain(&d->ring[queue]);
	/* The mirror may have died between a push and its call. */
	if (vq->call_fd >= 0)
		eventfd_write(vq->call_fd, 1);
	if (s->state == SESSION_CLOSING) {
		s->state = SESSION_NONE;
		answer_control(d, s->close_head, &s->close_in, &s->close_cmd, QCU_ERR_Success);
		return;
	}
	s->state = SESSION_DEAD;
	if (vq->kick_fd >= 0) {
		device_watch(d, vq->kick_fd, dead_queue_kicked, queue);
		return_all_chains(d, queue);
	}
}

static void reap_mirror(struct device *d, unsigned int queue);

/* A spare has died before it took the session. The guest need not know of it. */
static bool another_mirror(struct device *d, unsigned int queue)
{
	struct session *s = &d->session[queue];
	struct mirror_process new;

	if (!spares_take(d, queue, NULL, &new))
		return false;
	device_unwatch(d, s->mirror.pidfd);
	mirror_gone(d, &s->mirror);
	s->mirror = new;
	device_watch(d, new.pidfd, reap_mirror, queue);
	return true;
}

static void reap_mirror(struct device *d, unsigned int queue)
{
	struct session *s = &d->session[queue];
	int status = 0;
	pid_t pid;

	do {
		pid = waitpid(s->mirror.pid, &status, 0);
	} while (pid < 0 && errno == EINTR);
	if (s->state == SESSION_LIVE && s->mirror.spare && !d->states[queue].begun &&
	    another_mirror(d, queue))
		return;
	describe_mirror_end(d, queue, nursery_status(status));
	take_over(d, queue);
}

/* Kills a mirror, waits, and returns the chains that it had. */
static void end_session(struct device *d, unsigned int queue, const char *why)
{
	struct session *s = &d->session[queue];

	if (s->state == SESSION_LIVE) {
		say_of_session(d, queue, why);
		s->state = SESSION_ENDING;
		kill(s->mirror.pid, SIGKILL);
	}
	if (s->state == SESSION_ENDING || s->state == SESSION_CLOSING)
		reap_mirror(d, queue);
}

void sessions_kill(struct device *d, unsigned int queue, const char *why)
{
	struct session *s = &d->session[queue];

	if (s->state != SESSION_LIVE)
		return;
	say_of_session(d, queue, why);
	s->state = SESSION_ENDING;
	kill(s->mirror.pid, SIGKILL);
}

void sessions_end_all(struct device *d, const char *why)
{
	unsigned int q;

	/* Kill all of them first: giving up a GPU context takes a while. */
	for (q = 1; q <= d->opt->sessions; q++) {
		if (d->session[q].state != SESSION_LIVE)
			continue;
		if (why)
			say_of_session(d, q, why);
		d->session[q].state = SESSION_ENDING;
		kill(d->session[q].mirror.pid, SIGKILL);
	}
	for (q = 1; q <= d->opt->sessions; q++)
		end_session(d, q, why);
}

/* Answers all CLOSEs that have been sent. */
static void finish_closing(struct device *d)
{
	unsigned int q;

	for (q = 1; q <= d->opt->sessions; q++)
		if (d->session[q].state == SESSION_CLOSING)
			end_session(d, q, NULL);
}

void sessions_queue_stops(struct device *d, unsigned int queue)
{
	struct session *s = &d->session[queue];

	if (queue && s->held) {
		if (d->ring[queue].num)
			s->popped = (uint16_t)d->states[queue].popped;
		if (s->state == SESSION_DEAD && d->vu.vq[queue].kick_fd >= 0)
			device_unwatch(d, d->vu.vq[queue].kick_fd);
		return;
	}
	if (queue) {
		end_session(d, queue, "ended, because the guest stopped or reset the device");
		if (d->vu.vq[queue].kick_fd >= 0)
			device_unwatch(d, d->vu.vq[queue].kick_fd);
		s->state = SESSION_NONE;
		return;
	}
	finish_closing(d);
}

void sessions_drop_held(struct device *d, const char *why)
{
	unsigned int q;

	for (q = 1; q <= d->opt->sessions; q++) {
		if (!d->session[q].held)
			continue;
		end_session(d, q, why);
		d->session[q].held = d->session[q].restored = false;
		d->session[q].state = SESSION_NONE;
	}
}

void sessions_settle(struct device *d)
{
	unsigned int q;

	for (q = 1; q <= d->opt->sessions; q++)
		if (d->session[q].state == SESSION_CLOSING || d->session[q].state == SESSION_ENDING)
			end_session(d, q, NULL);
}

void sessions_adopt(struct device *d, unsigned int queue, const struct mirror_process *mirror)
{
	struct session *s = &d->session[queue];

	s->mirror = *mirror;
	s->state = SESSION_DEAD;
	if (!mirror->pid)
		return;
	s->state = SESSION_LIVE;
	device_watch(d, mirror->pidfd, reap_mirror, queue);
	board_open(d->board, queue, s->guest_pid, s->comm);
}

static bool goes_on(struct device *d, unsigned int queue)
{
	struct session *s = &d->session[queue];
	struct ring *r = &d->ring[queue];
	const VuVirtq *vq = &d->vu.vq[queue];

	if (!r->num || vq->kick_fd < 0 || vq->last_avail_idx != s->popped)
		return false;
	if (!s->restored)
		return true;
	ring_start(r, s->popped);
	if (s->waits != STATE_NONE && s->waits >= r->num)
		return false;
	if (s->waits != STATE_NONE)
		ring_mark_taken(r, s->waits);
	r->state->begun = true;
	return true;
}

void sessions_queue_starts(struct device *d, unsigned int queue)
{
	struct session *s = &d->session[queue];
	struct ring *r = &d->ring[queue];
	const VuVirtq *vq = &d->vu.vq[queue];
	bool ok = goes_on(d, queue);

	s->held = s->restored = false;
	if (!ok && r->num)
		ring_start(r, vq->last_avail_idx);
	if (ok && s->state == SESSION_DEAD) {
		ring_take_over(r);
		device_watch(d, vq->kick_fd, dead_queue_kicked, queue);
		return_all_chains(d, queue);
		return;
	}
	if (ok && mirror_begin(d, queue, &s->mirror, true))
		return;
	end_session(d, queue,
		    ok ? "ended, because its mirror does not respond"
		       : "ended, because the guest has set its device up anew");
	if (ok)
		return;
	if (vq->kick_fd >= 0)
		device_unwatch(d, vq->kick_fd);
	s->state = SESSION_NONE;
}

unsigned int sessions_open(struct device *d, unsigned int *queue)
{
	unsigned int q, first = 0, n = 0;

	finish_closing(d);
	for (q = d->opt->sessions; q; q--) {
		if (d->session[q].state == SESSION_NONE)
			continue;
		first = q;
		n++;
	}
	if (queue)
		*queue = first;
	return n;
}

void sessions_new_call_fd(struct device *d, unsigned int queue, int fd)
{
	struct session *s = &d->session[queue <= d->opt->sessions ? queue : 0];
	const struct mirror_message m = {.what = MIRROR_CALL};

	if (s->state != SESSION_LIVE)
		return;
	/* A mirror that does not read these messages any more hangs or is dying. */
	if (!mirror_tell(&s->mirror, &m, &fd, fd >= 0, MSG_DONTWAIT) && errno != EPIPE &&
	    errno != ECONNRESET)
		end_session(d, queue, "ended, because its mirror does not respond");
}

/* ---- OPEN and CLOSE ---- */

static int session_open(struct device *d, const struct qcu_open *o)
{
	struct session *s;
	unsigned int i;

	if (!o->queue || o->queue > d->opt->sessions) {
		complain("the guest opens queue %u of %u", o->queue, d->opt->sessions);
		return QCU_ERR_InvalidValue;
	}
	s = &d->session[o->queue];
	if (s->state != SESSION_NONE) {
		complain("the guest opens queue %u, which is open", o->queue);
		return QCU_ERR_InvalidValue;
	}
	if (!d->ring[o->queue].num || d->vu.vq[o->queue].kick_fd < 0) {
		complain("the guest opens queue %u, which it has not set up", o->queue);
		return QCU_ERR_InvalidValue;
	}
	s->guest_pid = o->pid;
	memcpy(s->comm, o->comm, sizeof(o->comm));
	for (i = 0; s->comm[i]; i++)
		if (s->comm[i] < ' ' || s->comm[i] > '~')
			s->comm[i] = '?';
	if (!spares_take(d, o->queue, NULL, &s->mirror))
		return QCU_ERR_OperatingSystem;
	s->held = s->restored = false;
	sessions_adopt(d, o->queue, &s->mirror);
	if (d->opt->verbose)
		say_of_session(d, o->queue, "open");
	return QCU_ERR_Success;
}

/* True: the answer comes later. */
static bool session_close(struct device *d, struct qCUcmd *cmd, int *status)
{
	uint32_t queue = cmd->close.queue;
	struct session *s = &d->session[queue <= d->opt->sessions ? queue : 0];

	*status = QCU_ERR_Success;
	switch (s->state) {
	case SESSION_LIVE:
	case SESSION_ENDING:
		s->state = SESSION_CLOSING;
		s->close_head = d->chain.head;
		s->close_cmd = *cmd;
		s->close_in = d->chain.iov[d->chain.out_num];
		kill(s->mirror.pid, SIGKILL);
		return true;
	case SESSION_DEAD:
		return_all_chains(d, queue);
		device_unwatch(d, d->vu.vq[queue].kick_fd);
		s->state = SESSION_NONE;
		return false;
	case SESSION_NONE:
	case SESSION_CLOSING:
		break;
	}
	complain("the guest closes queue %u, which is not open", queue);
	*status = QCU_ERR_InvalidValue;
	return false;
}

/* Carries out one command of the control queue. False: it cannot even be answered. */
static bool carry_out_control(struct device *d)
{
	struct ring_chain *c = &d->chain;
	const struct qcu_rule *rule;
	struct qCUcmd cmd;
	int status = QCU_ERR_InvalidValue;

	if (c->out_len != sizeof(cmd) || c->in_len != sizeof(cmd) || c->in_num != 1)
		return false;
	ring_copy_out(c->iov, c->out_num, 0, &cmd, sizeof(cmd));
	rule = qcu_rule(cmd.op);
	if (!rule || rule->who != QCU_WHO_CTL || cmd.flags || cmd.device || cmd.tid ||
	    !qcu_request_clean(&cmd, rule) || (cmd.op == QCU_OP_OPEN && cmd.open.rsvd))
		complain("the guest sent a bad command (%u) for control", cmd.op);
	else if (cmd.op == QCU_OP_OPEN)
		status = session_open(d, &cmd.open);
	else if (session_close(d, &cmd, &status))
		return true;
	answer_control(d, c->head, &c->iov[c->out_num], &cmd, status);
	return true;
}

void sessions_control(struct device *d, unsigned int queue)
{
	struct ring *r = &d->ring[queue];
	unsigned int budget = RING_MAX;
	const char *why;
	eventfd_t kicks;
	int rc;

	if (eventfd_read(d->vu.vq[queue].kick_fd, &kicks) && errno != EAGAIN) {
		complain("control queue: %s", strerror(errno));
		device_unwatch(d, d->vu.vq[queue].kick_fd);
		return;
	}
	do {
		while (budget && (rc = ring_pop(r, &d->chain, &why))) {
			budget--;
			d->wrote = true;
			if (rc > 0) {
				why = "a chain of another shape than record and reply";
				if (carry_out_control(d))
					continue;
			}
			complain("control queue: the guest sent %s", why);
			if (d->chain.head == RING_NO_HEAD) {
				complain("control queue: not served any more "
					 "until the guest resets the device");
				device_unwatch(d, d->vu.vq[queue].kick_fd);
				return;
			}
			ring_push(r, d->chain.head, 0);
			call_guest(d, queue);
		}
	} while (budget && !ring_kicks_on(r));
	if (!budget)
		eventfd_write(d->vu.vq[queue].kick_fd, 1);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The mirror process. It works its session's virtqueue itself, so that no other process is on the
 * path of a command. The main process takes the queue back only when the mirror has died. All that
 * it needs then lies in the ring's shared state.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qcu-device/base/carriers.h"
#include "qcu-device/base/complain.h"
#include "qcu-device/base/spin.h"
#include "qcu-device/host/device.h"
#include "qcu-device/memory/named.h"
#include "qcu-device/mirror/dispatch.h"
#include "qcu-device/mirror/going.h"
#include "qcu-device/mirror/save.h"

/*
 * Data that comes with a command is counted from this size on. Smaller data is not counted, so that
 * a launch costs nothing; in a full ring it adds up to 4 MiB. The driver can have 42 MiB on a ring
 * of QCU_QUEUE_SIZE.
 */
#define TAIL_FREE 4096u

/* How often a session that is held or rests looks whether a host function needs it. */
#define SLICE_MS 2
/* How long it may stand still to look what else goes ahead. */
#define AGAIN_MS 500
/* The same of a session that is held. The main process waits for a bit longer. */
#define AGAIN_HELD_MS 1500

#define REPLY_BUFFERS 4 /* a reply of 64 bytes may be split, but not into more buffers */

struct vq {
	const struct mirror_args *args;
	struct ring ring;
	pthread_mutex_t lock; /* protects `ring` and `call_fd` */
	struct mirror *m;
	unsigned int session;
	uint32_t guest_pid;
	int kick_fd, call_fd, ctl_fd;
	uint64_t rests_until;	 /* until then it takes only what host functions need */
	struct ring_chain chain; /* the chain that is being taken */
	_Atomic(struct vq_request *) taken[RING_MAX]; /* by head: requests that are not answered */
	struct spin spin;
	pthread_t going; /* copies memory that goes ahead */
	bool copies;	 /* it is there */
	int buffer;
	int came; /* a file; see drop_came() */
};

struct vq_request {
	struct mir_request req;
	struct vq *vq;
	uint16_t head;
	unsigned int in_num;
	size_t counted; /* bytes that count as queued */
	struct iovec in[REPLY_BUFFERS];
	_Alignas(16) uint8_t tail[];
};

/* Ends the session. The main process returns the outstanding chains. */
static void __attribute__((noreturn)) rule_broken(const char *why)
{
	if (why)
		complain("the guest sent %s", why);
	_exit(MIRROR_EXIT_RULE);
}

static void on_request_done(struct mir_request *req)
{
	struct vq_request *r = (struct vq_request *)req;
	struct vq *vq = r->vq;

	if (req->cmd.status == MIR_RULE_BROKEN)
		rule_broken(NULL);
	if (r->counted)
		mir_give_request(vq->m, r->counted);
	ring_copy_in(r->in, r->in_num, &req->cmd, sizeof(req->cmd));
	pthread_mutex_lock(&vq->lock);
	atomic_store_explicit(&vq->taken[r->head], NULL, memory_order_relaxed);
	ring_push(&vq->ring, r->head, sizeof(req->cmd));
	if (ring_wants_call(&vq->ring))
		eventfd_write(vq->call_fd, 1);
	pthread_mutex_unlock(&vq->lock);
	free(r);
}

/*
 * The GPU runs a kernel that does not end. Lanes wait for the GPU, and nothing can wake them. So
 * this function answers their requests, and the process ends. The function holds the lock, so no
 * lane can give an answer any more.
 */
static void timed_out(void *arg)
{
	struct vq *vq = arg;
	unsigned int head;

	pthread_mutex_lock(&vq->lock);
	for (head = 0; head < RING_MAX; head++) {
		struct vq_request *r = atomic_load_explicit(&vq->taken[head], memory_order_acquire);
		struct qCUcmd reply = {0};

		if (!r)
			continue;
		reply.op = r->req.cmd.op;
		reply.tid = r->req.cmd.tid;
		reply.seq = r->req.cmd.seq;
		reply.status = QCU_ERR_LaunchTimeout;
		ring_copy_in(r->in, r->in_num, &reply, sizeof(reply));
		ring_push(&vq->ring, r->head, sizeof(reply));
	}
	eventfd_write(vq->call_fd, 1);
	_exit(MIRROR_EXIT_TIMEOUT);
}

/* Copies a chain out of guest memory, once. */
static struct vq_request *copy_chain(struct vq *vq, bool *refused, const char **why)
{
	const struct ring_chain *c = &vq->chain;
	size_t tail = c->out_len - sizeof(struct qCUcmd), counted;
	struct vq_request *r;

	if (c->out_len < sizeof(struct qCUcmd)) {
		*why = "a chain without a whole record";
		return NULL;
	}
	if (c->in_len != sizeof(struct qCUcmd) || c->in_num > REPLY_BUFFERS) {
		*why = "a chain without room for exactly one reply";
		return NULL;
	}
	if (tail > QCU_MSG_MAX && tail > QCU_SEGS_MAX * sizeof(struct qcu_seg)) {
		*why = "a chain that is too long";
		return NULL;
	}
	counted = tail > TAIL_FREE ? tail : 0;
	*refused = counted && !mir_take_request(vq->m, counted);
	if (*refused)
		counted = tail = 0;
	r = malloc(sizeof(*r) + tail);
	if (!r) {
		*why = "more than there is memory for";
		return NULL;
	}
	memset(r, 0, sizeof(*r));
	r->counted = counted;
	r->vq = vq;
	r->head = c->head;
	r->in_num = c->in_num;
	memcpy(r->in, c->iov + c->out_num, c->in_num * sizeof(r->in[0]));
	r->req.done = on_request_done;
	ring_copy_out(c->iov, c->out_num, 0, &r->req.cmd, sizeof(r->req.cmd));
	ring_copy_out(c->iov, c->out_num, sizeof(r->req.cmd), r->tail, tail);
	return r;
}

/* The tail must be exactly what the flags say. */
static const char *read_tail(struct vq_request *r, size_t tail)
{
	const struct qCUcmd *cmd = &r->req.cmd;

	switch (cmd->flags & (QCU_F_MSG | QCU_F_SEGS)) {
	case 0:
		return tail ? "a chain that is too long" : NULL;
	case QCU_F_MSG:
		r->req.msg = r->tail;
		return tail != cmd->buf.len ? "a message of another length than it says" : NULL;
	case QCU_F_SEGS:
		r->req.segs = (const struct qcu_seg *)r->tail;
		r->req.seg_count = tail / sizeof(struct qcu_seg);
		return tail % sizeof(struct qcu_seg) ? "part of a segment" : NULL;
	}
	return "a message and segments in one command";
}

/*
 * The guest has sent more data than we keep, so this command is not read. The guest thread gets an
 * error, and all later commands go on. So every command is taken off the queue, and none can wait
 * for one that is not.
 */
static void refuse_request(struct vq *vq, struct vq_request *r)
{
	complain_command(mir_op_name(r->req.cmd.op));
	complain("%zu bytes more are over the limit queued",
		 vq->chain.out_len - sizeof(r->req.cmd));
	complain_command(NULL);
	r->req.cmd.flags = 0;
	r->req.cmd.status = QCU_ERR_MemoryAllocation;
	on_request_done(&r->req);
}

/* The request in the chain that has been popped. NULL: it has been refused and answered. */
static struct mir_request *take_popped_request(struct vq *vq)
{
	const char *why = NULL;
	bool refused = false;
	struct vq_request *r = copy_chain(vq, &refused, &why);

	if (r)
		atomic_store_explicit(&vq->taken[r->head], r, memory_order_release);
	if (r && refused) {
		refuse_request(vq, r);
		return NULL;
	}
	if (r)
		why = read_tail(r, vq->chain.out_len - sizeof(r->req.cmd));
	if (why)
		rule_broken(why);
	return &r->req;
}

static void submit_popped(struct vq *vq)
{
	struct mir_request *req = take_popped_request(vq);

	if (req && !mir_submit(vq->m, req))
		rule_broken(NULL);
}

/* ---- what the main process says ---- */

/* `fds` has two, -1 where none came. False: there is no message yet. */
static bool read_message(struct vq *vq, struct mirror_message *m, int fds[2], int flags)
{
	char control[CMSG_SPACE(2 * sizeof(int))];
	struct iovec iov = {.iov_base = m, .iov_len = sizeof(*m)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	ssize_t n = recvmsg(vq->ctl_fd, &msg, MSG_CMSG_CLOEXEC | flags);

	fds[0] = fds[1] = -1;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0)
		_exit(DEVICE_EXIT_OK);
	cmsg = CMSG_FIRSTHDR(&msg);
	if (n != sizeof(*m) || (cmsg && cmsg->cmsg_len > CMSG_LEN(2 * sizeof(int))))
		_exit(MIRROR_EXIT_SETUP);
	if (cmsg)
		memcpy(fds, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
	return true;
}

/* QEMU has given the queue another interrupt. */
static void take_call_fd(struct vq *vq, int fd)
{
	pthread_mutex_lock(&vq->lock);
	if (vq->call_fd >= 0)
		close(vq->call_fd);
	vq->call_fd = fd;
	/* A call may have gone to the old fd after QEMU stopped reading it. */
	if (fd >= 0)
		eventfd_write(fd, 1);
	pthread_mutex_unlock(&vq->lock);
}

/* Finds the queue in this process's memory. False: it is not in the VM's memory. */
static bool find_ring(struct vq *vq, const struct mirror_message *m)
{
	struct ring *r = &vq->ring;
	const struct guestmem *mem = vq->args->mem;

	if (!m->num || m->num > RING_MAX || m->session > vq->args->opt->sessions)
		return false;
	r->num = m->num;
	r->event_idx = m->event_idx;
	r->signalled_valid = false;
	r->mem = mem;
	r->state = &vq->args->states[m->session];
	r->desc = guestmem_translate(mem, m->desc, ring_desc_bytes(m->num));
	r->avail = guestmem_translate(mem, m->avail, ring_avail_bytes(m->num));
	r->used = guestmem_translate(mem, m->used, ring_used_bytes(m->num));
	return r->desc && r->avail && r->used;
}

/* The session's queue, in the first message or after the session was held. */
static void take_queue(struct vq *vq, const struct mirror_message *m, const int fds[2])
{
	bool ok;

	if (fds[0] < 0)
		_exit(MIRROR_EXIT_SETUP);
	pthread_mutex_lock(&vq->lock);
	ok = find_ring(vq, m);
	pthread_mutex_unlock(&vq->lock);
	if (!ok)
		_exit(MIRROR_EXIT_SETUP);
	if (vq->kick_fd >= 0)
		close(vq->kick_fd);
	vq->kick_fd = fds[0];
	take_call_fd(vq, fds[1]);
}

static void answer_main(struct vq *vq, const struct mirror_answer *a)
{
	if (send(vq->ctl_fd, a, sizeof(*a), MSG_NOSIGNAL) != sizeof(*a))
		_exit(DEVICE_EXIT_OK);
}

/* The thread that ends what has come ahead. */
static void *drop_came(void *arg)
{
	struct vq *vq = arg;

	mir_ahead_drop(vq->m);
	close(vq->came);
	return NULL;
}

/* 40 GiB take seconds, for which the program need not wait. */
static void drop_in_background(struct vq *vq, int ahead)
{
	pthread_t thread;

	vq->came = ahead;
	if (pthread_create(&thread, NULL, drop_came, vq))
		drop_came(vq);
	else
		pthread_detach(thread);
}

static void restore_saved(struct vq *vq, int fd, int ahead)
{
	struct mirror_answer a = {.what = MIRROR_RESTORE};

	if (ahead >= 0)
		mir_ahead_came(vq->m, ahead);
	a.ok = fd >= 0 && mir_restore(vq->m, fd, a.why, sizeof(a.why));
	close(fd);
	answer_main(vq, &a);
	if (!a.ok)
		_exit(MIRROR_EXIT_SETUP);
	if (ahead >= 0)
		drop_in_background(vq, ahead);
}

/* The thread `going`. */
static void *copy_ahead(void *arg)
{
	struct vq *vq = arg;
	struct mirror_answer a = {.what = MIRROR_AHEAD};
	struct ahead_piece piece;

	a.ok = (vq->buffer < 0 || mir_ahead_begin(vq->m, vq->buffer)) &&
	       mir_ahead_next(vq->m, &piece);
	if (a.ok) {
		a.addr = piece.addr;
		a.len = piece.len;
	} else {
		mir_ahead_end(vq->m);
	}
	if (vq->buffer >= 0)
		close(vq->buffer);
	answer_main(vq, &a);
	return NULL;
}

/* Before this the thread has answered, or it copies, which ends when the GPU has no work. */
static void join_copying(struct vq *vq)
{
	if (vq->copies)
		pthread_join(vq->going, NULL);
	vq->copies = false;
}

/* The copy may wait for the GPU, and the GPU for a command. So another thread waits. */
static void begin_copying(struct vq *vq, int buffer)
{
	atomic_store(&vq->args->states[vq->session].told, false);
	join_copying(vq);
	vq->buffer = buffer;
	vq->copies = !pthread_create(&vq->going, NULL, copy_ahead, vq);
	if (vq->copies)
		return;
	if (buffer >= 0)
		close(buffer);
	answer_main(vq, &(struct mirror_answer){.what = MIRROR_AHEAD});
}

static void save_into(struct vq *vq, const struct mirror_message *m, int fd, int sent)
{
	struct mirror_answer a = {.what = MIRROR_SAVE};

	join_copying(vq);
	mir_ahead_end(vq->m);
	if (sent >= 0)
		mir_ahead_sent(vq->m, sent);
	a.ok = fd >= 0 && mir_save(vq->m, fd, m->wait_ms, a.why, sizeof(a.why));
	close(fd);
	if (sent >= 0)
		close(sent);
	answer_main(vq, &a);
}

/*
 * Takes commands as long as the program must do something: a host function ends with a command, and
 * what it does may need some before. end: not longer. False: there was none to take.
 */
static bool take_needed(struct vq *vq, uint64_t end)
{
	bool some = false;
	const char *why;
	int rc;

	while (mir_awaits_program(vq->m) && spin_clock() < end) {
		pthread_mutex_lock(&vq->lock);
		rc = ring_pop(&vq->ring, &vq->chain, &why);
		pthread_mutex_unlock(&vq->lock);
		if (rc < 0)
			rule_broken(why);
		if (!rc)
			break;
		submit_popped(vq);
		some = true;
	}
	return some;
}

/*
 * Waits until the session stands still. If it needs the program for that, the program's commands
 * are taken, and a VM that stands is not waited for. takes: the queue is there.
 */
static void stand_still(struct vq *vq, const struct mirror_message *m, bool takes,
			struct mirror_answer *a)
{
	const uint64_t end = spin_clock() + m->wait_ms * 1000000ull;
	bool waits;

	do {
		a->ok = mir_can_save(vq->m, SLICE_MS, &a->passes, a->why, sizeof(a->why));
		waits = !a->ok && a->passes && spin_clock() < end;
		if (waits && mir_awaits_program(vq->m))
			waits = (takes && take_needed(vq, end)) || !m->vm_stands;
	} while (waits);
}

static void hold_session(struct vq *vq, const struct mirror_message *m, bool takes)
{
	struct mirror_answer a = {.what = MIRROR_HOLD};

	atomic_store(&vq->args->states[vq->session].told, false);
	mir_bring_back(vq->m, m->wait_ms);
	stand_still(vq, m, takes, &a);
	answer_main(vq, &a);
}

/* The program waits meanwhile. held: it does so already. */
static void look_again(struct vq *vq, const struct mirror_message *m, const int fds[2], bool held)
{
	struct mirror_answer a = {.what = MIRROR_AHEAD, .ok = true};
	const unsigned int ms = held ? AGAIN_HELD_MS : AGAIN_MS;
	unsigned int i;

	atomic_store(&vq->args->states[vq->session].told, false);
	join_copying(vq);
	if (!held)
		stand_still(vq, m, true, &a);
	a.ok = a.ok && fds[1] >= 0 &&
	       mir_ahead_again(vq->m, fds[0], fds[1], m->bytes, spin_clock() + ms * 1000000ull,
			       &a.addr);
	if (!held)
		mir_ahead_forget(vq->m);
	for (i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	answer_main(vq, &a);
}

/* Takes no commands until the main process gives it the queue, perhaps for the first time. */
static void be_held(struct vq *vq)
{
	struct mirror_message m;
	int fds[2];

	for (;;) {
		if (!read_message(vq, &m, fds, 0))
			continue;
		switch (m.what) {
		case MIRROR_BEGIN:
			mir_ahead_forget(vq->m);
			take_queue(vq, &m, fds);
			vq->rests_until = m.wait_ms ? spin_clock() + m.wait_ms * 1000000ull : 0;
			return;
		case MIRROR_CALL:
			take_call_fd(vq, fds[0]);
			break;
		case MIRROR_HOLD:
			hold_session(vq, &m, false);
			break;
		case MIRROR_SAVE:
			save_into(vq, &m, fds[0], fds[1]);
			break;
		case MIRROR_AHEAD:
			begin_copying(vq, fds[0]);
			break;
		case MIRROR_AGAIN:
			look_again(vq, &m, fds, true);
			break;
		default:
			_exit(MIRROR_EXIT_SETUP);
		}
	}
}

static void obey(struct vq *vq)
{
	struct mirror_message m;
	int fds[2];

	if (!read_message(vq, &m, fds, MSG_DONTWAIT))
		return;
	switch (m.what) {
	case MIRROR_CALL:
		take_call_fd(vq, fds[0]);
		return;
	case MIRROR_AHEAD:
		begin_copying(vq, fds[0]);
		return;
	case MIRROR_AGAIN:
		look_again(vq, &m, fds, false);
		return;
	case MIRROR_HOLD:
		hold_session(vq, &m, true);
		be_held(vq);
		return;
	}
	_exit(MIRROR_EXIT_SETUP);
}

/* After it was held: takes only what host functions need, for as long as BEGIN has said. */
static void rest_after_hold(struct vq *vq)
{
	struct pollfd p = {.fd = vq->ctl_fd, .events = POLLIN};

	while (spin_clock() < vq->rests_until) {
		take_needed(vq, vq->rests_until);
		if (poll(&p, 1, SLICE_MS) > 0)
			obey(vq);
	}
}

/* ---- the queue ---- */

static void wait_for_work(struct vq *vq)
{
	struct pollfd fds[2] = {
		{.fd = vq->kick_fd, .events = POLLIN},
		{.fd = vq->ctl_fd, .events = POLLIN},
	};
	eventfd_t kicks;

	if (poll(fds, 2, -1) < 0)
		return;
	if (fds[0].revents && eventfd_read(vq->kick_fd, &kicks) && errno != EAGAIN)
		_exit(MIRROR_EXIT_SETUP);
	if (fds[1].revents) {
		obey(vq);
		rest_after_hold(vq);
	}
}

/* Polls for work for a moment. Meanwhile the guest need not notify us. */
static void look_for_work(struct vq *vq, uint64_t since)
{
	while (!ring_has_work(&vq->ring) && spin_more(since, vq->spin.now_ns))
		spin_pause();
}

/*
 * In a session that has been restored: takes again what the mirror before had taken and not
 * answered. That is the request that waits for the next host function. What it says about the one
 * before has been heard.
 */
static void retake_requests(struct vq *vq)
{
	struct mir_request *req;
	const char *why;
	unsigned int head;
	int rc;

	for (head = 0; head < vq->ring.num; head++) {
		if (!atomic_load(&vq->ring.state->inflight[head]))
			continue;
		pthread_mutex_lock(&vq->lock);
		rc = ring_retake(&vq->ring, (uint16_t)head, &vq->chain, &why);
		pthread_mutex_unlock(&vq->lock);
		if (rc < 0)
			rule_broken(why);
		req = take_popped_request(vq);
		if (req && req->cmd.op != QCU_OP_HOST_NEXT)
			rule_broken("a command that was not finished when its session was saved");
		if (req)
			req->cmd.host_next.done = 0;
		if (req && !mir_submit(vq->m, req))
			rule_broken(NULL);
	}
}

static void __attribute__((noreturn)) serve_queue(struct vq *vq)
{
	uint64_t since = 0; /* when the queue was found empty; 0: it is not empty */

	for (;;) {
		const char *why;
		bool idle;
		int rc;

		if (atomic_load_explicit(&vq->ring.state->told, memory_order_relaxed)) {
			obey(vq);
			rest_after_hold(vq);
		}
		pthread_mutex_lock(&vq->lock);
		ring_kicks_off(&vq->ring);
		rc = ring_pop(&vq->ring, &vq->chain, &why);
		idle = !rc && since && ring_kicks_on(&vq->ring);
		pthread_mutex_unlock(&vq->lock);
		if (rc < 0)
			rule_broken(why);
		if (rc) {
			if (since)
				spin_came(&vq->spin, spin_clock() - since);
			since = 0;
			submit_popped(vq);
		} else if (!since) {
			since = spin_clock();
			look_for_work(vq, since);
		} else if (idle) {
			wait_for_work(vq);
		}
	}
}

/* From now on it is noted which pages the session names. */
static void begin_to_note(struct vq *vq)
{
	const struct mirror_args *args = vq->args;

	if (args->named < 0)
		return;
	args->mem->named = named_map(args->named, vq->session);
	if (!args->mem->named)
		_exit(MIRROR_EXIT_SETUP);
	close(args->named);
}

/*
 * A spare may get memory of its session before the session. Then it lives when the VM's memory is
 * laid out anew.
 */
static void take_early(struct vq *vq, const struct mirror_message *m, int fd)
{
	struct guestmem *mem = vq->args->mem;

	if (m->what == MIRROR_COMES && vq->args->warm)
		mir_ahead_comes(vq->m, fd, m->bytes);
	if (m->what == MIRROR_REGION && m->first)
		guestmem_unmap(mem);
	if (m->what == MIRROR_REGION && guestmem_map(mem, m->gpa, m->bytes, m->offset, fd))
		_exit(MIRROR_EXIT_SETUP);
	close(fd);
}

/*
 * Waits for the session. If the socket is closed first, there is nothing to do, and the process
 * exits. saved: the file with a saved session, or -1: it is a new session, and the queue is there;
 * and one with what has come ahead, or -1.
 */
static void take_session(struct vq *vq, int saved[2])
{
	struct mirror_message m;
	int fds[2];
	char name[16];

	while (!read_message(vq, &m, fds, 0) || m.what == MIRROR_COMES || m.what == MIRROR_REGION)
		if (fds[0] >= 0)
			take_early(vq, &m, fds[0]);
	if (!m.session || m.session > vq->args->opt->sessions ||
	    (m.what != MIRROR_BEGIN && (m.what != MIRROR_RESTORE || fds[0] < 0)))
		_exit(MIRROR_EXIT_SETUP);
	vq->session = m.session;
	vq->guest_pid = m.guest_pid;
	complain_context(m.session, m.guest_pid);
	begin_to_note(vq);
	if (m.what == MIRROR_BEGIN)
		take_queue(vq, &m, fds);
	vq->args->states[m.session].begun = true;
	snprintf(name, sizeof(name), "qcu-mirror %u", m.session);
	prctl(PR_SET_NAME, name);
	saved[0] = m.what == MIRROR_RESTORE ? fds[0] : -1;
	saved[1] = m.what == MIRROR_RESTORE ? fds[1] : -1;
}

void mirror_vq_run(const struct mirror_args *args)
{
	static struct vq vq = {.kick_fd = -1, .call_fd = -1};
	struct mir_config cfg = {
		.ops = args->ops,
		.options = args->opt->be,
		.mem = args->mem,
		.map = args->opt->map,
		.pin_limit = args->opt->pin_limit,
		.copiers = carriers_fit(args->opt->copiers),
		.trace = args->opt->trace,
		.shares = args->shares,
		.limits = &args->opt->limits,
		.refused_libraries = args->opt->refused_libraries,
		.sensors = args->opt->sensors,
		.usage = args->usage,
		.turns = args->turns,
		.timed_out = timed_out,
		.timed_out_ctx = &vq,
		.poll_us = args->opt->poll_us,
		.store_file = args->store,
	};
	int saved[2] = {-1, -1};

	cfg.options.capture_stdout = true;
	if (!complain_keep_stderr())
		_exit(MIRROR_EXIT_SETUP);
	prctl(PR_SET_NAME, "qcu-warming");
	/* A pipe that nobody reads any more is an error when the session is saved. */
	signal(SIGPIPE, SIG_IGN);
	vq.args = args;
	vq.ctl_fd = args->ctl_fd;
	pthread_mutex_init(&vq.lock, NULL);
	spin_init(&vq.spin, args->opt->poll_us);

	if (!args->warm)
		take_session(&vq, saved);
	cfg.session = vq.session;
	cfg.guest_pid = vq.guest_pid;
	if (mir_create(&vq.m, &cfg))
		_exit(MIRROR_EXIT_SETUP);
	if (args->warm) {
		mir_warm(vq.m);
		prctl(PR_SET_NAME, "qcu-spare");
		take_session(&vq, saved);
		mir_begin(vq.m, vq.session, vq.guest_pid);
	}
	if (saved[0] >= 0) {
		restore_saved(&vq, saved[0], saved[1]);
		be_held(&vq);
		retake_requests(&vq);
	}
	serve_queue(&vq);
}

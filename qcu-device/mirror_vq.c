// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The mirror process: it works its session's virtqueue itself, so that no other process is on the
 * path of a command. The main process comes back into play only when this one has died; all that
 * it needs then lies in the ring's shared state.
 */
#define _GNU_SOURCE /* close_range */
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

#include "qcu-device/carriers.h"
#include "qcu-device/complain.h"
#include "qcu-device/device.h"
#include "qcu-device/spin.h"

#define REPLY_PIECES 4 /* a reply of 64 bytes may be split, but not into crumbs */

struct vq {
	struct ring ring;
	pthread_mutex_t lock; /* the ring, and call_fd */
	struct mirror *m;
	unsigned int session;
	int kick_fd, call_fd, ctl_fd;
	struct ring_chain chain; /* the one being taken */
	struct spin spin;
};

struct vq_request {
	struct mir_request req;
	struct vq *vq;
	uint16_t head;
	unsigned int in_num;
	struct iovec in[REPLY_PIECES];
	_Alignas(16) uint8_t tail[];
};

/* Ends the session; what is outstanding is returned by the main process. */
static void __attribute__((noreturn)) rule_broken(struct vq *vq, const char *why)
{
	if (why)
		complain("session %u: the guest sent %s", vq->session, why);
	_exit(MIRROR_EXIT_RULE);
}

static void done(struct mir_request *req)
{
	struct vq_request *r = (struct vq_request *)req;
	struct vq *vq = r->vq;

	if (req->cmd.status == MIR_RULE_BROKEN)
		rule_broken(vq, NULL);
	ring_copy_in(r->in, r->in_num, &req->cmd, sizeof(req->cmd));
	pthread_mutex_lock(&vq->lock);
	ring_push(&vq->ring, r->head, sizeof(req->cmd));
	if (ring_wants_call(&vq->ring))
		eventfd_write(vq->call_fd, 1);
	pthread_mutex_unlock(&vq->lock);
	free(r);
}

/* Copies a chain out of guest memory, once. */
static struct vq_request *copy_chain(struct vq *vq, const char **why)
{
	const struct ring_chain *c = &vq->chain;
	size_t tail = c->out_len - sizeof(struct qCUcmd);
	struct vq_request *r;

	if (c->out_len < sizeof(struct qCUcmd)) {
		*why = "a chain without a whole record";
		return NULL;
	}
	if (c->in_len != sizeof(struct qCUcmd) || c->in_num > REPLY_PIECES) {
		*why = "a chain without room for exactly one reply";
		return NULL;
	}
	if (tail > QCU_MSG_MAX && tail > QCU_SEGS_MAX * sizeof(struct qcu_seg)) {
		*why = "a chain that is too long";
		return NULL;
	}
	r = malloc(sizeof(*r) + tail);
	if (!r) {
		*why = "more than there is memory for";
		return NULL;
	}
	memset(r, 0, sizeof(*r));
	r->vq = vq;
	r->head = c->head;
	r->in_num = c->in_num;
	memcpy(r->in, c->iov + c->out_num, c->in_num * sizeof(r->in[0]));
	r->req.done = done;
	ring_copy_out(c->iov, c->out_num, 0, &r->req.cmd, sizeof(r->req.cmd));
	ring_copy_out(c->iov, c->out_num, sizeof(r->req.cmd), r->tail, tail);
	return r;
}

/* The tail is exactly what the flags say. */
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

static void take(struct vq *vq)
{
	const char *why = NULL;
	struct vq_request *r = copy_chain(vq, &why);

	if (r)
		why = read_tail(r, vq->chain.out_len - sizeof(r->req.cmd));
	if (why)
		rule_broken(vq, why);
	if (!mir_submit(vq->m, &r->req))
		rule_broken(vq, NULL);
}

/* QEMU has given the queue another interrupt. */
static void new_call_fd(struct vq *vq)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	ssize_t n = recvmsg(vq->ctl_fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	int fd = -1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		_exit(DEVICE_EXIT_OK);
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	pthread_mutex_lock(&vq->lock);
	if (vq->call_fd >= 0)
		close(vq->call_fd);
	vq->call_fd = fd;
	/* A call may have gone to the old one after QEMU stopped looking there. */
	if (fd >= 0)
		eventfd_write(fd, 1);
	pthread_mutex_unlock(&vq->lock);
}

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
	if (fds[1].revents)
		new_call_fd(vq);
}

/* Looks for work for a moment, unasked: meanwhile the guest need not notify us. */
static void look_for_work(struct vq *vq, uint64_t since)
{
	while (!ring_has_work(&vq->ring)) {
		if (spin_clock() - since >= vq->spin.now_ns)
			return;
		spin_pause();
	}
}

static void __attribute__((noreturn)) serve(struct vq *vq)
{
	uint64_t since = 0; /* when the queue was found empty; 0: it is not */

	for (;;) {
		const char *why;
		bool idle;
		int rc;

		pthread_mutex_lock(&vq->lock);
		ring_kicks_off(&vq->ring);
		rc = ring_pop(&vq->ring, &vq->chain, &why);
		idle = !rc && since && ring_kicks_on(&vq->ring);
		pthread_mutex_unlock(&vq->lock);
		if (rc < 0)
			rule_broken(vq, why);
		if (rc) {
			if (since)
				spin_came(&vq->spin, spin_clock() - since);
			since = 0;
			take(vq);
		} else if (!since) {
			since = spin_clock();
			look_for_work(vq, since);
		} else if (idle) {
			wait_for_work(vq);
		}
	}
}

/* Keeps stdio and the way to the main process; everything else is that one's. */
static void close_others(int keep)
{
	if (keep > 3)
		close_range(3, keep - 1, 0);
	close_range(keep + 1, ~0u, 0);
}

/* Waits for the session; without one there is nothing to do. */
static void take_session(struct vq *vq)
{
	struct mirror_job job;
	int fds[2] = {-1, -1};
	char control[CMSG_SPACE(sizeof(fds))], name[16];
	struct iovec iov = {.iov_base = &job, .iov_len = sizeof(job)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	ssize_t n;

	do {
		n = recvmsg(vq->ctl_fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		_exit(DEVICE_EXIT_OK);
	cmsg = CMSG_FIRSTHDR(&msg);
	if (n != sizeof(job) || !cmsg ||
	    cmsg->cmsg_len != CMSG_LEN((1 + job.has_call) * sizeof(int)))
		_exit(MIRROR_EXIT_SETUP);
	memcpy(fds, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
	vq->kick_fd = fds[0];
	vq->call_fd = fds[1];
	vq->session = job.session;
	vq->ring = job.ring;
	vq->ring.state->begun = true;
	snprintf(name, sizeof(name), "qcu-mirror %u", job.session);
	prctl(PR_SET_NAME, name);
}

void mirror_vq_run(const struct mirror_args *args)
{
	static struct vq vq;
	struct mir_config cfg = {
		.options = args->opt->be,
		.mem = args->mem,
		.map = args->opt->map,
		.pin_limit = args->opt->pin_limit,
		.pin_ram = args->opt->pin_ram,
		.copiers = carriers_fit(args->opt->copiers),
		.trace = args->opt->trace,
		.shares = args->shares,
		.poll_us = args->opt->poll_us,
	};

	cfg.options.capture_stdout = true;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != args->parent)
		_exit(DEVICE_EXIT_OK);
	prctl(PR_SET_NAME, "qcu-warming");
	vq.ctl_fd = args->ctl_fd;
	pthread_mutex_init(&vq.lock, NULL);
	spin_init(&vq.spin, args->opt->poll_us);
	close_others(vq.ctl_fd);

	if (!args->warm)
		take_session(&vq);
	cfg.session = vq.session;
	cfg.ops = args->opt->plugin ? plugin_load() : &be_soft;
	if (!cfg.ops || mir_create(&vq.m, &cfg))
		_exit(MIRROR_EXIT_SETUP);
	if (args->warm) {
		mir_warm(vq.m);
		prctl(PR_SET_NAME, "qcu-spare");
		take_session(&vq);
		mir_begin(vq.m, vq.session);
	}
	serve(&vq);
}

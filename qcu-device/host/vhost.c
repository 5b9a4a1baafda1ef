// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The connection to QEMU. libvhost-user implements the protocol (memory, queues, config space).
 * This file runs its poll loop, and keeps our own view of memory and queues in step with it.
 * ring.c works the rings, and not the library, because a mirror must be able to die in the middle.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/front/front.h"
#include "qcu-device/host/metrics.h"
#include "qcu-device/host/take_over.h"
#include "qcu-device/host/vhost.h"
#include "qcu-device/memory/named.h"
#include "qcu-device/memory/store_pool.h"

/* The header that defines these does not come with the library. */
#define VIRTIO_F_VERSION_1_BIT	    32
#define VIRTIO_F_ORDER_PLATFORM_BIT 36

/* What the library does not know. */
#define PROTOCOL_F_DEVICE_STATE 19
#define MSG_SET_DEVICE_STATE_FD 42
#define MSG_CHECK_DEVICE_STATE	43

/* ---- our view of memory and queues ---- */

static struct device *device_of(VuDev *vu)
{
	return (struct device *)((char *)vu - offsetof(struct device, vu));
}

static void read_memory(struct device *d)
{
	unsigned int i;
	int rc;

	d->mem.count = 0;
	for (i = 0; i < d->vu.nregions; i++) {
		const VuDevRegion *r = &d->vu.regions[i];

		rc = guestmem_add(&d->mem, r->gpa, r->size,
				  (void *)(uintptr_t)(r->mmap_addr + r->mmap_offset));
		if (rc)
			complain("memory at 0x%llx, 0x%llx bytes, is not usable: %s",
				 (unsigned long long)r->gpa, (unsigned long long)r->size,
				 strerror(-rc));
	}
}

/* QEMU gives the parts of a queue by its own addresses. Each part must lie in one region. */
static void *from_qemu(struct device *d, uint64_t addr, size_t len, uint64_t *gpa)
{
	unsigned int i;

	for (i = 0; i < d->vu.nregions; i++) {
		const VuDevRegion *r = &d->vu.regions[i];
		uint64_t off = addr - r->qva;

		if (addr < r->qva || off >= r->size || len > r->size - off)
			continue;
		*gpa = r->gpa + off;
		return (void *)(uintptr_t)(r->mmap_addr + r->mmap_offset + off);
	}
	return NULL;
}

/* Finds where the queue lies now. The queue's state goes on. */
static void bind_ring(struct device *d, unsigned int queue)
{
	const VuVirtq *vq = &d->vu.vq[queue];
	struct ring *r = &d->ring[queue];
	struct ring_address *at = &d->ring_at[queue];
	unsigned int num = vq->vring.num;

	r->num = 0;
	r->mem = &d->mem;
	r->state = &d->states[queue];
	r->event_idx = d->vu.features >> VIRTIO_RING_F_EVENT_IDX & 1;
	if (!vq->started)
		return;
	if (!num || num > RING_MAX || num & (num - 1)) {
		complain("queue %u has a size that it cannot have: %u", queue, num);
		return;
	}
	r->desc = from_qemu(d, vq->vra.desc_user_addr, ring_desc_bytes(num), &at->desc);
	r->avail = from_qemu(d, vq->vra.avail_user_addr, ring_avail_bytes(num), &at->avail);
	r->used = from_qemu(d, vq->vra.used_user_addr, ring_used_bytes(num), &at->used);
	if (r->desc && r->avail && r->used)
		r->num = num;
	else
		complain("queue %u does not lie in the VM's memory", queue);
}

static void memory_changed(struct device *d)
{
	unsigned int q;

	read_memory(d);
	for (q = 0; q <= d->opt->sessions; q++)
		bind_ring(d, q);
}

/* ---- what libvhost-user asks ---- */

static void queue_set_started(VuDev *vu, int queue, bool started)
{
	struct device *d = device_of(vu);
	struct ring *r = &d->ring[queue];

	bind_ring(d, queue);
	if (!started)
		return;
	transfer_starts(d);
	if (queue && d->session[queue].held) {
		sessions_queue_starts(d, queue);
		return;
	}
	if (r->num)
		ring_start(r, vu->vq[queue].last_avail_idx);
	if (queue == 0 && vu->vq[0].kick_fd >= 0) {
		device_watch(d, vu->vq[0].kick_fd, sessions_control, 0);
		/* In a VM that has been saved or moved, a kick may have come to nobody. */
		eventfd_write(vu->vq[0].kick_fd, 1);
	}
}

/* Called before a queue stops or gets another kick fd: no chain of it may be outstanding. */
static void stop_queue(struct device *d, unsigned int queue)
{
	VuVirtq *vq;

	if (queue > d->opt->sessions)
		return;
	vq = &d->vu.vq[queue];
	sessions_queue_stops(d, queue);
	transfer_mark_written(d);
	if (d->ring[queue].num)
		vq->last_avail_idx = vq->shadow_avail_idx = (uint16_t)d->ring[queue].state->popped;
}

/* Why a message ends the connection before the library sees it; NULL: it does not. */
static const char *reason_to_refuse(struct device *d, const VhostUserMsg *vmsg)
{
	uint64_t gpa;

	/* The library reads the index of the used ring. */
	if (vmsg->request == VHOST_USER_SET_VRING_ADDR &&
	    !from_qemu(d, vmsg->payload.addr.used_user_addr, 2 * sizeof(uint16_t), &gpa))
		return "a queue does not lie in the VM's memory";
	return front_refuses(vmsg);
}

static bool end_if_refused(struct device *d, VhostUserMsg *vmsg)
{
	const char *why = reason_to_refuse(d, vmsg);

	if (!why)
		return false;
	fprintf(stderr, "qcu-device: vhost-user: message %u is refused: %s\n", vmsg->request, why);
	while (vmsg->fd_num)
		close(vmsg->fds[--vmsg->fd_num]);
	d->over = d->failed = true;
	return true;
}

/* Returns 1 if the library need not do anything more about the message. */
static int process_msg(VuDev *vu, VhostUserMsg *vmsg, int *do_reply)
{
	struct device *d = device_of(vu);
	int rc;

	/* Memory that no file backs is not even announced. */
	if (vmsg->request == VHOST_USER_SET_VRING_ADDR && !d->ram.count)
		complain("the VM's memory is not shared with this process: QEMU needs "
			 "-object memory-backend-memfd,id=ram,size=SIZE,share=on "
			 "and -machine memory-backend=ram");
	if (end_if_refused(d, vmsg))
		return 1;
	transfer_message(d, vmsg->request);
	switch (vmsg->request) {
	case VHOST_USER_NONE: /* read_msg() has seen the end of the connection */
		return 1;
	case VHOST_USER_GET_FEATURES:
		/*
		 * VIRTIO_F_ORDER_PLATFORM: we are not a CPU of the guest. The guest's barriers
		 * between its CPUs are locked instructions. While QEMU emulates all CPUs in one
		 * thread, it turns locked instructions into plain accesses. What the guest has
		 * stored could then come here after the guest has looked whether we have moved, and
		 * both sides would sleep.
		 */
		vmsg->payload.u64 =
			1ull << VIRTIO_F_VERSION_1_BIT | 1ull << VIRTIO_F_ORDER_PLATFORM_BIT |
			1ull << VIRTIO_RING_F_INDIRECT_DESC | 1ull << VIRTIO_RING_F_EVENT_IDX |
			1ull << VHOST_F_LOG_ALL | 1ull << VHOST_USER_F_PROTOCOL_FEATURES;
		vmsg->size = sizeof(vmsg->payload.u64);
		vmsg->fd_num = 0;
		*do_reply = 1;
		return 1;
	case VHOST_USER_GET_PROTOCOL_FEATURES:
		vmsg->payload.u64 =
			1ull << VHOST_USER_PROTOCOL_F_MQ | 1ull << VHOST_USER_PROTOCOL_F_REPLY_ACK |
			1ull << VHOST_USER_PROTOCOL_F_CONFIG |
			1ull << VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS |
			1ull << VHOST_USER_PROTOCOL_F_LOG_SHMFD | 1ull << PROTOCOL_F_DEVICE_STATE;
		vmsg->size = sizeof(vmsg->payload.u64);
		vmsg->fd_num = 0;
		*do_reply = 1;
		return 1;
	case VHOST_USER_SET_MEM_TABLE:
	case VHOST_USER_ADD_MEM_REG:
	case VHOST_USER_REM_MEM_REG:
		transfer_memory_changes(d);
		sessions_end_all(d, "ended, because the VM's memory layout changes");
		spares_memory_changes(d);
		d->mem_changed = true;
		rc = ramfiles_note(&d->ram, vmsg);
		if (rc)
			complain("the VM's memory is not usable: %s", strerror(-rc));
		return 0;
	case VHOST_USER_SET_VRING_CALL:
		sessions_new_call_fd(d, vmsg->payload.u64 & VHOST_USER_VRING_IDX_MASK,
				     vmsg->fd_num == 1 ? vmsg->fds[0] : -1);
		return 0;
	case VHOST_USER_GET_VRING_BASE:
		stop_queue(d, vmsg->payload.state.index);
		return 0;
	case VHOST_USER_SET_VRING_KICK:
		stop_queue(d, vmsg->payload.u64 & VHOST_USER_VRING_IDX_MASK);
		return 0;
	case VHOST_USER_SET_LOG_BASE:
		/* What has been written without a log may have been copied already. */
		d->wrote = device_logs(d) || sessions_open(d, NULL);
		return 0;
	case MSG_SET_DEVICE_STATE_FD:
		transfer_state(d, vmsg, do_reply);
		return 1;
	case MSG_CHECK_DEVICE_STATE:
		transfer_check(d, vmsg, do_reply);
		return 1;
	}
	return 0;
}

static int get_config(VuDev *vu, uint8_t *config, uint32_t len)
{
	const struct qcu_config c = {
		.magic = QCU_CONFIG_MAGIC,
		.version = QCU_WIRE_VERSION,
		.sessions = device_of(vu)->opt->sessions,
		.window_base = QCU_WINDOW_BASE,
		.window_size = QCU_WINDOW_SIZE,
	};

	if (len > VHOST_USER_MAX_CONFIG_SIZE)
		return -1;
	memset(config, 0, len);
	memcpy(config, &c, len < sizeof(c) ? len : sizeof(c));
	if (len > sizeof(c))
		transfer_reason(device_of(vu), (char *)config + sizeof(c), len - sizeof(c));
	return 0;
}

/* The guest cannot write there. That QEMU asks at all is no reason to end the connection. */
static int set_config(VuDev *vu, const uint8_t *data, uint32_t offset, uint32_t size,
		      uint32_t flags)
{
	(void)vu;
	(void)data;
	(void)flags;
	complain("a write to the config space (%u bytes at %u) is ignored", size, offset);
	return 0;
}

static const VuDevIface iface = {
	.process_msg = process_msg,
	.queue_set_started = queue_set_started,
	.get_config = get_config,
	.set_config = set_config,
};

static void vu_panicked(VuDev *vu, const char *text)
{
	struct device *d = device_of(vu);

	fprintf(stderr, "qcu-device: vhost-user: %s\n", text ? text : "no memory");
	d->over = d->failed = true;
}

/* The library sets watches for kicks that it handles itself. We have none of those. */
static void set_watch(VuDev *vu, int fd, int condition, vu_watch_cb cb, void *data)
{
	(void)condition;
	(void)cb;
	(void)data;
	device_unwatch(device_of(vu), fd);
}

static void remove_watch(VuDev *vu, int fd)
{
	device_unwatch(device_of(vu), fd);
}

/* Reads exactly `len` bytes. False: the other side has gone. */
static bool read_exactly(int fd, void *buf, size_t len)
{
	char *to = buf;

	while (len) {
		ssize_t n = read(fd, to, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		len -= n;
	}
	return true;
}

/*
 * The library's own reader takes a short read for a bug, and the end of the connection for a
 * message that makes it exit. When QEMU is killed, it is neither.
 */
static bool read_msg(VuDev *vu, int sock, VhostUserMsg *vmsg)
{
	struct device *d = device_of(vu);
	char control[CMSG_SPACE(VHOST_MEMORY_BASELINE_NREGIONS * sizeof(int))];
	struct iovec iov = {.iov_base = vmsg, .iov_len = VHOST_USER_HDR_SIZE};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	ssize_t n;
	int i;

	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno != ECONNRESET) {
		fprintf(stderr, "qcu-device: vhost-user: %s\n", strerror(errno));
		d->failed = true;
	}
	vmsg->fd_num = 0;
	for (cmsg = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL; cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		vmsg->fd_num = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(vmsg->fds, CMSG_DATA(cmsg), vmsg->fd_num * sizeof(int));
		break;
	}
	if (n > 0 && (size_t)n < VHOST_USER_HDR_SIZE &&
	    !read_exactly(sock, (char *)vmsg + n, VHOST_USER_HDR_SIZE - n))
		n = 0;
	if (n > 0 && vmsg->size > sizeof(vmsg->payload)) {
		fprintf(stderr, "qcu-device: vhost-user: a message of %u bytes\n", vmsg->size);
		d->failed = true;
		n = 0;
	}
	if (n > 0 && !read_exactly(sock, (char *)vmsg + VHOST_USER_HDR_SIZE, vmsg->size))
		n = 0;
	if (n > 0)
		return true;
	for (i = 0; i < vmsg->fd_num; i++)
		close(vmsg->fds[i]);
	vmsg->fd_num = 0;
	d->over = true;
	return false;
}

/* ---- the loop ---- */

static void take_message(struct device *d)
{
	if (!vu_dispatch(&d->vu))
		d->over = true;
	transfer_write(d);
	if (!d->over && d->mem_changed) {
		d->mem_changed = false;
		memory_changed(d);
	}
}

static void socket_ready(struct device *d, unsigned int queue)
{
	(void)queue;
	take_message(d);
}

static int signals = -1;

/*
 * SIGUSR2: another qcu-device is to serve the VM. QEMU connects to it when this one has ended, and
 * the guest's driver sets the device up anew, which no session survives. take_over.c does without
 * that.
 */
static bool makes_room(struct device *d)
{
	unsigned int q;

	if (!sessions_open(d, &q))
		return true;
	fprintf(stderr,
		"qcu-device: SIGUSR2: %s (pid %u in the VM) uses CUDA; this one goes on, and "
		"--take-over hands programs over\n",
		d->session[q].comm, d->session[q].guest_pid);
	return false;
}

static void signalled(struct device *d, unsigned int queue)
{
	struct signalfd_siginfo info;

	(void)queue;
	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR1) {
		status_print(d);
		return;
	}
	if (info.ssi_signo == SIGUSR2 && !makes_room(d))
		return;
	if (d->opt->verbose)
		fprintf(stderr, "qcu-device: %s, ending\n", strsignal(info.ssi_signo));
	d->over = true;
}

/* Mirrors do not get the board's file. */
static bool make_board(struct device *d)
{
	int fd = memfd_create("qcu-board", MFD_CLOEXEC);

	d->board = fd < 0 ? NULL : board_new(fd);
	d->shared.board = fd;
	return d->board;
}

/* There is a VM. */
static void show_board(struct device *d)
{
	metrics_show(d->shared.usage, d->shared.board);
	close(d->shared.board);
	d->shared.board = -1;
}

/* Makes the memory that all processes of the VM share, and the files that it lies in. */
static bool make_shared(struct device *d)
{
	d->shared.states = memfd_create("qcu-states", MFD_CLOEXEC);
	d->shared.shares = memfd_create("qcu-shares", MFD_CLOEXEC);
	d->shared.usage = memfd_create("qcu-usage", MFD_CLOEXEC);
	d->shared.account = memfd_create("qcu-account", MFD_CLOEXEC);
	d->states = ring_states_map(d->shared.states, d->opt->sessions + 1);
	/* Without it, all of the VM's memory counts as named. */
	d->shared.named = named_file(d->opt->sessions + 1);
	d->mem.named = d->shared.named < 0 ? NULL : named_map(d->shared.named, 0);
	if (!d->states) {
		fprintf(stderr, "qcu-device: no memory to share with mirrors: %s\n",
			strerror(errno));
		return false;
	}
	/* Without it, mirrors report that they cannot share. */
	d->shares = shares_new(d->shared.shares);
	/* It must be a file: no mirror starts without it. */
	d->usage = d->shared.usage < 0 ? NULL : usage_new(d->shared.usage);
	if (!d->usage || !make_board(d)) {
		fprintf(stderr, "qcu-device: no memory to share with mirrors: %s\n",
			strerror(errno));
		return false;
	}
	if (d->opt->keeper.on && !turns_map(&d->turns, d->opt->keeper.gpus, d->opt->keeper.orders,
					    d->opt->keeper.reports, d->opt->keeper.bell)) {
		fprintf(stderr, "qcu-device: no memory to share with the GPU's broker: %s\n",
			strerror(errno));
		return false;
	}
	if (d->opt->verbose)
		complain_always();
	else if (!complain_share(d->shared.account))
		fprintf(stderr, "qcu-device: each mirror has a limit of its own for messages\n");
	return true;
}

static void free_shared(struct device *d)
{
	board_free(d->board);
	usage_free(d->usage);
	shares_free(d->shares);
	ring_states_unmap(d->states, d->opt->sessions + 1);
	close(d->shared.states);
	close(d->shared.shares);
	close(d->shared.usage);
	close(d->shared.account);
	named_unmap(d->mem.named);
	if (d->shared.named >= 0)
		close(d->shared.named);
	if (d->shared.board >= 0)
		close(d->shared.board);
}

int vhost_serve(int sock, const struct device_options *opt, struct take_over *t)
{
	struct device *d = calloc(1, sizeof(*d));
	sigset_t ends;
	int rc = DEVICE_EXIT_FAILURE;

	device_watch_nothing();
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGUSR1);
	sigaddset(&ends, SIGUSR2);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	if (!d || signals < 0) {
		fprintf(stderr, "qcu-device: cannot start: %s\n", strerror(errno));
		goto out;
	}
	d->opt = opt;
	d->loading = d->saving = d->coming = -1;
	d->ahead.fd = -1;
	d->listener = d->peer = d->shared.board = -1;
	passes_init(&d->passes);
	d->passes.is_private = store_pool_has;
	if (!make_shared(d))
		goto out_shared;
	if (!vu_init(&d->vu, opt->sessions + 1, sock, vu_panicked, read_msg, set_watch,
		     remove_watch, &iface)) {
		fprintf(stderr, "qcu-device: libvhost-user does not start\n");
		goto out_shared;
	}
	if (t && t->taking && !take_over_vm(d, t, take_message))
		goto out_vu;
	show_board(d);
	device_watch(d, d->vu.sock, socket_ready, 0);
	take_over_listen(d, t ? t->listener : -1);
	device_watch(d, signals, signalled, 0);
	memwatch_begin(d);
	while (!d->over) {
		device_poll(d, ahead_wait_ms(d));
		ahead_look(d);
		spares_fill(d);
		memwatch_ask(d);
	}
	sessions_end_all(d, "ended, because QEMU is gone");
	spares_end(d);
	transfer_end(d);
	take_over_end(d);
	rc = d->failed ? DEVICE_EXIT_FAILURE : DEVICE_EXIT_OK;
out_vu:
	vu_deinit(&d->vu);
	ramfiles_close(&d->ram);
out_shared:
	free_shared(d);
out:
	if (signals >= 0)
		close(signals);
	free(d);
	return rc;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Both sides of a VM's move from one qcu-device to the next. See take_over.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/base/send_files.h"
#include "qcu-device/host/take_over.h"
#include "qcu-device/host/vhost.h"
#include "qcu-device/moving/handover.h"
#include "qcu-device/moving/service.h"

/* How long work of the programs may take to end. */
#define HOLD_MS 5000

/* The files of HANDOVER_VM, and of a GREETING without a VM. */
enum { FILE_QEMU, FILE_LISTENER, FILE_SESSIONS };

/*
 * First nothing more can be heard: the new one cannot say any more that it has everything, and then
 * take the end of the connection for the old one's death. If it had said so before, it has read all
 * that was sent, and there is room for this word.
 */
static void say_no(int sock, const char *why)
{
	struct handover_word w;

	handover_make_no(&w, why);
	shutdown(sock, SHUT_RD);
	(void)send(sock, &w, sizeof(w), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Reads a word that has to be this one. */
static bool hear_word(int sock, enum handover_what what, unsigned int sessions,
		      struct handover_word *w, int fds[HANDOVER_FILES], char *why, size_t size)
{
	if (!handover_receive(sock, w, fds)) {
		snprintf(why, size, "the other qcu-device has gone or does not answer");
		return false;
	}
	if (handover_fits(w, what, sessions, why, size))
		return true;
	handover_close(fds);
	return false;
}

/* ---- the old one tells what QEMU has told ---- */

/* Counts, or sends. */
struct teller {
	int sock; /* -1: only count */
	unsigned int count;
	bool failed;
};

static void tell_message(struct teller *t, int request, const void *payload, uint32_t size, int fd)
{
	VhostUserMsg m = {.request = request, .flags = 1, .size = size};
	ssize_t n;

	t->count++;
	if (t->sock < 0 || t->failed)
		return;
	memcpy(&m.payload, payload, size);
	do {
		n = send_files(t->sock, &m, VHOST_USER_HDR_SIZE + size, &fd, fd >= 0, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	t->failed = n != (ssize_t)(VHOST_USER_HDR_SIZE + size);
}

static void tell_number(struct teller *t, int request, uint64_t n)
{
	tell_message(t, request, &n, sizeof(n), -1);
}

static void tell_ram(const struct device *d, struct teller *t)
{
	unsigned int i, k;

	for (i = 0; i < d->ram.count; i++) {
		const struct ramfile *f = &d->ram.file[i];
		VhostUserMemRegMsg m = {.region = {.guest_phys_addr = f->gpa,
						   .memory_size = f->size,
						   .mmap_offset = f->offset}};

		for (k = 0; k < d->vu.nregions; k++)
			if (d->vu.regions[k].gpa == f->gpa)
				m.region.userspace_addr = d->vu.regions[k].qva;
		tell_message(t, VHOST_USER_ADD_MEM_REG, &m, sizeof(m), f->fd);
	}
}

static void tell_queue_file(struct teller *t, int request, unsigned int queue, int fd)
{
	uint64_t n = queue | (fd < 0 ? VHOST_USER_VRING_NOFD_MASK : 0);

	tell_message(t, request, &n, sizeof(n), fd);
}

/* A queue that has not been started is not told of: QEMU tells everything when it starts one. */
static void tell_queue(const struct device *d, struct teller *t, unsigned int queue)
{
	const VuVirtq *vq = &d->vu.vq[queue];
	struct vhost_vring_state num = {queue, vq->vring.num}, base = {queue, vq->last_avail_idx};
	struct vhost_vring_state enable = {queue, (unsigned int)vq->enable};
	struct vhost_vring_addr at = vq->vra;

	if (vq->call_fd >= 0)
		tell_queue_file(t, VHOST_USER_SET_VRING_CALL, queue, vq->call_fd);
	if (vq->err_fd >= 0)
		tell_queue_file(t, VHOST_USER_SET_VRING_ERR, queue, vq->err_fd);
	if (!vq->started)
		return;
	if (d->ring[queue].num)
		base.num = (uint16_t)d->ring[queue].state->popped;
	at.index = queue;
	tell_message(t, VHOST_USER_SET_VRING_NUM, &num, sizeof(num), -1);
	tell_message(t, VHOST_USER_SET_VRING_BASE, &base, sizeof(base), -1);
	tell_message(t, VHOST_USER_SET_VRING_ADDR, &at, sizeof(at), -1);
	tell_queue_file(t, VHOST_USER_SET_VRING_KICK, queue, vq->kick_fd);
	tell_message(t, VHOST_USER_SET_VRING_ENABLE, &enable, sizeof(enable), -1);
}

static void tell_all(const struct device *d, struct teller *t)
{
	unsigned int q;

	tell_number(t, VHOST_USER_SET_FEATURES, d->vu.features);
	tell_number(t, VHOST_USER_SET_PROTOCOL_FEATURES, d->vu.protocol_features);
	tell_ram(d, t);
	for (q = 0; q <= d->opt->sessions; q++)
		tell_queue(d, t, q);
}

/* ---- the old one ---- */

static void forget_peer(struct device *d)
{
	if (d->peer < 0)
		return;
	device_unwatch(d, d->peer);
	close(d->peer);
	d->peer = -1;
}

/* Sends everything, and waits until the new one has it. */
static bool tell_vm(struct device *d, int archive, char *why, size_t size)
{
	const int fds[HANDOVER_FILES] = {
		[FILE_QEMU] = d->vu.sock, [FILE_LISTENER] = d->listener, [FILE_SESSIONS] = archive};
	struct teller count = {.sock = -1}, send = {.sock = d->peer};
	int none[HANDOVER_FILES];
	struct handover_word w;

	tell_all(d, &count);
	handover_make(&w, HANDOVER_VM, d->opt->sessions);
	w.messages = count.count;
	w.asked = d->asked;
	send.failed = !handover_send(d->peer, &w, fds, HANDOVER_FILES);
	tell_all(d, &send);
	if (send.failed) {
		snprintf(why, size, "the new one has gone");
		return false;
	}
	if (!hear_word(d->peer, HANDOVER_HAVE, d->opt->sessions, &w, none, why, size))
		return false;
	handover_close(none);
	/*
	 * Once this has been sent, the sessions are the new one's. Until then nothing has been
	 * ended here.
	 */
	handover_make(&w, HANDOVER_YOURS, d->opt->sessions);
	if (handover_send(d->peer, &w, NULL, 0))
		return true;
	snprintf(why, size, "the new one has gone");
	return false;
}

/* The guest's memory is the new one's: no mirror, and nothing here, may write there any more. */
static void leave_vm(struct device *d)
{
	unsigned int q;

	for (q = 0; q <= d->opt->sessions; q++)
		d->ring[q].num = 0;
	sessions_end_all(d, NULL);
	complain("another qcu-device has taken the VM over");
	d->over = d->left = true;
}

/* All sessions are held. */
static bool hand_sessions_over(struct device *d, char *why, size_t size)
{
	int archive = memfd_create("qcu-sessions", MFD_CLOEXEC);
	bool gone;

	if (archive < 0) {
		snprintf(why, size, "no memory for the sessions: %s", strerror(errno));
		return false;
	}
	gone = sessions_save(d, archive, why, size) && !lseek(archive, 0, SEEK_SET) &&
	       tell_vm(d, archive, why, size);
	close(archive);
	return gone;
}

static bool try_to_hand_over(struct device *d, char *why, size_t size)
{
	bool passes;

	if (d->stands || d->loaded || device_logs(d)) {
		snprintf(why, size, "the VM is being saved or moved");
		return false;
	}
	if (sessions_hold(d, HOLD_MS, false, &passes, why, size) &&
	    hand_sessions_over(d, why, size))
		return true;
	sessions_go_on(d);
	return false;
}

/* The new one could start. */
static void peer_says(struct device *d, unsigned int queue)
{
	int fds[HANDOVER_FILES];
	struct handover_word w;
	char why[192];

	(void)queue;
	/* It sends a whole word at once. One that does not has this process wait for nothing. */
	if (recv(d->peer, &w, sizeof(w), MSG_PEEK | MSG_DONTWAIT) != (ssize_t)sizeof(w)) {
		forget_peer(d);
		return;
	}
	if (hear_word(d->peer, HANDOVER_READY, d->opt->sessions, &w, fds, why, sizeof(why))) {
		handover_close(fds);
		if (try_to_hand_over(d, why, sizeof(why))) {
			leave_vm(d);
			device_unwatch(d, d->peer);
			return;
		}
	}
	complain("the VM is not handed over: %s; this qcu-device goes on", why);
	say_no(d->peer, why);
	forget_peer(d);
}

static void peer_connects(struct device *d, unsigned int queue)
{
	struct handover_word w;
	int sock;

	(void)queue;
	sock = handover_accept(d->listener);
	if (sock < 0)
		return;
	forget_peer(d);
	handover_make(&w, HANDOVER_GREETING, d->opt->sessions);
	w.has_vm = 1;
	if (!handover_send(sock, &w, NULL, 0)) {
		close(sock);
		return;
	}
	d->peer = sock;
	device_watch(d, sock, peer_says, 0);
}

void take_over_listen(struct device *d, int listener)
{
	d->listener = listener;
	if (listener >= 0)
		device_watch(d, listener, peer_connects, 0);
}

void take_over_end(struct device *d)
{
	struct pollfd p = {.fd = d->peer};

	/* The service manager must hear of the new one before it sees that this one ends. */
	if (d->left)
		poll(&p, 1, HANDOVER_SECONDS * 1000);
	if (d->peer >= 0)
		close(d->peer);
	if (d->listener >= 0)
		close(d->listener);
}

bool take_over_idle(int listener, int qemu, unsigned int sessions)
{
	const int files[] = {[FILE_QEMU] = qemu, [FILE_LISTENER] = listener};
	struct pollfd p = {.events = 0};
	int fds[HANDOVER_FILES];
	struct handover_word w;
	char why[192];
	bool gone;

	p.fd = handover_accept(listener);
	if (p.fd < 0)
		return false;
	handover_make(&w, HANDOVER_GREETING, sessions);
	gone = handover_send(p.fd, &w, files, 2) &&
	       hear_word(p.fd, HANDOVER_READY, sessions, &w, fds, why, sizeof(why));
	if (gone) {
		handover_close(fds);
		poll(&p, 1, HANDOVER_SECONDS * 1000);
	}
	close(p.fd);
	return gone;
}

/* ---- the new one ---- */

enum take_over_found take_over_connect(const char *path, unsigned int sessions, int *sock,
				       int *listener)
{
	int fds[HANDOVER_FILES], old;
	struct handover_word w;
	char why[320];

	old = handover_connect(path, why, sizeof(why));
	if (old < 0)
		goto out;
	if (!hear_word(old, HANDOVER_GREETING, sessions, &w, fds, why, sizeof(why)))
		goto out_old;
	if (w.has_vm) {
		handover_close(fds);
		*sock = old;
		return TAKE_OVER_VM;
	}
	handover_make(&w, HANDOVER_READY, sessions);
	if (fds[FILE_QEMU] >= 0 && fds[FILE_LISTENER] >= 0 && handover_send(old, &w, NULL, 0)) {
		*sock = fds[FILE_QEMU];
		*listener = fds[FILE_LISTENER];
		service_is_mine();
		close(old);
		return TAKE_OVER_IDLE;
	}
	strcpy(why, "the old one has gone");
	handover_close(fds);
out_old:
	say_no(old, why);
	close(old);
out:
	complain("--take-over: %s", why);
	return TAKE_OVER_FAILED;
}

/*
 * All has been taken. True: it is ours now. If the old one has died without a word, nobody else can
 * go on.
 */
static bool is_ours_now(struct device *d, int sock, char *why, size_t size)
{
	int fds[HANDOVER_FILES];
	struct handover_word w;
	char byte;

	handover_make(&w, HANDOVER_HAVE, d->opt->sessions);
	if (!handover_send(sock, &w, NULL, 0)) {
		snprintf(why, size, "the old one has gone");
		return false;
	}
	if (!recv(sock, &byte, 1, MSG_PEEK)) {
		complain("the old qcu-device died while it handed the VM over");
		return true;
	}
	if (!hear_word(sock, HANDOVER_YOURS, d->opt->sessions, &w, fds, why, size))
		return false;
	handover_close(fds);
	return true;
}

static bool make_sessions(struct device *d, int fd, char *why, size_t size)
{
	struct state_reader *state = malloc(sizeof(*state));
	struct state_check check = device_check(d);
	bool ok, lost;

	if (!state) {
		snprintf(why, size, "no memory for the sessions");
		return false;
	}
	state_begin(state, &check, NULL);
	ok = state_read_file(state, fd, why, size) && sessions_restore(d, state, &lost, why, size);
	state_end(state);
	free(state);
	return ok;
}

static bool receive_vm(struct device *d, take_over_message_fn *take_message, int sock,
		       int fds[HANDOVER_FILES], char *why, size_t size)
{
	struct handover_word w;

	handover_make(&w, HANDOVER_READY, d->opt->sessions);
	if (!handover_send(sock, &w, NULL, 0)) {
		snprintf(why, size, "the old one has gone");
		return false;
	}
	if (!hear_word(sock, HANDOVER_VM, d->opt->sessions, &w, fds, why, size))
		return false;
	if (fds[FILE_QEMU] < 0 || fds[FILE_LISTENER] < 0 || fds[FILE_SESSIONS] < 0) {
		snprintf(why, size, "a file is missing");
		return false;
	}
	while (w.messages-- && !d->over)
		take_message(d);
	if (d->over) {
		snprintf(why, size, "what QEMU has told cannot be used");
		return false;
	}
	d->asked = w.asked;
	return make_sessions(d, fds[FILE_SESSIONS], why, size) && is_ours_now(d, sock, why, size);
}

bool take_over_vm(struct device *d, struct take_over *t, take_over_message_fn *take_message)
{
	int fds[HANDOVER_FILES] = {-1, -1, -1}, old = d->vu.sock;
	unsigned int q;
	char why[192];

	if (!receive_vm(d, take_message, old, fds, why, sizeof(why))) {
		complain("--take-over: %s; the old one goes on", why);
		say_no(old, why);
		/* The guest's memory is the old one's. */
		for (q = 0; q <= d->opt->sessions; q++)
			d->ring[q].num = 0;
		sessions_end_all(d, NULL);
		handover_close(fds);
		return false;
	}
	d->vu.sock = fds[FILE_QEMU];
	t->listener = fds[FILE_LISTENER];
	close(fds[FILE_SESSIONS]);
	for (q = 1; q <= d->opt->sessions; q++)
		if (d->session[q].held)
			sessions_queue_starts(d, q);
	service_is_mine();
	close(old);
	if (d->opt->verbose)
		complain("has taken the VM over");
	return true;
}

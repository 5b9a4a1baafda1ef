// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A thread that hands out files (be_cuda_pass.h). It begins with the first offer. The socket's name
 * is one that the kernel has chosen, and everyone on the machine can read it; the secret tells who
 * may have a file.
 */
#define _GNU_SOURCE /* accept4 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "qcu-device/backend/cuda/be_cuda_pass.h"

#define PATIENCE_S  10 /* with the other process */
#define NAME_DIGITS 5  /* hexadecimal, after a zero byte */

struct cu_offer {
	struct cu_offer *next;
	uint64_t secret[2];
	int fd;
};

static bool be_patient(int s)
{
	const struct timeval t = {.tv_sec = PATIENCE_S};

	return !setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) &&
	       !setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

/* The caller holds the lock. Returns where the offer hangs in the list. */
static struct cu_offer **find(struct cu_pass *p, const uint64_t secret[2])
{
	struct cu_offer **o = &p->offers;

	/* Compare the whole secret, so that the time that this takes tells nothing. */
	while (*o && ((*o)->secret[0] ^ secret[0]) | ((*o)->secret[1] ^ secret[1]))
		o = &(*o)->next;
	return o;
}

/* A message of one byte, with room for one file. */
struct letter {
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	char byte;
	struct iovec iov;
	struct msghdr msg;
};

static void prepare(struct letter *l)
{
	memset(l, 0, sizeof(*l));
	l->iov = (struct iovec){.iov_base = &l->byte, .iov_len = 1};
	l->msg.msg_iov = &l->iov;
	l->msg.msg_iovlen = 1;
	l->msg.msg_control = l->control;
	l->msg.msg_controllen = sizeof(l->control);
}

static void send_file(int to, int fd)
{
	struct letter l;
	struct cmsghdr *cmsg;

	prepare(&l);
	cmsg = CMSG_FIRSTHDR(&l.msg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	(void)sendmsg(to, &l.msg, MSG_NOSIGNAL);
}

static int receive_file(int from)
{
	struct letter l;
	struct cmsghdr *cmsg;
	int fd = -1;

	prepare(&l);
	if (recvmsg(from, &l.msg, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	cmsg = CMSG_FIRSTHDR(&l.msg);
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}

static void answer(struct cu_pass *p, int to)
{
	uint64_t secret[2];
	struct cu_offer *o;

	if (!be_patient(to) || recv(to, secret, sizeof(secret), 0) != sizeof(secret))
		return;
	pthread_mutex_lock(&p->lock);
	o = *find(p, secret);
	if (o)
		send_file(to, o->fd);
	pthread_mutex_unlock(&p->lock);
}

static void *serve(void *arg)
{
	struct cu_pass *p = arg;
	int s;

	for (;;) {
		s = accept4(p->socket, NULL, NULL, SOCK_CLOEXEC);
		if (s >= 0) {
			answer(p, s);
			close(s);
		} else if (errno != EINTR && errno != ECONNABORTED) {
			return NULL; /* cu_pass_close() has shut the socket down */
		}
	}
}

static int new_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

static socklen_t address(struct sockaddr_un *a, uint32_t name)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "%0*x", NAME_DIGITS, name);
	return offsetof(struct sockaddr_un, sun_path) + 1 + NAME_DIGITS;
}

/* An address of nothing but its family makes the kernel choose a name. */
static bool listen_anywhere(struct cu_pass *p)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(a);
	char digits[NAME_DIGITS + 1] = "", *end;

	if (bind(p->socket, (struct sockaddr *)&a, sizeof(a.sun_family)) ||
	    listen(p->socket, SOMAXCONN) || getsockname(p->socket, (struct sockaddr *)&a, &len) ||
	    len != offsetof(struct sockaddr_un, sun_path) + 1 + NAME_DIGITS)
		return false;
	memcpy(digits, a.sun_path + 1, NAME_DIGITS);
	p->name = (uint32_t)strtoul(digits, &end, 16);
	return !*end;
}

/* The caller holds the lock. */
static bool begin(struct cu_pass *p)
{
	if (p->running)
		return true;
	p->socket = new_socket();
	if (p->socket < 0)
		return false;
	p->running = listen_anywhere(p) && !pthread_create(&p->thread, NULL, serve, p);
	if (!p->running)
		close(p->socket);
	return p->running;
}

void cu_pass_open(struct cu_pass *p)
{
	*p = (struct cu_pass){.socket = -1};
	pthread_mutex_init(&p->lock, NULL);
}

void cu_pass_close(struct cu_pass *p)
{
	struct cu_offer *o;

	if (p->running) {
		shutdown(p->socket, SHUT_RDWR);
		pthread_join(p->thread, NULL);
		close(p->socket);
	}
	while ((o = p->offers)) {
		p->offers = o->next;
		close(o->fd);
		free(o);
	}
	pthread_mutex_destroy(&p->lock);
}

bool cu_pass_offer(struct cu_pass *p, int fd, struct cu_pass_handle *h)
{
	struct cu_offer *o = malloc(sizeof(*o));
	bool ok;

	if (!o || getrandom(o->secret, sizeof(o->secret), 0) != (ssize_t)sizeof(o->secret)) {
		free(o);
		return false;
	}
	o->fd = fd;
	pthread_mutex_lock(&p->lock);
	ok = begin(p);
	if (ok) {
		*h = (struct cu_pass_handle){.name = p->name};
		memcpy(h->secret, o->secret, sizeof(h->secret));
		o->next = p->offers;
		p->offers = o;
	}
	pthread_mutex_unlock(&p->lock);
	if (!ok)
		free(o);
	return ok;
}

void cu_pass_withdraw(struct cu_pass *p, const struct cu_pass_handle *h)
{
	struct cu_offer **at, *o;

	pthread_mutex_lock(&p->lock);
	at = find(p, h->secret);
	o = *at;
	if (o)
		*at = o->next;
	pthread_mutex_unlock(&p->lock);
	if (o)
		close(o->fd);
	free(o);
}

int cu_pass_take(const struct cu_pass_handle *h)
{
	struct sockaddr_un a;
	socklen_t len = address(&a, h->name);
	int s = new_socket(), fd = -1;

	if (s < 0)
		return -1;
	if (be_patient(s) && !connect(s, (struct sockaddr *)&a, len) &&
	    send(s, h->secret, sizeof(h->secret), MSG_NOSIGNAL) == sizeof(h->secret))
		fd = receive_file(s);
	close(s);
	return fd;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Implements nursery.h. */
#define _GNU_SOURCE /* close_range */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/host/device.h"
#include "qcu-device/host/nursery.h"

#define FILES_AT_ONCE 200u /* the kernel takes 253 in one message */

/* An order comes in parts. Only the files that are there travel. */
struct order {
	unsigned int seat, n; /* n: files of the whole order */
	bool last;
	unsigned int count;		     /* of this part */
	unsigned short index[FILES_AT_ONCE]; /* of its files, in the order */
};

struct order_message {
	struct order o;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(FILES_AT_ONCE * sizeof(int))];
	struct iovec iov;
	struct msghdr msg;
};

static int to_nursery = -1; /* the main process's end */

static void prepare_order_message(struct order_message *p)
{
	p->iov = (struct iovec){.iov_base = &p->o, .iov_len = sizeof(p->o)};
	p->msg = (struct msghdr){.msg_iov = &p->iov,
				 .msg_iovlen = 1,
				 .msg_control = p->control,
				 .msg_controllen = sizeof(p->control)};
}

/* ---- the nursery ---- */

/* Adds the files of a part to those of the order. False: the main process has gone. */
static bool receive_order_message(int from, struct order_message *p, int *fd)
{
	int got[FILES_AT_ONCE];
	struct cmsghdr *cmsg;
	unsigned int i;
	ssize_t n;

	prepare_order_message(p);
	do {
		n = recvmsg(from, &p->msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(p->o) || p->o.count > FILES_AT_ONCE || p->o.n > NURSERY_FILES)
		return false;
	cmsg = CMSG_FIRSTHDR(&p->msg);
	if (p->o.count && (!cmsg || cmsg->cmsg_len != CMSG_LEN(p->o.count * sizeof(int))))
		return false;
	if (p->o.count)
		memcpy(got, CMSG_DATA(cmsg), p->o.count * sizeof(int));
	for (i = 0; i < p->o.count; i++) {
		if (p->o.index[i] >= p->o.n)
			return false;
		fd[p->o.index[i]] = got[i];
	}
	return true;
}

/* The main process's death ends this process. It may have died before that was asked for. */
static void die_with_main(int socket_of_main)
{
	struct pollfd p = {.fd = socket_of_main};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (poll(&p, 1, 0) == 1 && p.revents & POLLHUP)
		_exit(DEVICE_EXIT_OK);
}

static void __attribute__((noreturn)) fail_to_start(const char *what)
{
	complain("a mirror cannot be started: %s: %s", what, strerror(errno));
	_exit(MIRROR_EXIT_SETUP);
}

/* The first process of a mirror's namespaces. When it ends, the kernel ends the mirror. */
static void __attribute__((noreturn)) wait_for_mirror(const struct jail *j, pid_t mirror)
{
	pid_t pid;
	int status = 0;

	prctl(PR_SET_NAME, "qcu-first");
	if (!jail_first(j))
		fail_to_start("its first process");
	do {
		pid = wait4(-1, &status, 0, NULL);
	} while (pid != mirror && (pid > 0 || errno == EINTR));
	_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

static void __attribute__((noreturn))
be_child(const struct jail *j, const struct order *o, int *fd,
	 void (*become)(int *fd, unsigned int n) __attribute__((noreturn)))
{
	pid_t mirror;

	if (j->own_pids) {
		mirror = jail_second(o->seat);
		if (mirror < 0)
			fail_to_start("its process namespace");
		if (mirror) {
			die_with_main(fd[0]);
			close_range(3, ~0u, 0);
			wait_for_mirror(j, mirror);
		}
	}
	if (!jail_take_seat(j, o->seat))
		fail_to_start("its user");
	become(fd, o->n);
}

static void __attribute__((noreturn))
serve_orders(const struct jail *j, int main_process,
	     void (*become)(int *fd, unsigned int n) __attribute__((noreturn)))
{
	static struct order_message p;
	static int fd[NURSERY_FILES];
	unsigned int i;
	pid_t pid;
	int answer;

	for (;;) {
		memset(fd, -1, sizeof(fd));
		do {
			if (!receive_order_message(main_process, &p, fd))
				_exit(DEVICE_EXIT_OK);
		} while (!p.o.last);
		pid = jail_child(j);
		if (!pid)
			be_child(j, &p.o, fd, become);
		answer = pid < 0 ? -errno : pid;
		for (i = 0; i < p.o.n; i++)
			if (fd[i] >= 0)
				close(fd[i]);
		if (send(main_process, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
			_exit(DEVICE_EXIT_OK);
	}
}

/* ---- the main process ---- */

/* Moves these files to the numbers from 3 on, and closes all others: QEMU's socket is among them.
 */
static bool keep_only(int *const *keep, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (*keep[i] >= 0) {
			*keep[i] = fcntl(*keep[i], F_DUPFD_CLOEXEC, 3 + (int)n);
			if (*keep[i] < 0)
				return false;
		}
	for (i = 0; i < n; i++) {
		if (*keep[i] >= 0 && dup3(*keep[i], 3 + (int)i, O_CLOEXEC) < 0)
			return false;
		if (*keep[i] >= 0)
			*keep[i] = 3 + (int)i;
		else
			close(3 + (int)i);
	}
	return !close_range(3 + n, ~0u, 0);
}

bool nursery_begin(const struct jail *j, int *program, int *plugin,
		   void (*become)(int *fd, unsigned int n) __attribute__((noreturn)))
{
	int ends[2], *const keep[] = {&ends[1], program, plugin};
	sigset_t all;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		fprintf(stderr, "qcu-device: socketpair: %s\n", strerror(errno));
		return false;
	}
	fflush(NULL);
	pid = fork();
	if (!pid) {
		/* The terminal's signals are for the main process. Mirrors have none blocked. */
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
		prctl(PR_SET_NAME, "qcu-nursery");
		if (!keep_only(keep, 3) || !jail_nursery(j))
			_exit(DEVICE_EXIT_FAILURE);
		die_with_main(ends[1]);
		serve_orders(j, ends[1], become);
	}
	close(ends[1]);
	to_nursery = ends[0];
	if (pid < 0)
		fprintf(stderr, "qcu-device: fork: %s\n", strerror(errno));
	return pid > 0;
}

/* Sends as many of the files from `from` on as one message takes. Returns the next one. */
static unsigned int send_order_message(unsigned int seat, const int *fd, unsigned int from,
				       unsigned int n)
{
	static struct order_message p;
	int files[FILES_AT_ONCE];
	struct cmsghdr *cmsg;
	ssize_t sent;

	prepare_order_message(&p);
	p.o.seat = seat;
	p.o.n = n;
	for (p.o.count = 0; from < n && p.o.count < FILES_AT_ONCE; from++) {
		if (fd[from] < 0)
			continue;
		p.o.index[p.o.count] = (unsigned short)from;
		files[p.o.count++] = fd[from];
	}
	p.o.last = from == n;
	cmsg = CMSG_FIRSTHDR(&p.msg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(p.o.count * sizeof(int));
	memcpy(CMSG_DATA(cmsg), files, p.o.count * sizeof(int));
	p.msg.msg_controllen = CMSG_SPACE(p.o.count * sizeof(int));
	do {
		sent = sendmsg(to_nursery, &p.msg, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent == sizeof(p.o) ? from : 0;
}

pid_t nursery_order(unsigned int seat, const int *fd, unsigned int n)
{
	unsigned int at = 0;
	int answer;
	ssize_t got;

	do {
		at = send_order_message(seat, fd, at, n);
		if (!at)
			return -1;
	} while (at < n);
	do {
		got = recv(to_nursery, &answer, sizeof(answer), 0);
	} while (got < 0 && errno == EINTR);
	if (got != sizeof(answer)) {
		errno = EPIPE;
		return -1;
	}
	errno = answer < 0 ? -answer : 0;
	return answer < 0 ? -1 : answer;
}

int nursery_status(int status)
{
	/* Mirrors themselves have no exit code above 128. */
	if (WIFEXITED(status) && WEXITSTATUS(status) > 128)
		return WEXITSTATUS(status) - 128;
	return status;
}

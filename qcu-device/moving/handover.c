// SPDX-License-Identifier: GPL-2.0-or-later
/* The socket between an old and a new qcu-device, and the check of its words. See handover.h. */
#define _GNU_SOURCE /* struct ucred, accept4 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "include/qcucmd.h"
#include "qcu-device/base/send_files.h"
#include "qcu-device/moving/handover.h"
#include "qcu-device/moving/refuse.h"

void handover_make(struct handover_word *w, enum handover_what what, unsigned int sessions)
{
	*w = (struct handover_word){
		.magic = HANDOVER_MAGIC,
		.version = HANDOVER_VERSION,
		.what = what,
		.wire_version = QCU_WIRE_VERSION,
		.sessions = sessions,
		.window_base = QCU_WINDOW_BASE,
		.window_size = QCU_WINDOW_SIZE,
	};
}

void handover_make_no(struct handover_word *w, const char *why)
{
	handover_make(w, HANDOVER_NO, 0);
	snprintf(w->why, sizeof(w->why), "%s", why);
}

static bool refuse_with_its_reason(const struct handover_word *w, char *why, size_t size)
{
	size_t i;

	snprintf(why, size, "%.*s", (int)sizeof(w->why), *w->why ? w->why : "it gives no reason");
	for (i = 0; i < size && why[i]; i++)
		if (why[i] < ' ' || why[i] > '~')
			why[i] = '?';
	return false;
}

bool handover_fits(const struct handover_word *w, enum handover_what what, unsigned int sessions,
		   char *why, size_t size)
{
	if (w->magic != HANDOVER_MAGIC)
		return refuse_moving(why, size, "the other process is not a qcu-device");
	if (w->version != HANDOVER_VERSION)
		return refuse_moving(why, size,
				     "the other qcu-device is of another release: it hands over by "
				     "version %u, and this one by %u",
				     w->version, HANDOVER_VERSION);
	if (w->what == HANDOVER_NO)
		return refuse_with_its_reason(w, why, size);
	if (w->what != what)
		return refuse_moving(why, size, "the other qcu-device says something else (%u)",
				     w->what);
	if (w->wire_version != QCU_WIRE_VERSION)
		return refuse_moving(why, size,
				     "the other qcu-device is of another release: its wire version "
				     "is %u, and this one's %u",
				     w->wire_version, QCU_WIRE_VERSION);
	if (w->sessions != sessions)
		return refuse_moving(why, size,
				     "the other qcu-device can have %u sessions, and this one %u: "
				     "use the same --sessions",
				     w->sessions, sessions);
	if (w->window_base != QCU_WINDOW_BASE || w->window_size != QCU_WINDOW_SIZE)
		return refuse_moving(why, size, "the window of its programs lies elsewhere");
	if (w->has_vm > (what == HANDOVER_GREETING) || w->asked > (what == HANDOVER_VM) ||
	    w->messages > (what == HANDOVER_VM ? HANDOVER_MESSAGES : 0) || w->rsvd[0] ||
	    w->rsvd[1] || w->rsvd[2] || *w->why)
		return refuse_moving(why, size, "the other qcu-device says what makes no sense");
	return true;
}

/* ---- the socket ---- */

/* Nothing on this socket is waited for without end. */
static void set_limits_of_time(int sock)
{
	const struct timeval limit = {.tv_sec = HANDOVER_SECONDS};

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static bool read_user(int sock, uid_t *user)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	*user = peer.uid;
	return true;
}

static bool make_address(struct sockaddr_un *addr, const char *path)
{
	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(addr->sun_path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(addr->sun_path, path);
	return true;
}

int handover_listen(const char *path)
{
	struct sockaddr_un addr;
	mode_t mask;
	int fd, rc, err;

	if (!make_address(&addr, path))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	mask = umask(0177);
	rc = bind(fd, (struct sockaddr *)&addr, sizeof(addr));
	umask(mask);
	if (!rc && !listen(fd, 1))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/*
 * The mode of the socket's file keeps others away. In its jail the main process sees all users from
 * outside as one. The user of a listener is the one who made it, and is seen in the same way. So
 * this refuses at least what runs in the jail.
 */
int handover_accept(int listener)
{
	int sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	uid_t peer, maker;

	if (sock >= 0 && (!read_user(sock, &peer) || !read_user(listener, &maker) ||
			  (peer && peer != maker && peer != geteuid()))) {
		close(sock);
		return -1;
	}
	if (sock >= 0)
		set_limits_of_time(sock);
	return sock;
}

int handover_connect(const char *path, char *why, size_t size)
{
	struct sockaddr_un addr;
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uid_t maker;

	if (sock < 0 || !make_address(&addr, path) ||
	    connect(sock, (struct sockaddr *)&addr, sizeof(addr))) {
		refuse_moving(why, size, "no qcu-device hands its VM over at %s: %s", path,
			      strerror(errno));
	} else if (!read_user(sock, &maker) || (maker && maker != geteuid())) {
		refuse_moving(why, size, "%s belongs to another user", path);
	} else {
		set_limits_of_time(sock);
		return sock;
	}
	if (sock >= 0)
		close(sock);
	return -1;
}

bool handover_send(int sock, const struct handover_word *w, const int *fds, unsigned int n)
{
	ssize_t sent;

	while (n && fds[n - 1] < 0)
		n--;
	do {
		sent = send_files(sock, w, sizeof(*w), fds, n, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)sizeof(*w);
}

void handover_close(int fds[HANDOVER_FILES])
{
	unsigned int i;

	for (i = 0; i < HANDOVER_FILES; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* Takes the files of a message. False: there were more than a word can have. */
static bool take_word_files(struct msghdr *msg, int fds[HANDOVER_FILES])
{
	struct cmsghdr *cmsg;
	unsigned int n = 0, i;
	int fd;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(fd));
			if (n < HANDOVER_FILES)
				fds[n] = fd;
			else
				close(fd);
			n++;
		}
	}
	return n <= HANDOVER_FILES && !(msg->msg_flags & MSG_CTRUNC);
}

bool handover_receive(int sock, struct handover_word *w, int fds[HANDOVER_FILES])
{
	char control[CMSG_SPACE(HANDOVER_FILES * sizeof(int))];
	size_t got = 0;

	memset(fds, -1, HANDOVER_FILES * sizeof(int));
	/* The files come with the first byte. A word may come in pieces. */
	while (got < sizeof(*w)) {
		struct iovec iov = {(char *)w + got, sizeof(*w) - got};
		struct msghdr msg = {
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = got ? NULL : control,
			.msg_controllen = got ? 0 : sizeof(control),
		};
		ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || !take_word_files(&msg, fds)) {
			handover_close(fds);
			return false;
		}
		got += (size_t)n;
	}
	return true;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A rank's side of a meeting. Ranks find each other by the name of an abstract socket, which the
 * process has that made the id: a VM needs no network for it.
 */
#define _GNU_SOURCE /* getrandom */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "qcu-library/nccl/wire.h"

static const char magic[8] = "qCUDA-N";

_Static_assert(sizeof(struct qccl_id) <= sizeof(ncclUniqueId), "an id holds it");

static socklen_t address(struct sockaddr_un *a, const char *name)
{
	size_t n = strnlen(name, sizeof(((struct qccl_id *)0)->name));

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	memcpy(a->sun_path + 1, name, n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

ncclResult_t qccl_id_new(ncclUniqueId *to)
{
	unsigned char random[8 + QCCL_SECRET];
	struct sockaddr_un a;
	struct qccl_id id;
	socklen_t len;
	int fd;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return qccl_fail(ncclSystemError, "no random numbers");
	memset(&id, 0, sizeof(id));
	memcpy(id.magic, magic, sizeof(magic));
	memcpy(id.secret, random + 8, QCCL_SECRET);
	strcpy(id.name, "qcuda-nccl-");
	for (int i = 0; i < 8; i++)
		sprintf(id.name + strlen(id.name), "%02x", random[i]);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return qccl_refuse(ncclSystemError, "cannot make a socket: %s", strerror(errno));
	len = address(&a, id.name);
	if (bind(fd, (struct sockaddr *)&a, len) || listen(fd, 64)) {
		close(fd);
		return qccl_refuse(ncclSystemError, "cannot listen at a socket: %s",
				   strerror(errno));
	}
	memset(to, 0, sizeof(*to));
	memcpy(to, &id, sizeof(id));
	return qccl_host_start(fd, id.secret);
}

static bool say(struct qccl_meeting *m, enum qccl_say what, const void *data, size_t size)
{
	struct qccl_head head = {.what = what, .size = (uint32_t)size};
	char message[sizeof(head) + QCCL_MOST_OUR];

	memcpy(message, &head, sizeof(head));
	if (size)
		memcpy(message + sizeof(head), data, size);
	return send(m->fd, message, sizeof(head) + size, MSG_NOSIGNAL) ==
	       (ssize_t)(sizeof(head) + size);
}

static bool read_all(int fd, void *to, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = recv(fd, (char *)to + done, size - done, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static ncclResult_t hear(struct qccl_meeting *m, void *all, size_t size)
{
	struct qccl_head head;

	if (!read_all(m->fd, &head, sizeof(head)))
		return qccl_fail(ncclRemoteError, "the process that made the id has ended");
	switch (head.what) {
	case QCCL_ANSWER_OK:
		break;
	case QCCL_ANSWER_GONE:
		return qccl_fail(ncclRemoteError, "another rank has ended");
	case QCCL_ANSWER_VERSION:
		return qccl_refuse(ncclInvalidUsage,
				   "the ranks have different versions of libnccl.so.2");
	default:
		return qccl_fail(
			ncclInvalidUsage,
			"the ranks do not fit together: two have the same number, their count "
			"differs, or they make different calls");
	}
	if (head.size != size || !read_all(m->fd, all, size))
		return qccl_fail(ncclRemoteError,
				 "a broken answer of the process that made the id");
	return ncclSuccess;
}

ncclResult_t qccl_meet(struct qccl_meeting *m, const ncclUniqueId *from, int rank, int ranks)
{
	struct qccl_hello hello = {
		.version = QCCL_WIRE, .rank = (uint32_t)rank, .ranks = (uint32_t)ranks};
	struct sockaddr_un a;
	struct qccl_id id;
	ncclResult_t res;

	memcpy(&id, from, sizeof(id));
	if (memcmp(id.magic, magic, sizeof(magic)))
		return qccl_fail(ncclInvalidArgument, "no id of ncclGetUniqueId()");
	m->rank = rank;
	m->ranks = ranks;
	m->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (m->fd < 0)
		return qccl_refuse(ncclSystemError, "cannot make a socket: %s", strerror(errno));
	if (connect(m->fd, (struct sockaddr *)&a, address(&a, id.name))) {
		res = qccl_refuse(
			ncclSystemError,
			"cannot reach the process that made the id (%s): it has ended, or it is in "
			"another VM, container or network namespace, which is not supported",
			strerror(errno));
		goto out;
	}
	memcpy(hello.secret, id.secret, sizeof(hello.secret));
	res = say(m, QCCL_SAY_HELLO, &hello, sizeof(hello))
		      ? hear(m, NULL, 0)
		      : qccl_fail(ncclRemoteError, "the process that made the id has ended");
	if (!res)
		return ncclSuccess;
out:
	qccl_close(m);
	return res;
}

ncclResult_t qccl_tell(struct qccl_meeting *m, const void *mine, void *all, size_t size)
{
	if (!say(m, QCCL_SAY_TELL, mine, size))
		return qccl_fail(ncclRemoteError, "the process that made the id has ended");
	return hear(m, all, size * (size_t)m->ranks);
}

void qccl_leave(struct qccl_meeting *m)
{
	(void)say(m, QCCL_SAY_LEAVE, NULL, 0);
}

bool qccl_all_left(struct qccl_meeting *m)
{
	struct pollfd p = {.fd = m->fd, .events = POLLIN};
	struct qccl_head head;

	/* If the process that made the id has ended, nobody can tell. */
	return poll(&p, 1, 0) == 1 && read_all(m->fd, &head, sizeof(head));
}

void qccl_close(struct qccl_meeting *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

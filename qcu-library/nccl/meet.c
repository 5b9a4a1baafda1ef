// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A rank's side of a meeting. Ranks find each other by the name of an abstract socket, which the
 * process that made the id listens at. So a VM needs no network for this. Ranks on other machines,
 * or in another network namespace, connect by TCP.
 */
#define _GNU_SOURCE /* getrandom */
#include <errno.h>
#include <fcntl.h>
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

static socklen_t fill_socket_address(struct sockaddr_un *a, const char *name)
{
	size_t n = strnlen(name, sizeof(((struct qccl_id *)0)->name));

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	memcpy(a->sun_path + 1, name, n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

/* A machine without a network does not listen, unless it is told to. */
static int listen_wide(struct qccl_address *a)
{
	int fd = qccl_net_choose(a, qccl_net_alone()) ? qccl_net_listen(a) : -1;

	if (fd < 0)
		memset(a, 0, sizeof(*a));
	return fd;
}

ncclResult_t qccl_id_new(ncclUniqueId *to, bool wide)
{
	unsigned char random[8 + QCCL_SECRET];
	struct sockaddr_un a;
	struct qccl_id id;
	socklen_t len;
	int fd[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return qccl_fail(ncclSystemError, "no random numbers");
	memset(&id, 0, sizeof(id));
	memcpy(id.magic, magic, sizeof(magic));
	memcpy(id.secret, random + 8, QCCL_SECRET);
	strcpy(id.name, "qcuda-nccl-");
	for (int i = 0; i < 8; i++)
		sprintf(id.name + strlen(id.name), "%02x", random[i]);
	fd[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd[0] < 0)
		return qccl_refuse(ncclSystemError, "cannot make a socket: %s", strerror(errno));
	len = fill_socket_address(&a, id.name);
	if (bind(fd[0], (struct sockaddr *)&a, len) || listen(fd[0], 64)) {
		close(fd[0]);
		return qccl_refuse(ncclSystemError, "cannot listen at a socket: %s",
				   strerror(errno));
	}
	fd[1] = wide ? listen_wide(&id.address) : -1;
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

static ncclResult_t hear_answer(struct qccl_meeting *m, void *all, size_t size)
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

static int connect_by_unix_socket(const struct qccl_id *id)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;

	if (fd < 0 || !connect(fd, (struct sockaddr *)&a, fill_socket_address(&a, id->name)))
		return fd;
	return qccl_net_give_up(fd);
}

static int connect_wide(const struct qccl_id *id)
{
	int fd = qccl_net_connect(&id->address);

	if (fd >= 0)
		(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

static ncclResult_t connect_either(struct qccl_meeting *m, const struct qccl_id *id)
{
	bool has_address = id->address.family != 0;

	m->by_tcp = has_address && qccl_net_alone();
	m->fd = m->by_tcp ? connect_wide(id) : connect_by_unix_socket(id);
	if (m->fd >= 0)
		return ncclSuccess;
	if (has_address && !m->by_tcp) {
		m->by_tcp = true;
		m->fd = connect_wide(id);
	}
	if (m->fd >= 0)
		return ncclSuccess;
	return qccl_refuse(ncclSystemError, "cannot reach the process that made the id (%s): %s",
			   strerror(errno),
			   has_address ? "it has ended, or the network between the machines does "
					 "not let it (which interface is used, NCCL_SOCKET_IFNAME "
					 "says)"
				       : "it has ended, or it is on another machine and has no "
					 "network");
}

ncclResult_t qccl_meet(struct qccl_meeting *m, const ncclUniqueId *from, int rank, int ranks)
{
	struct qccl_hello hello = {
		.version = QCCL_WIRE, .rank = (uint32_t)rank, .ranks = (uint32_t)ranks};
	struct qccl_id id;
	ncclResult_t res;

	memcpy(&id, from, sizeof(id));
	if (memcmp(id.magic, magic, sizeof(magic)))
		return qccl_fail(ncclInvalidArgument, "no id of ncclGetUniqueId()");
	m->rank = rank;
	m->ranks = ranks;
	memcpy(m->secret, id.secret, sizeof(m->secret));
	memcpy(hello.secret, id.secret, sizeof(hello.secret));
	res = connect_either(m, &id);
	if (res)
		return res;
	res = say(m, QCCL_SAY_HELLO, &hello, sizeof(hello))
		      ? hear_answer(m, NULL, 0)
		      : qccl_fail(ncclRemoteError, "the process that made the id has ended");
	if (res)
		qccl_close(m);
	return res;
}

ncclResult_t qccl_tell_begin(struct qccl_meeting *m, const void *mine, size_t size)
{
	return say(m, QCCL_SAY_TELL, mine, size)
		       ? ncclSuccess
		       : qccl_fail(ncclRemoteError, "the process that made the id has ended");
}

ncclResult_t qccl_tell_end(struct qccl_meeting *m, void *all, size_t size)
{
	return hear_answer(m, all, size * (size_t)m->ranks);
}

ncclResult_t qccl_tell(struct qccl_meeting *m, const void *mine, void *all, size_t size)
{
	ncclResult_t res = qccl_tell_begin(m, mine, size);

	return res ? res : qccl_tell_end(m, all, size);
}

ncclResult_t qccl_tell_some(struct qccl_meeting *m, const void *mine, void *all, size_t size)
{
	if (!say(m, QCCL_SAY_SOME, mine, size))
		return qccl_fail(ncclRemoteError, "the process that made the id has ended");
	return qccl_tell_end(m, all, size);
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a stranger says to the process that made an id, and what a rank says that is no program of
 * ours. */
#ifndef STRANGERS_H
#define STRANGERS_H

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "collectives.h"
#include "ours.h"

/* After NVIDIA's header, if that is there. */
#include "qcu-library/nccl/kernels/layout.h"
#include "qcu-library/nccl/wire.h"

static inline int knock(const ncclUniqueId *from)
{
	struct sockaddr_un a = {AF_UNIX, ""};
	struct qccl_id id;
	size_t n;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(&id, from, sizeof(id));
	n = strlen(id.name);
	memcpy(a.sun_path + 1, id.name, n);
	REQUIRE(fd >= 0 && !connect(fd, (struct sockaddr *)&a,
				    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)),
		"nobody listens");
	return fd;
}

/* Who hears nonsense may hang up before it has heard all of it. */
static inline void say(int fd, const void *what, size_t size)
{
	ssize_t n = send(fd, what, size, MSG_NOSIGNAL);

	REQUIRE(n == (ssize_t)size || (n < 0 && (errno == EPIPE || errno == ECONNRESET)), "send");
}

/* The same by TCP. */
static inline int knock_at(const struct qccl_address *at)
{
	struct sockaddr_in a;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	memset(&a, 0, sizeof(a));
	a.sin_family = AF_INET;
	a.sin_port = htons(at->port);
	memcpy(&a.sin_addr, at->ip, sizeof(a.sin_addr));
	REQUIRE(at->family == 4 && fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof(a)),
		"nobody listens");
	return fd;
}

static inline int knock_by_tcp(const ncclUniqueId *from)
{
	struct qccl_id id;

	memcpy(&id, from, sizeof(id));
	return knock_at(&id.address);
}

/* The connection is closed from the other side. */
static inline void dropped(int fd)
{
	char c;

	REQUIRE(recv(fd, &c, 1, 0) <= 0, "an answer");
	close(fd);
}

static inline void answered(int fd, uint32_t what)
{
	struct qccl_head h;

	REQUIRE(recv(fd, &h, sizeof(h), MSG_WAITALL) == sizeof(h) && h.what == what && !h.size,
		"not answered with %u", what);
	dropped(fd);
}

struct message {
	struct qccl_head head;
	struct qccl_hello hello;
};

static inline struct message hello(const ncclUniqueId *from, uint32_t rank, uint32_t ranks)
{
	struct message m;
	struct qccl_id id;

	memcpy(&id, from, sizeof(id));
	memset(&m, 0, sizeof(m));
	m.head.what = QCCL_SAY_HELLO;
	m.head.size = sizeof(m.hello);
	memcpy(m.hello.secret, id.secret, sizeof(id.secret));
	m.hello.version = QCCL_WIRE;
	m.hello.rank = rank;
	m.hello.ranks = ranks;
	return m;
}

/* Before and beside the ranks. Those that stay connected hold up nobody. */
static inline void strangers(const ncclUniqueId *id, int (*knock)(const ncclUniqueId *),
			     int *silent, int *half)
{
	struct message m = hello(id, 0, 1);
	struct qccl_head h = {QCCL_SAY_TELL, 4};
	int fd;

	*silent = knock(id);
	*half = knock(id);
	say(*half, &m, sizeof(m) / 2);

	m.hello.secret[3] ^= 1;
	fd = knock(id);
	say(fd, &m, sizeof(m));
	dropped(fd);

	fd = knock(id);
	say(fd, &h, sizeof(h));
	say(fd, &h, 4);
	dropped(fd);

	h.size = QCCL_MOST_OUR + 1;
	fd = knock(id);
	say(fd, &h, sizeof(h));
	dropped(fd);

	m = hello(id, 0, 1);
	m.hello.version++;
	fd = knock(id);
	say(fd, &m, sizeof(m));
	answered(fd, QCCL_ANSWER_VERSION);

	m = hello(id, 0, QCCL_MAX_RANKS + 1);
	fd = knock(id);
	say(fd, &m, sizeof(m));
	answered(fd, QCCL_ANSWER_MISMATCH);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two processes of one program, forked before either uses CUDA, and the messages between them. */
#ifndef IPC_H
#define IPC_H

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

struct peer {
	int fd;
	pid_t pid; /* of the child; 0 in the child */
};

static inline void tell(const struct peer *p, const void *what, size_t len)
{
	REQUIRE(write(p->fd, what, len) == (ssize_t)len, "the other process is gone");
}

static inline void hear(const struct peer *p, void *what, size_t len)
{
	REQUIRE(recv(p->fd, what, len, MSG_WAITALL) == (ssize_t)len, "the other process is gone");
}

/* Passes an open file to the other process. */
static inline void tell_file(const struct peer *p, int fd)
{
	char room[CMSG_SPACE(sizeof(fd))] = "", here = 0;
	struct iovec io = {&here, 1};
	struct msghdr m;
	struct cmsghdr *c;

	memset(&m, 0, sizeof(m));
	m.msg_iov = &io;
	m.msg_iovlen = 1;
	m.msg_control = room;
	m.msg_controllen = sizeof(room);
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	REQUIRE(sendmsg(p->fd, &m, 0) == 1, "the other process is gone");
}

static inline int hear_file(const struct peer *p)
{
	char room[CMSG_SPACE(sizeof(int))] = "", here;
	struct iovec io = {&here, 1};
	struct msghdr m;
	int fd;

	memset(&m, 0, sizeof(m));
	m.msg_iov = &io;
	m.msg_iovlen = 1;
	m.msg_control = room;
	m.msg_controllen = sizeof(room);
	REQUIRE(recvmsg(p->fd, &m, 0) == 1 && CMSG_FIRSTHDR(&m), "no file came");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* Each process waits here until the other process is here, too. */
static inline void meet(const struct peer *p)
{
	char here = 0;

	tell(p, &here, 1);
	hear(p, &here, 1);
}

static inline struct peer start_peer(void)
{
	struct peer p;
	int fd[2];

	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd), "socketpair");
	p.pid = fork();
	REQUIRE(p.pid >= 0, "fork");
	p.fd = fd[p.pid == 0];
	close(fd[p.pid != 0]);
	return p;
}

static inline void end_peer(const struct peer *p)
{
	int status;

	REQUIRE(waitpid(p->pid, &status, 0) == p->pid && !status, "the child ended with %x",
		status);
}

#endif

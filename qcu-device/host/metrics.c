// SPDX-License-Identifier: GPL-2.0-or-later
/* The metrics process (metrics.h): its socket, its life, and how it answers. */
#define _GNU_SOURCE /* accept4, close_range */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/base/send_files.h"
#include "qcu-device/host/metrics.h"

#define CLIENTS	    32
#define REQUEST_MAX 4096
/* So long a client may say nothing. It then gets the numbers without HTTP around them. */
#define SILENT_MS 200
/* So long a client may take for a step. Then its connection is closed. */
#define STUCK_MS 5000
/* How long the main process waits until its metrics are where they belong. */
#define PLACE_MS 10000

struct client {
	int fd;		/* -1: a free slot */
	uint64_t since; /* of its last progress */
	char request[REQUEST_MAX + 1];
	size_t got;
	bool last;    /* asks for the numbers of the end, and waits for it */
	char *answer; /* NULL: it has not been asked for yet */
	size_t size, sent;
};

static struct client clients[CLIENTS];
static struct board_device device;
static const struct board *board;
static const struct usage *usage;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
/* Where the socket will lie once there is a VM; empty: where it is. */
static char later[sizeof(address.sun_path)];

static int to_process = -1; /* the main process's end of the socket to the metrics process */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- a client ---- */

static void drop_client(struct client *c)
{
	char rest[512];

	/* Closing a socket with unread bytes would be an error for the other side. */
	shutdown(c->fd, SHUT_RDWR);
	while (recv(c->fd, rest, sizeof(rest), MSG_DONTWAIT) > 0)
		;
	close(c->fd);
	free(c->answer);
	c->answer = NULL;
	c->fd = -1;
}

/* Writes the numbers behind a header. status: NULL for no header, else what HTTP says. */
static void prepare_answer(struct client *c, const char *status, bool body)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (out && body)
		board_print(out, &device, board, usage);
	if (!out || fclose(out)) {
		drop_client(c);
		return;
	}
	out = open_memstream(&c->answer, &c->size);
	if (out && status)
		fprintf(out,
			"HTTP/1.0 %s\r\nContent-Type: text/plain; version=0.0.4\r\n"
			"Content-Length: %zu\r\nConnection: close\r\n\r\n",
			status, len);
	if (out)
		fwrite(text, 1, len, out);
	if (!out || fclose(out)) {
		free(c->answer);
		c->answer = NULL;
		drop_client(c);
	}
	free(text);
}

/* Is the word at the beginning of the request? More of it may still come. */
static bool begins(const struct client *c, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(c->request, word, c->got < n ? c->got : n);
}

static bool names(const char *request, const char *path)
{
	size_t n = strlen(path);

	return !strncmp(request, path, n) && (request[n] == ' ' || request[n] == '?');
}

static void answer_request(struct client *c)
{
	bool head = *c->request == 'H';
	const char *path = c->request + (head ? 5 : 4);

	if (names(path, "/end"))
		c->last = true;
	else if (names(path, "/metrics") || names(path, "/"))
		prepare_answer(c, "200 OK", !head);
	else
		prepare_answer(c, "404 Not Found", false);
}

/* Reads what has come, and answers a request that is complete or that never can be one. */
static void read_request(struct client *c)
{
	ssize_t n = recv(c->fd, c->request + c->got, REQUEST_MAX - c->got, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		drop_client(c);
		return;
	}
	c->since = now_ms();
	/* Who waits for the end has said all, or goes away. */
	if (c->last) {
		drop_client(c);
		return;
	}
	c->got += (size_t)n;
	c->request[c->got] = 0;
	if (!n && !c->got)
		prepare_answer(c, NULL, true);
	else if (!begins(c, "GET ") && !begins(c, "HEAD "))
		prepare_answer(c, "405 Method Not Allowed", false);
	else if (strstr(c->request, "\r\n\r\n") || strstr(c->request, "\n\n"))
		answer_request(c);
	else if (!n || c->got == REQUEST_MAX)
		prepare_answer(c, "400 Bad Request", false);
}

static void write_answer(struct client *c)
{
	ssize_t n =
		send(c->fd, c->answer + c->sent, c->size - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->since = now_ms();
	if (n > 0)
		c->sent += (size_t)n;
	if (n < 0 || c->sent == c->size)
		drop_client(c);
}

/* How long to wait for this client, at most. */
static int patience(const struct client *c, uint64_t now)
{
	uint64_t end = c->since + (c->answer || c->got ? STUCK_MS : SILENT_MS);

	return end > now ? (int)(end - now) : 0;
}

static void out_of_time(struct client *c)
{
	if (c->answer || c->got)
		drop_client(c);
	else
		prepare_answer(c, NULL, true);
}

/* If all slots are taken, the client that has stood still for longest gives way. */
static void accept_new_client(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c = &clients[0];
	unsigned int i;

	if (fd < 0)
		return;
	for (i = 0; i < CLIENTS && c->fd >= 0; i++)
		if (clients[i].fd < 0 || clients[i].since < c->since)
			c = &clients[i];
	if (c->fd >= 0)
		drop_client(c);
	c->fd = fd;
	c->since = now_ms();
	c->got = c->sent = 0;
	c->last = false;
}

/* The device has ended: those who wait for its last numbers get them. They are few bytes, so they
 * fit. */
static void answer_last(void)
{
	unsigned int i;

	for (i = 0; i < CLIENTS; i++) {
		struct client *c = &clients[i];

		if (c->fd < 0 || !c->last)
			continue;
		prepare_answer(c, "200 OK", true);
		if (c->fd >= 0)
			write_answer(c);
	}
}

/* ---- the process ---- */

static void map_shown_counts(const int fds[2])
{
	void *u = mmap(NULL, sizeof(*usage), PROT_READ, MAP_SHARED, fds[0], 0);
	void *b = mmap(NULL, sizeof(*board), PROT_READ, MAP_SHARED, fds[1], 0);

	if (u != MAP_FAILED && b != MAP_FAILED) {
		usage = u;
		board = b;
	}
	close(fds[0]);
	close(fds[1]);
}

/* False: the main process has ended, or wants this one to end. */
static bool hear(int from_main)
{
	int fds[2];
	char byte, control[CMSG_SPACE(sizeof(fds))];
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(from_main, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	struct cmsghdr *cmsg;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	cmsg = n ? CMSG_FIRSTHDR(&msg) : NULL;
	if (cmsg && cmsg->cmsg_len == CMSG_LEN(sizeof(fds))) {
		memcpy(fds, CMSG_DATA(cmsg), sizeof(fds));
		map_shown_counts(fds);
		if (*later && !rename(address.sun_path, later))
			strcpy(address.sun_path, later);
		if (*later)
			(void)send(from_main, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		*later = '\0';
	}
	return n > 0;
}

static void serve_clients(int listener, int from_main)
{
	struct pollfd fds[2 + CLIENTS] = {{.fd = listener, .events = POLLIN},
					  {.fd = from_main, .events = POLLIN}};
	unsigned int i;

	for (;;) {
		uint64_t now = now_ms();
		int wait = -1;

		for (i = 0; i < CLIENTS; i++) {
			const struct client *c = &clients[i];
			int left = c->fd < 0 || c->last ? -1 : patience(c, now);

			fds[2 + i] = (struct pollfd){.fd = c->fd,
						     .events = c->answer ? POLLOUT : POLLIN};
			if (left >= 0 && (wait < 0 || left < wait))
				wait = left;
		}
		if (poll(fds, 2 + CLIENTS, wait) < 0 && errno != EINTR)
			return;
		if (fds[1].revents && !hear(from_main)) {
			answer_last();
			return;
		}
		now = now_ms();
		for (i = 0; i < CLIENTS; i++) {
			struct client *c = &clients[i];

			if (c->fd < 0)
				continue;
			if (fds[2 + i].revents && !c->answer)
				read_request(c);
			else if (fds[2 + i].revents)
				write_answer(c);
			else if (!c->last && !patience(c, now))
				out_of_time(c);
		}
		if (fds[0].revents)
			accept_new_client(listener);
	}
}

/* The command line is for people who look for the device's own processes. */
static void rename_process(char **argv)
{
	size_t room = 0;
	unsigned int i;

	for (i = 0; argv[i] && (!i || argv[i] == argv[0] + room); i++)
		room += strlen(argv[i]) + 1;
	memset(argv[0], 0, room);
	memcpy(argv[0], "qcu-metrics", room > 12 ? 12 : room - 1);
	prctl(PR_SET_NAME, "qcu-metrics");
}

/* Is this file the socket of this process? */
static bool is_own_socket(const char *path, const struct stat *mine)
{
	struct stat st;

	return !lstat(path, &st) && st.st_ino == mine->st_ino && st.st_dev == mine->st_dev;
}

/*
 * Another device may have taken the place over, or does so just now. So the file that is put aside
 * is looked at once more.
 */
static void remove_own_socket(const char *aside, const struct stat *mine)
{
	if (!is_own_socket(address.sun_path, mine) || rename(address.sun_path, aside))
		return;
	if (is_own_socket(aside, mine) || rename(aside, address.sun_path))
		unlink(aside);
}

static void __attribute__((noreturn))
live_as_metrics(int listener, int from_main, const struct jail *jail, char **argv)
{
	static char name[64], aside[sizeof(address.sun_path) + 16];
	struct stat mine;
	unsigned int i;
	bool have;
	int null;

	/* What the main process's command line says will be overwritten. */
	strncpy(name, device.name, sizeof(name) - 1);
	device.name = name;
	null = open("/dev/null", O_RDWR);
	for (i = 0; i < 3; i++)
		dup2(null, (int)i);
	/* No file of the main process may stay open here: least of all its socket to QEMU. */
	listener = fcntl(listener, F_DUPFD, 5);
	from_main = fcntl(from_main, F_DUPFD, 5);
	listener = dup2(listener, 3);
	from_main = dup2(from_main, 4);
	close_range(5, ~0u, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	rename_process(argv);
	for (i = 0; i < CLIENTS; i++)
		clients[i].fd = -1;
	have = !lstat(address.sun_path, &mine);
	snprintf(aside, sizeof(aside), "%s.%d", *later ? later : address.sun_path, getpid());
	if (jail_metrics(jail))
		serve_clients(listener, from_main);
	if (have)
		remove_own_socket(aside, &mine);
	_exit(0);
}

/* ---- the main process ---- */

static bool make_absolute(const char *path, char *out, size_t size)
{
	size_t n;

	if (!getcwd(out, size))
		return false;
	n = strlen(out);
	return snprintf(out + n, size - n, "/%s", path) < (int)(size - n);
}

/* A relative path would not tell others where the socket is. False: there is a reason. */
static bool name_place(const char *path, char place[sizeof(address.sun_path)], const char **why)
{
	if (strlen(path) >= sizeof(address.sun_path)) {
		*why = "the path of a socket can have 107 bytes";
		return false;
	}
	if (*path == '/' || !make_absolute(path, place, sizeof(address.sun_path)))
		strcpy(place, path);
	return true;
}

/* Returns the listening socket, or -1 with a reason. Only this user and this group may connect. */
static int listen_at(const char *path, gid_t group, const char **why)
{
	mode_t mask;
	int fd, rc;

	if (!name_place(path, address.sun_path, why))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mask = umask(0177);
	rc = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (!rc && group != METRICS_NO_GROUP &&
	    (lchown(address.sun_path, (uid_t)-1, group) || chmod(address.sun_path, 0660))) {
		*why = strerror(errno);
		unlink(address.sun_path);
		close(fd);
		return -1;
	}
	if (rc || listen(fd, 64)) {
		*why = strerror(errno);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

const char *metrics_start(const char *path, bool replace, gid_t group,
			  const struct board_device *dev, const struct jail *jail, char **argv)
{
	char beside[sizeof(address.sun_path)];
	const char *why = NULL;
	int listener, ends[2];
	pid_t pid;

	device = *dev;
	if (replace) {
		if (snprintf(beside, sizeof(beside), "%s.%d", path, getpid()) >=
		    (int)sizeof(beside))
			return "the path of a socket can have 107 bytes";
		if (!name_place(path, later, &why))
			return why;
		path = beside;
	}
	listener = listen_at(path, group, &why);
	if (listener < 0)
		return why;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		why = strerror(errno);
		goto out;
	}
	pid = fork();
	if (!pid)
		live_as_metrics(listener, ends[1], jail, argv);
	close(ends[1]);
	if (pid < 0) {
		why = strerror(errno);
		close(ends[0]);
	} else {
		to_process = ends[0];
	}
out:
	close(listener);
	if (why)
		unlink(path);
	return why;
}

/*
 * Who takes the place of another device has it when this returns. Later the place may be the next
 * one's.
 */
void metrics_show(int usage_fd, int board_fd)
{
	const int fds[2] = {usage_fd, board_fd};
	struct pollfd done = {.fd = to_process, .events = POLLIN};
	char byte;

	if (to_process < 0)
		return;
	if (send_files(to_process, "", 1, fds, 2, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		close(to_process);
		to_process = -1;
	} else if (*later && poll(&done, 1, PLACE_MS) == 1) {
		(void)recv(to_process, &byte, 1, MSG_DONTWAIT);
	}
}

void metrics_stop(void)
{
	struct pollfd end = {.fd = to_process, .events = POLLIN};

	if (to_process < 0)
		return;
	shutdown(to_process, SHUT_WR);
	/* It closes its end when it has removed the socket. */
	poll(&end, 1, 1000);
	close(to_process);
	to_process = -1;
}

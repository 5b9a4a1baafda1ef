// SPDX-License-Identifier: GPL-2.0-or-later
/* Implements service.h, by the datagrams of sd_notify(3). */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/base/send_files.h"
#include "qcu-device/moving/service.h"

#define BARRIER_MS 5000

static int to_parent = -1;

/* Sends one message, with a file if it is not -1. */
static bool tell_manager(const char *where, const char *text, int file)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(where));
	bool ok;
	int fd;

	if (strlen(where) >= sizeof(addr.sun_path))
		return false;
	strcpy(addr.sun_path, where);
	if (addr.sun_path[0] == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ok = fd >= 0 && !connect(fd, (struct sockaddr *)&addr, len) &&
	     send_files(fd, text, strlen(text), &file, file >= 0, MSG_NOSIGNAL) >= 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Waits until the manager has read what it was told: it then closes the file. */
static void wait_for_manager(const char *where)
{
	struct pollfd p = {.events = 0};
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return;
	p.fd = ends[0];
	if (tell_manager(where, "BARRIER=1", ends[1])) {
		close(ends[1]);
		poll(&p, 1, BARRIER_MS);
	} else {
		close(ends[1]);
	}
	close(ends[0]);
}

static void __attribute__((noreturn)) wait_for_child(const char *where, pid_t child, int from)
{
	char text[32], byte;
	ssize_t n;

	do {
		n = read(from, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(1);
	snprintf(text, sizeof(text), "MAINPID=%d", (int)child);
	if (!tell_manager(where, text, -1))
		complain("the service manager does not hear of %d: %s", (int)child,
			 strerror(errno));
	else
		wait_for_manager(where);
	_exit(0);
}

bool service_leave_child(void)
{
	const char *where = getenv("NOTIFY_SOCKET");
	int ends[2];
	pid_t child;

	if (!where || !*where)
		return true;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	child = fork();
	if (child > 0) {
		close(ends[1]);
		wait_for_child(where, child, ends[0]);
	}
	close(ends[0]);
	if (child)
		close(ends[1]);
	else
		to_parent = ends[1];
	return !child;
}

void service_is_mine(void)
{
	char byte;

	if (to_parent < 0)
		return;
	if (send(to_parent, "", 1, MSG_NOSIGNAL) == 1)
		while (recv(to_parent, &byte, 1, 0) < 0 && errno == EINTR)
			;
	close(to_parent);
	to_parent = -1;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes a socket at each path and says what came of it. Then two processes talk over the last one:
 * one is at the path, the other sends there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	char said[8] = "";
	int i, s = -1;

	for (i = 1; i < argc; i++) {
		snprintf(at.sun_path, sizeof(at.sun_path), "%s", argv[i]);
		s = socket(AF_UNIX, SOCK_DGRAM, 0);
		if (s < 0)
			return 2;
		if (bind(s, (struct sockaddr *)&at, sizeof(at)))
			printf("%s: %s\n", argv[i], strerror(errno));
	}
	fflush(stdout);
	if (!fork()) {
		s = socket(AF_UNIX, SOCK_DGRAM, 0);
		_exit(sendto(s, "hello", 6, 0, (struct sockaddr *)&at, sizeof(at)) != 6);
	}
	if (recv(s, said, sizeof(said), 0) != 6)
		return 1;
	printf("%s: %s\n", argv[argc - 1], said);
	return unlink(at.sun_path) != 0;
}

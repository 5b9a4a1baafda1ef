/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A message on a Unix socket, with files. */
#ifndef QCU_SEND_FILES_H
#define QCU_SEND_FILES_H

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define SEND_FILES_MAX 8u

/* As sendmsg(): n files, at most SEND_FILES_MAX, go along. */
static inline ssize_t send_files(int sock, const void *text, size_t bytes, const int *files,
				 size_t n, int flags)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(SEND_FILES_MAX * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)text, .iov_len = bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *cmsg;

	if (n) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(cmsg), files, n * sizeof(int));
	}
	return sendmsg(sock, &msg, flags);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Letters with which the mirrors of a VM pass open files to one another. They go through the main
 * process, because a mirror can connect to nothing. A mirror names others by their seats (jail.h).
 */
#ifndef QCU_PASS_H
#define QCU_PASS_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum pass_kind {
	PASS_ASK = 1, /* for the file with this secret */
	PASS_ANSWER,  /* with the file, or without: there is none */
};

struct pass_letter {
	uint32_t kind;
	uint32_t seat; /* of the receiver; the main process replaces it with the sender's */
	uint32_t id;   /* the asker's; it comes back in the answer */
	uint32_t rsvd;
	uint64_t secret[2];
};

/* A letter, with room for one file beside it, as the kernel takes it. */
struct pass_envelope {
	struct pass_letter letter;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov;
	struct msghdr msg;
};

static inline void pass_envelope(struct pass_envelope *e)
{
	e->iov = (struct iovec){.iov_base = &e->letter, .iov_len = sizeof(e->letter)};
	e->msg = (struct msghdr){.msg_iov = &e->iov,
				 .msg_iovlen = 1,
				 .msg_control = e->control,
				 /* Not CMSG_SPACE: that has room for a second file. */
				 .msg_controllen = CMSG_LEN(sizeof(int))};
}

#endif

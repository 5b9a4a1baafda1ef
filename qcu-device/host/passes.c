// SPDX-License-Identifier: GPL-2.0-or-later
/* Implements passes.h. Letters come from mirrors, which a guest may have broken into. */
#define _GNU_SOURCE /* MSG_CMSG_CLOEXEC */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/base/pass.h"
#include "qcu-device/base/send_files.h"
#include "qcu-device/host/passes.h"

void passes_init(struct passes *p)
{
	unsigned int i;

	p->is_private = NULL;
	for (i = 0; i < JAIL_SEATS; i++)
		p->mirror[i] = (struct passes_mirror){.fd = -1};
}

void passes_add(struct passes *p, unsigned int seat, int fd)
{
	p->mirror[seat] = (struct passes_mirror){.fd = fd};
}

void passes_remove(struct passes *p, unsigned int seat)
{
	if (p->mirror[seat].fd >= 0)
		close(p->mirror[seat].fd);
	p->mirror[seat].fd = -1;
}

static bool sends_too_much(struct passes_mirror *m)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if ((uint64_t)now.tv_sec != m->second) {
		m->second = (uint64_t)now.tv_sec;
		m->sent = 0;
	}
	return ++m->sent > PASSES_A_SECOND;
}

/* file: goes with the letter, if it is not -1. */
static bool deliver(struct passes *p, unsigned int seat, const struct pass_letter *letter, int file)
{
	if (!seat || seat >= JAIL_SEATS || p->mirror[seat].fd < 0)
		return false;
	return send_files(p->mirror[seat].fd, letter, sizeof(*letter), &file, file >= 0,
			  MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(*letter);
}

static enum passes_result carry_letter(struct passes *p, unsigned int from,
				       const struct pass_letter *l, int file)
{
	struct pass_letter out = *l;

	if ((l->kind != PASS_ASK || file >= 0) && l->kind != PASS_ANSWER)
		return PASSES_BAD;
	if (l->rsvd || (file >= 0 && p->is_private && p->is_private(file)))
		return PASSES_BAD;
	out.seat = from;
	if (deliver(p, l->seat, &out, file) || l->kind != PASS_ASK)
		return PASSES_CARRIED;
	out.kind = PASS_ANSWER;
	out.seat = l->seat;
	deliver(p, from, &out, -1);
	return PASSES_CARRIED;
}

enum passes_result passes_carry(struct passes *p, unsigned int seat)
{
	struct passes_mirror *m = &p->mirror[seat];
	enum passes_result result = PASSES_BAD;
	struct cmsghdr *cmsg;
	struct pass_envelope e;
	int file = -1;
	ssize_t n;

	pass_envelope(&e);
	n = recvmsg(m->fd, &e.msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return PASSES_CARRIED;
	if (n < 0)
		return PASSES_GONE;
	/* An empty letter looks like the end, but may have a file. */
	cmsg = CMSG_FIRSTHDR(&e.msg);
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(&file, CMSG_DATA(cmsg), sizeof(file));
	if (!n && file < 0)
		return PASSES_GONE;
	if (n == sizeof(e.letter) && !(e.msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    !sends_too_much(m))
		result = carry_letter(p, seat, &e.letter, file);
	if (file >= 0)
		close(file);
	return result;
}

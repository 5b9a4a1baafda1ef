/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A mirror on the fake backend, and commands to it that wait for their answers. */
#ifndef TEST_DEVICE_MIRROR_H
#define TEST_DEVICE_MIRROR_H

#include <errno.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "qcu-device/mirror/mirror.h"
#include "tests/unit/device/mirror/test_device_fake.h"

#define REFUSED (-1000) /* mir_submit has refused the command */

static struct mirror *mirror;

struct question {
	struct mir_request req;
	sem_t answered;
};

static void question_done(struct mir_request *req)
{
	sem_post(&((struct question *)req)->answered);
}

static bool ask_begin(struct question *qu)
{
	sem_init(&qu->answered, 0, 0);
	qu->req.done = question_done;
	return mir_submit(mirror, &qu->req);
}

static int ask_end(struct question *qu)
{
	while (sem_wait(&qu->answered) && errno == EINTR)
		;
	return qu->req.cmd.status;
}

/* Sends a command with segments, with a message, or with neither. The reply is written over cmd. */
static int ask_with(struct qCUcmd *cmd, const void *msg, const struct qcu_seg *segs, size_t count)
{
	struct question qu = {.req = {.cmd = *cmd, .msg = msg, .segs = segs, .seg_count = count}};
	int status;

	if (!ask_begin(&qu))
		return REFUSED;
	status = ask_end(&qu);
	assert_int_equal(qu.req.cmd.op, cmd->op);
	assert_int_equal(qu.req.cmd.tid, cmd->tid);
	assert_int_equal(qu.req.cmd.seq, cmd->seq);
	*cmd = qu.req.cmd;
	return status;
}

static inline int ask(struct qCUcmd cmd)
{
	return ask_with(&cmd, NULL, NULL, 0);
}

/*
 * A record of guest thread 1 with the given members of its body. This is not one initializer: an
 * initializer leaves the rest of the union's bytes to the compiler, and they must be zero.
 */
#define CMD(NAME, member, ...)                                    \
	({                                                        \
		struct qCUcmd cmd_;                               \
		memset(&cmd_, 0, sizeof(cmd_));                   \
		cmd_.op = QCU_OP_##NAME;                          \
		cmd_.tid = 1;                                     \
		cmd_.member = (struct qcu_##member){__VA_ARGS__}; \
		cmd_;                                             \
	})

/* No object of the backend may be left over. */
static inline int mirror_stop(void **state)
{
	(void)state;
	mir_destroy(mirror);
	return fake.objects || fake.allocations || fake.registrations;
}

#endif

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ends a communicator. The kernels of the other ranks may still write to this rank's memory when
 * its own kernels have ended. So the memory is freed only when all ranks have reported that their
 * kernels have ended. No call waits for that. The process tries again when it creates or destroys
 * another communicator. The memory for far ranks stays as long, and its thread answers until then.
 */
#include <stdlib.h>

#include "qcu-library/nccl/comm.h"

static struct ncclComm *ended;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void free_comm(struct ncclComm *c)
{
	struct qccl_device d = qccl_use_device(c->device);

	if (c->far)
		qccl_far_close(c->far);
	if (c->stop)
		(void)cudaFreeHost((void *)c->stop);
	if (c->memory)
		(void)cudaFree(c->memory);
	qccl_use_before(d);
	qccl_close(&c->meeting);
	free(c);
}

void qccl_comm_free_ended(void)
{
	struct ncclComm **p, *c;

	pthread_mutex_lock(&lock);
	for (p = &ended; (c = *p) != NULL;) {
		if (!qccl_all_left(&c->meeting)) {
			p = &c->next;
			continue;
		}
		*p = c->next;
		free_comm(c);
	}
	pthread_mutex_unlock(&lock);
}

void qccl_comm_end(struct ncclComm *c)
{
	struct qccl_device d = qccl_use_device(c->device);

	for (int i = 0; i < c->ranks; i++)
		if (c->opened[i])
			(void)cudaIpcCloseMemHandle(c->opened[i]);
	for (int i = 0; i < 2; i++)
		if (c->order[i].has_event)
			(void)cudaEventDestroy(c->order[i].event);
	qccl_use_before(d);
	c->magic = 0;
	if (c->meeting.fd < 0 || !c->memory) {
		free_comm(c);
		return;
	}
	qccl_leave(&c->meeting);
	pthread_mutex_lock(&lock);
	c->next = ended;
	ended = c;
	pthread_mutex_unlock(&lock);
	qccl_comm_free_ended();
}

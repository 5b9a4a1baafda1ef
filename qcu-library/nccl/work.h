/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* From a call to its launches: what a call asks for, and the group that it is part of. */
#ifndef QCCL_WORK_H
#define QCCL_WORK_H

#include "qcu-library/nccl/comm.h"

enum qccl_call {
	QCCL_CALL_ALL_REDUCE,
	QCCL_CALL_REDUCE,
	QCCL_CALL_REDUCE_SCATTER,
	QCCL_CALL_BROADCAST,
	QCCL_CALL_ALL_GATHER,
	QCCL_CALL_ALL_TO_ALL,
	QCCL_CALL_GATHER,
	QCCL_CALL_SCATTER,
	QCCL_CALL_SEND,
	QCCL_CALL_RECEIVE,
};

/* A call that has been checked. */
struct qccl_task {
	enum qccl_call call;
	ncclComm_t comm;
	const void *in;
	void *out;
	size_t count;
	ncclDataType_t type;
	enum qccl_op op;
	bool average, scalar_is_address;
	uint64_t scalar;
	int root; /* or the other rank of a send or receive */
	cudaStream_t stream;
};

size_t qccl_size_of(ncclDataType_t type);

/* Loads the kernel of a task, so that later no launch waits for that. */
ncclResult_t qccl_load(const struct qccl_task *t);

/* A task that is no send or receive. */
ncclResult_t qccl_launch(const struct qccl_task *t);

/* Sends and receives of one communicator, which make progress together. */
ncclResult_t qccl_launch_transfers(const struct qccl_task *t, size_t n);

/* Orders a launch in `stream` behind the last one of the communicator, and then says that it has
 * been made. */
ncclResult_t qccl_order(struct ncclComm *c, cudaStream_t stream);
ncclResult_t qccl_ordered(struct ncclComm *c, cudaStream_t stream);
bool qccl_is_captured(cudaStream_t stream);

#endif

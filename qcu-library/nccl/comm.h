/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Communicators: one rank's view of one. */
#ifndef QCCL_COMM_H
#define QCCL_COMM_H

#include <pthread.h>

#include "qcu-library/nccl/far.h"
#include "qcu-library/nccl/kernels/layout.h"
#include "qcu-library/nccl/meet.h"

#define QCCL_USER_OPS 64 /* operators that a communicator can have at a time */

/* An operator made by ncclRedOpCreatePreMulSum(). */
struct qccl_user_op {
	bool used, is_address;
	ncclDataType_t type;
	uint64_t scalar; /* its bits, or its address */
};

enum qccl_kernel {
	QCCL_KERNEL_RELAY = 10, /* those before are types */
	QCCL_KERNEL_FEW,
	QCCL_KERNEL_MANY,
	QCCL_KERNELS
};

/* Launches of one communicator run one after another, whatever streams they are in (order.c). */
struct qccl_order {
	bool launched, many_streams, has_event;
	cudaStream_t last;
	cudaEvent_t event;
	unsigned long long capture; /* 0: none */
};

struct ncclComm {
	uint64_t magic;
	int rank, ranks, device;
	uint32_t channels; /* the most that all ranks can have at a time */
	struct qccl_meeting meeting;
	bool wide; /* a rank met the others by TCP */

	void *memory;		      /* what layout.h describes */
	uint64_t bytes;		      /* of it */
	void *opened[QCCL_MAX_RANKS]; /* memory of other processes */
	volatile uint32_t *stop;      /* ends the kernels, if it is not 0 */
	struct qccl_far *far;	      /* NULL: all other ranks are near */
	ncclResult_t state;
	bool revoked; /* its work was stopped, and it takes no more */

	struct qccl_order order[2]; /* of launches, and of those that are captured */

	bool loaded[QCCL_KERNELS];
	struct qccl_user_op op[QCCL_USER_OPS];

	struct ncclComm *next; /* of those that have been ended (end.c) */
};

/* The result for a communicator that is none, or that was destroyed. */
ncclResult_t qccl_check(const struct ncclComm *c);

/* What has become of a communicator. */
ncclResult_t qccl_state(const struct ncclComm *c);

struct ncclComm *qccl_comm_new(void);

/*
 * Joins the others. Called by any thread; c->device is set. If it fails, the communicator stays as
 * it is until it is destroyed.
 */
ncclResult_t qccl_comm_join(struct ncclComm *c, const ncclUniqueId *id, int rank, int ranks);

/* The caller may have `config`. */
ncclResult_t qccl_make_communicator(ncclComm_t *comm, int ranks, const ncclUniqueId *id, int rank,
				    int device, const ncclConfig_t *config);
ncclResult_t qccl_check_config(const ncclConfig_t *config);

/* Ends this rank's kernels. False: it is not certain that they have ended. */
bool qccl_stop(struct ncclComm *c);

/* Frees the memory of those that have been ended, where it can be. */
void qccl_comm_free_ended(void);

/* Gives back what joining has made. The caller has made sure that no kernel of this rank runs. */
void qccl_comm_end(struct ncclComm *c);

/* Makes a device current, and the one before it again. */
struct qccl_device {
	int before;
};
struct qccl_device qccl_use_device(int device);
void qccl_use_before(struct qccl_device d);

#endif

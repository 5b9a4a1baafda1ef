/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the ranks of a communicator find each other, and tell each other what all must know. */
#ifndef QCCL_MEET_H
#define QCCL_MEET_H

#include "qcu-library/nccl/errors.h"

#define QCCL_SECRET   16
#define QCCL_MOST_OUR 256 /* bytes that a rank tells the others at a time */

/* What lies in an ncclUniqueId. The name is that of an abstract socket. */
struct qccl_id {
	char magic[8];
	char name[48];
	unsigned char secret[QCCL_SECRET];
};

/* A connection to the process that made the id. */
struct qccl_meeting {
	int fd, rank, ranks;
};

/* Makes an id, and a thread that the ranks connect to. */
ncclResult_t qccl_id_new(ncclUniqueId *to);

/* Returns when all ranks are there. */
ncclResult_t qccl_meet(struct qccl_meeting *m, const ncclUniqueId *id, int rank, int ranks);

/* Each rank tells `size` bytes; `all` gets those of all ranks. */
ncclResult_t qccl_tell(struct qccl_meeting *m, const void *mine, void *all, size_t size);

/* Says that this rank uses nothing of the others any more. No qccl_tell() after this. */
void qccl_leave(struct qccl_meeting *m);

/* Whether all others have left, or have ended. Does not wait. */
bool qccl_all_left(struct qccl_meeting *m);

void qccl_close(struct qccl_meeting *m);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ranks of a communicator find each other, and exchange what all must know. */
#ifndef QCCL_MEET_H
#define QCCL_MEET_H

#include "qcu-library/nccl/errors.h"
#include "qcu-library/nccl/net.h"

#define QCCL_SECRET   16
#define QCCL_MOST_OUR 256 /* bytes that a rank tells the others at a time */

/* What lies in an ncclUniqueId. The name is that of an abstract socket, the address is for those
 * that cannot reach it. */
struct qccl_id {
	char magic[8];
	char name[48];
	unsigned char secret[QCCL_SECRET];
	struct qccl_address address;
};

/* A connection to the process that made the id. */
struct qccl_meeting {
	int fd, rank, ranks;
	bool by_tcp;
	unsigned char secret[QCCL_SECRET];
};

/* Makes an id, and a thread that the ranks connect to. wide: ranks may be on other machines. */
ncclResult_t qccl_id_new(ncclUniqueId *to, bool wide);

/* Returns when all ranks are there. */
ncclResult_t qccl_meet(struct qccl_meeting *m, const ncclUniqueId *id, int rank, int ranks);

/* Each rank tells `size` bytes; `all` gets those of all ranks. */
ncclResult_t qccl_tell(struct qccl_meeting *m, const void *mine, void *all, size_t size);

/* The same among some ranks, whose bits `mine` begins with. `all` has zeros for the others. */
ncclResult_t qccl_tell_some(struct qccl_meeting *m, const void *mine, void *all, size_t size);

/* The same in two parts. The end does not wait once the connection has something to read. */
ncclResult_t qccl_tell_begin(struct qccl_meeting *m, const void *mine, size_t size);
ncclResult_t qccl_tell_end(struct qccl_meeting *m, void *all, size_t size);

/* Says that this rank uses nothing of the others any more. No qccl_tell() after this. */
void qccl_leave(struct qccl_meeting *m);

/* Whether all others have left, or have ended. Does not wait. */
bool qccl_all_left(struct qccl_meeting *m);

void qccl_close(struct qccl_meeting *m);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Groups: calls between ncclGroupStart() and ncclGroupEnd() of a thread are carried out together.
 */
#ifndef QCCL_GROUP_H
#define QCCL_GROUP_H

#include "qcu-library/nccl/work.h"

/* A communicator that is to be made. */
struct qccl_join {
	struct ncclComm *comm;
	ncclComm_t *to; /* gets NULL if it fails */
	ncclUniqueId id;
	int rank, ranks;
};

/* Both are done when the outermost group ends; without a group, at once. */
ncclResult_t qccl_group_task(const struct qccl_task *t);
ncclResult_t qccl_group_join(const struct qccl_join *j);

/* A wrong call in a group: the group's end says so, too. Returns `result`. */
ncclResult_t qccl_group_fail(ncclResult_t result);

#endif

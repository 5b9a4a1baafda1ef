// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Communicators with fewer or more ranks than another one, and the end of a communicator's work.
 * The process that made the id of the old one must be there, because it passes on what the ranks
 * say.
 */
#include <string.h>

#include "qcu-library/nccl/group.h"
#include "qcu-library/nccl/wire.h"

static ncclResult_t revoke(ncclComm_t c)
{
	c->revoked = true;
	return qccl_stop(c)
		       ? ncclSuccess
		       : qccl_fail(
				 ncclInvalidUsage,
				 "work in a graph or in a stream that is gone may not have ended");
}

/* It is done when the call returns. So the state is never ncclInProgress. */
QCCL_PUBLIC ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
	ncclResult_t res = qccl_check(comm);

	if (!res && flags != NCCL_REVOKE_DEFAULT)
		res = qccl_fail(ncclInvalidArgument, "ncclCommRevoke: flags %d", flags);
	return res ? res : revoke(comm);
}

/* ---- fewer ---- */

/* The bits of those that stay. */
static ncclResult_t remaining_ranks(ncclComm_t c, const int *without, int count, uint32_t *stay)
{
	*stay = (uint32_t)((1ull << c->ranks) - 1);
	if (!without || count < 1 || count >= c->ranks)
		return qccl_fail(ncclInvalidArgument, "ncclCommShrink: %d of %d ranks go", count,
				 c->ranks);
	for (int i = 0; i < count; i++) {
		if (without[i] < 0 || without[i] >= c->ranks || !(*stay >> without[i] & 1))
			return qccl_fail(ncclInvalidArgument,
					 "ncclCommShrink: rank %d is none, or goes twice",
					 without[i]);
		*stay &= ~(1u << without[i]);
	}
	if (!(*stay >> c->rank & 1))
		return qccl_fail(ncclInvalidArgument,
				 "ncclCommShrink: this rank goes, and must not make the call");
	return ncclSuccess;
}

static ncclResult_t shrink_communicator(ncclComm_t c, uint32_t stay, ncclComm_t *to,
					const ncclConfig_t *config)
{
	const int leader = __builtin_ctz(stay);
	struct qccl_some mine, all[QCCL_MAX_RANKS];
	ncclResult_t res = ncclSuccess, told;

	memset(&mine, 0, sizeof(mine));
	mine.ranks = stay;
	if (c->rank == leader)
		res = qccl_id_new(&mine.id, c->wide);
	told = qccl_tell_some(&c->meeting, &mine, all, sizeof(mine));
	if (res || told)
		return res ? res : told;
	return qccl_make_communicator(to, __builtin_popcount(stay), &all[leader].id,
				      __builtin_popcount(stay & ((1u << c->rank) - 1)), c->device,
				      config);
}

QCCL_PUBLIC ncclResult_t ncclCommShrink(ncclComm_t comm, int *without, int count, ncclComm_t *to,
					ncclConfig_t *config, int flags)
{
	ncclResult_t res = qccl_check(comm);
	uint32_t stay;

	if (!res)
		res = qccl_check_config(config);
	if (!res && (!to || (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)))
		res = qccl_fail(ncclInvalidArgument,
				"ncclCommShrink: flags %d, or the pointer is NULL", flags);
	if (!res)
		res = remaining_ranks(comm, without, count, &stay);
	if (!res && flags == NCCL_SHRINK_ABORT)
		res = revoke(comm);
	return qccl_group_fail(res ? res : shrink_communicator(comm, stay, to, config));
}

/* ---- more ---- */

QCCL_PUBLIC ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id)
{
	ncclResult_t res = qccl_check(comm);

	if (!res && !id)
		res = qccl_fail(ncclInvalidArgument, "ncclCommGetUniqueId: the pointer is NULL");
	return res ? res : qccl_id_new(id, true);
}

/* One of the old ranks has the id, and tells the others. All of them keep their numbers. */
static ncclResult_t grow_communicator(ncclComm_t c, int ranks, const ncclUniqueId *id,
				      ncclComm_t *to, const ncclConfig_t *config)
{
	static const ncclUniqueId none;
	ncclUniqueId mine = id ? *id : none, all[QCCL_MAX_RANKS];
	ncclResult_t res = qccl_tell(&c->meeting, &mine, all, sizeof(mine));
	int root = -1;

	if (res)
		return res;
	for (int i = 0; i < c->ranks; i++) {
		if (!memcmp(&all[i], &none, sizeof(none)))
			continue;
		if (root >= 0)
			return qccl_fail(ncclInvalidUsage,
					 "ncclCommGrow: ranks %d and %d both have an id", root, i);
		root = i;
	}
	if (root < 0)
		return qccl_fail(ncclInvalidUsage, "ncclCommGrow: no rank has an id");
	return qccl_make_communicator(to, ranks, &all[root], c->rank, c->device, config);
}

static ncclResult_t join_grown(int ranks, const ncclUniqueId *id, int rank, ncclComm_t *to,
			       const ncclConfig_t *config)
{
	int device;
	ncclResult_t res = qccl_cuda(cudaGetDevice(&device), "cudaGetDevice");

	return res ? res : qccl_make_communicator(to, ranks, id, rank, device, config);
}

QCCL_PUBLIC ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id, int rank,
				      ncclComm_t *to, ncclConfig_t *config)
{
	ncclResult_t res = comm ? qccl_check(comm) : ncclSuccess;

	if (!res)
		res = qccl_check_config(config);
	if (!res && (!to || (comm && (rank != -1 || ranks <= comm->ranks)) || (!comm && !id)))
		res = qccl_fail(ncclInvalidArgument,
				"ncclCommGrow: rank %d of %d, or a pointer is NULL", rank, ranks);
	if (res)
		return qccl_group_fail(res);
	return qccl_group_fail(comm ? grow_communicator(comm, ranks, id, to, config)
				    : join_grown(ranks, id, rank, to, config));
}

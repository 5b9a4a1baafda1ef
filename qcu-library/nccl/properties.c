// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What programs ask about a communicator before they use it from their own kernels. That is not
 * served, and the properties say so. Ranks that are near each other can reach each other's memory:
 * they are one team. A rank that has far ones tells of a team of its own.
 */
#include <string.h>

#include "qcu-library/nccl/comm.h"

static int size_of_team(const struct ncclComm *c)
{
	return c->far ? 1 : c->ranks;
}

/* The same on all ranks. It tells a quarter of the secret. */
static uint32_t hash_secret(const struct ncclComm *c)
{
	uint32_t hash = 2166136261u;
	int i;

	for (i = 0; i < QCCL_SECRET; i++)
		hash = (hash ^ c->meeting.secret[i]) * 16777619u;
	return hash;
}

/* A program's structure may be older or newer, and tells its size. */
QCCL_PUBLIC ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *to)
{
	const size_t begin = offsetof(ncclCommProperties_t, rank);
	ncclResult_t res = qccl_check(comm);
	ncclCommProperties_t p = {0};

	if (res)
		return res;
	if (!to || to->magic != NCCL_API_MAGIC ||
	    to->size < offsetof(ncclCommProperties_t, nLsaTeams))
		return qccl_fail(ncclInvalidArgument,
				 "ncclCommQueryProperties: the structure is not initialized");
	p.rank = comm->rank;
	p.nRanks = comm->ranks;
	p.cudaDev = p.nvmlDev = comm->device;
	p.nLsaTeams = comm->ranks / size_of_team(comm);
	p.commHash = hash_secret(comm);
	memcpy((char *)to + begin, (const char *)&p + begin,
	       (to->size < sizeof(p) ? to->size : sizeof(p)) - begin);
	return ncclSuccess;
}

/* All memory stays until the communicator ends. */
QCCL_PUBLIC ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value)
{
	ncclResult_t res = qccl_check(comm);

	if (res)
		return res;
	if (!value || (unsigned int)stat > ncclStatGpuMemTotal)
		return qccl_fail(ncclInvalidArgument,
				 "ncclCommMemStats: no such number, or the pointer is NULL");
	*value = stat == ncclStatGpuMemPersist || stat == ncclStatGpuMemTotal ? comm->bytes : 0;
	return ncclSuccess;
}

/* ---- teams: ranks of equal distance ---- */

/* Of no communicator there is no team. */
QCCL_PUBLIC ncclTeam_t ncclTeamWorld(ncclComm_t comm)
{
	if (qccl_check(comm))
		return (ncclTeam_t){0};
	return (ncclTeam_t){comm->ranks, comm->rank, 1};
}

QCCL_PUBLIC ncclTeam_t ncclTeamLsa(ncclComm_t comm)
{
	if (qccl_check(comm))
		return (ncclTeam_t){0};
	return (ncclTeam_t){size_of_team(comm), comm->rank % size_of_team(comm), 1};
}

/* The ranks that have the same place in their teams. */
QCCL_PUBLIC ncclTeam_t ncclTeamRail(ncclComm_t comm)
{
	if (qccl_check(comm))
		return (ncclTeam_t){0};
	return (ncclTeam_t){comm->ranks / size_of_team(comm), comm->rank / size_of_team(comm),
			    size_of_team(comm)};
}

QCCL_PUBLIC int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank)
{
	return qccl_check(comm) ? -1 : comm->rank + (rank - team.rank) * team.stride;
}

QCCL_PUBLIC int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank)
{
	return qccl_check(comm)
		       ? -1
		       : comm->rank % size_of_team(comm) + (rank - team.rank) * team.stride;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* The public functions that make, describe and end communicators. */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/nccl/group.h"

QCCL_PUBLIC ncclResult_t ncclGetVersion(int *version)
{
	if (!version)
		return qccl_fail(ncclInvalidArgument, "ncclGetVersion: the pointer is NULL");
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}

QCCL_PUBLIC ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	if (!id)
		return qccl_fail(ncclInvalidArgument, "ncclGetUniqueId: the pointer is NULL");
	return qccl_id_new(id, true);
}

/* There is no debug output whose settings could be read again. */
QCCL_PUBLIC void ncclResetDebugInit(void)
{
}

QCCL_PUBLIC void ncclResetDebugInitInternal(void)
{
}

ncclResult_t qccl_check_config(const ncclConfig_t *config)
{
	if (!config)
		return ncclSuccess;
	if (config->size < sizeof(*config) || config->magic != NCCL_API_MAGIC)
		return qccl_fail(ncclInvalidArgument,
				 "the configuration was not made with NCCL_CONFIG_INITIALIZER");
	if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 &&
	    config->blocking != 1)
		return qccl_fail(ncclInvalidArgument, "blocking is %d, and not 0 or 1",
				 config->blocking);
	return ncclSuccess;
}

/* A configuration that wants no waiting gets what is done already, which it may. */
ncclResult_t qccl_make_communicator(ncclComm_t *comm, int ranks, const ncclUniqueId *id, int rank,
				    int device, const ncclConfig_t *config)
{
	struct qccl_join j = {.to = comm, .rank = rank, .ranks = ranks};
	ncclResult_t res;

	if (!comm || !id)
		return qccl_fail(ncclInvalidArgument, "a pointer is NULL");
	if (ranks < 1 || rank < 0 || rank >= ranks)
		return qccl_fail(ncclInvalidArgument, "rank %d of %d", rank, ranks);
	if (ranks > (int)QCCL_MAX_RANKS)
		return qccl_refuse(ncclInvalidArgument, "%d ranks: a communicator has at most %u",
				   ranks, QCCL_MAX_RANKS);
	res = qccl_check_config(config);
	if (res)
		return res;
	qccl_comm_free_ended();
	j.comm = qccl_comm_new();
	if (!j.comm)
		return qccl_fail(ncclSystemError, "no memory");
	j.comm->device = device;
	j.id = *id;
	*comm = j.comm;
	return qccl_group_join(&j);
}

static ncclResult_t make_here(ncclComm_t *comm, int ranks, const ncclUniqueId *id, int rank,
			      const ncclConfig_t *config)
{
	int device;
	ncclResult_t res = qccl_cuda(cudaGetDevice(&device), "cudaGetDevice");

	return qccl_group_fail(res ? res
				   : qccl_make_communicator(comm, ranks, id, rank, device, config));
}

QCCL_PUBLIC ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
	return make_here(comm, ranks, &id, rank, NULL);
}

QCCL_PUBLIC ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id,
						int rank, ncclConfig_t *config)
{
	return make_here(comm, ranks, &id, rank, config);
}

/* All ranks have the same ids: the first one is enough. */
QCCL_PUBLIC ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank, int ids,
						  ncclUniqueId *id, ncclConfig_t *config)
{
	if (ids < 1 || ids > ranks)
		return qccl_group_fail(
			qccl_fail(ncclInvalidArgument, "%d ids for %d ranks", ids, ranks));
	return make_here(comm, ranks, id, rank, config);
}

static ncclResult_t check_devices(int n, const int *device)
{
	int have;
	ncclResult_t res = qccl_cuda(cudaGetDeviceCount(&have), "cudaGetDeviceCount");

	for (int i = 0; !res && i < n; i++) {
		int d = device ? device[i] : i;

		if (d < 0 || d >= have)
			return qccl_fail(ncclInvalidArgument, "there is no device %d", d);
		for (int k = 0; device && k < i; k++)
			if (device[k] == d)
				return qccl_fail(ncclInvalidUsage, "device %d twice", d);
	}
	return res;
}

QCCL_PUBLIC ncclResult_t ncclCommInitAll(ncclComm_t *comm, int n, const int *device)
{
	ncclUniqueId id;
	ncclResult_t res, end;

	if (!comm || n < 1)
		return qccl_fail(ncclInvalidArgument,
				 "ncclCommInitAll: no communicators, or the pointer is NULL");
	res = check_devices(n, device);
	if (!res)
		res = qccl_id_new(&id, false);
	if (res)
		return qccl_group_fail(res);
	(void)ncclGroupStart();
	for (int i = 0; !res && i < n; i++)
		res = qccl_group_fail(
			qccl_make_communicator(&comm[i], n, &id, i, device ? device[i] : i, NULL));
	end = ncclGroupEnd();
	return res ? res : end;
}

/* What a rank tells the others when a communicator is split. */
struct wish {
	int color, key;
};

/* Its index among those with its color. */
static int rank_within_color(const struct wish *w, int n, int me, int *count, int *leader)
{
	int rank = 0;

	*count = 0;
	*leader = me;
	for (int i = 0; i < n; i++) {
		if (w[i].color != w[me].color)
			continue;
		++*count;
		if (w[i].key < w[me].key || (w[i].key == w[me].key && i < me))
			rank++;
		if (w[i].key < w[*leader].key || (w[i].key == w[*leader].key && i < *leader))
			*leader = i;
	}
	return rank;
}

static ncclResult_t split_communicator(ncclComm_t c, int color, int key, ncclComm_t *to,
				       const ncclConfig_t *config)
{
	struct wish mine = {color, key}, all[QCCL_MAX_RANKS];
	ncclUniqueId id, ids[QCCL_MAX_RANKS];
	int rank, ranks, leader;
	ncclResult_t res, told;

	*to = NULL;
	res = qccl_tell(&c->meeting, &mine, all, sizeof(mine));
	if (res)
		return res;
	rank = rank_within_color(all, c->ranks, c->rank, &ranks, &leader);
	memset(&id, 0, sizeof(id));
	if (leader == c->rank && color != NCCL_SPLIT_NOCOLOR)
		res = qccl_id_new(&id, c->wide);
	told = qccl_tell(&c->meeting, &id, ids, sizeof(id));
	if (res || told)
		return res ? res : told;
	if (color == NCCL_SPLIT_NOCOLOR)
		return ncclSuccess;
	return qccl_make_communicator(to, ranks, &ids[leader], rank, c->device, config);
}

/* In a group, too, it is done at once: the ranks of one process are in threads of their own, or it
 * waits for ever. */
QCCL_PUBLIC ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *to,
				       ncclConfig_t *config)
{
	ncclResult_t res = qccl_check(comm);

	if (!res)
		res = qccl_check_config(config);
	if (!res && (!to || (color < 0 && color != NCCL_SPLIT_NOCOLOR)))
		res = qccl_fail(ncclInvalidArgument,
				"ncclCommSplit: the color is %d, or the pointer is NULL", color);
	return qccl_group_fail(res ? res : split_communicator(comm, color, key, to, config));
}

/* Waits for this rank's launches in streams. False: others may be under way, in graphs or in a
 * stream that is gone. */
static bool wait_streams(ncclComm_t c)
{
	if (c->order[0].launched && cudaStreamSynchronize(c->order[0].last)) {
		(void)cudaGetLastError();
		return false;
	}
	return !c->order[1].launched;
}

static ncclResult_t wait_own(ncclComm_t c)
{
	struct qccl_device d = qccl_use_device(c->device);
	ncclResult_t res = ncclSuccess;

	if (!wait_streams(c))
		res = qccl_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	qccl_use_before(d);
	return res;
}

QCCL_PUBLIC ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	ncclResult_t res = comm ? qccl_check(comm) : ncclSuccess;

	if (!res && comm && comm->revoked)
		res = qccl_fail(ncclInvalidUsage, "the communicator was revoked");
	return res || !comm ? res : wait_own(comm);
}

QCCL_PUBLIC ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	ncclResult_t res;

	if (!comm)
		return ncclSuccess;
	res = qccl_check(comm);
	if (res)
		return res;
	res = wait_own(comm);
	if (comm->far && !comm->revoked)
		qccl_far_finish(comm->far);
	qccl_comm_end(comm);
	return res;
}

bool qccl_stop(struct ncclComm *c)
{
	struct qccl_device d;
	bool done;

	if (c->stop)
		*c->stop = 1;
	if (c->far)
		qccl_far_stop(c->far);
	d = qccl_use_device(c->device);
	done = wait_streams(c);
	qccl_use_before(d);
	return done;
}

QCCL_PUBLIC ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	ncclResult_t res;
	bool done;

	if (!comm)
		return ncclSuccess;
	res = qccl_check(comm);
	if (res)
		return res;
	done = qccl_stop(comm);
	/*
	 * The whole device may wait for another communicator that is to be aborted, too. So if it
	 * is not certain that this one's kernels have ended, its memory stays until the process
	 * ends.
	 */
	if (done)
		qccl_comm_end(comm);
	return ncclSuccess;
}

QCCL_PUBLIC ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
	ncclResult_t res = qccl_check(comm);

	if (!res && !error)
		res = qccl_fail(ncclInvalidArgument, "ncclCommGetAsyncError: the pointer is NULL");
	if (!res)
		*error = qccl_state(comm);
	return res;
}

static ncclResult_t write_comm_number(const struct ncclComm *c, int *to, size_t offset)
{
	ncclResult_t res = qccl_check(c);

	if (!res && !to)
		res = qccl_fail(ncclInvalidArgument, "the pointer is NULL");
	if (!res)
		memcpy(to, (const char *)c + offset, sizeof(*to));
	return res;
}

QCCL_PUBLIC ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
	return write_comm_number(comm, count, offsetof(struct ncclComm, ranks));
}

QCCL_PUBLIC ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
	return write_comm_number(comm, device, offsetof(struct ncclComm, device));
}

QCCL_PUBLIC ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	return write_comm_number(comm, rank, offsetof(struct ncclComm, rank));
}

/*
 * What programs ask about a communicator before they use it from their own kernels. That is not
 * served, and the properties say so. Ranks that are near each other can reach each other's memory:
 * they are one team. A rank that has far ones tells of a team of its own.
 */
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

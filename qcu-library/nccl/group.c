// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Carries out groups. First all communicators are created, each in a thread, because their ranks
 * wait for each other. Then kernels are loaded, because loading may wait for running kernels. Then
 * everything is launched. The collectives of each communicator come in their order, one of each
 * communicator in turn, so that a full queue of launches on one rank does not block the launches of
 * another. The sends and receives of a communicator follow together.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/nccl/group.h"

static __thread struct {
	int depth;
	ncclResult_t failed;
	struct qccl_task *task;
	struct qccl_join *join;
	size_t tasks, joins, room_tasks, room_joins;
} group;

static void forget_group(void)
{
	free(group.task);
	free(group.join);
	memset(&group, 0, sizeof(group));
}

static ncclResult_t append_to_group_list(void **list, size_t *n, size_t *room, const void *one,
					 size_t size)
{
	if (*n == *room) {
		size_t more = *room ? 2 * *room : 8;
		void *p = realloc(*list, more * size);

		if (!p)
			return qccl_fail(ncclSystemError, "no memory");
		*list = p;
		*room = more;
	}
	memcpy((char *)*list + *n * size, one, size);
	++*n;
	return ncclSuccess;
}

/* Communicators that are not made after all. */
static void drop_joins(void)
{
	for (size_t i = 0; i < group.joins; i++) {
		*group.join[i].to = NULL;
		qccl_comm_end(group.join[i].comm);
	}
	group.joins = 0;
}

static void *join_one(void *arg)
{
	struct qccl_join *j = arg;

	(void)qccl_comm_join(j->comm, &j->id, j->rank, j->ranks);
	return NULL;
}

static ncclResult_t join_all(void)
{
	pthread_t *thread = calloc(group.joins, sizeof(*thread));
	bool *started = calloc(group.joins, sizeof(*started));
	ncclResult_t res = ncclSuccess;

	if (!thread || !started)
		res = qccl_fail(ncclSystemError, "no memory");
	/* The first one runs here: for one alone no thread is made. */
	for (size_t i = 1; !res && i < group.joins; i++) {
		started[i] = !pthread_create(&thread[i], NULL, join_one, &group.join[i]);
		if (!started[i])
			res = qccl_fail(ncclSystemError, "cannot make a thread");
	}
	if (!res)
		join_one(&group.join[0]);
	for (size_t i = 0; i < group.joins; i++) {
		struct qccl_join *j = &group.join[i];

		if (started && started[i])
			pthread_join(thread[i], NULL);
		if (!res && j->comm->state)
			res = qccl_fail(j->comm->state, "rank %d could not join: %s", j->rank,
					ncclGetErrorString(j->comm->state));
	}
	free(thread);
	free(started);
	return res;
}

static bool is_transfer(const struct qccl_task *t)
{
	return t->call == QCCL_CALL_SEND || t->call == QCCL_CALL_RECEIVE;
}

/* The n-th task of this communicator that is a transfer, or is none. */
static struct qccl_task *find_nth_task(const struct ncclComm *c, bool transfer, size_t n)
{
	for (size_t i = 0; i < group.tasks; i++)
		if (group.task[i].comm == c && is_transfer(&group.task[i]) == transfer && !n--)
			return &group.task[i];
	return NULL;
}

/* Whether no task before this one has its communicator. */
static bool is_first(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (group.task[k].comm == group.task[i].comm)
			return false;
	return true;
}

static ncclResult_t launch_collectives(void)
{
	ncclResult_t res = ncclSuccess;
	size_t made = 1;

	for (size_t turn = 0; !res && made; turn++) {
		made = 0;
		for (size_t i = 0; !res && i < group.tasks; i++) {
			const struct qccl_task *t =
				is_first(i) ? find_nth_task(group.task[i].comm, false, turn) : NULL;

			if (!t)
				continue;
			made++;
			res = qccl_launch(t);
		}
	}
	return res;
}

static ncclResult_t launch_transfers(void)
{
	struct qccl_task *list = calloc(group.tasks, sizeof(*list)), *t;
	ncclResult_t res = ncclSuccess;

	if (!list)
		return qccl_fail(ncclSystemError, "no memory");
	for (size_t i = 0; !res && i < group.tasks; i++) {
		size_t n = 0;

		while (is_first(i) && (t = find_nth_task(group.task[i].comm, true, n)))
			list[n++] = *t;
		if (n)
			res = qccl_launch_transfers(list, n);
	}
	free(list);
	return res;
}

static ncclResult_t carry_out(void)
{
	ncclResult_t res = group.failed;

	if (group.joins && !res)
		res = join_all();
	if (res)
		drop_joins();
	for (size_t i = 0; !res && i < group.tasks; i++)
		res = qccl_load(&group.task[i]);
	if (!res && group.tasks)
		res = launch_collectives();
	if (!res && group.tasks)
		res = launch_transfers();
	forget_group();
	return res;
}

ncclResult_t qccl_group_fail(ncclResult_t result)
{
	if (group.depth && result && !group.failed)
		group.failed = result;
	return result;
}

ncclResult_t qccl_group_task(const struct qccl_task *t)
{
	ncclResult_t res = append_to_group_list((void **)&group.task, &group.tasks,
						&group.room_tasks, t, sizeof(*t));

	if (group.depth)
		return qccl_group_fail(res);
	group.failed = res;
	return carry_out();
}

ncclResult_t qccl_group_join(const struct qccl_join *j)
{
	ncclResult_t res = append_to_group_list((void **)&group.join, &group.joins,
						&group.room_joins, j, sizeof(*j));

	if (group.depth)
		return qccl_group_fail(res);
	group.failed = res;
	return carry_out();
}

QCCL_PUBLIC ncclResult_t ncclGroupStart(void)
{
	group.depth++;
	return ncclSuccess;
}

QCCL_PUBLIC ncclResult_t ncclGroupEnd(void)
{
	if (!group.depth)
		return qccl_fail(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
	if (--group.depth)
		return ncclSuccess;
	return carry_out();
}

/* What the group would cost, nobody can tell here. */
QCCL_PUBLIC ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
	ncclResult_t res;

	if (!group.depth)
		return qccl_fail(ncclInvalidUsage, "ncclGroupSimulateEnd without ncclGroupStart");
	if (--group.depth)
		return ncclSuccess;
	res = group.failed;
	drop_joins();
	forget_group();
	if (!res && info)
		info->estimatedTime = 0;
	return res;
}

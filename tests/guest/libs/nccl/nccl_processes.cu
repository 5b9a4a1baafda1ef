// SPDX-License-Identifier: GPL-2.0-or-later
/* One process for each GPU: collectives, a second communicator beside the first one, and a split one. */
#include "collectives.h"
#include "processes.h"

#define ROOM (1 << 20)

/* Ranks with an even number, in reverse order, and no communicator for the others. */
static void split(struct team *t)
{
	int rank = t->member[0].rank, count, mine;
	struct team half = *t;

	NC(ncclCommSplit(t->member[0].comm, rank % 2 ? NCCL_SPLIT_NOCOLOR : 7, -rank, &half.member[0].comm, NULL));
	if (rank % 2) {
		REQUIRE(!half.member[0].comm, "a communicator without a color");
		return;
	}
	half.ranks = (t->ranks + 1) / 2;
	half.member[0].rank = half.ranks - 1 - rank / 2;
	NC(ncclCommCount(half.member[0].comm, &count));
	NC(ncclCommUserRank(half.member[0].comm, &mine));
	REQUIRE(count == half.ranks && mine == half.member[0].rank, "rank %d of %d, and not %d of %d", mine, count,
		half.member[0].rank, half.ranks);
	some_collectives(&half);
	NC(ncclCommDestroy(half.member[0].comm));
}

/* All ranks again, in the same order. */
static void again(struct team *t)
{
	struct team same = *t;

	NC(ncclCommSplit(t->member[0].comm, 0, 0, &same.member[0].comm, NULL));
	some_collectives(&same);
	NC(ncclCommDestroy(same.member[0].comm));
}

static ncclResult_t settled(ncclComm_t comm, ncclResult_t first)
{
	ncclResult_t state = first;

	while (state == ncclInProgress)
		NC(ncclCommGetAsyncError(comm, &state));
	return state;
}

/* A communicator whose configuration says that its calls must not wait. */
static void without_waiting(const struct team *t)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm;
	ncclResult_t res;
	int count;

	config.blocking = 0;
	res = ncclCommSplit(t->member[0].comm, 0, 0, &comm, &config);
	NC(settled(t->member[0].comm, res));
	NC(settled(comm, ncclInProgress));
	NC(ncclCommCount(comm, &count));
	REQUIRE(count == t->ranks, "%d ranks", count);
	res = ncclCommFinalize(comm);
	NC(settled(comm, res));
	NC(ncclCommDestroy(comm));
}

static int child(const struct family *f)
{
	ncclUniqueId id = share_id(f), second;
	struct team t = join_team(f, &id, ROOM), u;

	some_collectives(&t);
	second = share_id(f);
	u = join_team(f, &second, ROOM);
	some_collectives(&u);
	some_collectives(&t);
	end_team(&u);
	split(&t);
	again(&t);
	without_waiting(&t);
	some_collectives(&t);
	end_team(&t);
	return 0;
}

int main(void)
{
	struct family f;

	if (fork_family(&f, count_in_child()))
		return child(&f);
	end_family(&f, 0);
	return verified("collectives of %d processes", f.ranks);
}

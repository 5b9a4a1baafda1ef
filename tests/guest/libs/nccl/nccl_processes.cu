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

/* All ranks again, in the same order: the configuration wants no waiting. */
static void again(struct team *t)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct team same = *t;
	ncclResult_t state;

	config.blocking = 0;
	state = ncclCommSplit(t->member[0].comm, 0, 0, &same.member[0].comm, &config);
	REQUIRE(state == ncclSuccess || state == ncclInProgress, "ncclCommSplit gave %d", (int)state);
	do
		NC(ncclCommGetAsyncError(same.member[0].comm, &state));
	while (state == ncclInProgress);
	NC(state);
	some_collectives(&same);
	NC(ncclCommFinalize(same.member[0].comm));
	do
		NC(ncclCommGetAsyncError(same.member[0].comm, &state));
	while (state == ncclInProgress);
	NC(ncclCommDestroy(same.member[0].comm));
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

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a communicator says of itself: its properties, how much memory it has, its teams of ranks, and the memory
 * of its windows. Wrong calls first.
 */
#include <dlfcn.h>

#include "collectives.h"
#include "ours.h"

#define ROOM (1 << 20)

/* Older headers and libraries do not have these. The structure may have more members behind. */
struct properties {
	size_t size;
	unsigned int magic, version;
	int rank, ranks, device, nvml;
	bool for_kernels, multimem;
	int network, teams;
	char more[256];
};
struct ranks_of_team {
	int ranks, rank, stride;
};
static ncclResult_t (*query)(ncclComm_t, void *);
static ncclResult_t (*memory)(ncclComm_t, int, uint64_t *);
static ncclResult_t (*memory_of_window)(ncclComm_t, ncclWindow_t, void **);
static struct ranks_of_team (*world)(ncclComm_t), (*near_ranks)(ncclComm_t), (*rail)(ncclComm_t);
static int (*to_world)(ncclComm_t, struct ranks_of_team, int), (*to_near)(ncclComm_t, struct ranks_of_team, int);

static bool find_functions(void)
{
	*(void **)&query = dlsym(RTLD_DEFAULT, "ncclCommQueryProperties");
	*(void **)&memory = dlsym(RTLD_DEFAULT, "ncclCommMemStats");
	*(void **)&memory_of_window = dlsym(RTLD_DEFAULT, "ncclWinGetUserPtr");
	*(void **)&world = dlsym(RTLD_DEFAULT, "ncclTeamWorld");
	*(void **)&near_ranks = dlsym(RTLD_DEFAULT, "ncclTeamLsa");
	*(void **)&rail = dlsym(RTLD_DEFAULT, "ncclTeamRail");
	*(void **)&to_world = dlsym(RTLD_DEFAULT, "ncclTeamRankToWorld");
	*(void **)&to_near = dlsym(RTLD_DEFAULT, "ncclTeamRankToLsa");
	return query && memory && memory_of_window && world && near_ranks && rail && to_world && to_near;
}

static struct properties begin_properties(size_t size)
{
	struct properties p = {size, 0xcafebeef, NCCL_VERSION_CODE};

	memset(p.more, GUARD_BYTE, sizeof(p.more));
	return p;
}

static void wrong(struct team *t)
{
	ncclComm_t comm = t->member[0].comm;
	struct properties p = begin_properties(sizeof(p));
	uint64_t bytes;
	void *at;

	NC_IS(query(NULL, &p), ncclInvalidArgument);
	NC_IS(query(comm, NULL), ncclInvalidArgument);
	p.magic++;
	NC_IS(query(comm, &p), ncclInvalidArgument);
	NC_IS(memory(NULL, 0, &bytes), ncclInvalidArgument);
	NC_IS(memory(comm, 0, NULL), ncclInvalidArgument);
	NC_IS(memory(comm, -1, &bytes), ncclInvalidArgument);
	NC_IS(memory(comm, 4, &bytes), ncclInvalidArgument);
	NC_IS(memory_of_window(comm, NULL, &at), ncclInvalidArgument);
	if (!is_ours("cudaMalloc"))
		return;
	p = begin_properties(offsetof(struct properties, teams) - 1);
	NC_IS(query(comm, &p), ncclInvalidArgument);
	REQUIRE(!world(NULL).ranks && !near_ranks(NULL).ranks && !rail(NULL).ranks, "a team of nothing");
	REQUIRE(to_world(NULL, {1, 0, 1}, 0) == -1 && to_near(NULL, {1, 0, 1}, 0) == -1, "a rank of nothing");
}

static void properties(const struct team *t, const struct member *m)
{
	struct properties p = begin_properties(offsetof(struct properties, teams)), all = begin_properties(152);
	uint64_t total, persist, suspended;

	NC(query(m->comm, &p));
	REQUIRE(p.rank == m->rank && p.ranks == t->ranks && p.device == m->device, "rank %d of %d, GPU %d", p.rank,
		p.ranks, p.device);
	/* Of an older program: nothing is written behind its structure. */
	for (char c : p.more)
		REQUIRE(c == GUARD_BYTE, "more than the program's structure is written");
	NC(query(m->comm, &all));
	REQUIRE(all.teams >= 1 && t->ranks % all.teams == 0, "%d teams", all.teams);
	for (size_t i = 152 - offsetof(struct properties, more); i < sizeof(all.more); i++)
		REQUIRE(all.more[i] == GUARD_BYTE, "more than the structure is written");
	NC(memory(m->comm, 3, &total));
	NC(memory(m->comm, 2, &persist));
	NC(memory(m->comm, 1, &suspended));
	REQUIRE(total >= persist && !suspended, "%llu bytes of %llu", (unsigned long long)persist,
		(unsigned long long)total);
	if (is_ours("cudaMalloc"))
		REQUIRE(total > 0 && !p.for_kernels && !p.multimem && all.teams == (getenv("NCCL_P2P_DISABLE") ? t->ranks : 1), "%llu bytes, %d teams",
			(unsigned long long)total, all.teams);
}

static void teams(const struct team *t, const struct member *m)
{
	const struct ranks_of_team w = world(m->comm), l = near_ranks(m->comm), r = rail(m->comm);

	REQUIRE(w.ranks == t->ranks && w.rank == m->rank && w.stride == 1, "rank %d of %d", w.rank, w.ranks);
	REQUIRE(l.ranks * r.ranks == t->ranks && r.stride == l.ranks && l.rank + r.rank * l.ranks == m->rank,
		"teams of %d and %d", l.ranks, r.ranks);
	for (int i = 0; i < t->ranks; i++)
		REQUIRE(to_world(m->comm, w, i) == i, "rank %d is %d", i, to_world(m->comm, w, i));
	for (int i = 0; i < l.ranks; i++)
		REQUIRE(to_near(m->comm, l, i) == i && to_world(m->comm, l, i) == i + r.rank * l.ranks,
			"rank %d of the team is %d", i, to_world(m->comm, l, i));
}

int main(void)
{
	struct team t = whole_team(ROOM);
	ncclWindow_t window;
	void *at = NULL;

	if (!find_functions()) {
		printf("this library has no such functions\n");
		return 77;
	}
	wrong(&t);
	for (int i = 0; i < t.count; i++) {
		properties(&t, &t.member[i]);
		teams(&t, &t.member[i]);
	}
	if (is_ours("cudaMalloc")) {
		NC(ncclCommWindowRegister(t.member[0].comm, t.member[0].in, ROOM, &window, 0));
		NC(memory_of_window(t.member[0].comm, window, &at));
		REQUIRE(at == t.member[0].in, "another memory, %p", at);
		NC(ncclCommWindowDeregister(t.member[0].comm, window));
	}
	some_collectives(&t);
	end_team(&t);
	return verified("properties of %d ranks", t.ranks);
}

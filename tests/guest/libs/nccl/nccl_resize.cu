// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Communicators with fewer and with more ranks than another one, one process for each GPU: wrong calls first,
 * then without a rank that lives, and back to all; a communicator that is revoked while a kernel waits; and
 * without a rank that was killed.
 */
#include <dlfcn.h>

#include "collectives.h"
#include "processes.h"

#define ROOM (1 << 20)

/* Older headers and libraries do not have these. */
#ifndef NCCL_SHRINK_ABORT
#define NCCL_SHRINK_DEFAULT 0
#define NCCL_SHRINK_ABORT   1
#endif
#ifndef NCCL_REVOKE_DEFAULT
#define NCCL_REVOKE_DEFAULT 0
#endif
static ncclResult_t (*shrink)(ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int);
static ncclResult_t (*end_work)(ncclComm_t, int);
static ncclResult_t (*id_of)(ncclComm_t, ncclUniqueId *);
static ncclResult_t (*grow)(ncclComm_t, int, const ncclUniqueId *, int, ncclComm_t *, ncclConfig_t *);

static bool find_functions(void)
{
	*(void **)&shrink = dlsym(RTLD_DEFAULT, "ncclCommShrink");
	*(void **)&end_work = dlsym(RTLD_DEFAULT, "ncclCommRevoke");
	*(void **)&id_of = dlsym(RTLD_DEFAULT, "ncclCommGetUniqueId");
	*(void **)&grow = dlsym(RTLD_DEFAULT, "ncclCommGrow");
	return shrink && end_work && id_of && grow;
}

static void wrong(struct team *t)
{
	ncclComm_t comm = t->member[0].comm, to;
	int last = t->ranks - 1, me = t->member[0].rank, twice[] = {last, last}, none = -1, many = t->ranks;
	ncclUniqueId id;

	NC_IS(shrink(NULL, &last, 1, &to, NULL, NCCL_SHRINK_DEFAULT), ncclInvalidArgument);
	NC_IS(shrink(comm, NULL, 1, &to, NULL, NCCL_SHRINK_DEFAULT), ncclInvalidArgument);
	NC_IS(shrink(comm, &last, 1, NULL, NULL, NCCL_SHRINK_DEFAULT), ncclInvalidArgument);
	NC_IS(shrink(comm, &last, 0, &to, NULL, NCCL_SHRINK_DEFAULT), ncclInvalidArgument);
	NC_IS(shrink(comm, &none, 1, &to, NULL, NCCL_SHRINK_DEFAULT), ncclInvalidArgument);
	NC_IS(shrink(comm, &many, 1, &to, NULL, NCCL_SHRINK_DEFAULT), ncclInvalidArgument);
	NC_IS(shrink(comm, twice, 2, &to, NULL, NCCL_SHRINK_DEFAULT), ncclInvalidArgument);
	NC_IS(shrink(comm, &me, 1, &to, NULL, NCCL_SHRINK_DEFAULT), ncclInvalidArgument);
	NC_IS(shrink(comm, &last, 1, &to, NULL, 4), ncclInvalidArgument);
	NC_IS(end_work(NULL, NCCL_REVOKE_DEFAULT), ncclInvalidArgument);
	NC_IS(end_work(comm, 1), ncclInvalidArgument);
	NC_IS(id_of(NULL, &id), ncclInvalidArgument);
	NC_IS(id_of(comm, NULL), ncclInvalidArgument);
	NC_IS(grow(NULL, t->ranks, NULL, 0, &to, NULL), ncclInvalidArgument);
	NC_IS(grow(comm, t->ranks, NULL, -1, &to, NULL), ncclInvalidArgument);
	NC_IS(grow(comm, t->ranks + 1, NULL, 0, &to, NULL), ncclInvalidArgument);
}

/* The team without its last rank. */
static struct team fewer(const struct team *t, int flags)
{
	int last = t->ranks - 1, count, mine;
	struct team few = *t;

	few.ranks = last;
	NC(shrink(t->member[0].comm, &last, 1, &few.member[0].comm, NULL, flags));
	NC(ncclCommCount(few.member[0].comm, &count));
	NC(ncclCommUserRank(few.member[0].comm, &mine));
	REQUIRE(count == last && mine == t->member[0].rank, "rank %d of %d", mine, count);
	some_collectives(&few);
	return few;
}

/* The last rank joins those that have gone on without it. Its id comes from the first one. */
static void more(const struct family *f, struct team *t, const struct team *few)
{
	struct team all = *t;
	ncclUniqueId id;
	int last = t->ranks - 1;

	if (!f->rank) {
		NC(id_of(few->member[0].comm, &id));
		tell_rank(f, last, &id, sizeof(id));
		NC(grow(few->member[0].comm, t->ranks, &id, -1, &all.member[0].comm, NULL));
	} else if (f->rank == last) {
		hear_rank(f, &id, sizeof(id));
		NC(grow(NULL, t->ranks, &id, last, &all.member[0].comm, NULL));
	} else {
		NC(grow(few->member[0].comm, t->ranks, NULL, -1, &all.member[0].comm, NULL));
	}
	some_collectives(&all);
	NC(ncclCommDestroy(all.member[0].comm));
}

/* The first n ranks wait for each other. */
static void meet(const struct family *f, int n)
{
	char c = 0;

	for (int r = 0; r < n; r++)
		if (r != f->rank)
			tell_rank(f, r, &c, 1);
	for (int i = 0; i < n - 1; i++)
		hear_rank(f, &c, 1);
}

/* The last rank never makes this call, so that the others' kernels wait. */
static void revoked(const struct family *f, struct team *t)
{
	struct member *m = &t->member[0];
	ncclResult_t state;

	NC(ncclAllReduce(m->in, m->out, 1000, ncclFloat32, ncclSum, m->comm, m->stream));
	meet(f, f->ranks - 1);
	NC(end_work(m->comm, NCCL_REVOKE_DEFAULT));
	CHECK(cudaStreamSynchronize(m->stream));
	NC(ncclCommGetAsyncError(m->comm, &state));
	NC_IS(state, ncclSuccess);
	NC_IS(ncclAllReduce(m->in, m->out, 1000, ncclFloat32, ncclSum, m->comm, m->stream), ncclInvalidUsage);
	NC_IS(ncclCommFinalize(m->comm), ncclInvalidUsage);
}

static int child(const struct family *f)
{
	ncclUniqueId id = share_id(f), second;
	struct team t = join_team(f, &id, ROOM), few, u;
	bool last = f->rank == f->ranks - 1;
	ncclResult_t res;

	some_collectives(&t);
	wrong(&t);
	if (!last)
		few = fewer(&t, NCCL_SHRINK_DEFAULT);
	more(f, &t, &few);
	/* The old ones go on. */
	some_collectives(&t);
	second = share_id(f);
	u = join_team(f, &second, ROOM);
	if (!last) {
		NC(ncclCommDestroy(few.member[0].comm));
		revoked(f, &u);
		few = fewer(&u, NCCL_SHRINK_DEFAULT);
		NC(ncclCommDestroy(few.member[0].comm));
		NC(ncclCommDestroy(u.member[0].comm));
		tell_rank(f, f->ranks - 1, "", 1);
	} else {
		char c;

		for (int i = 0; i < f->ranks - 1; i++)
			hear_rank(f, &c, 1);
		NC(ncclCommAbort(u.member[0].comm));
	}
	some_collectives(&t);
	/* A rank that ends its work takes with it what others have not received. */
	meet(f, f->ranks);
	if (last) {
		raise(SIGKILL);
	}
	/* Kernels that wait for the dead, unless that is known already. */
	res = ncclAllReduce(t.member[0].in, t.member[0].out, 1000, ncclFloat32, ncclSum, t.member[0].comm,
			    t.member[0].stream);
	REQUIRE(res == ncclSuccess || res == ncclRemoteError, "result %d", (int)res);
	few = fewer(&t, NCCL_SHRINK_ABORT);
	NC(ncclCommDestroy(few.member[0].comm));
	NC(ncclCommAbort(t.member[0].comm));
	return 0;
}

int main(void)
{
	struct family f;
	int ranks = count_in_child();

	if (ranks < 2 || !find_functions()) {
		printf(ranks < 2 ? "one GPU: nothing to leave out\n" : "an older NCCL\n");
		return 77;
	}
	if (fork_family(&f, ranks))
		return child(&f);
	end_family(&f, SIGKILL);
	return verified("communicators of %d processes that shrink and grow", f.ranks);
}

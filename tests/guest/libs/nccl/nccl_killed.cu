// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A rank's process is killed. The others, whose operation waits for it, abort it, and use their GPUs again. If the
 * ranks have TCP connections, they hear of it, and nothing waits any more.
 */
#include "collectives.h"
#include "processes.h"

#define ROOM (1 << 20)

/* The operation has ended, and those that come are refused. */
static void heard(struct member *m)
{
	ncclResult_t state = ncclSuccess;

	while (state == ncclSuccess)
		NC(ncclCommGetAsyncError(m->comm, &state));
	REQUIRE(state == ncclRemoteError, "state %d", (int)state);
	CHECK(cudaStreamSynchronize(m->stream));
	NC_IS(ncclAllReduce(m->in, m->out, 1, ncclFloat32, ncclSum, m->comm, m->stream), ncclRemoteError);
}

static int child(struct family *f, bool tcp)
{
	ncclUniqueId id = share_id(f);
	struct team t = join_team(f, &id, ROOM);
	struct member *m = &t.member[0];
	char ready, dead;

	some_collectives(&t);
	if (f->rank == f->ranks - 1) {
		for (int r = 0; r < f->ranks - 1; r++)
			hear_rank(f, &ready, 1);
		raise(SIGKILL);
		return 1;
	}
	NC(ncclAllReduce(m->in, m->out, ROOM / 4, ncclFloat32, ncclSum, m->comm, m->stream));
	tell_rank(f, f->ranks - 1, "", 1);
	hear_rank(f, &dead, 1); /* the parent has seen its end */
	if (tcp)
		heard(m);
	else
		EXPECT(cudaStreamQuery(m->stream), cudaErrorNotReady);
	NC(ncclCommAbort(m->comm));
	CHECK(cudaStreamSynchronize(m->stream));

	/* Those that are left make a new one. */
	f->ranks--;
	id = share_id(f);
	t = join_team(f, &id, ROOM);
	some_collectives(&t);
	end_team(&t);
	return 0;
}

int main(void)
{
	const char *tcp = getenv("NCCL_P2P_DISABLE");
	int ranks = count_in_child(), status;
	struct family f;

	if (ranks < 2) {
		printf("there is only one GPU\n");
		return 77;
	}
	if (fork_family(&f, ranks))
		return child(&f, tcp && strtol(tcp, NULL, 10) == 1);
	REQUIRE(waitpid(f.pid[ranks - 1], &status, 0) == f.pid[ranks - 1], "waitpid");
	REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", status);
	/* Rank 0 last: only then does it tell the others an id. */
	for (int r = ranks - 2; r >= 0; r--)
		tell_rank(&f, r, "", 1);
	f.ranks--;
	end_family(&f, 0);
	return verified("%d ranks go on after the death of another one", f.ranks);
}

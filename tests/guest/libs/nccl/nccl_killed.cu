// SPDX-License-Identifier: GPL-2.0-or-later
/* A rank's process is killed. The others, whose operation waits for it, abort it, and use their GPUs again. */
#include "collectives.h"
#include "processes.h"

#define ROOM (1 << 20)

static int child(struct family *f)
{
	ncclUniqueId id = share_id(f);
	struct team t = join_team(f, &id, ROOM);
	struct member *m = &t.member[0];
	char dead;

	some_collectives(&t);
	if (f->rank == f->ranks - 1) {
		raise(SIGKILL);
		return 1;
	}
	hear_rank(f, &dead, 1); /* the parent has seen its end */
	NC(ncclAllReduce(m->in, m->out, ROOM / 4, ncclFloat32, ncclSum, m->comm, m->stream));
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
	int ranks = count_in_child(), status;
	struct family f;

	if (ranks < 2) {
		printf("there is only one GPU\n");
		return 77;
	}
	if (fork_family(&f, ranks))
		return child(&f);
	REQUIRE(waitpid(f.pid[ranks - 1], &status, 0) == f.pid[ranks - 1], "waitpid");
	REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %x", status);
	for (int r = 0; r < ranks - 1; r++)
		tell_rank(&f, r, "", 1);
	f.ranks--;
	end_family(&f, 0);
	return verified("%d ranks go on after the death of another one", f.ranks);
}

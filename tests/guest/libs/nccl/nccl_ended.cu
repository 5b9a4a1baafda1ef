// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A rank's process sends, and ends without an end of its communicator. What it has sent arrives all the same, although
 * the other one begins to receive only then. NVIDIA's library does not promise this.
 */
#include "collectives.h"
#include "ours.h"
#include "processes.h"

#define COUNT 200000

static int child(struct family *f)
{
	ncclUniqueId id = share_id(f);
	struct team t = join_team(f, &id, COUNT);
	struct member *m = &t.member[0];
	char *host = (char *)malloc(COUNT), ended;

	fill_in(&t, ncclInt8, COUNT, 0, 1);
	if (!f->rank) {
		NC(ncclSend(m->in + GUARD, COUNT, ncclInt8, 1, m->comm, m->stream));
		wait_all(&t);
		return 0;
	}
	hear_rank(f, &ended, 1);
	NC(ncclRecv(m->out + GUARD, COUNT, ncclInt8, 0, m->comm, m->stream));
	wait_all(&t);
	CHECK(cudaMemcpy(host, m->out + GUARD, COUNT, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < COUNT; i++)
		REQUIRE(get(host, ncclInt8, i) == element(0, i), "element %zu", i);
	free(host);
	end_team(&t);
	return 0;
}

int main(void)
{
	struct family f;
	int status;

	if (!is_ours("cudaMalloc")) {
		printf("this is NVIDIA's library\n");
		return 77;
	}
	if (count_in_child() < 2) {
		printf("there is only one GPU\n");
		return 77;
	}
	if (fork_family(&f, 2))
		return child(&f);
	REQUIRE(waitpid(f.pid[0], &status, 0) == f.pid[0] && !status, "rank 0: status %x", status);
	tell_rank(&f, 1, "", 1);
	REQUIRE(waitpid(f.pid[1], &status, 0) == f.pid[1] && !status, "rank 1: status %x", status);
	return verified("%d bytes of a process that has ended", COUNT);
}

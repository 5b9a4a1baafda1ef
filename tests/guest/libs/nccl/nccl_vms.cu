// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One communicator of several VMs, with a process for each GPU: collectives, transfers, graphs and splits; with
 * "few", only some collectives, or with "killed", a rank whose process is killed. The VMs share a folder, in which
 * they find the id.
 *
 *	nccl_vms FILE VM VMS [few | killed]
 */
#include "collectives.h"
#include "processes.h"

#define ROOM (1 << 21) /* four ranks gather 297 KB each */

struct place {
	const char *file;
	int vm, vms, gpus;
};

static bool has_file(const struct place *p, const char *suffix, int number, void *to, size_t size)
{
	char name[300];
	FILE *f;
	bool whole;

	snprintf(name, sizeof(name), "%s.%s.%d", p->file, suffix, number);
	f = fopen(name, "rb");
	if (!f)
		return false;
	whole = fread(to, 1, size, f) == size;
	fclose(f);
	return whole;
}

static void wait_file(const struct place *p, const char *suffix, int number, void *to, size_t size)
{
	while (!has_file(p, suffix, number, to, size))
		usleep(10000);
}

static void write_file(const struct place *p, const char *suffix, int number, const void *what, size_t size)
{
	char name[300];
	FILE *f;

	snprintf(name, sizeof(name), "%s.%s.%d", p->file, suffix, number);
	f = fopen(name, "wb");
	REQUIRE(f && fwrite(what, 1, size, f) == size && !fclose(f), "cannot write %s", name);
}

static struct team join(const struct place *p, const char *name, int device, int ranks)
{
	int rank = p->vm * p->gpus + device;
	ncclUniqueId id;
	struct team t;

	if (!rank) {
		NC(ncclGetUniqueId(&id));
		write_file(p, name, 0, &id, sizeof(id));
	} else {
		wait_file(p, name, 0, &id, sizeof(id));
	}
	memset(&t, 0, sizeof(t));
	t.ranks = ranks;
	t.count = 1;
	t.member[0].rank = rank;
	t.member[0].device = device;
	CHECK(cudaSetDevice(device));
	NC(ncclCommInitRank(&t.member[0].comm, ranks, id, rank));
	equip(&t, ROOM);
	return t;
}

static double want_sum(const struct team *t, const struct member *m, size_t i, const void *arg)
{
	const struct reduction sum = {ncclSum, 1, 1, false};

	(void)m;
	(void)arg;
	return reduced(t, i, &sum);
}

/* A captured all-reduce, replayed. */
static void graph(struct team *t)
{
	struct member *m = &t->member[0];
	const size_t count = 5000;
	cudaGraphExec_t exec;
	cudaGraph_t g;

	CHECK(cudaStreamBeginCapture(m->stream, cudaStreamCaptureModeThreadLocal));
	NC(ncclAllReduce(m->in + GUARD, m->out + GUARD, count, ncclFloat32, ncclSum, m->comm, m->stream));
	CHECK(cudaStreamEndCapture(m->stream, &g));
	CHECK(cudaGraphInstantiate(&exec, g, 0));
	for (int round = 0; round < 3; round++) {
		fill_in(t, ncclFloat32, count, 0, 1);
		CHECK(cudaGraphLaunch(exec, m->stream));
		wait_all(t);
		compare(t, false, ncclFloat32, count, 0, want_sum, NULL, "a graph");
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(g));
}

static void all_kinds(struct team *t)
{
	const struct reduction sum = {ncclSum, 1, 1, false};

	some_collectives(t);
	all_reduce(t, ncclFloat32, ROOM / 8, 0, true, &sum);
	reduce_to(t, t->ranks - 1, ncclBfloat16, ROOM / 16, 2, &sum);
#if NCCL_VERSION_CODE >= 22800
	all_to_all(t, ncclInt8, 30001, 1);
	gather_and_scatter(t, t->ranks - 1, ncclInt32, 7777, 0);
#endif
	graph(t);
}

/* Ranks of one color make a team. */
static void split(const struct team *t, int color, int rank, int ranks)
{
	struct team part = *t;

	NC(ncclCommSplit(t->member[0].comm, color, rank, &part.member[0].comm, NULL));
	part.ranks = ranks;
	part.member[0].rank = rank;
	some_collectives(&part);
	NC(ncclCommDestroy(part.member[0].comm));
}

static int child(const struct place *p, int device, bool few)
{
	int ranks = p->vms * p->gpus;
	struct team t = join(p, "id", device, ranks);

	if (few) {
		some_collectives(&t);
	} else {
		all_kinds(&t);
		split(&t, device, p->vm, p->vms); /* one GPU of each VM */
		split(&t, p->vm, device, p->gpus); /* all GPUs of a VM */
		some_collectives(&t);
	}
	end_team(&t);
	return 0;
}

/* The last rank is killed while the operations of the others wait for it. */
static int child_of_killed(const struct place *p, int device)
{
	int ranks = p->vms * p->gpus;
	struct team t = join(p, "id", device, ranks);
	struct member *m = &t.member[0];
	ncclResult_t state = ncclSuccess;
	char c = 0;

	some_collectives(&t);
	if (m->rank == ranks - 1) {
		for (int r = 0; r < ranks - 1; r++)
			wait_file(p, "ready", r, &c, 1);
		raise(SIGKILL);
		return 1;
	}
	NC(ncclAllReduce(m->in, m->out, ROOM / 4, ncclFloat32, ncclSum, m->comm, m->stream));
	EXPECT(cudaStreamQuery(m->stream), cudaErrorNotReady);
	write_file(p, "ready", m->rank, &c, 1);
	while (state == ncclSuccess)
		NC(ncclCommGetAsyncError(m->comm, &state));
	REQUIRE(state == ncclRemoteError, "state %d", (int)state);
	CHECK(cudaStreamSynchronize(m->stream));
	NC(ncclCommAbort(m->comm));

	t = join(p, "again", device, ranks - 1);
	some_collectives(&t);
	end_team(&t);
	return 0;
}

int main(int argc, char **argv)
{
	struct place p;
	bool killed = argc == 5 && !strcmp(argv[4], "killed");
	bool few = argc == 5 && !strcmp(argv[4], "few");
	struct family f;

	if (argc != 4 && !few && !killed) {
		printf("usage: nccl_vms FILE VM VMS [few | killed]\n");
		return 77;
	}
	p.file = argv[1];
	p.vm = atoi(argv[2]);
	p.vms = atoi(argv[3]);
	p.gpus = count_in_child();
	if (p.vms * p.gpus > MOST_RANKS) {
		printf("more than %d ranks\n", MOST_RANKS);
		return 77;
	}
	if (fork_family(&f, p.gpus))
		return killed ? child_of_killed(&p, f.rank) : child(&p, f.rank, few);
	end_family(&f, killed && p.vm == p.vms - 1 ? SIGKILL : 0);
	return verified("%d of %d VMs, with %d GPUs", p.vm, p.vms, p.gpus);
}

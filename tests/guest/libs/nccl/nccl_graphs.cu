// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Collectives and transfers that are captured into graphs, and replayed with other data and between other calls; and
 * one communicator used in several streams.
 */
#include "collectives.h"

#define ROOM   (1 << 18)
#define COUNT  20000
#define ROUNDS 5


static double want_sum(const struct team *t, const struct member *m, size_t i, const void *arg)
{
	const struct reduction sum = {ncclSum, *(const double *)arg, 1, false};

	(void)m;
	return reduced(t, i, &sum);
}

static void launch_all(struct team *t, cudaGraphExec_t *graph)
{
	for (int k = 0; k < t->count; k++) {
		CHECK(cudaSetDevice(t->member[k].device));
		CHECK(cudaGraphLaunch(graph[k], t->member[k].stream));
	}
}

/* `in` is sent to the next rank and back, reduced in between, and then everything once more in another stream. */
static void capture(struct team *t, cudaGraphExec_t *exec)
{
	cudaGraph_t graph[MOST_RANKS];

	for (int k = 0; k < t->count; k++) {
		CHECK(cudaSetDevice(t->member[k].device));
		CHECK(cudaStreamBeginCapture(t->member[k].stream, cudaStreamCaptureModeThreadLocal));
	}
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		NC(ncclAllReduce(m->in + GUARD, m->out + GUARD, COUNT, ncclFloat32, ncclMax, m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	for (int turn = 0; turn < 2; turn++) {
		NC(ncclGroupStart());
		for (int k = 0; k < t->count; k++) {
			struct member *m = &t->member[k];
			int next = (m->rank + 1) % t->ranks, before = (m->rank + t->ranks - 1) % t->ranks;
			char *a = m->in + GUARD, *b = m->out + GUARD;

			NC(ncclSend(turn ? b : a, COUNT, ncclFloat32, turn ? before : next, m->comm, m->stream));
			NC(ncclRecv(turn ? a : b, COUNT, ncclFloat32, turn ? next : before, m->comm, m->stream));
		}
		NC(ncclGroupEnd());
	}
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		NC(ncclAllReduce(m->in + GUARD, m->out + GUARD, COUNT, ncclFloat32, ncclSum, m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	/* While any stream is being captured, no graph can be instantiated. */
	for (int k = 0; k < t->count; k++)
		CHECK(cudaStreamEndCapture(t->member[k].stream, &graph[k]));
	for (int k = 0; k < t->count; k++) {
		CHECK(cudaSetDevice(t->member[k].device));
		CHECK(cudaGraphInstantiate(&exec[k], graph[k], 0));
		CHECK(cudaGraphDestroy(graph[k]));
	}
}

static void graphs(struct team *t)
{
	const struct reduction sum = {ncclSum, 1, 1, false};
	cudaGraphExec_t exec[MOST_RANKS];

	/* Once before, so that nothing is loaded during a capture. */
	all_reduce(t, ncclFloat32, COUNT, 0, false, &sum);
	capture(t, exec);
	for (int round = 1; round <= ROUNDS; round++) {
		double factor = round;

		fill_in(t, ncclFloat32, COUNT, 0, factor);
		launch_all(t, exec);
		wait_all(t);
		compare(t, false, ncclFloat32, COUNT, 0, want_sum, &factor, "a graph");
		if (round % 2)
			all_reduce(t, ncclFloat32, COUNT / round, 0, false, &sum);
	}
	for (int k = 0; k < t->count; k++) {
		CHECK(cudaSetDevice(t->member[k].device));
		CHECK(cudaGraphExecDestroy(exec[k]));
	}
}

/* The second call needs what the first one computes in another stream: the communicator orders them. */
static void streams(struct team *t)
{
	const struct reduction sum = {ncclSum, 1, 1, false};
	cudaStream_t other[MOST_RANKS];
	struct team u = *t;

	for (int k = 0; k < t->count; k++) {
		CHECK(cudaSetDevice(t->member[k].device));
		CHECK(cudaStreamCreateWithFlags(&other[k], cudaStreamNonBlocking));
		u.member[k].stream = other[k];
	}
	for (int round = 0; round < ROUNDS; round++) {
		fill_in(t, ncclFloat32, COUNT, 0, 1);
		/* In two groups: within one their order is not defined. */
		NC(ncclGroupStart());
		for (int k = 0; k < t->count; k++) {
			struct member *m = &t->member[k];

			NC(ncclAllReduce(m->in + GUARD, m->out + GUARD, COUNT, ncclFloat32, ncclMin, m->comm, m->stream));
		}
		NC(ncclGroupEnd());
		NC(ncclGroupStart());
		for (int k = 0; k < t->count; k++) {
			struct member *m = &t->member[k];

			NC(ncclAllReduce(m->in + GUARD, m->out + GUARD, COUNT, ncclFloat32, ncclSum, m->comm, other[k]));
		}
		NC(ncclGroupEnd());
		wait_all(t);
		wait_all(&u);
		compare(&u, false, ncclFloat32, COUNT, 0, want_reduced, &sum, "two streams");
	}
	/* A stream that is gone when the next one is used. */
	for (int k = 0; k < t->count; k++) {
		CHECK(cudaSetDevice(t->member[k].device));
		CHECK(cudaStreamDestroy(other[k]));
	}
	all_reduce(t, ncclFloat32, COUNT, 0, false, &sum);
}

int main(void)
{
	struct team t = whole_team(ROOM);

	graphs(&t);
	streams(&t);
	end_team(&t);
	return verified("graphs and streams with %d GPUs", t.ranks);
}

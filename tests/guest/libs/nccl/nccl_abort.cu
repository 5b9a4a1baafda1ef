// SPDX-License-Identifier: GPL-2.0-or-later
/* Operations that wait for ranks that never call are ended by ncclCommAbort(), and the GPU is as good as before. */
#include "collectives.h"

#define ROOM (1 << 20)

enum operation { ALL_REDUCE, BROADCAST, REDUCE, SEND, RECEIVE, OPERATIONS };

static void start(struct member *m, enum operation o, int other)
{
	switch (o) {
	case ALL_REDUCE:
		NC(ncclAllReduce(m->in, m->out, ROOM / 4, ncclFloat32, ncclSum, m->comm, m->stream));
		break;
	case BROADCAST:
		NC(ncclBroadcast(m->in, m->out, ROOM, ncclInt8, other, m->comm, m->stream));
		break;
	case REDUCE:
		NC(ncclReduce(m->in, m->out, ROOM / 8, ncclFloat64, ncclMax, m->rank, m->comm, m->stream));
		break;
	case SEND: /* more than is ever sent ahead */
		for (int i = 0; i < 64; i++)
			NC(ncclSend(m->in, ROOM, ncclInt8, other, m->comm, m->stream));
		break;
	default:
		NC(ncclRecv(m->out, 1, ncclInt8, other, m->comm, m->stream));
	}
}

/* NVIDIA's library connects two ranks in their first transfer, for which both must be there. */
static void connect_ranks(struct team *t)
{
	struct member *a = &t->member[0], *b = &t->member[t->count - 1];

	NC(ncclGroupStart());
	NC(ncclSend(a->in, 1, ncclInt8, b->rank, a->comm, a->stream));
	NC(ncclRecv(a->out, 1, ncclInt8, b->rank, a->comm, a->stream));
	NC(ncclSend(b->in, 1, ncclInt8, a->rank, b->comm, b->stream));
	NC(ncclRecv(b->out, 1, ncclInt8, a->rank, b->comm, b->stream));
	NC(ncclGroupEnd());
	wait_all(t);
}

/* Rank 0 alone calls. */
static void hang(enum operation o)
{
	struct team t = whole_team(ROOM);
	struct member *m = &t.member[0];

	some_collectives(&t);
	connect_ranks(&t);
	CHECK(cudaSetDevice(m->device));
	start(m, o, t.ranks - 1);
	EXPECT(cudaStreamQuery(m->stream), cudaErrorNotReady);
	for (int k = 0; k < t.count; k++)
		NC(ncclCommAbort(t.member[k].comm));
	for (int k = 0; k < t.count; k++) {
		CHECK(cudaSetDevice(t.member[k].device));
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaFree(t.member[k].in));
		CHECK(cudaFree(t.member[k].out));
		CHECK(cudaStreamDestroy(t.member[k].stream));
	}
}

int main(void)
{
	struct team t;

	if (gpu_count() < 2) {
		printf("there is only one GPU\n");
		return 77;
	}
	for (int o = 0; o < OPERATIONS; o++)
		hang((enum operation)o);
	t = whole_team(ROOM);
	some_collectives(&t);
	end_team(&t);
	return verified("%d operations that wait for ever were aborted", (int)OPERATIONS);
}

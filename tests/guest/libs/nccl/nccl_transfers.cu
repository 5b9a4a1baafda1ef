// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sends and receives: a ring in both directions, sizes that differ between the pairs, several to the same rank, to
 * oneself, more than fit into a launch, and together with collectives in one group.
 */
#include "collectives.h"

#define ROOM (1 << 21)
#define EACH 100 /* transfers from each rank to each in many() */

struct ring {
	int from; /* how many ranks before */
	size_t first;
};

static double want_ring(const struct team *t, const struct member *m, size_t i, const void *arg)
{
	const struct ring *r = (const struct ring *)arg;

	return element((m->rank + r->from) % t->ranks, r->first + i);
}

/* Every rank first sends, and then receives: without the group, all would wait. */
static void ring(struct team *t, int step, size_t count)
{
	struct ring r = {t->ranks - step, 0};

	fill_in(t, ncclFloat32, count, 4, 1);
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		NC(ncclSend(m->in + GUARD + 4, count, ncclFloat32, (m->rank + step) % t->ranks, m->comm, m->stream));
		NC(ncclRecv(m->out + GUARD + 4, count, ncclFloat32, (m->rank + r.from) % t->ranks, m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	wait_all(t);
	compare(t, false, ncclFloat32, count, 4, want_ring, &r, "a ring");
}

/* How many elements rank `from` sends to rank `to`, and where they begin. */
static size_t size_of_pair(int from, int to)
{
	return (size_t)(from * 9000 + to * 70 + 1);
}

static size_t start_of_pair(int from, int to)
{
	size_t at = 0;

	for (int i = 0; i < to; i++)
		at += size_of_pair(from, i);
	return at;
}

static size_t place_of_pair(int from, int to)
{
	size_t at = 0;

	for (int i = 0; i < from; i++)
		at += size_of_pair(i, to);
	return at;
}

static double want_pair(const struct team *t, const struct member *m, size_t i, const void *arg)
{
	int from = 0;

	(void)t;
	(void)arg;
	while (i >= size_of_pair(from, m->rank))
		i -= size_of_pair(from++, m->rank);
	return element(from, start_of_pair(from, m->rank) + i);
}

/* As in an all-to-all with sizes of its own. Receives come first, in another order than the sends. */
static void all_pairs(struct team *t)
{
	size_t most = 40000;

	fill_in(t, ncclInt32, most * 3, 0, 1);
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		for (int r = t->ranks - 1; r >= 0; r--)
			NC(ncclRecv(m->out + GUARD + place_of_pair(r, m->rank) * 4, size_of_pair(r, m->rank),
				    ncclInt32, r, m->comm, m->stream));
		for (int r = 0; r < t->ranks; r++)
			NC(ncclSend(m->in + GUARD + start_of_pair(m->rank, r) * 4, size_of_pair(m->rank, r),
				    ncclInt32, r, m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	wait_all(t);
	for (int k = 0; k < t->count; k++) {
		struct team one = *t;

		one.count = 1;
		one.member[0] = t->member[k];
		compare(&one, false, ncclInt32, place_of_pair(t->ranks, one.member[0].rank), 0, want_pair, NULL,
			"all pairs");
	}
}

static double want_many(const struct team *t, const struct member *m, size_t i, const void *arg)
{
	size_t one = i / EACH % (size_t)t->ranks;

	(void)arg;
	return element((int)one, (size_t)m->rank * EACH + i % EACH);
}

/* Single elements, many to each rank. */
static void many(struct team *t)
{
	fill_in(t, ncclUint8, (size_t)t->ranks * EACH, 0, 1);
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		for (int r = 0; r < t->ranks; r++)
			for (int i = 0; i < EACH; i++) {
				NC(ncclSend(m->in + GUARD + r * EACH + i, 1, ncclUint8, r, m->comm, m->stream));
				NC(ncclRecv(m->out + GUARD + r * EACH + i, 1, ncclUint8, r, m->comm, m->stream));
			}
	}
	NC(ncclGroupEnd());
	wait_all(t);
	compare(t, false, ncclUint8, (size_t)t->ranks * EACH, 0, want_many, NULL, "many");
}

/* Only one way, without a group if each rank has a thread; here both are in one group. */
static void mixed(struct team *t)
{
	const struct reduction sum = {ncclSum, 1, 1, false};
	struct ring r = {t->ranks - 1, 0};
	size_t count = 5000;

	fill_in(t, ncclFloat32, count, 0, 1);
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		NC(ncclSend(m->in + GUARD, count, ncclFloat32, (m->rank + 1) % t->ranks, m->comm, m->stream));
		NC(ncclGroupStart());
		NC(ncclAllReduce(m->in + GUARD, m->in + ROOM / 2, count, ncclFloat32, ncclSum, m->comm, m->stream));
		NC(ncclGroupEnd());
		NC(ncclRecv(m->out + GUARD, count, ncclFloat32, (m->rank + r.from) % t->ranks, m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	wait_all(t);
	compare(t, false, ncclFloat32, count, 0, want_ring, &r, "in a group with an all-reduce");
	for (int k = 0; k < t->count; k++) {
		CHECK(cudaSetDevice(t->member[k].device));
		CHECK(cudaMemset(t->member[k].out, GUARD_BYTE, ROOM + 2 * GUARD));
		CHECK(cudaMemcpy(t->member[k].out + GUARD, t->member[k].in + ROOM / 2, count * 4,
				 cudaMemcpyDeviceToDevice));
		CHECK(cudaDeviceSynchronize());
	}
	compare(t, false, ncclFloat32, count, 0, want_reduced, &sum, "in a group with transfers");
}

int main(void)
{
	struct team t = whole_team(ROOM);

	for (int step = 1; step < t.ranks; step++) {
		ring(&t, step, 1);
		ring(&t, step, 7777);
		ring(&t, step, 400001);
	}
	ring(&t, t.ranks, 100); /* to oneself */
	all_pairs(&t);
	many(&t);
	mixed(&t);
	end_team(&t);
	return verified("sends and receives between %d GPUs", t.ranks);
}

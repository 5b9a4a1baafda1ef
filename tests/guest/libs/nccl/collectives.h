/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each collective of a team, compared with what the CPU computes. */
#ifndef COLLECTIVES_H
#define COLLECTIVES_H

#include "ranks.h"

/* How a reduction is made: the operator, and the same on the CPU. */
struct reduction {
	int op;		/* an ncclRedOp_t, or SCALED */
	double factor;	/* of the elements */
	double scale;	/* of SCALED */
	bool on_device; /* the scale is in the device's memory */
};

#define SCALED 100

static inline double reduced(const struct team *t, size_t i, const struct reduction *r)
{
	double v = 0;

	for (int rank = 0; rank < t->ranks; rank++) {
		double x = element(rank, i) * r->factor * (r->op == SCALED ? r->scale : 1);

		if (!rank)
			v = x;
		else if (r->op == ncclProd)
			v *= x;
		else if (r->op == ncclMax)
			v = v > x ? v : x;
		else if (r->op == ncclMin)
			v = v < x ? v : x;
		else
			v += x;
	}
	return r->op == ncclAvg ? v / t->ranks : v;
}

struct operators {
	ncclRedOp_t op[MOST_RANKS];
	char *scalar[MOST_RANKS];
};

static inline void make_operators(struct team *t, ncclDataType_t type, const struct reduction *r,
				  struct operators *o)
{
	char host[8];

	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		o->op[k] = (ncclRedOp_t)r->op;
		o->scalar[k] = NULL;
		if (r->op != SCALED)
			continue;
		put(host, type, 0, r->scale);
		if (r->on_device) {
			CHECK(cudaSetDevice(m->device));
			CHECK(cudaMalloc(&o->scalar[k], sizeof(host)));
			CHECK(cudaMemcpy(o->scalar[k], host, sizeof(host), cudaMemcpyHostToDevice));
		}
		NC(ncclRedOpCreatePreMulSum(
			&o->op[k], r->on_device ? (void *)o->scalar[k] : host, type,
			r->on_device ? ncclScalarDevice : ncclScalarHostImmediate, m->comm));
	}
}

static inline void end_operators(struct team *t, const struct reduction *r, struct operators *o)
{
	for (int k = 0; k < t->count && r->op == SCALED; k++) {
		NC(ncclRedOpDestroy(o->op[k], t->member[k].comm));
		CHECK(cudaSetDevice(t->member[k].device));
		CHECK(cudaFree(o->scalar[k]));
	}
}

static inline double want_reduced(const struct team *t, const struct member *m, size_t i,
				  const void *arg)
{
	(void)m;
	return reduced(t, i, (const struct reduction *)arg);
}

static inline void all_reduce(struct team *t, ncclDataType_t type, size_t count, size_t offset,
			      bool in_place, const struct reduction *r)
{
	struct operators o;

	make_operators(t, type, r, &o);
	fill_in(t, type, count, offset, r->factor);
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];
		char *in = m->in + GUARD + offset;

		NC(ncclAllReduce(in, in_place ? in : m->out + GUARD + offset, count, type, o.op[k],
				 m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	wait_all(t);
	compare(t, in_place, type, count, offset, want_reduced, r, "ncclAllReduce");
	end_operators(t, r, &o);
}

/* Only the root has a result. */
static inline void reduce_to(struct team *t, int root, ncclDataType_t type, size_t count,
			     size_t offset, const struct reduction *r)
{
	struct team only = *t;
	struct operators o;

	make_operators(t, type, r, &o);
	fill_in(t, type, count, offset, r->factor);
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		NC(ncclReduce(m->in + GUARD + offset,
			      m->rank == root ? m->out + GUARD + offset : NULL, count, type,
			      o.op[k], root, m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	wait_all(t);
	for (int k = 0; k < t->count; k++) {
		only.count = 1;
		only.member[0] = t->member[k];
		if (only.member[0].rank == root)
			compare(&only, false, type, count, offset, want_reduced, r, "ncclReduce");
	}
	end_operators(t, r, &o);
}

struct scattered {
	const struct reduction *r;
	size_t count;
};

static inline double want_scattered(const struct team *t, const struct member *m, size_t i,
				    const void *arg)
{
	const struct scattered *s = (const struct scattered *)arg;

	return reduced(t, (size_t)m->rank * s->count + i, s->r);
}

static inline void reduce_scatter(struct team *t, ncclDataType_t type, size_t count, size_t offset,
				  const struct reduction *r)
{
	struct scattered s = {r, count};
	struct operators o;

	make_operators(t, type, r, &o);
	fill_in(t, type, count * (size_t)t->ranks, offset, r->factor);
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		NC(ncclReduceScatter(m->in + GUARD + offset, m->out + GUARD + offset, count, type,
				     o.op[k], m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	wait_all(t);
	compare(t, false, type, count, offset, want_scattered, &s, "ncclReduceScatter");
	end_operators(t, r, &o);
}

static inline double want_of_rank(const struct team *t, const struct member *m, size_t i,
				  const void *arg)
{
	(void)t;
	(void)m;
	return element(*(const int *)arg, i);
}

static inline void broadcast(struct team *t, int root, ncclDataType_t type, size_t count,
			     size_t offset, bool in_place)
{
	fill_in(t, type, count, offset, 1);
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];
		char *in = m->in + GUARD + offset;

		if (in_place)
			NC(ncclBcast(in, count, type, root, m->comm, m->stream));
		else
			NC(ncclBroadcast(m->rank == root ? in : NULL, m->out + GUARD + offset,
					 count, type, root, m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	wait_all(t);
	compare(t, in_place, type, count, offset, want_of_rank, &root, "ncclBroadcast");
}

static inline double want_gathered(const struct team *t, const struct member *m, size_t i,
				   const void *arg)
{
	size_t count = *(const size_t *)arg;

	(void)t;
	(void)m;
	return element((int)(i / count), i % count);
}

static inline void all_gather(struct team *t, ncclDataType_t type, size_t count, size_t offset)
{
	fill_in(t, type, count, offset, 1);
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		NC(ncclAllGather(m->in + GUARD + offset, m->out + GUARD + offset, count, type,
				 m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	wait_all(t);
	compare(t, false, type, count * (size_t)t->ranks, offset, want_gathered, &count,
		"ncclAllGather");
}

static inline double want_exchanged(const struct team *t, const struct member *m, size_t i,
				    const void *arg)
{
	size_t count = *(const size_t *)arg;

	(void)t;
	return element((int)(i / count), (size_t)m->rank * count + i % count);
}

#if NCCL_VERSION_CODE >= 22800
static inline void all_to_all(struct team *t, ncclDataType_t type, size_t count, size_t offset)
{
	fill_in(t, type, count * (size_t)t->ranks, offset, 1);
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		NC(ncclAlltoAll(m->in + GUARD + offset, m->out + GUARD + offset, count, type,
				m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	wait_all(t);
	compare(t, false, type, count * (size_t)t->ranks, offset, want_exchanged, &count,
		"ncclAlltoAll");
}

static inline double want_part(const struct team *t, const struct member *m, size_t i,
			       const void *arg)
{
	const size_t *root_count = (const size_t *)arg;

	(void)t;
	return element((int)root_count[0], (size_t)m->rank * root_count[1] + i);
}

/* To the root and from the root. */
static inline void gather_and_scatter(struct team *t, int root, ncclDataType_t type, size_t count,
				      size_t offset)
{
	size_t root_count[] = {(size_t)root, count};
	struct team only = *t;

	fill_in(t, type, count, offset, 1);
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		NC(ncclGather(m->in + GUARD + offset,
			      m->rank == root ? m->out + GUARD + offset : NULL, count, type, root,
			      m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	wait_all(t);
	for (int k = 0; k < t->count; k++) {
		only.count = 1;
		only.member[0] = t->member[k];
		if (only.member[0].rank == root)
			compare(&only, false, type, count * (size_t)t->ranks, offset, want_gathered,
				&count, "ncclGather");
	}
	fill_in(t, type, count * (size_t)t->ranks, offset, 1);
	NC(ncclGroupStart());
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		NC(ncclScatter(m->rank == root ? m->in + GUARD + offset : NULL,
			       m->out + GUARD + offset, count, type, root, m->comm, m->stream));
	}
	NC(ncclGroupEnd());
	wait_all(t);
	compare(t, false, type, count, offset, want_part, root_count, "ncclScatter");
}
#endif

/* All collectives, with few sizes: for programs that test something else, too. */
static inline void some_collectives(struct team *t)
{
	const struct reduction sum = {ncclSum, 1, 1, false};

	for (size_t count = 1; count < 40000; count = count * 33 + 1) {
		int root = (int)count % t->ranks;

		all_reduce(t, ncclFloat32, count, 0, false, &sum);
		reduce_to(t, root, ncclInt64, count, 8, &sum);
		reduce_scatter(t, ncclFloat16, count, 0, &sum);
		broadcast(t, root, ncclUint8, count, 3, false);
		all_gather(t, ncclFloat64, count, 0);
	}
}

#endif

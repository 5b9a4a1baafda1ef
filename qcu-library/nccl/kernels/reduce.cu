// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kernel of libnccl.so.2 that reduces elements of one type. The Makefile compiles this file once for each type,
 * with its name in QCCL_TYPE.
 */
#include <cuda_fp16.h>

#include "qcu-library/nccl/kernels/device.cuh"
#include "qcu-library/nccl/kernels/kernels.h"
#include "qcu-library/nccl/kernels/values.cuh"

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

typedef struct JOIN(as_, QCCL_TYPE) type;
typedef type::stored stored;
typedef type::value value;

/* 16 bytes of elements. */
#define LANES (16 / sizeof(stored))
union pack {
	uint4 all;
	stored each[LANES];
};

template <int OP> static __device__ value combine(value a, value b)
{
	switch (OP) {
	case QCCL_PROD:
		return a * b;
	case QCCL_MAX:
		return type::max(a, b);
	case QCCL_MIN:
		return type::min(a, b);
	default:
		return a + b;
	}
}

/* What a rank's own element is worth to the others: they get it rounded, so it is rounded here, too. */
template <int OP> static __device__ value own(stored x, value scale)
{
	value v = type::load(x);

	return OP == QCCL_SCALED ? type::load(type::store(v * scale)) : v;
}

static __device__ stored finish(value v, uint32_t average)
{
	return type::store(average ? v / (value)average : v);
}

static __device__ stored fetch(const stored *p)
{
	return type::fetch(p);
}

/* Adds the elements of one rank to the sum. first: there is no sum yet. */
template <int OP> static __device__ void add(value *sum, uint4 all, bool first, bool mine, value scale)
{
	union pack p;

	p.all = all;
#pragma unroll
	for (int k = 0; k < (int)LANES; k++) {
		value v = mine ? own<OP>(p.each[k], scale) : type::load(p.each[k]);

		sum[k] = first ? v : combine<OP>(sum[k], v);
	}
}

static __device__ uint4 finish_all(const value *sum, uint32_t average)
{
	union pack p;

#pragma unroll
	for (int k = 0; k < (int)LANES; k++)
		p.each[k] = finish(sum[k], average);
	return p.all;
}

/* Two packs at a time, and the next rank's are on their way while these are added. */
template <int OP>
static __device__ void reduce_packs(const struct link *l, int tos, int froms, int mine, uint64_t packs, value scale,
				    uint32_t average)
{
	for (uint64_t i = threadIdx.x; i < packs; i += 2 * blockDim.x) {
		/* The second pack of the last pair may be the first one again. */
		uint64_t j = i + blockDim.x < packs ? i + blockDim.x : i;
		uint4 next = __ldcg((const uint4 *)l->from[0] + i);
		uint4 next2 = __ldcg((const uint4 *)l->from[0] + j);
		value sum[LANES], sum2[LANES];

#pragma unroll 1
		for (int r = 0; r < froms; r++) {
			uint4 now = next, now2 = next2;

			if (r + 1 < froms) {
				next = __ldcg((const uint4 *)l->from[r + 1] + i);
				next2 = __ldcg((const uint4 *)l->from[r + 1] + j);
			}
			add<OP>(sum, now, !r, r == mine, scale);
			add<OP>(sum2, now2, !r, r == mine, scale);
		}
		next = finish_all(sum, average);
		next2 = finish_all(sum2, average);
#pragma unroll 1
		for (int k = 0; k < tos; k++) {
			((uint4 *)l->to[k])[i] = next;
			((uint4 *)l->to[k])[j] = next2;
		}
	}
}

/*
 * l->to[0..tos) = l->from[0] + l->from[1] + ... Element `mine` of `from` is this rank's own. Results do not depend
 * on which rank computes them, because all ranks have the same order. By all threads of a block.
 */
template <int OP>
static __device__ __noinline__ void reduce(const struct link *l, int tos, int froms, int mine, uint64_t count,
					   value scale, uint32_t average)
{
	uint64_t both = 0, packs = 0;

#pragma unroll 1
	for (int i = 0; i < tos; i++)
		both |= (uint64_t)l->to[i];
#pragma unroll 1
	for (int i = 0; i < froms; i++)
		both |= (uint64_t)l->from[i];
	if (!(both % 16))
		packs = count / LANES;
	reduce_packs<OP>(l, tos, froms, mine, packs, scale, average);
#pragma unroll 1
	for (uint64_t i = packs * LANES + threadIdx.x; i < count; i += blockDim.x) {
		value sum = 0;
		stored result;

#pragma unroll 1
		for (int r = 0; r < froms; r++) {
			stored x = fetch((const stored *)l->from[r] + i);
			value v = r == mine ? own<OP>(x, scale) : type::load(x);

			sum = r ? combine<OP>(sum, v) : v;
		}
		result = finish(sum, average);
#pragma unroll 1
		for (int k = 0; k < tos; k++)
			((stored *)l->to[k])[i] = result;
	}
}

/* What another rank gets of this one's elements. `from` and `to` of the link are free then. */
template <int OP> static __device__ void give(struct link *l, void *to, const stored *from, uint64_t count, value scale)
{
	if (OP != QCCL_SCALED) {
		copy_bytes(to, from, count * sizeof(stored));
		return;
	}
	__syncthreads();
	if (!threadIdx.x) {
		l->to[0] = to;
		l->from[0] = from;
	}
	__syncthreads();
	reduce<OP>(l, 1, 1, 0, count, scale, 0);
}

/*
 * Gives each other rank its part of `in`: rank r's begins at r * stride, and has part_of(all, r * step, most)
 * elements. False: the communicator is being aborted.
 */
template <int OP>
static __device__ bool give_all(struct link *l, const stored *in, uint64_t stride, uint64_t all, uint64_t step,
				uint64_t most, value scale)
{
	const uint64_t to_mine = is_other(l) ? part_of(all, threadIdx.x * step, most) : 0;

	if (to_mine)
		wait_room(l, threadIdx.x);
	__syncthreads();
	if (l->stopped)
		return false;
#pragma unroll 1
	for (uint32_t i = 1; i < l->ranks; i++) {
		uint32_t peer = (l->rank + i) % l->ranks;
		uint64_t n = part_of(all, peer * step, most);

		if (n)
			give<OP>(l, slot_at(l, peer), in + peer * stride, n, scale);
	}
	__syncthreads();
	if (to_mine)
		tell_sent(l, threadIdx.x, to_mine * sizeof(stored));
	__syncthreads();
	return true;
}

/*
 * Waits for the others' elements and reduces them with this rank's own at `in`. The result goes to `out`, and with
 * `spread` to all others, too.
 */
template <int OP>
static __device__ bool take_all(struct link *l, const stored *in, stored *out, uint64_t count, bool spread,
				value scale, uint32_t average)
{
	uint32_t r = threadIdx.x;

	if (is_other(l)) {
		wait_data(l, r);
		l->from[r] = slot_from(l, r);
		if (spread) {
			wait_room(l, r);
			l->to[r < l->rank ? r + 1 : r] = slot_at(l, r);
		}
	} else if (r == l->rank) {
		l->from[r] = in;
		l->to[0] = out;
	}
	__syncthreads();
	if (l->stopped)
		return false;
	reduce<OP>(l, spread ? l->ranks : 1, l->ranks, l->rank, count, scale, average);
	__syncthreads();
	if (is_other(l)) {
		if (spread)
			tell_sent(l, r, count * sizeof(stored));
		tell_received(l, r);
	}
	__syncthreads();
	return true;
}

/* The next chunk is given before the last one is taken, so that its way is not waited for. */
template <int OP>
static __device__ bool exchange(struct link *l, const struct qccl_work *w, value scale, uint32_t average)
{
	const uint64_t step = gridDim.x * w->chunk, all = w->count;
	const stored *in = (const stored *)w->in, *mine = in + l->rank * w->stride;
	uint64_t given = blockIdx.x * w->chunk;

#pragma unroll 1
	for (uint64_t at = given; at < all; at += step) {
		uint64_t n = part_of(all, at, w->chunk);

#pragma unroll 1
		for (; given < all && given <= at + step; given += step) {
			uint64_t part = part_of(all, given, w->chunk);

			if (!give_all<OP>(l, in + given, w->stride, part, 0, part, scale))
				return false;
		}
		if (!take_all<OP>(l, mine + at, (stored *)w->out + at, n, false, scale, average))
			return false;
	}
	return true;
}

/* In each round a rank reduces one chunk, which all ranks then get. */
template <int OP>
static __device__ bool spread(struct link *l, const struct qccl_work *w, value scale, uint32_t average)
{
	const uint64_t round = l->ranks * w->chunk;

#pragma unroll 1
	for (uint64_t at = blockIdx.x * round; at < w->count; at += gridDim.x * round) {
		uint64_t mine = at + l->rank * w->chunk, n = part_of(w->count, mine, w->chunk);

		if (!give_all<OP>(l, (const stored *)w->in + at, w->chunk, w->count - at, w->chunk, w->chunk, scale))
			return false;
		if (n && !take_all<OP>(l, (const stored *)w->in + mine, (stored *)w->out + mine, n, true, scale,
				       average))
			return false;
		if (is_other(l) && part_of(w->count, at + threadIdx.x * w->chunk, w->chunk)) {
			wait_data(l, threadIdx.x);
			l->from[threadIdx.x] = slot_from(l, threadIdx.x);
		}
		__syncthreads();
		if (l->stopped)
			return false;
		for (uint32_t i = 1; i < l->ranks; i++) {
			uint32_t peer = (l->rank + i) % l->ranks;
			uint64_t first = at + peer * w->chunk;

			n = part_of(w->count, first, w->chunk);
			copy_bytes((stored *)w->out + first, l->from[peer], n * sizeof(stored));
		}
		__syncthreads();
		if (is_other(l) && part_of(w->count, at + threadIdx.x * w->chunk, w->chunk))
			tell_received(l, threadIdx.x);
		__syncthreads();
	}
	return true;
}

/* From the last rank of the chain to the root: each adds its own elements to those that come. */
template <int OP>
static __device__ bool chain(struct link *l, const struct qccl_work *w, value scale, uint32_t average)
{
	uint32_t position = (l->rank + l->ranks - w->root) % l->ranks;
	uint32_t before = (l->rank + 1) % l->ranks, after = (l->rank + l->ranks - 1) % l->ranks;
	bool comes = position + 1 < l->ranks, goes = position > 0;

#pragma unroll 1
	for (uint64_t at = blockIdx.x * w->chunk; at < w->count; at += gridDim.x * w->chunk) {
		const uint64_t n = part_of(w->count, at, w->chunk);

		if (!threadIdx.x) {
			if (comes)
				wait_data(l, before);
			if (goes)
				wait_room(l, after);
			l->from[0] = (const stored *)w->in + at;
			if (comes)
				l->from[1] = slot_from(l, before);
			l->to[0] = goes ? slot_at(l, after) : (stored *)w->out + at;
		}
		__syncthreads();
		if (l->stopped)
			return false;
		reduce<OP>(l, 1, comes ? 2 : 1, 0, n, scale, goes ? 0 : average);
		__syncthreads();
		if (!threadIdx.x) {
			if (goes)
				tell_sent(l, after, n * sizeof(stored));
			if (comes)
				tell_received(l, before);
		}
		__syncthreads();
	}
	return true;
}

template <int OP> static __device__ __noinline__ bool run(struct link *l, const struct qccl_work *w)
{
	uint32_t average = w->average ? l->ranks : 0;
	value scale = 1;

	if (OP == QCCL_SCALED) {
		stored s = w->scalar_is_address ? fetch((const stored *)w->scalar) : *(const stored *)&w->scalar;

		scale = type::load(s);
	}
	switch (w->kind) {
	case QCCL_EXCHANGE:
		return exchange<OP>(l, w, scale, average);
	case QCCL_SPREAD:
		return spread<OP>(l, w, scale, average);
	default:
		return chain<OP>(l, w, scale, average);
	}
}

static __global__ void __launch_bounds__(QCCL_THREADS) reductions(const __grid_constant__ struct qccl_work w)
{
	__shared__ struct link l;
	bool done;

	link_open(&l, &w.self);
	switch (w.op) {
	case QCCL_PROD:
		done = run<QCCL_PROD>(&l, &w);
		break;
	case QCCL_MAX:
		done = run<QCCL_MAX>(&l, &w);
		break;
	case QCCL_MIN:
		done = run<QCCL_MIN>(&l, &w);
		break;
	case QCCL_SCALED:
		done = run<QCCL_SCALED>(&l, &w);
		break;
	default:
		done = run<QCCL_SUM>(&l, &w);
	}
	if (done)
		link_close(&l);
}

const void *JOIN(qccl_kernel_, QCCL_TYPE)(void)
{
	return (const void *)reductions;
}

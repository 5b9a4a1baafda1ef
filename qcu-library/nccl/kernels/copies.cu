// SPDX-License-Identifier: LGPL-2.1-or-later
/* The kernels of libnccl.so.2 that only move bytes: broadcasts, sends and receives. */
#include "qcu-library/nccl/kernels/device.cuh"
#include "qcu-library/nccl/kernels/kernels.h"

/* Each rank but the root gets a chunk from the one before it in the chain, and hands it to the next. */
static __global__ void __launch_bounds__(QCCL_THREADS) relay(const __grid_constant__ struct qccl_work w)
{
	__shared__ struct link l;
	uint32_t position, before, after;

	link_open(&l, &w.self);
	position = (l.rank + l.ranks - w.root) % l.ranks;
	before = (l.rank + l.ranks - 1) % l.ranks;
	after = (l.rank + 1) % l.ranks;
	for (uint64_t at = blockIdx.x * w.chunk; at < w.count; at += gridDim.x * w.chunk) {
		uint64_t bytes = part_of(w.count, at, w.chunk);
		const void *from = (const uint8_t *)w.in + at;

		if (!threadIdx.x && position)
			wait_data(&l, before);
		if (!threadIdx.x && position + 1 < l.ranks)
			wait_room(&l, after);
		__syncthreads();
		if (l.stopped)
			return;
		if (position)
			from = slot_from(&l, before);
		if (position + 1 < l.ranks)
			copy_bytes(slot_at(&l, after), from, bytes);
		if (from != (const uint8_t *)w.out + at)
			copy_bytes((uint8_t *)w.out + at, from, bytes);
		__syncthreads();
		if (!threadIdx.x && position + 1 < l.ranks)
			tell_sent(&l, after, bytes);
		if (!threadIdx.x && position)
			tell_received(&l, before);
		__syncthreads();
	}
	link_close(&l);
}

/* How far a block is with one transfer. */
struct progress {
	uint64_t at; /* the next byte */
	uint32_t done;
};

/* Whether the next chunk of transfer i can move now. */
static __device__ bool is_ready(const struct link *l, const struct qccl_transfer *t, const struct progress *p,
				int i)
{
	uint32_t peer = t[i].peer;

	if (p[i].done || (t[i].behind >= 0 && !p[t[i].behind].done))
		return false;
	if (t[i].receive)
		return *at(l->way[peer].arrived_here) > l->received[peer];
	return *at(l->way[peer].credit_here) + QCCL_SLOTS > l->sent[peer];
}

/*
 * Finds a transfer whose next chunk can move now, beginning behind `last`. -1: all are done, or the communicator
 * is being aborted. By the first warp.
 */
static __device__ int find_ready(struct link *l, const struct qccl_transfer *t, const struct progress *p, int n,
				 int last)
{
	for (unsigned int tries = 1;; tries++) {
		int left = 0, first = -1, next = -1;

		for (int i = 0; i < n; i += 32) {
			int mine = i + threadIdx.x;
			uint32_t open, ready, later;

			open = __ballot_sync(~0u, mine < n && !p[mine].done);
			ready = __ballot_sync(~0u, mine < n && is_ready(l, t, p, mine));
			later = __ballot_sync(~0u, mine > last) & ready;
			left |= open != 0;
			if (first < 0 && ready)
				first = i + __ffs(ready) - 1;
			if (next < 0 && later)
				next = i + __ffs(later) - 1;
		}
		if (first >= 0) {
			__threadfence_system();
			return next >= 0 ? next : first;
		}
		if (!left)
			return -1;
		if (tries % 32)
			continue;
		if (__any_sync(~0u, *l->stop)) {
			l->stopped = 1;
			return -1;
		}
		__nanosleep(40);
	}
}

static __device__ void transfers(struct link *l, struct progress *p, const struct qccl_transfer *t, int n)
{
	__shared__ int now;
	int last = -1;

	for (int i = threadIdx.x; i < n; i += blockDim.x) {
		p[i].at = (uint64_t)l->channel * t[i].chunk;
		p[i].done = l->channel >= t[i].channels || p[i].at >= t[i].bytes;
	}
	__syncthreads();
	for (;;) {
		const struct qccl_transfer *x;
		uint64_t bytes;

		if (threadIdx.x < 32) {
			int found = find_ready(l, t, p, n, last);

			if (!threadIdx.x)
				now = found;
		}
		__syncthreads();
		if (now < 0 || l->stopped)
			return;
		last = now;
		x = t + last;
		bytes = part_of(x->bytes, p[last].at, x->chunk);
		if (x->receive)
			copy_bytes((uint8_t *)x->address + p[last].at, slot_from(l, x->peer), bytes);
		else
			copy_bytes(slot_at(l, x->peer), (const uint8_t *)x->address + p[last].at, bytes);
		__syncthreads();
		if (!threadIdx.x) {
			if (x->receive)
				tell_received(l, x->peer);
			else
				tell_sent(l, x->peer, bytes);
			p[last].at += (uint64_t)x->channels * x->chunk;
			p[last].done = p[last].at >= x->bytes;
		}
		__syncthreads();
	}
}

static __global__ void __launch_bounds__(QCCL_THREADS) few_transfers(const __grid_constant__ struct qccl_few w)
{
	__shared__ struct link l;
	__shared__ struct progress p[QCCL_FEW];

	link_open(&l, &w.self);
	transfers(&l, p, w.transfer, w.count);
	if (!l.stopped)
		link_close(&l);
}

static __global__ void __launch_bounds__(QCCL_THREADS) many_transfers(const __grid_constant__ struct qccl_many w)
{
	__shared__ struct link l;
	__shared__ struct progress p[QCCL_MANY];

	link_open(&l, &w.self);
	transfers(&l, p, w.transfer, w.count);
	if (!l.stopped)
		link_close(&l);
}

const void *qccl_kernel_relay(void)
{
	return (const void *)relay;
}

const void *qccl_kernel_few(void)
{
	return (const void *)few_transfers;
}

const void *qccl_kernel_many(void)
{
	return (const void *)many_transfers;
}

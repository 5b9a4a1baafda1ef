/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What all kernels of libnccl.so.2 use: the queues between ranks (layout.h), and copies of bytes by a block.
 *
 * A slot is passed on in this order: all threads write it; a barrier; one thread makes a fence of the whole
 * system, and writes `arrived`. The receiver's thread reads `arrived`, makes a fence; a barrier; all threads read
 * the slot; a barrier; one thread makes a fence, and writes `credit`, which the sender reads before it writes
 * that slot again.
 */
#ifndef QCCL_DEVICE_CUH
#define QCCL_DEVICE_CUH

#include "qcu-library/nccl/kernels/layout.h"

/* One for each block. The addresses of a way are those of the block's channel. */
struct link {
	uint32_t rank, ranks, channel, stopped;
	volatile uint32_t *stop;
	uint64_t memory; /* this rank's own */
	uint64_t done, number;
	struct qccl_way way[QCCL_MAX_RANKS];
	uint64_t sent[QCCL_MAX_RANKS], received[QCCL_MAX_RANKS];
	const void *from[QCCL_MAX_RANKS];
	void *to[QCCL_MAX_RANKS];
};

static __device__ volatile uint64_t *at(uint64_t address)
{
	return (volatile uint64_t *)address;
}

/* How much this block has sent to another rank, or received from it. */
static __device__ volatile uint64_t *own_count(const struct link *l, enum qccl_table t, uint32_t rank)
{
	return at(l->memory + qccl_counter(l->ranks, t, rank) + qccl_line(l->channel));
}

/* Where this rank sends to next, and where it receives from. */
static __device__ void *slot_at(const struct link *l, uint32_t peer)
{
	return (void *)(l->way[peer].out + qccl_slot(0, l->sent[peer]));
}

static __device__ const void *slot_from(const struct link *l, uint32_t peer)
{
	return (const void *)(l->way[peer].in + qccl_slot(0, l->received[peer]));
}

/* What is read from memory here, all threads read at the same time: an operation waits for memory once. */
static __device__ void link_open(struct link *l, const struct qccl_self *self)
{
	const struct qccl_shared *shared = (const struct qccl_shared *)self->shared;
	const uint32_t t = threadIdx.x, channel = blockIdx.x, ranks = self->ranks;
	const uint64_t line = qccl_line(channel), slot = qccl_slot(channel, 0);

	if (!t) {
		l->rank = self->rank;
		l->ranks = ranks;
		l->channel = channel;
		l->stopped = 0;
		l->stop = (volatile uint32_t *)shared->stop;
		l->memory = self->shared;
		l->number = self->number;
		l->done = shared->done && self->number ? shared->done + line : 0;
	}
	if (t < ranks) {
		struct qccl_way w = shared->way[t];

		l->sent[t] = *at(self->shared + qccl_counter(ranks, QCCL_SENT, t) + line);
		l->received[t] = *at(self->shared + qccl_counter(ranks, QCCL_RECEIVED, t) + line);
		w.out += slot;
		w.in += slot;
		w.arrived_there += line;
		w.credit_here += line;
		w.arrived_here += line;
		w.credit_there += line;
		w.lengths += w.lengths ? qccl_length(channel, 0) : 0;
		l->way[t] = w;
	}
	__syncthreads();
}

static __device__ void link_close(struct link *l)
{
	__syncthreads();
	if (threadIdx.x < l->ranks) {
		*own_count(l, QCCL_SENT, threadIdx.x) = l->sent[threadIdx.x];
		*own_count(l, QCCL_RECEIVED, threadIdx.x) = l->received[threadIdx.x];
	}
	if (!threadIdx.x && l->done) {
		__threadfence_system();
		*at(l->done) = l->number;
	}
}

/* True once *count is at least `least`; false if the communicator is being aborted. */
static __device__ bool wait_for(struct link *l, volatile uint64_t *count, uint64_t least)
{
	for (unsigned int tries = 1; *count < least; tries++) {
		if (tries % 64)
			continue;
		if (*(volatile uint32_t *)&l->stopped || *l->stop) {
			*(volatile uint32_t *)&l->stopped = 1;
			return false;
		}
		__nanosleep(40);
	}
	__threadfence_system();
	return true;
}

static __device__ bool is_other(const struct link *l)
{
	return threadIdx.x < l->ranks && threadIdx.x != l->rank;
}

/* For these, each thread has its own answer, and the caller makes a barrier afterwards. */
static __device__ void wait_room(struct link *l, uint32_t peer)
{
	if (l->sent[peer] >= QCCL_SLOTS)
		wait_for(l, at(l->way[peer].credit_here), l->sent[peer] - QCCL_SLOTS + 1);
}

static __device__ void wait_data(struct link *l, uint32_t peer)
{
	wait_for(l, at(l->way[peer].arrived_here), l->received[peer] + 1);
}

static __device__ void tell_sent(struct link *l, uint32_t peer, uint64_t bytes)
{
	if (l->way[peer].lengths)
		*at(l->way[peer].lengths + qccl_length(0, l->sent[peer])) = bytes;
	__threadfence_system();
	*at(l->way[peer].arrived_there) = ++l->sent[peer];
}

static __device__ void tell_received(struct link *l, uint32_t peer)
{
	__threadfence_system();
	*at(l->way[peer].credit_there) = ++l->received[peer];
}

template <typename W> static __device__ void copy_words(W *to, const W *from, uint64_t n)
{
	const uint64_t step = blockDim.x;
	uint64_t i = threadIdx.x;

	#pragma unroll 1
	for (; i + 3 * step < n; i += 4 * step) {
		W a = __ldcg(from + i), b = __ldcg(from + i + step);
		W c = __ldcg(from + i + 2 * step), d = __ldcg(from + i + 3 * step);

		to[i] = a;
		to[i + step] = b;
		to[i + 2 * step] = c;
		to[i + 3 * step] = d;
	}
#pragma unroll 1
	for (; i < n; i += step)
		to[i] = __ldcg(from + i);
}

/* By all threads of a block. */
static __device__ __noinline__ void copy_bytes(void *to, const void *from, uint64_t bytes)
{
	uint64_t both = (uint64_t)to | (uint64_t)from, done = 0;

	if (!(both % 16)) {
		copy_words((uint4 *)to, (const uint4 *)from, bytes / 16);
		done = bytes / 16 * 16;
	} else if (!(both % 4)) {
		copy_words((uint32_t *)to, (const uint32_t *)from, bytes / 4);
		done = bytes / 4 * 4;
	}
	copy_words((uint8_t *)to + done, (const uint8_t *)from + done, bytes - done);
}

static __device__ uint64_t part_of(uint64_t count, uint64_t start, uint64_t most)
{
	return start >= count ? 0 : count - start < most ? count - start : most;
}

#endif

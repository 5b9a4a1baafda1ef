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

#include "qcu-library/nccl/layout.h"

/* One for each block. */
struct link {
	uint32_t rank, ranks, channel, stopped;
	volatile uint32_t *stop;
	uint64_t base[QCCL_MAX_RANKS]; /* each rank's memory */
	uint64_t sent[QCCL_MAX_RANKS], received[QCCL_MAX_RANKS];
	const void *from[QCCL_MAX_RANKS];
	void *to[QCCL_MAX_RANKS];
};

static __device__ volatile uint64_t *counter_of(const struct link *l, uint32_t owner, enum qccl_table t,
						uint32_t rank)
{
	return (volatile uint64_t *)(l->base[owner] + qccl_counter(l->ranks, t, l->channel, rank));
}

/* Where this rank sends to next, and where it receives from. */
static __device__ void *slot_at(const struct link *l, uint32_t peer)
{
	return (void *)(l->base[peer] + qccl_slot(l->ranks, l->channel, peer, l->rank, l->sent[peer]));
}

static __device__ const void *slot_from(const struct link *l, uint32_t peer)
{
	return (const void *)(l->base[l->rank] +
			      qccl_slot(l->ranks, l->channel, l->rank, peer, l->received[peer]));
}

/* What is read from memory here, all threads read at the same time: an operation waits for memory once. */
static __device__ void link_open(struct link *l, const struct qccl_self *self)
{
	const struct qccl_shared *shared = (const struct qccl_shared *)self->shared;
	uint32_t t = threadIdx.x, channel = blockIdx.x, ranks = self->ranks;

	if (!t) {
		l->rank = self->rank;
		l->ranks = ranks;
		l->channel = channel;
		l->stopped = 0;
		l->stop = (volatile uint32_t *)shared->stop;
	}
	if (t < ranks) {
		l->base[t] = shared->base[t];
		l->sent[t] = *(volatile uint64_t *)(self->shared + qccl_counter(ranks, QCCL_SENT, channel, t));
		l->received[t] =
			*(volatile uint64_t *)(self->shared + qccl_counter(ranks, QCCL_RECEIVED, channel, t));
	}
	__syncthreads();
}

static __device__ void link_close(struct link *l)
{
	__syncthreads();
	if (threadIdx.x < l->ranks) {
		*counter_of(l, l->rank, QCCL_SENT, threadIdx.x) = l->sent[threadIdx.x];
		*counter_of(l, l->rank, QCCL_RECEIVED, threadIdx.x) = l->received[threadIdx.x];
	}
}

/* True once *at is at least `least`; false if the communicator is being aborted. */
static __device__ bool wait_for(struct link *l, volatile uint64_t *at, uint64_t least)
{
	for (unsigned int tries = 1; *at < least; tries++) {
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
		wait_for(l, counter_of(l, l->rank, QCCL_CREDIT, peer), l->sent[peer] - QCCL_SLOTS + 1);
}

static __device__ void wait_data(struct link *l, uint32_t peer)
{
	wait_for(l, counter_of(l, l->rank, QCCL_ARRIVED, peer), l->received[peer] + 1);
}

static __device__ void tell_sent(struct link *l, uint32_t peer)
{
	__threadfence_system();
	*counter_of(l, peer, QCCL_ARRIVED, l->rank) = ++l->sent[peer];
}

static __device__ void tell_received(struct link *l, uint32_t peer)
{
	__threadfence_system();
	*counter_of(l, peer, QCCL_CREDIT, l->rank) = ++l->received[peer];
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the host's part and the kernels of libnccl.so.2 share: the memory of a communicator, and the
 * work of one launch.
 *
 * Each rank has one piece of memory on its own device, which the kernels of all ranks use. It
 * holds, for each channel and each other rank, a queue of slots that this rank receives in. The
 * sender writes a slot and then raises `arrived` beside it; the receiver reads the slot and then
 * raises `credit` in the sender's memory. Both only ever grow, and so do the counts of what this
 * rank has sent and received. All counts live on the device, so a graph with such kernels can be
 * replayed.
 *
 * A channel is one block of a launch. Which part of an operation a channel does depends on the
 * operation's size alone, so that all ranks agree.
 */
#ifndef QCCL_LAYOUT_H
#define QCCL_LAYOUT_H

#include <stdint.h>

#define QCCL_MAX_RANKS	  32u
#define QCCL_MAX_CHANNELS 64u
#define QCCL_SLOTS	  3u
#define QCCL_SLOT_BYTES	  131072u
#define QCCL_THREADS	  1024u /* the most of a block */
#define QCCL_LINE	  64u	/* a counter has a cache line of its own */
#define QCCL_HEADER	  1024u

/* At the start of each rank's memory. Only its own kernels read it. */
struct qccl_shared {
	uint64_t stop;		       /* address of a word in host memory; not 0: kernels end */
	uint64_t base[QCCL_MAX_RANKS]; /* the memory of each rank, as this device sees it */
};

/* Which rank's memory a launch works with. */
struct qccl_self {
	uint64_t shared; /* struct qccl_shared */
	uint32_t rank, ranks;
};

enum qccl_kind {
	QCCL_EXCHANGE, /* each rank sends a part to each other one, and reduces what it gets */
	QCCL_SPREAD,   /* all-reduce: as EXCHANGE, and each rank then sends its part to all */
	QCCL_CHAIN,    /* reduce: from the last of a chain to the root */
	QCCL_RELAY,    /* broadcast: from the root along a chain */
};

enum qccl_op { QCCL_SUM, QCCL_PROD, QCCL_MAX, QCCL_MIN, QCCL_SCALED };

/* An operation of all ranks. Sizes are in elements; a broadcast's elements are bytes. */
struct qccl_work {
	struct qccl_self self;
	uint64_t in, out;
	uint64_t count;	 /* of a part, or of everything */
	uint64_t stride; /* EXCHANGE: from one rank's part in `in` to the next */
	uint64_t chunk;	 /* what a slot takes at a time */
	uint64_t scalar; /* SCALED: its bits, or its address */
	uint32_t kind, op, root;
	uint32_t average; /* divide the result by the number of ranks */
	uint32_t scalar_is_address, pad;
};

/* One send or receive. */
struct qccl_transfer {
	uint64_t address, bytes;
	uint32_t peer, receive;
	uint32_t channels, chunk;
	int32_t behind; /* the one before it with the same rank and direction; -1: none */
	uint32_t pad;
};

#define QCCL_FEW  6u
#define QCCL_MANY 96u

/* Sends and receives that make progress together. Those to one rank go one after another. */
struct qccl_few {
	struct qccl_self self;
	uint32_t count, pad;
	struct qccl_transfer transfer[QCCL_FEW];
};

struct qccl_many {
	struct qccl_self self;
	uint32_t count, pad;
	struct qccl_transfer transfer[QCCL_MANY];
};

#ifdef __CUDACC__
#define QCCL_BOTH static inline __host__ __device__
#else
#define QCCL_BOTH static inline
#endif

/* The counters: four tables, each with a line for each channel and rank. */
enum qccl_table { QCCL_ARRIVED, QCCL_CREDIT, QCCL_SENT, QCCL_RECEIVED, QCCL_TABLES };

QCCL_BOTH uint64_t qccl_counter(uint32_t ranks, enum qccl_table t, uint32_t channel, uint32_t rank)
{
	return QCCL_HEADER +
	       (((uint64_t)t * QCCL_MAX_CHANNELS + channel) * ranks + rank) * QCCL_LINE;
}

/* Slot n of those that rank `me` receives in from rank `from`. */
QCCL_BOTH uint64_t qccl_slot(uint32_t ranks, uint32_t channel, uint32_t me, uint32_t from,
			     uint64_t n)
{
	uint64_t queue = (uint64_t)channel * (ranks - 1) + from - (from > me);

	return qccl_counter(ranks, QCCL_TABLES, 0, 0) +
	       (queue * QCCL_SLOTS + n % QCCL_SLOTS) * QCCL_SLOT_BYTES;
}

QCCL_BOTH uint64_t qccl_memory(uint32_t ranks, uint32_t channels)
{
	return qccl_counter(ranks, QCCL_TABLES, 0, 0) +
	       (uint64_t)channels * (ranks - 1) * QCCL_SLOTS * QCCL_SLOT_BYTES;
}

#endif

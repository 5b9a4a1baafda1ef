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
 * replayed. Kernels find slots and counts by addresses (struct qccl_way), so for a rank whose
 * memory cannot be reached they may lie elsewhere.
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
#define QCCL_HEADER	  4096u

/*
 * What this rank uses towards another one, as its device sees it. Addresses are those of channel 0.
 * Sending, it writes slots in `out`, raises `arrived_there` and waits for `credit_here`; receiving,
 * it waits for `arrived_here`, reads slots in `in` and raises `credit_there`. Where `lengths` is
 * not 0, it writes there how many bytes each slot of `out` has, before it raises `arrived_there`.
 */
struct qccl_way {
	uint64_t out, in;
	uint64_t arrived_there, credit_here;
	uint64_t arrived_here, credit_there;
	uint64_t lengths, pad;
};

/* At the start of each rank's memory. Only its own kernels read it. */
struct qccl_shared {
	uint64_t stop; /* address of a word in host memory; not 0: kernels end */
	uint64_t done; /* 0, or a line for each channel, where a block that ends writes
			* its launch's number */
	struct qccl_way way[QCCL_MAX_RANKS];
};

#ifndef __cplusplus
_Static_assert(sizeof(struct qccl_shared) <= QCCL_HEADER, "it has its place");
#endif

/* Which rank's memory a launch works with. */
struct qccl_self {
	uint64_t shared; /* struct qccl_shared */
	uint32_t rank, ranks;
	uint64_t number; /* of the launch; 0: in a graph */
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

/* The counters: four tables. In each, every rank has a line for each channel. */
enum qccl_table { QCCL_ARRIVED, QCCL_CREDIT, QCCL_SENT, QCCL_RECEIVED, QCCL_TABLES };

QCCL_BOTH uint64_t qccl_counter(uint32_t ranks, enum qccl_table t, uint32_t rank)
{
	return QCCL_HEADER + ((uint64_t)t * ranks + rank) * QCCL_MAX_CHANNELS * QCCL_LINE;
}

/* What channels' counters and slots lie behind those of channel 0. */
QCCL_BOTH uint64_t qccl_line(uint32_t channel)
{
	return (uint64_t)channel * QCCL_LINE;
}

QCCL_BOTH uint64_t qccl_slot(uint32_t channel, uint64_t n)
{
	return ((uint64_t)channel * QCCL_SLOTS + n % QCCL_SLOTS) * QCCL_SLOT_BYTES;
}

QCCL_BOTH uint64_t qccl_length(uint32_t channel, uint64_t n)
{
	return ((uint64_t)channel * QCCL_SLOTS + n % QCCL_SLOTS) * sizeof(uint64_t);
}

/* The slots that are filled by the rank that has this index among those that reach this memory. */
QCCL_BOTH uint64_t qccl_queue(uint32_t ranks, uint32_t channels, uint32_t index)
{
	return qccl_counter(ranks, QCCL_TABLES, 0) + qccl_slot(channels * index, 0);
}

#endif

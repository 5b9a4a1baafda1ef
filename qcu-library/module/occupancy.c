// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How many blocks of a kernel fit on a multiprocessor. Libraries ask this before each launch, often
 * with the same numbers. The answer depends only on the question, the device, and the attributes of
 * the kernel. So each thread keeps its last answers until an attribute changes.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/link/ask.h"
#include "qcu-library/module/module.h"

#define KEPT 64 /* answers; cudaOccupancyMaxPotentialBlockSize() asks up to 32 questions */

/* Compared as bytes, so it must have no padding. */
struct question {
	uint64_t changes; /* of kernels, before the question was asked */
	uint64_t dynamic; /* for QCU_OP_OCCUPANCY_SHARED: how many blocks */
	uint32_t epoch, kernel, threads, flags;
	uint32_t op, device;
};
_Static_assert(sizeof(struct question) == 40, "no padding");

struct qcul_kept {
	struct question question; /* op 0: none */
	uint64_t answer;
};

/* Block sizes are mostly multiples of 32. NULL: out of memory. */
static struct qcul_kept *slot_of_question(const struct question *q)
{
	if (!qcul_self.kept)
		qcul_self.kept = calloc(KEPT, sizeof(*qcul_self.kept));
	return qcul_self.kept ? &qcul_self.kept[(q->threads / 32 + q->kernel * 7 +
						 (uint32_t)q->dynamic / 64 + q->op) %
						KEPT]
			      : NULL;
}

static cudaError_t send_occupancy_question(const struct question *q, uint64_t *answer)
{
	uint32_t blocks = 0;
	cudaError_t err;

	if (q->op == QCU_OP_OCCUPANCY_SHARED)
		return qcul_ask_occupancy_shared((int)q->device, q->kernel, (uint32_t)q->dynamic,
						 q->threads, answer);
	err = qcul_ask_occupancy((int)q->device, q->kernel, q->threads, q->dynamic, q->flags,
				 &blocks);
	*answer = blocks;
	return err;
}

static cudaError_t ask_occupancy(struct question *q, const void *func, uint64_t *answer)
{
	struct CUkern_st *k;
	struct qcul_kept *at;
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_kernel(func, &k);
	if (!err)
		err = qcul_kernel_load(k);
	if (err)
		return err;
	/* A change while the question is on its way makes the kept answer an old one. */
	q->changes = qcul_kernel_changes();
	q->epoch = qcul_epoch();
	q->kernel = k->id;
	q->device = (uint32_t)qcul_self.device;
	at = slot_of_question(q);
	if (!at)
		return cudaErrorMemoryAllocation;
	if (memcmp(&at->question, q, sizeof(*q)) != 0) {
		at->question.op = 0;
		err = send_occupancy_question(q, &at->answer);
		if (!err)
			at->question = *q;
	}
	*answer = at->answer;
	return err;
}

static cudaError_t occupancy(int *blocks, const void *func, int block_size, size_t dynamic,
			     unsigned int flags)
{
	struct question q = {
		.op = QCU_OP_OCCUPANCY,
		.threads = (uint32_t)block_size,
		.dynamic = dynamic,
		.flags = flags,
	};
	uint64_t answer;
	cudaError_t err;

	if (!blocks || block_size <= 0 || flags & ~cudaOccupancyDisableCachingOverride)
		return cudaErrorInvalidValue;
	err = ask_occupancy(&q, func, &answer);
	if (!err)
		*blocks = (int)answer;
	return err;
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *func, int blocks,
						      int block_size)
{
	struct question q = {
		.op = QCU_OP_OCCUPANCY_SHARED,
		.threads = (uint32_t)block_size,
		.dynamic = (uint32_t)blocks,
	};
	cudaError_t err = cudaErrorInvalidValue;
	uint64_t answer;

	if (bytes && blocks > 0 && block_size > 0)
		err = ask_occupancy(&q, func, &answer);
	if (!err)
		*bytes = answer;
	return qcul_done(err);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func,
							  int block_size, size_t dynamic)
{
	return qcul_done(occupancy(blocks, func, block_size, dynamic, cudaOccupancyDefault));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *func,
								   int block_size, size_t dynamic,
								   unsigned int flags)
{
	return qcul_done(occupancy(blocks, func, block_size, dynamic, flags));
}

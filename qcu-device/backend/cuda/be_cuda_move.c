// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pieces of blocks (be_cuda_block.c) that leave the device and come back. All copies are put into
 * one stream first, then all pieces are unmapped, or all are here: the copies run while the next
 * pieces are mapped. The addresses stay reserved all the time, so a kernel that uses a piece which
 * is away fails, and nothing else gets its addresses.
 *
 * The lock is held all the time. It is the caller who keeps everybody else out.
 */
#include "qcu-device/backend/cuda/be_cuda.h"

/* The next piece of the device's blocks. */
struct walk {
	unsigned int dev;
	size_t block;
	unsigned int piece;
	struct cu_block *b;
};

static struct cu_piece *next_piece(const struct be *be, struct walk *w, unsigned int *i)
{
	for (; (w->b = cu_block_number(be, w->block)); w->block++, w->piece = 0)
		if (w->b->dev == w->dev && !w->b->known && w->piece < w->b->pieces) {
			*i = w->piece++;
			return &w->b->piece[*i];
		}
	return NULL;
}

/* The part of a piece that is one copy in the store. */
static uint64_t part_bytes(const struct cu_block *b, unsigned int i, unsigned int part)
{
	uint64_t rest = cu_piece_bytes(b, i) - part * BE_PIECE;

	return rest < BE_PIECE ? rest : BE_PIECE;
}

static unsigned int parts_of_piece(const struct cu_block *b, unsigned int i)
{
	return (unsigned int)((cu_piece_bytes(b, i) + BE_PIECE - 1) / BE_PIECE);
}

static void give_parts(struct cu_block *b, unsigned int i, unsigned int count)
{
	struct cu_piece *p = &b->piece[i];

	while (count--) {
		p->store.give(p->store.ctx, p->copy[count], part_bytes(b, i, count));
		p->copy[count] = NULL;
	}
}

void cu_piece_forget(struct cu_block *b, unsigned int i)
{
	give_parts(b, i, parts_of_piece(b, i));
}

/* All parts, or none. */
static bool take_parts(struct cu_block *b, unsigned int i, const struct be_store *store)
{
	struct cu_piece *p = &b->piece[i];
	unsigned int part, parts = parts_of_piece(b, i);

	p->store = *store;
	for (part = 0; part < parts; part++) {
		p->copy[part] = store->take(store->ctx, part_bytes(b, i, part));
		if (!p->copy[part]) {
			give_parts(b, i, part);
			return false;
		}
	}
	return true;
}

static int copy_parts(struct be *be, const struct cu_block *b, unsigned int i, bool out,
		      cudaStream_t s)
{
	unsigned int part, parts = parts_of_piece(b, i);
	int ret = QCU_ERR_Success;

	for (part = 0; part < parts && !ret; part++) {
		void *device = (void *)(uintptr_t)(cu_piece_addr(b, i) + part * BE_PIECE);
		void *host = b->piece[i].copy[part];

		ret = CU(be, cudaMemcpyAsync, out ? host : device, out ? device : host,
			 part_bytes(b, i, part),
			 out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, s);
	}
	return ret;
}

/* Begins to copy pieces out, and marks them as moving. */
static int begin_to_leave(struct be *be, unsigned int dev, uint64_t want,
			  const struct be_store *store, cudaStream_t s)
{
	struct walk w = {.dev = dev};
	int ret = QCU_ERR_Success;
	uint64_t bytes = 0;
	struct cu_piece *p;
	unsigned int i;

	while (!ret && bytes < want && (p = next_piece(be, &w, &i))) {
		if (p->state != CU_PIECE_HERE)
			continue;
		if (!take_parts(w.b, i, store))
			break;
		p->state = CU_PIECE_MOVING;
		bytes += cu_piece_bytes(w.b, i);
		ret = copy_parts(be, w.b, i, true, s);
	}
	return ret;
}

/* All copies have been made, or (err set) perhaps not. Returns the first error. */
static int end_leave(struct be *be, unsigned int dev, int err, uint64_t *left)
{
	struct walk w = {.dev = dev};
	struct cu_piece *p;
	unsigned int i;
	int ret;

	while ((p = next_piece(be, &w, &i))) {
		if (p->state != CU_PIECE_MOVING)
			continue;
		ret = err ? err
			  : CU_DRIVER(be, unmap, (CUdeviceptr)cu_piece_addr(w.b, i),
				      cu_piece_bytes(w.b, i));
		if (ret) {
			p->state = CU_PIECE_HERE;
			give_parts(w.b, i, parts_of_piece(w.b, i));
			err = ret;
			continue;
		}
		p->state = CU_PIECE_AWAY;
		*left += cu_piece_bytes(w.b, i);
		/* Even if the driver keeps the memory, its content has left. */
		(void)CU_DRIVER(be, release, p->memory);
	}
	return err;
}

int cu_mem_leave(struct be *be, unsigned int dev, uint64_t want, const struct be_store *store,
		 uint64_t *left)
{
	cudaStream_t s;
	int ret, err;

	*left = 0;
	if (!be->movable)
		return QCU_ERR_NotSupported;
	ret = cu_use(be, dev);
	if (!ret)
		ret = CU(be, cudaStreamCreateWithFlags, &s, cudaStreamNonBlocking);
	if (ret)
		return ret;
	(void)cu_kept_drop(be, dev);
	pthread_mutex_lock(&be->block_lock);
	ret = begin_to_leave(be, dev, want, store, s);
	err = CU(be, cudaStreamSynchronize, s);
	ret = end_leave(be, dev, ret ? ret : err, left);
	pthread_mutex_unlock(&be->block_lock);
	err = CU(be, cudaStreamDestroy, s);
	return ret ? ret : err;
}

/* *full: there is no room for the next piece, but all is well with those before it. */
static int begin_to_return(struct be *be, unsigned int dev, cudaStream_t s, bool *full)
{
	struct walk w = {.dev = dev};
	int ret = QCU_ERR_Success;
	struct cu_piece *p;
	unsigned int i;

	while (!ret && (p = next_piece(be, &w, &i))) {
		if (p->state != CU_PIECE_AWAY)
			continue;
		ret = cu_piece_map(be, w.b, i);
		*full = ret == QCU_ERR_MemoryAllocation;
		if (ret)
			break;
		p->state = CU_PIECE_MOVING;
		ret = cu_block_grant(be, w.b, cu_piece_addr(w.b, i), cu_piece_bytes(w.b, i));
		if (!ret)
			ret = copy_parts(be, w.b, i, false, s);
	}
	return ret;
}

static void end_return(struct be *be, unsigned int dev, bool right, uint64_t *back)
{
	struct walk w = {.dev = dev};
	struct cu_piece *p;
	unsigned int i;

	while ((p = next_piece(be, &w, &i))) {
		if (p->state != CU_PIECE_MOVING)
			continue;
		if (right) {
			p->state = CU_PIECE_HERE;
			*back += cu_piece_bytes(w.b, i);
			give_parts(w.b, i, parts_of_piece(w.b, i));
		} else {
			p->state = CU_PIECE_AWAY;
			(void)cu_piece_unmap(be, w.b, i);
		}
	}
}

int cu_mem_return(struct be *be, unsigned int dev, uint64_t *back)
{
	bool full = false;
	cudaStream_t s;
	int ret, err;

	*back = 0;
	if (!be->movable || !cu_mem_away(be, dev))
		return QCU_ERR_Success;
	ret = cu_use(be, dev);
	if (!ret)
		ret = CU(be, cudaStreamCreateWithFlags, &s, cudaStreamNonBlocking);
	if (ret)
		return ret;
	(void)cu_kept_drop(be, dev);
	pthread_mutex_lock(&be->block_lock);
	ret = begin_to_return(be, dev, s, &full);
	err = CU(be, cudaStreamSynchronize, s);
	end_return(be, dev, !err && (!ret || full), back);
	pthread_mutex_unlock(&be->block_lock);
	ret = ret ? ret : err;
	err = CU(be, cudaStreamDestroy, s);
	return ret ? ret : err;
}

static uint64_t sum_pieces(struct be *be, unsigned int dev, enum cu_piece_state state)
{
	struct walk w = {.dev = dev};
	const struct cu_piece *p;
	uint64_t sum = 0;
	unsigned int i;

	pthread_mutex_lock(&be->block_lock);
	while ((p = next_piece(be, &w, &i)))
		if (p->state == state)
			sum += cu_piece_bytes(w.b, i);
	pthread_mutex_unlock(&be->block_lock);
	return sum;
}

uint64_t cu_mem_movable(struct be *be, unsigned int dev)
{
	return sum_pieces(be, dev, CU_PIECE_HERE);
}

uint64_t cu_mem_away(struct be *be, unsigned int dev)
{
	return sum_pieces(be, dev, CU_PIECE_AWAY);
}

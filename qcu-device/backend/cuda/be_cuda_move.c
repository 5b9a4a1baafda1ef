// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parts of plots (be_cuda_plot.c) and arrays (be_cuda_array.c) that leave the device and come back.
 * All copies are put into one stream first, then all parts are unmapped, or all are here: the
 * copies run while the next parts are mapped. The addresses stay reserved all the time, so a kernel
 * that uses a part which is away fails, and nothing else gets its addresses. An array is mapped and
 * unmapped as a whole, by the stream.
 *
 * The lock is held all the time. It is the caller who keeps everybody else out.
 *
 * The store may use memory of one device more. No context is made there: its memory is mapped for
 * the device whose memory leaves, and that device's copy engines do the work.
 */
#include "qcu-device/backend/cuda/be_cuda.h"

/* The next part of the device's plots that is in this state. */
struct walk {
	unsigned int dev;
	enum cu_part_state state;
	size_t plot;
	unsigned int part;
	struct cu_plot *b;
};

static struct cu_part *next_part(const struct be *be, struct walk *w, unsigned int *i)
{
	for (; (w->b = cu_plot_number(be, w->plot)); w->plot++, w->part = 0)
		while (w->b->dev == w->dev && !w->b->known && w->part < w->b->parts) {
			*i = w->part++;
			if (w->b->part[*i].state == w->state)
				return &w->b->part[*i];
		}
	return NULL;
}

/* All copies, or none. */
static bool take_copies(struct cu_plot *b, unsigned int i, const struct be_store *store)
{
	struct cu_part *p = &b->part[i];
	unsigned int n, copies = cu_copies(b, i);

	p->store = *store;
	for (n = 0; n < copies; n++) {
		p->copy[n] = store->take(store->ctx, cu_copy_bytes(b, i, n));
		if (!p->copy[n]) {
			cu_part_give(b, i, n);
			return false;
		}
	}
	return true;
}

/* With two kinds of stores CUDA finds out by the address which one it is. */
static enum cudaMemcpyKind copy_kind(const struct be *be, bool out)
{
	if (be->store)
		return cudaMemcpyDefault;
	return out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
}

/* A block of the store, and what of the device it has the bytes of. */
struct moved_bytes {
	const struct be_store *store;
	void *block;
	/* This much memory at this address; or (array set) this piece of it. */
	uint64_t addr, bytes;
	struct be_array *array;
	const struct cu_piece *piece;
};

static int copy_piece(struct be *be, const struct moved_bytes *m, bool out, void *host,
		      cudaStream_t s)
{
	const struct cu_piece *p = m->piece;
	const struct be_side piece = {.array = m->array, .level = p->level, .y = p->y, .z = p->z};
	const struct be_side copy = {
		.addr = (uintptr_t)host, .pitch = p->width, .rows = p->height, .host = true};
	const struct be_box box = {.dst = out ? copy : piece,
				   .src = out ? piece : copy,
				   .width = p->width,
				   .height = p->height,
				   .depth = p->depth};
	struct cudaMemcpy3DParms params = cu_box_params(&box);

	params.kind = copy_kind(be, out);
	return CU(be, cudaMemcpy3DAsync, &params, s);
}

static int copy_block(struct be *be, const struct moved_bytes *m, bool out, void *host,
		      cudaStream_t s)
{
	void *device = (void *)(uintptr_t)m->addr;

	if (m->array)
		return copy_piece(be, m, out, host, s);
	return CU(be, cudaMemcpyAsync, out ? host : device, out ? device : host, m->bytes,
		  copy_kind(be, out), s);
}

/* *kept: the store has the copy, or will have it. */
static int queue_copy(struct be *be, const struct moved_bytes *m, bool out, cudaStream_t s,
		      bool *kept)
{
	bool soon;
	void *host = be_store_at(m->store, m->block, !out, &soon);
	int ret;

	*kept = host;
	if (!host)
		return out ? QCU_ERR_Success : QCU_ERR_OperatingSystem;
	ret = copy_block(be, m, out, host, s);
	if (!ret && soon)
		ret = CU(be, cudaStreamSynchronize, s);
	if (!ret && soon && out)
		*kept = m->store->keep(m->store->ctx, m->block);
	return ret;
}

static int queue_copies(struct be *be, const struct cu_plot *b, unsigned int i, bool out,
			cudaStream_t s, bool *kept)
{
	struct moved_bytes m = {.store = &b->part[i].store};
	unsigned int n, copies = cu_copies(b, i);
	int ret = QCU_ERR_Success;

	*kept = true;
	for (n = 0; n < copies && !ret && *kept; n++) {
		m.block = b->part[i].copy[n];
		m.addr = cu_part_addr(b, i) + n * BE_PIECE;
		m.bytes = cu_copy_bytes(b, i, n);
		ret = queue_copy(be, &m, out, s, kept);
	}
	return ret;
}

static int queue_pieces(struct be *be, struct be_array *a, bool out, cudaStream_t s, bool *kept)
{
	struct moved_bytes m = {.store = &a->store, .array = a};
	int ret = QCU_ERR_Success;
	unsigned int n;

	*kept = true;
	for (n = 0; n < a->pieces && !ret && *kept; n++) {
		m.block = a->piece[n].copy;
		m.piece = &a->piece[n];
		ret = queue_copy(be, &m, out, s, kept);
	}
	return ret;
}

/* Begins to copy a part out, and marks it as moving. *bytes grows unless the store is full. */
static int copy_part_out(struct be *be, struct cu_plot *b, unsigned int i,
			 const struct be_store *store, cudaStream_t s, uint64_t *bytes)
{
	bool kept;
	int ret;

	if (!take_copies(b, i, store))
		return QCU_ERR_Success;
	b->part[i].state = CU_PART_MOVING;
	ret = queue_copies(be, b, i, true, s, &kept);
	if (ret || kept) {
		*bytes += cu_part_bytes(b, i);
		return ret;
	}
	/* It stays. Those of its copies that have been queued are still under way. */
	ret = CU(be, cudaStreamSynchronize, s);
	if (ret)
		return ret;
	b->part[i].state = CU_PART_HERE;
	cu_part_give(b, i, cu_copies(b, i));
	return QCU_ERR_Success;
}

static bool take_pieces(struct be_array *a, const struct be_store *store)
{
	unsigned int n;

	a->store = *store;
	for (n = 0; n < a->pieces; n++) {
		a->piece[n].copy = store->take(store->ctx, cu_piece_bytes(&a->piece[n]));
		if (!a->piece[n].copy) {
			cu_array_give(a, n);
			return false;
		}
	}
	return true;
}

/* As copy_part_out(). */
static int copy_array_out(struct be *be, struct be_array *a, const struct be_store *store,
			  cudaStream_t s, uint64_t *bytes)
{
	bool kept;
	int ret;

	if (!take_pieces(a, store))
		return QCU_ERR_Success;
	a->state = CU_PART_MOVING;
	ret = queue_pieces(be, a, true, s, &kept);
	if (ret || kept) {
		*bytes += a->taken;
		return ret;
	}
	ret = CU(be, cudaStreamSynchronize, s);
	if (ret)
		return ret;
	a->state = CU_PART_HERE;
	cu_array_give(a, a->pieces);
	return QCU_ERR_Success;
}

/* The next array of the device that is in this state; a: after this one, or NULL. */
static struct be_array *next_array(struct be *be, unsigned int dev, enum cu_part_state state,
				   struct be_array *a)
{
	a = a ? LIST_NEXT(a, link) : LIST_FIRST(&be->arrays);
	while (a && (a->dev != dev || a->state != state))
		a = LIST_NEXT(a, link);
	return a;
}

static struct be_array *find_smallest_array(struct be *be, unsigned int dev)
{
	struct be_array *a = next_array(be, dev, CU_PART_HERE, NULL), *least = a;

	while (a) {
		least = a->taken < least->taken ? a : least;
		a = next_array(be, dev, CU_PART_HERE, a);
	}
	return least;
}

/* Of those that are here. NULL: none is. */
static struct cu_plot *find_smallest_part(const struct be *be, unsigned int dev, unsigned int *at)
{
	struct walk w = {.dev = dev, .state = CU_PART_HERE};
	struct cu_plot *b = NULL;
	unsigned int i;

	while (next_part(be, &w, &i)) {
		if (b && cu_part_bytes(w.b, i) >= cu_part_bytes(b, *at))
			continue;
		b = w.b;
		*at = i;
	}
	return b;
}

/*
 * No more than is wanted, as far as the parts and arrays allow: of a VM more would leave than the
 * broker has ordered, and of small programs more than others need. One for which the store has no
 * room is passed over; a smaller one may fit.
 */
static int begin_to_leave(struct be *be, unsigned int dev, uint64_t want,
			  const struct be_store *store, cudaStream_t s)
{
	struct walk w = {.dev = dev, .state = CU_PART_HERE};
	int ret = QCU_ERR_Success;
	struct be_array *a = NULL;
	uint64_t bytes = 0;
	struct cu_plot *b;
	unsigned int i;

	while (!ret && bytes < want && next_part(be, &w, &i))
		if (cu_part_bytes(w.b, i) <= want - bytes)
			ret = copy_part_out(be, w.b, i, store, s, &bytes);
	while (!ret && bytes < want && (a = next_array(be, dev, CU_PART_HERE, a)))
		if (a->taken <= want - bytes)
			ret = copy_array_out(be, a, store, s, &bytes);
	if (ret || bytes >= want)
		return ret;
	/* Each that is left is larger than what is missing, or the store has no room for it. */
	b = find_smallest_part(be, dev, &i);
	a = find_smallest_array(be, dev);
	if (a && (!b || a->taken < cu_part_bytes(b, i)))
		return copy_array_out(be, a, store, s, &bytes);
	return b ? copy_part_out(be, b, i, store, s, &bytes) : ret;
}

/* All copies have been made, or (err set) perhaps not. Returns the first error. */
static int end_leave_of_parts(struct be *be, unsigned int dev, int err, uint64_t *left)
{
	struct walk w = {.dev = dev, .state = CU_PART_MOVING};
	struct cu_part *p;
	unsigned int i;
	int ret;

	while ((p = next_part(be, &w, &i))) {
		ret = err ? err
			  : CU_DRIVER(be, unmap, (CUdeviceptr)cu_part_addr(w.b, i),
				      cu_part_bytes(w.b, i));
		if (ret) {
			p->state = CU_PART_HERE;
			cu_part_give(w.b, i, cu_copies(w.b, i));
			err = ret;
			continue;
		}
		p->state = CU_PART_AWAY;
		*left += cu_part_bytes(w.b, i);
		/* Even if the driver keeps the memory, its content has left. */
		(void)CU_DRIVER(be, release, p->memory);
	}
	return err;
}

/* The same for the arrays. */
static int end_leave_of_arrays(struct be *be, unsigned int dev, int err, cudaStream_t s,
			       uint64_t *left)
{
	struct be_array *a = NULL;
	int ret;

	while ((a = next_array(be, dev, CU_PART_MOVING, a))) {
		ret = err ? err : cu_array_unmap(be, a, s);
		if (ret) {
			a->state = CU_PART_HERE;
			cu_array_give(a, a->pieces);
			err = ret;
			continue;
		}
		a->state = CU_PART_AWAY;
		*left += a->taken;
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
	/* What no pool uses need not be copied. */
	*left = cu_pools_give_back(be, dev, want);
	want -= *left < want ? *left : want;
	ret = cu_use(be, dev);
	if (!ret)
		ret = CU(be, cudaStreamCreateWithFlags, &s, cudaStreamNonBlocking);
	if (ret)
		return ret;
	(void)cu_kept_drop(be, dev);
	pthread_mutex_lock(&be->plot_lock);
	ret = begin_to_leave(be, dev, want, store, s);
	err = CU(be, cudaStreamSynchronize, s);
	ret = end_leave_of_parts(be, dev, ret ? ret : err, left);
	ret = end_leave_of_arrays(be, dev, ret, s, left);
	pthread_mutex_unlock(&be->plot_lock);
	err = CU(be, cudaStreamDestroy, s);
	return ret ? ret : err;
}

/* *full: there is no room for the next part, but all is well with those before it. */
static int begin_to_return_parts(struct be *be, unsigned int dev, cudaStream_t s, bool *full)
{
	struct walk w = {.dev = dev, .state = CU_PART_AWAY};
	int ret = QCU_ERR_Success;
	struct cu_part *p;
	unsigned int i;
	bool kept;

	while (!ret && (p = next_part(be, &w, &i))) {
		ret = cu_part_map(be, w.b, i);
		*full = ret == QCU_ERR_MemoryAllocation;
		if (ret)
			break;
		p->state = CU_PART_MOVING;
		ret = cu_plot_grant(be, w.b, cu_part_addr(w.b, i), cu_part_bytes(w.b, i));
		if (!ret)
			ret = queue_copies(be, w.b, i, false, s, &kept);
	}
	return ret;
}

/* All are mapped before the first copy, since a copy must find its array mapped. */
static int begin_to_return_arrays(struct be *be, unsigned int dev, cudaStream_t s, bool *full)
{
	struct be_array *a = NULL;
	int ret = QCU_ERR_Success, err;
	bool kept;

	while (!ret && (a = next_array(be, dev, CU_PART_AWAY, a))) {
		ret = cu_array_map(be, a, s);
		if (!ret)
			a->state = CU_PART_MOVING;
	}
	if (ret && ret != QCU_ERR_MemoryAllocation)
		return ret;
	err = CU(be, cudaStreamSynchronize, s);
	for (a = NULL; !err && (a = next_array(be, dev, CU_PART_MOVING, a));)
		err = queue_pieces(be, a, false, s, &kept);
	*full = ret && !err;
	return err ? err : ret;
}

static void end_return_of_parts(struct be *be, unsigned int dev, bool right, uint64_t *back)
{
	struct walk w = {.dev = dev, .state = CU_PART_MOVING};
	struct cu_part *p;
	unsigned int i;

	while ((p = next_part(be, &w, &i))) {
		if (right) {
			p->state = CU_PART_HERE;
			*back += cu_part_bytes(w.b, i);
			cu_part_give(w.b, i, cu_copies(w.b, i));
		} else {
			p->state = CU_PART_AWAY;
			(void)cu_part_unmap(be, w.b, i);
		}
	}
}

static void end_return_of_arrays(struct be *be, unsigned int dev, bool right, cudaStream_t s,
				 uint64_t *back)
{
	struct be_array *a = NULL;

	while ((a = next_array(be, dev, CU_PART_MOVING, a))) {
		if (right) {
			a->state = CU_PART_HERE;
			*back += a->taken;
			cu_array_give(a, a->pieces);
		} else {
			a->state = CU_PART_AWAY;
			(void)cu_array_unmap(be, a, s);
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
	pthread_mutex_lock(&be->plot_lock);
	ret = begin_to_return_parts(be, dev, s, &full);
	if (!ret)
		ret = begin_to_return_arrays(be, dev, s, &full);
	err = CU(be, cudaStreamSynchronize, s);
	end_return_of_parts(be, dev, !err && (!ret || full), back);
	end_return_of_arrays(be, dev, !err && (!ret || full), s, back);
	pthread_mutex_unlock(&be->plot_lock);
	ret = ret ? ret : err;
	err = CU(be, cudaStreamDestroy, s);
	return ret ? ret : err;
}

static uint64_t sum_movable(struct be *be, unsigned int dev, enum cu_part_state state)
{
	struct walk w = {.dev = dev, .state = state};
	struct be_array *a = NULL;
	uint64_t sum = 0;
	unsigned int i;

	pthread_mutex_lock(&be->plot_lock);
	while (next_part(be, &w, &i))
		sum += cu_part_bytes(w.b, i);
	while ((a = next_array(be, dev, state, a)))
		sum += a->taken;
	pthread_mutex_unlock(&be->plot_lock);
	return sum;
}

uint64_t cu_mem_movable(struct be *be, unsigned int dev)
{
	return sum_movable(be, dev, CU_PART_HERE);
}

uint64_t cu_mem_away(struct be *be, unsigned int dev)
{
	return sum_movable(be, dev, CU_PART_AWAY);
}

/* Maps it for the thread's device. The mapping keeps the memory when its handle has been released.
 */
static int map_for_store(struct be *be, CUdeviceptr at, uint64_t bytes)
{
	const CUmemLocation there = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)be->devices};
	const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = there};
	const CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)cu_current()},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemGenericAllocationHandle memory;
	int ret = CU_DRIVER(be, create, &memory, bytes, &prop, 0);

	if (ret)
		return ret;
	ret = CU_DRIVER(be, map, at, bytes, 0, memory, 0);
	(void)CU_DRIVER(be, release, memory);
	if (ret)
		return ret;
	ret = CU_DRIVER(be, access, at, bytes, &access, 1);
	if (ret)
		(void)CU_DRIVER(be, unmap, at, bytes);
	return ret;
}

void *cu_store_take(struct be *be, uint64_t bytes)
{
	CUdeviceptr at = 0;
	int ret;

	if (!be->store || !be->movable)
		return NULL;
	ret = cu_area_take(be, cu_units(bytes), 0, 0, &at);
	if (ret)
		return NULL;
	ret = map_for_store(be, at, cu_units(bytes));
	if (ret)
		(void)cu_area_give(be, at, cu_units(bytes));
	return ret ? NULL : (void *)(uintptr_t)at;
}

/* What cannot be unmapped keeps its addresses, so nothing else is mapped there. */
void cu_store_give(struct be *be, void *p, uint64_t bytes)
{
	const CUdeviceptr at = (uintptr_t)p;

	if (!CU_DRIVER(be, unmap, at, cu_units(bytes)))
		(void)cu_area_give(be, at, cu_units(bytes));
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CUDA arrays of the cuda backend, and copies of boxes. The backend asks once for the levels of a
 * mipmapped array. They are CUDA's and go with the array.
 *
 * With options.movable an array gets memory of its own, if CUDA can make an array without memory
 * and map it later ("deferred mapping"). So its memory can leave, and other memory come in its
 * place, while its handle stays, with the textures, surfaces and graphs that have it
 * (be_cuda_move.c). CUDA chooses the layout, so what moves is the elements, in boxes. These stay:
 *
 * - arrays that CUDA would put into less than half of a unit, because here each takes whole units;
 * - all arrays if there are several devices: peers' copies to such arrays have not been tried;
 * - arrays in memory that the caller has made.
 */
#include <stdlib.h>
#include <unistd.h>

#include "qcu-device/backend/cuda/be_cuda.h"

static struct cudaChannelFormatDesc format(const struct be_array_desc *d)
{
	return (struct cudaChannelFormatDesc){
		.x = d->bits[0],
		.y = d->bits[1],
		.z = d->bits[2],
		.w = d->bits[3],
		.f = (enum cudaChannelFormatKind)d->kind,
	};
}

/* A file of CUDA's own is external memory, too, and that is what CUDA places arrays in. */
static int place_array_in_memory(struct be *be, struct be_array *a, struct be_phys *p,
				 uint64_t offset)
{
	struct cudaExternalMemoryHandleDesc memory = {.type = cudaExternalMemoryHandleTypeOpaqueFd};
	struct cudaExternalMemoryMipmappedArrayDesc array = {
		.offset = offset,
		.formatDesc = format(&a->desc),
		.extent = {a->desc.width, a->desc.height, a->desc.depth},
		.flags = a->desc.flags,
		.numLevels = a->desc.levels,
	};
	uint64_t size;
	int ret = cu_phys_file(be, p, &memory.handle.fd, &size);

	if (ret)
		return ret;
	memory.size = size;
	ret = CU(be, cudaImportExternalMemory, &a->memory, &memory);
	if (ret) {
		close(memory.handle.fd);
		return ret;
	}
	return CU(be, cudaExternalMemoryGetMappedMipmappedArray, &a->mipmap, a->memory, &array);
}

static int free_handles(struct be *be, struct be_array *a)
{
	int ret = QCU_ERR_Success, err = QCU_ERR_Success;

	if (a->mipmap)
		ret = CU(be, cudaFreeMipmappedArray, a->mipmap);
	else if (a->level[0])
		ret = CU(be, cudaFreeArray, a->level[0]);
	if (a->memory)
		err = CU(be, cudaDestroyExternalMemory, a->memory);
	a->mipmap = NULL;
	a->level[0] = NULL;
	a->memory = NULL;
	return ret ? ret : err;
}

/* flags: beyond those of the description. */
static int make_cuda_array(struct be *be, struct be_array *a, struct be_phys *p, uint64_t offset,
			   unsigned int flags)
{
	const struct be_array_desc *d = &a->desc;
	struct cudaChannelFormatDesc f = format(d);
	struct cudaExtent size = {d->width, d->height, d->depth};
	unsigned int i;
	int ret;

	flags |= d->flags;
	if (!d->levels && !p)
		return CU(be, cudaMalloc3DArray, &a->level[0], &f, size, flags);
	ret = p ? place_array_in_memory(be, a, p, offset)
		: CU(be, cudaMallocMipmappedArray, &a->mipmap, &f, size, d->levels, flags);
	for (i = 0; i < d->levels && !ret; i++)
		ret = CU(be, cudaGetMipmappedArrayLevel, &a->level[i], a->mipmap, i);
	if (ret)
		free_handles(be, a);
	return ret;
}

/* ---- memory of its own ---- */

/*
 * Cuts a level into pieces of at most BE_PIECE bytes: some of its slices, or some rows of one. A
 * row is never larger. Returns how many there are. to: where they are written, or NULL.
 */
static unsigned int cut_level(const struct be_array_desc *d, uint32_t level, struct cu_piece *to)
{
	uint32_t size[3];
	uint64_t row, slice, rows, slices, y, z;
	unsigned int n = 0;

	be_array_extent(d, level, size);
	row = (uint64_t)size[0] * be_array_elem(d);
	slice = row * size[1];
	rows = slice <= BE_PIECE ? size[1] : BE_PIECE / row;
	slices = slice <= BE_PIECE ? BE_PIECE / slice : 1;
	for (z = 0; z < size[2]; z += slices)
		for (y = 0; y < size[1]; y += rows, n++)
			if (to)
				to[n] = (struct cu_piece){
					.level = level,
					.y = (uint32_t)y,
					.z = (uint32_t)z,
					.width = (uint32_t)row,
					.height =
						(uint32_t)(rows < size[1] - y ? rows : size[1] - y),
					.depth = (uint32_t)(slices < size[2] - z ? slices
										 : size[2] - z),
				};
	return n;
}

static bool cut_array(struct be_array *a)
{
	uint32_t level, levels = a->desc.levels ? a->desc.levels : 1;
	unsigned int n = 0;

	for (level = 0; level < levels; level++)
		n += cut_level(&a->desc, level, NULL);
	a->piece = calloc(n, sizeof(*a->piece));
	for (level = 0; level < levels && a->piece; level++)
		a->pieces += cut_level(&a->desc, level, a->piece + a->pieces);
	return a->piece;
}

/* CUDA maps all of the array, whatever subresource is named. memory: 0 ends the mapping. */
static int map_array(struct be *be, const struct be_array *a, CUmemGenericAllocationHandle memory,
		     cudaStream_t s)
{
	CUarrayMapInfo info = {
		.resourceType =
			a->mipmap ? CU_RESOURCE_TYPE_MIPMAPPED_ARRAY : CU_RESOURCE_TYPE_ARRAY,
		.memOperationType =
			memory ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
		.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
		.memHandle = {.memHandle = memory},
		.deviceBitMask = 1u << a->dev,
	};

	/* The runtime's types of arrays are the driver's. */
	if (a->mipmap)
		info.resource.mipmap = (CUmipmappedArray)a->mipmap;
	else
		info.resource.array = (CUarray)a->level[0];
	return CU_DRIVER(be, map_array, &info, 1, s);
}

static int unmap_array(struct be *be, struct be_array *a, cudaStream_t s)
{
	int ret = map_array(be, a, 0, s);

	return ret ? ret : CU(be, cudaStreamSynchronize, s);
}

int cu_array_map(struct be *be, struct be_array *a, cudaStream_t s)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)a->dev},
		.allocFlags = {.usage = CU_MEM_CREATE_USAGE_TILE_POOL},
	};
	int ret = CU_DRIVER(be, create, &a->own, a->taken, &prop, 0);

	if (ret)
		return ret;
	ret = map_array(be, a, a->own, s);
	if (ret)
		CU_DRIVER(be, release, a->own);
	return ret;
}

int cu_array_unmap(struct be *be, struct be_array *a, cudaStream_t s)
{
	int ret = unmap_array(be, a, s);

	/* Even if the driver keeps the memory, nothing is there any more. */
	if (!ret)
		(void)CU_DRIVER(be, release, a->own);
	return ret;
}

void cu_array_give(struct be_array *a, unsigned int count)
{
	while (count--) {
		a->store.give(a->store.ctx, a->piece[count].copy, cu_piece_bytes(&a->piece[count]));
		a->piece[count].copy = NULL;
	}
}

/* Nothing uses the array any more, and nobody knows it. */
static int end_array(struct be *be, struct be_array *a)
{
	const bool here = a->taken && a->state != CU_PART_AWAY;
	int ret = QCU_ERR_Success, err;
	cudaStream_t s;

	if (here) {
		ret = CU(be, cudaStreamCreateWithFlags, &s, cudaStreamNonBlocking);
		if (!ret) {
			ret = unmap_array(be, a, s);
			CU(be, cudaStreamDestroy, s);
		}
	}
	err = free_handles(be, a);
	ret = ret ? ret : err;
	err = here ? CU_DRIVER(be, release, a->own) : QCU_ERR_Success;
	if (a->taken && !here)
		cu_array_give(a, a->pieces);
	cu_uncharge(be, a->dev, a->charged);
	free(a->piece);
	return ret ? ret : err;
}

static int map_first_memory(struct be *be, struct be_array *a)
{
	cudaStream_t s;
	int ret = CU(be, cudaStreamCreateWithFlags, &s, cudaStreamNonBlocking);

	if (ret)
		return ret;
	ret = cu_array_map(be, a, s);
	if (ret == QCU_ERR_MemoryAllocation && cu_kept_drop(be, a->dev))
		ret = cu_array_map(be, a, s);
	if (!ret) {
		ret = CU(be, cudaStreamSynchronize, s);
		if (ret)
			(void)cu_array_unmap(be, a, s);
	}
	CU(be, cudaStreamDestroy, s);
	return ret;
}

/* The caller charges for the elements. What the layout and the unit add is charged here. */
static int take_own_memory(struct be *be, struct be_array *a)
{
	struct cudaArrayMemoryRequirements need = {0};
	uint64_t elements;
	int ret = a->mipmap
			  ? CU(be, cudaMipmappedArrayGetMemoryRequirements, &need, a->mipmap,
			       (int)a->dev)
			  : CU(be, cudaArrayGetMemoryRequirements, &need, a->level[0], (int)a->dev);

	if (ret)
		return ret;
	if (need.size <= CU_UNIT / 2 || !be_array_bytes(&a->desc, &elements))
		return QCU_ERR_NotSupported;
	a->taken = cu_units(need.size);
	a->charged = a->taken > elements ? a->taken - elements : 0;
	if (!cu_charge(be, a->dev, a->charged)) {
		a->charged = a->taken = 0;
		return QCU_ERR_MemoryAllocation;
	}
	ret = map_first_memory(be, a);
	if (ret) {
		cu_uncharge(be, a->dev, a->charged);
		a->charged = a->taken = 0;
	}
	return ret;
}

/* "Not supported": it must be an array that stays. */
static int create_movable(struct be *be, struct be_array *a)
{
	int can = 0, ret;

	if (!be->movable || be->devices != 1 || !be->place.map_array ||
	    (uint64_t)a->desc.width * be_array_elem(&a->desc) > BE_PIECE)
		return QCU_ERR_NotSupported;
	ret = CU(be, cudaDeviceGetAttribute, &can, cudaDevAttrDeferredMappingCudaArraySupported,
		 (int)a->dev);
	if (!ret && !can)
		ret = QCU_ERR_NotSupported;
	if (!ret)
		ret = make_cuda_array(be, a, NULL, 0, cudaArrayDeferredMapping);
	if (ret)
		return ret;
	ret = take_own_memory(be, a);
	if (!ret && !cut_array(a))
		ret = QCU_ERR_MemoryAllocation;
	if (ret) {
		(void)end_array(be, a);
		return ret;
	}
	pthread_mutex_lock(&be->plot_lock);
	LIST_INSERT_HEAD(&be->arrays, a, link);
	pthread_mutex_unlock(&be->plot_lock);
	return ret;
}

int cu_array_create(struct be *be, unsigned int dev, const struct be_array_desc *desc,
		    struct be_phys *p, uint64_t offset, struct be_array **out)
{
	struct be_array *a;
	int ret = cu_use(be, dev);

	if (ret)
		return ret;
	if (desc->levels > QCU_LEVELS_MAX)
		return QCU_ERR_InvalidValue;
	a = calloc(1, sizeof(*a));
	if (!a)
		return QCU_ERR_MemoryAllocation;
	a->desc = *desc;
	a->dev = dev;
	ret = p ? (int)QCU_ERR_NotSupported : create_movable(be, a);
	/* Whatever CUDA does not support there: the array stays, or is no valid one. */
	if (ret == QCU_ERR_NotSupported || ret == QCU_ERR_InvalidValue ||
	    ret == QCU_ERR_CallRequiresNewerDriver)
		ret = make_cuda_array(be, a, p, offset, 0);
	if (ret) {
		free(a);
		return ret;
	}
	*out = a;
	return QCU_ERR_Success;
}

int cu_array_destroy(struct be *be, struct be_array *a)
{
	int ret = cu_use(be, a->dev), err;

	if (a->taken) {
		/* It may be coming back, under the lock. */
		pthread_mutex_lock(&be->plot_lock);
		LIST_REMOVE(a, link);
		pthread_mutex_unlock(&be->plot_lock);
	}
	/* The driver takes memory away at once, so all work that may use it must have ended. */
	if (!ret && a->taken && a->state != CU_PART_AWAY)
		ret = CU(be, cudaDeviceSynchronize);
	err = end_array(be, a);
	free(a);
	return ret ? ret : err;
}

/* CUDA counts in elements as soon as one side is an array. */
static void put_side(const struct be_side *e, const struct be_box *box, cudaArray_t *array,
		     struct cudaPos *pos, struct cudaPitchedPtr *ptr)
{
	if (e->array) {
		*array = e->array->level[e->level];
		*pos = (struct cudaPos){e->x / be_array_elem(&e->array->desc), e->y, e->z};
		return;
	}
	*ptr = (struct cudaPitchedPtr){
		.ptr = (void *)(uintptr_t)e->addr,
		.pitch = e->pitch < box->width ? box->width : e->pitch,
		.xsize = box->width,
		.ysize = e->rows,
	};
}

struct cudaMemcpy3DParms cu_box_params(const struct be_box *box)
{
	const struct be_array *a = box->dst.array ? box->dst.array : box->src.array;
	struct cudaMemcpy3DParms p = {
		.extent = {box->width, box->height, box->depth},
		.kind = cu_copy_kind(box->dst.host, box->src.host),
	};

	if (a)
		p.extent.width /= be_array_elem(&a->desc);
	put_side(&box->dst, box, &p.dstArray, &p.dstPos, &p.dstPtr);
	put_side(&box->src, box, &p.srcArray, &p.srcPos, &p.srcPtr);
	return p;
}

int cu_copy_box(struct be *be, const struct be_box *box, struct be_stream *s)
{
	const struct be_array *a = box->dst.array ? box->dst.array : box->src.array;
	struct cudaMemcpy3DParms p = cu_box_params(box);
	int ret = cu_stream_use(be, s);

	if (ret)
		return ret;
	if (!a && box->depth == 1)
		return CU(be, cudaMemcpy2DAsync, (void *)(uintptr_t)box->dst.addr,
			  box->dst.pitch < box->width ? box->width : box->dst.pitch,
			  (const void *)(uintptr_t)box->src.addr,
			  box->src.pitch < box->width ? box->width : box->src.pitch, box->width,
			  box->height, p.kind, s->s);
	return CU(be, cudaMemcpy3DAsync, &p, s->s);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CUDA arrays of the cuda backend, and copies of boxes. The backend asks once for the levels of a
 * mipmapped array. They are CUDA's and go with the array.
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

static void free_mipmap_and_memory(struct be *be, struct be_array *a)
{
	if (a->mipmap)
		CU(be, cudaFreeMipmappedArray, a->mipmap);
	if (a->memory)
		CU(be, cudaDestroyExternalMemory, a->memory);
}

static int create(struct be *be, struct be_array *a, struct be_phys *p, uint64_t offset)
{
	const struct be_array_desc *d = &a->desc;
	struct cudaChannelFormatDesc f = format(d);
	struct cudaExtent size = {d->width, d->height, d->depth};
	unsigned int i;
	int ret;

	if (!d->levels && !p)
		return CU(be, cudaMalloc3DArray, &a->level[0], &f, size, d->flags);
	ret = p ? place_array_in_memory(be, a, p, offset)
		: CU(be, cudaMallocMipmappedArray, &a->mipmap, &f, size, d->levels, d->flags);
	for (i = 0; i < d->levels && !ret; i++)
		ret = CU(be, cudaGetMipmappedArrayLevel, &a->level[i], a->mipmap, i);
	if (ret)
		free_mipmap_and_memory(be, a);
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
	ret = create(be, a, p, offset);
	if (ret) {
		free(a);
		return ret;
	}
	*out = a;
	return QCU_ERR_Success;
}

int cu_array_destroy(struct be *be, struct be_array *a)
{
	int ret = cu_use(be, a->dev);

	if (!ret && a->mipmap)
		free_mipmap_and_memory(be, a);
	else if (!ret)
		ret = CU(be, cudaFreeArray, a->level[0]);
	free(a);
	return ret;
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

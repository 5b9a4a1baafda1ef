// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory, its copies, textures and surfaces, where CUDA 12 has other parameters than 13. */
#include <stdint.h>
#include <string.h>

#include "qcu-library/cuda12/cuda12.h"

cudaError_t cuda12_PointerGetAttributes(struct cuda12_pointer_attributes *to, const void *ptr)
{
	struct cudaPointerAttributes from;
	cudaError_t err = cudaPointerGetAttributes(to ? &from : NULL, ptr);

	if (!err)
		*to = (struct cuda12_pointer_attributes){
			.type = from.type,
			.device = from.device,
			.devicePointer = from.devicePointer,
			.hostPointer = from.hostPointer,
		};
	return err;
}

/* ---- managed memory: 12 names a location by the number of a device, or -1 for the CPU ---- */

static struct cudaMemLocation location_of_device(int device)
{
	if (device == cudaCpuDeviceId)
		return (struct cudaMemLocation){.type = cudaMemLocationTypeHost};
	return (struct cudaMemLocation){.type = cudaMemLocationTypeDevice, .id = device};
}

cudaError_t cuda12_MemAdvise(const void *ptr, size_t count, enum cudaMemoryAdvise advice,
			     int device)
{
	return cudaMemAdvise(ptr, count, advice, location_of_device(device));
}

cudaError_t cuda12_MemPrefetchAsync(const void *ptr, size_t count, int device, cudaStream_t stream)
{
	return cudaMemPrefetchAsync(ptr, count, location_of_device(device), 0, stream);
}

cudaError_t cuda12_MemPrefetchAsync_ptsz(const void *ptr, size_t count, int device,
					 cudaStream_t stream)
{
	return cudaMemPrefetchAsync_ptsz(ptr, count, location_of_device(device), 0, stream);
}

/* ---- batches: 12 says which copy failed; SIZE_MAX means that it does not know ---- */

static cudaError_t failed_somewhere(cudaError_t err, size_t *failed)
{
	if (err && failed)
		*failed = SIZE_MAX;
	return err;
}

cudaError_t cuda12_MemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
				    struct cudaMemcpyAttributes *attrs, size_t *attr_indices,
				    size_t attr_count, size_t *failed, cudaStream_t stream)
{
	return failed_somewhere(cudaMemcpyBatchAsync(dsts, (const void **)srcs, sizes, count, attrs,
						     attr_indices, attr_count, stream),
				failed);
}

cudaError_t cuda12_MemcpyBatchAsync_ptsz(void **dsts, void **srcs, size_t *sizes, size_t count,
					 struct cudaMemcpyAttributes *attrs, size_t *attr_indices,
					 size_t attr_count, size_t *failed, cudaStream_t stream)
{
	return failed_somewhere(cudaMemcpyBatchAsync_ptsz(dsts, (const void **)srcs, sizes, count,
							  attrs, attr_indices, attr_count, stream),
				failed);
}

cudaError_t cuda12_Memcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *ops, size_t *failed,
				      unsigned long long flags, cudaStream_t stream)
{
	return failed_somewhere(cudaMemcpy3DBatchAsync(count, ops, flags, stream), failed);
}

cudaError_t cuda12_Memcpy3DBatchAsync_ptsz(size_t count, struct cudaMemcpy3DBatchOp *ops,
					   size_t *failed, unsigned long long flags,
					   cudaStream_t stream)
{
	return failed_somewhere(cudaMemcpy3DBatchAsync_ptsz(count, ops, flags, stream), failed);
}

/* ---- textures and surfaces: 13 has appended fields, which are 0 ---- */

_Static_assert(sizeof(struct cuda12_resource_desc) == 64, "as in CUDA 12");
_Static_assert(sizeof(struct cuda12_resource_view_desc) == 48, "as in CUDA 12");

static const struct cudaResourceDesc *resource13(const struct cuda12_resource_desc *from,
						 struct cudaResourceDesc *to)
{
	if (!from)
		return NULL;
	memset(to, 0, sizeof(*to));
	to->resType = from->resType;
	memcpy(&to->res, &from->res, sizeof(from->res));
	return to;
}

static void resource12(const struct cudaResourceDesc *from, struct cuda12_resource_desc *to)
{
	memset(to, 0, sizeof(*to));
	to->resType = from->resType;
	memcpy(&to->res, &from->res, sizeof(to->res));
}

cudaError_t cuda12_CreateTextureObject(cudaTextureObject_t *object,
				       const struct cuda12_resource_desc *resource,
				       const struct cudaTextureDesc *texture,
				       const struct cuda12_resource_view_desc *view)
{
	struct cudaResourceDesc to;
	struct cudaResourceViewDesc to_view = {0};

	if (view)
		memcpy(&to_view, view, sizeof(*view));
	return cudaCreateTextureObject(object, resource13(resource, &to), texture,
				       view ? &to_view : NULL);
}

cudaError_t cuda12_CreateSurfaceObject(cudaSurfaceObject_t *object,
				       const struct cuda12_resource_desc *resource)
{
	struct cudaResourceDesc to;

	return cudaCreateSurfaceObject(object, resource13(resource, &to));
}

cudaError_t cuda12_GetTextureObjectResourceDesc(struct cuda12_resource_desc *resource,
						cudaTextureObject_t object)
{
	struct cudaResourceDesc from;
	cudaError_t err = cudaGetTextureObjectResourceDesc(resource ? &from : NULL, object);

	if (!err)
		resource12(&from, resource);
	return err;
}

cudaError_t cuda12_GetTextureObjectResourceViewDesc(struct cuda12_resource_view_desc *view,
						    cudaTextureObject_t object)
{
	struct cudaResourceViewDesc from;
	cudaError_t err = cudaGetTextureObjectResourceViewDesc(view ? &from : NULL, object);

	if (!err)
		memcpy(view, &from, sizeof(*view));
	return err;
}

cudaError_t cuda12_GetSurfaceObjectResourceDesc(struct cuda12_resource_desc *resource,
						cudaSurfaceObject_t object)
{
	struct cudaResourceDesc from;
	cudaError_t err = cudaGetSurfaceObjectResourceDesc(resource ? &from : NULL, object);

	if (!err)
		resource12(&from, resource);
	return err;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Texture and surface objects: they are the runtime's, described in the driver API's way. */
#include <string.h>

#include "qcu-library/driver_api/array.h"

_Static_assert((int)CU_RESOURCE_TYPE_PITCH2D == (int)cudaResourceTypePitch2D &&
		       (int)CU_RESOURCE_TYPE_MIPMAPPED_ARRAY ==
			       (int)cudaResourceTypeMipmappedArray &&
		       (int)CU_TR_ADDRESS_MODE_BORDER == (int)cudaAddressModeBorder &&
		       (int)CU_TR_FILTER_MODE_LINEAR == (int)cudaFilterModeLinear &&
		       (int)CU_RES_VIEW_FORMAT_UNSIGNED_BC7 ==
			       (int)cudaResViewFormatUnsignedBlockCompressed7,
	       "textures");

/* ---- resources ---- */

static cudaError_t resource_from(struct cudaResourceDesc *to, const CUDA_RESOURCE_DESC *from)
{
	*to = (struct cudaResourceDesc){.resType = (enum cudaResourceType)from->resType};
	if (from->flags)
		return cudaErrorInvalidValue;
	switch (from->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		to->res.array.array = (cudaArray_t)from->res.array.hArray;
		return cudaSuccess;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		to->res.mipmap.mipmap = (cudaMipmappedArray_t)from->res.mipmap.hMipmappedArray;
		return cudaSuccess;
	case CU_RESOURCE_TYPE_LINEAR:
		to->res.linear.devPtr = qcul_driver_ptr(from->res.linear.devPtr);
		to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
		return qcul_format_from(&to->res.linear.desc, from->res.linear.format,
					from->res.linear.numChannels);
	case CU_RESOURCE_TYPE_PITCH2D:
		to->res.pitch2D.devPtr = qcul_driver_ptr(from->res.pitch2D.devPtr);
		to->res.pitch2D.width = from->res.pitch2D.width;
		to->res.pitch2D.height = from->res.pitch2D.height;
		to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
		return qcul_format_from(&to->res.pitch2D.desc, from->res.pitch2D.format,
					from->res.pitch2D.numChannels);
	}
	return cudaErrorInvalidValue;
}

static void resource_to(CUDA_RESOURCE_DESC *to, const struct cudaResourceDesc *from)
{
	memset(to, 0, sizeof(*to));
	to->resType = (CUresourcetype)from->resType;
	switch (to->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		to->res.array.hArray = (CUarray)from->res.array.array;
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		to->res.mipmap.hMipmappedArray = (CUmipmappedArray)from->res.mipmap.mipmap;
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		to->res.linear.devPtr = (CUdeviceptr)(uintptr_t)from->res.linear.devPtr;
		to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
		qcul_format_to(&to->res.linear.format, &to->res.linear.numChannels,
			       &from->res.linear.desc);
		break;
	case CU_RESOURCE_TYPE_PITCH2D:
		to->res.pitch2D.devPtr = (CUdeviceptr)(uintptr_t)from->res.pitch2D.devPtr;
		to->res.pitch2D.width = from->res.pitch2D.width;
		to->res.pitch2D.height = from->res.pitch2D.height;
		to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
		qcul_format_to(&to->res.pitch2D.format, &to->res.pitch2D.numChannels,
			       &from->res.pitch2D.desc);
		break;
	}
}

/* The format of what a resource holds. */
static cudaError_t format_of(const struct cudaResourceDesc *r, struct cudaChannelFormatDesc *format)
{
	cudaArray_t array = r->res.array.array;
	cudaError_t err;

	switch (r->resType) {
	case cudaResourceTypeLinear:
		*format = r->res.linear.desc;
		return cudaSuccess;
	case cudaResourceTypePitch2D:
		*format = r->res.pitch2D.desc;
		return cudaSuccess;
	case cudaResourceTypeMipmappedArray:
		err = cudaGetMipmappedArrayLevel(&array, r->res.mipmap.mipmap, 0);
		if (err)
			return err;
		break;
	default:
		break;
	}
	return cudaGetChannelDesc(format, array);
}

static bool no_array(const CUDA_RESOURCE_DESC *r)
{
	return r->resType == CU_RESOURCE_TYPE_ARRAY && !r->res.array.hArray;
}

/* ---- textures ---- */

#define TEXTURE_FLAGS                                                              \
	(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB | \
	 CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP)

/* Small integers are read as numbers from 0 to 1, unless the program wants integers. */
static bool read_normalized(const struct cudaChannelFormatDesc *format, unsigned int flags)
{
	return format->f != cudaChannelFormatKindFloat && format->x < 32 &&
	       !(flags & CU_TRSF_READ_AS_INTEGER);
}

static cudaError_t texture_from(struct cudaTextureDesc *to, const CUDA_TEXTURE_DESC *from,
				const struct cudaResourceDesc *resource)
{
	struct cudaChannelFormatDesc format;
	cudaError_t err =
		from->flags & ~TEXTURE_FLAGS ? cudaErrorInvalidValue : format_of(resource, &format);
	unsigned int i;

	if (err)
		return err;
	*to = (struct cudaTextureDesc){
		.filterMode = (enum cudaTextureFilterMode)from->filterMode,
		.readMode = read_normalized(&format, from->flags) ? cudaReadModeNormalizedFloat
								  : cudaReadModeElementType,
		.sRGB = !!(from->flags & CU_TRSF_SRGB),
		.normalizedCoords = !!(from->flags & CU_TRSF_NORMALIZED_COORDINATES),
		.maxAnisotropy = from->maxAnisotropy,
		.mipmapFilterMode = (enum cudaTextureFilterMode)from->mipmapFilterMode,
		.mipmapLevelBias = from->mipmapLevelBias,
		.minMipmapLevelClamp = from->minMipmapLevelClamp,
		.maxMipmapLevelClamp = from->maxMipmapLevelClamp,
		.disableTrilinearOptimization =
			!!(from->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION),
		.seamlessCubemap = !!(from->flags & CU_TRSF_SEAMLESS_CUBEMAP),
	};
	for (i = 0; i < 3; i++)
		to->addressMode[i] = (enum cudaTextureAddressMode)from->addressMode[i];
	memcpy(to->borderColor, from->borderColor, sizeof(to->borderColor));
	return cudaSuccess;
}

static void texture_to(CUDA_TEXTURE_DESC *to, const struct cudaTextureDesc *from)
{
	unsigned int i;

	*to = (CUDA_TEXTURE_DESC){
		.filterMode = (CUfilter_mode)from->filterMode,
		.flags =
			(from->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0) |
			(from->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0) |
			(from->sRGB ? CU_TRSF_SRGB : 0) |
			(from->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION
							    : 0) |
			(from->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0),
		.maxAnisotropy = from->maxAnisotropy,
		.mipmapFilterMode = (CUfilter_mode)from->mipmapFilterMode,
		.mipmapLevelBias = from->mipmapLevelBias,
		.minMipmapLevelClamp = from->minMipmapLevelClamp,
		.maxMipmapLevelClamp = from->maxMipmapLevelClamp,
	};
	for (i = 0; i < 3; i++)
		to->addressMode[i] = (CUaddress_mode)from->addressMode[i];
	memcpy(to->borderColor, from->borderColor, sizeof(to->borderColor));
}

static struct cudaResourceViewDesc view_from(const CUDA_RESOURCE_VIEW_DESC *from)
{
	return (struct cudaResourceViewDesc){
		.format = (enum cudaResourceViewFormat)from->format,
		.width = from->width,
		.height = from->height,
		.depth = from->depth,
		.firstMipmapLevel = from->firstMipmapLevel,
		.lastMipmapLevel = from->lastMipmapLevel,
		.firstLayer = from->firstLayer,
		.lastLayer = from->lastLayer,
	};
}

static cudaError_t create_driver_texture(CUtexObject *object, const CUDA_RESOURCE_DESC *resource,
					 const CUDA_TEXTURE_DESC *texture,
					 const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct cudaResourceViewDesc v;
	struct cudaResourceDesc r;
	struct cudaTextureDesc t;
	cudaError_t err;

	if (!object || !resource || !texture || no_array(resource))
		return cudaErrorInvalidValue;
	err = resource_from(&r, resource);
	if (!err)
		err = texture_from(&t, texture, &r);
	if (err)
		return err;
	if (view)
		v = view_from(view);
	return cudaCreateTextureObject((cudaTextureObject_t *)object, &r, &t, view ? &v : NULL);
}

CUresult cuTexObjectCreate(CUtexObject *object, const CUDA_RESOURCE_DESC *resource,
			   const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
	return QCUL_RUNTIME(create_driver_texture(object, resource, texture, view));
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUtexObject object)
{
	struct cudaResourceDesc r;
	CUresult result = QCUL_RUNTIME(resource ? cudaGetTextureObjectResourceDesc(&r, object)
						: cudaErrorInvalidValue);

	if (!result)
		resource_to(resource, &r);
	return result;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *texture, CUtexObject object)
{
	struct cudaTextureDesc t;
	CUresult result = QCUL_RUNTIME(texture ? cudaGetTextureObjectTextureDesc(&t, object)
					       : cudaErrorInvalidValue);

	if (!result)
		texture_to(texture, &t);
	return result;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *view, CUtexObject object)
{
	struct cudaResourceViewDesc v;
	CUresult result = QCUL_RUNTIME(view ? cudaGetTextureObjectResourceViewDesc(&v, object)
					    : cudaErrorInvalidValue);

	if (!result)
		*view = (CUDA_RESOURCE_VIEW_DESC){
			.format = (CUresourceViewFormat)v.format,
			.width = v.width,
			.height = v.height,
			.depth = v.depth,
			.firstMipmapLevel = v.firstMipmapLevel,
			.lastMipmapLevel = v.lastMipmapLevel,
			.firstLayer = v.firstLayer,
			.lastLayer = v.lastLayer,
		};
	return result;
}

/* ---- surfaces ---- */

static cudaError_t create_driver_surface(CUsurfObject *object, const CUDA_RESOURCE_DESC *resource)
{
	struct cudaResourceDesc r;
	cudaError_t err = cudaErrorInvalidValue;

	if (object && resource && !no_array(resource))
		err = resource_from(&r, resource);
	return err ? err : cudaCreateSurfaceObject((cudaSurfaceObject_t *)object, &r);
}

CUresult cuSurfObjectCreate(CUsurfObject *object, const CUDA_RESOURCE_DESC *resource)
{
	return QCUL_RUNTIME(create_driver_surface(object, resource));
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUsurfObject object)
{
	struct cudaResourceDesc r;
	CUresult result = QCUL_RUNTIME(resource ? cudaGetSurfaceObjectResourceDesc(&r, object)
						: cudaErrorInvalidValue);

	if (!result)
		resource_to(resource, &r);
	return result;
}

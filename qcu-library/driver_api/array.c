// SPDX-License-Identifier: LGPL-2.1-or-later
/* Arrays and mipmapped arrays: they are the runtime's, described in the driver API's way. */
#include "qcu-library/driver_api/array.h"

_Static_assert((int)CUDA_ARRAY3D_LAYERED == (int)cudaArrayLayered &&
		       (int)CUDA_ARRAY3D_SURFACE_LDST == (int)cudaArraySurfaceLoadStore &&
		       (int)CUDA_ARRAY3D_CUBEMAP == (int)cudaArrayCubemap &&
		       (int)CUDA_ARRAY3D_TEXTURE_GATHER == (int)cudaArrayTextureGather &&
		       sizeof(CUDA_ARRAY_SPARSE_PROPERTIES) ==
			       sizeof(struct cudaArraySparseProperties) &&
		       sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS) ==
			       sizeof(struct cudaArrayMemoryRequirements),
	       "arrays");

static struct cudaExtent extent_of(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return (struct cudaExtent){d->Width, d->Height, d->Depth};
}

static cudaError_t create_described_array(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	struct cudaChannelFormatDesc format;
	cudaError_t err = cudaErrorInvalidValue;

	if (array && d)
		err = qcul_format_from(&format, d->Format, d->NumChannels);
	return err ? err : cudaMalloc3DArray((cudaArray_t *)array, &format, extent_of(d), d->Flags);
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return QCUL_RUNTIME(create_described_array(array, d));
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *flat)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	if (!flat)
		return CUDA_ERROR_INVALID_VALUE;
	d = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = flat->Width,
		.Height = flat->Height,
		.Format = flat->Format,
		.NumChannels = flat->NumChannels,
	};
	return cuArray3DCreate_v2(array, &d);
}

CUresult cuArrayDestroy(CUarray array)
{
	return QCUL_RUNTIME(array ? cudaFreeArray((cudaArray_t)array)
				  : cudaErrorInvalidResourceHandle);
}

static cudaError_t describe_array(CUDA_ARRAY3D_DESCRIPTOR *d, CUarray array)
{
	struct cudaChannelFormatDesc format;
	struct cudaExtent extent;
	unsigned int flags;
	cudaError_t err = cudaArrayGetInfo(&format, &extent, &flags, (cudaArray_t)array);

	if (err)
		return err;
	*d = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = extent.width,
		.Height = extent.height,
		.Depth = extent.depth,
		.Flags = flags,
	};
	qcul_format_to(&d->Format, &d->NumChannels, &format);
	return cudaSuccess;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *d, CUarray array)
{
	CUDA_ARRAY3D_DESCRIPTOR found;
	CUresult result = QCUL_RUNTIME(describe_array(&found, array));

	if (!result && !d)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*d = found;
	return result;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *flat, CUarray array)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUresult result = QCUL_RUNTIME(describe_array(&d, array));

	if (!result && !flat)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*flat = (CUDA_ARRAY_DESCRIPTOR){
			.Width = d.Width,
			.Height = d.Height,
			.Format = d.Format,
			.NumChannels = d.NumChannels,
		};
	return result;
}

CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *properties, CUarray array)
{
	return QCUL_RUNTIME(!array ? cudaErrorInvalidValue
				   : cudaArrayGetSparseProperties(
					     (struct cudaArraySparseProperties *)properties,
					     (cudaArray_t)array));
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUarray array,
				      CUdevice device)
{
	return QCUL_RUNTIME(!array ? cudaErrorInvalidValue
				   : cudaArrayGetMemoryRequirements(
					     (struct cudaArrayMemoryRequirements *)requirements,
					     (cudaArray_t)array, device));
}

/* ---- mipmapped arrays ---- */

static cudaError_t create_mipmap(CUmipmappedArray *mipmap, const CUDA_ARRAY3D_DESCRIPTOR *d,
				 unsigned int levels)
{
	struct cudaChannelFormatDesc format;
	cudaError_t err = cudaErrorInvalidValue;

	if (mipmap && d)
		err = qcul_format_from(&format, d->Format, d->NumChannels);
	return err ? err
		   : cudaMallocMipmappedArray((cudaMipmappedArray_t *)mipmap, &format, extent_of(d),
					      levels, d->Flags);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *mipmap, const CUDA_ARRAY3D_DESCRIPTOR *d,
				unsigned int levels)
{
	return QCUL_RUNTIME(create_mipmap(mipmap, d, levels));
}

/* Of memory that external_memory.c has imported. */
CUresult
cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmap, CUexternalMemory memory,
					const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc)
{
	struct cudaExternalMemoryMipmappedArrayDesc d = {0};
	cudaError_t err = cudaErrorInvalidValue;

	if (mipmap && desc)
		err = qcul_format_from(&d.formatDesc, desc->arrayDesc.Format,
				       desc->arrayDesc.NumChannels);
	if (err)
		return qcul_driver_error(err);
	d.offset = desc->offset;
	d.extent = extent_of(&desc->arrayDesc);
	d.flags = desc->arrayDesc.Flags;
	d.numLevels = desc->numLevels;
	return QCUL_RUNTIME(cudaExternalMemoryGetMappedMipmappedArray(
		(cudaMipmappedArray_t *)mipmap, (cudaExternalMemory_t)memory, &d));
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
	return QCUL_RUNTIME(mipmap ? cudaFreeMipmappedArray((cudaMipmappedArray_t)mipmap)
				   : cudaErrorInvalidResourceHandle);
}

CUresult cuMipmappedArrayGetLevel(CUarray *array, CUmipmappedArray mipmap, unsigned int level)
{
	return QCUL_RUNTIME(!mipmap ? cudaErrorInvalidResourceHandle
				    : cudaGetMipmappedArrayLevel((cudaArray_t *)array,
								 (cudaMipmappedArray_const_t)mipmap,
								 level));
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements,
					       CUmipmappedArray mipmap, CUdevice device)
{
	return QCUL_RUNTIME(!mipmap ? cudaErrorInvalidValue
				    : cudaMipmappedArrayGetMemoryRequirements(
					      (struct cudaArrayMemoryRequirements *)requirements,
					      (cudaMipmappedArray_t)mipmap, device));
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *width, CUarray_format format,
					    unsigned int channels, CUdevice device)
{
	struct cudaChannelFormatDesc f;
	CUresult result = QCUL_RUNTIME(qcul_format_from(&f, format, channels));

	return result ? result
		      : QCUL_RUNTIME(cudaDeviceGetTexture1DLinearMaxWidth(width, &f, device));
}

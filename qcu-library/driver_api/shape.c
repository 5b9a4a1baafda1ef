// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copies of rectangles and boxes. The driver API gives all widths and offsets in bytes, the runtime
 * those of arrays in elements.
 */
#include <string.h>

#include "qcu-library/copy/copy.h"
#include "qcu-library/driver_api/array.h"
#include "qcu-library/driver_api/sync.h"

/* One side of a copy. */
struct copy_side {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, pitch, height;
};

static cudaError_t element_bytes(CUarray array, size_t *bytes)
{
	struct cudaChannelFormatDesc f;
	cudaError_t err = cudaGetChannelDesc(&f, (cudaArray_const_t)array);

	if (!err)
		*bytes = (size_t)(f.x + f.y + f.z + f.w) / 8;
	return err;
}

/* Rows without a distance follow one another, and so do slices without a height. */
static cudaError_t pitched_ptr_of_side(const struct copy_side *e, const CUDA_MEMCPY3D *c,
				       struct cudaPitchedPtr *ptr)
{
	size_t row = e->x + c->WidthInBytes;

	*ptr = (struct cudaPitchedPtr){
		.ptr = e->type == CU_MEMORYTYPE_HOST ? (void *)e->host : qcul_driver_ptr(e->device),
		.pitch = e->pitch ? e->pitch : row,
		.xsize = row,
		.ysize = e->height ? e->height : e->y + c->Height,
	};
	return row < e->x || ptr->pitch < row || ptr->ysize < c->Height ? cudaErrorInvalidValue
									: cudaSuccess;
}

static cudaError_t take_side(const struct copy_side *e, const CUDA_MEMCPY3D *c, size_t elem,
			     struct cudaPitchedPtr *ptr, cudaArray_t *array, struct cudaPos *pos)
{
	*pos = (struct cudaPos){e->x, e->y, e->z};
	switch (e->type) {
	case CU_MEMORYTYPE_HOST:
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		return pitched_ptr_of_side(e, c, ptr);
	case CU_MEMORYTYPE_ARRAY:
		if (e->x % elem || c->WidthInBytes % elem)
			return cudaErrorInvalidValue;
		pos->x = e->x / elem;
		*array = (cudaArray_t)e->array;
		return cudaSuccess;
	}
	return cudaErrorInvalidValue;
}

static enum cudaMemcpyKind kind_of(CUmemorytype src, CUmemorytype dst)
{
	bool from_host = src == CU_MEMORYTYPE_HOST, to_host = dst == CU_MEMORYTYPE_HOST;

	if (src == CU_MEMORYTYPE_UNIFIED || dst == CU_MEMORYTYPE_UNIFIED)
		return cudaMemcpyDefault;
	if (from_host)
		return to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
	return to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

cudaError_t qcul_shape_from(struct cudaMemcpy3DParms *to, const CUDA_MEMCPY3D *c)
{
	const struct copy_side src = {c->srcMemoryType, c->srcHost,	c->srcDevice,
				      c->srcArray,	c->srcXInBytes, c->srcY,
				      c->srcZ,		c->srcPitch,	c->srcHeight};
	const struct copy_side dst = {c->dstMemoryType, c->dstHost,	c->dstDevice,
				      c->dstArray,	c->dstXInBytes, c->dstY,
				      c->dstZ,		c->dstPitch,	c->dstHeight};
	cudaError_t err = cudaSuccess;
	size_t elem = 1;

	*to = (struct cudaMemcpy3DParms){.kind = kind_of(src.type, dst.type)};
	if (src.type == CU_MEMORYTYPE_ARRAY)
		err = element_bytes(src.array, &elem);
	else if (dst.type == CU_MEMORYTYPE_ARRAY)
		err = element_bytes(dst.array, &elem);
	if (!err)
		err = take_side(&src, c, elem, &to->srcPtr, &to->srcArray, &to->srcPos);
	if (!err)
		err = take_side(&dst, c, elem, &to->dstPtr, &to->dstArray, &to->dstPos);
	to->extent = (struct cudaExtent){c->WidthInBytes / elem, c->Height, c->Depth};
	return err;
}

static CUmemorytype memory_type_of_end(const struct cudaPitchedPtr *ptr, cudaArray_t array,
				       bool host)
{
	if (array)
		return CU_MEMORYTYPE_ARRAY;
	return !ptr->ptr ? CU_MEMORYTYPE_UNIFIED : host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

void qcul_shape_to(CUDA_MEMCPY3D *to, const struct cudaMemcpy3DParms *p)
{
	bool from_host = p->kind == cudaMemcpyHostToDevice || p->kind == cudaMemcpyHostToHost;
	bool to_host = p->kind == cudaMemcpyDeviceToHost || p->kind == cudaMemcpyHostToHost;
	size_t elem = 1;

	if (p->srcArray || p->dstArray)
		(void)element_bytes((CUarray)(p->srcArray ? p->srcArray : p->dstArray), &elem);
	memset(to, 0, sizeof(*to));
	to->srcMemoryType = memory_type_of_end(&p->srcPtr, p->srcArray, from_host);
	to->dstMemoryType = memory_type_of_end(&p->dstPtr, p->dstArray, to_host);
	if (p->kind == cudaMemcpyDefault && !p->srcArray)
		to->srcMemoryType = CU_MEMORYTYPE_UNIFIED;
	if (p->kind == cudaMemcpyDefault && !p->dstArray)
		to->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	if (to->srcMemoryType == CU_MEMORYTYPE_HOST)
		to->srcHost = p->srcPtr.ptr;
	else
		to->srcDevice = (CUdeviceptr)(uintptr_t)p->srcPtr.ptr;
	if (to->dstMemoryType == CU_MEMORYTYPE_HOST)
		to->dstHost = p->dstPtr.ptr;
	else
		to->dstDevice = (CUdeviceptr)(uintptr_t)p->dstPtr.ptr;
	to->srcArray = (CUarray)p->srcArray;
	to->dstArray = (CUarray)p->dstArray;
	to->srcXInBytes = p->srcPos.x * (p->srcArray ? elem : 1);
	to->srcY = p->srcPos.y;
	to->srcZ = p->srcPos.z;
	to->srcPitch = p->srcPtr.pitch;
	to->srcHeight = p->srcPtr.ysize;
	to->dstXInBytes = p->dstPos.x * (p->dstArray ? elem : 1);
	to->dstY = p->dstPos.y;
	to->dstZ = p->dstPos.z;
	to->dstPitch = p->dstPtr.pitch;
	to->dstHeight = p->dstPtr.ysize;
	to->WidthInBytes = p->extent.width * elem;
	to->Height = p->extent.height;
	to->Depth = p->extent.depth;
}

/* ---- the calls ---- */

/* Nothing else of such a copy is looked at. */
static bool nothing(size_t width, size_t height, size_t depth)
{
	return !width || !height || !depth;
}

static cudaError_t copy_box_in_stream(const CUDA_MEMCPY3D *c, cudaStream_t stream, bool sync)
{
	struct cudaMemcpy3DParms p;
	cudaError_t err;

	if (!c)
		return cudaErrorInvalidValue;
	if (nothing(c->WidthInBytes, c->Height, c->Depth))
		return cudaSuccess;
	err = qcul_shape_from(&p, c);
	return err ? err : qcul_done(qcul_copy_3d(&p, stream, sync));
}

BOTH(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *c), copy_box_in_stream(c, stream, true))

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream stream)
{
	return QCUL_RUNTIME(copy_box_in_stream(c, stream, false));
}

static cudaError_t rectangle(const CUDA_MEMCPY2D *f, cudaStream_t stream, bool sync)
{
	CUDA_MEMCPY3D c;

	if (!f)
		return cudaErrorInvalidValue;
	c = (CUDA_MEMCPY3D){
		.srcXInBytes = f->srcXInBytes,
		.srcY = f->srcY,
		.srcMemoryType = f->srcMemoryType,
		.srcHost = f->srcHost,
		.srcDevice = f->srcDevice,
		.srcArray = f->srcArray,
		.srcPitch = f->srcPitch,
		.dstXInBytes = f->dstXInBytes,
		.dstY = f->dstY,
		.dstMemoryType = f->dstMemoryType,
		.dstHost = f->dstHost,
		.dstDevice = f->dstDevice,
		.dstArray = f->dstArray,
		.dstPitch = f->dstPitch,
		.WidthInBytes = f->WidthInBytes,
		.Height = f->Height,
		.Depth = 1,
	};
	return copy_box_in_stream(&c, stream, sync);
}

BOTH(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *c), rectangle(c, stream, true))
BOTH(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *c), rectangle(c, stream, true))

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
	return QCUL_RUNTIME(rectangle(c, stream, false));
}

/* ---- between devices ---- */

_Static_assert(sizeof(CUDA_MEMCPY3D_PEER) == sizeof(CUDA_MEMCPY3D) &&
		       offsetof(CUDA_MEMCPY3D_PEER, srcContext) ==
			       offsetof(CUDA_MEMCPY3D, reserved0) &&
		       offsetof(CUDA_MEMCPY3D_PEER, dstContext) ==
			       offsetof(CUDA_MEMCPY3D, reserved1) &&
		       offsetof(CUDA_MEMCPY3D_PEER, Depth) == offsetof(CUDA_MEMCPY3D, Depth),
	       "the same structure, with contexts");

static cudaError_t peer_parameters(const CUDA_MEMCPY3D_PEER *c, struct cudaMemcpy3DPeerParms *p)
{
	struct cudaMemcpy3DParms same;
	CUDA_MEMCPY3D plain;
	cudaError_t err;

	memcpy(&plain, c, sizeof(plain));
	err = qcul_shape_from(&same, &plain);
	if (err)
		return err;
	p->srcArray = same.srcArray;
	p->srcPos = same.srcPos;
	p->srcPtr = same.srcPtr;
	p->dstArray = same.dstArray;
	p->dstPos = same.dstPos;
	p->dstPtr = same.dstPtr;
	p->extent = same.extent;
	return cudaSuccess;
}

/* True: there is something to copy. */
static bool peer(const CUDA_MEMCPY3D_PEER *c, struct cudaMemcpy3DPeerParms *p, CUresult *result)
{
	*result = c ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (*result || nothing(c->WidthInBytes, c->Height, c->Depth))
		return false;
	*p = (struct cudaMemcpy3DPeerParms){0};
	*result = qcul_driver_device_or_current(c->srcContext, &p->srcDevice);
	if (!*result)
		*result = qcul_driver_device_or_current(c->dstContext, &p->dstDevice);
	if (!*result)
		*result = QCUL_RUNTIME(peer_parameters(c, p));
	return !*result;
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *c)
{
	struct cudaMemcpy3DPeerParms p;
	CUresult result;

	return !peer(c, &p, &result) ? result : QCUL_RUNTIME(cudaMemcpy3DPeer(&p));
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *c)
{
	struct cudaMemcpy3DPeerParms p;
	CUresult result;

	return !peer(c, &p, &result) ? result : QCUL_RUNTIME(cudaMemcpy3DPeer_ptds(&p));
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *c, CUstream stream)
{
	struct cudaMemcpy3DPeerParms p;
	CUresult result;

	return !peer(c, &p, &result) ? result : QCUL_RUNTIME(cudaMemcpy3DPeerAsync(&p, stream));
}

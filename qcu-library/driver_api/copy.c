// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copies of runs of bytes. */
#include "qcu-library/copy/copy.h"
#include "qcu-library/driver_api/sync.h"

static cudaError_t copy_byte_run(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
				 cudaStream_t stream, bool sync)
{
	const struct qcul_copy c = {
		.dst = dst,
		.src = src,
		.width = count,
		.height = 1,
		.kind = kind,
		.sync = sync,
	};

	return qcul_done(qcul_copy(&c, stream));
}

#define PTR qcul_driver_ptr

BOTH(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t count),
     copy_byte_run(PTR(dst), PTR(src), count, cudaMemcpyDefault, stream, true))
BOTH(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t count),
     copy_byte_run(PTR(dst), src, count, cudaMemcpyHostToDevice, stream, true))
BOTH(cuMemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t count),
     copy_byte_run(dst, PTR(src), count, cudaMemcpyDeviceToHost, stream, true))
BOTH(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t count),
     copy_byte_run(PTR(dst), PTR(src), count, cudaMemcpyDeviceToDevice, stream, true))

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream)
{
	return QCUL_RUNTIME(
		copy_byte_run(PTR(dst), PTR(src), count, cudaMemcpyDefault, stream, false));
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t count, CUstream stream)
{
	return QCUL_RUNTIME(
		copy_byte_run(PTR(dst), src, count, cudaMemcpyHostToDevice, stream, false));
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t count, CUstream stream)
{
	return QCUL_RUNTIME(
		copy_byte_run(dst, PTR(src), count, cudaMemcpyDeviceToHost, stream, false));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream)
{
	return QCUL_RUNTIME(
		copy_byte_run(PTR(dst), PTR(src), count, cudaMemcpyDeviceToDevice, stream, false));
}

/* ---- arrays: the offset is in bytes ---- */

static cudaError_t up(CUarray array, size_t offset, const void *src, size_t count,
		      enum cudaMemcpyKind kind, cudaStream_t stream, bool sync)
{
	if (!array)
		return cudaErrorInvalidValue;
	return qcul_done(qcul_array_copy_run((cudaArray_const_t)array, offset, 0, (void *)src,
					     count, kind, stream, false, sync));
}

static cudaError_t down(void *dst, CUarray array, size_t offset, size_t count,
			enum cudaMemcpyKind kind, cudaStream_t stream, bool sync)
{
	if (!array)
		return cudaErrorInvalidValue;
	return qcul_done(qcul_array_copy_run((cudaArray_const_t)array, offset, 0, dst, count, kind,
					     stream, true, sync));
}

BOTH(cuMemcpyHtoA_v2, (CUarray dst, size_t offset, const void *src, size_t count),
     up(dst, offset, src, count, cudaMemcpyHostToDevice, stream, true))
BOTH(cuMemcpyAtoH_v2, (void *dst, CUarray src, size_t offset, size_t count),
     down(dst, src, offset, count, cudaMemcpyDeviceToHost, stream, true))
BOTH(cuMemcpyDtoA_v2, (CUarray dst, size_t offset, CUdeviceptr src, size_t count),
     up(dst, offset, PTR(src), count, cudaMemcpyDeviceToDevice, stream, true))
BOTH(cuMemcpyAtoD_v2, (CUdeviceptr dst, CUarray src, size_t offset, size_t count),
     down(PTR(dst), src, offset, count, cudaMemcpyDeviceToDevice, stream, true))
BOTH(cuMemcpyAtoA_v2,
     (CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t count),
     !dst || !src ? cudaErrorInvalidValue
		  : qcul_done(qcul_array_to_array_run((cudaArray_t)dst, dst_offset, 0,
						      (cudaArray_const_t)src, src_offset, 0, count,
						      cudaMemcpyDeviceToDevice, stream)))

CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t offset, const void *src, size_t count,
			      CUstream stream)
{
	return QCUL_RUNTIME(up(dst, offset, src, count, cudaMemcpyHostToDevice, stream, false));
}

CUresult cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t offset, size_t count, CUstream stream)
{
	return QCUL_RUNTIME(down(dst, src, offset, count, cudaMemcpyDeviceToHost, stream, false));
}

/* ---- between devices: a context stands for its device ---- */

static CUresult devices(CUcontext dst, int *dst_device, CUcontext src, int *src_device)
{
	CUresult result = qcul_driver_device_or_current(dst, dst_device);

	return result ? result : qcul_driver_device_or_current(src, src_device);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
			   CUcontext src_context, size_t count, CUstream stream)
{
	int to, from;
	CUresult result = devices(dst_context, &to, src_context, &from);

	return result ? result
		      : QCUL_RUNTIME(
				cudaMemcpyPeerAsync(PTR(dst), to, PTR(src), from, count, stream));
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
		      CUcontext src_context, size_t count)
{
	return cuMemcpyPeerAsync(dst, dst_context, src, src_context, count, cudaStreamLegacy);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
			   CUcontext src_context, size_t count)
{
	return cuMemcpyPeerAsync(dst, dst_context, src, src_context, count, cudaStreamPerThread);
}

/* ---- many at once ---- */

_Static_assert(sizeof(CUmemcpyAttributes) == sizeof(struct cudaMemcpyAttributes) &&
		       sizeof(CUDA_MEMCPY3D_BATCH_OP) == sizeof(struct cudaMemcpy3DBatchOp),
	       "batches");

/* The first form of these says which copy failed. SIZE_MAX: none in particular. */
CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
			    CUmemcpyAttributes *attributes, size_t *first, size_t attribute_count,
			    size_t *failed, CUstream stream)
{
	if (failed)
		*failed = SIZE_MAX;
	return cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attributes, first, attribute_count,
				     stream);
}

CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
			      unsigned long long flags, CUstream stream)
{
	if (failed)
		*failed = SIZE_MAX;
	return cuMemcpy3DBatchAsync_v2(count, ops, flags, stream);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* The CUDA functions that copy from and to CUDA arrays. array_copy.c does the work. */
#include "qcu-library/copy/copy.h"

cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t x, size_t y, const void *src, size_t pitch,
				size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return qcul_done(qcul_array_copy_2d(dst, x, y, (void *)src, pitch, width, height, kind,
					    cudaStreamLegacy, false, true));
}

cudaError_t cudaMemcpy2DFromArray(void *dst, size_t pitch, cudaArray_const_t src, size_t x,
				  size_t y, size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return qcul_done(qcul_array_copy_2d(src, x, y, dst, pitch, width, height, kind,
					    cudaStreamLegacy, true, true));
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src,
				     size_t sx, size_t sy, size_t width, size_t height,
				     enum cudaMemcpyKind kind)
{
	return qcul_done(qcul_array_to_array_2d(dst, dx, dy, src, sx, sy, width, height, kind,
						cudaStreamLegacy));
}

cudaError_t cudaMemcpyToArray(cudaArray_t dst, size_t x, size_t y, const void *src, size_t count,
			      enum cudaMemcpyKind kind)
{
	return qcul_done(qcul_array_copy_run(dst, x, y, (void *)src, count, kind, cudaStreamLegacy,
					     false, true));
}

cudaError_t cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t x, size_t y, size_t count,
				enum cudaMemcpyKind kind)
{
	return qcul_done(
		qcul_array_copy_run(src, x, y, dst, count, kind, cudaStreamLegacy, true, true));
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src,
				   size_t sx, size_t sy, size_t count, enum cudaMemcpyKind kind)
{
	return qcul_done(
		qcul_array_to_array_run(dst, dx, dy, src, sx, sy, count, kind, cudaStreamLegacy));
}

cudaError_t cudaMemcpy2DToArray_ptds(cudaArray_t dst, size_t x, size_t y, const void *src,
				     size_t pitch, size_t width, size_t height,
				     enum cudaMemcpyKind kind)
{
	return qcul_done(qcul_array_copy_2d(dst, x, y, (void *)src, pitch, width, height, kind,
					    cudaStreamPerThread, false, true));
}

cudaError_t cudaMemcpy2DFromArray_ptds(void *dst, size_t pitch, cudaArray_const_t src, size_t x,
				       size_t y, size_t width, size_t height,
				       enum cudaMemcpyKind kind)
{
	return qcul_done(qcul_array_copy_2d(src, x, y, dst, pitch, width, height, kind,
					    cudaStreamPerThread, true, true));
}

cudaError_t cudaMemcpy2DArrayToArray_ptds(cudaArray_t dst, size_t dx, size_t dy,
					  cudaArray_const_t src, size_t sx, size_t sy, size_t width,
					  size_t height, enum cudaMemcpyKind kind)
{
	return qcul_done(qcul_array_to_array_2d(dst, dx, dy, src, sx, sy, width, height, kind,
						cudaStreamPerThread));
}

cudaError_t cudaMemcpyToArray_ptds(cudaArray_t dst, size_t x, size_t y, const void *src,
				   size_t count, enum cudaMemcpyKind kind)
{
	return qcul_done(qcul_array_copy_run(dst, x, y, (void *)src, count, kind,
					     cudaStreamPerThread, false, true));
}

cudaError_t cudaMemcpyFromArray_ptds(void *dst, cudaArray_const_t src, size_t x, size_t y,
				     size_t count, enum cudaMemcpyKind kind)
{
	return qcul_done(
		qcul_array_copy_run(src, x, y, dst, count, kind, cudaStreamPerThread, true, true));
}

cudaError_t cudaMemcpyArrayToArray_ptds(cudaArray_t dst, size_t dx, size_t dy,
					cudaArray_const_t src, size_t sx, size_t sy, size_t count,
					enum cudaMemcpyKind kind)
{
	return qcul_done(qcul_array_to_array_run(dst, dx, dy, src, sx, sy, count, kind,
						 cudaStreamPerThread));
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void *src,
				     size_t pitch, size_t width, size_t height,
				     enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return qcul_done(qcul_array_copy_2d(dst, x, y, (void *)src, pitch, width, height, kind,
					    stream, false, false));
}

cudaError_t cudaMemcpy2DFromArrayAsync(void *dst, size_t pitch, cudaArray_const_t src, size_t x,
				       size_t y, size_t width, size_t height,
				       enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return qcul_done(qcul_array_copy_2d(src, x, y, dst, pitch, width, height, kind, stream,
					    true, false));
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void *src,
				   size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return qcul_done(
		qcul_array_copy_run(dst, x, y, (void *)src, count, kind, stream, false, false));
}

cudaError_t cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t x, size_t y,
				     size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return qcul_done(qcul_array_copy_run(src, x, y, dst, count, kind, stream, true, false));
}

cudaError_t cudaMemcpy2DToArrayAsync_ptsz(cudaArray_t dst, size_t x, size_t y, const void *src,
					  size_t pitch, size_t width, size_t height,
					  enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return qcul_done(qcul_array_copy_2d(dst, x, y, (void *)src, pitch, width, height, kind,
					    qcul_stream_or_own(stream), false, false));
}

cudaError_t cudaMemcpy2DFromArrayAsync_ptsz(void *dst, size_t pitch, cudaArray_const_t src,
					    size_t x, size_t y, size_t width, size_t height,
					    enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return qcul_done(qcul_array_copy_2d(src, x, y, dst, pitch, width, height, kind,
					    qcul_stream_or_own(stream), true, false));
}

cudaError_t cudaMemcpyToArrayAsync_ptsz(cudaArray_t dst, size_t x, size_t y, const void *src,
					size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return qcul_done(qcul_array_copy_run(dst, x, y, (void *)src, count, kind,
					     qcul_stream_or_own(stream), false, false));
}

cudaError_t cudaMemcpyFromArrayAsync_ptsz(void *dst, cudaArray_const_t src, size_t x, size_t y,
					  size_t count, enum cudaMemcpyKind kind,
					  cudaStream_t stream)
{
	return qcul_done(qcul_array_copy_run(src, x, y, dst, count, kind,
					     qcul_stream_or_own(stream), true, false));
}

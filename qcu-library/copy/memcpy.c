// SPDX-License-Identifier: LGPL-2.1-or-later
/* The public names of copies and memsets; copy.c does the work. */
#include "qcu-library/copy/copy.h"

static struct qcul_copy line(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			     bool sync)
{
	return (struct qcul_copy){
		.dst = dst,
		.src = src,
		.width = count,
		.height = 1,
		.kind = kind,
		.sync = sync,
	};
}

static cudaError_t copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			   size_t height, enum cudaMemcpyKind kind, cudaStream_t stream, bool sync)
{
	struct qcul_copy c = {
		.dst = dst,
		.src = src,
		.dpitch = dpitch,
		.spitch = spitch,
		.width = width,
		.height = height,
		.kind = kind,
		.sync = sync,
	};

	if (width && height && (width > dpitch || width > spitch))
		return qcul_done(cudaErrorInvalidPitchValue);
	return qcul_done(qcul_copy(&c, stream));
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	struct qcul_copy c = line(dst, src, count, kind, true);

	return qcul_done(qcul_copy(&c, cudaStreamLegacy));
}

cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	struct qcul_copy c = line(dst, src, count, kind, true);

	return qcul_done(qcul_copy(&c, cudaStreamPerThread));
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	struct qcul_copy c = line(dst, src, count, kind, false);

	return qcul_done(qcul_copy(&c, stream));
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			 size_t height, enum cudaMemcpyKind kind)
{
	return copy_2d(dst, dpitch, src, spitch, width, height, kind, cudaStreamLegacy, true);
}

cudaError_t cudaMemcpy2D_ptds(void *dst, size_t dpitch, const void *src, size_t spitch,
			      size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return copy_2d(dst, dpitch, src, spitch, width, height, kind, cudaStreamPerThread, true);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
			      size_t width, size_t height, enum cudaMemcpyKind kind,
			      cudaStream_t stream)
{
	return copy_2d(dst, dpitch, src, spitch, width, height, kind, stream, false);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
	return qcul_done(qcul_copy_3d(p, cudaStreamLegacy, true));
}

cudaError_t cudaMemcpy3D_ptds(const struct cudaMemcpy3DParms *p)
{
	return qcul_done(qcul_copy_3d(p, cudaStreamPerThread, true));
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	return qcul_done(qcul_copy_3d(p, stream, false));
}

cudaError_t cudaMemset(void *dst, int value, size_t count)
{
	return qcul_done(qcul_memset(dst, 0, value, count, 1, cudaStreamLegacy));
}

cudaError_t cudaMemset_ptds(void *dst, int value, size_t count)
{
	return qcul_done(qcul_memset(dst, 0, value, count, 1, cudaStreamPerThread));
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t count, cudaStream_t stream)
{
	return qcul_done(qcul_memset(dst, 0, value, count, 1, stream));
}

cudaError_t cudaMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height)
{
	return qcul_done(qcul_memset(dst, pitch, value, width, height, cudaStreamLegacy));
}

cudaError_t cudaMemset2D_ptds(void *dst, size_t pitch, int value, size_t width, size_t height)
{
	return qcul_done(qcul_memset(dst, pitch, value, width, height, cudaStreamPerThread));
}

cudaError_t cudaMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height,
			      cudaStream_t stream)
{
	return qcul_done(qcul_memset(dst, pitch, value, width, height, stream));
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent)
{
	return qcul_done(qcul_memset_3d(to, value, extent, cudaStreamLegacy));
}

cudaError_t cudaMemset3D_ptds(struct cudaPitchedPtr to, int value, struct cudaExtent extent)
{
	return qcul_done(qcul_memset_3d(to, value, extent, cudaStreamPerThread));
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
			      cudaStream_t stream)
{
	return qcul_done(qcul_memset_3d(to, value, extent, stream));
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Boxes of memory: a box is slices of rows, and each slice is a copy with a pitch. If an end is a
 * CUDA array, array_copy.c does the copy.
 */
#include "qcu-library/copy/copy.h"
#include "qcu-library/link/capture.h"

/* The address of a box's first byte, and the distance between its slices. */
static bool find_box_corner(const struct cudaPitchedPtr *p, const struct cudaPos *pos, char **at,
			    size_t *slice)
{
	size_t z, y;

	if (__builtin_mul_overflow(p->pitch, p->ysize, slice) ||
	    __builtin_mul_overflow(*slice, pos->z, &z) ||
	    __builtin_mul_overflow(p->pitch, pos->y, &y))
		return false;
	*at = (char *)p->ptr + z + y + pos->x;
	return true;
}

cudaError_t qcul_copy_3d(const struct cudaMemcpy3DParms *p, cudaStream_t stream, bool sync)
{
	struct qcul_copy c;
	size_t dst_slice, src_slice, z;
	char *dst, *src;
	cudaError_t err = cudaSuccess;

	if (!p)
		return cudaErrorInvalidValue;
	if (!sync && qcul_captured(stream, &err))
		return err ? err : qcul_capture_copy(stream, p);
	if (p->srcArray || p->dstArray)
		return qcul_array_copy_3d(p, stream, sync);
	if (!p->extent.width || !p->extent.height || !p->extent.depth)
		return qcul_ready();
	if (!p->dstPtr.ptr || !p->srcPtr.ptr)
		return cudaErrorInvalidValue;
	if (!find_box_corner(&p->dstPtr, &p->dstPos, &dst, &dst_slice) ||
	    !find_box_corner(&p->srcPtr, &p->srcPos, &src, &src_slice))
		return cudaErrorInvalidValue;
	c = (struct qcul_copy){
		.dpitch = p->dstPtr.pitch,
		.spitch = p->srcPtr.pitch,
		.width = p->extent.width,
		.height = p->extent.height,
		.kind = p->kind,
		.sync = sync,
	};
	/* Slices without gaps are one slice. */
	if (p->dstPtr.ysize == c.height && p->srcPtr.ysize == c.height) {
		if (__builtin_mul_overflow(c.height, p->extent.depth, &c.height))
			return cudaErrorInvalidValue;
		c.dst = dst;
		c.src = src;
		return qcul_copy(&c, stream);
	}
	for (z = 0; z < p->extent.depth && !err; z++) {
		c.dst = dst + z * dst_slice;
		c.src = src + z * src_slice;
		err = qcul_copy(&c, stream);
	}
	return err;
}

cudaError_t qcul_memset_3d(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
			   cudaStream_t stream)
{
	cudaError_t err = qcul_ready();
	size_t slice, rows, z;

	if (__builtin_mul_overflow(to.pitch, to.ysize, &slice))
		return cudaErrorInvalidValue;
	if (to.ysize == extent.height &&
	    !__builtin_mul_overflow(extent.height, extent.depth, &rows))
		return err ? err : qcul_memset(to.ptr, to.pitch, value, extent.width, rows, stream);
	for (z = 0; z < extent.depth && !err; z++)
		err = qcul_memset((void *)((uintptr_t)to.ptr + z * slice), to.pitch, value,
				  extent.width, extent.height, stream);
	return err;
}

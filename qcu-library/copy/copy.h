/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies and fills of every shape. */
#ifndef QCUL_COPY_H
#define QCUL_COPY_H

#include "qcu-library/stream/stream.h"

/* ---- copy.c ---- */

struct qcul_copy {
	void *dst;
	const void *src;
	size_t dpitch, spitch; /* used when height is more than 1 */
	size_t width, height;
	enum cudaMemcpyKind kind;
	bool sync; /* return when the copy is done */
};
cudaError_t qcul_copy(const struct qcul_copy *copy, cudaStream_t stream);
cudaError_t qcul_memset(void *dst, size_t pitch, int value, size_t width, size_t height,
			cudaStream_t stream);
struct qcul_fill {
	void *dst;
	size_t pitch;		  /* used when height is more than 1 */
	size_t width, height;	  /* bytes, rows */
	unsigned int value, elem; /* bytes of a value: 1, 2 or 4 */
};
cudaError_t qcul_fill(const struct qcul_fill *fill, cudaStream_t stream);
/*
 * Is all of this memory that the GPU can use at any later time, device memory or registered? Then
 * *device is its address there. No: it is pageable, or not known.
 */
bool qcul_copy_lasts(const void *addr, size_t len, uint64_t *device);
/*
 * Makes pageable memory usable in this way, if it is malloc memory in chunks. It stays so until the
 * chunks are unmapped.
 */
bool qcul_copy_pin(const void *addr, size_t len);
/* Changes whenever chunks of malloc memory may have been unmapped. */
unsigned int qcul_copy_unmaps(void);
cudaError_t qcul_copy_3d(const struct cudaMemcpy3DParms *p, cudaStream_t stream, bool sync);
cudaError_t qcul_memset_3d(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
			   cudaStream_t stream);
cudaError_t qcul_copy_to_symbol(const void *symbol, const void *src, size_t count, size_t offset,
				enum cudaMemcpyKind kind, cudaStream_t stream, bool sync);
cudaError_t qcul_copy_from_symbol(void *dst, const void *symbol, size_t count, size_t offset,
				  enum cudaMemcpyKind kind, cudaStream_t stream, bool sync);

/* ---- array_copy.c: `down` means from the array to memory; x and width are in bytes ---- */

cudaError_t qcul_array_copy_2d(cudaArray_const_t array, size_t x, size_t y, void *addr,
			       size_t pitch, size_t width, size_t height, enum cudaMemcpyKind kind,
			       cudaStream_t stream, bool down, bool sync);
cudaError_t qcul_array_copy_run(cudaArray_const_t array, size_t x, size_t y, void *addr,
				size_t count, enum cudaMemcpyKind kind, cudaStream_t stream,
				bool down, bool sync);
cudaError_t qcul_array_to_array_2d(cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src,
				   size_t sx, size_t sy, size_t width, size_t height,
				   enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t qcul_array_to_array_run(cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src,
				    size_t sx, size_t sy, size_t count, enum cudaMemcpyKind kind,
				    cudaStream_t stream);
/* At least one end is an array. */
cudaError_t qcul_array_copy_3d(const struct cudaMemcpy3DParms *p, cudaStream_t stream, bool sync);

#endif

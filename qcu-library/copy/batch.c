// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Many copies in one call, and boxes between devices: each copy is done as by
 * cudaMemcpyAsync or cudaMemcpy3DAsync, so the copies of a batch run one after another. CUDA allows
 * this.
 */
#include "qcu-library/copy/copy.h"

static cudaError_t check_order(enum cudaMemcpySrcAccessOrder order, unsigned int flags)
{
	if (order < cudaMemcpySrcAccessOrderStream || order > cudaMemcpySrcAccessOrderAny ||
	    flags & ~(unsigned int)cudaMemcpyFlagPreferOverlapWithCompute)
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

static bool is_legacy(cudaStream_t stream)
{
	return !stream || stream == cudaStreamLegacy;
}

/* The whole call is checked before its first copy. */
static cudaError_t check_batch(const struct cudaMemcpyAttributes *attrs, const size_t *first,
			       size_t n, size_t count)
{
	cudaError_t err = cudaSuccess;
	size_t i;

	if (!attrs || !first || !n || n > count || first[0] != 0)
		return cudaErrorInvalidValue;
	for (i = 0; i < n && !err; i++) {
		err = check_order(attrs[i].srcAccessOrder, attrs[i].flags);
		if (i && (first[i] <= first[i - 1] || first[i] >= count))
			err = cudaErrorInvalidValue;
	}
	return err;
}

static cudaError_t copy_batch(void *const *dsts, const void *const *srcs, const size_t *sizes,
			      size_t count, const struct cudaMemcpyAttributes *attrs,
			      const size_t *first, size_t n, cudaStream_t stream)
{
	cudaError_t err = cudaErrorInvalidValue;
	size_t i, k;

	if (dsts && srcs && sizes && count && !is_legacy(stream))
		err = check_batch(attrs, first, n, count);
	for (i = k = 0; i < count && !err; i++) {
		struct qcul_copy c = {
			.dst = dsts[i],
			.src = srcs[i],
			.width = sizes[i],
			.height = 1,
			.kind = cudaMemcpyDefault,
		};

		if (k + 1 < n && first[k + 1] == i)
			k++;
		/* The program may change the source as soon as the call returns. */
		c.sync = attrs[k].srcAccessOrder == cudaMemcpySrcAccessOrderDuringApiCall;
		err = qcul_copy(&c, stream);
	}
	return err;
}

cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs, const size_t *sizes,
				 size_t count, struct cudaMemcpyAttributes *attrs, size_t *first,
				 size_t n, cudaStream_t stream)
{
	return qcul_done(copy_batch(dsts, srcs, sizes, count, attrs, first, n, stream));
}

/* ---- boxes ---- */

/* Lengths count elements of the array if one end is an array, else bytes. */
static cudaError_t element_size(const struct cudaMemcpy3DOperand *o, size_t *bytes)
{
	struct cudaChannelFormatDesc desc;
	cudaError_t err;

	if (o->type == cudaMemcpyOperandTypePointer)
		return o->op.ptr.ptr ? cudaSuccess : cudaErrorInvalidValue;
	if (o->type != cudaMemcpyOperandTypeArray)
		return cudaErrorInvalidValue;
	err = cudaArrayGetInfo(&desc, NULL, NULL, o->op.array.array);
	if (!err)
		*bytes = (size_t)(desc.x + desc.y + desc.z + desc.w) / 8;
	return err;
}

static cudaError_t take_operand(const struct cudaMemcpy3DOperand *o,
				const struct cudaExtent *extent, size_t bytes,
				struct cudaPitchedPtr *ptr, cudaArray_t *array, struct cudaPos *pos)
{
	size_t row = o->op.ptr.rowLength ? o->op.ptr.rowLength : extent->width;

	if (o->type == cudaMemcpyOperandTypeArray) {
		*array = o->op.array.array;
		*pos = (struct cudaPos){o->op.array.offset.x, o->op.array.offset.y,
					o->op.array.offset.z};
		return cudaSuccess;
	}
	ptr->ptr = o->op.ptr.ptr;
	ptr->ysize = o->op.ptr.layerHeight ? o->op.ptr.layerHeight : extent->height;
	if (row < extent->width || ptr->ysize < extent->height ||
	    __builtin_mul_overflow(row, bytes, &ptr->pitch))
		return cudaErrorInvalidValue;
	ptr->xsize = ptr->pitch;
	return cudaSuccess;
}

static cudaError_t make_box_params(const struct cudaMemcpy3DBatchOp *op,
				   struct cudaMemcpy3DParms *p)
{
	size_t bytes = 1;
	cudaError_t err = check_order(op->srcAccessOrder, op->flags);

	if (!err && (!op->extent.width || !op->extent.height || !op->extent.depth))
		err = cudaErrorInvalidValue;
	if (!err)
		err = element_size(&op->src, &bytes);
	if (!err)
		err = element_size(&op->dst, &bytes);
	*p = (struct cudaMemcpy3DParms){.extent = op->extent, .kind = cudaMemcpyDefault};
	if (!err)
		err = take_operand(&op->src, &op->extent, bytes, &p->srcPtr, &p->srcArray,
				   &p->srcPos);
	if (!err)
		err = take_operand(&op->dst, &op->extent, bytes, &p->dstPtr, &p->dstArray,
				   &p->dstPos);
	return err;
}

static cudaError_t box_batch(size_t count, const struct cudaMemcpy3DBatchOp *ops,
			     unsigned long long flags, cudaStream_t stream)
{
	struct cudaMemcpy3DParms p;
	cudaError_t err = cudaErrorInvalidValue;
	size_t i;

	if (ops && count && !flags && !is_legacy(stream))
		err = cudaSuccess;
	for (i = 0; i < count && !err; i++)
		err = make_box_params(&ops[i], &p);
	for (i = 0; i < count && !err; i++) {
		err = make_box_params(&ops[i], &p);
		if (!err)
			err = qcul_copy_3d(&p, stream,
					   ops[i].srcAccessOrder ==
						   cudaMemcpySrcAccessOrderDuringApiCall);
	}
	return err;
}

cudaError_t cudaMemcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *ops,
				   unsigned long long flags, cudaStream_t stream)
{
	return qcul_done(box_batch(count, ops, flags, stream));
}

/* The address alone says which device the memory is on. */
static cudaError_t copy_peer(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream, bool sync)
{
	struct cudaMemcpy3DParms q;
	cudaError_t err = p ? qcul_ready() : cudaErrorInvalidValue;

	if (err)
		return err;
	if (p->srcDevice < 0 || p->srcDevice >= qcul_device_count() || p->dstDevice < 0 ||
	    p->dstDevice >= qcul_device_count())
		return cudaErrorInvalidDevice;
	q = (struct cudaMemcpy3DParms){
		.srcArray = p->srcArray,
		.srcPos = p->srcPos,
		.srcPtr = p->srcPtr,
		.dstArray = p->dstArray,
		.dstPos = p->dstPos,
		.dstPtr = p->dstPtr,
		.extent = p->extent,
		.kind = cudaMemcpyDefault,
	};
	return qcul_copy_3d(&q, stream, sync);
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p)
{
	return qcul_done(copy_peer(p, cudaStreamLegacy, true));
}

cudaError_t cudaMemcpy3DPeer_ptds(const struct cudaMemcpy3DPeerParms *p)
{
	return qcul_done(copy_peer(p, cudaStreamPerThread, true));
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
	return qcul_done(copy_peer(p, stream, false));
}

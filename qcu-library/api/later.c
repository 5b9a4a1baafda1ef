// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of CUDA 13.5 that 13.0 does not have: other forms of calls that 13.0 has. Execution
 * contexts are in execution.c. Subgrids are not supported (unsupported.c).
 */
#include "qcu-library/graph/graph.h"
#include "qcu-library/link/later.h"

/* ---- kernels, host functions and copies ---- */

cudaError_t qcul_FuncGetParamCount(const void *func, size_t *count)
{
	struct CUkern_st *k;
	cudaError_t err = count ? qcul_ready() : cudaErrorInvalidValue;

	if (!err)
		err = qcul_kernel(func, &k);
	if (!err)
		err = qcul_kernel_load(k);
	if (!err)
		*count = k->param_count;
	return qcul_done(err);
}

/* How a stream waits for its host function is a hint: here it always waits in the same way. */
#define HOST_SYNC_LAST 1u /* cudaHostTaskSpinWait */

cudaError_t qcul_LaunchHostFunc_v2(cudaStream_t stream, cudaHostFn_t fn, void *data,
				   unsigned int mode)
{
	return mode > HOST_SYNC_LAST ? qcul_done(cudaErrorInvalidValue)
				     : cudaLaunchHostFunc(stream, fn, data);
}

cudaError_t qcul_LaunchHostFunc_v2_ptsz(cudaStream_t stream, cudaHostFn_t fn, void *data,
					unsigned int mode)
{
	return qcul_LaunchHostFunc_v2(qcul_stream_or_own(stream), fn, data, mode);
}

/* As a batch of one copy. */
cudaError_t qcul_MemcpyWithAttributesAsync(void *dst, const void *src, size_t size,
					   struct cudaMemcpyAttributes *attributes,
					   cudaStream_t stream)
{
	size_t first = 0;

	return cudaMemcpyBatchAsync(&dst, &src, &size, 1, attributes, &first, 1, stream);
}

cudaError_t qcul_MemcpyWithAttributesAsync_ptsz(void *dst, const void *src, size_t size,
						struct cudaMemcpyAttributes *attributes,
						cudaStream_t stream)
{
	return qcul_MemcpyWithAttributesAsync(dst, src, size, attributes,
					      qcul_stream_or_own(stream));
}

cudaError_t qcul_Memcpy3DWithAttributesAsync(struct cudaMemcpy3DBatchOp *op,
					     unsigned long long flags, cudaStream_t stream)
{
	return cudaMemcpy3DBatchAsync(1, op, flags, stream);
}

cudaError_t qcul_Memcpy3DWithAttributesAsync_ptsz(struct cudaMemcpy3DBatchOp *op,
						  unsigned long long flags, cudaStream_t stream)
{
	return cudaMemcpy3DBatchAsync(1, op, flags, qcul_stream_or_own(stream));
}

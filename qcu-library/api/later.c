// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of CUDA 13.5 that 13.0 does not have: other forms of calls that 13.0 has, and the
 * execution contexts of whole devices. The device's own context is the address of a slot for it.
 * Green contexts, parts of a device and subgrids are not supported (unsupported.c).
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

/* ---- execution contexts ---- */

static const char contexts[QCUL_DEVICES]; /* only their addresses are used */

static cudaError_t device_of_exec_context(const struct cudaExecutionContext_st *context,
					  int *device)
{
	uintptr_t n = (uintptr_t)context - (uintptr_t)contexts;
	cudaError_t err = qcul_ready();

	if (!err && n >= (uintptr_t)qcul_device_count())
		err = cudaErrorInvalidResourceHandle;
	if (!err)
		*device = (int)n;
	return err;
}

cudaError_t qcul_DeviceGetExecutionCtx(struct cudaExecutionContext_st **context, int device)
{
	cudaError_t err = context ? qcul_device_ready(device) : cudaErrorInvalidValue;

	if (!err)
		*context = (struct cudaExecutionContext_st *)&contexts[device];
	return qcul_done(err);
}

cudaError_t qcul_ExecutionCtxGetDevice(int *device, struct cudaExecutionContext_st *context)
{
	int n;
	cudaError_t err = device ? device_of_exec_context(context, &n) : cudaErrorInvalidValue;

	if (!err)
		*device = n;
	return qcul_done(err);
}

cudaError_t qcul_ExecutionCtxGetId(struct cudaExecutionContext_st *context, unsigned long long *id)
{
	int device;
	cudaError_t err = id ? device_of_exec_context(context, &device) : cudaErrorInvalidValue;

	if (!err)
		*id = (unsigned long long)device + 1;
	return qcul_done(err);
}

cudaError_t qcul_ExecutionCtxSynchronize(struct cudaExecutionContext_st *context)
{
	int device, current = qcul_self.device;
	cudaError_t err = device_of_exec_context(context, &device);

	if (err)
		return qcul_done(err);
	qcul_self.device = device;
	err = cudaDeviceSynchronize();
	qcul_self.device = current;
	return err;
}

cudaError_t qcul_ExecutionCtxStreamCreate(cudaStream_t *stream,
					  struct cudaExecutionContext_st *context,
					  unsigned int flags, int priority)
{
	int device, current = qcul_self.device;
	cudaError_t err = device_of_exec_context(context, &device);

	if (err)
		return qcul_done(err);
	qcul_self.device = device;
	err = cudaStreamCreateWithPriority(stream, flags, priority);
	qcul_self.device = current;
	return err;
}

/* A context that is given must exist; the handle works on all devices. */
cudaError_t qcul_GraphConditionalHandleCreate_v2(cudaGraphConditionalHandle *handle,
						 cudaGraph_t graph,
						 struct cudaExecutionContext_st *context,
						 unsigned int first, unsigned int flags)
{
	int device;
	cudaError_t err = context ? device_of_exec_context(context, &device) : cudaSuccess;

	return err ? qcul_done(err) : cudaGraphConditionalHandleCreate(handle, graph, first, flags);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Execution contexts, which CUDA 13.0 does not have: whole devices, and green contexts. A device's
 * is the address of a slot for it. They can have queues of their own only natively.
 */
#include "qcu-library/graph/graph.h"
#include "qcu-library/link/later.h"
#include "qcu-library/stream/green.h"

static const char contexts[QCUL_DEVICES]; /* only their addresses are used */

/* *green: NULL, if it is a whole device. */
static cudaError_t find_exec_context(const struct cudaExecutionContext_st *context, int *device,
				     struct qcul_green **green)
{
	uintptr_t n = (uintptr_t)context - (uintptr_t)contexts;
	cudaError_t err = qcul_ready();

	if (err)
		return err;
	*green = n < QCUL_DEVICES ? NULL : qcul_green_find(context);
	*device = *green ? (*green)->device : (int)n;
	return *green || n < (uintptr_t)qcul_device_count() ? cudaSuccess
							    : cudaErrorInvalidResourceHandle;
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
	struct qcul_green *green;
	int n;
	cudaError_t err = device ? find_exec_context(context, &n, &green) : cudaErrorInvalidValue;

	if (!err)
		*device = n;
	return qcul_done(err);
}

cudaError_t qcul_ExecutionCtxGetId(struct cudaExecutionContext_st *context, unsigned long long *id)
{
	struct qcul_green *green;
	int device;
	cudaError_t err = id ? find_exec_context(context, &device, &green) : cudaErrorInvalidValue;

	if (!err)
		*id = green ? QCUL_DEVICES + green->id : (unsigned long long)device + 1;
	return qcul_done(err);
}

cudaError_t qcul_ExecutionCtxSynchronize(struct cudaExecutionContext_st *context)
{
	int device, current = qcul_self.device;
	struct qcul_green *green;
	cudaError_t err = find_exec_context(context, &device, &green);

	if (err || green)
		return qcul_done(err ? err : qcul_green_sync(green));
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
	struct qcul_green *green;
	cudaError_t err = find_exec_context(context, &device, &green);

	if (err || green)
		return qcul_done(err ? err : qcul_green_stream(stream, green, flags, priority));
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
	struct qcul_green *green;
	int device;
	cudaError_t err = context ? find_exec_context(context, &device, &green) : cudaSuccess;

	return err ? qcul_done(err) : cudaGraphConditionalHandleCreate(handle, graph, first, flags);
}

/* ---- parts of a device ---- */

static struct qcul_resource *resource_of(struct cudaDevResource_st *resource)
{
	return (struct qcul_resource *)resource;
}

cudaError_t qcul_DeviceGetDevResource(int device, struct cudaDevResource_st *resource,
				      enum cudaDevResourceType type)
{
	cudaError_t err = qcul_device_ready(device);

	return qcul_done(err ? err
			     : qcul_green_resource(device, NULL, type, resource_of(resource)));
}

cudaError_t qcul_DevSmResourceSplitByCount(struct cudaDevResource_st *result, unsigned int *groups,
					   const struct cudaDevResource_st *input,
					   struct cudaDevResource_st *rest, unsigned int flags,
					   unsigned int least)
{
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_green_split(resource_of(result), groups,
				       (const struct qcul_resource *)input, resource_of(rest),
				       flags, least);
	return qcul_done(err);
}

cudaError_t qcul_DevResourceGenerateDesc(struct CUdevResourceDesc_st **desc,
					 struct cudaDevResource_st *resources, unsigned int count)
{
	cudaError_t err = qcul_ready();

	return qcul_done(err ? err
			     : qcul_green_describe((struct qcul_green_desc **)desc,
						   resource_of(resources), count));
}

cudaError_t qcul_GreenCtxCreate(struct cudaExecutionContext_st **context,
				struct CUdevResourceDesc_st *desc, int device, unsigned int flags)
{
	cudaError_t err = flags ? cudaErrorInvalidValue : qcul_device_ready(device);

	return qcul_done(err ? err
			     : qcul_green_create((struct qcul_green **)context,
						 (struct qcul_green_desc *)desc, device));
}

/* A device's own context cannot be destroyed. */
cudaError_t qcul_ExecutionCtxDestroy(struct cudaExecutionContext_st *context)
{
	struct qcul_green *green;
	int device;
	cudaError_t err = find_exec_context(context, &device, &green);

	if (err)
		return qcul_done(err);
	return qcul_done(green ? qcul_green_destroy(green) : cudaErrorInvalidValue);
}

cudaError_t qcul_ExecutionCtxGetDevResource(struct cudaExecutionContext_st *context,
					    struct cudaDevResource_st *resource,
					    enum cudaDevResourceType type)
{
	struct qcul_green *green;
	int device;
	cudaError_t err = find_exec_context(context, &device, &green);

	return qcul_done(err ? err
			     : qcul_green_resource(device, green, type, resource_of(resource)));
}

cudaError_t qcul_StreamGetDevResource(cudaStream_t stream, struct cudaDevResource_st *resource,
				      enum cudaDevResourceType type)
{
	uint32_t id;
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_stream_id(stream, &id);
	if (!err)
		err = qcul_green_resource(qcul_stream_device(id), qcul_green_of(stream), type,
					  resource_of(resource));
	return qcul_done(err);
}

cudaError_t qcul_StreamGetDevResource_ptsz(cudaStream_t stream, struct cudaDevResource_st *resource,
					   enum cudaDevResourceType type)
{
	return qcul_StreamGetDevResource(qcul_stream_or_own(stream), resource, type);
}

/* All work of a device is in many streams, and new ones would have to wait, too. */
static cudaError_t find_green_context(const struct cudaExecutionContext_st *context,
				      struct qcul_green **green)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	int device;
	cudaError_t err = find_exec_context(context, &device, green);

	if (!err && !*green)
		err = qcul_unsupported("an event of a whole device's execution context", &said);
	return err;
}

cudaError_t qcul_ExecutionCtxRecordEvent(struct cudaExecutionContext_st *context, cudaEvent_t event)
{
	struct qcul_green *green;
	cudaError_t err = find_green_context(context, &green);

	return qcul_done(err ? err : qcul_green_record(green, event));
}

cudaError_t qcul_ExecutionCtxWaitEvent(struct cudaExecutionContext_st *context, cudaEvent_t event)
{
	struct qcul_green *green;
	cudaError_t err = find_green_context(context, &green);

	return qcul_done(err ? err : qcul_green_wait(green, event));
}

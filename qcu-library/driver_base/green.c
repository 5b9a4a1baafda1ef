// SPDX-License-Identifier: LGPL-2.1-or-later
/* Green contexts in the driver API. */
#include "qcu-library/driver_base/context.h"

_Static_assert(sizeof(struct qcul_resource) == sizeof(CUdevResource) &&
		       offsetof(struct qcul_resource, sms) == offsetof(CUdevResource, sm.smCount) &&
		       offsetof(struct qcul_resource, align) ==
			       offsetof(CUdevResource, sm.smCoscheduledAlignment),
	       "a resource is the program's structure");

static CUresult find_green(CUgreenCtx green, struct qcul_green **out)
{
	*out = qcul_green_find(green);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	CUresult result = qcul_driver_device_check(device);

	return result ? result
		      : QCUL_RUNTIME(qcul_green_resource(device, NULL, type,
							 (struct qcul_resource *)resource));
}

CUresult cuCtxGetDevResource(CUcontext context, CUdevResource *resource, CUdevResourceType type)
{
	int device;
	CUresult result = qcul_driver_device(context, &device);

	return result ? result
		      : QCUL_RUNTIME(qcul_green_resource(device, context->green, type,
							 (struct qcul_resource *)resource));
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource *resource, CUdevResourceType type)
{
	struct qcul_green *g;
	CUresult result = find_green(green, &g);

	return result ? result
		      : QCUL_RUNTIME(qcul_green_resource(g->device, g, type,
							 (struct qcul_resource *)resource));
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *groups,
				     const CUdevResource *input, CUdevResource *rest,
				     unsigned int flags, unsigned int least)
{
	return QCUL_RUNTIME(qcul_green_split((struct qcul_resource *)result, groups,
					     (const struct qcul_resource *)input,
					     (struct qcul_resource *)rest, flags, least));
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *desc, CUdevResource *resources,
				   unsigned int count)
{
	return QCUL_RUNTIME(qcul_green_describe((struct qcul_green_desc **)desc,
						(struct qcul_resource *)resources, count));
}

/* The device's primary context stays as long as its green contexts. */
CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device,
			  unsigned int flags)
{
	CUresult result = qcul_driver_device_check(device);
	CUcontext primary;

	if (!result && flags != CU_GREEN_CTX_DEFAULT_STREAM)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = cuDevicePrimaryCtxRetain(&primary, device);
	if (result)
		return result;
	result = QCUL_RUNTIME(qcul_green_create((struct qcul_green **)green,
						(struct qcul_green_desc *)desc, device));
	if (result)
		(void)cuDevicePrimaryCtxRelease_v2(device);
	return result;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	struct qcul_green *g;
	CUresult result = find_green(green, &g);

	if (!result)
		result = QCUL_RUNTIME(qcul_green_destroy(g));
	if (result)
		return result;
	if (g->context)
		qcul_driver_context_ends(g->context);
	return cuDevicePrimaryCtxRelease_v2(g->device);
}

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
	struct qcul_green *g;
	CUresult result = context ? find_green(green, &g) : CUDA_ERROR_INVALID_VALUE;

	if (result)
		return result;
	if (!g->context)
		g->context = qcul_driver_context_from(g);
	*context = g->context;
	return g->context ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGreenCtxGetId(CUgreenCtx green, unsigned long long *id)
{
	CUcontext context;
	CUresult result = id ? cuCtxFromGreenCtx(&context, green) : CUDA_ERROR_INVALID_VALUE;

	if (!result)
		*id = context->number;
	return result;
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags,
				int priority)
{
	struct qcul_green *g;
	CUresult result = find_green(green, &g);

	if (!result && (!stream || flags != CU_STREAM_NON_BLOCKING))
		result = CUDA_ERROR_INVALID_VALUE;
	return result ? result : QCUL_RUNTIME(qcul_green_stream(stream, g, flags, priority));
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event)
{
	struct qcul_green *g;
	CUresult result = find_green(green, &g);

	return result ? result : QCUL_RUNTIME(qcul_green_record(g, event));
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event)
{
	struct qcul_green *g;
	CUresult result = find_green(green, &g);

	return result ? result : QCUL_RUNTIME(qcul_green_wait(g, event));
}

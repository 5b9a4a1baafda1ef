// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cufftXt's descriptors: memory that fits a plan, copies to and from it, and transforms of it. A
 * plan works on one GPU here, as it does natively before cufftXtSetGPUs. So a descriptor is one
 * piece of memory, and nothing of it is sent. cufft.c knows how large it is.
 */
#include <stdlib.h>

#include "qcu-library/shims/cufft.h"

static struct qcul_object *find_plan(cufftHandle plan)
{
	return qcul_lib_find(qcul_lib_by_number(plan), KIND_cufftHandle);
}

/* ---- several GPUs ---- */

/* As natively one GPU is no choice. Several are not served. */
cufftResult cufftXtSetGPUs(cufftHandle plan, int count, int *which)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	const struct qcul_object *o = find_plan(plan);
	int devices, i;

	if (!which)
		return CUFFT_INVALID_VALUE;
	if (!o || o->own)
		return CUFFT_INVALID_PLAN;
	if (count < 2 || count > 16)
		return CUFFT_INVALID_VALUE;
	if (cudaGetDeviceCount(&devices))
		return CUFFT_INTERNAL_ERROR;
	for (i = 0; i < count; i++)
		if (which[i] < 0 || which[i] >= devices)
			return CUFFT_INVALID_DEVICE;
	return (cufftResult)qcul_lib_unserved(&qcul_cufft, "cufftXtSetGPUs with several GPUs",
					      &said);
}

cufftResult cufftXtSetWorkArea(cufftHandle plan, void **area)
{
	return area ? cufftSetWorkArea(plan, area[0]) : CUFFT_INVALID_VALUE;
}

/* NVIDIA's shared library has none of these either. */
cufftResult cufftXtSetCallback(cufftHandle plan, void **routine, cufftXtCallbackType type,
			       void **info)
{
	(void)plan;
	(void)routine;
	(void)type;
	(void)info;
	return CUFFT_NOT_IMPLEMENTED;
}

cufftResult cufftXtClearCallback(cufftHandle plan, cufftXtCallbackType type)
{
	(void)plan;
	(void)type;
	return CUFFT_NOT_IMPLEMENTED;
}

/* ---- descriptors ---- */

/* One piece of memory: a program sees the first, which points to the second. */
struct descriptor {
	cudaLibXtDesc shown;
	cudaXtDesc memory;
};

static cufftResult allocate_for(const struct qcul_object *o, size_t size, void **memory)
{
	cudaError_t error;
	int device;

	if (size == SIZE_MAX || cudaGetDevice(&device) || cudaSetDevice(o->device))
		return CUFFT_ALLOC_FAILED;
	error = cudaMalloc(memory, size);
	return cudaSetDevice(device) || error ? CUFFT_ALLOC_FAILED : CUFFT_SUCCESS;
}

cufftResult cufftXtMalloc(cufftHandle plan, cudaLibXtDesc **descriptor, cufftXtSubFormat format)
{
	const struct qcul_object *o = find_plan(plan);
	const struct qcul_cufft_layout *l = o ? o->own : NULL;
	struct descriptor *d;
	cufftResult status;
	size_t size;

	if (!descriptor)
		return CUFFT_INVALID_VALUE;
	*descriptor = NULL;
	if (!l)
		return CUFFT_INVALID_PLAN;
	if ((int)format < CUFFT_XT_FORMAT_INPUT || format > CUFFT_XT_FORMAT_1D_INPUT_SHUFFLED)
		return CUFFT_INVALID_VALUE;
	size = l->in > l->out ? l->in : l->out;
	if (format == CUFFT_XT_FORMAT_INPUT || format == CUFFT_XT_FORMAT_OUTPUT)
		size = format == CUFFT_XT_FORMAT_INPUT ? l->in : l->out;
	d = calloc(1, sizeof(*d));
	if (!d)
		return CUFFT_ALLOC_FAILED;
	status = allocate_for(o, size, &d->memory.data[0]);
	if (status) {
		free(d);
		return status;
	}
	d->memory.version = d->shown.version = CUDART_VERSION + CUDA_XT_DESCRIPTOR_VERSION;
	d->memory.nGPUs = 1;
	d->memory.GPUs[0] = o->device;
	d->memory.size[0] = size;
	d->shown.descriptor = &d->memory;
	d->shown.library = LIB_FORMAT_CUFFT;
	d->shown.subFormat = format;
	*descriptor = &d->shown;
	return CUFFT_SUCCESS;
}

cufftResult cufftXtFree(cudaLibXtDesc *descriptor)
{
	cudaError_t error;

	if (!descriptor)
		return CUFFT_SUCCESS;
	error = cudaFree(descriptor->descriptor->data[0]);
	free(descriptor);
	return error ? CUFFT_INTERNAL_ERROR : CUFFT_SUCCESS;
}

static cudaXtDesc *memory_of(const cudaLibXtDesc *d)
{
	return d && d->descriptor && d->descriptor->nGPUs == 1 ? d->descriptor : NULL;
}

cufftResult cufftXtMemcpy(cufftHandle plan, void *to, void *from, cufftXtCopyType type)
{
	const struct qcul_object *o = find_plan(plan);
	const cudaXtDesc *a, *b;
	cudaError_t error;

	if (!o)
		return CUFFT_INVALID_PLAN;
	if (!to || !from || (unsigned int)type > CUFFT_COPY_DEVICE_TO_DEVICE)
		return CUFFT_INVALID_VALUE;
	a = type == CUFFT_COPY_DEVICE_TO_HOST ? NULL : memory_of(to);
	b = type == CUFFT_COPY_HOST_TO_DEVICE ? NULL : memory_of(from);
	if (a && b) {
		if (a->data[0] == b->data[0])
			return CUFFT_INVALID_VALUE;
		error = cudaMemcpyAsync(a->data[0], b->data[0],
					a->size[0] < b->size[0] ? a->size[0] : b->size[0],
					cudaMemcpyDeviceToDevice, o->stream);
		return error ? CUFFT_INTERNAL_ERROR : CUFFT_SUCCESS;
	}
	if (type == CUFFT_COPY_DEVICE_TO_DEVICE || (!a && !b))
		return CUFFT_INVALID_VALUE;
	error = a ? cudaMemcpyAsync(a->data[0], from, a->size[0], cudaMemcpyHostToDevice, o->stream)
		  : cudaMemcpyAsync(to, b->data[0], b->size[0], cudaMemcpyDeviceToHost, o->stream);
	if (!error)
		error = cudaStreamSynchronize(o->stream);
	return error ? CUFFT_INTERNAL_ERROR : CUFFT_SUCCESS;
}

/* ---- transforms ---- */

#define EXECUTE(name, function, in_type, out_type, ...)                                 \
	{                                                                               \
		const cudaXtDesc *in = memory_of(input), *out = memory_of(output);      \
                                                                                        \
		if (!find_plan(plan))                                                   \
			return CUFFT_INVALID_PLAN;                                      \
		if (!in || !out)                                                        \
			return CUFFT_INVALID_VALUE;                                     \
		return function(plan, (in_type *)in->data[0], (out_type *)out->data[0], \
				##__VA_ARGS__);                                         \
	}
#define DESCRIPTOR(kind, in_type, out_type)                                             \
	cufftResult cufftXtExecDescriptor##kind(cufftHandle plan, cudaLibXtDesc *input, \
						cudaLibXtDesc *output)                  \
		EXECUTE(kind, cufftExec##kind, in_type, out_type)
#define DESCRIPTOR_WITH_WAY(kind, function, type)                                       \
	cufftResult cufftXtExecDescriptor##kind(cufftHandle plan, cudaLibXtDesc *input, \
						cudaLibXtDesc *output, int direction)   \
		EXECUTE(kind, function, type, type, direction)
DESCRIPTOR(R2C, cufftReal, cufftComplex)
DESCRIPTOR(C2R, cufftComplex, cufftReal)
DESCRIPTOR(D2Z, cufftDoubleReal, cufftDoubleComplex)
DESCRIPTOR(Z2D, cufftDoubleComplex, cufftDoubleReal)
DESCRIPTOR_WITH_WAY(C2C, cufftExecC2C, cufftComplex)
DESCRIPTOR_WITH_WAY(Z2Z, cufftExecZ2Z, cufftDoubleComplex)
DESCRIPTOR_WITH_WAY(, cufftXtExec, void)

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What CUDA 11.8 has in another form than CUDA 12. All else is the same, but for texture and
 * surface references, which are gone: these calls are refused by name (qcu-library/loader/bind.c).
 *
 * Structures of 11.8 are the beginnings of those of 12. Nothing behind their end is read or
 * written.
 */
#include <stddef.h>
#include <string.h>

#include "qcu-library/cuda12/cuda11.h"

#define CUDA11_RUNTIME_VERSION	11080
#define CUDA11_DEVICE_PROP_SIZE offsetof(struct cuda12_device_prop, hostRegisterSupported)
#define CUDA11_TEXTURE_SIZE	offsetof(struct cudaTextureDesc, seamlessCubemap)
#define CUDA11_FUNC_SIZE	offsetof(struct cudaFuncAttributes, clusterDimMustBeSet)

/* NVIDIA's structures of 11.8 have these sizes. tests/loopback/loader/cuda_11.c asks its header. */
_Static_assert((CUDA11_DEVICE_PROP_SIZE + 7) / 8 * 8 == 728, "struct cudaDeviceProp");
_Static_assert(CUDA11_TEXTURE_SIZE == 68, "struct cudaTextureDesc");
_Static_assert((CUDA11_FUNC_SIZE + 7) / 8 * 8 == 56, "struct cudaFuncAttributes");

cudaError_t cuda11_RuntimeGetVersion(int *version)
{
	cudaError_t err = cudaRuntimeGetVersion(version);

	if (!err)
		*version = CUDA11_RUNTIME_VERSION;
	return err;
}

cudaError_t cuda11_ChooseDevice(int *device, const void *prop)
{
	struct cuda12_device_prop all = {0};

	if (!prop)
		return cuda12_ChooseDevice(device, NULL);
	memcpy(&all, prop, CUDA11_DEVICE_PROP_SIZE);
	return cuda12_ChooseDevice(device, &all);
}

cudaError_t cuda11_FuncGetAttributes(void *attributes, const void *function)
{
	struct cudaFuncAttributes all;
	cudaError_t err = cudaFuncGetAttributes(attributes ? &all : NULL, function);

	if (!err && attributes)
		memcpy(attributes, &all, CUDA11_FUNC_SIZE);
	return err;
}

/* ---- textures ---- */

cudaError_t cuda11_CreateTextureObject(cudaTextureObject_t *object,
				       const struct cuda12_resource_desc *resource,
				       const void *texture,
				       const struct cuda12_resource_view_desc *view)
{
	struct cudaTextureDesc all = {0};

	if (!texture)
		return cuda12_CreateTextureObject(object, resource, NULL, view);
	memcpy(&all, texture, CUDA11_TEXTURE_SIZE);
	return cuda12_CreateTextureObject(object, resource, &all, view);
}

cudaError_t cuda11_CreateTextureObject_v2(cudaTextureObject_t *object,
					  const struct cuda12_resource_desc *resource,
					  const struct cudaTextureDesc *texture,
					  const struct cuda12_resource_view_desc *view)
{
	return cuda12_CreateTextureObject(object, resource, texture, view);
}

cudaError_t cuda11_GetTextureObjectTextureDesc(void *texture, cudaTextureObject_t object)
{
	struct cudaTextureDesc all;
	cudaError_t err = cudaGetTextureObjectTextureDesc(texture ? &all : NULL, object);

	if (!err && texture)
		memcpy(texture, &all, CUDA11_TEXTURE_SIZE);
	return err;
}

cudaError_t cuda11_GetTextureObjectTextureDesc_v2(struct cudaTextureDesc *texture,
						  cudaTextureObject_t object)
{
	return cudaGetTextureObjectTextureDesc(texture, object);
}

/* ---- graphs ---- */

/* Our library writes no log, and says of no node that it is the one that is wrong. */
cudaError_t cuda11_GraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
				    cudaGraphNode_t *wrong, char *log, size_t size)
{
	if (wrong)
		*wrong = NULL;
	if (log && size)
		*log = '\0';
	return cudaGraphInstantiate(exec, graph, 0);
}

cudaError_t cuda11_GraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t *wrong,
				   enum cudaGraphExecUpdateResult *result)
{
	cudaGraphExecUpdateResultInfo info = {0};
	cudaError_t err;

	if (!wrong || !result)
		return qcul_12_error(cudaErrorInvalidValue);
	err = cudaGraphExecUpdate(exec, graph, &info);
	*wrong = info.errorNode;
	*result = info.result;
	return err;
}

/* ---- the driver's functions ---- */

static cudaError_t entry_error(cudaError_t err, enum cudaDriverEntryPointQueryResult status)
{
	return err || status == cudaDriverEntryPointSuccess
		       ? err
		       : qcul_12_error(cudaErrorSymbolNotFound);
}

cudaError_t cuda11_GetDriverEntryPoint(const char *symbol, void **function,
				       unsigned long long flags)
{
	enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
	cudaError_t err = cudaGetDriverEntryPointByVersion(symbol, function, CUDA11_RUNTIME_VERSION,
							   flags, &status);

	return entry_error(err, status);
}

cudaError_t cuda11_GetDriverEntryPoint_ptsz(const char *symbol, void **function,
					    unsigned long long flags)
{
	enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
	cudaError_t err = cudaGetDriverEntryPointByVersion_ptsz(
		symbol, function, CUDA11_RUNTIME_VERSION, flags, &status);

	return entry_error(err, status);
}

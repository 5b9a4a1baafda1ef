/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What CUDA 11.8 has in another form than CUDA 12. A function cuda11_X is qcul_11_cudaX outside. */
#ifndef CUDA11_H
#define CUDA11_H

#include "qcu-library/cuda12/cuda12.h"

cudaError_t cuda11_RuntimeGetVersion(int *version);
/* struct cudaDeviceProp and struct cudaFuncAttributes, which end earlier. */
cudaError_t cuda11_ChooseDevice(int *device, const void *prop);
cudaError_t cuda11_FuncGetAttributes(void *attributes, const void *function);
/* struct cudaTextureDesc, which ends earlier. That of _v2 is CUDA 12's. */
cudaError_t cuda11_CreateTextureObject(cudaTextureObject_t *object,
				       const struct cuda12_resource_desc *resource,
				       const void *texture,
				       const struct cuda12_resource_view_desc *view);
cudaError_t cuda11_CreateTextureObject_v2(cudaTextureObject_t *object,
					  const struct cuda12_resource_desc *resource,
					  const struct cudaTextureDesc *texture,
					  const struct cuda12_resource_view_desc *view);
cudaError_t cuda11_GetTextureObjectTextureDesc(void *texture, cudaTextureObject_t object);
cudaError_t cuda11_GetTextureObjectTextureDesc_v2(struct cudaTextureDesc *texture,
						  cudaTextureObject_t object);
cudaError_t cuda11_GraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
				    cudaGraphNode_t *wrong, char *log, size_t size);
cudaError_t cuda11_GraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t *wrong,
				   enum cudaGraphExecUpdateResult *result);
cudaError_t cuda11_GetDriverEntryPoint(const char *symbol, void **function,
				       unsigned long long flags);
cudaError_t cuda11_GetDriverEntryPoint_ptsz(const char *symbol, void **function,
					    unsigned long long flags);

#endif

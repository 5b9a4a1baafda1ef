// SPDX-License-Identifier: LGPL-2.1-or-later
/* External memory and semaphores: 13 has appended fields, which are 0. */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/cuda12/cuda12.h"

cudaError_t cuda12_ImportExternalMemory(cudaExternalMemory_t *memory,
					const struct cuda12_external_memory *desc)
{
	struct cudaExternalMemoryHandleDesc to = {0};

	if (desc)
		memcpy(&to, desc, sizeof(*desc));
	return cudaImportExternalMemory(memory, desc ? &to : NULL);
}

cudaError_t cuda12_ExternalMemoryGetMappedBuffer(void **ptr, cudaExternalMemory_t memory,
						 const struct cuda12_external_buffer *desc)
{
	struct cudaExternalMemoryBufferDesc to = {0};

	if (desc) {
		to.offset = desc->offset;
		to.size = desc->size;
		to.flags = desc->flags;
	}
	return cudaExternalMemoryGetMappedBuffer(ptr, memory, desc ? &to : NULL);
}

cudaError_t cuda12_ExternalMemoryGetMappedMipmappedArray(cudaMipmappedArray_t *mipmap,
							 cudaExternalMemory_t memory,
							 const struct cuda12_external_mipmap *desc)
{
	struct cudaExternalMemoryMipmappedArrayDesc to = {0};

	if (desc) {
		to.offset = desc->offset;
		to.formatDesc = desc->formatDesc;
		to.extent = desc->extent;
		to.flags = desc->flags;
		to.numLevels = desc->numLevels;
	}
	return cudaExternalMemoryGetMappedMipmappedArray(mipmap, memory, desc ? &to : NULL);
}

cudaError_t cuda12_ImportExternalSemaphore(cudaExternalSemaphore_t *semaphore,
					   const struct cuda12_external_semaphore *desc)
{
	struct cudaExternalSemaphoreHandleDesc to = {0};

	if (desc)
		memcpy(&to, desc, sizeof(*desc));
	return cudaImportExternalSemaphore(semaphore, desc ? &to : NULL);
}

/* ---- the oldest form of signals and waits ---- */

typedef cudaError_t signal_fn(const cudaExternalSemaphore_t *,
			      const struct cudaExternalSemaphoreSignalParams *, unsigned int,
			      cudaStream_t);
typedef cudaError_t wait_fn(const cudaExternalSemaphore_t *,
			    const struct cudaExternalSemaphoreWaitParams *, unsigned int,
			    cudaStream_t);

/* If the list cannot be converted, the call sees none, and reports that with an error. */
static cudaError_t signal(const cudaExternalSemaphore_t *semaphores,
			  const struct cuda12_semaphore_signal_v1 *from, unsigned int count,
			  cudaStream_t stream, signal_fn *call)
{
	struct cudaExternalSemaphoreSignalParams *to = NULL;
	cudaError_t err;
	unsigned int i;

	if (from)
		to = calloc(count, sizeof(*to));
	for (i = 0; to && i < count; i++) {
		to[i].params.fence.value = from[i].params.fence.value;
		to[i].params.nvSciSync.reserved = from[i].params.nvSciSync.reserved;
		to[i].params.keyedMutex.key = from[i].params.keyedMutex.key;
		to[i].flags = from[i].flags;
	}
	err = call(semaphores, to, count, stream);
	free(to);
	return err;
}

static cudaError_t wait_semaphores_v1(const cudaExternalSemaphore_t *semaphores,
				      const struct cuda12_semaphore_wait_v1 *from,
				      unsigned int count, cudaStream_t stream, wait_fn *call)
{
	struct cudaExternalSemaphoreWaitParams *to = NULL;
	cudaError_t err;
	unsigned int i;

	if (from)
		to = calloc(count, sizeof(*to));
	for (i = 0; to && i < count; i++) {
		to[i].params.fence.value = from[i].params.fence.value;
		to[i].params.nvSciSync.reserved = from[i].params.nvSciSync.reserved;
		to[i].params.keyedMutex.key = from[i].params.keyedMutex.key;
		to[i].params.keyedMutex.timeoutMs = from[i].params.keyedMutex.timeoutMs;
		to[i].flags = from[i].flags;
	}
	err = call(semaphores, to, count, stream);
	free(to);
	return err;
}

cudaError_t cuda12_SignalExternalSemaphoresAsync(const cudaExternalSemaphore_t *semaphores,
						 const struct cuda12_semaphore_signal_v1 *params,
						 unsigned int count, cudaStream_t stream)
{
	return signal(semaphores, params, count, stream, cudaSignalExternalSemaphoresAsync);
}

cudaError_t
cuda12_SignalExternalSemaphoresAsync_ptsz(const cudaExternalSemaphore_t *semaphores,
					  const struct cuda12_semaphore_signal_v1 *params,
					  unsigned int count, cudaStream_t stream)
{
	return signal(semaphores, params, count, stream, cudaSignalExternalSemaphoresAsync_ptsz);
}

cudaError_t cuda12_WaitExternalSemaphoresAsync(const cudaExternalSemaphore_t *semaphores,
					       const struct cuda12_semaphore_wait_v1 *params,
					       unsigned int count, cudaStream_t stream)
{
	return wait_semaphores_v1(semaphores, params, count, stream,
				  cudaWaitExternalSemaphoresAsync);
}

cudaError_t cuda12_WaitExternalSemaphoresAsync_ptsz(const cudaExternalSemaphore_t *semaphores,
						    const struct cuda12_semaphore_wait_v1 *params,
						    unsigned int count, cudaStream_t stream)
{
	return wait_semaphores_v1(semaphores, params, count, stream,
				  cudaWaitExternalSemaphoresAsync_ptsz);
}

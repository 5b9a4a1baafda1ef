// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints where the fields of structures lie that CUDA 12 has in another form than 13: compiled with
 * CUDA 13's header those of qcu-library/cuda12/cuda12.h, compiled with 12's header the original
 * ones.
 */
#include <stddef.h>
#include <stdio.h>

#include <cuda_runtime_api.h>

#if CUDART_VERSION < 13000
#include "names.h"
#endif
#include "qcu-library/cuda12/cuda12.h"

/* X(structure here, in CUDA 12, field) */
#define FIELDS(X)                                                                             \
	X(pointer_attributes, cudaPointerAttributes, type)                                    \
	X(pointer_attributes, cudaPointerAttributes, device)                                  \
	X(pointer_attributes, cudaPointerAttributes, devicePointer)                           \
	X(pointer_attributes, cudaPointerAttributes, hostPointer)                             \
	X(resource_desc, cudaResourceDesc, resType)                                           \
	X(resource_desc, cudaResourceDesc, res)                                               \
	X(resource_desc, cudaResourceDesc, res.array.array)                                   \
	X(resource_desc, cudaResourceDesc, res.mipmap.mipmap)                                 \
	X(resource_desc, cudaResourceDesc, res.linear.devPtr)                                 \
	X(resource_desc, cudaResourceDesc, res.linear.desc)                                   \
	X(resource_desc, cudaResourceDesc, res.linear.sizeInBytes)                            \
	X(resource_desc, cudaResourceDesc, res.pitch2D.devPtr)                                \
	X(resource_desc, cudaResourceDesc, res.pitch2D.desc)                                  \
	X(resource_desc, cudaResourceDesc, res.pitch2D.width)                                 \
	X(resource_desc, cudaResourceDesc, res.pitch2D.height)                                \
	X(resource_desc, cudaResourceDesc, res.pitch2D.pitchInBytes)                          \
	X(resource_view_desc, cudaResourceViewDesc, format)                                   \
	X(resource_view_desc, cudaResourceViewDesc, width)                                    \
	X(resource_view_desc, cudaResourceViewDesc, height)                                   \
	X(resource_view_desc, cudaResourceViewDesc, depth)                                    \
	X(resource_view_desc, cudaResourceViewDesc, firstMipmapLevel)                         \
	X(resource_view_desc, cudaResourceViewDesc, lastMipmapLevel)                          \
	X(resource_view_desc, cudaResourceViewDesc, firstLayer)                               \
	X(resource_view_desc, cudaResourceViewDesc, lastLayer)                                \
	X(external_memory, cudaExternalMemoryHandleDesc, type)                                \
	X(external_memory, cudaExternalMemoryHandleDesc, handle)                              \
	X(external_memory, cudaExternalMemoryHandleDesc, handle.fd)                           \
	X(external_memory, cudaExternalMemoryHandleDesc, handle.win32.handle)                 \
	X(external_memory, cudaExternalMemoryHandleDesc, handle.win32.name)                   \
	X(external_memory, cudaExternalMemoryHandleDesc, handle.nvSciBufObject)               \
	X(external_memory, cudaExternalMemoryHandleDesc, size)                                \
	X(external_memory, cudaExternalMemoryHandleDesc, flags)                               \
	X(external_buffer, cudaExternalMemoryBufferDesc, offset)                              \
	X(external_buffer, cudaExternalMemoryBufferDesc, size)                                \
	X(external_buffer, cudaExternalMemoryBufferDesc, flags)                               \
	X(external_mipmap, cudaExternalMemoryMipmappedArrayDesc, offset)                      \
	X(external_mipmap, cudaExternalMemoryMipmappedArrayDesc, formatDesc)                  \
	X(external_mipmap, cudaExternalMemoryMipmappedArrayDesc, extent)                      \
	X(external_mipmap, cudaExternalMemoryMipmappedArrayDesc, flags)                       \
	X(external_mipmap, cudaExternalMemoryMipmappedArrayDesc, numLevels)                   \
	X(external_semaphore, cudaExternalSemaphoreHandleDesc, type)                          \
	X(external_semaphore, cudaExternalSemaphoreHandleDesc, handle)                        \
	X(external_semaphore, cudaExternalSemaphoreHandleDesc, handle.fd)                     \
	X(external_semaphore, cudaExternalSemaphoreHandleDesc, handle.win32.handle)           \
	X(external_semaphore, cudaExternalSemaphoreHandleDesc, handle.win32.name)             \
	X(external_semaphore, cudaExternalSemaphoreHandleDesc, handle.nvSciSyncObj)           \
	X(external_semaphore, cudaExternalSemaphoreHandleDesc, flags)                         \
	X(semaphore_signal_v1, cudaExternalSemaphoreSignalParams_v1, params)                  \
	X(semaphore_signal_v1, cudaExternalSemaphoreSignalParams_v1, params.fence.value)      \
	X(semaphore_signal_v1, cudaExternalSemaphoreSignalParams_v1, params.nvSciSync)        \
	X(semaphore_signal_v1, cudaExternalSemaphoreSignalParams_v1, params.keyedMutex.key)   \
	X(semaphore_signal_v1, cudaExternalSemaphoreSignalParams_v1, flags)                   \
	X(semaphore_wait_v1, cudaExternalSemaphoreWaitParams_v1, params)                      \
	X(semaphore_wait_v1, cudaExternalSemaphoreWaitParams_v1, params.fence.value)          \
	X(semaphore_wait_v1, cudaExternalSemaphoreWaitParams_v1, params.nvSciSync)            \
	X(semaphore_wait_v1, cudaExternalSemaphoreWaitParams_v1, params.keyedMutex.key)       \
	X(semaphore_wait_v1, cudaExternalSemaphoreWaitParams_v1, params.keyedMutex.timeoutMs) \
	X(semaphore_wait_v1, cudaExternalSemaphoreWaitParams_v1, flags)                       \
	X(launch_params, cudaLaunchParams, func)                                              \
	X(launch_params, cudaLaunchParams, gridDim)                                           \
	X(launch_params, cudaLaunchParams, blockDim)                                          \
	X(launch_params, cudaLaunchParams, args)                                              \
	X(launch_params, cudaLaunchParams, sharedMem)                                         \
	X(launch_params, cudaLaunchParams, stream)

#define SIZES(X)                                                     \
	X(device_prop, cudaDeviceProp)                               \
	X(pointer_attributes, cudaPointerAttributes)                 \
	X(resource_desc, cudaResourceDesc)                           \
	X(resource_view_desc, cudaResourceViewDesc)                  \
	X(external_memory, cudaExternalMemoryHandleDesc)             \
	X(external_buffer, cudaExternalMemoryBufferDesc)             \
	X(external_mipmap, cudaExternalMemoryMipmappedArrayDesc)     \
	X(external_semaphore, cudaExternalSemaphoreHandleDesc)       \
	X(semaphore_signal_v1, cudaExternalSemaphoreSignalParams_v1) \
	X(semaphore_wait_v1, cudaExternalSemaphoreWaitParams_v1)     \
	X(launch_params, cudaLaunchParams)

#define PRINT(here, there, field)                                                        \
	printf("%s.%s %zu %zu\n", #there, #field, offsetof(struct cuda12_##here, field), \
	       sizeof(((struct cuda12_##here *)0)->field));
#define SIZE(here, there)      printf("%s %zu\n", #there, sizeof(struct cuda12_##here));
#define BOTH(type, name, size) PRINT(device_prop, cudaDeviceProp, name)
#define OLD(name, attribute)   PRINT(device_prop, cudaDeviceProp, name)

int main(void)
{
	SIZES(SIZE)
	CUDA12_DEVICE_PROP(BOTH, OLD)
	PRINT(device_prop, cudaDeviceProp, reserved)
	FIELDS(PRINT)
	return 0;
}

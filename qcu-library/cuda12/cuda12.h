/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What CUDA 12 has in another form than CUDA 13: structures and functions. The library is compiled
 * with CUDA 13's header, so the structures of 12 have names of their own here. A function cuda12_X
 * is exported as cudaX@@libcudart.so.12.
 *
 * tests/check/cuda12.sh compares this file with the headers of CUDA 12.
 */
#ifndef CUDA12_H
#define CUDA12_H

#ifndef CUDA12_COMPARE
#include <stdatomic.h>

/* With this macro the toolkit's header declares both names of a call, cudaX and cudaX_ptsz. */
#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>

#include "qcu-library/link/compiler_abi.h"

/* What libcudart.so.13 has for this library (qcu-library/api/for_cuda12.c). */
cudaError_t qcul_12_error(cudaError_t err);
cudaError_t qcul_12_unsupported(const char *name, atomic_flag *said);
#pragma GCC visibility pop
#endif

#define CUDA12_RUNTIME_VERSION 12090

/*
 * struct cudaDeviceProp, field by field. BOTH(type, name, size): 12 and 13 have this field.
 * OLD(...): only 12 has it, and it has the value of this attribute.
 */
#define CUDA12_DEVICE_PROP(BOTH, OLD)                                                      \
	BOTH(char, name, [256])                                                            \
	BOTH(cudaUUID_t, uuid, )                                                           \
	BOTH(char, luid, [8])                                                              \
	BOTH(unsigned int, luidDeviceNodeMask, )                                           \
	BOTH(size_t, totalGlobalMem, )                                                     \
	BOTH(size_t, sharedMemPerBlock, )                                                  \
	BOTH(int, regsPerBlock, )                                                          \
	BOTH(int, warpSize, )                                                              \
	BOTH(size_t, memPitch, )                                                           \
	BOTH(int, maxThreadsPerBlock, )                                                    \
	BOTH(int, maxThreadsDim, [3])                                                      \
	BOTH(int, maxGridSize, [3])                                                        \
	OLD(clockRate, cudaDevAttrClockRate)                                               \
	BOTH(size_t, totalConstMem, )                                                      \
	BOTH(int, major, )                                                                 \
	BOTH(int, minor, )                                                                 \
	BOTH(size_t, textureAlignment, )                                                   \
	BOTH(size_t, texturePitchAlignment, )                                              \
	OLD(deviceOverlap, cudaDevAttrGpuOverlap)                                          \
	BOTH(int, multiProcessorCount, )                                                   \
	OLD(kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout)                        \
	BOTH(int, integrated, )                                                            \
	BOTH(int, canMapHostMemory, )                                                      \
	OLD(computeMode, cudaDevAttrComputeMode)                                           \
	BOTH(int, maxTexture1D, )                                                          \
	BOTH(int, maxTexture1DMipmap, )                                                    \
	OLD(maxTexture1DLinear, cudaDevAttrMaxTexture1DLinearWidth)                        \
	BOTH(int, maxTexture2D, [2])                                                       \
	BOTH(int, maxTexture2DMipmap, [2])                                                 \
	BOTH(int, maxTexture2DLinear, [3])                                                 \
	BOTH(int, maxTexture2DGather, [2])                                                 \
	BOTH(int, maxTexture3D, [3])                                                       \
	BOTH(int, maxTexture3DAlt, [3])                                                    \
	BOTH(int, maxTextureCubemap, )                                                     \
	BOTH(int, maxTexture1DLayered, [2])                                                \
	BOTH(int, maxTexture2DLayered, [3])                                                \
	BOTH(int, maxTextureCubemapLayered, [2])                                           \
	BOTH(int, maxSurface1D, )                                                          \
	BOTH(int, maxSurface2D, [2])                                                       \
	BOTH(int, maxSurface3D, [3])                                                       \
	BOTH(int, maxSurface1DLayered, [2])                                                \
	BOTH(int, maxSurface2DLayered, [3])                                                \
	BOTH(int, maxSurfaceCubemap, )                                                     \
	BOTH(int, maxSurfaceCubemapLayered, [2])                                           \
	BOTH(size_t, surfaceAlignment, )                                                   \
	BOTH(int, concurrentKernels, )                                                     \
	BOTH(int, ECCEnabled, )                                                            \
	BOTH(int, pciBusID, )                                                              \
	BOTH(int, pciDeviceID, )                                                           \
	BOTH(int, pciDomainID, )                                                           \
	BOTH(int, tccDriver, )                                                             \
	BOTH(int, asyncEngineCount, )                                                      \
	BOTH(int, unifiedAddressing, )                                                     \
	OLD(memoryClockRate, cudaDevAttrMemoryClockRate)                                   \
	BOTH(int, memoryBusWidth, )                                                        \
	BOTH(int, l2CacheSize, )                                                           \
	BOTH(int, persistingL2CacheMaxSize, )                                              \
	BOTH(int, maxThreadsPerMultiProcessor, )                                           \
	BOTH(int, streamPrioritiesSupported, )                                             \
	BOTH(int, globalL1CacheSupported, )                                                \
	BOTH(int, localL1CacheSupported, )                                                 \
	BOTH(size_t, sharedMemPerMultiprocessor, )                                         \
	BOTH(int, regsPerMultiprocessor, )                                                 \
	BOTH(int, managedMemory, )                                                         \
	BOTH(int, isMultiGpuBoard, )                                                       \
	BOTH(int, multiGpuBoardGroupID, )                                                  \
	BOTH(int, hostNativeAtomicSupported, )                                             \
	OLD(singleToDoublePrecisionPerfRatio, cudaDevAttrSingleToDoublePrecisionPerfRatio) \
	BOTH(int, pageableMemoryAccess, )                                                  \
	BOTH(int, concurrentManagedAccess, )                                               \
	BOTH(int, computePreemptionSupported, )                                            \
	BOTH(int, canUseHostPointerForRegisteredMem, )                                     \
	BOTH(int, cooperativeLaunch, )                                                     \
	OLD(cooperativeMultiDeviceLaunch, CUDA12_ATTR_MULTI_DEVICE_LAUNCH)                 \
	BOTH(size_t, sharedMemPerBlockOptin, )                                             \
	BOTH(int, pageableMemoryAccessUsesHostPageTables, )                                \
	BOTH(int, directManagedMemAccessFromHost, )                                        \
	BOTH(int, maxBlocksPerMultiProcessor, )                                            \
	BOTH(int, accessPolicyMaxWindowSize, )                                             \
	BOTH(size_t, reservedSharedMemPerBlock, )                                          \
	BOTH(int, hostRegisterSupported, )                                                 \
	BOTH(int, sparseCudaArraySupported, )                                              \
	BOTH(int, hostRegisterReadOnlySupported, )                                         \
	BOTH(int, timelineSemaphoreInteropSupported, )                                     \
	BOTH(int, memoryPoolsSupported, )                                                  \
	BOTH(int, gpuDirectRDMASupported, )                                                \
	BOTH(unsigned int, gpuDirectRDMAFlushWritesOptions, )                              \
	BOTH(int, gpuDirectRDMAWritesOrdering, )                                           \
	BOTH(unsigned int, memoryPoolSupportedHandleTypes, )                               \
	BOTH(int, deferredMappingCudaArraySupported, )                                     \
	BOTH(int, ipcEventSupported, )                                                     \
	BOTH(int, clusterLaunch, )                                                         \
	BOTH(int, unifiedFunctionPointers, )

/* CUDA 13 has no name for this attribute. It is always 0 here: such launches are not supported. */
#define CUDA12_ATTR_MULTI_DEVICE_LAUNCH ((enum cudaDeviceAttr)96)

#ifndef CUDA12_COMPARE
struct cuda12_device_prop {
#define BOTH(type, name, size) type name size;
#define OLD(name, attribute)   int name;
	CUDA12_DEVICE_PROP(BOTH, OLD)
#undef BOTH
#undef OLD
	int reserved[63];
};

struct cuda12_pointer_attributes {
	enum cudaMemoryType type;
	int device;
	void *devicePointer;
	void *hostPointer;
};

struct cuda12_resource_desc {
	enum cudaResourceType resType;
	union {
		struct {
			cudaArray_t array;
		} array;
		struct {
			cudaMipmappedArray_t mipmap;
		} mipmap;
		struct {
			void *devPtr;
			struct cudaChannelFormatDesc desc;
			size_t sizeInBytes;
		} linear;
		struct {
			void *devPtr;
			struct cudaChannelFormatDesc desc;
			size_t width;
			size_t height;
			size_t pitchInBytes;
		} pitch2D;
	} res;
};

struct cuda12_resource_view_desc {
	enum cudaResourceViewFormat format;
	size_t width;
	size_t height;
	size_t depth;
	unsigned int firstMipmapLevel;
	unsigned int lastMipmapLevel;
	unsigned int firstLayer;
	unsigned int lastLayer;
};

struct cuda12_external_memory {
	enum cudaExternalMemoryHandleType type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
		const void *nvSciBufObject;
	} handle;
	unsigned long long size;
	unsigned int flags;
};

struct cuda12_external_buffer {
	unsigned long long offset;
	unsigned long long size;
	unsigned int flags;
};

struct cuda12_external_mipmap {
	unsigned long long offset;
	struct cudaChannelFormatDesc formatDesc;
	struct cudaExtent extent;
	unsigned int flags;
	unsigned int numLevels;
};

struct cuda12_external_semaphore {
	enum cudaExternalSemaphoreHandleType type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
		const void *nvSciSyncObj;
	} handle;
	unsigned int flags;
};

struct cuda12_semaphore_signal_v1 {
	struct {
		struct {
			unsigned long long value;
		} fence;
		union {
			void *fence;
			unsigned long long reserved;
		} nvSciSync;
		struct {
			unsigned long long key;
		} keyedMutex;
	} params;
	unsigned int flags;
};

struct cuda12_semaphore_wait_v1 {
	struct {
		struct {
			unsigned long long value;
		} fence;
		union {
			void *fence;
			unsigned long long reserved;
		} nvSciSync;
		struct {
			unsigned long long key;
			unsigned int timeoutMs;
		} keyedMutex;
	} params;
	unsigned int flags;
};

struct cuda12_launch_params {
	void *func;
	dim3 gridDim;
	dim3 blockDim;
	void **args;
	size_t sharedMem;
	cudaStream_t stream;
};
#endif

/* ---- device.c ---- */

cudaError_t cuda12_RuntimeGetVersion(int *version);
cudaError_t cuda12_DeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);
/* Programs that were compiled for CUDA 12 call _v2. The other one fills in less (device.c). */
cudaError_t cuda12_GetDeviceProperties(struct cuda12_device_prop *prop, int device);
cudaError_t cuda12_GetDeviceProperties_v2(struct cuda12_device_prop *prop, int device);
cudaError_t cuda12_ChooseDevice(int *device, const struct cuda12_device_prop *prop);
cudaError_t cuda12_SetDoubleForDevice(double *d);
cudaError_t cuda12_SetDoubleForHost(double *d);

/* ---- memory.c ---- */

cudaError_t cuda12_PointerGetAttributes(struct cuda12_pointer_attributes *attributes,
					const void *ptr);
cudaError_t cuda12_MemAdvise(const void *ptr, size_t count, enum cudaMemoryAdvise advice,
			     int device);
cudaError_t cuda12_MemPrefetchAsync(const void *ptr, size_t count, int device, cudaStream_t stream);
cudaError_t cuda12_MemPrefetchAsync_ptsz(const void *ptr, size_t count, int device,
					 cudaStream_t stream);
cudaError_t cuda12_MemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
				    struct cudaMemcpyAttributes *attrs, size_t *attr_indices,
				    size_t attr_count, size_t *failed, cudaStream_t stream);
cudaError_t cuda12_MemcpyBatchAsync_ptsz(void **dsts, void **srcs, size_t *sizes, size_t count,
					 struct cudaMemcpyAttributes *attrs, size_t *attr_indices,
					 size_t attr_count, size_t *failed, cudaStream_t stream);
cudaError_t cuda12_Memcpy3DBatchAsync(size_t count, struct cudaMemcpy3DBatchOp *ops, size_t *failed,
				      unsigned long long flags, cudaStream_t stream);
cudaError_t cuda12_Memcpy3DBatchAsync_ptsz(size_t count, struct cudaMemcpy3DBatchOp *ops,
					   size_t *failed, unsigned long long flags,
					   cudaStream_t stream);
cudaError_t cuda12_CreateTextureObject(cudaTextureObject_t *object,
				       const struct cuda12_resource_desc *resource,
				       const struct cudaTextureDesc *texture,
				       const struct cuda12_resource_view_desc *view);
cudaError_t cuda12_CreateSurfaceObject(cudaSurfaceObject_t *object,
				       const struct cuda12_resource_desc *resource);
cudaError_t cuda12_GetTextureObjectResourceDesc(struct cuda12_resource_desc *resource,
						cudaTextureObject_t object);
cudaError_t cuda12_GetTextureObjectResourceViewDesc(struct cuda12_resource_view_desc *view,
						    cudaTextureObject_t object);
cudaError_t cuda12_GetSurfaceObjectResourceDesc(struct cuda12_resource_desc *resource,
						cudaSurfaceObject_t object);

/* ---- external.c ---- */

cudaError_t cuda12_ImportExternalMemory(cudaExternalMemory_t *memory,
					const struct cuda12_external_memory *desc);
cudaError_t cuda12_ExternalMemoryGetMappedBuffer(void **ptr, cudaExternalMemory_t memory,
						 const struct cuda12_external_buffer *desc);
cudaError_t cuda12_ExternalMemoryGetMappedMipmappedArray(cudaMipmappedArray_t *mipmap,
							 cudaExternalMemory_t memory,
							 const struct cuda12_external_mipmap *desc);
cudaError_t cuda12_ImportExternalSemaphore(cudaExternalSemaphore_t *semaphore,
					   const struct cuda12_external_semaphore *desc);
/* Programs that were compiled for CUDA 12 call _v2, whose structures 13 has, too. */
cudaError_t cuda12_SignalExternalSemaphoresAsync(const cudaExternalSemaphore_t *semaphores,
						 const struct cuda12_semaphore_signal_v1 *params,
						 unsigned int count, cudaStream_t stream);
cudaError_t
cuda12_SignalExternalSemaphoresAsync_ptsz(const cudaExternalSemaphore_t *semaphores,
					  const struct cuda12_semaphore_signal_v1 *params,
					  unsigned int count, cudaStream_t stream);
cudaError_t cuda12_WaitExternalSemaphoresAsync(const cudaExternalSemaphore_t *semaphores,
					       const struct cuda12_semaphore_wait_v1 *params,
					       unsigned int count, cudaStream_t stream);
cudaError_t cuda12_WaitExternalSemaphoresAsync_ptsz(const cudaExternalSemaphore_t *semaphores,
						    const struct cuda12_semaphore_wait_v1 *params,
						    unsigned int count, cudaStream_t stream);

/* ---- graph.c ---- */

cudaError_t cuda12_GraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
					const cudaGraphNode_t *to, size_t count);
cudaError_t cuda12_GraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
					   const cudaGraphNode_t *to, size_t count);
cudaError_t cuda12_GraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
				const cudaGraphNode_t *dependencies, size_t count,
				struct cudaGraphNodeParams *params);
cudaError_t cuda12_GraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
				 size_t *count);
cudaError_t cuda12_GraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
					    size_t *count);
cudaError_t cuda12_GraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *dependents,
					      size_t *count);
/* CUDA 11's form, which programs compiled for 12 do not call. */
cudaError_t cuda12_StreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
					unsigned long long *id);
cudaError_t cuda12_StreamGetCaptureInfo_ptsz(cudaStream_t stream,
					     enum cudaStreamCaptureStatus *status,
					     unsigned long long *id);
cudaError_t cuda12_StreamGetCaptureInfo_v2(cudaStream_t stream,
					   enum cudaStreamCaptureStatus *status,
					   unsigned long long *id, cudaGraph_t *graph,
					   const cudaGraphNode_t **dependencies, size_t *count);
cudaError_t cuda12_StreamGetCaptureInfo_v2_ptsz(cudaStream_t stream,
						enum cudaStreamCaptureStatus *status,
						unsigned long long *id, cudaGraph_t *graph,
						const cudaGraphNode_t **dependencies,
						size_t *count);
cudaError_t cuda12_StreamUpdateCaptureDependencies(cudaStream_t stream,
						   cudaGraphNode_t *dependencies, size_t count,
						   unsigned int flags);
cudaError_t cuda12_StreamUpdateCaptureDependencies_ptsz(cudaStream_t stream,
							cudaGraphNode_t *dependencies, size_t count,
							unsigned int flags);

/* ---- launch.c ---- */

cudaError_t cuda12_LaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
				cudaStream_t stream);
cudaError_t cuda12_LaunchKernel_ptsz(const void *func, dim3 grid, dim3 block, void **args,
				     size_t shared, cudaStream_t stream);
cudaError_t cuda12_LaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
					   size_t shared, cudaStream_t stream);
cudaError_t cuda12_LaunchCooperativeKernel_ptsz(const void *func, dim3 grid, dim3 block,
						void **args, size_t shared, cudaStream_t stream);
cudaError_t cuda12_LaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args);
cudaError_t cuda12_LaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *func,
					void **args);
/* The headers of CUDA declare these for C++ only. They are exported as __cudaLaunchKernel(_ptsz).
 */
cudaError_t cuda12___LaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				  size_t shared, cudaStream_t stream);
cudaError_t cuda12___LaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				       size_t shared, cudaStream_t stream);

cudaError_t cuda12_LaunchCooperativeKernelMultiDevice(struct cuda12_launch_params *list,
						      unsigned int count, unsigned int flags);

#endif

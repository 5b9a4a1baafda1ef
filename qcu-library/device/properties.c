// SPDX-License-Identifier: LGPL-2.1-or-later
/* A device's attributes, and struct cudaDeviceProp, which CUDA builds from them. */
#include <string.h>

#include "qcu-library/device/device.h"

_Static_assert((int)cudaDevAttrMax <= QCU_ATTRS, "a device description holds every attribute");

cudaError_t qcul_device_attr(int device, enum cudaDeviceAttr attr, int *value)
{
	const struct qcu_device_desc *desc;
	cudaError_t err = qcul_device_desc(device, &desc);

	if (err)
		return err;
	if ((int)attr <= 0 || attr >= cudaDevAttrMax)
		return cudaErrorInvalidValue;
	*value = desc->attr[attr];
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	return qcul_done(value ? qcul_device_attr(device, attr, value) : cudaErrorInvalidValue);
}

/* X(field of struct cudaDeviceProp, attribute) */
#define PROPERTIES(X)                                                                     \
	X(sharedMemPerBlock, MaxSharedMemoryPerBlock)                                     \
	X(regsPerBlock, MaxRegistersPerBlock)                                             \
	X(warpSize, WarpSize)                                                             \
	X(memPitch, MaxPitch)                                                             \
	X(maxThreadsPerBlock, MaxThreadsPerBlock)                                         \
	X(maxThreadsDim[0], MaxBlockDimX)                                                 \
	X(maxThreadsDim[1], MaxBlockDimY)                                                 \
	X(maxThreadsDim[2], MaxBlockDimZ)                                                 \
	X(maxGridSize[0], MaxGridDimX)                                                    \
	X(maxGridSize[1], MaxGridDimY)                                                    \
	X(maxGridSize[2], MaxGridDimZ)                                                    \
	X(totalConstMem, TotalConstantMemory)                                             \
	X(major, ComputeCapabilityMajor)                                                  \
	X(minor, ComputeCapabilityMinor)                                                  \
	X(textureAlignment, TextureAlignment)                                             \
	X(texturePitchAlignment, TexturePitchAlignment)                                   \
	X(multiProcessorCount, MultiProcessorCount)                                       \
	X(integrated, Integrated)                                                         \
	X(canMapHostMemory, CanMapHostMemory)                                             \
	X(maxTexture1D, MaxTexture1DWidth)                                                \
	X(maxTexture1DMipmap, MaxTexture1DMipmappedWidth)                                 \
	X(maxTexture2D[0], MaxTexture2DWidth)                                             \
	X(maxTexture2D[1], MaxTexture2DHeight)                                            \
	X(maxTexture2DMipmap[0], MaxTexture2DMipmappedWidth)                              \
	X(maxTexture2DMipmap[1], MaxTexture2DMipmappedHeight)                             \
	X(maxTexture2DLinear[0], MaxTexture2DLinearWidth)                                 \
	X(maxTexture2DLinear[1], MaxTexture2DLinearHeight)                                \
	X(maxTexture2DLinear[2], MaxTexture2DLinearPitch)                                 \
	X(maxTexture2DGather[0], MaxTexture2DGatherWidth)                                 \
	X(maxTexture2DGather[1], MaxTexture2DGatherHeight)                                \
	X(maxTexture3D[0], MaxTexture3DWidth)                                             \
	X(maxTexture3D[1], MaxTexture3DHeight)                                            \
	X(maxTexture3D[2], MaxTexture3DDepth)                                             \
	X(maxTexture3DAlt[0], MaxTexture3DWidthAlt)                                       \
	X(maxTexture3DAlt[1], MaxTexture3DHeightAlt)                                      \
	X(maxTexture3DAlt[2], MaxTexture3DDepthAlt)                                       \
	X(maxTextureCubemap, MaxTextureCubemapWidth)                                      \
	X(maxTexture1DLayered[0], MaxTexture1DLayeredWidth)                               \
	X(maxTexture1DLayered[1], MaxTexture1DLayeredLayers)                              \
	X(maxTexture2DLayered[0], MaxTexture2DLayeredWidth)                               \
	X(maxTexture2DLayered[1], MaxTexture2DLayeredHeight)                              \
	X(maxTexture2DLayered[2], MaxTexture2DLayeredLayers)                              \
	X(maxTextureCubemapLayered[0], MaxTextureCubemapLayeredWidth)                     \
	X(maxTextureCubemapLayered[1], MaxTextureCubemapLayeredLayers)                    \
	X(maxSurface1D, MaxSurface1DWidth)                                                \
	X(maxSurface2D[0], MaxSurface2DWidth)                                             \
	X(maxSurface2D[1], MaxSurface2DHeight)                                            \
	X(maxSurface3D[0], MaxSurface3DWidth)                                             \
	X(maxSurface3D[1], MaxSurface3DHeight)                                            \
	X(maxSurface3D[2], MaxSurface3DDepth)                                             \
	X(maxSurface1DLayered[0], MaxSurface1DLayeredWidth)                               \
	X(maxSurface1DLayered[1], MaxSurface1DLayeredLayers)                              \
	X(maxSurface2DLayered[0], MaxSurface2DLayeredWidth)                               \
	X(maxSurface2DLayered[1], MaxSurface2DLayeredHeight)                              \
	X(maxSurface2DLayered[2], MaxSurface2DLayeredLayers)                              \
	X(maxSurfaceCubemap, MaxSurfaceCubemapWidth)                                      \
	X(maxSurfaceCubemapLayered[0], MaxSurfaceCubemapLayeredWidth)                     \
	X(maxSurfaceCubemapLayered[1], MaxSurfaceCubemapLayeredLayers)                    \
	X(surfaceAlignment, SurfaceAlignment)                                             \
	X(concurrentKernels, ConcurrentKernels)                                           \
	X(ECCEnabled, EccEnabled)                                                         \
	X(pciBusID, PciBusId)                                                             \
	X(pciDeviceID, PciDeviceId)                                                       \
	X(pciDomainID, PciDomainId)                                                       \
	X(tccDriver, TccDriver)                                                           \
	X(asyncEngineCount, AsyncEngineCount)                                             \
	X(unifiedAddressing, UnifiedAddressing)                                           \
	X(memoryBusWidth, GlobalMemoryBusWidth)                                           \
	X(l2CacheSize, L2CacheSize)                                                       \
	X(persistingL2CacheMaxSize, MaxPersistingL2CacheSize)                             \
	X(maxThreadsPerMultiProcessor, MaxThreadsPerMultiProcessor)                       \
	X(streamPrioritiesSupported, StreamPrioritiesSupported)                           \
	X(globalL1CacheSupported, GlobalL1CacheSupported)                                 \
	X(localL1CacheSupported, LocalL1CacheSupported)                                   \
	X(sharedMemPerMultiprocessor, MaxSharedMemoryPerMultiprocessor)                   \
	X(regsPerMultiprocessor, MaxRegistersPerMultiprocessor)                           \
	X(managedMemory, ManagedMemory)                                                   \
	X(isMultiGpuBoard, IsMultiGpuBoard)                                               \
	X(multiGpuBoardGroupID, MultiGpuBoardGroupID)                                     \
	X(hostNativeAtomicSupported, HostNativeAtomicSupported)                           \
	X(pageableMemoryAccess, PageableMemoryAccess)                                     \
	X(concurrentManagedAccess, ConcurrentManagedAccess)                               \
	X(computePreemptionSupported, ComputePreemptionSupported)                         \
	X(canUseHostPointerForRegisteredMem, CanUseHostPointerForRegisteredMem)           \
	X(cooperativeLaunch, CooperativeLaunch)                                           \
	X(sharedMemPerBlockOptin, MaxSharedMemoryPerBlockOptin)                           \
	X(pageableMemoryAccessUsesHostPageTables, PageableMemoryAccessUsesHostPageTables) \
	X(directManagedMemAccessFromHost, DirectManagedMemAccessFromHost)                 \
	X(maxBlocksPerMultiProcessor, MaxBlocksPerMultiprocessor)                         \
	X(accessPolicyMaxWindowSize, MaxAccessPolicyWindowSize)                           \
	X(reservedSharedMemPerBlock, ReservedSharedMemoryPerBlock)                        \
	X(hostRegisterSupported, HostRegisterSupported)                                   \
	X(sparseCudaArraySupported, SparseCudaArraySupported)                             \
	X(hostRegisterReadOnlySupported, HostRegisterReadOnlySupported)                   \
	X(timelineSemaphoreInteropSupported, TimelineSemaphoreInteropSupported)           \
	X(memoryPoolsSupported, MemoryPoolsSupported)                                     \
	X(gpuDirectRDMASupported, GPUDirectRDMASupported)                                 \
	X(gpuDirectRDMAFlushWritesOptions, GPUDirectRDMAFlushWritesOptions)               \
	X(gpuDirectRDMAWritesOrdering, GPUDirectRDMAWritesOrdering)                       \
	X(memoryPoolSupportedHandleTypes, MemoryPoolSupportedHandleTypes)                 \
	X(deferredMappingCudaArraySupported, DeferredMappingCudaArraySupported)           \
	X(ipcEventSupported, IpcEventSupport)                                             \
	X(clusterLaunch, ClusterLaunch)                                                   \
	X(deviceNumaConfig, NumaConfig)                                                   \
	X(deviceNumaId, NumaId)                                                           \
	X(mpsEnabled, MpsEnabled)                                                         \
	X(hostNumaId, HostNumaId)                                                         \
	X(gpuPciDeviceID, GpuPciDeviceId)                                                 \
	X(gpuPciSubsystemID, GpuPciSubsystemId)                                           \
	X(hostNumaMultinodeIpcSupported, HostNumaMultinodeIpcSupported)

static cudaError_t fill_properties(struct cudaDeviceProp *prop, int device)
{
	const struct qcu_device_desc *desc;
	cudaError_t err;

	if (!prop)
		return cudaErrorInvalidValue;
	err = qcul_device_desc(device, &desc);
	if (err)
		return err;
	memset(prop, 0, sizeof(*prop));
	memcpy(prop->name, desc->name, sizeof(prop->name));
	memcpy(prop->uuid.bytes, desc->uuid, sizeof(prop->uuid.bytes));
	prop->totalGlobalMem = desc->total_mem;
#define X(field, attribute) \
	prop->field = (__typeof__(prop->field))desc->attr[cudaDevAttr##attribute];
	PROPERTIES(X)
#undef X
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	return qcul_done(fill_properties(prop, device));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	int supported = 0;
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_device_attr(qcul_self.device, cudaDevAttrStreamPrioritiesSupported,
				       &supported);
	if (err)
		return qcul_done(err);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = supported ? QCUL_GREATEST_PRIORITY : 0;
	return cudaSuccess;
}

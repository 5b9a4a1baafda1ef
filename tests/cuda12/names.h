/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CUDA 12's names for the structures of qcu-library/cuda12/cuda12.h, for files that are compiled
 * with CUDA 12's own header.
 */
#ifndef CUDA12_NAMES_H
#define CUDA12_NAMES_H

#define CUDA12_COMPARE
#define cuda12_device_prop	   cudaDeviceProp
#define cuda12_pointer_attributes  cudaPointerAttributes
#define cuda12_resource_desc	   cudaResourceDesc
#define cuda12_resource_view_desc  cudaResourceViewDesc
#define cuda12_external_memory	   cudaExternalMemoryHandleDesc
#define cuda12_external_buffer	   cudaExternalMemoryBufferDesc
#define cuda12_external_mipmap	   cudaExternalMemoryMipmappedArrayDesc
#define cuda12_external_semaphore  cudaExternalSemaphoreHandleDesc
#define cuda12_semaphore_signal_v1 cudaExternalSemaphoreSignalParams_v1
#define cuda12_semaphore_wait_v1   cudaExternalSemaphoreWaitParams_v1
#define cuda12_launch_params	   cudaLaunchParams

#endif

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Queries and settings of kernels. */
#include <string.h>

#include "qcu-library/link/ask.h"
#include "qcu-library/module/module.h"

/* Finds the kernel of a function, and loads it in the mirror. */
static cudaError_t find_loaded_kernel(const void *func, struct CUkern_st **kernel)
{
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_kernel(func, kernel);
	return err ? err : qcul_kernel_load(*kernel);
}

static cudaError_t get_kernel_attributes(struct cudaFuncAttributes *attr, const void *func)
{
	struct qcu_kernel_desc desc;
	struct CUkern_st *k;
	cudaError_t err;

	if (!attr)
		return cudaErrorInvalidValue;
	err = find_loaded_kernel(func, &k);
	if (!err)
		err = qcul_kernel_desc(k, &desc);
	if (err)
		return err;
	memset(attr, 0, sizeof(*attr));
	attr->sharedSizeBytes = desc.shared_bytes;
	attr->constSizeBytes = desc.const_bytes;
	attr->localSizeBytes = desc.local_bytes;
	attr->maxThreadsPerBlock = (int)desc.max_threads;
	attr->numRegs = (int)desc.regs;
	attr->ptxVersion = (int)desc.ptx_version;
	attr->binaryVersion = (int)desc.binary_version;
	attr->maxDynamicSharedSizeBytes = (int)desc.max_dynamic_shared;
	attr->preferredShmemCarveout = desc.carveout;
	attr->cacheModeCA = (int)desc.cache_mode;
	attr->clusterDimMustBeSet = (int)desc.cluster_must_be_set;
	attr->requiredClusterWidth = (int)desc.cluster[0];
	attr->requiredClusterHeight = (int)desc.cluster[1];
	attr->requiredClusterDepth = (int)desc.cluster[2];
	attr->clusterSchedulingPolicyPreference = (int)desc.cluster_policy;
	attr->nonPortableClusterSizeAllowed = (int)desc.cluster_any_size;
	return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
	return qcul_done(get_kernel_attributes(attr, func));
}

static cudaError_t set_kernel_attribute(const void *func, enum cudaFuncAttribute attr, int value,
					int device)
{
	struct CUkern_st *k;
	cudaError_t err = find_loaded_kernel(func, &k);

	if (err)
		return err;
	if (attr < cudaFuncAttributeMaxDynamicSharedMemorySize || attr >= cudaFuncAttributeMax)
		return cudaErrorInvalidValue;
	/* Programs set this before each launch. */
	if (attr == cudaFuncAttributeMaxDynamicSharedMemorySize && value >= 0 &&
	    qcul_kernel_has_dynamic(k, device, (uint32_t)value))
		return cudaSuccess;
	err = qcul_ask_func_set(device, k->id, attr, value);
	qcul_kernel_limits_forget(k, device);
	return err;
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
	return qcul_done(set_kernel_attribute(func, attr, value, qcul_self.device));
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr,
					    int value, int device)
{
	cudaError_t err = qcul_ready();

	if (!err && !kernel)
		err = cudaErrorInvalidResourceHandle;
	if (!err && (device < 0 || device >= qcul_device_count()))
		err = cudaErrorInvalidDevice;
	return qcul_done(err ? err : set_kernel_attribute(kernel, attr, value, device));
}

/* This is only a preference, like cudaDeviceSetCacheConfig. */
cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache config)
{
	struct CUkern_st *k;
	cudaError_t err = find_loaded_kernel(func, &k);

	if (!err && config > cudaFuncCachePreferEqual)
		err = cudaErrorInvalidValue;
	return qcul_done(err);
}

/* Banks have long had a single width. A program can ask for another width, without effect. */
cudaError_t cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config)
{
	struct CUkern_st *k;
	cudaError_t err = find_loaded_kernel(func, &k);

	if (!err && config > cudaSharedMemBankSizeEightByte)
		err = cudaErrorInvalidValue;
	return qcul_done(err);
}

cudaError_t cudaFuncGetName(const char **name, const void *func)
{
	struct CUkern_st *k;
	cudaError_t err = name ? find_loaded_kernel(func, &k) : cudaErrorInvalidValue;

	if (!err)
		*name = k->name;
	return qcul_done(err);
}

cudaError_t cudaFuncGetParamInfo(const void *func, size_t index, size_t *offset, size_t *size)
{
	struct CUkern_st *k;
	cudaError_t err = offset ? find_loaded_kernel(func, &k) : cudaErrorInvalidValue;

	if (!err && index >= k->param_count)
		err = cudaErrorInvalidValue;
	if (err)
		return qcul_done(err);
	*offset = k->params[index].offset;
	if (size)
		*size = k->params[index].size;
	return cudaSuccess;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Launches. CUDA 12 has an error of its own for a grid or a block that no kernel can have, where 13
 * returns cudaErrorInvalidValue.
 */
#include <stdatomic.h>
#include <stdbool.h>

#include "qcu-library/cuda12/cuda12.h"

static bool is_within_limit(enum cudaDeviceAttr attr, unsigned long long value)
{
	int device, most;

	return cudaGetDevice(&device) || cudaDeviceGetAttribute(&most, attr, device) ||
	       (value && value <= (unsigned long long)most);
}

static bool possible(dim3 grid, dim3 block)
{
	return is_within_limit(cudaDevAttrMaxGridDimX, grid.x) &&
	       is_within_limit(cudaDevAttrMaxGridDimY, grid.y) &&
	       is_within_limit(cudaDevAttrMaxGridDimZ, grid.z) &&
	       is_within_limit(cudaDevAttrMaxBlockDimX, block.x) &&
	       is_within_limit(cudaDevAttrMaxBlockDimY, block.y) &&
	       is_within_limit(cudaDevAttrMaxBlockDimZ, block.z) &&
	       is_within_limit(cudaDevAttrMaxThreadsPerBlock,
			       (unsigned long long)block.x * block.y * block.z);
}

static cudaError_t launched(cudaError_t err, dim3 grid, dim3 block)
{
	if (err == cudaErrorInvalidValue && !possible(grid, block))
		return qcul_12_error(cudaErrorInvalidConfiguration);
	return err;
}

cudaError_t cuda12_LaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
				cudaStream_t stream)
{
	return launched(cudaLaunchKernel(func, grid, block, args, shared, stream), grid, block);
}

cudaError_t cuda12_LaunchKernel_ptsz(const void *func, dim3 grid, dim3 block, void **args,
				     size_t shared, cudaStream_t stream)
{
	return launched(cudaLaunchKernel_ptsz(func, grid, block, args, shared, stream), grid,
			block);
}

cudaError_t cuda12_LaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
					   size_t shared, cudaStream_t stream)
{
	return launched(cudaLaunchCooperativeKernel(func, grid, block, args, shared, stream), grid,
			block);
}

cudaError_t cuda12_LaunchCooperativeKernel_ptsz(const void *func, dim3 grid, dim3 block,
						void **args, size_t shared, cudaStream_t stream)
{
	return launched(cudaLaunchCooperativeKernel_ptsz(func, grid, block, args, shared, stream),
			grid, block);
}

cudaError_t cuda12_LaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
	cudaError_t err = cudaLaunchKernelExC(config, func, args);

	return config ? launched(err, config->gridDim, config->blockDim) : err;
}

cudaError_t cuda12_LaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *func,
					void **args)
{
	cudaError_t err = cudaLaunchKernelExC_ptsz(config, func, args);

	return config ? launched(err, config->gridDim, config->blockDim) : err;
}

cudaError_t cuda12___LaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				  size_t shared, cudaStream_t stream)
{
	return launched(__cudaLaunchKernel(kernel, grid, block, args, shared, stream), grid, block);
}

cudaError_t cuda12___LaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				       size_t shared, cudaStream_t stream)
{
	return launched(__cudaLaunchKernel_ptsz(kernel, grid, block, args, shared, stream), grid,
			block);
}

/* Needs barriers between the GPUs, which CUDA 13 no longer has. */
cudaError_t cuda12_LaunchCooperativeKernelMultiDevice(struct cuda12_launch_params *list,
						      unsigned int count, unsigned int flags)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	(void)list;
	(void)count;
	(void)flags;
	return qcul_12_unsupported("cudaLaunchCooperativeKernelMultiDevice", &said);
}

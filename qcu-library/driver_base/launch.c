// SPDX-License-Identifier: LGPL-2.1-or-later
/* Launches of kernels and of host functions. */
#include "qcu-library/driver_base/launch.h"
#include "qcu-library/stream/stream.h"

/* A launch attribute is the same in both, number by number. */
_Static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute) &&
		       offsetof(CUlaunchAttribute, value) == offsetof(cudaLaunchAttribute, val) &&
		       (int)CU_LAUNCH_ATTRIBUTE_COOPERATIVE ==
			       (int)cudaLaunchAttributeCooperative &&
		       (int)CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ==
			       (int)cudaLaunchAttributeClusterDimension &&
		       (int)CU_LAUNCH_ATTRIBUTE_PRIORITY == (int)cudaLaunchAttributePriority &&
		       (int)CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT ==
			       (int)cudaLaunchAttributeLaunchCompletionEvent &&
		       (int)CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ==
			       (int)cudaLaunchAttributePreferredSharedMemoryCarveout,
	       "launch attributes");

static cudaError_t launch_driver_function(const cudaLaunchConfig_t *config, const void *function,
					  void **params, void **extra)
{
	struct qcul_args args;
	cudaError_t err = qcul_args_begin(&args, function, params, extra);
	unsigned int i;

	if (err)
		return err;
	for (i = 0; config->attrs && i < config->numAttrs && !err; i++)
		if (config->attrs[i].id == cudaLaunchAttributeLaunchCompletionEvent &&
		    !config->attrs[i].val.launchCompletionEvent.event)
			err = cudaErrorInvalidResourceHandle;
	if (err) {
		qcul_args_end(&args);
		return err;
	}
	err = config->numAttrs
		      ? cudaLaunchKernelExC(config, function, args.list)
		      : cudaLaunchKernel(function, config->gridDim, config->blockDim, args.list,
					 config->dynamicSmemBytes, config->stream);
	qcul_args_end(&args);
	return err;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared, CUstream stream, void **params,
			void **extra)
{
	const cudaLaunchConfig_t config = {
		.gridDim = {grid_x, grid_y, grid_z},
		.blockDim = {block_x, block_y, block_z},
		.dynamicSmemBytes = shared,
		.stream = stream,
	};

	return QCUL_RUNTIME(launch_driver_function(&config, function, params, extra));
}

static cudaLaunchConfig_t shape(const CUlaunchConfig *c)
{
	return (cudaLaunchConfig_t){
		.gridDim = {c->gridDimX, c->gridDimY, c->gridDimZ},
		.blockDim = {c->blockDimX, c->blockDimY, c->blockDimZ},
		.dynamicSmemBytes = c->sharedMemBytes,
		.stream = c->hStream,
		.attrs = (cudaLaunchAttribute *)c->attrs,
		.numAttrs = c->numAttrs,
	};
}

static CUresult launch_ex(const CUlaunchConfig *c, bool own, CUfunction function, void **params,
			  void **extra)
{
	cudaLaunchConfig_t config;

	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	config = shape(c);
	if (own && !config.stream)
		config.stream = cudaStreamPerThread;
	return QCUL_RUNTIME(launch_driver_function(&config, function, params, extra));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
			  void **extra)
{
	return launch_ex(config, false, function, params, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **params,
			       void **extra)
{
	return launch_ex(config, true, function, params, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
				   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
				   unsigned int block_z, unsigned int shared, CUstream stream,
				   void **params)
{
	return QCUL_RUNTIME(cudaLaunchCooperativeKernel(function, (dim3){grid_x, grid_y, grid_z},
							(dim3){block_x, block_y, block_z}, params,
							shared, stream));
}

CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function, const CUlaunchConfig *c)
{
	cudaLaunchConfig_t config;

	if (!c || !function)
		return CUDA_ERROR_INVALID_VALUE;
	config = shape(c);
	return QCUL_RUNTIME(cudaOccupancyMaxActiveClusters(count, function, &config));
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function, const CUlaunchConfig *c)
{
	cudaLaunchConfig_t config;

	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	config = shape(c);
	return QCUL_RUNTIME(cudaOccupancyMaxPotentialClusterSize(size, function, &config));
}

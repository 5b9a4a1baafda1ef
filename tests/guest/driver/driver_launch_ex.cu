// SPDX-License-Identifier: GPL-2.0-or-later
/* cuLaunchKernelEx with attributes, cooperative launches, and attributes that are refused. */
#include "driver.h"

#define N 256

static unsigned int got[N];

static void expect(CUdeviceptr memory, unsigned int first)
{
	unsigned int i;

	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	for (i = 0; i < N; i++)
		REQUIRE(got[i] == first + i, "%u: %u", i, got[i]);
}

int main()
{
	unsigned int count = N, value = 1;
	CUlaunchAttribute attributes[2] = {};
	CUlaunchConfig config = {};
	CUmodule module;
	CUfunction fill;
	CUdeviceptr memory;
	CUevent event;
	void *params[] = {&memory, &count, &value};

	driver_start();
	module = driver_module();
	fill = driver_function(module, "fill");
	DCHECK(cuMemAlloc(&memory, sizeof(got)));
	config.gridDimX = 2;
	config.gridDimY = config.gridDimZ = 1;
	config.blockDimX = N / 2;
	config.blockDimY = config.blockDimZ = 1;
	DCHECK(cuLaunchKernelEx(&config, fill, params, NULL));
	expect(memory, 1);
	value = 2;
	DCHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
	attributes[0].value.priority = 0;
	attributes[1].id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
	attributes[1].value.launchCompletionEvent.event = event;
	config.attrs = attributes;
	config.numAttrs = 2;
	DCHECK(cuLaunchKernelEx(&config, fill, params, NULL));
	DCHECK(cuEventSynchronize(event));
	expect(memory, 2);
	value = 3;
	attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
	attributes[0].value.cooperative = 1;
	config.numAttrs = 1;
	DCHECK(cuLaunchKernelEx(&config, fill, params, NULL));
	expect(memory, 3);
	value = 4;
	DCHECK(cuLaunchCooperativeKernel(fill, 2, 1, 1, N / 2, 1, 1, 0, NULL, params));
	expect(memory, 4);
	attributes[0].id = (CUlaunchAttributeID)10000;
	DEXPECT(cuLaunchKernelEx(&config, fill, params, NULL), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuLaunchKernelEx(NULL, fill, params, NULL), CUDA_ERROR_INVALID_VALUE);
	config.attrs = NULL;
	DEXPECT(cuLaunchKernelEx(&config, fill, params, NULL), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuEventDestroy(event));
	DCHECK(cuMemFree(memory));
	DCHECK(cuModuleUnload(module));
	return verified("launches with attributes");
}

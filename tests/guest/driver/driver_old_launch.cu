// SPDX-License-Identifier: GPL-2.0-or-later
/* Launches as before CUDA 4: a function keeps its shape and its parameters. */
#include "driver.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define N 64

int main()
{
	unsigned int got[N], i;
	CUmodule module;
	CUfunction fill, sums;
	CUdeviceptr memory;

	driver_start();
	module = driver_module();
	fill = driver_function(module, "fill");
	sums = driver_function(module, "block_sums");
	DCHECK(cuMemAlloc(&memory, sizeof(got)));
	ONLY_OURS(DEXPECT(cuLaunch(fill), CUDA_ERROR_INVALID_VALUE));
	DEXPECT(cuFuncSetBlockShape(NULL, 1, 1, 1), CUDA_ERROR_INVALID_HANDLE);
	DEXPECT(cuFuncSetBlockShape(fill, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuFuncSetBlockShape(fill, N / 2, 1, 1));
	DCHECK(cuParamSetv(fill, 0, &memory, sizeof(memory)));
	DCHECK(cuParamSeti(fill, 8, N));
	DCHECK(cuParamSeti(fill, 12, 30));
	ONLY_OURS(DEXPECT(cuParamSeti(fill, -1, 30), CUDA_ERROR_INVALID_VALUE));
	ONLY_OURS(DEXPECT(cuParamSetv(fill, 4090, &memory, 8), CUDA_ERROR_INVALID_VALUE));
	ONLY_OURS(DEXPECT(cuLaunchGrid(fill, 2, 1), CUDA_ERROR_INVALID_VALUE));
	DCHECK(cuParamSetSize(fill, 16));
	DCHECK(cuLaunchGrid(fill, 2, 1));
	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	for (i = 0; i < N; i++)
		REQUIRE(got[i] == 30 + i, "%u: %u", i, got[i]);
	DCHECK(cuFuncSetBlockShape(sums, 8, 1, 1));
	DCHECK(cuFuncSetSharedSize(sums, 8 * 4));
	DCHECK(cuParamSetv(sums, 0, &memory, sizeof(memory)));
	DCHECK(cuParamSetSize(sums, sizeof(memory)));
	DCHECK(cuLaunchGridAsync(sums, 3, 1, NULL));
	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	REQUIRE(got[0] == 28 && got[2] == 44, "%u %u", got[0], got[2]);
	DCHECK(cuMemFree(memory));
	DCHECK(cuModuleUnload(module));
	return verified("launches of functions that keep their parameters");
}

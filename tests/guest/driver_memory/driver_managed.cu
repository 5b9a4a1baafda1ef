// SPDX-License-Identifier: GPL-2.0-or-later
/* Managed memory: used by both sides, advice, prefetches, and a managed variable of a module. */
#include "driver.h"

#define N 3000

int main()
{
	CUmemLocation location = {};
	unsigned int count = N, value = 11, i, *words;
	CUdevice device = driver_start();
	CUmodule module = driver_module();
	CUdeviceptr memory, variable;
	int advised = 0;
	size_t bytes;
	void *params[] = {&memory, &count, &value};

	DCHECK(cuMemAllocManaged(&memory, N * 4, CU_MEM_ATTACH_GLOBAL));
	words = (unsigned int *)(uintptr_t)memory;
	words[0] = 1;
	location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	location.id = device;
	DCHECK(cuMemAdvise(memory, N * 4, CU_MEM_ADVISE_SET_READ_MOSTLY, location));
	DCHECK(cuMemRangeGetAttribute(&advised, sizeof(advised),
				      CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, N * 4));
	REQUIRE(advised == 1, "%d", advised);
	DCHECK(cuMemAdvise(memory, N * 4, CU_MEM_ADVISE_UNSET_READ_MOSTLY, location));
	DCHECK(cuMemPrefetchAsync(memory, N * 4, location, 0, NULL));
	DCHECK(cuLaunchKernel(driver_function(module, "fill"), (N + 127) / 128, 1, 1, 128, 1, 1, 0,
			      NULL, params, NULL));
	DCHECK(cuCtxSynchronize());
	for (i = 0; i < N; i++)
		REQUIRE(words[i] == 11 + i, "%u: %u", i, words[i]);
	DCHECK(cuModuleGetGlobal(&variable, &bytes, module, "shared_number"));
	REQUIRE(bytes == 4, "%zu", bytes);
	DCHECK(cuLaunchKernel(driver_function(module, "use_managed"), 2, 1, 1, 5, 1, 1, 0, NULL,
			      NULL, NULL));
	DCHECK(cuCtxSynchronize());
	REQUIRE(*(unsigned int *)(uintptr_t)variable == 15, "%u",
		*(unsigned int *)(uintptr_t)variable);
	DEXPECT(cuMemAllocManaged(&memory, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemAllocManaged(&memory, 100, 0x40), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemFree(memory));
	DCHECK(cuModuleUnload(module));
	return verified("managed memory and a managed variable");
}

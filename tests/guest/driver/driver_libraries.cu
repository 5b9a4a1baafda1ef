// SPDX-License-Identifier: GPL-2.0-or-later
/* Libraries and kernels, which need no context to be loaded. */
#include "driver.h"

int main()
{
	CUlibrary library, owner;
	CUkernel kernel, list[64];
	CUfunction function;
	CUmodule module;
	CUcontext context;
	unsigned int count, word = 0, n = 1, value = 42;
	CUdeviceptr memory, variable;
	CUdevice device;
	const char *name;
	size_t offset, size;
	int threads;
	void *params[] = {&memory, &n, &value};

	DCHECK(cuInit(0));
	DCHECK(cuDeviceGet(&device, 0));
	DCHECK(cuLibraryLoadData(&library, driver_kernels, NULL, NULL, 0, NULL, NULL, 0));
	DCHECK(cuLibraryGetKernel(&kernel, library, "fill"));
	DCHECK(cuLibraryGetKernelCount(&count, library));
	REQUIRE(count >= 8 && count <= 64, "%u", count);
	DCHECK(cuLibraryEnumerateKernels(list, count, library));
	DCHECK(cuKernelGetName(&name, kernel));
	REQUIRE(!strcmp(name, "fill"), "%s", name);
	DEXPECT(cuKernelGetParamInfo(kernel, 2, &offset, &size), CUDA_ERROR_INVALID_CONTEXT);
	DCHECK(cuKernelGetLibrary(&owner, kernel));
	REQUIRE(owner == library, "another library");
	DCHECK(cuKernelGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel,
				    device));
	REQUIRE(threads >= 256, "%d", threads);
	DCHECK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50, kernel,
				    device));
	DEXPECT(cuLibraryGetKernel(&kernel, library, "none"), CUDA_ERROR_NOT_FOUND);
	DEXPECT(cuLibraryGetGlobal(&variable, &size, library, "number"),
		CUDA_ERROR_INVALID_CONTEXT);
	DCHECK(cuDevicePrimaryCtxRetain(&context, device));
	DCHECK(cuCtxSetCurrent(context));
	DCHECK(cuKernelGetParamInfo(kernel, 2, &offset, &size));
	REQUIRE(offset == 12 && size == 4, "%zu %zu", offset, size);
	DCHECK(cuLibraryGetGlobal(&variable, &size, library, "number"));
	DCHECK(cuMemcpyDtoH(&word, variable, 4));
	REQUIRE(size == 4 && word == 7, "%zu %u", size, word);
	DCHECK(cuLibraryGetManaged(&variable, &size, library, "shared_number"));
	REQUIRE(*(unsigned int *)(uintptr_t)variable == 5, "managed");
	DCHECK(cuKernelGetFunction(&function, kernel));
	DCHECK(cuLibraryGetModule(&module, library));
	DCHECK(cuModuleGetFunction(&function, module, "fill"));
	DCHECK(cuMemAlloc(&memory, 4));
	DCHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	/* A CUkernel can be launched in place of a function. */
	value = 43;
	DCHECK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	DCHECK(cuMemcpyDtoH(&word, memory, 4));
	REQUIRE(word == 43, "%u", word);
	DCHECK(cuMemFree(memory));
	DCHECK(cuLibraryUnload(library));
	ONLY_OURS(DEXPECT(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE));
	ONLY_OURS(DEXPECT(cuLibraryGetKernel(&kernel, library, "fill"), CUDA_ERROR_INVALID_HANDLE));
	DEXPECT(cuLibraryLoadFromFile(&library, "/no/such/file", NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_FILE_NOT_FOUND);
	return verified("libraries and their kernels");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* What needs a context, in a thread that has none: each call says so and does nothing else. */
#include "driver.h"

static CUdeviceptr address;
static size_t size;
static void *ptr;
static CUmodule module;
static CUlibrary library;
static CUstream stream;
static CUevent event;
static CUarray array;
static CUmemoryPool pool;
static CUtexObject texture;
static CUlimit limit = CU_LIMIT_STACK_SIZE;
static CUfunc_cache cache;
static CUdevice of;
static unsigned int flags;
static int least, greatest;
static char letters[16];
static CUDA_ARRAY_DESCRIPTOR flat = {16, 16, CU_AD_FORMAT_FLOAT, 1};
static CUDA_RESOURCE_DESC resource;
static CUDA_TEXTURE_DESC sampler;
static CUmoduleLoadingMode mode;

#define CALL(expr)                                       \
	{                                                \
#expr, []() -> CUresult { return expr; } \
	}

static const struct {
	const char *text;
	CUresult (*call)();
} calls[] = {
	CALL(cuMemAlloc(&address, 4)),
	CALL(cuMemAllocPitch(&address, &size, 16, 16, 4)),
	CALL(cuMemAllocHost(&ptr, 4)),
	CALL(cuMemHostAlloc(&ptr, 4, 0)),
	CALL(cuMemHostRegister(letters, 16, 0)),
	CALL(cuMemAllocManaged(&address, 4, CU_MEM_ATTACH_GLOBAL)),
	CALL(cuMemGetInfo(&size, &size)),
	CALL(cuMemsetD8(4096, 0, 4)),
	CALL(cuMemcpyHtoD(4096, letters, 4)),
	CALL(cuModuleLoadData(&module, driver_kernels)),
	CALL(cuStreamCreate(&stream, 0)),
	CALL(cuStreamQuery(NULL)),
	CALL(cuStreamSynchronize(NULL)),
	CALL(cuEventCreate(&event, 0)),
	CALL(cuArrayCreate(&array, &flat)),
	CALL(cuTexObjectCreate(&texture, &resource, &sampler, NULL)),
	CALL(cuCtxSynchronize()),
	CALL(cuCtxGetDevice(&of)),
	CALL(cuCtxGetFlags(&flags)),
	CALL(cuCtxGetLimit(&size, limit)),
	CALL(cuCtxSetLimit(limit, 1024)),
	CALL(cuCtxGetCacheConfig(&cache)),
	CALL(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1)),
	CALL(cuCtxGetStreamPriorityRange(&least, &greatest)),
	CALL(cuCtxResetPersistingL2Cache()),
	CALL(cuMemAllocAsync(&address, 4, NULL)),
};

int main()
{
	unsigned int i, wrong = 0, n = sizeof(calls) / sizeof(*calls);
	CUdevice device;
	int count;

	DCHECK(cuInit(0));
	for (i = 0; i < n; i++) {
		CUresult got = calls[i].call();

		if (got == CUDA_ERROR_INVALID_CONTEXT)
			continue;
		wrong++;
		fprintf(stderr, "%s\n\tgave %d %s\n", calls[i].text, (int)got, result_name(got));
	}
	REQUIRE(!wrong, "%u calls", wrong);
	/* These need none. */
	DCHECK(cuDeviceGetCount(&count));
	DCHECK(cuDeviceGet(&device, 0));
	DCHECK(cuDeviceGetDefaultMemPool(&pool, device));
	DCHECK(cuModuleGetLoadingMode(&mode));
	DCHECK(cuLibraryLoadData(&library, driver_kernels, NULL, NULL, 0, NULL, NULL, 0));
	DCHECK(cuLibraryUnload(library));
	return verified("%u calls without a context", n);
}

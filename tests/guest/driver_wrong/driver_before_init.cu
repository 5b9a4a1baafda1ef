// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls of every part of the driver API before cuInit, and in a child after fork: not initialised.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

static CUdeviceptr address;
static size_t size;
static void *ptr;
static CUcontext context;
static CUmodule module;
static CUlibrary library;
static CUstream stream;
static CUevent event;
static CUgraph graph;
static CUarray array;
static CUmemoryPool pool;
static CUmemGenericAllocationHandle handle;
static CUmemAllocationProp prop;
static CUDA_ARRAY_DESCRIPTOR flat = {16, 16, CU_AD_FORMAT_FLOAT, 1};
static CUmemPoolProps pool_props;
static CUlinkState link_state;
static CUuuid uuid;
static unsigned int flags;
static int number;
static char letters[16];

#define CALL(expr)                                       \
	{                                                \
#expr, []() -> CUresult { return expr; } \
	}

static const struct {
	const char *text;
	CUresult (*call)();
} calls[] = {
	CALL(cuDeviceGet(&number, 0)),
	CALL(cuDeviceGetCount(&number)),
	CALL(cuDeviceGetName(letters, 16, 0)),
	CALL(cuDeviceGetUuid(&uuid, 0)),
	CALL(cuDeviceTotalMem(&size, 0)),
	CALL(cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)),
	CALL(cuDeviceGetDefaultMemPool(&pool, 0)),
	CALL(cuDeviceCanAccessPeer(&number, 0, 0)),
	CALL(cuDevicePrimaryCtxRetain(&context, 0)),
	CALL(cuDevicePrimaryCtxRelease(0)),
	CALL(cuDevicePrimaryCtxReset(0)),
	CALL(cuDevicePrimaryCtxGetState(0, &flags, &number)),
	CALL(cuDevicePrimaryCtxSetFlags(0, 0)),
	CALL(cuCtxCreate(&context, NULL, 0, 0)),
	CALL(cuCtxGetCurrent(&context)),
	CALL(cuCtxSetCurrent(NULL)),
	CALL(cuCtxPopCurrent(&context)),
	CALL(cuCtxSynchronize()),
	CALL(cuCtxGetDevice(&number)),
	CALL(cuModuleLoadData(&module, driver_kernels)),
	CALL(cuLibraryLoadData(&library, driver_kernels, NULL, NULL, 0, NULL, NULL, 0)),
	CALL(cuLinkCreate(0, NULL, NULL, &link_state)),
	CALL(cuMemAlloc(&address, 4)),
	CALL(cuMemFree(4096)),
	CALL(cuMemAllocHost(&ptr, 4)),
	CALL(cuMemAllocManaged(&address, 4, CU_MEM_ATTACH_GLOBAL)),
	CALL(cuMemGetInfo(&size, &size)),
	CALL(cuMemcpyHtoD(4096, letters, 4)),
	CALL(cuMemcpy(4096, 4096, 4)),
	CALL(cuMemsetD8(4096, 0, 4)),
	CALL(cuMemCreate(&handle, 1 << 21, &prop, 0)),
	CALL(cuMemAddressReserve(&address, 1 << 21, 0, 0, 0)),
	CALL(cuMemPoolCreate(&pool, &pool_props)),
	CALL(cuPointerGetAttribute(&ptr, CU_POINTER_ATTRIBUTE_CONTEXT, 4096)),
	CALL(cuStreamCreate(&stream, 0)),
	CALL(cuStreamSynchronize(NULL)),
	CALL(cuEventCreate(&event, 0)),
	CALL(cuArrayCreate(&array, &flat)),
	CALL(cuGraphCreate(&graph, 0)),
	CALL(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL)),
};

static unsigned int n = sizeof(calls) / sizeof(*calls);

static void none_works(const char *when)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < n; i++) {
		CUresult got = calls[i].call();

		if (got == CUDA_ERROR_NOT_INITIALIZED)
			continue;
		wrong++;
		fprintf(stderr, "%s: %s\n\tgave %d %s\n", when, calls[i].text, (int)got,
			result_name(got));
	}
	REQUIRE(!wrong, "%u calls %s", wrong, when);
}

int main()
{
	int version, status;
	const char *name;
	pid_t pid;

	/* These need no cuInit. */
	DCHECK(cuDriverGetVersion(&version));
	DCHECK(cuGetErrorName(CUDA_ERROR_UNKNOWN, &name));
	DCHECK(cuGetProcAddress("cuInit", &ptr, 13000, 0, NULL));
	none_works("before cuInit");
	driver_start();
	DCHECK(cuMemAlloc(&address, 4));
	pid = fork();
	REQUIRE(pid >= 0, "fork");
	if (!pid) {
		DEXPECT(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
		none_works("after fork");
		DCHECK(cuDriverGetVersion(&version));
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "%x", status);
	DCHECK(cuMemFree(address));
	return verified("%u calls before cuInit and after fork", n);
}

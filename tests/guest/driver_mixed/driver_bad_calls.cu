// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls functions of the driver API with arguments that they must refuse, or must accept although
 * they look odd: null pointers, wrong flags, stale and foreign handles, huge sizes. The table has
 * the code that NVIDIA's driver returns on a real GPU (`driver_bad_calls --record` prints it
 * there). Where ours returns another one, or NVIDIA's crashes, it says so; `--differences` prints
 * these.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

static char *const junk = (char *)0x123456789abc;
static CUdevice device;
static CUcontext context, made;
static CUmodule module, stale_module;
static CUfunction function;
static CUlibrary library;
static CUkernel kernel;
static CUdeviceptr memory, address;
static CUstream stream, stale_stream;
static CUevent event, stale_event;
static CUarray array;
static CUgraph graph, stale_graph;
static CUgraphNode node;
static CUgraphExec exec;
static CUmemoryPool pool;
static CUtexObject texture;
static CUsurfObject surface;
static CUuserObject object;
static CUuuid uuid;
static CUlaunchConfig config;
static CUDA_ARRAY_DESCRIPTOR flat;
static CUDA_ARRAY3D_DESCRIPTOR box;
static CUDA_RESOURCE_DESC resource;
static CUDA_TEXTURE_DESC sampler;
static CUDA_MEMCPY2D copy_2d;
static CUDA_MEMCPY3D copy_3d;
static CUDA_MEMCPY3D_PEER copy_peer;
static CUDA_KERNEL_NODE_PARAMS kernel_node;
static CUDA_MEMSET_NODE_PARAMS memset_node;
static CUDA_HOST_NODE_PARAMS host_node;
static CUipcMemHandle ipc_memory;
static CUipcEventHandle ipc_event;
static CUmemPoolProps pool_props;
static CUfunction_attribute attribute = CU_FUNC_ATTRIBUTE_NUM_REGS;
static CUgraphNodeType type;
static const char *text;
static const void *table;
static char letters[64];
static void *ptr;
static size_t size, offset;
static unsigned int u32;
static int i32;
static float f32;

typedef CUresult call_fn(void);

#define CRASH (-1)

struct bad_call {
	const char *text;
	call_fn *call;
	int native, ours;
	const char *why;
};

#define CALL(expr, code)                                                   \
	{                                                                  \
#expr, []() -> CUresult { return expr; }, code, code, NULL \
	}
#define OURS(expr, code, other, why)                                       \
	{                                                                  \
#expr, []() -> CUresult { return expr; }, code, other, why \
	}
/* NVIDIA's driver does not survive this call. */
#define DEADLY(expr, code) \
	{#expr, []() -> CUresult { return expr; }, CRASH, code, "a bad argument is refused"}

static const struct bad_call calls[] = {
	/* before anything else */
	CALL(cuInit(1), 1),
	CALL(cuDriverGetVersion(NULL), 1),
	CALL(cuGetErrorName((CUresult)-1, &text), 1),
	CALL(cuGetErrorString((CUresult)123456, &text), 1),
	DEADLY(cuGetErrorString(CUDA_SUCCESS, NULL), 1),
	DEADLY(cuGetProcAddress(NULL, &ptr, 13000, 0, NULL), 1),
	DEADLY(cuGetProcAddress("cuInit", NULL, 13000, 0, NULL), 1),
	CALL(cuGetProcAddress("cuNothing", &ptr, 13000, 0, NULL), 0),
	CALL(cuGetExportTable(NULL, &uuid), 1),
	CALL(cuGetExportTable(&table, NULL), 1),
	/* devices */
	CALL(cuDeviceGet(NULL, 0), 1),
	CALL(cuDeviceGet(&i32, -1), 101),
	CALL(cuDeviceGet(&i32, 4711), 101),
	CALL(cuDeviceGetCount(NULL), 1),
	CALL(cuDeviceGetName(NULL, 10, device), 1),
	DEADLY(cuDeviceGetName(letters, 0, device), 1),
	CALL(cuDeviceGetName(letters, 10, 4711), 101),
	CALL(cuDeviceGetUuid(NULL, device), 1),
	CALL(cuDeviceGetUuid(&uuid, -1), 101),
	CALL(cuDeviceTotalMem(NULL, device), 1),
	CALL(cuDeviceTotalMem(&size, 4711), 101),
	CALL(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device), 1),
	CALL(cuDeviceGetAttribute(&i32, (CUdevice_attribute)100000, device), 1),
	CALL(cuDeviceGetAttribute(&i32, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 4711), 101),
	CALL(cuDeviceGetPCIBusId(NULL, 20, device), 1),
	CALL(cuDeviceGetPCIBusId(letters, 20, 4711), 101),
	CALL(cuDeviceGetByPCIBusId(NULL, "0000:00:00.0"), 1),
	CALL(cuDeviceGetByPCIBusId(&i32, NULL), 1),
	CALL(cuDeviceCanAccessPeer(NULL, device, device), 1),
	CALL(cuDeviceCanAccessPeer(&i32, device, 4711), 101),
	CALL(cuDeviceGetDefaultMemPool(NULL, device), 1),
	CALL(cuDeviceGetDefaultMemPool(&pool, 4711), 101),
	CALL(cuDeviceGetMemPool(&pool, 4711), 1),
	/* contexts */
	CALL(cuDevicePrimaryCtxRetain(NULL, device), 1),
	CALL(cuDevicePrimaryCtxRetain(&context, 4711), 101),
	CALL(cuDevicePrimaryCtxRelease(4711), 101),
	CALL(cuDevicePrimaryCtxGetState(device, NULL, &i32), 1),
	CALL(cuDevicePrimaryCtxGetState(device, &u32, NULL), 1),
	CALL(cuDevicePrimaryCtxGetState(4711, &u32, &i32), 101),
	CALL(cuDevicePrimaryCtxSetFlags(device, 0x10000), 1),
	CALL(cuDevicePrimaryCtxSetFlags(4711, 0), 101),
	CALL(cuDevicePrimaryCtxReset(4711), 101),
	CALL(cuCtxCreate(NULL, NULL, 0, device), 1),
	CALL(cuCtxCreate(&made, NULL, 0x10000, device), 1),
	CALL(cuCtxCreate(&made, NULL, 0, 4711), 101),
	CALL(cuCtxDestroy(NULL), 1),
	CALL(cuCtxPushCurrent(NULL), 1),
	CALL(cuCtxGetCurrent(NULL), 1),
	CALL(cuCtxGetDevice(NULL), 1),
	CALL(cuCtxGetFlags(NULL), 1),
	CALL(cuCtxGetApiVersion(context, NULL), 1),
	CALL(cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE), 1),
	CALL(cuCtxGetLimit(&size, (CUlimit)4711), 1),
	CALL(cuCtxSetLimit((CUlimit)4711, 1), 1),
	CALL(cuCtxSetCacheConfig((CUfunc_cache)4711), 1),
	CALL(cuCtxGetCacheConfig(NULL), 1),
	CALL(cuCtxGetStreamPriorityRange(NULL, NULL), 0),
	/* modules and libraries */
	CALL(cuModuleLoad(NULL, "x"), 1),
	CALL(cuModuleLoad(&module, NULL), 1),
	CALL(cuModuleLoad(&module, "/no/such/file"), 301),
	CALL(cuModuleLoadData(NULL, driver_kernels), 1),
	CALL(cuModuleLoadData(&module, NULL), 1),
	CALL(cuModuleUnload(NULL), 400),
	CALL(cuModuleUnload(stale_module), 400),
	CALL(cuModuleGetFunction(NULL, module, "fill"), 1),
	CALL(cuModuleGetFunction(&function, module, NULL), 1),
	CALL(cuModuleGetFunction(&function, NULL, "fill"), 400),
	CALL(cuModuleGetFunction(&function, stale_module, "fill"), 400),
	CALL(cuModuleGetFunction(&function, module, "none"), 500),
	CALL(cuModuleGetFunction(&function, module, ""), 1),
	CALL(cuModuleGetFunctionCount(NULL, module), 1),
	CALL(cuModuleEnumerateFunctions(NULL, 1, module), 1),
	CALL(cuModuleGetGlobal(&address, &size, module, NULL), 1),
	CALL(cuModuleGetGlobal(&address, &size, module, "none"), 500),
	CALL(cuModuleGetGlobal(&address, &size, stale_module, "number"), 400),
	DEADLY(cuModuleGetLoadingMode(NULL), 1),
	CALL(cuLibraryLoadData(NULL, driver_kernels, NULL, NULL, 0, NULL, NULL, 0), 1),
	CALL(cuLibraryLoadData(&library, NULL, NULL, NULL, 0, NULL, NULL, 0), 1),
	CALL(cuLibraryLoadData(&library, driver_kernels, NULL, NULL, 1, NULL, NULL, 0), 1),
	CALL(cuLibraryUnload(NULL), 400),
	CALL(cuLibraryGetKernel(&kernel, NULL, "fill"), 400),
	CALL(cuLibraryGetKernel(NULL, library, "fill"), 1),
	CALL(cuLibraryGetKernelCount(NULL, library), 1),
	CALL(cuKernelGetFunction(NULL, kernel), 1),
	CALL(cuKernelGetFunction(&function, NULL), 400),
	CALL(cuKernelGetName(NULL, kernel), 1),
	/* functions and launches */
	CALL(cuFuncGetAttribute(NULL, attribute, function), 1),
	CALL(cuFuncGetAttribute(&i32, attribute, NULL), 400),
	CALL(cuFuncGetAttribute(&i32, (CUfunction_attribute)4711, function), 1),
	CALL(cuFuncSetAttribute(function, attribute, 1), 1),
	CALL(cuFuncSetCacheConfig(function, (CUfunc_cache)4711), 1),
	CALL(cuFuncGetName(NULL, function), 1),
	CALL(cuFuncGetModule(NULL, function), 1),
	CALL(cuFuncGetParamInfo(function, 4711, &offset, &size), 1),
	CALL(cuFuncGetParamInfo(function, 0, NULL, &size), 1),
	CALL(cuFuncIsLoaded(NULL, function), 1),
	CALL(cuFuncLoad(NULL), 400),
	CALL(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 400),
	CALL(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 1),
	CALL(cuLaunchKernel(function, 1, 1, 1, 1, 1, 0, 0, NULL, NULL, NULL), 1),
	CALL(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 1),
	CALL(cuLaunchKernel(function, 1, 1, 1, 4096, 1, 1, 0, NULL, NULL, NULL), 1),
	DEADLY(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stale_stream, NULL, NULL), 400),
	CALL(cuLaunchKernelEx(NULL, function, NULL, NULL), 1),
	CALL(cuLaunchKernelEx(&config, function, NULL, NULL), 1),
	CALL(cuLaunchHostFunc(NULL, NULL, NULL), 1),
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, function, 32, 0), 1),
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&i32, function, 0, 0), 1),
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&i32, NULL, 32, 0), 400),
	CALL(cuOccupancyMaxPotentialBlockSize(NULL, &i32, function, NULL, 0, 0), 1),
	/* memory */
	CALL(cuMemAlloc(NULL, 4), 1),
	CALL(cuMemAlloc(&address, 0), 1),
	CALL(cuMemAlloc(&address, (size_t)1 << 60), 2),
	CALL(cuMemAllocPitch(&address, NULL, 4, 4, 4), 1),
	CALL(cuMemAllocPitch(&address, &size, 4, 4, 5), 1),
	CALL(cuMemAllocPitch(&address, &size, 0, 4, 4), 1),
	CALL(cuMemFree(memory + 4), 1),
	CALL(cuMemFree((CUdeviceptr)(uintptr_t)junk), 1),
	CALL(cuMemGetAddressRange(&address, &size, (CUdeviceptr)(uintptr_t)junk), 500),
	CALL(cuMemGetAddressRange(NULL, NULL, memory), 0),
	CALL(cuMemAllocHost(NULL, 4), 1),
	CALL(cuMemHostAlloc(&ptr, 4, 0x1000), 1),
	CALL(cuMemFreeHost(letters), 1),
	CALL(cuMemHostGetDevicePointer(NULL, letters, 0), 1),
	CALL(cuMemHostGetDevicePointer(&address, letters, 0), 1),
	CALL(cuMemHostGetFlags(NULL, letters), 1),
	CALL(cuMemHostRegister(NULL, 4, 0), 1),
	CALL(cuMemHostRegister(letters, 0, 0), 1),
	CALL(cuMemHostUnregister(letters), 713),
	CALL(cuMemAllocManaged(NULL, 4, CU_MEM_ATTACH_GLOBAL), 1),
	CALL(cuMemAllocManaged(&address, 4, 0), 1),
	CALL(cuMemAllocManaged(&address, 0, CU_MEM_ATTACH_GLOBAL), 1),
	CALL(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_CONTEXT, memory), 1),
	CALL(cuPointerGetAttribute(&ptr, (CUpointer_attribute)4711, memory), 1),
	CALL(cuPointerGetAttributes(1, NULL, NULL, memory), 1),
	CALL(cuIpcGetMemHandle(NULL, memory), 1),
	CALL(cuIpcOpenMemHandle(&address, ipc_memory, 0), 1),
	CALL(cuIpcOpenMemHandle(NULL, ipc_memory, 1), 1),
	CALL(cuIpcCloseMemHandle(memory), 1),
	CALL(cuIpcGetEventHandle(&ipc_event, event), 400),
	CALL(cuIpcOpenEventHandle(NULL, ipc_event), 1),
	/* copies and fills */
	CALL(cuMemcpyHtoD(0, letters, 4), 1),
	CALL(cuMemcpyHtoD(memory, NULL, 4), 1),
	CALL(cuMemcpyDtoH(NULL, memory, 4), 1),
	CALL(cuMemcpyDtoH(letters, 0, 4), 1),
	CALL(cuMemcpyDtoD(memory, 0, 4), 1),
	CALL(cuMemcpyHtoD(memory, letters, 0), 0),
	DEADLY(cuMemcpyHtoDAsync(memory, letters, 4, stale_stream), 400),
	CALL(cuMemcpyHtoD(memory, letters, (size_t)1 << 40), 1),
	CALL(cuMemcpy2D(NULL), 1),
	CALL(cuMemcpy2D(&copy_2d), 0),
	CALL(cuMemcpy3D(NULL), 1),
	CALL(cuMemcpy3D(&copy_3d), 0),
	DEADLY(cuMemcpy3DPeer(NULL), 1),
	CALL(cuMemcpy3DPeer(&copy_peer), 0),
	CALL(cuMemcpyHtoA(NULL, 0, letters, 4), 1),
	CALL(cuMemsetD8(0, 0, 4), 1),
	CALL(cuMemsetD32(memory + 1, 0, 1), 1),
	CALL(cuMemsetD16(memory + 1, 0, 1), 1),
	DEADLY(cuMemsetD8Async(memory, 0, 4, stale_stream), 400),
	CALL(cuMemsetD2D8(memory, 2, 0, 4, 4), 1),
	/* streams and events */
	CALL(cuStreamCreate(NULL, 0), 1),
	CALL(cuStreamCreate(&stream, 0x1000), 1),
	DEADLY(cuStreamDestroy(stale_stream), 400),
	DEADLY(cuStreamQuery(stale_stream), 400),
	CALL(cuStreamGetFlags(NULL, NULL), 1),
	CALL(cuStreamGetPriority(NULL, NULL), 1),
	DEADLY(cuStreamGetCtx(stale_stream, &made), 400),
	CALL(cuStreamGetCtx(NULL, NULL), 1),
	CALL(cuStreamGetId(NULL, NULL), 1),
	CALL(cuStreamWaitEvent(NULL, NULL, 0), 400),
	CALL(cuStreamWaitEvent(NULL, event, 0x100), 1),
	CALL(cuStreamAddCallback(NULL, NULL, NULL, 0), 1),
	CALL(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), 900),
	CALL(cuStreamIsCapturing(NULL, NULL), 1),
	DEADLY(cuThreadExchangeStreamCaptureMode(NULL), 1),
	CALL(cuEventCreate(NULL, 0), 1),
	CALL(cuEventCreate(&event, 0x1000), 1),
	CALL(cuEventDestroy(NULL), 400),
	DEADLY(cuEventDestroy(stale_event), 400),
	CALL(cuEventRecord(NULL, NULL), 400),
	DEADLY(cuEventRecord(event, stale_stream), 400),
	CALL(cuEventQuery(NULL), 400),
	DEADLY(cuEventSynchronize(stale_event), 400),
	CALL(cuEventElapsedTime(NULL, event, event), 400),
	CALL(cuEventElapsedTime(&f32, NULL, event), 400),
	/* arrays, textures, surfaces */
	CALL(cuArrayCreate(NULL, &flat), 1),
	CALL(cuArrayCreate(&array, NULL), 1),
	CALL(cuArrayCreate(&array, &flat), 1),
	CALL(cuArray3DCreate(&array, &box), 1),
	CALL(cuArrayDestroy(NULL), 400),
	CALL(cuArrayGetDescriptor(NULL, array), 400),
	CALL(cuMipmappedArrayCreate(NULL, &box, 1), 1),
	CALL(cuMipmappedArrayDestroy(NULL), 400),
	CALL(cuTexObjectCreate(NULL, &resource, &sampler, NULL), 1),
	CALL(cuTexObjectCreate(&texture, NULL, &sampler, NULL), 1),
	CALL(cuTexObjectCreate(&texture, &resource, NULL, NULL), 1),
	CALL(cuSurfObjectCreate(NULL, &resource), 1),
	CALL(cuSurfObjectCreate(&surface, NULL), 1),
	/* pools */
	CALL(cuMemPoolCreate(NULL, &pool_props), 1),
	CALL(cuMemPoolCreate(&pool, NULL), 1),
	CALL(cuMemPoolDestroy(NULL), 1),
	CALL(cuMemAllocAsync(NULL, 4, NULL), 1),
	CALL(cuMemFreeAsync((CUdeviceptr)(uintptr_t)junk, NULL), 1),
	DEADLY(cuMemAllocAsync(&address, 4, stale_stream), 400),
	/* graphs */
	CALL(cuGraphCreate(NULL, 0), 1),
	CALL(cuGraphCreate(&graph, 1), 1),
	CALL(cuGraphDestroy(NULL), 1),
	CALL(cuGraphDestroy(stale_graph), 1),
	CALL(cuGraphAddKernelNode(&node, graph, NULL, 0, NULL), 1),
	CALL(cuGraphAddKernelNode(&node, graph, NULL, 0, &kernel_node), 400),
	CALL(cuGraphAddMemsetNode(&node, graph, NULL, 0, NULL, context), 1),
	CALL(cuGraphAddMemsetNode(&node, graph, NULL, 0, &memset_node, context), 1),
	CALL(cuGraphAddHostNode(&node, graph, NULL, 0, &host_node), 1),
	CALL(cuGraphAddMemcpyNode(&node, graph, NULL, 0, NULL, context), 1),
	CALL(cuGraphAddEmptyNode(NULL, graph, NULL, 0), 1),
	CALL(cuGraphAddEmptyNode(&node, NULL, NULL, 0), 1),
	CALL(cuGraphAddEmptyNode(&node, graph, NULL, 1), 1),
	CALL(cuGraphNodeGetType(NULL, &type), 1),
	CALL(cuGraphDestroyNode(NULL), 1),
	CALL(cuGraphInstantiate(NULL, graph, 0), 1),
	CALL(cuGraphInstantiate(&exec, NULL, 0), 1),
	CALL(cuGraphLaunch(NULL, NULL), 1),
	CALL(cuGraphExecDestroy(NULL), 1),
	CALL(cuGraphClone(NULL, graph), 1),
	CALL(cuGraphGetNodes(graph, NULL, NULL), 1),
	CALL(cuUserObjectCreate(&object, NULL, NULL, 1, 1), 1),
	CALL(cuUserObjectRelease(NULL, 1), 1),
	/* peers */
	CALL(cuCtxEnablePeerAccess(NULL, 0), 201),
	CALL(cuCtxEnablePeerAccess(context, 1), 1),
	CALL(cuCtxDisablePeerAccess(NULL), 201),
	CALL(cuMemcpyPeer(memory, NULL, memory, context, 4), 0),
};

static void set_up(void)
{
	device = driver_start();
	DCHECK(cuCtxGetCurrent(&context));
	DCHECK(cuModuleLoadData(&stale_module, driver_kernels));
	module = driver_module();
	function = driver_function(module, "fill");
	DCHECK(cuLibraryLoadData(&library, driver_kernels, NULL, NULL, 0, NULL, NULL, 0));
	DCHECK(cuLibraryGetKernel(&kernel, library, "fill"));
	DCHECK(cuMemAlloc(&memory, 4096));
	DCHECK(cuStreamCreate(&stale_stream, 0));
	DCHECK(cuStreamCreate(&stream, 0));
	DCHECK(cuStreamDestroy(stale_stream));
	DCHECK(cuEventCreate(&event, 0));
	DCHECK(cuEventCreate(&stale_event, 0));
	DCHECK(cuEventDestroy(stale_event));
	DCHECK(cuGraphCreate(&graph, 0));
	/* Last, because a module that is loaded later may get the same handle. */
	DCHECK(cuModuleUnload(stale_module));
	config.gridDimX = 1;
}

/*
 * Prints what each call returns, and behind it what the table has. Some calls crash NVIDIA's
 * driver: a child makes the calls, and the next child goes on behind the one that ended it.
 */
static int record(void)
{
	const unsigned int count = sizeof(calls) / sizeof(*calls);
	volatile unsigned int *next;

	next = (volatile unsigned int *)mmap(NULL, sizeof(*next), PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(next != MAP_FAILED, "mmap");
	while (*next < count) {
		int status;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		REQUIRE(pid >= 0, "fork");
		if (!pid) {
			set_up();
			while (*next < count) {
				const struct bad_call *c = &calls[(*next)++];

				printf("%s\t%d\t", c->text, c->native);
				fflush(stdout);
				printf("%d\n", (int)c->call());
			}
			fflush(stdout);
			_exit(0);
		}
		REQUIRE(waitpid(pid, &status, 0) == pid, "waitpid");
		if (WIFSIGNALED(status))
			printf("%d\n", CRASH);
		else
			REQUIRE(!status, "status %d", status);
	}
	return 0;
}

static const char *native_name(int code)
{
	return code == CRASH ? "crashes" : result_name((CUresult)code);
}

/* Prints the table of docs/programs/driver-errors.md. */
static int differences(void)
{
	puts("<!-- SPDX-License-Identifier: GPL-2.0-or-later -->\n"
	     "<!-- Printed by build/tests/guest/driver_bad_calls --differences; do not edit. -->\n"
	     "# Where a code of the driver API differs from NVIDIA's\n\n"
	     "`tests/guest/driver_mixed/driver_bad_calls.cu` makes every call of its table in the "
	     "VM, and\n"
	     "natively those that NVIDIA's driver survives. These differ; all the others are the "
	     "same.\n\n"
	     "| call | native | here | why |\n|---|---|---|---|");
	for (const struct bad_call &c : calls)
		if (c.native != c.ours)
			printf("| `%s` | %s | %s | %s |\n", c.text, native_name(c.native),
			       native_name(c.ours), c.why);
	return 0;
}

int main(int argc, char **argv)
{
	bool ours = is_ours("cuInit");
	int wrong = 0, count = 0;

	if (argc > 1 && !strcmp(argv[1], "--record"))
		return record();
	if (argc > 1 && !strcmp(argv[1], "--differences"))
		return differences();
	set_up();
	for (const struct bad_call &c : calls) {
		int want = ours ? c.ours : c.native, got;

		count++;
		if (want == CRASH)
			continue;
		got = c.call();
		if (got != want) {
			wrong++;
			fprintf(stderr, "%s\n\tgave %d, expected %d\n", c.text, got, want);
		}
	}
	if (wrong)
		return 1;
	return verified("%d bad calls of the driver API gave the right codes", count);
}

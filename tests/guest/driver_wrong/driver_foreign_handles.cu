// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Handles of one kind in place of another, and pointers that are no handles. NVIDIA's driver does
 * not survive these. With it, the test only checks that good calls work.
 */
#include "driver.h"

/* Pointers; the last ones can be read. Graphs and their parts are pointers to what is looked at. */
#define READABLE 4
static void *wrong[10];
static CUdeviceptr address;
static size_t size;

/* Each call with each wrong handle: refused, with one of the codes for that. */
#define REFUSED(call) REFUSED_FROM(0, call)
#define REFUSED_FROM(first, call)                                                \
	do {                                                                     \
		for (unsigned int i_ = first; i_ < 10; i_++) {                   \
			void *h = wrong[i_];                                     \
			CUresult got_ = (call);                                  \
			REQUIRE(got_ == CUDA_ERROR_INVALID_HANDLE ||             \
					got_ == CUDA_ERROR_INVALID_VALUE ||      \
					got_ == CUDA_ERROR_INVALID_CONTEXT ||    \
					got_ == CUDA_ERROR_CONTEXT_IS_DESTROYED, \
				"%s of %p: %s", #call, h, result_name(got_));    \
		}                                                                \
	} while (0)

static void contexts_and_code(void)
{
	CUfunction function;
	CUmodule module;
	CUkernel kernel;
	CUdevice device;
	int number;

	for (unsigned int i = 0; i < 10; i++) {
		DEXPECT(cuCtxSetCurrent((CUcontext)wrong[i]), CUDA_ERROR_INVALID_CONTEXT);
		DEXPECT(cuCtxPushCurrent((CUcontext)wrong[i]), CUDA_ERROR_INVALID_CONTEXT);
		DEXPECT(cuCtxDestroy((CUcontext)wrong[i]), CUDA_ERROR_INVALID_CONTEXT);
		DEXPECT(cuCtxGetDevice_v2(&device, (CUcontext)wrong[i]),
			CUDA_ERROR_INVALID_CONTEXT);
	}
	REFUSED(cuModuleUnload((CUmodule)h));
	REFUSED(cuModuleGetFunction(&function, (CUmodule)h, "fill"));
	REFUSED(cuModuleGetGlobal(&address, &size, (CUmodule)h, "number"));
	REFUSED(cuLibraryUnload((CUlibrary)h));
	REFUSED(cuLibraryGetKernel(&kernel, (CUlibrary)h, "fill"));
	REFUSED(cuLibraryGetModule(&module, (CUlibrary)h));
	REFUSED(cuKernelGetFunction(&function, (CUkernel)h));
	REFUSED(cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)h));
	REFUSED(cuLaunchKernel((CUfunction)h, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	REFUSED(cuLinkDestroy((CUlinkState)h));
}

static void work(CUfunction nothing, CUdeviceptr memory, CUevent event)
{
	unsigned int flags;
	CUgraph graph;

	REFUSED(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, (CUstream)h, NULL, NULL));
	REFUSED(cuStreamSynchronize((CUstream)h));
	REFUSED(cuStreamQuery((CUstream)h));
	REFUSED(cuStreamDestroy((CUstream)h));
	REFUSED(cuStreamGetFlags((CUstream)h, &flags));
	REFUSED(cuStreamWaitEvent((CUstream)h, event, 0));
	REFUSED(cuStreamBeginCapture((CUstream)h, CU_STREAM_CAPTURE_MODE_RELAXED));
	REFUSED(cuStreamEndCapture((CUstream)h, &graph));
	REFUSED(cuEventRecord(event, (CUstream)h));
	REFUSED(cuEventRecord((CUevent)h, NULL));
	REFUSED(cuEventQuery((CUevent)h));
	REFUSED(cuEventSynchronize((CUevent)h));
	REFUSED(cuEventDestroy((CUevent)h));
	REFUSED(cuMemsetD8Async(memory, 0, 4, (CUstream)h));
	REFUSED(cuMemAllocAsync(&address, 4, (CUstream)h));
	REFUSED(cuStreamWriteValue32((CUstream)h, memory, 1, 0));
}

static void objects(CUdeviceptr memory)
{
	CUgraphExec exec;
	CUgraph graph;
	CUDA_ARRAY3D_DESCRIPTOR box;
	cuuint64_t number;
	char text[4];

	REFUSED(cuArrayDestroy((CUarray)h));
	REFUSED(cuArray3DGetDescriptor(&box, (CUarray)h));
	REFUSED(cuMemcpyAtoH(text, (CUarray)h, 0, 4));
	REFUSED(cuMipmappedArrayDestroy((CUmipmappedArray)h));
	REFUSED(cuTexObjectDestroy((CUtexObject)(uintptr_t)h));
	REFUSED(cuSurfObjectDestroy((CUsurfObject)(uintptr_t)h));
	REFUSED(cuMemPoolDestroy((CUmemoryPool)h));
	REFUSED(cuMemPoolGetAttribute((CUmemoryPool)h, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &number));
	REFUSED_FROM(READABLE, cuGraphDestroy((CUgraph)h));
	REFUSED_FROM(READABLE, cuGraphInstantiate(&exec, (CUgraph)h, 0));
	REFUSED_FROM(READABLE, cuGraphClone(&graph, (CUgraph)h));
	REFUSED_FROM(READABLE, cuGraphDestroyNode((CUgraphNode)h));
	REFUSED_FROM(READABLE, cuGraphLaunch((CUgraphExec)h, NULL));
	REFUSED_FROM(READABLE, cuGraphExecDestroy((CUgraphExec)h));
	REFUSED_FROM(READABLE, cuUserObjectRelease((CUuserObject)h, 1));
	REFUSED(cuMemRelease((CUmemGenericAllocationHandle)(uintptr_t)h));
	REFUSED(cuMemPoolTrimTo((CUmemoryPool)h, 0));
	(void)memory;
}

int main()
{
	static char room[4096];
	CUfunction nothing;
	CUmodule module;
	CUdeviceptr memory;
	unsigned int n = 0;

	driver_start();
	module = driver_module();
	nothing = driver_function(module, "nothing");
	DCHECK(cuMemAlloc(&memory, 4096));
	if (is_ours("cuInit")) {
		CUevent event;

		wrong[n++] = (void *)(uintptr_t)memory;
		wrong[n++] = (void *)8;
		wrong[n++] = (void *)0x123456789abc;
		wrong[n++] = (void *)0x7163750000000fffull;
		wrong[n++] = room;
		wrong[n++] = (void *)(uintptr_t)main;
		wrong[n++] = (void *)stderr;
		wrong[n++] = room + 64;
		wrong[n++] = room + 1000;
		wrong[n++] = room + 2000;
		DCHECK(cuEventCreate(&event, 0));
		contexts_and_code();
		work(nothing, memory, event);
		objects(memory);
		DCHECK(cuEventDestroy(event));
	}
	DCHECK(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	DCHECK(cuCtxSynchronize());
	DCHECK(cuMemFree(memory));
	DCHECK(cuModuleUnload(module));
	return verified("pointers that are no handles");
}

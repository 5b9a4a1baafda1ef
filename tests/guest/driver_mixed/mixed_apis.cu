// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Both APIs in one program: memory, streams, events, graphs, arrays and kernels of one are used with
 * the other, and the current context follows the current device.
 */
#include "driver.h"

#define N 500

__global__ void twice(unsigned int *words, unsigned int count)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		words[i] *= 2;
}

static unsigned int words[N];

static void expect(unsigned int factor, unsigned int first)
{
	unsigned int i;

	for (i = 0; i < N; i++)
		REQUIRE(words[i] == factor * (first + i), "%u: %u", i, words[i]);
}

/* The runtime comes first: its context is the driver's. */
static void contexts(void)
{
	CUcontext primary, current, made;
	unsigned int flags;
	int active, device = -1;

	CHECK(cudaSetDevice(0));
	DCHECK(cuCtxGetCurrent(&current));
	DCHECK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	REQUIRE(current && active, "the runtime has no context");
	DCHECK(cuDevicePrimaryCtxRetain(&primary, 0));
	REQUIRE(primary == current, "not the primary context");
	DCHECK(cuDevicePrimaryCtxRelease(0));
	DCHECK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	REQUIRE(active, "the runtime lost its context");
	DCHECK(cuCtxCreate(&made, NULL, 0, 0));
	CHECK(cudaGetDevice(&device));
	REQUIRE(device == 0, "%d", device);
	CHECK(cudaSetDevice(0));
	DCHECK(cuCtxGetCurrent(&current));
	REQUIRE(current == primary, "cudaSetDevice does not choose the primary context");
	DCHECK(cuCtxDestroy(made));
}

static void memory_and_kernels(CUmodule module)
{
	unsigned int count = N, first = 3, *by_runtime;
	CUstream driver_stream;
	cudaStream_t stream;
	cudaEvent_t event;
	CUevent driver_event;
	CUdeviceptr memory;
	CUfunction function;
	void *params[] = {&by_runtime, &count, &first};
	void *driver_params[] = {&memory, &count};

	CHECK(cudaMalloc(&by_runtime, sizeof(words)));
	CHECK(cudaStreamCreate(&stream));
	DCHECK(cuEventCreate(&driver_event, CU_EVENT_DEFAULT));
	/* Their memory and stream, our kernel; then the other way round. */
	DCHECK(cuLaunchKernel(driver_function(module, "fill"), 4, 1, 1, 128, 1, 1, 0, stream,
			      params, NULL));
	twice<<<4, 128, 0, stream>>>(by_runtime, N);
	CHECK_LAUNCH();
	CHECK(cudaEventRecord(driver_event, stream));
	DCHECK(cuEventSynchronize(driver_event));
	DCHECK(cuMemcpyDtoH(words, (CUdeviceptr)(uintptr_t)by_runtime, sizeof(words)));
	expect(2, 3);
	DCHECK(cuMemFree((CUdeviceptr)(uintptr_t)by_runtime));
	EXPECT(cudaFree(by_runtime), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	DCHECK(cuMemAlloc(&memory, sizeof(words)));
	DCHECK(cuStreamCreate(&driver_stream, CU_STREAM_NON_BLOCKING));
	CHECK(cudaEventCreate(&event));
	by_runtime = (unsigned int *)(uintptr_t)memory;
	DCHECK(cuLaunchKernel(driver_function(module, "fill"), 4, 1, 1, 128, 1, 1, 0, driver_stream,
			      params, NULL));
	CHECK(cudaGetFuncBySymbol((cudaFunction_t *)&function, (const void *)twice));
	DCHECK(cuLaunchKernel(function, 4, 1, 1, 128, 1, 1, 0, driver_stream, driver_params, NULL));
	DCHECK(cuEventRecord(event, driver_stream));
	CHECK(cudaStreamSynchronize(driver_stream));
	CHECK(cudaEventQuery(event));
	CHECK(cudaMemcpy(words, (void *)(uintptr_t)memory, sizeof(words), cudaMemcpyDeviceToHost));
	expect(2, 3);
	CHECK(cudaFree((void *)(uintptr_t)memory));
	DEXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuStreamDestroy(stream));
	CHECK(cudaStreamDestroy(driver_stream));
	DCHECK(cuEventDestroy(event));
	CHECK(cudaEventDestroy(driver_event));
}

static void graphs(CUmodule module)
{
	unsigned int count = N, first = 9, *memory;
	void *params[] = {&memory, &count, &first};
	CUgraphExec exec;
	cudaStream_t stream;
	cudaGraph_t graph;

	CHECK(cudaMalloc(&memory, sizeof(words)));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	DCHECK(cuLaunchKernel(driver_function(module, "fill"), 4, 1, 1, 128, 1, 1, 0, stream,
			      params, NULL));
	twice<<<4, 128, 0, stream>>>(memory, N);
	DCHECK(cuStreamEndCapture(stream, &graph));
	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaMemcpyAsync(words, memory, sizeof(words), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect(2, 9);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(memory));
	CHECK(cudaStreamDestroy(stream));
}

static void errors(void)
{
	CUdeviceptr memory;

	/* An error of the driver API is no error of the runtime. */
	DEXPECT(cuMemAlloc(&memory, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemFree(12345), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cudaGetLastError(), cudaSuccess);
	EXPECT(cudaSetDevice(4711), cudaErrorInvalidDevice);
	DEXPECT(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cudaGetLastError(), cudaErrorInvalidDevice);
}

static void entry_points(void)
{
	cudaDriverEntryPointQueryResult how;
	decltype(&cuCtxGetCurrent) get = NULL;
	decltype(&cuMemAlloc) alloc = NULL;
	CUcontext current = NULL;
	void *none;

	CHECK(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", (void **)&get, 13000,
					       cudaEnableDefault, &how));
	REQUIRE(get && how == cudaDriverEntryPointSuccess, "%d", (int)how);
	DCHECK(get(&current));
	REQUIRE(current, "no context");
	CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", (void **)&alloc, 12000,
					       cudaEnableDefault, &how));
	REQUIRE(alloc && how == cudaDriverEntryPointSuccess, "%d", (int)how);
	CHECK(cudaGetDriverEntryPointByVersion("cuLaunchKernelEx", &none, 11000, cudaEnableDefault,
					       &how));
	REQUIRE(!none && how == cudaDriverEntryPointVersionNotSufficent, "%d", (int)how);
	CHECK(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &none, 13000, cudaEnableDefault,
					       &how));
	REQUIRE(!none && how == cudaDriverEntryPointSymbolNotFound, "%d", (int)how);
}

int main(int argc, char **argv)
{
	CUmodule module;

	(void)argv;
	/* With an argument the driver API comes first. */
	if (argc > 1)
		driver_start();
	else
		contexts();
	module = driver_module();
	memory_and_kernels(module);
	graphs(module);
	errors();
	entry_points();
	if (argc > 1)
		contexts();
	DCHECK(cuModuleUnload(module));
	return verified("one state for both APIs, %s first",
			argc > 1 ? "the driver" : "the runtime");
}

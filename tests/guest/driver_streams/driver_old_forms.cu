// SPDX-License-Identifier: GPL-2.0-or-later
/* Forms of functions from before CUDA 13, which programs find with an older version's number. */
#include "driver.h"

#define N 32

/* The function as CUDA had it in that version. */
template <typename F> static F find(const char *name, int version)
{
	void *function;

	DCHECK(cuGetProcAddress(name, &function, version, 0, NULL));
	return (F)function;
}

static unsigned int got[N];

static void graphs(CUmodule module, CUdeviceptr memory)
{
	typedef CUresult add_fn(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
				const CUDA_KERNEL_NODE_PARAMS_v1 *);
	typedef CUresult get_fn(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v1 *);
	typedef CUresult edges_fn(CUgraph, CUgraphNode *, CUgraphNode *, size_t *);
	typedef CUresult depend_fn(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t);
	typedef CUresult make_fn(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t);
	typedef CUresult update_fn(CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *);
	typedef CUresult set_fn(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1 *);
	unsigned int count = N, value = 4;
	void *params[] = {&memory, &count, &value};
	CUDA_KERNEL_NODE_PARAMS_v1 k = {}, back;
	CUgraphExecUpdateResult what;
	CUgraphNode node, empty, from[4], to[4], wrong;
	CUgraphExec exec;
	CUgraph graph;
	size_t edges = 4;
	char log[100];

	k.func = driver_function(module, "fill");
	k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimY = k.blockDimZ = 1;
	k.blockDimX = N;
	k.kernelParams = params;
	DCHECK(cuGraphCreate(&graph, 0));
	DCHECK(find<add_fn *>("cuGraphAddKernelNode", 11000)(&node, graph, NULL, 0, &k));
	DEXPECT(find<add_fn *>("cuGraphAddKernelNode", 11000)(&node, graph, NULL, 0, NULL),
		CUDA_ERROR_INVALID_VALUE);
	DCHECK(find<get_fn *>("cuGraphKernelNodeGetParams", 11000)(node, &back));
	REQUIRE(back.func == k.func && back.blockDimX == N, "%u", back.blockDimX);
	DCHECK(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
	DCHECK(find<depend_fn *>("cuGraphAddDependencies", 11000)(graph, &node, &empty, 1));
	DCHECK(find<edges_fn *>("cuGraphGetEdges", 11000)(graph, from, to, &edges));
	REQUIRE(edges == 1 && from[0] == node && to[0] == empty, "%zu", edges);
	DCHECK(find<make_fn *>("cuGraphInstantiate", 11000)(&exec, graph, &wrong, log, sizeof(log)));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	REQUIRE(got[N - 1] == 4 + N - 1, "%u", got[N - 1]);
	value = 5;
	DCHECK(find<set_fn *>("cuGraphExecKernelNodeSetParams", 11000)(exec, node, &k));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	REQUIRE(got[N - 1] == 5 + N - 1, "%u", got[N - 1]);
	DCHECK(find<update_fn *>("cuGraphExecUpdate", 11000)(exec, graph, &wrong, &what));
	REQUIRE(what == CU_GRAPH_EXEC_UPDATE_SUCCESS, "%d", (int)what);
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	REQUIRE(got[N - 1] == 4 + N - 1, "%u", got[N - 1]);
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(graph));
}

static void captures(CUdeviceptr memory)
{
	typedef CUresult begin_fn(CUstream);
	typedef CUresult info1_fn(CUstream, CUstreamCaptureStatus *, cuuint64_t *);
	typedef CUresult info2_fn(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,
				  const CUgraphNode **, size_t *);
	CUstreamCaptureStatus status;
	const CUgraphNode *after;
	cuuint64_t id, again;
	CUstream stream;
	CUgraph graph, seen;
	size_t count;

	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DCHECK(find<begin_fn *>("cuStreamBeginCapture", 10000)(stream));
	DCHECK(cuMemsetD8Async(memory, 0, 4, stream));
	DCHECK(find<info1_fn *>("cuStreamGetCaptureInfo", 10010)(stream, &status, &id));
	REQUIRE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE, "%d", (int)status);
	DCHECK(find<info2_fn *>("cuStreamGetCaptureInfo", 11030)(stream, &status, &again, &seen,
								 &after, &count));
	REQUIRE(id == again && count == 1, "%zu", count);
	DCHECK(cuStreamEndCapture(stream, &graph));
	DCHECK(cuGraphDestroy(graph));
	DCHECK(cuStreamDestroy(stream));
}

static void managed(CUdevice device)
{
	typedef CUresult advise_fn(CUdeviceptr, size_t, CUmem_advise, CUdevice);
	typedef CUresult fetch_fn(CUdeviceptr, size_t, CUdevice, CUstream);
	CUdeviceptr memory;

	DCHECK(cuMemAllocManaged(&memory, 8192, CU_MEM_ATTACH_GLOBAL));
	DCHECK(find<advise_fn *>("cuMemAdvise", 8000)(memory, 8192,
						      CU_MEM_ADVISE_SET_READ_MOSTLY, device));
	DCHECK(find<fetch_fn *>("cuMemPrefetchAsync", 8000)(memory, 8192, device, NULL));
	DCHECK(find<fetch_fn *>("cuMemPrefetchAsync", 8000)(memory, 8192, CU_DEVICE_CPU, NULL));
	DEXPECT(find<fetch_fn *>("cuMemPrefetchAsync", 8000)(memory, 8192, 1000, NULL),
		CUDA_ERROR_INVALID_DEVICE);
	DCHECK(cuCtxSynchronize());
	DCHECK(cuMemFree(memory));
}

static void contexts(CUdevice device)
{
	typedef CUresult make_fn(CUcontext *, unsigned int, CUdevice);
	CUcontext context, current;

	DCHECK(find<make_fn *>("cuCtxCreate", 3020)(&context, 0, device));
	DCHECK(cuCtxGetCurrent(&current));
	REQUIRE(current == context, "another context");
	DCHECK(cuCtxDestroy(context));
}

int main()
{
	CUdevice device = driver_start();
	CUmodule module = driver_module();
	CUdeviceptr memory;

	DCHECK(cuMemAlloc(&memory, sizeof(got)));
	graphs(module, memory);
	captures(memory);
	managed(device);
	contexts(device);
	DCHECK(cuMemFree(memory));
	DCHECK(cuModuleUnload(module));
	return verified("older forms of functions");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Graphs: built by nodes, captured, changed after instantiation, and what their nodes say. */
#include "driver.h"

#define N 64

static CUdeviceptr memory;
static unsigned int got[N];

static void expect(unsigned int first)
{
	unsigned int i;

	for (i = 0; i < N; i++)
		REQUIRE(got[i] == first + i, "%u: %u, not %u", i, got[i], first + i);
}

static int calls;

static void CUDA_CB note(void *data)
{
	calls += *(int *)data;
}

static void by_nodes(CUmodule module)
{
	unsigned int count = N, value = 5;
	void *params[] = {&memory, &count, &value};
	CUDA_KERNEL_NODE_PARAMS k = {};
	CUDA_MEMCPY3D c = {};
	CUDA_MEMSET_NODE_PARAMS m = {};
	CUDA_HOST_NODE_PARAMS h = {};
	CUgraphNode nodes[4], found[8], from[8], to[8];
	CUgraphNodeType type;
	CUDA_KERNEL_NODE_PARAMS back;
	CUDA_MEMCPY3D copy_back;
	CUcontext context;
	CUgraphExec exec;
	CUgraph graph;
	size_t n;
	int one = 1;

	DCHECK(cuCtxGetCurrent(&context));
	DCHECK(cuGraphCreate(&graph, 0));
	m.dst = memory;
	m.elementSize = 4;
	m.width = N;
	m.height = 1;
	DCHECK(cuGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &m, context));
	k.func = driver_function(module, "fill");
	k.gridDimX = k.gridDimY = k.gridDimZ = 1;
	k.blockDimX = N;
	k.blockDimY = k.blockDimZ = 1;
	k.kernelParams = params;
	DCHECK(cuGraphAddKernelNode(&nodes[1], graph, &nodes[0], 1, &k));
	c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = memory;
	c.dstMemoryType = CU_MEMORYTYPE_HOST;
	c.dstHost = got;
	c.WidthInBytes = sizeof(got);
	c.Height = c.Depth = 1;
	DCHECK(cuGraphAddMemcpyNode(&nodes[2], graph, &nodes[1], 1, &c, context));
	h.fn = note;
	h.userData = &one;
	DCHECK(cuGraphAddHostNode(&nodes[3], graph, &nodes[2], 1, &h));
	n = 8;
	DCHECK(cuGraphGetNodes(graph, found, &n));
	REQUIRE(n == 4, "%zu nodes", n);
	n = 8;
	DCHECK(cuGraphGetEdges(graph, from, to, NULL, &n));
	REQUIRE(n == 3, "%zu edges", n);
	n = 8;
	DCHECK(cuGraphGetRootNodes(graph, found, &n));
	REQUIRE(n == 1 && found[0] == nodes[0], "%zu roots", n);
	DCHECK(cuGraphNodeGetType(nodes[2], &type));
	REQUIRE(type == CU_GRAPH_NODE_TYPE_MEMCPY, "%d", (int)type);
	DCHECK(cuGraphKernelNodeGetParams(nodes[1], &back));
	REQUIRE(back.func == k.func && back.blockDimX == N, "%u", back.blockDimX);
	DCHECK(cuGraphMemcpyNodeGetParams(nodes[2], &copy_back));
	REQUIRE(copy_back.WidthInBytes == sizeof(got) && copy_back.srcDevice == memory, "%zu",
		copy_back.WidthInBytes);
	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuStreamSynchronize(NULL));
	expect(5);
	REQUIRE(calls == 1, "%d", calls);
	value = 100;
	DCHECK(cuGraphExecKernelNodeSetParams(exec, nodes[1], &k));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuStreamSynchronize(NULL));
	expect(100);
	DCHECK(cuGraphNodeSetEnabled(exec, nodes[1], 0));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuStreamSynchronize(NULL));
	REQUIRE(!got[0] && !got[N - 1] && calls == 3, "%u %u %d", got[0], got[N - 1], calls);
	DEXPECT(cuGraphNodeSetEnabled(exec, nodes[3], 0), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(graph));
	DEXPECT(cuGraphDestroy(NULL), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuGraphCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

static CUgraph capture(CUmodule module, unsigned int value)
{
	unsigned int count = N;
	void *params[] = {&memory, &count, &value};
	CUstreamCaptureStatus status;
	CUstream stream;
	CUgraph graph;

	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DCHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	DCHECK(cuStreamIsCapturing(stream, &status));
	REQUIRE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE, "%d", (int)status);
	DCHECK(cuLaunchKernel(driver_function(module, "fill"), 1, 1, 1, N, 1, 1, 0, stream, params,
			      NULL));
	DCHECK(cuStreamEndCapture(stream, &graph));
	DCHECK(cuStreamDestroy(stream));
	return graph;
}

static void captured(CUmodule module)
{
	CUgraph one = capture(module, 7), two = capture(module, 70);
	CUgraphExecUpdateResultInfo info;
	CUgraphExec exec;
	cuuint64_t flags;

	DCHECK(cuGraphInstantiate(&exec, one, 0));
	DCHECK(cuGraphExecGetFlags(exec, &flags));
	REQUIRE(flags == 0, "%llu", (unsigned long long)flags);
	DCHECK(cuGraphUpload(exec, NULL));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	expect(7);
	DCHECK(cuGraphExecUpdate(exec, two, &info));
	REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS, "%d", (int)info.result);
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	expect(70);
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(one));
	DCHECK(cuGraphDestroy(two));
}

int main()
{
	CUmodule module;

	driver_start();
	module = driver_module();
	DCHECK(cuMemAlloc(&memory, sizeof(got)));
	by_nodes(module);
	captured(module);
	DCHECK(cuMemFree(memory));
	DCHECK(cuModuleUnload(module));
	return verified("graphs by nodes and by capture, changed and launched");
}

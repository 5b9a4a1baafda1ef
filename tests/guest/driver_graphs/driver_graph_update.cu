// SPDX-License-Identifier: GPL-2.0-or-later
/* Instances that are changed: a node's parameters one by one, a whole graph, and graphs that do not
 * fit. */
#include "driver.h"

#define N 32

static CUdeviceptr memory, copy;
static CUfunction fill, nothing;
static CUcontext context;

static CUDA_KERNEL_NODE_PARAMS kernel_params(void **params)
{
	CUDA_KERNEL_NODE_PARAMS k = {};

	k.func = fill;
	k.gridDimX = k.gridDimY = k.gridDimZ = 1;
	k.blockDimX = N;
	k.blockDimY = k.blockDimZ = 1;
	k.kernelParams = params;
	return k;
}

static CUDA_MEMCPY3D copy_params(CUdeviceptr from, CUdeviceptr to, size_t bytes)
{
	CUDA_MEMCPY3D c = {};

	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = from;
	c.dstDevice = to;
	c.WidthInBytes = bytes;
	c.Height = c.Depth = 1;
	return c;
}

/* A kernel that fills, then a copy. */
static CUgraph make(unsigned int value, CUgraphNode *nodes)
{
	unsigned int count = N;
	void *params[] = {&memory, &count, &value};
	CUDA_KERNEL_NODE_PARAMS k = kernel_params(params);
	CUDA_MEMCPY3D c = copy_params(memory, copy, N * 4);
	CUgraph graph;

	DCHECK(cuGraphCreate(&graph, 0));
	DCHECK(cuGraphAddKernelNode(&nodes[0], graph, NULL, 0, &k));
	DCHECK(cuGraphAddMemcpyNode(&nodes[1], graph, &nodes[0], 1, &c, context));
	return graph;
}

static void expect(CUgraphExec exec, unsigned int first, unsigned int second)
{
	unsigned int got[2];

	DCHECK(cuMemsetD32(copy, 1, N));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuMemcpyDtoH(got, copy, 4));
	DCHECK(cuMemcpyDtoH(got + 1, copy + 4 * (N - 1), 4));
	REQUIRE(got[0] == first && got[1] == second, "%u %u, not %u %u", got[0], got[1], first,
		second);
}

int main()
{
	unsigned int count = N, value = 300;
	void *params[] = {&memory, &count, &value};
	CUDA_MEMSET_NODE_PARAMS set = {};
	CUgraphExecUpdateResultInfo info;
	CUDA_KERNEL_NODE_PARAMS k;
	CUgraph graph, other, third;
	CUgraphNode nodes[2], others[2], extra;
	CUDA_MEMCPY3D c;
	CUgraphExec exec;
	CUmodule module;

	driver_start();
	module = driver_module();
	fill = driver_function(module, "fill");
	nothing = driver_function(module, "nothing");
	DCHECK(cuCtxGetCurrent(&context));
	DCHECK(cuMemAlloc(&memory, N * 4));
	DCHECK(cuMemAlloc(&copy, N * 4));
	graph = make(100, nodes);
	other = make(200, others);
	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	expect(exec, 100, 100 + N - 1);

	/* Single nodes. The graph itself stays as it is. */
	k = kernel_params(params);
	DCHECK(cuGraphExecKernelNodeSetParams(exec, nodes[0], &k));
	expect(exec, 300, 300 + N - 1);
	c = copy_params(memory, copy, 8);
	DCHECK(cuGraphExecMemcpyNodeSetParams(exec, nodes[1], &c, context));
	expect(exec, 300, 1);
	DEXPECT(cuGraphExecKernelNodeSetParams(exec, nodes[1], &k), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuGraphExecKernelNodeSetParams(exec, others[0], &k), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuGraphExecKernelNodeSetParams(exec, nodes[0], NULL), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuGraphExecMemsetNodeSetParams(exec, nodes[1], &set, context),
		CUDA_ERROR_INVALID_VALUE);
	expect(exec, 300, 1);

	/* A whole graph of the same form. */
	DCHECK(cuGraphExecUpdate(exec, other, &info));
	REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS, "%d", (int)info.result);
	expect(exec, 200, 200 + N - 1);
	/* One node more, or less: the instance stays. */
	third = make(400, nodes);
	DCHECK(cuGraphAddEmptyNode(&extra, third, NULL, 0));
	DEXPECT(cuGraphExecUpdate(exec, third, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, "%d", (int)info.result);
	expect(exec, 200, 200 + N - 1);
	DCHECK(cuGraphDestroyNode(extra));
	DCHECK(cuGraphExecUpdate(exec, third, &info));
	expect(exec, 400, 400 + N - 1);
	DCHECK(cuGraphDestroyNode(nodes[1]));
	DEXPECT(cuGraphExecUpdate(exec, third, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	REQUIRE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, "%d", (int)info.result);

	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(graph));
	DCHECK(cuGraphDestroy(other));
	DCHECK(cuGraphDestroy(third));
	DCHECK(cuMemFree(memory));
	DCHECK(cuMemFree(copy));
	DCHECK(cuModuleUnload(module));
	return verified("instances that are changed");
}

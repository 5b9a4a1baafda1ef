// SPDX-License-Identifier: GPL-2.0-or-later
/* Kernel nodes: what they say, changed in the graph, their attributes, and wrong ones. */
#include "driver.h"

#define N 16

int main()
{
	unsigned int count = N, value = 1, got[N];
	CUDA_KERNEL_NODE_PARAMS k = {}, back;
	CUlaunchAttributeValue attribute = {}, read = {};
	CUgraphNode node, other;
	CUdeviceptr memory;
	CUgraphExec exec;
	CUmodule module;
	CUgraph graph;
	void *params[] = {&memory, &count, &value};
	int least, greatest;

	driver_start();
	module = driver_module();
	DCHECK(cuMemAlloc(&memory, sizeof(got)));
	DCHECK(cuMemsetD32(memory, 0, N));
	DCHECK(cuGraphCreate(&graph, 0));
	k.func = driver_function(module, "fill");
	k.gridDimX = k.gridDimY = k.gridDimZ = 1;
	k.blockDimX = N;
	k.blockDimY = k.blockDimZ = 1;
	k.kernelParams = params;
	DCHECK(cuGraphAddKernelNode(&node, graph, NULL, 0, &k));
	DCHECK(cuGraphAddKernelNode(&other, graph, &node, 1, &k));
	/* The arguments were taken at once. */
	value = 50;
	DCHECK(cuGraphKernelNodeGetParams(node, &back));
	REQUIRE(back.func == k.func && back.blockDimX == N && back.gridDimZ == 1, "%u",
		back.blockDimX);
	REQUIRE(*(unsigned int *)back.kernelParams[2] == 1, "%u",
		*(unsigned int *)back.kernelParams[2]);
	k.blockDimX = N / 2;
	DCHECK(cuGraphKernelNodeSetParams(other, &k));
	DCHECK(cuGraphKernelNodeGetParams(other, &back));
	REQUIRE(back.blockDimX == N / 2, "%u", back.blockDimX);
	k.func = NULL;
	REQUIRE(cuGraphKernelNodeSetParams(other, &k), "no function");
	DEXPECT(cuGraphKernelNodeSetParams(other, NULL), CUDA_ERROR_INVALID_VALUE);

	DCHECK(cuCtxGetStreamPriorityRange(&least, &greatest));
	attribute.priority = greatest;
	DCHECK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute));
	DCHECK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &read));
	REQUIRE(read.priority == greatest, "%d", read.priority);
	DCHECK(cuGraphKernelNodeCopyAttributes(other, node));
	read.priority = 77;
	DCHECK(cuGraphKernelNodeGetAttribute(other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &read));
	REQUIRE(read.priority == greatest, "%d", read.priority);
	attribute.cooperative = 1;
	DCHECK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute));
	DCHECK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &read));
	REQUIRE(read.cooperative == 1, "%d", read.cooperative);
	DEXPECT(cuGraphKernelNodeSetAttribute(node, (CUlaunchAttributeID)4711, &attribute),
		CUDA_ERROR_INVALID_VALUE);

	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	REQUIRE(got[0] == 50 && got[N / 2 - 1] == 50 + N / 2 - 1, "%u %u", got[0], got[N / 2 - 1]);
	REQUIRE(got[N / 2] == 1 + N / 2 && got[N - 1] == N, "%u %u", got[N / 2], got[N - 1]);
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(graph));
	DCHECK(cuMemFree(memory));
	DCHECK(cuModuleUnload(module));
	return verified("kernel nodes");
}

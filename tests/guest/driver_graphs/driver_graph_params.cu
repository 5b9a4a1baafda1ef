// SPDX-License-Identifier: GPL-2.0-or-later
/* Parameters of nodes that copy, fill, call the program and hold a graph: read, changed, and of the
 * wrong kind. */
#include "driver.h"

static CUcontext context;
static CUdeviceptr memory;
static int calls;

static void CUDA_CB add_to_calls(void *data)
{
	calls += *(int *)data;
}

static CUDA_MEMSET_NODE_PARAMS fill_with(unsigned int value)
{
	CUDA_MEMSET_NODE_PARAMS p = {};

	p.dst = memory;
	p.elementSize = 4;
	p.value = value;
	p.width = 4;
	p.height = 1;
	return p;
}

static CUDA_MEMCPY3D copy_to(void *host, size_t bytes)
{
	CUDA_MEMCPY3D c = {};

	c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = memory;
	c.dstMemoryType = CU_MEMORYTYPE_HOST;
	c.dstHost = host;
	c.WidthInBytes = bytes;
	c.Height = c.Depth = 1;
	return c;
}

static CUgraph inner_graph(unsigned int value)
{
	CUDA_MEMSET_NODE_PARAMS p = fill_with(value);
	CUgraphNode node;
	CUgraph graph;

	p.dst = memory + 12;
	p.width = 1;
	DCHECK(cuGraphCreate(&graph, 0));
	DCHECK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &p, context));
	return graph;
}

static void launch(CUgraphExec exec)
{
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuStreamSynchronize(NULL));
}

int main()
{
	static unsigned int first[4], second[4];
	int one = 1, ten = 10;
	CUDA_MEMSET_NODE_PARAMS fill = {}, fill_back;
	CUDA_MEMCPY3D copy, copy_back;
	CUDA_HOST_NODE_PARAMS host = {}, host_back;
	CUgraph graph, inner, other_inner;
	CUgraphNode nodes[4];
	CUgraphExec exec;

	driver_start();
	DCHECK(cuCtxGetCurrent(&context));
	DCHECK(cuMemAlloc(&memory, 16));
	DCHECK(cuGraphCreate(&graph, 0));
	fill = fill_with(5);
	DCHECK(cuGraphAddMemsetNode(&nodes[0], graph, NULL, 0, &fill, context));
	inner = inner_graph(6);
	other_inner = inner_graph(60);
	DCHECK(cuGraphAddChildGraphNode(&nodes[1], graph, &nodes[0], 1, inner));
	copy = copy_to(first, 16);
	DCHECK(cuGraphAddMemcpyNode(&nodes[2], graph, &nodes[1], 1, &copy, context));
	host.fn = add_to_calls;
	host.userData = &one;
	DCHECK(cuGraphAddHostNode(&nodes[3], graph, &nodes[2], 1, &host));

	DCHECK(cuGraphMemsetNodeGetParams(nodes[0], &fill_back));
	REQUIRE(fill_back.value == 5 && fill_back.width == 4 && fill_back.dst == memory, "%u",
		fill_back.value);
	DCHECK(cuGraphMemcpyNodeGetParams(nodes[2], &copy_back));
	REQUIRE(copy_back.dstHost == first && copy_back.WidthInBytes == 16, "%zu",
		copy_back.WidthInBytes);
	DCHECK(cuGraphHostNodeGetParams(nodes[3], &host_back));
	REQUIRE(host_back.fn == add_to_calls && host_back.userData == &one, "another function");
	/* Of another kind. */
	DEXPECT(cuGraphMemsetNodeGetParams(nodes[2], &fill_back), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuGraphMemcpyNodeGetParams(nodes[3], &copy_back), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuGraphHostNodeSetParams(nodes[0], &host), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuGraphMemsetNodeSetParams(nodes[1], &fill), CUDA_ERROR_INVALID_VALUE);

	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	launch(exec);
	REQUIRE(first[0] == 5 && first[2] == 5 && first[3] == 6 && calls == 1, "%u %u %d", first[0],
		first[3], calls);
	/* Changed in the graph, and so in the next instance only. */
	fill = fill_with(7);
	DCHECK(cuGraphMemsetNodeSetParams(nodes[0], &fill));
	host.userData = &ten;
	DCHECK(cuGraphHostNodeSetParams(nodes[3], &host));
	copy = copy_to(second, 8);
	DCHECK(cuGraphMemcpyNodeSetParams(nodes[2], &copy));
	launch(exec);
	REQUIRE(first[0] == 5 && !second[0] && calls == 2, "%u %u %d", first[0], second[0], calls);
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	launch(exec);
	REQUIRE(second[1] == 7 && !second[2] && calls == 12, "%u %u %d", second[1], second[2],
		calls);
	/* Changed in the instance. */
	fill = fill_with(8);
	DCHECK(cuGraphExecMemsetNodeSetParams(exec, nodes[0], &fill, context));
	host.userData = &one;
	DCHECK(cuGraphExecHostNodeSetParams(exec, nodes[3], &host));
	DCHECK(cuGraphExecChildGraphNodeSetParams(exec, nodes[1], other_inner));
	copy = copy_to(second, 8);
	copy.srcDevice = memory + 8;
	DCHECK(cuGraphExecMemcpyNodeSetParams(exec, nodes[2], &copy, context));
	launch(exec);
	REQUIRE(second[0] == 8 && second[1] == 60 && calls == 13, "%u %u %d", second[0], second[1],
		calls);
	DEXPECT(cuGraphExecHostNodeSetParams(exec, nodes[0], &host), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuGraphExecChildGraphNodeSetParams(exec, nodes[3], other_inner),
		CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(graph));
	DCHECK(cuGraphDestroy(inner));
	DCHECK(cuGraphDestroy(other_inner));
	DCHECK(cuMemFree(memory));
	return verified("parameters of nodes");
}

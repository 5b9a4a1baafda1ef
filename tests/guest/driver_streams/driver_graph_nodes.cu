// SPDX-License-Identifier: GPL-2.0-or-later
/* Nodes that allocate and free memory, child graphs, event nodes, clones, and nodes of any type. */
#include "driver.h"

static void allocations(CUdevice device)
{
	CUDA_MEM_ALLOC_NODE_PARAMS a = {}, back;
	CUDA_MEMSET_NODE_PARAMS m = {};
	CUgraphNode nodes[3];
	CUcontext context;
	CUgraphExec exec;
	CUgraph graph;
	CUdeviceptr freed;

	DCHECK(cuCtxGetCurrent(&context));
	DCHECK(cuGraphCreate(&graph, 0));
	a.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	a.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	a.poolProps.location.id = device;
	a.bytesize = 4096;
	DCHECK(cuGraphAddMemAllocNode(&nodes[0], graph, NULL, 0, &a));
	REQUIRE(a.dptr, "no address");
	m.dst = a.dptr;
	m.value = 7;
	m.elementSize = 4;
	m.width = 1024;
	m.height = 1;
	DCHECK(cuGraphAddMemsetNode(&nodes[1], graph, &nodes[0], 1, &m, context));
	DCHECK(cuGraphAddMemFreeNode(&nodes[2], graph, &nodes[1], 1, a.dptr));
	DCHECK(cuGraphMemAllocNodeGetParams(nodes[0], &back));
	REQUIRE(back.dptr == a.dptr && back.bytesize == 4096, "%zu", back.bytesize);
	DCHECK(cuGraphMemFreeNodeGetParams(nodes[2], &freed));
	REQUIRE(freed == a.dptr, "another address");
	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuStreamSynchronize(NULL));
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(graph));
	DCHECK(cuDeviceGraphMemTrim(device));
}

static void structure(CUdeviceptr memory)
{
	CUgraphNode child, record, wait, empty, nodes[8], found;
	CUgraph graph, inner, clone, seen;
	CUgraphNodeParams any = {};
	CUevent event, back;
	CUgraphExec exec;
	size_t count = 8;
	unsigned int word = 0;

	DCHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
	DCHECK(cuGraphCreate(&graph, 0));
	DCHECK(cuGraphCreate(&inner, 0));
	any.type = CU_GRAPH_NODE_TYPE_MEMSET;
	any.memset.dst = memory;
	any.memset.value = 0x01020304;
	any.memset.elementSize = 4;
	any.memset.width = 1;
	any.memset.height = 1;
	DCHECK(cuGraphAddNode(&found, inner, NULL, NULL, 0, &any));
	DCHECK(cuGraphAddChildGraphNode(&child, graph, NULL, 0, inner));
	DCHECK(cuGraphChildGraphNodeGetGraph(child, &seen));
	REQUIRE(seen && seen != inner, "the child is the same graph");
	DCHECK(cuGraphAddEventRecordNode(&record, graph, &child, 1, event));
	DCHECK(cuGraphEventRecordNodeGetEvent(record, &back));
	REQUIRE(back == event, "another event");
	DCHECK(cuGraphAddEventWaitNode(&wait, graph, &record, 1, event));
	DCHECK(cuGraphAddEmptyNode(&empty, graph, NULL, 0));
	DCHECK(cuGraphAddDependencies(graph, &wait, &empty, NULL, 1));
	DCHECK(cuGraphNodeGetDependencies(empty, nodes, NULL, &count));
	REQUIRE(count == 1 && nodes[0] == wait, "%zu", count);
	DCHECK(cuGraphClone(&clone, graph));
	DCHECK(cuGraphNodeFindInClone(&found, wait, clone));
	count = 8;
	DCHECK(cuGraphNodeGetDependentNodes(found, nodes, NULL, &count));
	REQUIRE(count == 1, "%zu", count);
	DCHECK(cuGraphRemoveDependencies(graph, &wait, &empty, NULL, 1));
	DCHECK(cuGraphDestroyNode(empty));
	DCHECK(cuGraphInstantiate(&exec, clone, 0));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuEventSynchronize(event));
	DCHECK(cuMemcpyDtoH(&word, memory, 4));
	REQUIRE(word == 0x01020304, "%x", word);
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(clone));
	DCHECK(cuGraphDestroy(inner));
	DCHECK(cuGraphDestroy(graph));
	DCHECK(cuEventDestroy(event));
}

/* A child that is moved is the program's own graph, and may have memory. */
static void moved_child(CUdevice device)
{
	CUDA_MEM_ALLOC_NODE_PARAMS a = {};
	CUgraphNodeParams any = {};
	CUgraph graph, inner, seen;
	CUgraphNode nodes[2], child;
	CUgraphExec exec;

	DCHECK(cuGraphCreate(&graph, 0));
	DCHECK(cuGraphCreate(&inner, 0));
	a.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	a.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	a.poolProps.location.id = device;
	a.bytesize = 4096;
	DCHECK(cuGraphAddMemAllocNode(&nodes[0], inner, NULL, 0, &a));
	DCHECK(cuGraphAddMemFreeNode(&nodes[1], inner, &nodes[0], 1, a.dptr));
	any.type = CU_GRAPH_NODE_TYPE_GRAPH;
	any.graph.graph = inner;
	DEXPECT(cuGraphAddNode(&child, graph, NULL, NULL, 0, &any), CUDA_ERROR_NOT_SUPPORTED);
	any.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	DCHECK(cuGraphAddNode(&child, graph, NULL, NULL, 0, &any));
	DCHECK(cuGraphChildGraphNodeGetGraph(child, &seen));
	REQUIRE(seen == inner, "the child is a copy");
	DEXPECT(cuGraphDestroy(inner), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuStreamSynchronize(NULL));
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(graph));
}

int main()
{
	CUdevice device = driver_start();
	CUdeviceptr memory;

	DCHECK(cuMemAlloc(&memory, 4));
	allocations(device);
	structure(memory);
	moved_child(device);
	DCHECK(cuMemFree(memory));
	return verified("nodes of graphs");
}

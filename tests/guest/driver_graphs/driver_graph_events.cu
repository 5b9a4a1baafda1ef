// SPDX-License-Identifier: GPL-2.0-or-later
/* Nodes that record events and wait for them, changed in the graph and in an instance; nodes by
 * cuGraphAddNode. */
#include "driver.h"

int main()
{
	CUgraphNodeParams params = {};
	CUevent first, second, got;
	CUgraphNode record, wait, set;
	CUgraphNodeType type;
	CUgraphExec exec;
	CUdeviceptr memory;
	CUgraph graph;
	unsigned int word;

	driver_start();
	DCHECK(cuMemAlloc(&memory, 4));
	DCHECK(cuMemsetD32(memory, 0, 1));
	DCHECK(cuEventCreate(&first, CU_EVENT_DISABLE_TIMING));
	DCHECK(cuEventCreate(&second, CU_EVENT_DISABLE_TIMING));
	DCHECK(cuGraphCreate(&graph, 0));
	DCHECK(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, second));
	DCHECK(cuGraphAddEventRecordNode(&record, graph, &wait, 1, first));
	DEXPECT(cuGraphAddEventRecordNode(&set, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	params.type = CU_GRAPH_NODE_TYPE_MEMSET;
	params.memset.dst = memory;
	params.memset.elementSize = 4;
	params.memset.value = 7;
	params.memset.width = params.memset.height = 1;
	DCHECK(cuCtxGetCurrent(&params.memset.ctx));
	DCHECK(cuGraphAddNode(&set, graph, &record, NULL, 1, &params));
	DEXPECT(cuGraphAddNode(&set, graph, NULL, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuGraphNodeGetType(set, &type));
	REQUIRE(type == CU_GRAPH_NODE_TYPE_MEMSET, "%d", (int)type);
	DCHECK(cuGraphEventRecordNodeGetEvent(record, &got));
	REQUIRE(got == first, "another event");
	DCHECK(cuGraphEventWaitNodeGetEvent(wait, &got));
	REQUIRE(got == second, "another event");
	DEXPECT(cuGraphEventWaitNodeGetEvent(record, &got), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuGraphEventRecordNodeSetEvent(record, second));
	DCHECK(cuGraphEventWaitNodeSetEvent(wait, first));
	DCHECK(cuGraphEventRecordNodeGetEvent(record, &got));
	REQUIRE(got == second, "another event");
	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuEventSynchronize(second));
	DCHECK(cuStreamSynchronize(NULL));
	DCHECK(cuMemcpyDtoH(&word, memory, 4));
	REQUIRE(word == 7, "%u", word);
	DCHECK(cuGraphExecEventRecordNodeSetEvent(exec, record, first));
	DCHECK(cuGraphExecEventWaitNodeSetEvent(exec, wait, second));
	DEXPECT(cuGraphExecEventRecordNodeSetEvent(exec, wait, first), CUDA_ERROR_INVALID_VALUE);
	params.memset.value = 8;
	DCHECK(cuGraphExecNodeSetParams(exec, set, &params));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuEventSynchronize(first));
	DCHECK(cuStreamSynchronize(NULL));
	DCHECK(cuMemcpyDtoH(&word, memory, 4));
	REQUIRE(word == 8, "%u", word);
	params.memset.value = 9;
	DCHECK(cuGraphNodeSetParams(set, &params));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuMemcpyDtoH(&word, memory, 4));
	REQUIRE(word == 8, "the instance was changed: %u", word);
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(graph));
	DCHECK(cuEventDestroy(first));
	DCHECK(cuEventDestroy(second));
	DCHECK(cuMemFree(memory));
	return verified("nodes for events, and nodes of any kind");
}

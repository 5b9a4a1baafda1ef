// SPDX-License-Identifier: GPL-2.0-or-later
/* What a capture says of itself, captures into a graph that is there, and changed dependencies. */
#include "driver.h"

#define N 8

static CUfunction fill;
static CUdeviceptr memory;

static void launch(CUstream stream, unsigned int value)
{
	unsigned int count = N;
	void *params[] = {&memory, &count, &value};

	DCHECK(cuLaunchKernel(fill, 1, 1, 1, N, 1, 1, 0, stream, params, NULL));
}

static unsigned int run(CUgraph graph)
{
	CUgraphExec exec;
	unsigned int word;

	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuMemcpyDtoH(&word, memory, 4));
	DCHECK(cuGraphExecDestroy(exec));
	return word;
}

int main()
{
	CUstreamCaptureStatus status;
	const CUgraphNode *after;
	CUgraph graph, captured, own;
	CUgraphNode nodes[4], own_node;
	cuuint64_t id = 0, other = 0;
	CUstream stream;
	CUmodule module;
	size_t n;

	driver_start();
	module = driver_module();
	fill = driver_function(module, "fill");
	DCHECK(cuFuncLoad(fill));
	DCHECK(cuMemAlloc(&memory, N * 4));
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DCHECK(cuStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL));
	REQUIRE(status == CU_STREAM_CAPTURE_STATUS_NONE, "%d", (int)status);
	DEXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
	DEXPECT(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED),
		CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);

	DCHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	DEXPECT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
		CUDA_ERROR_ILLEGAL_STATE);
	launch(stream, 1);
	DCHECK(cuStreamGetCaptureInfo(stream, &status, &id, &captured, &after, NULL, &n));
	REQUIRE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id && captured && n == 1, "%zu", n);
	launch(stream, 2);
	/* The next one follows nothing. */
	DCHECK(cuStreamUpdateCaptureDependencies(stream, NULL, NULL, 0,
						 CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	DCHECK(cuStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL, &n));
	REQUIRE(n == 0, "%zu", n);
	DCHECK(cuStreamEndCapture(stream, &graph));
	REQUIRE(graph == captured, "another graph");
	n = 4;
	DCHECK(cuGraphGetNodes(graph, nodes, &n));
	REQUIRE(n == 2, "%zu nodes", n);
	REQUIRE(run(graph) == 2, "%u", run(graph));
	DCHECK(cuGraphDestroy(graph));

	/* Into a graph that has a node, behind that node. */
	DCHECK(cuGraphCreate(&own, 0));
	DCHECK(cuGraphAddEmptyNode(&own_node, own, NULL, 0));
	DCHECK(cuStreamBeginCaptureToGraph(stream, own, &own_node, NULL, 1,
					   CU_STREAM_CAPTURE_MODE_RELAXED));
	launch(stream, 30);
	DCHECK(cuStreamGetCaptureInfo(stream, &status, &other, &captured, &after, NULL, &n));
	REQUIRE(other != id && captured == own && n == 1, "%zu", n);
	DCHECK(cuStreamEndCapture(stream, &graph));
	REQUIRE(graph == own, "another graph");
	n = 0;
	DCHECK(cuGraphGetEdges(own, NULL, NULL, NULL, &n));
	REQUIRE(n == 1, "%zu edges", n);
	REQUIRE(run(own) == 30, "%u", run(own));
	DCHECK(cuGraphDestroy(own));
	DCHECK(cuStreamDestroy(stream));
	DCHECK(cuMemFree(memory));
	DCHECK(cuModuleUnload(module));
	return verified("what a capture says, and where it goes");
}

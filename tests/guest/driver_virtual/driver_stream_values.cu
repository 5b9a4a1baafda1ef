// SPDX-License-Identifier: GPL-2.0-or-later
/* Streams that write numbers and wait for numbers in device memory and in pinned memory. */
#include "driver.h"

static CUstream a, b;

static void wrong(CUdeviceptr at)
{
	CUstreamBatchMemOpParams op;

	DEXPECT(cuStreamWriteValue32(a, 0, 1, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuStreamWriteValue32(a, at + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuStreamWriteValue64(a, at + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuStreamWriteValue32(a, at, 1, 2), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuStreamWaitValue32(a, at, 1, 4), CUDA_ERROR_INVALID_VALUE);
	ONLY_OURS(DEXPECT(cuStreamWaitValue32((CUstream)&op, at, 1, 0), CUDA_ERROR_INVALID_HANDLE));
	memset(&op, 0, sizeof(op));
	op.operation = (CUstreamBatchMemOpType)99;
	DEXPECT(cuStreamBatchMemOp(a, 1, &op, 0), CUDA_ERROR_INVALID_VALUE);
	ONLY_OURS(DEXPECT(cuStreamBatchMemOp(a, 1, NULL, 0), CUDA_ERROR_INVALID_VALUE));
	DEXPECT(cuStreamBatchMemOp(a, 257, &op, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuStreamBatchMemOp(a, 1, &op, 1), CUDA_ERROR_INVALID_VALUE);
}

static void between_streams(CUdeviceptr at, CUdeviceptr data)
{
	unsigned int got[4];

	DCHECK(cuMemsetD32(at, 0, 4));
	DCHECK(cuMemsetD32(data, 0, 4));
	DCHECK(cuStreamSynchronize(NULL));
	DCHECK(cuStreamWaitValue32(b, at, 2, CU_STREAM_WAIT_VALUE_GEQ));
	DCHECK(cuMemcpyDtoDAsync(data + 8, data, 8, b));
	DEXPECT(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	DCHECK(cuStreamWriteValue32(a, at, 1, 0));
	DCHECK(cuStreamSynchronize(a));
	DEXPECT(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	DCHECK(cuStreamWriteValue64(a, data, 0x700000006, 0));
	DCHECK(cuStreamWriteValue32(a, at, 3, CU_STREAM_WRITE_VALUE_DEFAULT));
	DCHECK(cuStreamSynchronize(b));
	DCHECK(cuMemcpyDtoH(got, data, 16));
	REQUIRE(got[2] == 6 && got[3] == 7, "%u %u", got[2], got[3]);
}

/* The CPU writes what the stream waits for, and reads what the stream writes. */
static void pinned(void)
{
	volatile unsigned long long *host;
	CUdeviceptr at;

	DCHECK(cuMemHostAlloc((void **)&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	DCHECK(cuMemHostGetDevicePointer(&at, (void *)host, 0));
	host[0] = 0x10;
	host[1] = 0;
	DCHECK(cuStreamWaitValue64(a, at, 0x3, CU_STREAM_WAIT_VALUE_AND));
	DCHECK(cuStreamWriteValue64(a, at + 8, 42, 0));
	DEXPECT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
	REQUIRE(host[1] == 0, "%llu", host[1]);
	host[0] = 0x12;
	DCHECK(cuStreamSynchronize(a));
	REQUIRE(host[1] == 42, "%llu", host[1]);
	host[0] = ~5ull;
	DCHECK(cuStreamWaitValue64(a, at, 5, CU_STREAM_WAIT_VALUE_NOR));
	DEXPECT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
	host[0] = ~7ull;
	DCHECK(cuStreamSynchronize(a));
	DCHECK(cuMemFreeHost((void *)host));
}

static void batches(CUdeviceptr at)
{
	CUstreamBatchMemOpParams op[4];
	unsigned int got[4];

	DCHECK(cuMemsetD32(at, 0, 4));
	DCHECK(cuStreamSynchronize(NULL));
	memset(op, 0, sizeof(op));
	op[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op[0].waitValue.address = at;
	op[0].waitValue.value = 9;
	op[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	op[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op[1].writeValue.address = at + 4;
	op[1].writeValue.value = 10;
	op[2].operation = CU_STREAM_MEM_OP_BARRIER;
	op[3].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	op[3].writeValue.address = at + 8;
	op[3].writeValue.value64 = 0xc0000000b;
	DCHECK(cuStreamBatchMemOp(b, 4, op, 0));
	DEXPECT(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	DCHECK(cuStreamWriteValue32(a, at, 9, 0));
	DCHECK(cuStreamSynchronize(b));
	DCHECK(cuMemcpyDtoH(got, at, 16));
	REQUIRE(got[1] == 10 && got[2] == 11 && got[3] == 12, "%u %u %u", got[1], got[2], got[3]);
	/* One that is not valid: none is done. */
	op[0].waitValue.flags = 8;
	DEXPECT(cuStreamBatchMemOp(b, 4, op, 0), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuStreamQuery(b));
}

static CUstreamBatchMemOpParams write_op(CUdeviceptr at, unsigned int value)
{
	CUstreamBatchMemOpParams op = {};

	op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.writeValue.address = at;
	op.writeValue.value = value;
	return op;
}

static CUstreamBatchMemOpParams wait_op(CUdeviceptr at, unsigned int value)
{
	CUstreamBatchMemOpParams op = {};

	op.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op.waitValue.address = at;
	op.waitValue.value = value;
	op.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	return op;
}

static CUcontext driver_context(void)
{
	CUcontext context;

	DCHECK(cuCtxGetCurrent(&context));
	return context;
}

static void wrong_nodes(CUgraph graph, CUdeviceptr at)
{
	CUstreamBatchMemOpParams op = write_op(at, 1);
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {};
	CUgraphNode node;

	DEXPECT(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	params.ctx = driver_context();
	params.paramArray = &op;
	params.count = 257;
	DEXPECT(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
	params.count = 1;
	params.flags = 1;
	DEXPECT(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
	params.flags = 0;
	op.operation = (CUstreamBatchMemOpType)99;
	DEXPECT(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	DEXPECT(cuGraphBatchMemOpNodeGetParams(node, &params), CUDA_ERROR_INVALID_VALUE);
	op = write_op(at, 1);
	DEXPECT(cuGraphBatchMemOpNodeSetParams(node, &params), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuGraphDestroyNode(node));
}

/* One node waits for a number and then writes another one. The instance gets other numbers. */
static void nodes(CUdeviceptr at)
{
	CUstreamBatchMemOpParams ops[2] = {wait_op(at, 1), write_op(at + 4, 5)};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {}, seen;
	unsigned int got[2];
	CUgraphNodeType type;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	DCHECK(cuGraphCreate(&graph, 0));
	wrong_nodes(graph, at);
	params.ctx = driver_context();
	params.count = 2;
	params.paramArray = ops;
	DCHECK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &params));
	DCHECK(cuGraphNodeGetType(node, &type));
	REQUIRE(type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, "%d", type);
	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	memset(ops, 0, sizeof(ops));
	DCHECK(cuGraphBatchMemOpNodeGetParams(node, &seen));
	REQUIRE(seen.count == 2 && seen.paramArray[1].writeValue.value == 5, "%u", seen.count);
	DCHECK(cuMemsetD32(at, 0, 2));
	DCHECK(cuStreamSynchronize(NULL));
	DCHECK(cuGraphLaunch(exec, a));
	DEXPECT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
	DCHECK(cuStreamWriteValue32(b, at, 1, 0));
	DCHECK(cuStreamSynchronize(a));
	DCHECK(cuMemcpyDtoH(got, at, 8));
	REQUIRE(got[0] == 1 && got[1] == 5, "%u %u", got[0], got[1]);
	/* Other numbers and addresses, but the same operations in the same order. */
	ops[0] = write_op(at, 8);
	ops[1] = write_op(at + 4, 9);
	DEXPECT(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params), CUDA_ERROR_INVALID_VALUE);
	ops[0] = wait_op(at, 1);
	params.count = 1;
	DEXPECT(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params), CUDA_ERROR_INVALID_VALUE);
	params.count = 2;
	ops[0] = wait_op(at + 4, 5);
	ops[1] = write_op(at, 9);
	DCHECK(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
	DCHECK(cuGraphLaunch(exec, a));
	DCHECK(cuStreamSynchronize(a));
	DCHECK(cuMemcpyDtoH(got, at, 8));
	REQUIRE(got[0] == 9 && got[1] == 5, "%u %u", got[0], got[1]);
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(graph));
}

/* Captured, they do nothing until the graph is launched, and then once for each launch. */
static void captured(CUdeviceptr at)
{
	CUgraphNodeType type;
	unsigned int got[2];
	CUgraphNode node[3];
	size_t count = 3;
	CUgraphExec exec;
	CUgraph graph;

	DCHECK(cuMemsetD32(at, 0, 2));
	DCHECK(cuStreamSynchronize(NULL));
	DCHECK(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	DCHECK(cuStreamWaitValue32(a, at, 1, CU_STREAM_WAIT_VALUE_EQ));
	DCHECK(cuStreamWriteValue64(a, at, 0x200000000, 0));
	DCHECK(cuStreamEndCapture(a, &graph));
	DCHECK(cuGraphGetNodes(graph, node, &count));
	REQUIRE(count == 2, "%zu nodes", count);
	DCHECK(cuGraphNodeGetType(node[0], &type));
	REQUIRE(type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, "%d", type);
	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	for (int turn = 0; turn < 2; turn++) {
		DCHECK(cuGraphLaunch(exec, a));
		DEXPECT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
		DCHECK(cuStreamWriteValue32(b, at, 1, 0));
		DCHECK(cuStreamSynchronize(a));
		DCHECK(cuMemcpyDtoH(got, at, 8));
		REQUIRE(got[0] == 0 && got[1] == 2, "%u %u", got[0], got[1]);
	}
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(graph));
}

int main()
{
	CUdeviceptr at;

	driver_start();
	DCHECK(cuMemAlloc(&at, 4096));
	DCHECK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	DCHECK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	wrong(at);
	between_streams(at, at + 1024);
	pinned();
	batches(at);
	nodes(at);
	captured(at);
	return verified("streams wait for numbers and write them");
}

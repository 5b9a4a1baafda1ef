// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory that graphs allocate and free: within one launch, from one graph to the next or to the
 * stream behind it, or freed automatically at the next launch; by nodes and by captured calls.
 * Graph after graph allocates more than the device has in total, and all of it is freed.
 */
#include "check.h"

#define N     5000
#define BYTES (N * sizeof(int))

__global__ void count_up(int *p, int from, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = from + i;
}

__global__ void add(int *p, const int *q, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += q[i];
}

static int *out;
static cudaStream_t stream;

static void expect(const int *got, int from, int step, const char *what)
{
	for (int i = 0; i < N; i++)
		REQUIRE(got[i] == from + step * i, "%s: element %d is %d, not %d", what, i, got[i],
			from + step * i);
}

static cudaMemAllocNodeParams on_device(size_t bytes)
{
	cudaMemAllocNodeParams m = {};

	m.poolProps.allocType = cudaMemAllocationTypePinned;
	m.poolProps.location.type = cudaMemLocationTypeDevice;
	m.poolProps.location.id = 0;
	m.bytesize = bytes;
	return m;
}

static cudaGraphNode_t add_count_up(cudaGraph_t graph, cudaGraphNode_t behind, void *p, int from)
{
	int n = N;
	void *args[] = {&p, &from, &n};
	cudaKernelNodeParams k = {};
	cudaGraphNode_t node;

	k.func = (void *)count_up;
	k.gridDim = dim3((N + 127) / 128);
	k.blockDim = dim3(128);
	k.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&node, graph, &behind, 1, &k));
	return node;
}

static cudaGraphNode_t add_copy(cudaGraph_t graph, cudaGraphNode_t behind, const void *p)
{
	cudaGraphNode_t node;

	CHECK(cudaGraphAddMemcpyNode1D(&node, graph, &behind, 1, out, p, BYTES,
				       cudaMemcpyDeviceToHost));
	return node;
}

static void run(cudaGraphExec_t exec)
{
	memset(out, 0, BYTES);
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
}

/* One graph allocates, uses and frees the memory. Then uses that are not allowed. */
static void inside(void)
{
	cudaMemAllocNodeParams m = on_device(BYTES), got;
	cudaGraphNode_t node, last, freed, twice, children;
	cudaGraphExec_t exec, second;
	cudaGraph_t graph, other, copy;
	cudaGraphNodeType type;
	void *p = NULL, *plain;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &m));
	REQUIRE(m.dptr, "no address");
	last = add_copy(graph, add_count_up(graph, node, m.dptr, 100), m.dptr);
	CHECK(cudaGraphAddMemFreeNode(&freed, graph, &last, 1, m.dptr));
	CHECK(cudaGraphMemAllocNodeGetParams(node, &got));
	REQUIRE(got.dptr == m.dptr && got.bytesize == BYTES && got.poolProps.location.id == 0,
		"%zu bytes at %p", got.bytesize, got.dptr);
	CHECK(cudaGraphMemFreeNodeGetParams(freed, &p));
	REQUIRE(p == m.dptr, "another address");
	CHECK(cudaGraphNodeGetType(freed, &type));
	REQUIRE(type == cudaGraphNodeTypeMemFree, "type %d", type);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 5; i++) {
		run(exec);
		expect(out, 100, 1, "inside of a graph");
	}

	CHECK(cudaMalloc(&plain, BYTES));
	CHECK(cudaGraphCreate(&other, 0));
	EXPECT(cudaGraphAddMemFreeNode(&twice, graph, &last, 1, m.dptr), cudaErrorInvalidValue);
	EXPECT(cudaGraphAddMemFreeNode(&twice, other, NULL, 0, m.dptr), cudaErrorInvalidValue);
	EXPECT(cudaGraphAddMemFreeNode(&twice, other, NULL, 0, plain), cudaErrorInvalidValue);
	EXPECT(cudaGraphAddMemAllocNode(&twice, other, NULL, 0, NULL), cudaErrorInvalidValue);
	EXPECT(cudaGraphMemAllocNodeGetParams(freed, &got), cudaErrorInvalidValue);
	REQUIRE(cudaFreeAsync(m.dptr, stream) != cudaSuccess, "freed from outside");
	REQUIRE(cudaGraphClone(&copy, graph) != cudaSuccess, "cloned");
	REQUIRE(cudaGraphDestroyNode(last) != cudaSuccess, "a node is taken out");
	REQUIRE(cudaGraphRemoveDependencies(graph, &last, &freed, NULL, 1) != cudaSuccess,
		"an edge is taken out");
	REQUIRE(cudaGraphInstantiate(&second, graph, 0) != cudaSuccess, "instantiated twice");
	REQUIRE(cudaGraphAddChildGraphNode(&children, other, NULL, 0, graph) != cudaSuccess,
		"a child");
	(void)cudaGetLastError();
	/* After the first instance is destroyed, there may be another. */
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	run(exec);
	expect(out, 100, 1, "instantiated anew");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphDestroy(other));
	CHECK(cudaFree(plain));
}

/* The memory exists after the launch, until it is freed in one of three ways. */
static void left_behind(void)
{
	cudaGraphNodeParams any = {};
	cudaGraphExec_t exec, free_exec;
	cudaGraphNode_t node, freed;
	cudaGraph_t graph, free_graph;
	void *p;

	any.type = cudaGraphNodeTypeMemAlloc;
	any.alloc.poolProps = on_device(BYTES).poolProps;
	any.alloc.bytesize = BYTES;
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &any));
	p = any.alloc.dptr;
	REQUIRE(p, "no address");
	add_count_up(graph, node, p, 7);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	any = {};
	any.type = cudaGraphNodeTypeMemFree;
	any.free.dptr = p;
	CHECK(cudaGraphCreate(&free_graph, 0));
	CHECK(cudaGraphAddNode(&freed, free_graph, NULL, NULL, 0, &any));
	/* Another graph frees the memory, so this graph cannot free it as well. */
	EXPECT(cudaGraphAddMemFreeNode(&freed, graph, &node, 1, p), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaGraphInstantiate(&free_exec, free_graph, 0));
	for (int i = 0; i < 6; i++) {
		CHECK(cudaGraphLaunch(exec, stream));
		add<<<(N + 127) / 128, 128, 0, stream>>>((int *)p, (int *)p, N);
		CHECK_LAUNCH();
		CHECK(cudaMemcpyAsync(out, p, BYTES, cudaMemcpyDeviceToHost, stream));
		/* The memory is still allocated. */
		EXPECT(cudaGraphLaunch(exec, stream), cudaErrorInvalidValue);
		(void)cudaGetLastError();
		if (i % 3 == 0)
			CHECK(cudaFreeAsync(p, stream));
		else if (i % 3 == 1)
			CHECK(cudaGraphLaunch(free_exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		if (i % 3 == 2)
			CHECK(cudaFree(p));
		expect(out, 14, 2, "behind the graph");
	}
	/* The memory stays when the graph is destroyed. */
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphExecDestroy(free_exec));
	CHECK(cudaGraphDestroy(free_graph));
	CHECK(cudaMemcpyAsync(out, p, BYTES, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaFreeAsync(p, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect(out, 7, 1, "without the graph");
}

static void freed_by_launch(void)
{
	cudaMemAllocNodeParams m = on_device(BYTES);
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &m));
	add_copy(graph, add_count_up(graph, node, m.dptr, 30), m.dptr);
	CHECK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
	for (int i = 0; i < 4; i++) {
		run(exec);
		expect(out, 30, 1, "freed by the launch");
	}
	CHECK(cudaFreeAsync(m.dptr, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* As in a program that does not use nodes. */
static void captured(void)
{
	cudaGraphExec_t exec;
	cudaMemPool_t pool;
	cudaGraph_t graph;
	int *a, *b;
	size_t count;

	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(cudaMallocAsync(&a, BYTES, stream));
	CHECK(cudaMallocFromPoolAsync(&b, BYTES, pool, stream));
	count_up<<<(N + 127) / 128, 128, 0, stream>>>(a, 1, N);
	count_up<<<(N + 127) / 128, 128, 0, stream>>>(b, 2, N);
	add<<<(N + 127) / 128, 128, 0, stream>>>(a, b, N);
	CHECK_LAUNCH();
	CHECK(cudaFreeAsync(b, stream));
	CHECK(cudaMemcpyAsync(out, a, BYTES, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaFreeAsync(a, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	REQUIRE(a && b && a != b, "%p, %p", (void *)a, (void *)b);
	CHECK(cudaGraphGetNodes(graph, NULL, &count));
	REQUIRE(count == 8, "%zu nodes", count);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 5; i++) {
		run(exec);
		expect(out, 3, 2, "captured");
	}
	/* The program destroys the graph without waiting for the launch. */
	memset(out, 0, BYTES);
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamSynchronize(stream));
	expect(out, 3, 2, "destroyed behind its launch");
}

static void *add_alloc(cudaGraph_t graph, cudaGraphNode_t behind, size_t bytes,
		       cudaGraphNode_t *node)
{
	cudaMemAllocNodeParams m = on_device(bytes);

	CHECK(cudaGraphAddMemAllocNode(node, graph, &behind, behind ? 1 : 0, &m));
	REQUIRE(m.dptr, "no address");
	return m.dptr;
}

/*
 * Memory that comes after the free of other memory of its graph has its address. Memory that does
 * not has another.
 */
static void one_address(void)
{
	const size_t bytes = 64 << 20;
	cudaGraphNode_t a, b, c, d, used, freed, last;
	void *first, *second, *beside, *larger;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	uint64_t footprint;

	CHECK(cudaGraphCreate(&graph, 0));
	first = add_alloc(graph, NULL, bytes, &a);
	used = add_copy(graph, add_count_up(graph, a, first, 500), first);
	CHECK(cudaGraphAddMemFreeNode(&freed, graph, &used, 1, first));
	beside = add_alloc(graph, used, 1 << 20, &c);
	REQUIRE(beside != first, "memory that is not freed before");
	second = add_alloc(graph, freed, bytes, &b);
	REQUIRE(second == first, "the memory is not used again");
	last = add_copy(graph, add_count_up(graph, b, second, 600), second);
	CHECK(cudaGraphAddMemFreeNode(&freed, graph, &last, 1, second));
	EXPECT(cudaGraphAddMemFreeNode(&last, graph, &freed, 1, second), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	larger = add_alloc(graph, freed, 2 * bytes, &d);
	last = add_count_up(graph, d, larger, 0);
	CHECK(cudaGraphAddMemFreeNode(&freed, graph, &last, 1, larger));
	CHECK(cudaGraphAddMemFreeNode(&freed, graph, &c, 1, beside));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		run(exec);
		expect(out, 600, 1, "the second memory");
	}
	CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &footprint));
	REQUIRE(footprint >= 2 * bytes && footprint < 4 * bytes, "%zu bytes", (size_t)footprint);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static size_t get(cudaGraphMemAttributeType attr)
{
	uint64_t value = ~0ull;

	CHECK(cudaDeviceGetGraphMemAttribute(0, attr, &value));
	return value;
}

/* Graph after graph: each uses memory that earlier graphs had. */
static void one_after_another(void)
{
	size_t free_bytes, total;
	uint64_t zero = 0, one = 1;

	CHECK(cudaMemGetInfo(&free_bytes, &total));
	const size_t piece = free_bytes / 3 < (size_t)1 << 30 ? free_bytes / 3 : (size_t)1 << 30;

	for (int i = 0; i < 8; i++) {
		cudaMemAllocNodeParams m = on_device(piece);
		cudaMemsetParams set = {};
		cudaGraphNode_t node, last;
		cudaGraphExec_t exec;
		cudaGraph_t graph;
		char *end;

		CHECK(cudaGraphCreate(&graph, 0));
		CHECK(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &m));
		end = (char *)m.dptr + piece - 16;
		set.dst = end;
		set.value = i + 1;
		set.elementSize = 1;
		set.width = 16;
		set.height = 1;
		CHECK(cudaGraphAddMemsetNode(&last, graph, &node, 1, &set));
		CHECK(cudaGraphAddMemcpyNode1D(&node, graph, &last, 1, out, end, 16,
					       cudaMemcpyDeviceToHost));
		CHECK(cudaGraphAddMemFreeNode(&last, graph, &node, 1, m.dptr));
		CHECK(cudaGraphInstantiate(&exec, graph, 0));
		run(exec);
		REQUIRE(out[0] == 0x01010101 * (i + 1), "%x", out[0]);
		REQUIRE(get(cudaGraphMemAttrUsedMemCurrent) >= piece, "%zu used",
			get(cudaGraphMemAttrUsedMemCurrent));
		REQUIRE(get(cudaGraphMemAttrReservedMemCurrent) >= piece, "%zu reserved",
			get(cudaGraphMemAttrReservedMemCurrent));
		CHECK(cudaGraphExecDestroy(exec));
		CHECK(cudaGraphDestroy(graph));
	}
	CHECK(cudaDeviceSynchronize());
	REQUIRE(get(cudaGraphMemAttrUsedMemHigh) >= piece, "most used");
	REQUIRE(get(cudaGraphMemAttrReservedMemHigh) >= piece, "most reserved");
	CHECK(cudaDeviceGraphMemTrim(0));
	REQUIRE(get(cudaGraphMemAttrUsedMemCurrent) == 0, "%zu used",
		get(cudaGraphMemAttrUsedMemCurrent));
	REQUIRE(get(cudaGraphMemAttrReservedMemCurrent) == 0, "%zu reserved",
		get(cudaGraphMemAttrReservedMemCurrent));
	CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
	CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &zero));
	REQUIRE(get(cudaGraphMemAttrUsedMemHigh) == 0, "most used since then");
	REQUIRE(get(cudaGraphMemAttrReservedMemHigh) == 0, "most reserved since then");
	REQUIRE(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &one) != cudaSuccess,
		"set to one");
	REQUIRE(cudaDeviceGetGraphMemAttribute(1000, cudaGraphMemAttrUsedMemHigh, &one) !=
			cudaSuccess,
		"device 1000");
	(void)cudaGetLastError();
}

int main(void)
{
	CHECK(cudaMallocHost(&out, BYTES));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	inside();
	left_behind();
	freed_by_launch();
	captured();
	one_address();
	one_after_another();
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFreeHost(out));
	return verified("graphs allocate and free, and nothing is left");
}

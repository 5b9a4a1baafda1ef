// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Graphs made node by node. Every type of node does its work in the order of its edges, in
 * branches that join again, as often as the graph is launched, and with parameters that change
 * in between. Queries return what was put in. Wrong calls are refused.
 */
#include <vector>

#include "check.h"

#define N     10000
#define BYTES (N * sizeof(int))

__constant__ int factor = 1;
__device__ int total;

__global__ void scale(int *p, int by, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = p[i] * by * factor;
}

__global__ void join(int *to, const int *a, const int *b, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] = a[i] + b[i];
}

static int *in, *out, *a, *b, *c;
static int host_sum, host_calls;

static void CUDART_CB sum_up(void *data)
{
	const int *p = (const int *)data;

	host_calls++;
	host_sum = 0;
	for (int i = 0; i < N; i++)
		host_sum += p[i];
}

static cudaKernelNodeParams kernel(void *func, void **args)
{
	cudaKernelNodeParams k = {};

	k.func = func;
	k.gridDim = dim3((N + 255) / 256);
	k.blockDim = dim3(256);
	k.kernelParams = args;
	return k;
}

/*  copy in to a ── a * 3 ──┐
 *                          join ── copy out ── sum up
 *  set b to 7 ──── b * 2 ──┘                            */
struct diamond {
	cudaGraph_t graph;
	cudaGraphNode_t up, times3, set, times2, joined, down, sum;
};

static diamond make_diamond()
{
	diamond d = {};
	int three = 3, two = 2, n = N;
	void *args3[] = {&a, &three, &n}, *args2[] = {&b, &two, &n}, *args_join[] = {&c, &a, &b, &n};
	cudaKernelNodeParams k3 = kernel((void *)scale, args3), k2 = kernel((void *)scale, args2);
	cudaKernelNodeParams kj = kernel((void *)join, args_join);
	cudaMemsetParams m = {};
	cudaHostNodeParams h = {sum_up, out};

	m.dst = b;
	m.value = 7;
	m.elementSize = 4;
	m.width = N;
	m.height = 1;
	CHECK(cudaGraphCreate(&d.graph, 0));
	CHECK(cudaGraphAddMemcpyNode1D(&d.up, d.graph, NULL, 0, a, in, BYTES,
				       cudaMemcpyHostToDevice));
	CHECK(cudaGraphAddKernelNode(&d.times3, d.graph, &d.up, 1, &k3));
	CHECK(cudaGraphAddMemsetNode(&d.set, d.graph, NULL, 0, &m));
	CHECK(cudaGraphAddKernelNode(&d.times2, d.graph, &d.set, 1, &k2));
	cudaGraphNode_t both[] = {d.times3, d.times2};
	CHECK(cudaGraphAddKernelNode(&d.joined, d.graph, both, 2, &kj));
	CHECK(cudaGraphAddMemcpyNode1D(&d.down, d.graph, &d.joined, 1, out, c, BYTES,
				       cudaMemcpyDeviceToHost));
	CHECK(cudaGraphAddHostNode(&d.sum, d.graph, &d.down, 1, &h));
	return d;
}

static void expect(int by, int set, const char *what)
{
	int sum = 0;

	for (int i = 0; i < N; i++) {
		int want = in[i] * by + set;

		REQUIRE(out[i] == want, "%s: element %d is %d, not %d", what, i, out[i], want);
		sum += want;
	}
	REQUIRE(host_sum == sum, "%s: the host node summed to %d, not %d", what, host_sum, sum);
}

static void asking(const diamond &d)
{
	cudaGraphNode_t nodes[10], from[10], to[10];
	cudaGraphNodeType type;
	cudaKernelNodeParams k;
	cudaMemsetParams m;
	cudaHostNodeParams h;
	cudaMemcpy3DParms p;
	size_t count = 0;

	CHECK(cudaGraphGetNodes(d.graph, NULL, &count));
	REQUIRE(count == 7, "%zu nodes", count);
	count = 10;
	CHECK(cudaGraphGetNodes(d.graph, nodes, &count));
	REQUIRE(count == 7, "%zu nodes", count);
	count = 10;
	CHECK(cudaGraphGetRootNodes(d.graph, nodes, &count));
	REQUIRE(count == 2, "%zu roots", count);
	count = 10;
	CHECK(cudaGraphGetEdges(d.graph, from, to, NULL, &count));
	REQUIRE(count == 6, "%zu edges", count);
	count = 10;
	CHECK(cudaGraphNodeGetDependencies(d.joined, nodes, NULL, &count));
	REQUIRE(count == 2, "%zu dependencies", count);
	count = 10;
	CHECK(cudaGraphNodeGetDependentNodes(d.joined, nodes, NULL, &count));
	REQUIRE(count == 1 && nodes[0] == d.down, "%zu dependents", count);
	CHECK(cudaGraphNodeGetType(d.sum, &type));
	REQUIRE(type == cudaGraphNodeTypeHost, "type %d", type);
	CHECK(cudaGraphKernelNodeGetParams(d.times3, &k));
	REQUIRE(k.blockDim.x == 256 && *(int *)k.kernelParams[1] == 3, "block %u, factor %d",
		k.blockDim.x, *(int *)k.kernelParams[1]);
	CHECK(cudaGraphMemsetNodeGetParams(d.set, &m));
	REQUIRE(m.value == 7 && m.elementSize == 4, "value %u", m.value);
	CHECK(cudaGraphHostNodeGetParams(d.sum, &h));
	REQUIRE(h.fn == sum_up && h.userData == out, "another host function");
	CHECK(cudaGraphMemcpyNodeGetParams(d.up, &p));
	REQUIRE(p.srcPtr.ptr == in && p.dstPtr.ptr == a, "another copy");
}

static void launching(const diamond &d, cudaStream_t stream)
{
	cudaGraphExec_t exec;
	unsigned int enabled;

	CHECK(cudaGraphInstantiate(&exec, d.graph, 0));
	CHECK(cudaGraphUpload(exec, stream));
	for (int round = 1; round <= 5; round++) {
		for (int i = 0; i < N; i++)
			in[i] = i + round;
		memset(out, 0, BYTES);
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		expect(3, 14, "launch");
		REQUIRE(host_calls == round, "%d host calls", host_calls);
	}
	/* Many launches in a row, and one in another stream behind them. */
	for (int i = 0; i < 20; i++)
		CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphLaunch(exec, cudaStreamLegacy));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(host_calls == 26, "%d host calls", host_calls);
	expect(3, 14, "many launches");

	/* Other arguments, other memsets, and a disabled node. */
	int five = 5, n = N;
	void *args[] = {&a, &five, &n};
	cudaKernelNodeParams k = kernel((void *)scale, args);
	cudaMemsetParams m;

	CHECK(cudaGraphExecKernelNodeSetParams(exec, d.times3, &k));
	CHECK(cudaGraphMemsetNodeGetParams(d.set, &m));
	m.value = 100;
	CHECK(cudaGraphExecMemsetNodeSetParams(exec, d.set, &m));
	CHECK(cudaGraphNodeSetEnabled(exec, d.times2, 0));
	CHECK(cudaGraphNodeGetEnabled(exec, d.times2, &enabled));
	REQUIRE(!enabled, "enabled");
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect(5, 100, "changed");
	EXPECT(cudaGraphNodeSetEnabled(exec, d.sum, 0), cudaErrorInvalidValue);

	/* Restores everything from a graph of the same shape. */
	cudaGraphExecUpdateResultInfo info;
	cudaGraph_t other;
	cudaGraphNode_t extra;

	CHECK(cudaGraphNodeSetEnabled(exec, d.times2, 1));
	CHECK(cudaGraphExecUpdate(exec, d.graph, &info));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect(3, 14, "updated");
	CHECK(cudaGraphClone(&other, d.graph));
	CHECK(cudaGraphAddEmptyNode(&extra, other, NULL, 0));
	EXPECT(cudaGraphExecUpdate(exec, other, &info), cudaErrorGraphExecUpdateFailure);
	REQUIRE(info.result == cudaGraphExecUpdateErrorTopologyChanged, "result %d", info.result);
	CHECK(cudaGraphDestroy(other));
	CHECK(cudaGraphExecDestroy(exec));
}

/* A clone is independent, and its nodes can be found by the original nodes. */
static void cloning(const diamond &d, cudaStream_t stream)
{
	cudaGraph_t clone;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaMemsetParams m;

	CHECK(cudaGraphClone(&clone, d.graph));
	CHECK(cudaGraphNodeFindInClone(&node, d.set, clone));
	REQUIRE(node != d.set, "the same node");
	CHECK(cudaGraphMemsetNodeGetParams(node, &m));
	m.value = 1;
	CHECK(cudaGraphMemsetNodeSetParams(node, &m));
	CHECK(cudaGraphInstantiateWithFlags(&exec, clone, 0));
	CHECK(cudaGraphDestroy(clone));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect(3, 2, "clone");
	CHECK(cudaGraphExecDestroy(exec));
}

/* A graph as a node of another graph, between variables and events. */
static void nesting(const diamond &d, cudaStream_t stream)
{
	cudaGraph_t graph, child;
	cudaGraphNode_t to_symbol, inner, from_symbol, recorded, empty, found;
	cudaGraphExec_t exec;
	cudaEvent_t event, got;
	cudaGraphInstantiateParams params = {};
	static int two = 2, back;
	size_t count = 0;

	CHECK(cudaEventCreate(&event));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemcpyNodeToSymbol(&to_symbol, graph, NULL, 0, factor, &two, sizeof(two),
					     0, cudaMemcpyHostToDevice));
	CHECK(cudaGraphAddChildGraphNode(&inner, graph, &to_symbol, 1, d.graph));
	CHECK(cudaGraphAddMemcpyNodeFromSymbol(&from_symbol, graph, &inner, 1, &back, factor,
					       sizeof(back), 0, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphAddEmptyNode(&empty, graph, &from_symbol, 1));
	CHECK(cudaGraphAddEventRecordNode(&recorded, graph, &empty, 1, event));
	CHECK(cudaGraphEventRecordNodeGetEvent(recorded, &got));
	REQUIRE(got == event, "another event");
	CHECK(cudaGraphChildGraphNodeGetGraph(inner, &child));
	CHECK(cudaGraphGetNodes(child, NULL, &count));
	REQUIRE(count == 7, "%zu nodes in the child", count);
	CHECK(cudaGraphNodeFindInClone(&found, d.times3, child));
	CHECK(cudaGraphInstantiateWithParams(&exec, graph, &params));
	REQUIRE(params.result_out == cudaGraphInstantiateSuccess, "result %d", params.result_out);
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaEventSynchronize(event));
	REQUIRE(back == 2, "factor %d", back);
	expect(6, 28, "child");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaEventDestroy(event));
	two = 1;
	CHECK(cudaMemcpyToSymbol(factor, &two, sizeof(two)));
}

static int destroyed;

static void CUDART_CB destroy(void *data)
{
	destroyed += *(int *)data;
}

static void objects(const diamond &d)
{
	static int one = 1;
	cudaUserObject_t object;
	cudaGraphExec_t exec;
	cudaGraph_t clone;

	CHECK(cudaUserObjectCreate(&object, &one, destroy, 1, cudaUserObjectNoDestructorSync));
	CHECK(cudaUserObjectRetain(object, 2));
	CHECK(cudaUserObjectRelease(object, 2));
	CHECK(cudaGraphClone(&clone, d.graph));
	CHECK(cudaGraphRetainUserObject(clone, object, 1, cudaGraphUserObjectMove));
	CHECK(cudaGraphInstantiate(&exec, clone, 0));
	CHECK(cudaGraphDestroy(clone));
	REQUIRE(!destroyed, "destroyed while it is used");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < 1000 && !destroyed; i++) {
		struct timespec ms = {0, 1000000};

		nanosleep(&ms, NULL);
	}
	REQUIRE(destroyed == 1, "destroyed %d times", destroyed);
}

static void wrong(const diamond &d)
{
	cudaGraph_t other;
	cudaGraphNode_t node, twice[2] = {d.up, d.up};
	cudaGraphExec_t exec;
	cudaMemsetParams m = {};

	CHECK(cudaGraphCreate(&other, 0));
	EXPECT(cudaGraphAddEmptyNode(&node, other, &d.up, 1), cudaErrorInvalidValue);
	EXPECT(cudaGraphAddEmptyNode(&node, d.graph, twice, 2), cudaErrorInvalidValue);
	EXPECT(cudaGraphAddMemsetNode(&node, other, NULL, 0, &m), cudaErrorInvalidValue);
	EXPECT(cudaGraphAddDependencies(d.graph, &d.up, &d.times3, NULL, 1),
	       cudaErrorInvalidValue);
	EXPECT(cudaGraphRemoveDependencies(d.graph, &d.up, &d.times2, NULL, 1),
	       cudaErrorInvalidValue);
	EXPECT(cudaGraphKernelNodeGetParams(d.up, NULL), cudaErrorInvalidValue);
	EXPECT(cudaGraphInstantiate(&exec, other, 0x4000), cudaErrorInvalidValue);
	/* Edges are added and removed. */
	CHECK(cudaGraphAddEmptyNode(&node, other, NULL, 0));
	CHECK(cudaGraphDestroyNode(node));
	CHECK(cudaGraphRemoveDependencies(d.graph, &d.up, &d.times3, NULL, 1));
	CHECK(cudaGraphAddDependencies(d.graph, &d.up, &d.times3, NULL, 1));
	CHECK(cudaGraphDestroy(other));
}

static void dot(const diamond &d)
{
	char path[] = "/tmp/qcuda-graph-XXXXXX", text[65536];
	int fd = mkstemp(path);
	FILE *f;
	size_t n;

	REQUIRE(fd >= 0, "mkstemp");
	CHECK(cudaGraphDebugDotPrint(d.graph, path, 0));
	f = fopen(path, "r");
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	fclose(f);
	remove(path);
	REQUIRE(strstr(text, "digraph") && strstr(text, "->") && strstr(text, "scale"), "%s", text);
}

int main()
{
	cudaStream_t stream;

	CHECK(cudaMallocHost(&in, BYTES));
	CHECK(cudaMallocHost(&out, BYTES));
	CHECK(cudaMalloc(&a, BYTES));
	CHECK(cudaMalloc(&b, BYTES));
	CHECK(cudaMalloc(&c, BYTES));
	CHECK(cudaStreamCreate(&stream));
	for (int i = 0; i < N; i++)
		in[i] = i;

	diamond d = make_diamond();

	wrong(d);
	asking(d);
	launching(d, stream);
	cloning(d, stream);
	nesting(d, stream);
	objects(d);
	dot(d);
	CHECK(cudaGraphDestroy(d.graph));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	CHECK(cudaFree(c));
	CHECK(cudaFreeHost(in));
	CHECK(cudaFreeHost(out));
	return verified("graphs of 7 nodes, launched %d times, cloned, nested, changed",
			host_calls);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Conditional nodes of graphs: if, if and else, while and switch; where their values come from
 * (the handle's default, a kernel before the node, with and without an edge, a kernel in its body);
 * what a body may hold; one node in another's body; a copy from pinned memory before such a node;
 * and what a graph with such a node cannot be used for.
 */
#include "check.h"
#include "ours.h"

#define N 1000

static cudaStream_t stream;
static int *count; /* on the device */

__global__ void add_to(int *p, int n)
{
	*p += n;
}

__global__ void set(cudaGraphConditionalHandle handle, unsigned int value)
{
	cudaGraphSetConditional(handle, value);
}

/* Counts down; the remaining count is the value. */
__global__ void count_down(cudaGraphConditionalHandle handle, int *left)
{
	cudaGraphSetConditional(handle, --*left);
}

__global__ void set_from(cudaGraphConditionalHandle handle, const int *value)
{
	cudaGraphSetConditional(handle, *value);
}

__global__ void set_if_even(cudaGraphConditionalHandle handle, const int *value)
{
	cudaGraphSetConditional(handle, *value % 2 == 0);
}

__global__ void scale(int *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = p[i] * 2 + 1;
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, cudaGraphNode_t behind, const void *func,
				  void **args)
{
	cudaKernelNodeParams k = {};
	cudaGraphNode_t node;

	k.func = (void *)func;
	k.gridDim = dim3(1);
	k.blockDim = dim3(1);
	k.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&node, graph, &behind, behind ? 1 : 0, &k));
	return node;
}

static cudaGraphNode_t add_add(cudaGraph_t graph, cudaGraphNode_t behind, int *p, int n)
{
	void *args[] = {&p, &n};

	return add_kernel(graph, behind, (const void *)add_to, args);
}

static cudaGraphNode_t add_set(cudaGraph_t graph, cudaGraphNode_t behind,
			       cudaGraphConditionalHandle handle, unsigned int value)
{
	void *args[] = {&handle, &value};

	return add_kernel(graph, behind, (const void *)set, args);
}

static cudaGraphNodeParams params(cudaGraphConditionalHandle handle,
				  enum cudaGraphConditionalNodeType type, unsigned int size)
{
	cudaGraphNodeParams p = {};

	p.type = cudaGraphNodeTypeConditional;
	p.conditional.handle = handle;
	p.conditional.type = type;
	p.conditional.size = size;
	return p;
}

static cudaGraphNode_t add_conditional(cudaGraph_t graph, cudaGraphNode_t behind,
				       cudaGraphConditionalHandle handle,
				       enum cudaGraphConditionalNodeType type, unsigned int size,
				       cudaGraph_t *bodies)
{
	cudaGraphNodeParams p = params(handle, type, size);
	cudaGraphNodeType is;
	cudaGraphNode_t node;

	CHECK(cudaGraphAddNode(&node, graph, &behind, NULL, behind ? 1 : 0, &p));
	CHECK(cudaGraphNodeGetType(node, &is));
	REQUIRE(is == cudaGraphNodeTypeConditional, "the node has type %d", is);
	memcpy(bodies, p.conditional.phGraph_out, size * sizeof(*bodies));
	return node;
}

static int read_count(void)
{
	int n;

	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(&n, count, sizeof(n), cudaMemcpyDeviceToHost));
	return n;
}

static void zero(void)
{
	CHECK(cudaMemset(count, 0, sizeof(*count)));
	CHECK(cudaDeviceSynchronize());
}

static void expect(const char *what, int want)
{
	int got = read_count();

	printf("%s: %d\n", what, got);
	REQUIRE(got == want, "%s: %d, not %d", what, got, want);
}

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
	cudaGraphExec_t exec;

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	return exec;
}

static void finish(cudaGraphExec_t exec, cudaGraph_t graph)
{
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* The default is valid at each launch, whatever the launch before has set. */
static void by_default(void)
{
	for (unsigned int first = 0; first < 2; first++) {
		cudaGraphConditionalHandle handle;
		cudaGraph_t graph, body[2];
		cudaGraphNode_t node;
		cudaGraphExec_t exec;

		zero();
		CHECK(cudaGraphCreate(&graph, 0));
		CHECK(cudaGraphConditionalHandleCreate(&handle, graph, first,
						       cudaGraphCondAssignDefault));
		node = add_add(graph, NULL, count, 1);
		node = add_conditional(graph, node, handle, cudaGraphCondTypeIf, 2, body);
		add_add(body[0], NULL, count, 10);
		add_add(body[1], NULL, count, 100);
		node = add_add(graph, node, count, 1000);
		add_set(graph, node, handle, !first);
		exec = instantiate(graph);
		for (int i = 0; i < 3; i++)
			CHECK(cudaGraphLaunch(exec, stream));
		expect(first ? "default: if" : "default: else", first ? 3033 : 3303);
		finish(exec, graph);
	}
}

/* A kernel before the node decides. Without a second body, "else" does nothing. */
static void by_kernel(void)
{
	cudaGraphConditionalHandle handle;
	cudaGraph_t graph, body;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	int *value;

	CHECK(cudaMallocHost(&value, sizeof(*value)));
	zero();
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
	{
		void *args[] = {&handle, &value};

		node = add_kernel(graph, NULL, (const void *)set_from, args);
	}
	node = add_conditional(graph, node, handle, cudaGraphCondTypeIf, 1, &body);
	add_add(body, NULL, count, 1);
	exec = instantiate(graph);
	CHECK(cudaGraphDestroy(graph));
	for (int i = 0; i < 5; i++) {
		*value = i % 2 ? 7 * i : 0;
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
	}
	expect("set by a kernel", 2);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaFreeHost(value));
}

/*
 * A loop whose body is captured: kernels, a memset, copies down, up and on the device, a graph.
 */
static void loop(void)
{
	cudaGraphConditionalHandle handle;
	cudaGraph_t graph, body, captured, child;
	int *data, *other, *left, *host, want = 5;
	cudaGraphNode_t node, inner;
	cudaGraphExec_t exec;

	CHECK(cudaMalloc(&data, N * sizeof(int)));
	CHECK(cudaMalloc(&other, N * sizeof(int)));
	CHECK(cudaMalloc(&left, sizeof(int)));
	CHECK(cudaMallocHost(&host, 2 * N * sizeof(int)));
	for (int i = 0; i < N; i++)
		host[i] = i;
	CHECK(cudaMemcpy(data, host, N * sizeof(int), cudaMemcpyHostToDevice));
	zero();

	CHECK(cudaGraphCreate(&child, 0));
	node = add_add(child, NULL, count, 1);
	add_add(child, node, count, 2);

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
	add_conditional(graph, NULL, handle, cudaGraphCondTypeWhile, 1, &body);
	CHECK(cudaStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0,
					    cudaStreamCaptureModeGlobal));
	scale<<<(N + 127) / 128, 128, 0, stream>>>(data, N);
	CHECK_LAUNCH();
	CHECK(cudaMemcpyAsync(other, data, N * sizeof(int), cudaMemcpyDeviceToDevice, stream));
	CHECK(cudaMemsetAsync(data, 0, sizeof(int), stream));
	CHECK(cudaMemcpyAsync(host + N, other, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaMemcpyAsync(data + 1, host + N + 1, sizeof(int), cudaMemcpyHostToDevice, stream));
	count_down<<<1, 1, 0, stream>>>(handle, left);
	CHECK_LAUNCH();
	CHECK(cudaStreamEndCapture(stream, &captured));
	REQUIRE(captured == body, "the capture went elsewhere");
	CHECK(cudaGraphAddChildGraphNode(&inner, body, NULL, 0, child));
	CHECK(cudaGraphDestroy(child));
	exec = instantiate(graph);

	for (int launch = 0; launch < 3; launch++) {
		CHECK(cudaMemcpy(left, &want, sizeof(int), cudaMemcpyHostToDevice));
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		for (int i = 0; i < N; i++)
			for (int k = 0; k < want; k++)
				host[i] = (i || !k ? host[i] : 0) * 2 + 1;
		for (int i = 0; i < N; i++)
			REQUIRE(host[N + i] == host[i], "launch %d: element %d is %d, not %d",
				launch, i, host[N + i], host[i]);
		host[0] = 0;
		want += 2;
	}
	expect("rounds of a loop, times 3", 3 * (5 + 7 + 9));
	finish(exec, graph);
	CHECK(cudaFree(data));
	CHECK(cudaFree(other));
	CHECK(cudaFree(left));
	CHECK(cudaFreeHost(host));
}

/* Each value has its own body. Values beyond the last body do nothing. */
static void by_number(void)
{
	cudaGraphConditionalHandle handle;
	cudaGraph_t graph, body[3];
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	int *value;

	CHECK(cudaMallocHost(&value, sizeof(*value)));
	zero();
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
	{
		void *args[] = {&handle, &value};

		node = add_kernel(graph, NULL, (const void *)set_from, args);
	}
	add_conditional(graph, node, handle, cudaGraphCondTypeSwitch, 3, body);
	add_add(body[0], NULL, count, 1);
	add_add(body[2], NULL, count, 100);
	exec = instantiate(graph);
	for (int i = 0; i < 6; i++) {
		*value = i < 5 ? i : -1;
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
	}
	expect("switch", 101);
	finish(exec, graph);
	CHECK(cudaFreeHost(value));
}

/* A loop with an if node in it: it counts from 10 to 1 and adds up the even numbers. */
static void nested(void)
{
	cudaGraphConditionalHandle outer, inner;
	cudaGraph_t graph, body, taken;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	int *left, ten = 10;

	CHECK(cudaMalloc(&left, sizeof(int)));
	zero();
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphConditionalHandleCreate(&outer, graph, 1, cudaGraphCondAssignDefault));
	add_conditional(graph, NULL, outer, cudaGraphCondTypeWhile, 1, &body);
	CHECK(cudaGraphConditionalHandleCreate(&inner, body, 0, 0));
	{
		void *args[] = {&inner, &left};

		node = add_kernel(body, NULL, (const void *)set_if_even, args);
	}
	node = add_conditional(body, node, inner, cudaGraphCondTypeIf, 1, &taken);
	add_add(taken, NULL, count, 1);
	{
		void *args[] = {&outer, &left};

		add_kernel(body, node, (const void *)count_down, args);
	}
	exec = instantiate(graph);
	for (int i = 0; i < 2; i++) {
		CHECK(cudaMemcpy(left, &ten, sizeof(int), cudaMemcpyHostToDevice));
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
	}
	expect("a decision in a loop", 10);
	finish(exec, graph);
	CHECK(cudaFree(left));
}

/*
 * The nodes around the conditional node can be changed in an instance, and the node still
 * decides.
 */
static void changed(void)
{
	cudaGraphConditionalHandle handle;
	cudaKernelNodeParams k = {};
	cudaGraph_t graph, body;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	int thousand = 1000;
	void *args[] = {&count, &thousand};

	zero();
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
	node = add_add(graph, NULL, count, 1);
	add_conditional(graph, node, handle, cudaGraphCondTypeIf, 1, &body);
	add_add(body, NULL, count, 10);
	exec = instantiate(graph);
	CHECK(cudaGraphLaunch(exec, stream));
	k.func = (void *)add_to;
	k.gridDim = dim3(1);
	k.blockDim = dim3(1);
	k.kernelParams = args;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &k));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphNodeSetEnabled(exec, node, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	expect("changed on the way", 11 + 2 * 1010 + 10);
	finish(exec, graph);
}

/* Two conditional nodes in branches of one graph. The branches join again. */
static void branches(void)
{
	cudaGraphConditionalHandle handle[2];
	cudaGraphNode_t node[2], both;
	cudaGraph_t graph, body[2];
	cudaGraphExec_t exec;
	int *part, sum;

	CHECK(cudaMalloc(&part, 2 * sizeof(int)));
	CHECK(cudaMemset(part, 0, 2 * sizeof(int)));
	zero();
	CHECK(cudaGraphCreate(&graph, 0));
	for (int i = 0; i < 2; i++) {
		CHECK(cudaGraphConditionalHandleCreate(&handle[i], graph, 0, 0));
		node[i] = add_set(graph, NULL, handle[i], 1);
		node[i] = add_conditional(graph, node[i], handle[i], cudaGraphCondTypeIf, 1,
					  &body[i]);
		add_add(body[i], NULL, part + i, 1 + i);
	}
	CHECK(cudaGraphAddEmptyNode(&both, graph, node, 2));
	add_add(graph, both, count, 1);
	exec = instantiate(graph);
	for (int i = 0; i < 4; i++)
		CHECK(cudaGraphLaunch(exec, stream));
	expect("behind two branches", 4);
	CHECK(cudaMemcpy(&sum, part + 1, sizeof(sum), cudaMemcpyDeviceToHost));
	REQUIRE(sum == 8, "%d in the second branch", sum);
	finish(exec, graph);
	CHECK(cudaFree(part));
}

/* In the middle of a capture. Meanwhile the body is captured from another stream. */
static void captured(void)
{
	const cudaGraphNode_t *behind;
	const cudaGraphEdgeData *edges;
	cudaStreamCaptureStatus status;
	cudaGraphConditionalHandle handle;
	cudaGraph_t graph, same, body;
	cudaGraphNodeParams p = {};
	cudaStream_t other;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	size_t count_behind;
	int *left, rounds = 4;

	CHECK(cudaMalloc(&left, sizeof(int)));
	CHECK(cudaStreamCreate(&other));
	zero();
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	add_to<<<1, 1, 0, stream>>>(count, 1);
	CHECK_LAUNCH();
	CHECK(cudaStreamGetCaptureInfo(stream, &status, NULL, &graph, &behind, &edges,
				       &count_behind));
	REQUIRE(status == cudaStreamCaptureStatusActive && count_behind == 1, "status %d, %zu",
		status, count_behind);
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
	p = params(handle, cudaGraphCondTypeWhile, 1);
	CHECK(cudaGraphAddNode(&node, graph, behind, edges, count_behind, &p));
	body = p.conditional.phGraph_out[0];
	CHECK(cudaStreamUpdateCaptureDependencies(stream, &node, NULL, 1,
						  cudaStreamSetCaptureDependencies));
	CHECK(cudaStreamBeginCaptureToGraph(other, body, NULL, NULL, 0,
					    cudaStreamCaptureModeThreadLocal));
	add_to<<<1, 1, 0, other>>>(count, 10);
	CHECK_LAUNCH();
	count_down<<<1, 1, 0, other>>>(handle, left);
	CHECK_LAUNCH();
	CHECK(cudaStreamEndCapture(other, &same));
	add_to<<<1, 1, 0, stream>>>(count, 100);
	CHECK_LAUNCH();
	CHECK(cudaStreamEndCapture(stream, &same));
	REQUIRE(same == graph, "another graph");
	exec = instantiate(graph);
	CHECK(cudaMemcpy(left, &rounds, sizeof(int), cudaMemcpyHostToDevice));
	CHECK(cudaGraphLaunch(exec, stream));
	expect("in a capture", 141);
	finish(exec, graph);
	CHECK(cudaStreamDestroy(other));
	CHECK(cudaFree(left));
}

/*
 * A body does what its instance was told last. The graph and other instances of it do not
 * change.
 */
static void updated(void)
{
	int *to = count, ten = 10, hundred = 100, thousand = 1000;
	void *first[] = {&to, &ten}, *second[] = {&to, &hundred}, *third[] = {&to, &thousand};
	cudaGraphExecUpdateResultInfo info;
	cudaGraphConditionalHandle handle;
	cudaKernelNodeParams k = {};
	cudaGraph_t graph, body;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;

	zero();
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
	add_conditional(graph, NULL, handle, cudaGraphCondTypeIf, 1, &body);
	node = add_kernel(body, NULL, (const void *)add_to, first);
	exec = instantiate(graph);
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphKernelNodeGetParams(node, &k));
	k.kernelParams = second;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &k));
	CHECK(cudaGraphLaunch(exec, stream));
	expect("told to an instance", 110);
	/* First with the graph's own parameters, then with changed ones. */
	CHECK(cudaGraphExecUpdate(exec, graph, &info));
	CHECK(cudaGraphLaunch(exec, stream));
	k.kernelParams = third;
	CHECK(cudaGraphKernelNodeSetParams(node, &k));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphExecUpdate(exec, graph, &info));
	CHECK(cudaGraphLaunch(exec, stream));
	expect("updated twice", 1130);
	CHECK(cudaGraphNodeSetEnabled(exec, node, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	expect("disabled", 1130);
	finish(exec, graph);
}

static void refused(const char *what, cudaError_t err)
{
	REQUIRE(err != cudaSuccess, "%s: it works", what);
	REQUIRE(cudaGetLastError() == err, "%s: the last error is another", what);
}

static void wrong(void)
{
	cudaGraphConditionalHandle handle, other;
	cudaGraph_t graph, body, parent, clone;
	cudaGraphExec_t exec, second;
	cudaGraphNodeParams p = {};
	cudaGraphNode_t node;

	CHECK(cudaGraphCreate(&graph, 0));
	EXPECT(cudaGraphConditionalHandleCreate(NULL, graph, 0, 0), cudaErrorInvalidValue);
	EXPECT(cudaGraphConditionalHandleCreate(&handle, NULL, 0, 0), cudaErrorInvalidValue);
	EXPECT(cudaGraphConditionalHandleCreate(&handle, graph, 0, 2), cudaErrorInvalidValue);
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
	p = params(handle, cudaGraphCondTypeIf, 0);
	EXPECT(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &p), cudaErrorInvalidValue);
	p = params(handle, cudaGraphCondTypeIf, 3);
	EXPECT(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &p), cudaErrorInvalidValue);
	p = params(handle, cudaGraphCondTypeWhile, 2);
	EXPECT(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &p), cudaErrorInvalidValue);
	p = params(handle, cudaGraphCondTypeSwitch, 0);
	EXPECT(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &p), cudaErrorInvalidValue);
	p = params(handle, (enum cudaGraphConditionalNodeType)3, 1);
	EXPECT(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &p), cudaErrorInvalidValue);
	add_conditional(graph, NULL, handle, cudaGraphCondTypeIf, 1, &body);
	add_add(body, NULL, count, 1);
	p = params(handle, cudaGraphCondTypeIf, 1);
	refused("a handle for two nodes", cudaGraphAddNode(&node, graph, NULL, NULL, 0, &p));
	refused("a clone", cudaGraphClone(&clone, graph));
	CHECK(cudaGraphCreate(&parent, 0));
	CHECK(cudaGraphConditionalHandleCreate(&other, parent, 0, 0));
	p = params(other, cudaGraphCondTypeIf, 1);
	refused("another graph's handle", cudaGraphAddNode(&node, graph, NULL, NULL, 0, &p));
	refused("a child", cudaGraphAddChildGraphNode(&node, parent, NULL, 0, graph));
	CHECK(cudaGraphDestroy(parent));
	exec = instantiate(graph);
	refused("a second instance", cudaGraphInstantiate(&second, graph, 0));
	CHECK(cudaGraphExecDestroy(exec));
	zero();
	exec = instantiate(graph);
	CHECK(cudaGraphLaunch(exec, stream));
	expect("instantiated again", 1);
	finish(exec, graph);
}

/* A copy from pinned memory before such a node, whatever the program said when it pinned it. */
static void from_pinned(void)
{
	static const unsigned int flags[] = {0, cudaHostAllocPortable, cudaHostAllocMapped,
					     cudaHostAllocWriteCombined};
	cudaGraphConditionalHandle handle;
	cudaGraphNode_t copy;
	cudaGraph_t graph, body;
	cudaGraphExec_t exec;
	size_t i;
	int *host;

	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		CHECK(cudaHostAlloc((void **)&host, 1 << 20, flags[i]));
		*host = 5;
		CHECK(cudaGraphCreate(&graph, 0));
		CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, NULL, 0, count, host, sizeof(*host),
					       cudaMemcpyHostToDevice));
		CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1,
						       cudaGraphCondAssignDefault));
		add_conditional(graph, copy, handle, cudaGraphCondTypeIf, 1, &body);
		add_add(body, NULL, count, 1);
		exec = instantiate(graph);
		CHECK(cudaGraphLaunch(exec, stream));
		expect("from pinned memory", 6);
		finish(exec, graph);
		CHECK(cudaFreeHost(host));
	}
}

/* Ours begins nodes without edges in the order in which they were added, so the kernel's value
 * counts. Also in a body, and in a second instance. With NVIDIA's the value comes too late. */
static void without_edges(void)
{
	cudaGraphConditionalHandle handle, inside;
	cudaGraph_t graph, body, inner;
	cudaGraphExec_t exec;
	int round, i;

	zero();
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault));
	add_set(graph, NULL, handle, 1);
	add_conditional(graph, NULL, handle, cudaGraphCondTypeIf, 1, &body);
	CHECK(cudaGraphConditionalHandleCreate(&inside, body, 0, cudaGraphCondAssignDefault));
	add_set(body, NULL, inside, 1);
	add_conditional(body, NULL, inside, cudaGraphCondTypeIf, 1, &inner);
	add_add(inner, NULL, count, 1);
	for (round = 0; round < 2; round++) {
		exec = instantiate(graph);
		for (i = 0; i < 50; i++)
			CHECK(cudaGraphLaunch(exec, stream));
		REQUIRE(read_count() == 50 * (round + 1), "round %d: %d", round, read_count());
		CHECK(cudaGraphExecDestroy(exec));
	}
	CHECK(cudaGraphDestroy(graph));
}

int main(void)
{
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&count, sizeof(*count)));
	wrong();
	by_default();
	by_kernel();
	loop();
	by_number();
	nested();
	changed();
	branches();
	captured();
	updated();
	from_pinned();
	if (is_ours("cudaMalloc"))
		without_edges();
	CHECK(cudaFree(count));
	CHECK(cudaStreamDestroy(stream));
	return verified("if, else, while and switch, and one in another");
}

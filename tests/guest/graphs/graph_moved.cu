// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Child graphs that are moved into their parent, and not copied. Only such children may allocate and
 * free memory. The memory is then used and freed by the child, by its parent, by another child, by
 * another graph or behind the launch.
 */
#include "check.h"
#include "ours.h"

#define N      5000
#define BYTES  (N * sizeof(int))
#define BLOCKS ((N + 127) / 128)

__global__ void count_up(int *p, int from)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		p[i] = from + i;
}

__global__ void add_one(int *p)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		p[i]++;
}

static int *out, *more, calls;
static int on_stack[N];
static cudaStream_t stream;

static void CUDART_CB call(void *data)
{
	*(int *)data += 1;
}

static cudaGraph_t new_graph(void)
{
	cudaGraph_t g;

	CHECK(cudaGraphCreate(&g, 0));
	return g;
}

static cudaError_t try_child(cudaGraphNode_t *node, cudaGraph_t parent, cudaGraphNode_t behind,
			     cudaGraph_t child, int ownership)
{
	cudaGraphNodeParams p = {};
	cudaError_t err;

	p.type = cudaGraphNodeTypeGraph;
	p.graph.graph = child;
	p.graph.ownership = (cudaGraphChildGraphNodeOwnership)ownership;
	err = cudaGraphAddNode(node, parent, &behind, NULL, behind ? 1 : 0, &p);
	(void)cudaGetLastError();
	return err;
}

static cudaError_t try_move(cudaGraphNode_t *node, cudaGraph_t parent, cudaGraphNode_t behind,
			    cudaGraph_t child)
{
	return try_child(node, parent, behind, child, cudaGraphChildGraphOwnershipMove);
}

static cudaGraphNode_t move(cudaGraph_t parent, cudaGraphNode_t behind, cudaGraph_t child)
{
	cudaGraphNode_t node;

	CHECK(try_move(&node, parent, behind, child));
	return node;
}

static cudaGraphNode_t add_alloc(cudaGraph_t g, cudaGraphNode_t behind, int **p)
{
	cudaMemAllocNodeParams m = {};
	cudaGraphNode_t node;

	m.poolProps.allocType = cudaMemAllocationTypePinned;
	m.poolProps.location.type = cudaMemLocationTypeDevice;
	m.bytesize = BYTES;
	CHECK(cudaGraphAddMemAllocNode(&node, g, &behind, behind ? 1 : 0, &m));
	*p = (int *)m.dptr;
	return node;
}

static cudaError_t try_alloc(cudaGraph_t g)
{
	cudaMemAllocNodeParams m = {};
	cudaGraphNode_t node;
	cudaError_t err;

	m.poolProps.allocType = cudaMemAllocationTypePinned;
	m.poolProps.location.type = cudaMemLocationTypeDevice;
	m.bytesize = BYTES;
	err = cudaGraphAddMemAllocNode(&node, g, NULL, 0, &m);
	(void)cudaGetLastError();
	return err;
}

static cudaError_t try_free(cudaGraph_t g, cudaGraphNode_t behind, int *p)
{
	cudaGraphNode_t node;
	cudaError_t err = cudaGraphAddMemFreeNode(&node, g, &behind, behind ? 1 : 0, p);

	(void)cudaGetLastError();
	return err;
}

static cudaGraphNode_t add_kernel(cudaGraph_t g, cudaGraphNode_t behind, void *kernel, int *p,
				  int from)
{
	void *args[] = {&p, &from};
	cudaKernelNodeParams k = {};
	cudaGraphNode_t node;

	k.func = kernel;
	k.gridDim = dim3(BLOCKS);
	k.blockDim = dim3(128);
	k.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&node, g, &behind, behind ? 1 : 0, &k));
	return node;
}

static cudaGraphNode_t add_copy(cudaGraph_t g, cudaGraphNode_t behind, int *to, const int *from)
{
	cudaGraphNode_t node;

	CHECK(cudaGraphAddMemcpyNode1D(&node, g, &behind, behind ? 1 : 0, to, from, BYTES,
				       cudaMemcpyDefault));
	return node;
}

static cudaGraphExec_t instantiate(cudaGraph_t g, unsigned int flags)
{
	cudaGraphExec_t exec;

	CHECK(cudaGraphInstantiate(&exec, g, flags));
	return exec;
}

static void run(cudaGraphExec_t exec)
{
	memset(out, 0, BYTES);
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
}

static void expect(const int *got, int from, const char *what)
{
	for (int i = 0; i < N; i++)
		REQUIRE(got[i] == from + i, "%s: element %d is %d, not %d", what, i, got[i], from + i);
}

static void nothing_is_left(void)
{
	uint64_t used = ~0ull;

	CHECK(cudaDeviceSynchronize());
	CHECK(cudaDeviceGraphMemTrim(0));
	CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
	REQUIRE(used == 0, "%zu bytes are used", (size_t)used);
}

/* A graph that allocates, fills, copies out and frees. */
static cudaGraph_t new_child(int from, int *to, int **p)
{
	cudaGraph_t g = new_graph();
	cudaGraphNode_t last = add_alloc(g, NULL, p);

	last = add_copy(g, add_kernel(g, last, (void *)count_up, *p, from), to, *p);
	CHECK(try_free(g, last, *p));
	return g;
}

/* Children that cannot be moved stay the program's. */
static void refused_children(void)
{
	cudaGraph_t parent = new_graph(), child = new_graph(), inner = new_graph();
	cudaGraphNodeParams cond = {};
	cudaGraphNode_t node, of_child;
	cudaGraphExec_t exec;

	CHECK(cudaGraphAddEmptyNode(&of_child, child, NULL, 0));
	/* NVIDIA's takes -1 for a copy, and lets a graph be its own child. */
	if (is_ours("cudaMalloc")) {
		EXPECT(try_child(&node, parent, NULL, child, -1), cudaErrorInvalidValue);
		EXPECT(try_move(&node, child, NULL, child), cudaErrorInvalidValue);
	}
	EXPECT(try_move(&node, parent, NULL, NULL), cudaErrorInvalidValue);
	EXPECT(try_move(&node, NULL, NULL, child), cudaErrorInvalidValue);
	EXPECT(try_move(NULL, parent, NULL, child), cudaErrorInvalidValue);
	EXPECT(try_move(&node, parent, of_child, child), cudaErrorInvalidValue);
	move(child, of_child, inner);
	if (is_ours("cudaMalloc"))
		EXPECT(try_move(&node, inner, NULL, child), cudaErrorInvalidValue);
	EXPECT(try_move(&node, parent, NULL, inner), cudaErrorInvalidValue);
	exec = instantiate(child, 0);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(child));

	child = new_graph();
	cond.type = cudaGraphNodeTypeConditional;
	cond.conditional.type = cudaGraphCondTypeIf;
	cond.conditional.size = 1;
	CHECK(cudaGraphConditionalHandleCreate(&cond.conditional.handle, child, 0, 0));
	CHECK(cudaGraphAddNode(&node, child, NULL, NULL, 0, &cond));
	EXPECT(try_move(&node, parent, NULL, child), cudaErrorInvalidValue);
	EXPECT(try_move(&node, parent, NULL, cond.conditional.phGraph_out[0]),
	       cudaErrorInvalidValue);
	CHECK(cudaGraphDestroy(child));
	CHECK(cudaGraphDestroy(parent));
}

/* What cannot be done with a child that has been moved, and with its parent. */
static void refused_afterwards(void)
{
	cudaGraph_t parent = new_graph(), other = new_graph(), copied = new_graph(), child, clone;
	cudaGraphExecUpdateResultInfo info;
	cudaGraphNodeParams params = {};
	cudaGraphNode_t node, empty, last;
	cudaGraphExec_t exec, second;
	int *p, *q;

	child = new_child(1, out, &p);
	EXPECT(try_child(&node, parent, NULL, child, cudaGraphChildGraphOwnershipClone),
	       cudaErrorNotSupported);
	CHECK(cudaGraphAddEmptyNode(&empty, parent, NULL, 0));
	node = move(parent, empty, child);
	REQUIRE(cudaGraphDestroy(child) != cudaSuccess, "destroyed");
	REQUIRE(cudaGraphInstantiate(&exec, child, 0) != cudaSuccess, "instantiated");
	REQUIRE(try_move(&last, other, NULL, child) != cudaSuccess, "moved again");
	REQUIRE(cudaGraphAddChildGraphNode(&last, other, NULL, 0, child) != cudaSuccess, "copied");
	REQUIRE(try_alloc(child) != cudaSuccess, "more memory");
	REQUIRE(try_free(child, NULL, p) != cudaSuccess, "freed twice");
	REQUIRE(try_free(parent, node, p) != cudaSuccess, "freed by child and parent");
	REQUIRE(try_free(other, NULL, p) != cudaSuccess, "freed by another graph");
	REQUIRE(cudaGraphDestroyNode(node) != cudaSuccess, "the node of the child is taken out");
	REQUIRE(cudaGraphDestroyNode(empty) != cudaSuccess, "a node is taken out");
	REQUIRE(cudaGraphRemoveDependencies(parent, &empty, &node, NULL, 1) != cudaSuccess,
		"an edge is taken out");
	REQUIRE(cudaGraphClone(&clone, parent) != cudaSuccess, "the parent is cloned");
	REQUIRE(cudaGraphAddChildGraphNode(&last, other, NULL, 0, parent) != cudaSuccess,
		"the parent is copied");
	params.type = cudaGraphNodeTypeGraph;
	params.graph.graph = other;
	REQUIRE(cudaGraphNodeSetParams(node, &params) != cudaSuccess, "another child");
	params.graph.ownership = cudaGraphChildGraphOwnershipMove;
	REQUIRE(cudaGraphNodeSetParams(node, &params) != cudaSuccess, "another child is moved");
	exec = instantiate(parent, 0);
	REQUIRE(cudaGraphInstantiate(&second, parent, 0) != cudaSuccess, "two instances");
	REQUIRE(cudaGraphExecUpdate(exec, child, &info) != cudaSuccess, "updated by the child");
	(void)cudaGetLastError();
	CHECK(cudaGraphExecUpdate(exec, parent, &info));
	run(exec);
	expect(out, 1, "a moved child");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(parent));

	/* A child that is a copy gets no memory either, and neither does a child of a child. */
	parent = new_graph();
	CHECK(cudaGraphAddChildGraphNode(&node, parent, NULL, 0, copied));
	CHECK(cudaGraphChildGraphNodeGetGraph(node, &clone));
	REQUIRE(try_alloc(clone) != cudaSuccess, "memory of a copy");
	child = new_child(2, out, &p);
	REQUIRE(try_move(&last, clone, NULL, child) != cudaSuccess, "moved into a copy");
	/* Only one of a parent's children may free the same memory. */
	node = add_alloc(parent, node, &q);
	CHECK(try_free(other, NULL, q));
	CHECK(try_free(copied, NULL, q));
	move(parent, node, other);
	REQUIRE(try_move(&last, parent, node, copied) != cudaSuccess, "freed by two children");
	CHECK(cudaGraphDestroy(copied));
	CHECK(cudaGraphDestroy(child));
	CHECK(cudaGraphDestroy(parent));
}

/* A child with a node of each type, and with a child of its own. */
static void each_type(int *to, const char *what)
{
	cudaGraph_t parent = new_graph(), child = new_graph(), inner, seen;
	cudaHostNodeParams host = {call, &calls};
	cudaGraphNode_t node, last;
	cudaMemsetParams set = {};
	cudaEvent_t event;
	cudaGraphExec_t exec;
	int *p, *q, *r;

	CHECK(cudaEventCreate(&event));
	last = add_alloc(child, NULL, &p);
	set.dst = p;
	set.elementSize = 4;
	set.width = N;
	set.height = 1;
	CHECK(cudaGraphAddMemsetNode(&node, child, &last, 1, &set));
	last = add_kernel(child, node, (void *)count_up, p, 10);
	CHECK(cudaGraphAddEventRecordNode(&node, child, &last, 1, event));
	CHECK(cudaGraphAddHostNode(&last, child, &node, 1, &host));
	inner = new_child(70, more, &q);
	last = move(child, last, inner);
	CHECK(cudaGraphAddEmptyNode(&node, child, &last, 1));
	CHECK(cudaGraphAddEventWaitNode(&last, child, &node, 1, event));
	last = add_alloc(child, last, &r);
	last = add_copy(child, last, r, p);
	last = add_copy(child, last, to, r);
	CHECK(try_free(child, last, r));
	CHECK(try_free(child, last, p));
	REQUIRE(p != q && p != r, "%p, %p, %p", (void *)p, (void *)q, (void *)r);
	node = move(parent, NULL, child);
	CHECK(cudaGraphChildGraphNodeGetGraph(node, &seen));
	REQUIRE(seen == child, "the child is a copy");
	exec = instantiate(parent, 0);
	calls = 0;
	for (int i = 0; i < 3; i++) {
		memset(to, 0, BYTES);
		memset(more, 0, BYTES);
		run(exec);
		expect(to, 10, what);
		expect(more, 70, "a child of a child");
		REQUIRE(calls == i + 1, "%d calls", calls);
		CHECK(cudaEventQuery(event));
	}
	/* The children are gone with their parent. The instance is not. */
	CHECK(cudaGraphDestroy(parent));
	run(exec);
	expect(more, 70, "without the graphs");
	CHECK(cudaGraphExecDestroy(exec));
	nothing_is_left();
	CHECK(cudaEventDestroy(event));
}

/* One child allocates, the parent uses, another child frees. */
static void between_children(void)
{
	cudaGraph_t parent = new_graph(), one = new_graph(), two = new_graph();
	cudaGraphNode_t last;
	cudaGraphExec_t exec;
	int *p, *q;

	last = add_alloc(one, NULL, &p);
	add_kernel(one, last, (void *)count_up, p, 20);
	last = add_kernel(two, NULL, (void *)add_one, p, 0);
	CHECK(try_free(two, last, p));
	/* The parent's own memory is freed by its child. */
	last = add_alloc(parent, NULL, &q);
	CHECK(try_free(two, NULL, q));
	last = add_kernel(parent, move(parent, last, one), (void *)add_one, p, 0);
	last = add_copy(parent, add_copy(parent, last, q, p), out, q);
	move(parent, last, two);
	exec = instantiate(parent, 0);
	for (int i = 0; i < 3; i++) {
		run(exec);
		expect(out, 21, "between children");
	}
	EXPECT(cudaFreeAsync(p, stream), cudaErrorInvalidValue);
	EXPECT(cudaFreeAsync(q, stream), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(parent));
	nothing_is_left();
}

/* A child's memory is there behind the launch, until a stream, another graph or a launch frees it. */
static void left_behind(void)
{
	cudaGraph_t parent = new_graph(), child = new_graph(), freeing = new_graph(), inner = new_graph();
	cudaGraphExec_t exec, free_exec;
	cudaGraphNode_t last;
	int *p;

	last = add_alloc(child, NULL, &p);
	add_kernel(child, last, (void *)count_up, p, 40);
	CHECK(try_free(inner, add_copy(inner, NULL, out, p), p));
	move(parent, NULL, child);
	move(freeing, NULL, inner);
	exec = instantiate(parent, 0);
	free_exec = instantiate(freeing, 0);
	EXPECT(cudaGraphLaunch(free_exec, stream), cudaErrorInvalidValue);
	for (int i = 0; i < 4; i++) {
		CHECK(cudaGraphLaunch(exec, stream));
		EXPECT(cudaGraphLaunch(exec, stream), cudaErrorInvalidValue);
		add_one<<<BLOCKS, 128, 0, stream>>>(p);
		if (i % 2) {
			CHECK(cudaMemcpyAsync(out, p, BYTES, cudaMemcpyDefault, stream));
			CHECK(cudaFreeAsync(p, stream));
		} else {
			CHECK(cudaGraphLaunch(free_exec, stream));
		}
		EXPECT(cudaGraphLaunch(free_exec, stream), cudaErrorInvalidValue);
		(void)cudaGetLastError();
		CHECK(cudaStreamSynchronize(stream));
		expect(out, 41, "behind the launch");
	}
	CHECK(cudaGraphExecDestroy(exec));
	exec = instantiate(parent, cudaGraphInstantiateFlagAutoFreeOnLaunch);
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphLaunch(free_exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect(out, 40, "freed by the launch");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphExecDestroy(free_exec));
	CHECK(cudaGraphDestroy(parent));
	CHECK(cudaGraphDestroy(freeing));
	nothing_is_left();
}

/* Changes of a moved child without memory are changes of its parent. */
static void changed(void)
{
	cudaGraph_t parent = new_graph(), child = new_graph(), other = new_graph();
	cudaGraphNodeParams params = {};
	cudaGraphNode_t node, last;
	cudaGraphExec_t exec;
	int *p;

	CHECK(cudaMalloc(&p, BYTES));
	last = add_kernel(child, NULL, (void *)count_up, p, 50);
	node = move(parent, NULL, child);
	last = add_kernel(child, last, (void *)add_one, p, 0);
	add_copy(child, last, out, p);
	exec = instantiate(parent, 0);
	run(exec);
	expect(out, 51, "a node that was added later");

	/* An instance takes over the parameters of another child, and keeps its own nodes. */
	last = add_kernel(other, NULL, (void *)count_up, p, 60);
	last = add_kernel(other, last, (void *)add_one, p, 0);
	add_copy(other, last, out, p);
	params.type = cudaGraphNodeTypeGraph;
	params.graph.graph = other;
	CHECK(cudaGraphExecNodeSetParams(exec, node, &params));
	CHECK(cudaGraphDestroy(other));
	run(exec);
	expect(out, 61, "other parameters in an instance");
	run(exec);
	expect(out, 61, "other parameters again");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroyNode(node));
	exec = instantiate(parent, 0);
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(parent));
	CHECK(cudaFree(p));
}

int main(void)
{
	CHECK(cudaMallocHost(&out, BYTES));
	CHECK(cudaMallocHost(&more, BYTES));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	refused_children();
	refused_afterwards();
	each_type(out, "each type of node");
	each_type(on_stack, "a copy of static data");
	between_children();
	left_behind();
	changed();
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFreeHost(more));
	CHECK(cudaFreeHost(out));
	return verified("moved children allocate, share and free memory");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Replaces what the nodes of a graph do, in the graph and in its instances, for each type of
 * node and with each of the calls. The next launch does the new work. Instances made earlier go
 * on doing what they were told.
 */
#include <semaphore.h>

#include "check.h"

#define W     40
#define H     6
#define PITCH 256
#define BYTES (PITCH * H)
#define N     (BYTES / (int)sizeof(int))

__device__ int variable[N], variable2[N];

__global__ void add(int *p, int what, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += what;
}

__global__ void multiply(int *p, int what, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] *= what;
}

static int *dev, *dev2, *in, *in2, *out, *out2;
static cudaStream_t stream;

/* Fills host memory again: in and in2 with different words, out and out2 with zeros. */
static void fresh(uint32_t seed)
{
	fill_words(in, BYTES, seed);
	fill_words(in2, BYTES, seed + 1000);
	memset(out, 0, BYTES);
	memset(out2, 0, BYTES);
}

static void run(cudaGraphExec_t exec)
{
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
}

/* Runs the graph once in its present state. */
static void run_once(cudaGraph_t graph)
{
	cudaGraphExec_t exec;

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	run(exec);
	CHECK(cudaGraphExecDestroy(exec));
}

static void same(const void *got, const void *want, size_t bytes, const char *what)
{
	size_t at = first_difference(got, want, bytes);

	REQUIRE(at == bytes, "%s: byte %zu of %zu differs", what, at, bytes);
}

static void all(const int *got, int want, const char *what)
{
	for (int i = 0; i < N; i++)
		REQUIRE(got[i] == want, "%s: element %d is %d, not %d", what, i, got[i], want);
}

/* ---- copies ---- */

static cudaMemcpy3DParms rows(void *dst, void *src, size_t height)
{
	cudaMemcpy3DParms p = {};

	p.srcPtr = make_cudaPitchedPtr(src, PITCH, W, H);
	p.dstPtr = make_cudaPitchedPtr(dst, PITCH, W, H);
	p.extent = make_cudaExtent(W, height, 1);
	p.kind = cudaMemcpyDefault;
	return p;
}

static void same_rows(const int *got, const int *want, size_t height, const char *what)
{
	for (size_t y = 0; y < H; y++) {
		size_t at = y * PITCH / sizeof(int);

		REQUIRE(got[at + W / sizeof(int)] == 0, "%s: row %zu is too long", what, y);
		if (y < height)
			same(got + at, want + at, W, what);
		else
			REQUIRE(got[at] == 0, "%s: row %zu is copied", what, y);
	}
}

static void refuse_update(cudaGraphExec_t exec, cudaGraph_t graph)
{
	cudaGraphExecUpdateResultInfo info;

	EXPECT(cudaGraphExecUpdate(exec, graph, &info), cudaErrorGraphExecUpdateFailure);
	REQUIRE(info.result == cudaGraphExecUpdateErrorParametersChanged, "result %d", info.result);
}

static void boxes(void)
{
	cudaMemcpy3DParms p = rows(out, in, H), got;
	cudaGraphNode_t node, other;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemcpyNode(&node, graph, NULL, 0, &p));
	CHECK(cudaGraphMemcpyNodeGetParams(node, &got));
	REQUIRE(got.srcPtr.ptr == in && got.dstPtr.ptr == out && got.extent.width == W &&
			got.extent.height == H,
		"%p to %p", got.srcPtr.ptr, got.dstPtr.ptr);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	fresh(1);
	p = rows(out2, in2, H - 2);
	CHECK(cudaGraphMemcpyNodeSetParams(node, &p));
	run(exec);
	same_rows(out, in, H, "as it was instantiated");
	run_once(graph);
	same_rows(out2, in2, H - 2, "changed in the graph");
	fresh(2);
	/* An instance accepts other parameters for a copy of one line, not for a copy of rows. */
	p = rows(out2, in, H);
	EXPECT(cudaGraphExecMemcpyNodeSetParams(exec, node, &p), cudaErrorInvalidValue);
	p = rows(out, in, 1);
	EXPECT(cudaGraphExecMemcpyNodeSetParams(exec, node, &p), cudaErrorInvalidValue);
	p = rows(out, in, H);
	CHECK(cudaGraphExecMemcpyNodeSetParams(exec, node, &p));
	refuse_update(exec, graph);
	run(exec);
	same_rows(out, in, H, "as before");
	p = rows(out, in, 0);
	EXPECT(cudaGraphExecMemcpyNodeSetParams(exec, node, &p), cudaErrorInvalidValue);
	EXPECT(cudaGraphAddMemcpyNode(&other, graph, NULL, 0, &p), cudaErrorInvalidValue);
	EXPECT(cudaGraphMemcpyNodeSetParams(node, NULL), cudaErrorInvalidValue);
	EXPECT(cudaGraphMemsetNodeSetParams(node, NULL), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/*
 * Memsets, too: a line may become any other line, and rows may move to another place.
 */
static void sets(void)
{
	cudaMemsetParams line = {}, rows = {};
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
	cudaGraph_t graph;

	line.dst = dev;
	line.elementSize = sizeof(int);
	line.value = 1;
	line.width = N;
	line.height = 1;
	rows = line;
	rows.pitch = PITCH;
	rows.width = W;
	rows.height = H;
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &line));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	EXPECT(cudaGraphExecMemsetNodeSetParams(exec, node, &rows), cudaErrorInvalidValue);
	CHECK(cudaGraphMemsetNodeSetParams(node, &rows));
	refuse_update(exec, graph);
	line.value = 2;
	CHECK(cudaGraphExecMemsetNodeSetParams(exec, node, &line));
	run(exec);
	CHECK(cudaMemcpy(out, dev, BYTES, cudaMemcpyDeviceToHost));
	all(out, 2, "a line");
	CHECK(cudaGraphExecDestroy(exec));

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	EXPECT(cudaGraphExecMemsetNodeSetParams(exec, node, &line), cudaErrorInvalidValue);
	rows.height--;
	EXPECT(cudaGraphExecMemsetNodeSetParams(exec, node, &rows), cudaErrorInvalidValue);
	rows.height++;
	rows.dst = dev2;
	rows.value = 0x01020304;
	CHECK(cudaMemset(dev2, 0, BYTES));
	CHECK(cudaGraphExecMemsetNodeSetParams(exec, node, &rows));
	run(exec);
	CHECK(cudaMemcpy(out, dev2, BYTES, cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		REQUIRE(out[i] == (i % (PITCH / 4) < W ? 0x01020304 : 0), "rows: word %d", i);
	(void)cudaGetLastError();
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void flat(void)
{
	cudaGraphNode_t up, down;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemcpyNode1D(&up, graph, NULL, 0, dev, in, BYTES,
				       cudaMemcpyHostToDevice));
	CHECK(cudaGraphAddMemcpyNode1D(&down, graph, &up, 1, out, dev, BYTES,
				       cudaMemcpyDeviceToHost));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	fresh(3);
	CHECK(cudaGraphMemcpyNodeSetParams1D(up, dev2, in2, BYTES, cudaMemcpyHostToDevice));
	CHECK(cudaGraphMemcpyNodeSetParams1D(down, out2, dev2, BYTES, cudaMemcpyDeviceToHost));
	run(exec);
	same(out, in, BYTES, "as it was instantiated");
	run_once(graph);
	same(out2, in2, BYTES, "changed in the graph");
	fresh(4);
	CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, up, dev, in2, BYTES,
						 cudaMemcpyHostToDevice));
	run(exec);
	same(out, in2, BYTES, "changed in the instance");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void symbols(void)
{
	const size_t some = BYTES / 2, at = BYTES / 4;
	cudaGraphNode_t up, down;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemcpyNodeToSymbol(&up, graph, NULL, 0, variable, in, BYTES, 0,
					     cudaMemcpyHostToDevice));
	CHECK(cudaGraphAddMemcpyNodeFromSymbol(&down, graph, &up, 1, out, variable, BYTES, 0,
					       cudaMemcpyDeviceToHost));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	fresh(5);
	CHECK(cudaGraphMemcpyNodeSetParamsToSymbol(up, variable2, in2, some, at,
						   cudaMemcpyHostToDevice));
	CHECK(cudaGraphMemcpyNodeSetParamsFromSymbol(down, out2, variable2, some, at,
						     cudaMemcpyDeviceToHost));
	run(exec);
	same(out, in, BYTES, "as it was instantiated");
	run_once(graph);
	same(out2, in2, some, "changed in the graph");
	CHECK(cudaMemcpyFromSymbol(out, variable2, BYTES));
	REQUIRE(out[at / sizeof(int) - 1] == 0 && out[(at + some) / sizeof(int)] == 0,
		"written beside it");
	fresh(6);
	CHECK(cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, up, variable, in2, some, 0,
						       cudaMemcpyHostToDevice));
	CHECK(cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, down, out2, variable, some, 0,
							 cudaMemcpyDeviceToHost));
	run(exec);
	same(out2, in2, some, "changed in the instance");
	REQUIRE(out2[some / sizeof(int)] == 0 && out[0] == 0, "more than that");
	EXPECT(cudaGraphMemcpyNodeSetParamsToSymbol(up, variable, in, BYTES, 8,
						    cudaMemcpyHostToDevice),
	       cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* ---- kernels and host functions ---- */

static cudaKernelNodeParams kernel(void (*func)(int *, int, int), void **args)
{
	cudaKernelNodeParams k = {};

	k.func = (void *)func;
	k.gridDim = dim3((N + 127) / 128);
	k.blockDim = dim3(128);
	k.kernelParams = args;
	return k;
}

static int host_sum;

static void CUDART_CB add_to_sum(void *data)
{
	host_sum += *(int *)data;
}

static void CUDART_CB take_from_sum(void *data)
{
	host_sum -= *(int *)data;
}

static void kernels(void)
{
	int two = 2, five = 5, seven = 7, n = N;
	void *args2[] = {&dev, &two, &n}, *args5[] = {&dev, &five, &n},
	     *args7[] = {&dev, &seven, &n};
	cudaKernelNodeParams plus2 = kernel(add, args2), times5 = kernel(multiply, args5);
	cudaKernelNodeParams plus7 = kernel(add, args7);
	cudaHostNodeParams add5 = {add_to_sum, &five}, add7 = {add_to_sum, &seven};
	cudaHostNodeParams take2 = {take_from_sum, &two}, got;
	cudaGraphNode_t node, host;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &plus2));
	CHECK(cudaGraphAddHostNode(&host, graph, &node, 1, &add5));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaMemset(dev, 0, BYTES));
	/* Another function, with other arguments. */
	CHECK(cudaGraphKernelNodeSetParams(node, &times5));
	CHECK(cudaGraphHostNodeSetParams(host, &take2));
	CHECK(cudaGraphHostNodeGetParams(host, &got));
	REQUIRE(got.fn == take_from_sum && got.userData == &two, "another host function");
	run(exec);
	REQUIRE(host_sum == 5, "sum %d, as it was instantiated", host_sum);
	run_once(graph);
	REQUIRE(host_sum == 3, "sum %d, changed in the graph", host_sum);
	CHECK(cudaMemcpy(out, dev, BYTES, cudaMemcpyDeviceToHost));
	all(out, 10, "(0 + 2) * 5");
	CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &plus7));
	CHECK(cudaGraphExecHostNodeSetParams(exec, host, &add7));
	run(exec);
	REQUIRE(host_sum == 10, "sum %d, changed in the instance", host_sum);
	CHECK(cudaMemcpy(out, dev, BYTES, cudaMemcpyDeviceToHost));
	all(out, 17, "(0 + 2) * 5 + 7");
	EXPECT(cudaGraphHostNodeSetParams(node, &add5), cudaErrorInvalidValue);
	EXPECT(cudaGraphKernelNodeSetParams(host, &plus2), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* What the first and the last element are after a launch. */
static void ends(cudaGraphExec_t exec, int first, int last, const char *what)
{
	run(exec);
	CHECK(cudaMemcpy(out, dev, BYTES, cudaMemcpyDeviceToHost));
	REQUIRE(out[0] == first && out[N - 1] == last, "%s: %d and %d", what, out[0], out[N - 1]);
}

/* Arguments alone, the shape of the launch, and whether it is left out, in turn. */
static void arguments(void)
{
	int what = 1, n = N;
	void *args[] = {&dev, &what, &n};
	cudaKernelNodeParams all_of_it = kernel(add, args), one = all_of_it;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	one.gridDim = one.blockDim = dim3(1);
	CHECK(cudaMemset(dev, 0, BYTES));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &all_of_it));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	ends(exec, 1, 1, "as made");
	what = 10;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &all_of_it));
	ends(exec, 11, 11, "other arguments");
	CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &one));
	ends(exec, 21, 11, "another shape");
	what = 100;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &one));
	ends(exec, 121, 11, "other arguments in the new shape");
	CHECK(cudaGraphNodeSetEnabled(exec, node, 0));
	ends(exec, 121, 11, "left out");
	what = 1000;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &one));
	ends(exec, 121, 11, "left out, with other arguments");
	CHECK(cudaGraphNodeSetEnabled(exec, node, 1));
	ends(exec, 1121, 11, "in again");
	what = 2;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &all_of_it));
	ends(exec, 1123, 13, "arguments and shape");
	one.gridDim = dim3(0);
	EXPECT(cudaGraphExecKernelNodeSetParams(exec, node, &one), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	ends(exec, 1125, 15, "after a shape that cannot be");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void attributes(void)
{
	int one = 1, n = N, least, greatest;
	void *args[] = {&dev, &one, &n};
	cudaKernelNodeParams plus1 = kernel(add, args);
	cudaLaunchAttributeValue value = {};
	cudaGraphNode_t a, b;
	cudaGraphInstantiateParams upload = {};
	cudaGraphExec_t exec, other;
	cudaGraph_t graph;
	unsigned long long flags = 0;

	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddKernelNode(&a, graph, NULL, 0, &plus1));
	CHECK(cudaGraphAddKernelNode(&b, graph, &a, 1, &plus1));
	value.cooperative = 1;
	CHECK(cudaGraphKernelNodeSetAttribute(a, cudaLaunchAttributeCooperative, &value));
	value.priority = greatest;
	CHECK(cudaGraphKernelNodeSetAttribute(a, cudaLaunchAttributePriority, &value));
	value.cooperative = 9;
	CHECK(cudaGraphKernelNodeGetAttribute(b, cudaLaunchAttributeCooperative, &value));
	REQUIRE(value.cooperative == 0, "cooperative %d at first", value.cooperative);
	CHECK(cudaGraphKernelNodeCopyAttributes(b, a));
	CHECK(cudaGraphKernelNodeGetAttribute(b, cudaLaunchAttributeCooperative, &value));
	REQUIRE(value.cooperative == 1, "cooperative %d, copied", value.cooperative);
	value.priority = 99;
	CHECK(cudaGraphKernelNodeGetAttribute(b, cudaLaunchAttributePriority, &value));
	REQUIRE(value.priority == greatest, "priority %d, copied", value.priority);
	CHECK(cudaGraphInstantiateWithFlags(&exec, graph, cudaGraphInstantiateFlagUseNodePriority));
	/* CUDA does not return this flag. */
	CHECK(cudaGraphExecGetFlags(exec, &flags));
	REQUIRE(flags == 0, "flags %llx", flags);
	/* Without a stream, the upload is not possible. */
	EXPECT(cudaGraphInstantiate(&other, graph, cudaGraphInstantiateFlagUpload),
	       cudaErrorInvalidValue);
	EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
	upload.flags = cudaGraphInstantiateFlagUpload;
	upload.uploadStream = stream;
	CHECK(cudaGraphInstantiateWithParams(&other, graph, &upload));
	CHECK(cudaGraphExecGetFlags(other, &flags));
	REQUIRE(flags == 0, "flags %llx", flags);
	CHECK(cudaGraphExecDestroy(other));
	CHECK(cudaMemset(dev, 0, BYTES));
	run(exec);
	CHECK(cudaMemcpy(out, dev, BYTES, cudaMemcpyDeviceToHost));
	all(out, 2, "two cooperative kernels");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* ---- events ---- */

static sem_t gate;

static void CUDART_CB wait_at_gate(void *)
{
	while (sem_wait(&gate))
		;
}

static bool recorded(cudaEvent_t event)
{
	float ms;
	cudaError_t err = cudaEventElapsedTime(&ms, event, event);

	(void)cudaGetLastError();
	REQUIRE(err == cudaSuccess || err == cudaErrorInvalidResourceHandle, "%d", err);
	return err == cudaSuccess;
}

static void records(void)
{
	cudaEvent_t first, second, third, got;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CHECK(cudaEventCreate(&first));
	CHECK(cudaEventCreate(&second));
	CHECK(cudaEventCreate(&third));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddEventRecordNode(&node, graph, NULL, 0, first));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphEventRecordNodeSetEvent(node, second));
	CHECK(cudaGraphEventRecordNodeGetEvent(node, &got));
	REQUIRE(got == second, "another event");
	CHECK(cudaGraphExecEventRecordNodeSetEvent(exec, node, third));
	run(exec);
	REQUIRE(!recorded(first) && !recorded(second) && recorded(third), "which was recorded");
	run_once(graph);
	REQUIRE(!recorded(first) && recorded(second), "which was recorded");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaEventDestroy(first));
	CHECK(cudaEventDestroy(second));
	CHECK(cudaEventDestroy(third));
}

/* One event is behind a stream that is held up, the other behind nothing. */
static void waits(void)
{
	cudaEvent_t held, open, got;
	cudaGraphNode_t node, copy;
	cudaStream_t blocked;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CHECK(cudaStreamCreateWithFlags(&blocked, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&held, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&open, cudaEventDisableTiming));
	CHECK(cudaMemcpy(dev, in, BYTES, cudaMemcpyHostToDevice));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddEventWaitNode(&node, graph, NULL, 0, open));
	CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &node, 1, out, dev, BYTES,
				       cudaMemcpyDeviceToHost));
	CHECK(cudaGraphEventWaitNodeGetEvent(node, &got));
	REQUIRE(got == open, "another event");
	CHECK(cudaGraphEventWaitNodeSetEvent(node, held));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphUpload(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	memset(out, 0, BYTES);

	CHECK(cudaLaunchHostFunc(blocked, wait_at_gate, NULL));
	CHECK(cudaEventRecord(held, blocked));
	CHECK(cudaGraphLaunch(exec, stream));
	EXPECT(cudaStreamQuery(stream), cudaErrorNotReady);
	REQUIRE(out[0] == 0, "copied before the event");
	sem_post(&gate);
	CHECK(cudaStreamSynchronize(stream));
	same(out, in, BYTES, "behind the event");

	/* Now the event that nothing holds up. */
	CHECK(cudaGraphExecEventWaitNodeSetEvent(exec, node, open));
	CHECK(cudaLaunchHostFunc(blocked, wait_at_gate, NULL));
	CHECK(cudaEventRecord(held, blocked));
	memset(out, 0, BYTES);
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	same(out, in, BYTES, "behind the other event");
	EXPECT(cudaEventQuery(held), cudaErrorNotReady);
	sem_post(&gate);
	CHECK(cudaStreamSynchronize(blocked));
	EXPECT(cudaGraphEventWaitNodeGetEvent(copy, &got), cudaErrorInvalidValue);
	EXPECT(cudaGraphEventRecordNodeSetEvent(node, open), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaEventDestroy(held));
	CHECK(cudaEventDestroy(open));
	CHECK(cudaStreamDestroy(blocked));
}

/* ---- nodes of any type by one call, and graphs in graphs ---- */

static void any_type(void)
{
	cudaGraphNodeParams set = {}, k = {}, copy = {}, host = {}, empty = {};
	int three = 3, four = 4, n = N;
	void *args[] = {&dev, &three, &n};
	cudaGraphNode_t node[5];
	cudaGraphNodeType type;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	host_sum = 0;
	set.type = cudaGraphNodeTypeMemset;
	set.memset.dst = dev;
	set.memset.value = 20;
	set.memset.elementSize = 4;
	set.memset.width = N;
	set.memset.height = 1;
	k.type = cudaGraphNodeTypeKernel;
	k.kernel.func = (void *)add;
	k.kernel.gridDim = dim3((N + 127) / 128);
	k.kernel.blockDim = dim3(128);
	k.kernel.kernelParams = args;
	empty.type = cudaGraphNodeTypeEmpty;
	copy.type = cudaGraphNodeTypeMemcpy;
	copy.memcpy.copyParams.srcPtr = make_cudaPitchedPtr(dev, BYTES, BYTES, 1);
	copy.memcpy.copyParams.dstPtr = make_cudaPitchedPtr(out, BYTES, BYTES, 1);
	copy.memcpy.copyParams.extent = make_cudaExtent(BYTES, 1, 1);
	copy.memcpy.copyParams.kind = cudaMemcpyDeviceToHost;
	host.type = cudaGraphNodeTypeHost;
	host.host.fn = add_to_sum;
	host.host.userData = &three;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddNode(&node[0], graph, NULL, NULL, 0, &set));
	CHECK(cudaGraphAddNode(&node[1], graph, &node[0], NULL, 1, &k));
	CHECK(cudaGraphAddNode(&node[2], graph, &node[1], NULL, 1, &empty));
	CHECK(cudaGraphAddNode(&node[3], graph, &node[2], NULL, 1, &copy));
	CHECK(cudaGraphAddNode(&node[4], graph, &node[3], NULL, 1, &host));
	CHECK(cudaGraphNodeGetType(node[2], &type));
	REQUIRE(type == cudaGraphNodeTypeEmpty, "type %d", type);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	run(exec);
	all(out, 23, "20 + 3");
	REQUIRE(host_sum == 3, "sum %d", host_sum);

	set.memset.value = 30;
	args[1] = &four;
	host.host.userData = &four;
	CHECK(cudaGraphNodeSetParams(node[0], &set));
	CHECK(cudaGraphExecNodeSetParams(exec, node[1], &k));
	CHECK(cudaGraphExecNodeSetParams(exec, node[4], &host));
	run(exec);
	all(out, 24, "20 + 4");
	REQUIRE(host_sum == 7, "sum %d", host_sum);
	run_once(graph);
	all(out, 33, "30 + 3");
	REQUIRE(host_sum == 10, "sum %d", host_sum);
	/* A node keeps its type. */
	REQUIRE(cudaGraphNodeSetParams(node[0], &k) != cudaSuccess, "a kernel's for a memset");
	EXPECT(cudaGraphAddNode(&node[0], graph, NULL, NULL, 0, NULL), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static cudaGraph_t make_child(int value)
{
	cudaMemsetParams m = {};
	cudaGraphNode_t set, down;
	cudaGraph_t child;

	m.dst = dev;
	m.value = value;
	m.elementSize = 4;
	m.width = N;
	m.height = 1;
	CHECK(cudaGraphCreate(&child, 0));
	CHECK(cudaGraphAddMemsetNode(&set, child, NULL, 0, &m));
	CHECK(cudaGraphAddMemcpyNode1D(&down, child, &set, 1, out, dev, BYTES,
				       cudaMemcpyDeviceToHost));
	return child;
}

static void children(void)
{
	cudaGraph_t graph, one = make_child(1), two = make_child(2);
	cudaGraphNodeParams params = {};
	cudaGraphNode_t inner;
	cudaGraphExec_t exec;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddChildGraphNode(&inner, graph, NULL, 0, one));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	run(exec);
	all(out, 1, "the first child");
	CHECK(cudaGraphExecChildGraphNodeSetParams(exec, inner, two));
	run(exec);
	all(out, 2, "the second child");
	params.type = cudaGraphNodeTypeGraph;
	params.graph.graph = one;
	CHECK(cudaGraphExecNodeSetParams(exec, inner, &params));
	run(exec);
	all(out, 1, "the first child again");
	CHECK(cudaGraphAddEmptyNode(&inner, two, NULL, 0));
	REQUIRE(cudaGraphExecChildGraphNodeSetParams(exec, inner, two) != cudaSuccess,
		"a node of another graph");
	(void)cudaGetLastError();
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphDestroy(one));
	CHECK(cudaGraphDestroy(two));
}

static int destroyed;

static void CUDART_CB destroy(void *data)
{
	destroyed += *(int *)data;
}

static void objects(void)
{
	static int one = 1;
	cudaUserObject_t object;
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaUserObjectCreate(&object, &one, destroy, 1, cudaUserObjectNoDestructorSync));
	CHECK(cudaGraphRetainUserObject(graph, object, 2, 0));
	CHECK(cudaUserObjectRelease(object, 1));
	CHECK(cudaGraphReleaseUserObject(graph, object, 1));
	REQUIRE(!destroyed, "destroyed while the graph has it");
	CHECK(cudaGraphReleaseUserObject(graph, object, 1));
	for (int i = 0; i < 10000 && !destroyed; i++) {
		struct timespec ms = {0, 1000000};

		nanosleep(&ms, NULL);
	}
	REQUIRE(destroyed == 1, "destroyed %d times", destroyed);
	CHECK(cudaGraphDestroy(graph));
}

int main(void)
{
	CHECK(cudaMalloc(&dev, BYTES));
	CHECK(cudaMalloc(&dev2, BYTES));
	CHECK(cudaMallocHost(&in, BYTES));
	CHECK(cudaMallocHost(&in2, BYTES));
	CHECK(cudaMallocHost(&out, BYTES));
	CHECK(cudaMallocHost(&out2, BYTES));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	REQUIRE(!sem_init(&gate, 0, 0), "semaphore");
	boxes();
	sets();
	flat();
	symbols();
	kernels();
	arguments();
	attributes();
	records();
	waits();
	any_type();
	children();
	objects();
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev2));
	CHECK(cudaFreeHost(in));
	CHECK(cudaFreeHost(in2));
	CHECK(cudaFreeHost(out));
	CHECK(cudaFreeHost(out2));
	return verified("nodes of eight types do what they were told last");
}

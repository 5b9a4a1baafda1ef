// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How many commands graphs cost: one for an instance, one for each launch, whatever the size, one
 * for all changes since the last launch. The program runs itself with QCU_TRACE and counts the
 * commands between its marks. Each section ends with a wait, so that posted commands end in it.
 */

#include "commands.h"

#define NODES 1000
#define BYTES 4096

/* Order matters: one that comes too early or twice changes the result. */
__global__ void step(unsigned int *p, unsigned int n)
{
	*p = *p * 5 + n;
}

static unsigned int *dev;

static unsigned int value(void)
{
	unsigned int v;

	OK(cudaMemcpy(&v, dev, sizeof(v), cudaMemcpyDeviceToHost));
	return v;
}

static unsigned int steps(unsigned int v, unsigned int from, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		v = v * 5 + from + i;
	return v;
}

static struct cudaKernelNodeParams kernel_params(unsigned int *n, void **args)
{
	struct cudaKernelNodeParams p = {};

	args[0] = &dev;
	args[1] = n;
	p.func = (void *)step;
	p.gridDim = p.blockDim = dim3(1, 1, 1);
	p.kernelParams = args;
	return p;
}

static cudaGraphNode_t nodes[NODES];

static cudaGraph_t chain(void)
{
	cudaGraph_t g;
	unsigned int i;

	OK(cudaGraphCreate(&g, 0));
	for (i = 0; i < NODES; i++) {
		void *args[2];
		struct cudaKernelNodeParams p = kernel_params(&i, args);

		OK(cudaGraphAddKernelNode(&nodes[i], g, i ? &nodes[i - 1] : NULL, i > 0, &p));
	}
	return g;
}

static void thousand(void)
{
	cudaGraph_t g, other;
	cudaGraphExec_t exec;
	cudaGraphExecUpdateResultInfo info;
	unsigned int i, v = 0;
	void *args[2];

	OK(cudaMemset(dev, 0, 4));
	OK(cudaDeviceSynchronize());
	g = chain();
	mark("an instance of 1000 kernels", 1);
	OK(cudaGraphInstantiate(&exec, g, 0));
	mark("three launches, and a wait", 4);
	for (i = 0; i < 3; i++)
		OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	mark("a look", 1);
	for (i = 0; i < 3; i++)
		v = steps(v, 0, NODES);
	REQUIRE(value() == v, "%u, not %u", value(), v);
	mark("a thousand changes, a launch, and a wait", 3);
	for (i = 0; i < NODES; i++) {
		unsigned int n = i + 7;
		struct cudaKernelNodeParams p = kernel_params(&n, args);

		OK(cudaGraphExecKernelNodeSetParams(exec, nodes[i], &p));
	}
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	mark("a look", 1);
	v = steps(v, 7, NODES);
	REQUIRE(value() == v, "%u, not %u", value(), v);
	mark("an update to what the graph was, a launch, and a wait", 3);
	OK(cudaGraphExecUpdate(exec, g, &info));
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	mark("a look", 1);
	v = steps(v, 0, NODES);
	REQUIRE(value() == v, "%u, not %u", value(), v);
	other = chain();
	mark("an update that changes nothing, a launch, and a wait", 2);
	OK(cudaGraphExecUpdate(exec, other, &info));
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	mark("an upload, and a wait", 2);
	OK(cudaGraphUpload(exec, 0));
	OK(cudaDeviceSynchronize());
	mark("its end, and a wait", 2);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaDeviceSynchronize());
	OK(cudaGraphDestroy(g));
	OK(cudaGraphDestroy(other));
}

static void CUDART_CB count(void *at)
{
	++*(volatile int *)at;
}

/* Eight branches with all kinds of nodes that the host carries out, one of them a child graph. */
static cudaGraph_t mixed(void *to, void *from, cudaEvent_t event, int *calls)
{
	cudaGraphNode_t root, branch[8], n;
	struct cudaMemsetParams set = {};
	struct cudaHostNodeParams host = {};
	struct cudaMemcpy3DParms box = {};
	struct cudaMemAllocNodeParams alloc = {};
	cudaGraph_t g, child;
	unsigned int i;

	set.dst = (char *)dev + 16;
	set.elementSize = 4;
	set.width = 8;
	set.height = 1;
	host.fn = count;
	host.userData = calls;
	box.dstPtr = make_cudaPitchedPtr(to, 64, 64, 4);
	box.srcPtr = make_cudaPitchedPtr(from, 64, 64, 4);
	box.extent = make_cudaExtent(32, 4, 2);
	box.kind = cudaMemcpyDefault;
	alloc.poolProps.allocType = cudaMemAllocationTypePinned;
	alloc.poolProps.location.type = cudaMemLocationTypeDevice;
	alloc.bytesize = BYTES;
	OK(cudaGraphCreate(&g, 0));
	OK(cudaGraphCreate(&child, 0));
	OK(cudaGraphAddMemsetNode(&n, child, NULL, 0, &set));
	OK(cudaGraphAddEmptyNode(&root, g, NULL, 0));
	OK(cudaGraphAddMemsetNode(&branch[0], g, &root, 1, &set));
	OK(cudaGraphAddMemcpyNode1D(&branch[1], g, &root, 1, to, from, 100, cudaMemcpyDefault));
	OK(cudaGraphAddMemcpyNode(&branch[2], g, &root, 1, &box));
	OK(cudaGraphAddChildGraphNode(&branch[3], g, &root, 1, child));
	OK(cudaGraphAddHostNode(&branch[4], g, &root, 1, &host));
	OK(cudaGraphAddEventWaitNode(&branch[5], g, &root, 1, event));
	OK(cudaGraphAddMemAllocNode(&branch[6], g, &root, 1, &alloc));
	OK(cudaGraphAddMemFreeNode(&n, g, &branch[6], 1, alloc.dptr));
	branch[6] = n;
	OK(cudaGraphAddHostNode(&branch[7], g, &root, 1, &host));
	OK(cudaGraphAddEventRecordNode(&n, g, branch, 8, event));
	for (i = 0; i < 3; i++)
		OK(cudaGraphAddEmptyNode(&n, g, &n, 1));
	OK(cudaGraphDestroy(child));
	return g;
}

static void branches(void)
{
	char *to, *from;
	cudaGraphExec_t exec;
	cudaEvent_t event;
	cudaGraph_t g;
	int calls = 0, i;

	OK(cudaMalloc((void **)&to, BYTES));
	OK(cudaMallocHost((void **)&from, BYTES));
	OK(cudaEventCreate(&event));
	OK(cudaEventRecord(event, 0));
	OK(cudaDeviceSynchronize());
	g = mixed(to, from, event, &calls);
	OK(cudaGraphInstantiate(&exec, g, 0));
	/* Besides: each of its two functions is asked for, and reported. */
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	REQUIRE(calls == 2, "%d calls", calls);
	for (i = 0; i < 3; i++) {
		OK(cudaGraphLaunch(exec, 0));
		OK(cudaEventSynchronize(event));
	}
	OK(cudaDeviceSynchronize());
	REQUIRE(calls == 8, "%d calls", calls);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	OK(cudaEventDestroy(event));
	OK(cudaFreeHost(from));
	OK(cudaFree(to));
}

/* A copy of pageable memory in chunks. */
static void pageable(void)
{
	cudaGraph_t g;
	cudaGraphNode_t n;
	cudaGraphExec_t exec;
	unsigned char *mine = (unsigned char *)malloc(1 << 20), *far;

	memset(mine, 1, 1 << 20);
	OK(cudaMalloc((void **)&far, 1 << 20));
	OK(cudaGraphCreate(&g, 0));
	OK(cudaGraphAddMemcpyNode1D(&n, g, NULL, 0, far, mine, 1 << 20, cudaMemcpyDefault));
	OK(cudaGraphAddMemcpyNode1D(&n, g, &n, 1, mine, far, 1 << 19, cudaMemcpyDefault));
	OK(cudaGraphInstantiate(&exec, g, 0));
	OK(cudaDeviceSynchronize());
	mark_answers("a launch with copies of pageable memory, and a wait", 2, 1);
	/* With a sanitizer's malloc, which is loaded first, the memory is not in chunks. */
	if (getenv("LD_PRELOAD"))
		uncounted();
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	mark("the end of it", 0);
	uncounted();
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	OK(cudaFree(far));
	free(mine);
}

/* Nothing waits for a launch that records events, and everybody sees what it has recorded. */
static void records(void)
{
	cudaGraph_t g;
	cudaGraphNode_t n;
	cudaGraphExec_t exec;
	cudaEvent_t event;
	int i;

	OK(cudaEventCreate(&event));
	OK(cudaEventRecord(event, 0));
	OK(cudaGraphCreate(&g, 0));
	OK(cudaGraphAddEventRecordNode(&n, g, NULL, 0, event));
	OK(cudaGraphInstantiate(&exec, g, 0));
	OK(cudaDeviceSynchronize());
	mark_answers("five launches that record an event, and a wait", 6, 1);
	for (i = 0; i < 5; i++)
		OK(cudaGraphLaunch(exec, 0));
	OK(cudaEventSynchronize(event));
	mark("the end of these", 0);
	uncounted();
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	OK(cudaEventDestroy(event));
}

/* The launches of a graph that allocates memory are one command, too. */
static void memory(void)
{
	struct cudaMemAllocNodeParams alloc = {};
	struct cudaMemsetParams set = {};
	cudaGraphNode_t a, s, f;
	cudaGraphExec_t exec;
	cudaGraph_t g;
	int i;

	alloc.poolProps.allocType = cudaMemAllocationTypePinned;
	alloc.poolProps.location.type = cudaMemLocationTypeDevice;
	alloc.bytesize = BYTES;
	OK(cudaGraphCreate(&g, 0));
	OK(cudaGraphAddMemAllocNode(&a, g, NULL, 0, &alloc));
	set.dst = alloc.dptr;
	set.elementSize = 1;
	set.width = BYTES;
	set.height = 1;
	OK(cudaGraphAddMemsetNode(&s, g, &a, 1, &set));
	OK(cudaGraphAddMemFreeNode(&f, g, &s, 1, alloc.dptr));
	OK(cudaGraphInstantiate(&exec, g, 0));
	OK(cudaGraphLaunch(exec, 0)); /* the first also makes an event */
	OK(cudaDeviceSynchronize());
	mark("three launches with memory of the graph, and a wait", 4);
	for (i = 0; i < 3; i++)
		OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	mark("its end", 0);
	uncounted();
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
}

/* A box to an array, from there to another, and back; the arrays go before the instance. */
static void arrays(void)
{
	const struct cudaChannelFormatDesc words = cudaCreateChannelDesc<unsigned int>();
	struct cudaMemcpy3DParms up = {}, across = {}, down = {};
	cudaArray_t a, b;
	unsigned int *from, *to, i;
	cudaGraphNode_t n;
	cudaGraphExec_t exec;
	cudaGraph_t g;

	OK(cudaMallocArray(&a, &words, 64, 32));
	OK(cudaMalloc3DArray(&b, &words, make_cudaExtent(64, 32, 4), 0));
	OK(cudaMallocHost((void **)&from, 4 * 64 * 32));
	OK(cudaMallocHost((void **)&to, 4 * 64 * 32));
	for (i = 0; i < 64 * 32; i++) {
		from[i] = i * 2654435761u;
		to[i] = 0;
	}
	up.srcPtr = make_cudaPitchedPtr(from, 256, 64, 32);
	up.srcPos = make_cudaPos(2, 1, 0);
	up.dstArray = a;
	up.dstPos = make_cudaPos(4, 5, 0);
	across.srcArray = a;
	across.srcPos = make_cudaPos(4, 5, 0);
	across.dstArray = b;
	across.dstPos = make_cudaPos(1, 2, 3);
	down.srcArray = b;
	down.srcPos = make_cudaPos(1, 2, 3);
	down.dstPtr = make_cudaPitchedPtr(to, 256, 64, 32);
	up.extent = across.extent = down.extent = make_cudaExtent(16, 8, 1);
	up.kind = across.kind = down.kind = cudaMemcpyDefault;
	OK(cudaGraphCreate(&g, 0));
	OK(cudaGraphAddMemcpyNode(&n, g, NULL, 0, &up));
	OK(cudaGraphAddMemcpyNode(&n, g, &n, 1, &across));
	OK(cudaGraphAddMemcpyNode(&n, g, &n, 1, &down));
	mark("an instance with arrays", 1);
	OK(cudaGraphInstantiate(&exec, g, 0));
	mark("a launch with arrays, and a wait", 2);
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	for (i = 0; i < 64 * 32; i++) {
		unsigned int x = i % 64, y = i / 64;
		unsigned int want = x < 16 && y < 8 ? from[(y + 1) * 64 + x + 2] : 0;

		REQUIRE(to[i] == want, "%u, not %u, at %u", to[i], want, i);
	}
	mark("the end of arrays", 0);
	uncounted();
	OK(cudaFreeArray(a));
	OK(cudaFreeArray(b));
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	OK(cudaFreeHost(from));
	OK(cudaFreeHost(to));
}

static int traced(void)
{
	OK(cudaMalloc((void **)&dev, BYTES));
	step<<<1, 1>>>(dev, 0);
	OK(cudaDeviceSynchronize());
	thousand();
	mark("branches", 0);
	uncounted();
	branches();
	records();
	pageable();
	memory();
	arrays();
	mark("end", 0);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return traced();
	count_commands(argv[0], 21);
	return 0;
}

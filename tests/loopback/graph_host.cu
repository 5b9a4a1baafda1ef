// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a graph that lives on the host must keep of CUDA's meaning. Bad input first: circles, nodes
 * of others, memory that is gone, another shape, too many nodes. Then: branches run side by side,
 * an event in the middle is done before the end, launches of one instance run one after the other,
 * a change leaves launches alone that are under way, pageable memory is read at the launch. Streams
 * are held by host functions that wait for a flag.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define BYTES 4096u

static unsigned char *dev, *pinned;

static void CUDART_CB hold(void *flag)
{
	while (!__atomic_load_n((int *)flag, __ATOMIC_ACQUIRE))
		usleep(100);
}

static void CUDART_CB set_flag(void *flag)
{
	__atomic_store_n((int *)flag, 1, __ATOMIC_RELEASE);
}

static cudaGraph_t new_graph(void)
{
	cudaGraph_t g;

	OK(cudaGraphCreate(&g, 0));
	return g;
}

static struct cudaMemsetParams filling(int value)
{
	struct cudaMemsetParams p = {};

	p.dst = dev;
	p.value = (unsigned int)value;
	p.elementSize = 1;
	p.width = BYTES;
	p.height = 1;
	return p;
}

static cudaGraphNode_t add_set(cudaGraph_t g, cudaGraphNode_t *after, int value)
{
	struct cudaMemsetParams p = filling(value);
	cudaGraphNode_t n;

	OK(cudaGraphAddMemsetNode(&n, g, after, after != NULL, &p));
	return n;
}

static cudaGraphNode_t add_copy(cudaGraph_t g, cudaGraphNode_t *after, void *to, const void *from)
{
	cudaGraphNode_t n;

	OK(cudaGraphAddMemcpyNode1D(&n, g, after, after != NULL, to, from, BYTES,
				    cudaMemcpyDefault));
	return n;
}

static cudaGraphNode_t add_host(cudaGraph_t g, cudaGraphNode_t *after, cudaHostFn_t fn, void *arg)
{
	struct cudaHostNodeParams p = {fn, arg};
	cudaGraphNode_t n;

	OK(cudaGraphAddHostNode(&n, g, after, after != NULL, &p));
	return n;
}

static cudaGraphExec_t instance(cudaGraph_t g)
{
	cudaGraphExec_t exec;

	OK(cudaGraphInstantiate(&exec, g, 0));
	return exec;
}

static void all(const unsigned char *p, int value)
{
	size_t i;

	for (i = 0; i < BYTES; i++)
		REQUIRE(p[i] == value, "%d, not %d, at %zu", p[i], value, i);
}

static void still_works(void)
{
	cudaGraph_t g = new_graph();
	cudaGraphNode_t set = add_set(g, NULL, 77);
	cudaGraphExec_t exec;

	add_copy(g, &set, pinned, dev);
	exec = instance(g);
	memset(pinned, 0, BYTES);
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	all(pinned, 77);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
}

static void bad_graphs(void)
{
	cudaGraph_t g = new_graph(), other = new_graph();
	cudaGraphNode_t a = add_set(g, NULL, 1), b = add_set(g, &a, 2),
			far = add_set(other, NULL, 3);
	cudaGraphExecUpdateResultInfo info;
	cudaGraphExec_t exec, none = NULL;
	struct cudaMemsetParams p = filling(4);

	OK(cudaGraphAddDependencies(g, &b, &a, NULL, 1));
	REFUSED(cudaGraphInstantiate(&exec, g, 0), cudaErrorInvalidValue);
	OK(cudaGraphRemoveDependencies(g, &b, &a, NULL, 1));
	REFUSED(cudaGraphAddMemsetNode(&b, g, &far, 1, &p), cudaErrorInvalidValue);
	exec = instance(g);
	REFUSED(cudaGraphExecMemsetNodeSetParams(exec, far, &p), cudaErrorInvalidValue);
	REFUSED(cudaGraphExecUpdate(exec, other, &info), cudaErrorGraphExecUpdateFailure);
	REQUIRE(info.result == cudaGraphExecUpdateErrorTopologyChanged, "%d", info.result);
	REFUSED(cudaGraphLaunch(none, 0), cudaErrorInvalidValue);
	/* None of this has changed the instance. */
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaMemcpy(pinned, dev, BYTES, cudaMemcpyDefault));
	all(pinned, 2);
	OK(cudaGraphExecDestroy(exec));
	REFUSED(cudaGraphLaunch(exec, 0), cudaErrorInvalidValue);
	OK(cudaGraphDestroy(g));
	OK(cudaGraphDestroy(other));
	still_works();
}

/* A launch names memory that is gone: it does nothing, and the next waiting call says so. */
static void stale_memory(void)
{
	cudaGraph_t g = new_graph();
	cudaGraphExec_t exec;
	unsigned char *gone, *host;

	OK(cudaMalloc((void **)&gone, BYTES));
	OK(cudaMallocHost((void **)&host, 8 << 20));
	add_copy(g, NULL, gone, host);
	exec = instance(g);
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	OK(cudaFree(gone));
	OK(cudaGraphLaunch(exec, 0));
	REFUSED(cudaDeviceSynchronize(), cudaErrorInvalidValue);
	OK(cudaFreeHost(host));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	still_works();
}

static void many(void)
{
	cudaGraph_t g = new_graph();
	cudaGraphNode_t n, before;
	cudaGraphExec_t exec;
	unsigned int i;

	OK(cudaGraphAddEmptyNode(&before, g, NULL, 0));
	for (i = 1; i < 100000; i++) {
		OK(cudaGraphAddEmptyNode(&n, g, &before, 1));
		before = n;
	}
	exec = instance(g);
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	OK(cudaGraphExecDestroy(exec));
	for (; i < 300000; i++)
		OK(cudaGraphAddEmptyNode(&n, g, &before, 1));
	REFUSED(cudaGraphInstantiate(&exec, g, 0), cudaErrorMemoryAllocation);
	OK(cudaGraphDestroy(g));
	still_works();
}

/* The first branch holds until the function of the second one has run. */
static void side_by_side(void)
{
	cudaGraph_t g = new_graph();
	cudaGraphExec_t exec;
	cudaGraphNode_t ends[2], n;
	int flag = 0;
	cudaEvent_t before;

	/* A function that waits for another function would wait for ever: they run one at a time.
	 */
	OK(cudaEventCreate(&before));
	n = add_host(g, NULL, hold, &flag);
	ends[0] = add_set(g, &n, 9);
	n = add_copy(g, NULL, dev + BYTES, pinned);
	OK(cudaGraphAddEventRecordNode(&ends[1], g, &n, 1, before));
	OK(cudaGraphAddEmptyNode(&n, g, ends, 2));
	exec = instance(g);
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaEventSynchronize(before));
	EXPECT(cudaStreamQuery(0), cudaErrorNotReady);
	set_flag(&flag);
	OK(cudaDeviceSynchronize());
	OK(cudaEventDestroy(before));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
}

/* Two launches in two streams, and a change while the first is held. */
static void one_after_the_other(void)
{
	cudaStream_t s, t;
	cudaGraph_t g = new_graph();
	cudaGraphNode_t held, set;
	cudaGraphExec_t exec;
	struct cudaMemsetParams p = filling(6);
	int flag = 0;

	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
	held = add_host(g, NULL, hold, &flag);
	set = add_set(g, &held, 5);
	add_copy(g, &set, pinned, dev);
	exec = instance(g);
	memset(pinned, 0, BYTES);
	OK(cudaGraphLaunch(exec, s));
	OK(cudaGraphExecMemsetNodeSetParams(exec, set, &p));
	OK(cudaGraphLaunch(exec, t));
	EXPECT(cudaStreamQuery(s), cudaErrorNotReady);
	EXPECT(cudaStreamQuery(t), cudaErrorNotReady);
	all(pinned, 0);
	/* The instance may go while it runs. */
	OK(cudaGraphExecDestroy(exec));
	set_flag(&flag);
	OK(cudaStreamSynchronize(t));
	all(pinned, 6);
	OK(cudaStreamSynchronize(s));
	OK(cudaStreamDestroy(s));
	OK(cudaStreamDestroy(t));
	OK(cudaGraphDestroy(g));
}

/* The launch under way does what it was told before the change. */
static void change_under_way(void)
{
	cudaGraph_t g = new_graph();
	cudaGraphNode_t held, set;
	cudaGraphExec_t exec;
	struct cudaMemsetParams p = filling(6);
	int flag = 0;

	held = add_host(g, NULL, hold, &flag);
	set = add_set(g, &held, 5);
	add_copy(g, &set, pinned, dev);
	exec = instance(g);
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaGraphExecMemsetNodeSetParams(exec, set, &p));
	OK(cudaGraphUpload(exec, 0)); /* now the host has the change */
	set_flag(&flag);
	OK(cudaDeviceSynchronize());
	all(pinned, 5);
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	all(pinned, 6);
	OK(cudaGraphNodeSetEnabled(exec, set, 0));
	OK(cudaMemset(dev, 1, BYTES));
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	all(pinned, 1);
	OK(cudaGraphNodeSetEnabled(exec, set, 1));
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	all(pinned, 6);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
}

/* A function that was replaced is not called any more, its successor is. */
static void other_function(void)
{
	cudaGraph_t g = new_graph();
	int first = 0, second = 0, gate = 0;
	cudaGraphNode_t held = add_host(g, NULL, hold, &gate),
			n = add_host(g, &held, set_flag, &first);
	cudaGraphExec_t exec = instance(g);
	struct cudaHostNodeParams p = {set_flag, &second};

	OK(cudaGraphLaunch(exec, 0));
	OK(cudaGraphExecHostNodeSetParams(exec, n, &p));
	OK(cudaGraphUpload(exec, 0));
	set_flag(&gate);
	OK(cudaDeviceSynchronize());
	REQUIRE(first && !second, "%d %d", first, second);
	first = 0;
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	REQUIRE(!first && second, "%d %d", first, second);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
}

/* Another function may wait for an event that another stream records, and the other way round. */
static void events(void)
{
	cudaGraph_t g = new_graph();
	cudaGraphNode_t n;
	cudaGraphExec_t exec;
	cudaEvent_t e;
	cudaStream_t s, t;
	int flag = 0;

	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
	OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	OK(cudaGraphAddEventWaitNode(&n, g, NULL, 0, e));
	add_set(g, &n, 3);
	exec = instance(g);
	OK(cudaLaunchHostFunc(s, hold, &flag));
	OK(cudaEventRecord(e, s));
	OK(cudaMemset(dev, 0, BYTES));
	OK(cudaGraphLaunch(exec, t));
	EXPECT(cudaStreamQuery(t), cudaErrorNotReady);
	set_flag(&flag);
	OK(cudaStreamSynchronize(t));
	OK(cudaMemcpy(pinned, dev, BYTES, cudaMemcpyDefault));
	all(pinned, 3);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	OK(cudaEventDestroy(e));
	OK(cudaStreamDestroy(s));
	OK(cudaStreamDestroy(t));
}

/* So many branches that the software GPU has no threads for all of them. */
static void crowd(void)
{
	cudaGraph_t g = new_graph();
	cudaGraphExec_t exec[50];
	cudaGraphNode_t ends[8];
	unsigned int i;

	for (i = 0; i < 8; i++) {
		struct cudaMemsetParams p = filling(40 + (int)i);

		p.dst = dev + i * (BYTES / 8);
		p.width = BYTES / 8;
		OK(cudaGraphAddMemsetNode(&ends[i], g, NULL, 0, &p));
	}
	OK(cudaGraphAddMemcpyNode1D(&ends[0], g, ends, 8, pinned, dev, BYTES, cudaMemcpyDefault));
	for (i = 0; i < 50; i++)
		exec[i] = instance(g);
	for (i = 0; i < 50; i++) {
		memset(pinned, 0, BYTES);
		OK(cudaGraphLaunch(exec[i], 0));
		OK(cudaDeviceSynchronize());
		REQUIRE(pinned[0] == 40 && pinned[BYTES / 2] == 44 && pinned[BYTES - 1] == 47,
			"%d %d %d, graph %u", pinned[0], pinned[BYTES / 2], pinned[BYTES - 1], i);
	}
	for (i = 0; i < 50; i++)
		OK(cudaGraphExecDestroy(exec[i]));
	OK(cudaGraphDestroy(g));
}

/* Pageable memory is read at each launch, also if an instance is changed to it and back. */
static void pageable(void)
{
	static unsigned char mine[BYTES];
	cudaGraph_t g = new_graph();
	cudaGraphNode_t up = add_copy(g, NULL, dev, pinned);
	cudaGraphExec_t exec = instance(g);
	int i;

	memset(pinned, 11, BYTES);
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaMemcpy(mine, dev, BYTES, cudaMemcpyDefault));
	all(mine, 11);
	OK(cudaGraphExecMemcpyNodeSetParams1D(exec, up, dev, mine, BYTES, cudaMemcpyDefault));
	for (i = 20; i < 23; i++) {
		memset(mine, i, BYTES);
		OK(cudaGraphLaunch(exec, 0));
		OK(cudaMemcpy(pinned, dev, BYTES, cudaMemcpyDefault));
		all(pinned, i);
	}
	OK(cudaGraphExecMemcpyNodeSetParams1D(exec, up, dev, pinned, BYTES, cudaMemcpyDefault));
	memset(pinned, 30, BYTES);
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaMemcpy(mine, dev, BYTES, cudaMemcpyDefault));
	all(mine, 30);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
}

/* Pageable memory in chunks is read when the launch reaches the copy, and may be another then. */
static void pageable_chunks(void)
{
	const size_t len = 4u << 20;
	unsigned char *mine = (unsigned char *)malloc(len), *far, *old;
	cudaGraph_t g = new_graph();
	cudaGraphNode_t held, up, down;
	cudaGraphExec_t exec;
	int flag = 0, i;

	/* With a sanitizer's malloc, which is loaded first, the memory is not in chunks. */
	if (getenv("LD_PRELOAD")) {
		free(mine);
		OK(cudaGraphDestroy(g));
		return;
	}
	OK(cudaMalloc((void **)&far, len));
	held = add_host(g, NULL, hold, &flag);
	OK(cudaGraphAddMemcpyNode1D(&up, g, &held, 1, far, mine, len / 2, cudaMemcpyDefault));
	OK(cudaGraphAddMemcpyNode1D(&down, g, &up, 1, mine + len / 2, far, len / 2,
				    cudaMemcpyDefault));
	exec = instance(g);
	fill(mine, len, 1);
	OK(cudaGraphLaunch(exec, 0));
	fill(mine, len / 2, 2);
	set_flag(&flag);
	OK(cudaDeviceSynchronize());
	REQUIRE(differs(mine, mine + len / 2, len / 2) == len / 2, "bytes differ");
	/* Memory of others goes, then this one goes and comes again. */
	for (i = 0; i < 20; i++) {
		old = mine;
		free(malloc((size_t)(64 + i) << 20));
		free(mine);
		mine = (unsigned char *)malloc(len);
		if (mine != old) {
			free(mine);
			mine = NULL;
			break;
		}
		fill(mine, len, 10 + i);
		OK(cudaGraphLaunch(exec, 0));
		OK(cudaDeviceSynchronize());
		REQUIRE(differs(mine, mine + len / 2, len / 2) == len / 2, "bytes differ");
	}
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	OK(cudaFree(far));
	free(mine);
}

/* Pinned memory of many chunks: each has a registration of its own. */
static void long_copies(void)
{
	const size_t len = 40u << 20;
	unsigned char *up, *down, *far;
	cudaGraph_t g = new_graph();
	cudaGraphNode_t a, b;
	cudaGraphExec_t exec;

	OK(cudaMallocHost((void **)&up, len));
	OK(cudaMallocHost((void **)&down, len));
	OK(cudaMalloc((void **)&far, len));
	fill(up, len, 1);
	OK(cudaGraphAddMemcpyNode1D(&a, g, NULL, 0, far, up + 100, len - 100, cudaMemcpyDefault));
	OK(cudaGraphAddMemcpyNode1D(&b, g, &a, 1, down + 77, far, len - 100, cudaMemcpyDefault));
	exec = instance(g);
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	REQUIRE(differs(up + 100, down + 77, len - 100) == len - 100, "bytes differ");
	fill(up, len, 2);
	OK(cudaGraphExecMemcpyNodeSetParams1D(exec, b, down, far, len - 100, cudaMemcpyDefault));
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceSynchronize());
	REQUIRE(differs(up + 100, down, len - 100) == len - 100, "bytes differ");
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	OK(cudaFreeHost(up));
	OK(cudaFreeHost(down));
	OK(cudaFree(far));
}

/* The mirror has none of this in a child process, and none after a reset. */
static void others(void)
{
	cudaGraph_t g = new_graph();
	cudaGraphExec_t exec;
	int status;
	pid_t pid;

	add_set(g, NULL, 1);
	exec = instance(g);
	pid = fork();
	if (!pid) {
		EXPECT(cudaGraphLaunch(exec, 0), cudaErrorInvalidValue);
		OK(cudaGraphExecDestroy(exec));
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "status %#x", status);
	OK(cudaGraphLaunch(exec, 0));
	OK(cudaDeviceReset());
	EXPECT(cudaGraphLaunch(exec, 0), cudaErrorInvalidValue);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
}

int main(void)
{
	OK(cudaMalloc((void **)&dev, 2 * BYTES));
	OK(cudaMallocHost((void **)&pinned, BYTES));
	bad_graphs();
	stale_memory();
	many();
	side_by_side();
	one_after_the_other();
	change_under_way();
	other_function();
	events();
	crowd();
	pageable();
	pageable_chunks();
	long_copies();
	still_works();
	others();
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory of graphs in difficult cases: freed while a launch still uses it, freed by a reset, in a
 * child process, on a device other than the thread's, and freed by calls that may not free it.
 */
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define LEN 4096u

static sem_t gate;
static unsigned char *out, *out2;

static void wait_at_gate(void *unused)
{
	(void)unused;
	while (sem_wait(&gate))
		;
}

static struct cudaMemAllocNodeParams on_device(int device)
{
	return (struct cudaMemAllocNodeParams){
		.poolProps.allocType = cudaMemAllocationTypePinned,
		.poolProps.location = {cudaMemLocationTypeDevice, device},
		.bytesize = LEN,
	};
}

/*
 * Makes a graph that allocates memory, sets all bytes to `value`, copies them out, and, if `frees`
 * is set, frees the memory.
 */
static cudaGraphExec_t make(cudaGraph_t *graph, int device, int value, void *to, bool frees,
			    void **ptr)
{
	struct cudaMemAllocNodeParams m = on_device(device);
	struct cudaMemsetParams set = {.elementSize = 1, .width = LEN, .height = 1};
	cudaGraphNode_t a, b, c, d;
	cudaGraphExec_t exec;

	OK(cudaGraphCreate(graph, 0));
	OK(cudaGraphAddMemAllocNode(&a, *graph, NULL, 0, &m));
	set.dst = m.dptr;
	set.value = (unsigned int)value;
	OK(cudaGraphAddMemsetNode(&b, *graph, &a, 1, &set));
	OK(cudaGraphAddMemcpyNode1D(&c, *graph, &b, 1, to, m.dptr, LEN, cudaMemcpyDeviceToHost));
	if (frees)
		OK(cudaGraphAddMemFreeNode(&d, *graph, &c, 1, m.dptr));
	OK(cudaGraphInstantiate(&exec, *graph, 0));
	*ptr = m.dptr;
	return exec;
}

static void all(const unsigned char *p, int value, const char *what)
{
	size_t i;

	for (i = 0; i < LEN; i++)
		REQUIRE(p[i] == value, "%s: %d, not %d, at %zu", what, p[i], value, i);
}

static void bad_input(void)
{
	struct cudaMemAllocNodeParams m = on_device(0);
	cudaGraphNode_t node;
	cudaGraph_t graph;
	cudaStream_t s;
	uint64_t value = 0;
	void *p;

	OK(cudaGraphCreate(&graph, 0));
	m.bytesize = 0;
	REFUSED(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &m), cudaErrorInvalidValue);
	m = on_device(7);
	REFUSED(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &m), cudaErrorInvalidDevice);
	m = on_device(0);
	m.accessDescCount = 1;
	REFUSED(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &m), cudaErrorInvalidValue);
	m = on_device(0);
	m.poolProps.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	REFUSED(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &m), cudaErrorInvalidValue);
	m = on_device(0);
	m.bytesize = (size_t)1 << 50;
	REFUSED(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &m), cudaErrorMemoryAllocation);
	m = on_device(0);
	REFUSED(cudaGraphAddMemAllocNode(&node, NULL, NULL, 0, &m), cudaErrorInvalidValue);
	REFUSED(cudaGraphAddMemAllocNode(NULL, graph, NULL, 0, &m), cudaErrorInvalidValue);
	REFUSED(cudaGraphAddMemFreeNode(&node, graph, NULL, 0, NULL), cudaErrorInvalidValue);
	REFUSED(cudaDeviceGetGraphMemAttribute(0, (enum cudaGraphMemAttributeType)77, &value),
		cudaErrorInvalidValue);
	REFUSED(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, NULL),
		cudaErrorInvalidValue);
	REFUSED(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &value),
		cudaErrorInvalidValue);
	OK(cudaGraphDestroy(graph));
	/*
	 * A capture can free only memory that a graph has allocated, and only once it is allocated.
	 */
	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaMallocAsync(&p, LEN, s));
	OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	REFUSED(cudaFreeAsync(p, s), cudaErrorInvalidValue);
	OK(cudaStreamEndCapture(s, &graph));
	OK(cudaFreeAsync(p, s));
	OK(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &m));
	REFUSED(cudaFreeAsync(m.dptr, s), cudaErrorInvalidValue);
	REFUSED(cudaFree(m.dptr), cudaErrorInvalidValue);
	OK(cudaGraphDestroy(graph));
	REFUSED(cudaFree(m.dptr), cudaErrorInvalidValue);
	OK(cudaStreamDestroy(s));
}

static uint64_t reserved(void)
{
	uint64_t bytes = 0;

	OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &bytes));
	return bytes;
}

/* The memory is not given out again before the launched work is done. */
static void while_it_is_used(void)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	cudaStream_t s, other;
	void *p, *q, *r;

	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	OK(cudaLaunchHostFunc(s, wait_at_gate, NULL));
	exec = make(&graph, 0, 1, out, true, &p);
	OK(cudaGraphLaunch(exec, s));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaDeviceGraphMemTrim(0));
	exec = make(&graph, 0, 2, out2, false, &q);
	REQUIRE(q != p, "memory that is in use");
	OK(cudaGraphLaunch(exec, other));
	OK(cudaStreamSynchronize(other));
	all(out2, 2, "another graph");
	REQUIRE(reserved() >= 2 * LEN, "%llu bytes while two graphs use some",
		(unsigned long long)reserved());
	/* The free is in the stream that is held up. */
	OK(cudaFreeAsync(q, s));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaDeviceGraphMemTrim(0));
	exec = make(&graph, 0, 3, out2, true, &r);
	REQUIRE(r != q && r != p, "memory that is in use");
	OK(cudaGraphLaunch(exec, s));
	REQUIRE(out[0] == 0 && out2[0] == 2, "not held up");
	sem_post(&gate);
	OK(cudaStreamSynchronize(s));
	all(out, 1, "the first graph");
	all(out2, 3, "the third graph");
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaDeviceSynchronize());
	OK(cudaDeviceGraphMemTrim(0));
	REQUIRE(reserved() == 0, "%llu bytes when all is done", (unsigned long long)reserved());
	OK(cudaStreamDestroy(s));
	OK(cudaStreamDestroy(other));
}

/* A free that its stream has not reached yet holds up the next launch, in any stream. */
static void freed_and_launched_again(void)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	cudaStream_t s, other;
	void *p;

	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	exec = make(&graph, 0, 4, out, false, &p);
	OK(cudaGraphLaunch(exec, s));
	OK(cudaStreamSynchronize(s));
	OK(cudaLaunchHostFunc(s, wait_at_gate, NULL));
	OK(cudaMemsetAsync(p, 5, LEN, s));
	OK(cudaMemcpyAsync(out2, p, LEN, cudaMemcpyDeviceToHost, s));
	OK(cudaFreeAsync(p, s));
	memset(out, 0, LEN);
	OK(cudaGraphLaunch(exec, other));
	EXPECT(cudaStreamQuery(other), cudaErrorNotReady);
	REQUIRE(out[0] == 0, "launched before the free");
	sem_post(&gate);
	OK(cudaStreamSynchronize(other));
	all(out, 4, "launched again");
	OK(cudaStreamSynchronize(s));
	all(out2, 5, "before the free");
	OK(cudaFree(p));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamDestroy(s));
	OK(cudaStreamDestroy(other));
}

/* Captured calls take over addresses, too. What a launch leaves is freed once, by the last. */
static void taken_over(void)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	cudaStream_t s;
	void *p, *q, *r, *larger;

	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	OK(cudaMallocAsync(&p, LEN, s));
	OK(cudaMemsetAsync(p, 7, LEN, s));
	OK(cudaMemcpyAsync(out, p, LEN, cudaMemcpyDeviceToHost, s));
	OK(cudaFreeAsync(p, s));
	OK(cudaMallocAsync(&larger, LEN + 1, s));
	REQUIRE(larger != p, "memory that is too small");
	OK(cudaMallocAsync(&q, LEN / 2, s));
	OK(cudaMallocAsync(&r, LEN, s));
	REQUIRE(q == p && r != p, "%p, %p, %p", p, q, r);
	OK(cudaMemsetAsync(q, 8, LEN / 2, s));
	OK(cudaFreeAsync(r, s));
	OK(cudaFreeAsync(larger, s));
	OK(cudaStreamEndCapture(s, &graph));
	REFUSED(cudaFree(q), cudaErrorInvalidValue);
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, s));
	/* The second memory is left, also when the graph has gone. */
	REFUSED(cudaGraphLaunch(exec, s), cudaErrorInvalidValue);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaMemcpyAsync(out2, q, LEN / 2, cudaMemcpyDeviceToHost, s));
	OK(cudaLaunchHostFunc(s, wait_at_gate, NULL));
	OK(cudaFreeAsync(q, s));
	REFUSED(cudaFreeAsync(q, s), cudaErrorInvalidValue);
	OK(cudaDeviceGraphMemTrim(0));
	REQUIRE(reserved() >= LEN, "freed before its stream is there");
	sem_post(&gate);
	OK(cudaStreamSynchronize(s));
	REQUIRE(out[0] == 7 && out[LEN - 1] == 7 && out2[0] == 8 && out2[LEN / 2 - 1] == 8,
		"%d, %d", out[0], out2[0]);
	OK(cudaDeviceSynchronize());
	OK(cudaDeviceGraphMemTrim(0));
	REQUIRE(reserved() == 0, "%llu bytes are left", (unsigned long long)reserved());
	OK(cudaStreamDestroy(s));
}

static void once(int device, int value)
{
	static unsigned char plain[LEN];
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	void *p;

	exec = make(&graph, device, value, plain, true, &p);
	OK(cudaGraphLaunch(exec, NULL));
	OK(cudaDeviceSynchronize());
	all(plain, value, "once");
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
}

/* Memory of the parent, or from before a reset, is gone. The graphs still exist and do no harm. */
static void lost(void)
{
	static unsigned char plain[LEN];
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	uint64_t bytes;
	int status;
	void *p;
	pid_t pid;

	exec = make(&graph, 0, 6, plain, false, &p);
	OK(cudaGraphLaunch(exec, NULL));
	OK(cudaDeviceSynchronize());
	pid = fork();
	if (!pid) {
		once(0, 7);
		OK(cudaGraphDestroy(graph));
		once(0, 8);
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "the child's status is %x", status);
	OK(cudaDeviceReset());
	OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
	REQUIRE(bytes == 0, "%llu used after the reset", (unsigned long long)bytes);
	once(0, 9);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	once(0, 10);
	OK(cudaDeviceSynchronize());
	OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
	REQUIRE(bytes == 0, "%llu used", (unsigned long long)bytes);
}

static void on_another_device(void)
{
	struct cudaMemAccessDesc access = {{cudaMemLocationTypeDevice, 0},
					   cudaMemAccessFlagsProtReadWrite};
	struct cudaMemAllocNodeParams m;
	struct cudaPointerAttributes attr;
	cudaGraphNode_t nodes[2];
	cudaMemPool_t pool;
	cudaGraph_t graph;
	cudaStream_t s;
	size_t count = 2;
	void *p;

	once(1, 11);
	OK(cudaDeviceGetDefaultMemPool(&pool, 1));
	OK(cudaMemPoolSetAccess(pool, &access, 1));
	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	OK(cudaMallocFromPoolAsync(&p, LEN, pool, s));
	OK(cudaFreeAsync(p, s));
	OK(cudaStreamEndCapture(s, &graph));
	OK(cudaGraphGetNodes(graph, nodes, &count));
	OK(cudaGraphMemAllocNodeGetParams(nodes[0], &m));
	REQUIRE(m.poolProps.location.id == 1 && m.accessDescCount == 1 &&
			m.accessDescs[0].location.id == 0,
		"on device %d, for %zu others", m.poolProps.location.id, m.accessDescCount);
	OK(cudaPointerGetAttributes(&attr, p));
	REQUIRE(attr.device == 1, "on device %d", attr.device);
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamDestroy(s));
}

int main(void)
{
	setenv("QCU_LOOPBACK_GPUS", "2", 1);
	REQUIRE(!sem_init(&gate, 0, 0), "semaphore");
	OK(cudaMallocHost((void **)&out, LEN));
	OK(cudaMallocHost((void **)&out2, LEN));
	memset(out, 0, LEN);
	bad_input();
	while_it_is_used();
	freed_and_launched_again();
	taken_over();
	lost();
	on_another_device();
	return 0;
}

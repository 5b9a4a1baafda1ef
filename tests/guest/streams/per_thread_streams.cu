// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compiled with --default-stream per-thread: launches, events, callbacks, captures, graphs,
 * pools and hints on stream 0 are in the thread's own stream. A capture of that stream proves
 * it: work put into stream 0 becomes a node of the graph. The streams of two threads run side by
 * side. The legacy stream waits for both, and both wait for it.
 */
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define N     2000
#define BYTES (N * sizeof(int))
#define HALF  ((size_t)2 << 20)

__device__ int added = 5;

__global__ void add(int *p, int what, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += what + added;
}

/*
 * A C compiler uses this function for cudaGraphLaunch. nvcc uses the other one, with the
 * thread's stream.
 */
extern "C" cudaError_t launch_graph(cudaGraphExec_t exec, cudaStream_t stream)
	__asm__("cudaGraphLaunch_ptsz");

static int *dev, *other, *pinned;
static int three = 3, count = N, symbol_back;
static cudaStream_t side;
static cudaEvent_t event, joined;

static void check_all(const int *p, int want, const char *what)
{
	for (int i = 0; i < N; i++)
		REQUIRE(p[i] == want, "%s: element %d is %d, not %d", what, i, p[i], want);
}

static void CUDART_CB triple(void *data)
{
	int *p = (int *)data;

	for (int i = 0; i < N; i++)
		p[i] *= 3;
}

static int called;

static void CUDART_CB call(cudaStream_t, cudaError_t status, void *data)
{
	REQUIRE(status == cudaSuccess, "status %d", status);
	called += *(int *)data;
}

static void launch(bool cooperative, int *what)
{
	void *args[] = {&dev, what, &count};
	cudaLaunchConfig_t config = {};

	if (cooperative) {
		CHECK(cudaLaunchCooperativeKernel((const void *)add, dim3((N + 255) / 256),
						  dim3(256), args, 0, 0));
		return;
	}
	CHECK(cudaLaunchKernel((const void *)add, dim3((N + 255) / 256), dim3(256), args, 0, 0));
	config.gridDim = dim3((N + 255) / 256);
	config.blockDim = dim3(256);
	CHECK(cudaLaunchKernelExC(&config, (const void *)add, args));
}

/*
 * Starts from zeros with kernels that add 5 + 3 each. The results are three times as much, in
 * pinned memory and in `other`.
 */
static int put_work(void)
{
	cudaMemcpy3DParms p = {};
	int work = 0;

	CHECK(cudaMemsetAsync(dev, 0xff, BYTES));
	CHECK(cudaMemset2DAsync(dev, BYTES / 4, 0, BYTES / 4, 2));
	CHECK(cudaMemset3DAsync(make_cudaPitchedPtr((char *)dev + BYTES / 2, BYTES / 4, BYTES / 4, 2), 0,
				make_cudaExtent(BYTES / 4, 2, 1)));
	add<<<(N + 255) / 256, 256>>>(dev, 3, N);
	CHECK_LAUNCH();
	launch(false, &three);
	launch(true, &three);
	work = 4 * 8;
	CHECK(cudaMemcpyAsync(pinned, dev, BYTES, cudaMemcpyDeviceToHost));
	CHECK(cudaLaunchHostFunc(0, triple, pinned));
	CHECK(cudaMemcpy2DAsync(dev, BYTES / 4, pinned, BYTES / 4, BYTES / 4, 4,
				cudaMemcpyHostToDevice));
	p.srcPtr = make_cudaPitchedPtr(dev, BYTES / 4, BYTES / 4, 4);
	p.dstPtr = make_cudaPitchedPtr(other, BYTES / 4, BYTES / 4, 4);
	p.extent = make_cudaExtent(BYTES / 4, 4, 1);
	p.kind = cudaMemcpyDeviceToDevice;
	CHECK(cudaMemcpy3DAsync(&p));
	return 3 * work;
}

static void check_work(int want, const char *what)
{
	static int back[N];

	check_all(pinned, want, what);
	CHECK(cudaMemcpy(back, other, BYTES, cudaMemcpyDeviceToHost));
	check_all(back, want, what);
}

static void at_once(void)
{
	int want = put_work();

	CHECK(cudaEventRecord(event));
	CHECK(cudaStreamWaitEvent(side, event, 0));
	CHECK(cudaMemsetAsync(dev, 0, BYTES, side));
	CHECK(cudaEventRecordWithFlags(joined, side, cudaEventRecordDefault));
	CHECK(cudaStreamWaitEvent(0, joined, 0));
	CHECK(cudaStreamAddCallback(0, call, &three, 0));
	CHECK(cudaStreamSynchronize(0));
	CHECK(cudaStreamQuery(0));
	REQUIRE(called == 3, "the callback was called for %d", called);
	check_work(want, "at once");
}

static void captured(void)
{
	cudaStreamCaptureStatus status;
	const cudaGraphNode_t *deps;
	cudaGraphInstantiateParams params = {};
	cudaGraphExec_t exec;
	cudaGraphNode_t tail, node;
	cudaGraph_t graph, now;
	unsigned long long id = 0;
	size_t nodes, n;
	int want;

	CHECK(cudaMemset(other, 0, BYTES));
	memset(pinned, 0, BYTES);
	CHECK(cudaStreamIsCapturing(0, &status));
	REQUIRE(status == cudaStreamCaptureStatusNone, "status %d", status);
	CHECK(cudaStreamBeginCapture(0, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaStreamIsCapturing(0, &status));
	REQUIRE(status == cudaStreamCaptureStatusActive, "status %d", status);
	want = put_work();
	CHECK(cudaMemcpyToSymbolAsync(added, &three, sizeof(three), 0, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyFromSymbolAsync(&symbol_back, added, sizeof(int), 0,
					cudaMemcpyDeviceToHost));
	CHECK(cudaStreamGetCaptureInfo(0, &status, &id, &now, &deps, NULL, &n));
	REQUIRE(status == cudaStreamCaptureStatusActive && id && n == 1, "%zu at the end", n);
	/* Adds an empty node by hand; the capture goes on behind it. */
	tail = deps[0];
	CHECK(cudaGraphAddEmptyNode(&node, now, &tail, 1));
	CHECK(cudaStreamUpdateCaptureDependencies(0, &node, NULL, 1,
						  cudaStreamSetCaptureDependencies));
	CHECK(cudaEventRecord(event));
	CHECK(cudaStreamWaitEvent(side, event, 0));
	CHECK(cudaMemsetAsync(dev, 0, BYTES, side));
	CHECK(cudaEventRecordWithFlags(joined, side, cudaEventRecordDefault));
	CHECK(cudaStreamWaitEvent(0, joined, 0));
	CHECK(cudaStreamEndCapture(0, &graph));
	REQUIRE(graph == now, "another graph");

	CHECK(cudaDeviceSynchronize());
	check_all(pinned, 0, "before the launch");
	CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
	REQUIRE(nodes == 15, "%zu nodes", nodes);
	CHECK(cudaGraphNodeGetDependencies(node, NULL, NULL, &n));
	REQUIRE(n == 1, "%zu before the empty node", n);
	CHECK(cudaGraphNodeGetDependentNodes(node, NULL, NULL, &n));
	REQUIRE(n == 1, "%zu behind the empty node", n);

	CHECK(cudaGraphInstantiateWithParams(&exec, graph, &params));
	REQUIRE(params.result_out == cudaGraphInstantiateSuccess, "result %d", params.result_out);
	CHECK(cudaGraphUpload(exec, 0));
	CHECK(launch_graph(exec, 0));
	CHECK(cudaStreamSynchronize(0));
	check_work(want, "captured");
	REQUIRE(symbol_back == 3, "%d", symbol_back);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	symbol_back = 5;
	CHECK(cudaMemcpyToSymbol(added, &symbol_back, sizeof(int)));
}

static void captured_to_graph(void)
{
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph, same;
	int want;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
	CHECK(cudaStreamBeginCaptureToGraph(0, graph, &node, NULL, 1,
					    cudaStreamCaptureModeThreadLocal));
	want = put_work();
	CHECK(cudaStreamEndCapture(0, &same));
	REQUIRE(same == graph, "another graph");
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	memset(pinned, 0, BYTES);
	CHECK(launch_graph(exec, 0));
	CHECK(cudaStreamSynchronize(0));
	check_work(want, "captured to a graph");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void asked(void)
{
	cudaStreamAttrValue value = {};
	unsigned long long zero, own, legacy;
	unsigned int flags = 99;
	int priority = 99, device = 99;
	void *fn = &value;
	cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;

	CHECK(cudaStreamGetId(0, &zero));
	CHECK(cudaStreamGetId(cudaStreamPerThread, &own));
	CHECK(cudaStreamGetId(cudaStreamLegacy, &legacy));
	REQUIRE(zero == own && zero != legacy, "%llx, %llx, %llx", zero, own, legacy);
	CHECK(cudaStreamGetFlags(0, &flags));
	REQUIRE(flags == cudaStreamDefault, "flags %x", flags);
	CHECK(cudaStreamGetPriority(0, &priority));
	REQUIRE(priority == 0, "priority %d", priority);
	CHECK(cudaStreamGetDevice(0, &device));
	REQUIRE(device == 0, "device %d", device);
	/*
	 * Attributes set on 0 are copied to another stream, and attributes set on that one are
	 * copied back to 0.
	 */
	value.syncPolicy = cudaSyncPolicyBlockingSync;
	CHECK(cudaStreamSetAttribute(0, cudaStreamAttributeSynchronizationPolicy, &value));
	CHECK(cudaStreamCopyAttributes(side, 0));
	value.syncPolicy = cudaSyncPolicyAuto;
	CHECK(cudaStreamGetAttribute(side, cudaStreamAttributeSynchronizationPolicy, &value));
	REQUIRE(value.syncPolicy == cudaSyncPolicyBlockingSync, "policy %d", value.syncPolicy);
	value.syncPolicy = cudaSyncPolicySpin;
	CHECK(cudaStreamSetAttribute(side, cudaStreamAttributeSynchronizationPolicy, &value));
	CHECK(cudaStreamCopyAttributes(0, side));
	CHECK(cudaStreamGetAttribute(0, cudaStreamAttributeSynchronizationPolicy, &value));
	REQUIRE(value.syncPolicy == cudaSyncPolicySpin, "policy %d", value.syncPolicy);
	CHECK(cudaGetDriverEntryPoint("cuThereIsNoSuchFunction", &fn, cudaEnableDefault, &found));
	REQUIRE(!fn && found == cudaDriverEntryPointSymbolNotFound, "%p, %d", fn, found);
	fn = &value;
	CHECK(cudaGetDriverEntryPointByVersion("cuThereIsNoSuchFunction", &fn, 12000,
					       cudaEnableDefault, &found));
	REQUIRE(!fn && found == cudaDriverEntryPointSymbolNotFound, "%p, %d", fn, found);
}

static void memory(void)
{
	cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0}, cpu = {cudaMemLocationTypeHost, 0};
	cudaMemLocation places[] = {cpu, gpu};
	int *managed, *from_default, *from_pool, where;
	void *halves[2];
	size_t sizes[] = {HALF, HALF}, first[] = {0, 1};
	cudaMemPool_t pool;

	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cudaMallocAsync(&from_default, BYTES, 0));
	CHECK(cudaMallocFromPoolAsync(&from_pool, BYTES, pool, 0));
	CHECK(cudaMemsetAsync(from_default, 0, BYTES));
	add<<<(N + 255) / 256, 256>>>(from_default, 10, N);
	CHECK_LAUNCH();
	CHECK(cudaMemcpyAsync(from_pool, from_default, BYTES, cudaMemcpyDeviceToDevice));
	CHECK(cudaFreeAsync(from_default, 0));
	CHECK(cudaMemcpyAsync(pinned, from_pool, BYTES, cudaMemcpyDeviceToHost));
	CHECK(cudaFreeAsync(from_pool, 0));
	CHECK(cudaStreamSynchronize(0));
	check_all(pinned, 15, "stream-ordered memory");

	CHECK(cudaMallocManaged(&managed, 2 * HALF));
	halves[0] = managed;
	halves[1] = (char *)managed + HALF;
	for (int i = 0; i < N; i++)
		managed[i] = 1;
	CHECK(cudaStreamAttachMemAsync(0, managed, 0, cudaMemAttachGlobal));
	CHECK(cudaMemPrefetchAsync(managed, HALF, gpu, 0, 0));
	add<<<(N + 255) / 256, 256>>>(managed, 10, N);
	CHECK_LAUNCH();
	/* A batch cannot use the legacy stream, and the meaning of 0 is not defined. */
	CHECK(cudaMemPrefetchBatchAsync(halves, sizes, 2, places, first, 2, 0, cudaStreamPerThread));
	CHECK(cudaStreamSynchronize(0));
	check_all(managed, 16, "prefetched memory");
	CHECK(cudaMemRangeGetAttribute(&where, sizeof(where),
				       cudaMemRangeAttributeLastPrefetchLocation, managed, HALF));
	REQUIRE(where == cudaCpuDeviceId, "prefetched to %d", where);
	/* Discarded memory may hold anything until it is written again. */
	CHECK(cudaMemDiscardBatchAsync(halves, sizes, 2, 0, cudaStreamPerThread));
	CHECK(cudaMemDiscardAndPrefetchBatchAsync(halves, sizes, 2, &gpu, first, 1, 0,
						  cudaStreamPerThread));
	CHECK(cudaMemsetAsync(managed, 0, BYTES));
	add<<<(N + 255) / 256, 256>>>(managed, 1, N);
	CHECK_LAUNCH();
	CHECK(cudaStreamSynchronize(0));
	check_all(managed, 6, "discarded memory");
	CHECK(cudaMemRangeGetAttribute(&where, sizeof(where),
				       cudaMemRangeAttributeLastPrefetchLocation, managed,
				       2 * HALF));
	REQUIRE(where == 0, "prefetched to %d", where);
	CHECK(cudaFree(managed));
}

/* ---- two threads ---- */

static sem_t gate;
static int *theirs;

static void CUDART_CB wait_at_gate(void *)
{
	while (sem_wait(&gate))
		;
}

static void *beside(void *arg)
{
	int back[N], rounds = *(int *)arg;

	/* Waits for this thread's own stream only. */
	CHECK(cudaMemset(theirs, 0, BYTES));
	for (int i = 0; i < rounds; i++)
		add<<<(N + 255) / 256, 256>>>(theirs, 1, N);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, theirs, BYTES, cudaMemcpyDeviceToHost));
	check_all(back, 6 * rounds, "the other thread");
	/* Work left for the legacy stream to wait for. */
	add<<<(N + 255) / 256, 256>>>(theirs, 1, N);
	CHECK_LAUNCH();
	return NULL;
}

static void threads(void)
{
	static int back[N];
	pthread_t thread;
	int rounds = 10;

	/* This thread's stream is held up; the other thread's stream is not. */
	CHECK(cudaMemset(dev, 0, BYTES));
	CHECK(cudaMemset(other, 0, BYTES));
	CHECK(cudaLaunchHostFunc(0, wait_at_gate, NULL));
	add<<<(N + 255) / 256, 256>>>(dev, 1, N);
	CHECK_LAUNCH();
	REQUIRE(!pthread_create(&thread, NULL, beside, &rounds), "thread");
	REQUIRE(!pthread_join(thread, NULL), "thread");
	EXPECT(cudaStreamQuery(0), cudaErrorNotReady);
	/*
	 * The legacy stream waits for both, and this thread's stream waits for the legacy one.
	 */
	add<<<(N + 255) / 256, 256, 0, cudaStreamLegacy>>>(dev, 10, N);
	CHECK_LAUNCH();
	CHECK(cudaMemcpyAsync(other, theirs, BYTES, cudaMemcpyDeviceToDevice, cudaStreamLegacy));
	add<<<(N + 255) / 256, 256>>>(dev, 100, N);
	CHECK_LAUNCH();
	/* A non-blocking stream does not wait for the legacy one. */
	CHECK(cudaMemcpyAsync(pinned, dev, BYTES, cudaMemcpyDeviceToHost, side));
	CHECK(cudaStreamSynchronize(side));
	check_all(pinned, 0, "while the stream is held up");
	EXPECT(cudaStreamQuery(cudaStreamLegacy), cudaErrorNotReady);
	sem_post(&gate);
	CHECK(cudaMemcpy(back, dev, BYTES, cudaMemcpyDeviceToHost));
	check_all(back, 6 + 15 + 105, "behind the gate");
	CHECK(cudaMemcpy(back, other, BYTES, cudaMemcpyDeviceToHost));
	check_all(back, 6 * rounds + 6, "the legacy stream's copy");
}

int main(void)
{
	CHECK(cudaMalloc(&dev, BYTES));
	CHECK(cudaMalloc(&other, BYTES));
	CHECK(cudaMalloc(&theirs, BYTES));
	CHECK(cudaMallocHost(&pinned, BYTES));
	CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
	REQUIRE(!sem_init(&gate, 0, 0), "semaphore");
	at_once();
	captured();
	captured_to_graph();
	asked();
	memory();
	threads();
	CHECK(cudaFree(dev));
	CHECK(cudaFree(other));
	CHECK(cudaFree(theirs));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaStreamDestroy(side));
	CHECK(cudaEventDestroy(event));
	CHECK(cudaEventDestroy(joined));
	return verified("launches, graphs and memory in a thread's own stream, beside another's");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Capture: work put into a stream becomes a graph, and is not done until the graph is launched.
 * Other streams join by events. A call that would wait invalidates the capture, and CUDA's error
 * codes say so.
 */
#include "check.h"

#define N     5000
#define BYTES (N * sizeof(int))

__global__ void add(int *p, int what, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += what;
}

static int *dev, *other, *host;
static cudaStream_t one, two;
static cudaEvent_t fork_event, join_event;
static int calls;

static void CUDART_CB count_call(void *)
{
	calls++;
}

static void put_work(cudaStream_t s, int what)
{
	add<<<(N + 255) / 256, 256, 0, s>>>(dev, what, N);
	CHECK_LAUNCH();
}

static void check_all(const int *p, int want, const char *what)
{
	for (int i = 0; i < N; i++)
		REQUIRE(p[i] == want, "%s: element %d is %d, not %d", what, i, p[i], want);
}

static void nothing_happens_until_launched()
{
	cudaStreamCaptureStatus status;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	size_t count = 0;
	unsigned long long id = 0;

	CHECK(cudaMemset(dev, 0, BYTES));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
	CHECK(cudaStreamIsCapturing(one, &status));
	REQUIRE(status == cudaStreamCaptureStatusActive, "status %d", status);
	CHECK(cudaMemsetAsync(dev, 0, BYTES, one));
	put_work(one, 5);
	CHECK(cudaEventRecord(fork_event, one));
	CHECK(cudaStreamWaitEvent(two, fork_event, 0));
	CHECK(cudaMemcpyAsync(other, dev, BYTES, cudaMemcpyDeviceToDevice, two));
	CHECK(cudaStreamGetCaptureInfo(two, &status, &id, &graph, NULL, NULL, &count));
	REQUIRE(status == cudaStreamCaptureStatusActive && id && count == 1, "status %d, %zu",
		status, count);
	CHECK(cudaEventRecord(join_event, two));
	CHECK(cudaStreamWaitEvent(one, join_event, 0));
	/* Not earlier: nothing else orders this work with the other stream's copy. */
	put_work(one, 10);
	CHECK(cudaLaunchHostFunc(one, count_call, NULL));
	CHECK(cudaMemcpyAsync(host, dev, BYTES, cudaMemcpyDeviceToHost, one));
	CHECK(cudaStreamEndCapture(one, &graph));
	CHECK(cudaStreamIsCapturing(one, &status));
	REQUIRE(status == cudaStreamCaptureStatusNone, "status %d", status);
	CHECK(cudaMemcpy(host, dev, BYTES, cudaMemcpyDeviceToHost));
	check_all(host, 0, "before the launch");
	REQUIRE(!calls, "%d calls", calls);
	CHECK(cudaGraphGetNodes(graph, NULL, &count));
	REQUIRE(count == 6, "%zu nodes", count);

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 1; i <= 10; i++) {
		CHECK(cudaGraphLaunch(exec, two));
		CHECK(cudaStreamSynchronize(two));
		check_all(host, 15, "launched");
		REQUIRE(calls == i, "%d calls", calls);
	}
	CHECK(cudaMemcpy(host, other, BYTES, cudaMemcpyDeviceToHost));
	check_all(host, 5, "the other stream's copy");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* Launches the graph once; then each element in `dev` must be `want`. */
static void launch_and_end(cudaGraph_t graph, int want, const char *what)
{
	cudaGraphExec_t exec;

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, one));
	CHECK(cudaStreamSynchronize(one));
	CHECK(cudaMemcpy(host, dev, BYTES, cudaMemcpyDeviceToHost));
	check_all(host, want, what);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void into_a_graph_that_exists()
{
	cudaGraph_t graph, same;
	cudaGraphNode_t node;
	size_t count;

	CHECK(cudaMemset(dev, 0, BYTES));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
	CHECK(cudaStreamBeginCaptureToGraph(one, graph, &node, NULL, 1,
					    cudaStreamCaptureModeGlobal));
	put_work(one, 3);
	CHECK(cudaStreamEndCapture(one, &same));
	REQUIRE(same == graph, "another graph");
	CHECK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
	REQUIRE(count == 1, "%zu edges", count);
	/* The program has the graph, so it need not get it again. */
	CHECK(cudaStreamBeginCaptureToGraph(one, graph, NULL, NULL, 0,
					    cudaStreamCaptureModeGlobal));
	CHECK(cudaMemsetAsync(other, 0, BYTES, one));
	CHECK(cudaStreamEndCapture(one, NULL));
	CHECK(cudaGraphGetNodes(graph, NULL, &count));
	REQUIRE(count == 3, "%zu nodes", count);
	launch_and_end(graph, 3, "captured to a graph");
}

/* A stream that has joined the capture, and was joined back, is destroyed before the end. */
static void without_a_stream()
{
	cudaStream_t third, fourth;
	cudaGraph_t graph;
	cudaError_t err;

	CHECK(cudaMemset(dev, 0, BYTES));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaStreamCreate(&third));
	CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
	CHECK(cudaEventRecord(fork_event, one));
	CHECK(cudaStreamWaitEvent(third, fork_event, 0));
	put_work(third, 6);
	CHECK(cudaEventRecord(join_event, third));
	CHECK(cudaStreamWaitEvent(one, join_event, 0));
	CHECK(cudaStreamDestroy(third));
	/* A new stream, perhaps at the same address, is not part of the capture. */
	CHECK(cudaStreamCreateWithFlags(&fourth, cudaStreamNonBlocking));
	CHECK(cudaStreamSynchronize(fourth));
	put_work(one, 1);
	CHECK(cudaStreamEndCapture(one, &graph));
	launch_and_end(graph, 7, "after the stream was destroyed");

	/* Its work was not joined. */
	CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
	CHECK(cudaEventRecord(fork_event, one));
	CHECK(cudaStreamWaitEvent(fourth, fork_event, 0));
	put_work(fourth, 1);
	(void)cudaStreamDestroy(fourth);
	err = cudaStreamEndCapture(one, &graph);
	REQUIRE(err && !graph, "%d", err);
	(void)cudaGetLastError();
}

/*
 * The dependencies of the stream's next node are set by hand: two nodes side by side, then both.
 */
static void with_other_dependencies()
{
	cudaStreamCaptureStatus status;
	cudaGraphNode_t first, second;
	const cudaGraphNode_t *tail;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	size_t count;

	CHECK(cudaMemset(dev, 0, BYTES));
	CHECK(cudaMemset(other, 0, BYTES));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
	CHECK(cudaMemsetAsync(dev, 1, BYTES, one));
	CHECK(cudaStreamGetCaptureInfo(one, &status, NULL, &graph, &tail, NULL, &count));
	REQUIRE(count == 1, "%zu at the end", count);
	first = tail[0];
	CHECK(cudaStreamUpdateCaptureDependencies(one, NULL, NULL, 0,
						  cudaStreamSetCaptureDependencies));
	CHECK(cudaMemsetAsync(other, 2, BYTES, one));
	CHECK(cudaStreamGetCaptureInfo(one, &status, NULL, &graph, &tail, NULL, &count));
	second = tail[0];
	CHECK(cudaGraphNodeGetDependencies(second, NULL, NULL, &count));
	REQUIRE(count == 0, "%zu before the second", count);
	CHECK(cudaStreamUpdateCaptureDependencies(one, &first, NULL, 1,
						  cudaStreamAddCaptureDependencies));
	CHECK(cudaStreamGetCaptureInfo(one, &status, NULL, &graph, &tail, NULL, &count));
	REQUIRE(count == 2, "%zu at the end", count);
	CHECK(cudaMemcpyAsync(host, dev, BYTES, cudaMemcpyDeviceToHost, one));
	EXPECT(cudaStreamUpdateCaptureDependencies(two, &first, NULL, 1, 0), cudaErrorIllegalState);
	CHECK(cudaStreamEndCapture(one, &graph));
	CHECK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
	REQUIRE(count == 2, "%zu edges", count);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, one));
	CHECK(cudaStreamSynchronize(one));
	check_all(host, 0x01010101, "the first");
	CHECK(cudaMemcpy(host, other, BYTES, cudaMemcpyDeviceToHost));
	check_all(host, 0x02020202, "the second");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void begin(cudaStreamCaptureMode mode)
{
	/* The error expected above is still the last error. */
	(void)cudaGetLastError();
	CHECK(cudaStreamBeginCapture(one, mode));
	put_work(one, 1);
}

static void spoiled(cudaError_t want, const char *what)
{
	cudaGraph_t graph = (cudaGraph_t)1;
	cudaError_t err = cudaStreamEndCapture(one, &graph);

	REQUIRE(err == want && !graph, "%s: ended with %d, graph %p", what, err, (void *)graph);
	(void)cudaGetLastError();
}

static void wrong()
{
	cudaStreamCaptureStatus status;
	cudaGraph_t graph;
	void *p;

	EXPECT(cudaStreamEndCapture(one, &graph), cudaErrorIllegalState);
	EXPECT(cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal),
	       cudaErrorStreamCaptureUnsupported);

	begin(cudaStreamCaptureModeGlobal);
	EXPECT(cudaStreamSynchronize(one), cudaErrorStreamCaptureUnsupported);
	CHECK(cudaStreamIsCapturing(one, &status));
	REQUIRE(status == cudaStreamCaptureStatusInvalidated, "status %d", status);
	spoiled(cudaErrorStreamCaptureInvalidated, "synchronize");

	begin(cudaStreamCaptureModeGlobal);
	EXPECT(cudaStreamQuery(one), cudaErrorStreamCaptureUnsupported);
	spoiled(cudaErrorStreamCaptureInvalidated, "query");

	begin(cudaStreamCaptureModeGlobal);
	EXPECT(cudaMemset(dev, 0, BYTES), cudaErrorStreamCaptureImplicit);
	spoiled(cudaErrorStreamCaptureInvalidated, "the legacy stream");

	begin(cudaStreamCaptureModeGlobal);
	EXPECT(cudaMalloc(&p, 16), cudaErrorStreamCaptureUnsupported);
	spoiled(cudaErrorStreamCaptureInvalidated, "an unsafe call");

	begin(cudaStreamCaptureModeRelaxed);
	CHECK(cudaMalloc(&p, 16));
	CHECK(cudaStreamEndCapture(one, &graph));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(p));

	begin(cudaStreamCaptureModeGlobal);
	CHECK(cudaEventRecord(fork_event, one));
	CHECK(cudaStreamWaitEvent(two, fork_event, 0));
	put_work(two, 1);
	spoiled(cudaErrorStreamCaptureUnjoined, "not joined");

	begin(cudaStreamCaptureModeGlobal);
	CHECK(cudaEventRecord(fork_event, one));
	EXPECT(cudaEventQuery(fork_event), cudaErrorCapturedEvent);
	spoiled(cudaErrorStreamCaptureInvalidated, "a question about an event of it");

	CHECK(cudaEventRecord(join_event, two));
	begin(cudaStreamCaptureModeGlobal);
	EXPECT(cudaStreamWaitEvent(one, join_event, 0), cudaErrorStreamCaptureIsolation);
	spoiled(cudaErrorStreamCaptureInvalidated, "an event from outside");

	begin(cudaStreamCaptureModeGlobal);
	CHECK(cudaEventRecord(fork_event, one));
	CHECK(cudaStreamWaitEvent(two, fork_event, 0));
	EXPECT(cudaStreamEndCapture(two, &graph), cudaErrorStreamCaptureUnmatched);
	spoiled(cudaErrorStreamCaptureInvalidated, "ended in another stream");

	/* A graph cannot be launched into another graph. */
	cudaGraphExec_t exec;

	begin(cudaStreamCaptureModeRelaxed);
	CHECK(cudaStreamEndCapture(one, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	begin(cudaStreamCaptureModeRelaxed);
	EXPECT(cudaGraphLaunch(exec, one), cudaErrorStreamCaptureUnsupported);
	spoiled(cudaErrorStreamCaptureInvalidated, "a launch of a graph");
	CHECK(cudaGraphExecDestroy(exec));

	/* After that everything works again. */
	(void)cudaGetLastError();
	CHECK(cudaMemset(dev, 0, BYTES));
	put_work(one, 4);
	CHECK(cudaStreamSynchronize(one));
	CHECK(cudaMemcpy(host, dev, BYTES, cudaMemcpyDeviceToHost));
	check_all(host, 4, "after all that");
}

int main()
{
	cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

	CHECK(cudaMallocHost(&host, BYTES));
	CHECK(cudaMalloc(&dev, BYTES));
	CHECK(cudaMalloc(&other, BYTES));
	CHECK(cudaStreamCreate(&one));
	CHECK(cudaStreamCreate(&two));
	CHECK(cudaEventCreate(&fork_event));
	CHECK(cudaEventCreateWithFlags(&join_event, cudaEventDisableTiming));
	CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
	REQUIRE(mode == cudaStreamCaptureModeGlobal, "mode %d", mode);
	CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
	nothing_happens_until_launched();
	into_a_graph_that_exists();
	without_a_stream();
	with_other_dependencies();
	wrong();
	CHECK(cudaFree(dev));
	CHECK(cudaFree(other));
	CHECK(cudaFreeHost(host));
	return verified("graphs from captures of one and two streams, and 11 spoiled ones");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events between two processes: a stream of one process waits for work of the other, in both
 * directions, and only for work that was recorded when the wait was queued. A host function
 * holds back the work until the other process has queued its wait, so the test does not depend
 * on timing.
 */
#include "ipc.h"

#define N	(64 * 1024)
#define LAZY	cudaIpcMemLazyEnablePeerAccess
#define FLAGS	(cudaEventInterprocess | cudaEventDisableTiming)
#define WRITTEN 0x1234u

struct message {
	cudaIpcMemHandle_t memory;
	cudaIpcEventHandle_t there, back;
};

__global__ void fill(uint32_t *p, uint32_t what)
{
	p[blockIdx.x * blockDim.x + threadIdx.x] = what;
}

/* The stream waits until a process writes to the pipe. */
static void CUDART_CB hold(void *pipe)
{
	char go;

	if (read(*(int *)pipe, &go, 1) != 1)
		abort();
}

static void release(const int pipe[2])
{
	REQUIRE(write(pipe[1], "", 1) == 1, "pipe");
}

static void expect_all(const uint32_t *host, uint32_t what, const char *who)
{
	for (int i = 0; i < N; i++)
		REQUIRE(host[i] == what, "%s: word %d is %08x", who, i, host[i]);
}

/* Queues work that is held back, and records its end. */
static void queue_held(int pipe[2], uint32_t *p, uint32_t what, cudaEvent_t event, cudaStream_t s)
{
	REQUIRE(!::pipe(pipe), "pipe");
	CHECK(cudaLaunchHostFunc(s, hold, &pipe[0]));
	fill<<<N / 256, 256, 0, s>>>(p, what);
	CHECK_LAUNCH();
	CHECK(cudaEventRecord(event, s));
	EXPECT(cudaEventQuery(event), cudaErrorNotReady);
}

/* Queues a copy that waits for the other process, before that process's work may begin. */
static void queue_copy(uint32_t *host, const uint32_t *p, cudaEvent_t event, cudaStream_t s)
{
	EXPECT(cudaEventQuery(event), cudaErrorNotReady);
	CHECK(cudaStreamWaitEvent(s, event, 0));
	CHECK(cudaMemcpyAsync(host, p, N * 4, cudaMemcpyDeviceToHost, s));
	EXPECT(cudaStreamQuery(s), cudaErrorNotReady);
}

static void child(const struct peer *parent)
{
	cudaEvent_t there, back;
	struct message m;
	cudaStream_t s;
	uint32_t *p, *host;
	int pipe[2];

	load_kernel((const void *)fill);
	hear(parent, &m, sizeof(m));
	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&host, N * 4));
	CHECK(cudaIpcOpenMemHandle((void **)&p, m.memory, LAZY));
	CHECK(cudaIpcOpenEventHandle(&there, m.there));
	CHECK(cudaIpcOpenEventHandle(&back, m.back));
	queue_copy(host, p, there, s);
	meet(parent);
	CHECK(cudaStreamSynchronize(s));
	expect_all(host, WRITTEN, "the parent's work");
	CHECK(cudaEventQuery(there));
	CHECK(cudaEventSynchronize(there));

	queue_held(pipe, p, WRITTEN + 1, back, s);
	meet(parent);
	meet(parent);
	release(pipe);
	CHECK(cudaStreamSynchronize(s));
	meet(parent);
	CHECK(cudaEventDestroy(there));
	CHECK(cudaEventDestroy(back));
	CHECK(cudaIpcCloseMemHandle(p));
	CHECK(cudaFreeHost(host));
	CHECK(cudaStreamDestroy(s));
}

static void refuse(const cudaIpcEventHandle_t *h, const char *what)
{
	cudaEvent_t e = NULL;

	REQUIRE(cudaIpcOpenEventHandle(&e, *h) != cudaSuccess, "%s", what);
	(void)cudaGetLastError();
}

static void bad_input(cudaEvent_t event, const cudaIpcEventHandle_t *good)
{
	cudaIpcEventHandle_t h;
	cudaEvent_t plain;
	float ms;

	EXPECT(cudaEventCreateWithFlags(&plain, cudaEventInterprocess), cudaErrorInvalidValue);
	CHECK(cudaEventCreate(&plain));
	EXPECT(cudaIpcGetEventHandle(&h, plain), cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventElapsedTime(&ms, event, event), cudaErrorInvalidResourceHandle);
	CHECK(cudaEventDestroy(plain));
	EXPECT(cudaIpcOpenEventHandle(NULL, *good), cudaErrorInvalidValue);
	memset(&h, 0, sizeof(h));
	refuse(&h, "a handle of zeros");
	fill_words(&h, sizeof(h), 78);
	refuse(&h, "a random handle");
	(void)cudaGetLastError();
}

int main(void)
{
	struct peer peer = start_peer();
	cudaEvent_t there, back;
	struct message m;
	cudaStream_t s;
	uint32_t *p, *host;
	int pipe[2];

	if (!peer.pid) {
		child(&peer);
		return 0;
	}
	load_kernel((const void *)fill);
	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&host, N * 4));
	CHECK(cudaMalloc(&p, N * 4));
	CHECK(cudaEventCreateWithFlags(&there, FLAGS));
	CHECK(cudaEventCreateWithFlags(&back, FLAGS));
	CHECK(cudaEventQuery(there));
	CHECK(cudaIpcGetMemHandle(&m.memory, p));
	CHECK(cudaIpcGetEventHandle(&m.there, there));
	CHECK(cudaIpcGetEventHandle(&m.back, back));
	bad_input(there, &m.there);
	queue_held(pipe, p, WRITTEN, there, s);
	tell(&peer, &m, sizeof(m));
	meet(&peer);
	release(pipe);
	CHECK(cudaStreamSynchronize(s));

	meet(&peer);
	queue_copy(host, p, back, s);
	meet(&peer);
	CHECK(cudaEventSynchronize(back));
	CHECK(cudaStreamSynchronize(s));
	expect_all(host, WRITTEN + 1, "the child's work");
	meet(&peer);
	end_peer(&peer);
	CHECK(cudaEventDestroy(there));
	CHECK(cudaEventDestroy(back));
	CHECK(cudaFree(p));
	CHECK(cudaFreeHost(host));
	CHECK(cudaStreamDestroy(s));
	return verified("two processes wait for each other's events");
}

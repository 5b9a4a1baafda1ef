// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process that has shared its memory with another process is killed. The other process goes
 * on, and the memory that it has open does not change. With an argument, the test also checks
 * what a GPU's own driver does not promise: nothing waits for an event of the dead process, and
 * a handle that has not been opened yet becomes invalid.
 */
#include <signal.h>

#include "ipc.h"

#define N    (300 * 1000)
#define LAZY cudaIpcMemLazyEnablePeerAccess

struct message {
	cudaIpcMemHandle_t opened, late;
	cudaIpcEventHandle_t event;
};

__global__ void add(uint32_t *p)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		p[i] += 3;
}

static void CUDART_CB hold(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

/*
 * Shares its memory and its event while work is under way that does not end, and waits to be
 * killed.
 */
static void child(const struct peer *parent)
{
	uint32_t *p, *late, *host = (uint32_t *)malloc(N * 4);
	cudaEvent_t event;
	struct message m;
	cudaStream_t s;

	fill_words(host, N * 4, 1);
	CHECK(cudaMalloc(&p, N * 4));
	CHECK(cudaMalloc(&late, 4096));
	CHECK(cudaMemcpy(p, host, N * 4, cudaMemcpyHostToDevice));
	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
	CHECK(cudaLaunchHostFunc(s, hold, NULL));
	CHECK(cudaEventRecord(event, s));
	CHECK(cudaIpcGetMemHandle(&m.opened, p));
	CHECK(cudaIpcGetMemHandle(&m.late, late));
	CHECK(cudaIpcGetEventHandle(&m.event, event));
	tell(parent, &m, sizeof(m));
	hold(NULL);
}

static void wait_for(const cudaIpcEventHandle_t *handle, cudaStream_t s, cudaEvent_t *event)
{
	CHECK(cudaIpcOpenEventHandle(event, *handle));
	EXPECT(cudaEventQuery(*event), cudaErrorNotReady);
	CHECK(cudaStreamWaitEvent(s, *event, 0));
}

int main(int argc, char **)
{
	struct peer peer = start_peer();
	bool waits = argc > 1;
	uint32_t *p, *host;
	cudaEvent_t event;
	struct message m;
	cudaStream_t s;
	void *late = NULL;
	int status;

	if (!peer.pid) {
		child(&peer);
		return 0;
	}
	load_kernel((const void *)add);
	hear(&peer, &m, sizeof(m));
	host = (uint32_t *)malloc(N * 4);
	CHECK(cudaIpcOpenMemHandle((void **)&p, m.opened, LAZY));
	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	if (waits)
		wait_for(&m.event, s, &event);
	add<<<(N + 255) / 256, 256, 0, s>>>(p);
	CHECK_LAUNCH();
	if (waits)
		EXPECT(cudaStreamQuery(s), cudaErrorNotReady);

	REQUIRE(!kill(peer.pid, SIGKILL), "kill");
	REQUIRE(waitpid(peer.pid, &status, 0) == peer.pid && WIFSIGNALED(status), "%x", status);
	CHECK(cudaStreamSynchronize(s));
	if (waits)
		CHECK(cudaEventSynchronize(event));
	add<<<(N + 255) / 256, 256, 0, s>>>(p);
	CHECK_LAUNCH();
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaMemcpy(host, p, N * 4, cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		REQUIRE(host[i] == scramble(i, 1) + 6, "word %d is %08x", i, host[i]);

	/*
	 * The host learns of the end after the guest's kernel has cleaned up. This takes a short
	 * time.
	 */
	while (waits && cudaIpcOpenMemHandle(&late, m.late, LAZY) == cudaSuccess) {
		CHECK(cudaIpcCloseMemHandle(late));
		usleep(1000);
	}
	(void)cudaGetLastError();
	CHECK(cudaIpcCloseMemHandle(p));
	if (waits)
		CHECK(cudaEventDestroy(event));
	CHECK(cudaStreamDestroy(s));
	free(host);
	return verified("what a killed process has given away stays");
}

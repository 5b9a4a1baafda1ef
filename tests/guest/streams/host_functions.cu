// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cudaLaunchHostFunc and cudaStreamAddCallback: functions of this process that run in stream
 * order while the stream waits. They may not call CUDA. A program may end, or be killed, in such
 * a function.
 */
#include <atomic>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define ROUNDS 20

static pid_t self;
static std::atomic<int> entered, left;
static std::atomic<bool> held;

__global__ void store(volatile int *to, int value)
{
	*to = value;
}

__global__ void add(volatile int *to, volatile int *from)
{
	*to += *from;
}

struct step {
	volatile int *seen, *next;
	int got;
};

/* Reads what the kernel before it wrote. The kernel after it reads what this function writes. */
static void CUDART_CB between(void *data)
{
	struct step *s = (struct step *)data;

	REQUIRE(getpid() == self, "in another process");
	s->got = *s->seen;
	*s->next = s->got * 10;
}

static void order(void)
{
	volatile int *mem;
	struct step s[ROUNDS];
	cudaStream_t stream;

	CHECK(cudaMallocHost((void **)&mem, 3 * sizeof(int)));
	CHECK(cudaStreamCreate(&stream));
	mem[2] = 0;
	for (int i = 0; i < ROUNDS; i++) {
		s[i] = {&mem[0], &mem[1], -1};
		store<<<1, 1, 0, stream>>>(&mem[0], i + 1);
		CHECK_LAUNCH();
		CHECK(cudaLaunchHostFunc(stream, between, &s[i]));
		add<<<1, 1, 0, stream>>>(&mem[2], &mem[1]);
		CHECK_LAUNCH();
	}
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < ROUNDS; i++)
		REQUIRE(s[i].got == i + 1, "function %d saw %d", i, s[i].got);
	REQUIRE(mem[2] == 10 * ROUNDS * (ROUNDS + 1) / 2, "sum %d", mem[2]);
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFreeHost((void *)mem));
}

static void CUDART_CB slow(void *)
{
	entered++;
	usleep(100 * 1000);
	left++;
}

/* Keeps its stream until the program says so. */
static void CUDART_CB hold(void *)
{
	while (held)
		usleep(1000);
	usleep(10 * 1000);
	left++;
}

/*
 * The stream waits for the function. So does everything that waits for the stream or for an
 * event in it.
 */
static void waits(void)
{
	cudaStream_t stream, other;
	cudaEvent_t event;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CHECK(cudaEventCreate(&event));
	left = 0;
	held = true;
	CHECK(cudaLaunchHostFunc(stream, hold, NULL));
	CHECK(cudaEventRecord(event, stream));
	EXPECT(cudaEventQuery(event), cudaErrorNotReady);
	EXPECT(cudaStreamQuery(stream), cudaErrorNotReady);
	CHECK(cudaStreamSynchronize(other));
	held = false;
	CHECK(cudaEventSynchronize(event));
	REQUIRE(left == 1, "the event came before the function's end");
	CHECK(cudaLaunchHostFunc(stream, slow, NULL));
	CHECK(cudaStreamWaitEvent(other, event, 0));
	CHECK(cudaEventRecord(event, stream));
	CHECK(cudaStreamWaitEvent(other, event, 0));
	CHECK(cudaStreamSynchronize(other));
	REQUIRE(left == 2, "another stream did not wait");
	CHECK(cudaLaunchHostFunc(NULL, slow, NULL));
	CHECK(cudaLaunchHostFunc(cudaStreamPerThread, slow, NULL));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(left == 4, "%d of the default streams' functions", (int)left);
	CHECK(cudaStreamDestroy(other));
	CHECK(cudaEventDestroy(event));
}

static cudaError_t allocated, synchronized, status;
static cudaStream_t told;

static void CUDART_CB callback(cudaStream_t stream, cudaError_t err, void *data)
{
	void *p;

	told = stream;
	status = err;
	allocated = cudaMalloc(&p, 16);
	synchronized = cudaDeviceSynchronize();
	++*(int *)data;
}

static void callbacks(void)
{
	cudaStream_t stream;
	int count = 0;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamAddCallback(stream, callback, &count, 0));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(count == 1 && told == stream, "called %d times", count);
	CHECK(status);
	REQUIRE(allocated == cudaErrorNotPermitted, "cudaMalloc: %s", cudaGetErrorName(allocated));
	REQUIRE(synchronized == cudaErrorNotPermitted, "cudaDeviceSynchronize: %s",
		cudaGetErrorName(synchronized));
	/* An error in a callback is not this thread's error. */
	CHECK(cudaGetLastError());
	CHECK(cudaStreamDestroy(stream));
	EXPECT(cudaLaunchHostFunc(NULL, NULL, NULL), cudaErrorInvalidValue);
	EXPECT(cudaStreamAddCallback(NULL, NULL, NULL, 0), cudaErrorInvalidValue);
	EXPECT(cudaStreamAddCallback(NULL, callback, &count, 1), cudaErrorInvalidValue);
	(void)cudaGetLastError();
}

/* The device is reset while a function runs. Afterwards everything works again. */
static void reset(void)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	entered = 0;
	CHECK(cudaLaunchHostFunc(stream, slow, NULL));
	while (!entered)
		usleep(1000);
	CHECK(cudaDeviceReset());
	order();
}

static void CUDART_CB forever(void *fd)
{
	if (write(*(int *)fd, "x", 1) == 1)
		sleep(1000);
}

static int fault_status;

static void CUDART_CB after_fault(cudaStream_t, cudaError_t err, void *)
{
	fault_status = (int)err;
}

static void CUDART_CB never(void *)
{
	fault_status = -1;
}

/* After an error, callbacks get the error, and host functions are left out. */
static int fault(void)
{
	cudaFuncAttributes loaded;
	cudaStream_t stream;

	/* The kernel is loaded before the stream is held: loading may wait for streams. */
	CHECK(cudaFuncGetAttributes(&loaded, store));
	CHECK(cudaStreamCreate(&stream));
	held = true;
	CHECK(cudaLaunchHostFunc(stream, hold, NULL));
	store<<<1, 1, 0, stream>>>((int *)8, 1);
	CHECK_LAUNCH();
	CHECK(cudaStreamAddCallback(stream, after_fault, NULL, 0));
	CHECK(cudaLaunchHostFunc(stream, never, NULL));
	/* The mirror has them all, so none is refused for the error. */
	EXPECT(cudaStreamQuery(stream), cudaErrorNotReady);
	held = false;
	EXPECT(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
	for (int i = 0; i < 5000 && !fault_status; i++)
		usleep(1000);
	usleep(50 * 1000);
	REQUIRE(fault_status == cudaErrorIllegalAddress, "the callback was told %d", fault_status);
	return 0;
}

/* In a process of its own: what = 0 exits in a function, 1 is killed in it, 2 faults. */
static int end(int what)
{
	int fds[2], status;
	char byte;
	pid_t pid;

	REQUIRE(!pipe(fds), "pipe");
	pid = fork();
	if (!pid) {
		if (what == 2)
			_exit(fault());
		CHECK(cudaLaunchHostFunc(NULL, forever, &fds[1]));
		REQUIRE(read(fds[0], &byte, 1) == 1, "read");
		if (what == 0)
			exit(7);
		kill(getpid(), SIGKILL);
	}
	close(fds[1]);
	REQUIRE(waitpid(pid, &status, 0) == pid, "wait");
	close(fds[0]);
	return status;
}

int main(void)
{
	int status;

	/* Before this process uses CUDA: NVIDIA's runtime does not allow a fork after that. */
	status = end(0);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 7, "exit in a function: %x", status);
	status = end(1);
	REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "killed: %x", status);
	status = end(2);
	REQUIRE(!status, "the child that faults ended with %x", status);
	self = getpid();
	order();
	waits();
	callbacks();
	reset();
	return verified("%d host functions ran in stream order, and callbacks may not call CUDA",
			ROUNDS);
}

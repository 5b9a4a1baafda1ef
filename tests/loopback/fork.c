// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * fork(): the child has a session of its own. The parent's handles and device pointers are not
 * valid there, and the parent does not see what the child does.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define LEN 100000

static void use(uint32_t seed)
{
	char *src = malloc(LEN), *back = malloc(LEN), *dev;

	REQUIRE(src && back, "out of memory");
	fill(src, LEN, seed);
	OK(cudaMalloc((void **)&dev, LEN));
	OK(cudaMemcpy(dev, src, LEN, cudaMemcpyHostToDevice));
	OK(cudaMemcpy(back, dev, LEN, cudaMemcpyDeviceToHost));
	REQUIRE(differs(src, back, LEN) == LEN, "seed %u", seed);
	OK(cudaFree(dev));
	free(src);
	free(back);
}

static void in_child(void (*run)(void))
{
	pid_t pid = fork();
	int status;

	REQUIRE(pid >= 0, "fork");
	if (pid == 0) {
		run();
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status),
		"the child ended with status %x", status);
}

static cudaStream_t stream;
static cudaEvent_t event;
static char *dev, *pinned;

static int let_go;

static void hold(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&let_go, __ATOMIC_ACQUIRE))
		usleep(200);
}

/* The event is not done. After more than one query, the mirror watches it. */
static void begin_watching(cudaEvent_t e, cudaStream_t s)
{
	__atomic_store_n(&let_go, 0, __ATOMIC_RELEASE);
	OK(cudaLaunchHostFunc(s, hold, NULL));
	OK(cudaEventRecord(e, s));
	EXPECT(cudaEventQuery(e), cudaErrorNotReady);
	EXPECT(cudaEventQuery(e), cudaErrorNotReady);
	EXPECT(cudaEventQuery(e), cudaErrorNotReady);
}

static void end_watching(cudaEvent_t e)
{
	__atomic_store_n(&let_go, 1, __ATOMIC_RELEASE);
	while (cudaEventQuery(e) == cudaErrorNotReady)
		;
	OK(cudaEventQuery(e));
}

static void child_that_watches(void)
{
	cudaEvent_t e;
	cudaStream_t s;

	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaEventCreate(&e));
	begin_watching(e, s);
	end_watching(e);
	REFUSED(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
}

static void child_of_a_program_without_cuda(void)
{
	use(1);
}

static void child_with_parents_handles(void)
{
	struct cudaPointerAttributes attr;

	use(2);
	REFUSED(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
	REFUSED(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
	REFUSED(cudaFree(dev), cudaErrorInvalidValue);
	OK(cudaPointerGetAttributes(&attr, dev));
	REQUIRE(attr.type == cudaMemoryTypeUnregistered, "type %d", attr.type);
	OK(cudaMallocHost((void **)&pinned, LEN));
	memset(pinned, 3, LEN);
	OK(cudaFreeHost(pinned));
	in_child(child_of_a_program_without_cuda);
	use(3);
}

int main(void)
{
	char back[LEN];
	int i;

	in_child(child_of_a_program_without_cuda);
	OK(cudaStreamCreate(&stream));
	OK(cudaEventCreate(&event));
	OK(cudaMalloc((void **)&dev, LEN));
	OK(cudaMemset(dev, 7, LEN));
	for (i = 0; i < 5; i++)
		in_child(child_with_parents_handles);
	begin_watching(event, stream);
	in_child(child_that_watches);
	end_watching(event);
	use(4);
	OK(cudaMemcpy(back, dev, LEN, cudaMemcpyDeviceToHost));
	REQUIRE(back[0] == 7 && back[LEN - 1] == 7, "the child changed the parent's memory");
	OK(cudaStreamSynchronize(stream));
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(stream));
	OK(cudaFree(dev));
	return 0;
}

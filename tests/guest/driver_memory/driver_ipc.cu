// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory and an event of one process, opened by another. */
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

struct handles {
	CUipcMemHandle memory;
	CUipcEventHandle event;
};

/* Forked before the parent has started the driver. */
static int child(int in, int out)
{
	struct handles h;
	unsigned int word = 0;
	CUdeviceptr memory;
	CUevent event;
	char done = 1;

	REQUIRE(read(in, &h, sizeof(h)) == sizeof(h), "read");
	driver_start();
	DEXPECT(cuIpcOpenMemHandle(&memory, h.memory, 0), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuIpcOpenMemHandle(&memory, h.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	DCHECK(cuIpcOpenEventHandle(&event, h.event));
	DCHECK(cuEventSynchronize(event));
	DCHECK(cuMemcpyDtoH(&word, memory + 4, 4));
	REQUIRE(word == 4321, "%u", word);
	DCHECK(cuMemsetD32(memory, 99, 1));
	DCHECK(cuCtxSynchronize());
	DEXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuIpcCloseMemHandle(memory));
	DCHECK(cuEventDestroy(event));
	REQUIRE(write(out, &done, 1) == 1, "write");
	return 0;
}

int main()
{
	int to[2], from[2], status;
	struct handles h;
	unsigned int word;
	CUdeviceptr memory;
	CUevent event;
	pid_t pid;
	char done;

	REQUIRE(!pipe(to) && !pipe(from), "pipe");
	pid = fork();
	REQUIRE(pid >= 0, "fork");
	if (!pid)
		_exit(child(to[0], from[1]));
	driver_start();
	DCHECK(cuMemAlloc(&memory, 4096));
	DCHECK(cuMemsetD32(memory, 4321, 1024));
	DCHECK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	DCHECK(cuEventRecord(event, NULL));
	DCHECK(cuIpcGetMemHandle(&h.memory, memory));
	DCHECK(cuIpcGetEventHandle(&h.event, event));
	REQUIRE(write(to[1], &h, sizeof(h)) == sizeof(h), "write");
	REQUIRE(read(from[0], &done, 1) == 1, "read");
	DCHECK(cuMemcpyDtoH(&word, memory, 4));
	REQUIRE(word == 99, "%u", word);
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "%x", status);
	DCHECK(cuEventDestroy(event));
	DCHECK(cuMemFree(memory));
	return verified("memory and an event in two processes");
}

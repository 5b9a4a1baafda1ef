// SPDX-License-Identifier: GPL-2.0-or-later
/* After fork the child cannot use the driver, as with NVIDIA's; the parent goes on. */
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

static int child(void)
{
	CUcontext context;
	int count;

	DEXPECT(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
	DEXPECT(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	DEXPECT(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
	DEXPECT(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
	return 0;
}

int main()
{
	unsigned int word = 1;
	CUdeviceptr memory;
	int status;
	pid_t pid;

	driver_start();
	DCHECK(cuMemAlloc(&memory, 4));
	DCHECK(cuMemsetD32(memory, 77, 1));
	pid = fork();
	REQUIRE(pid >= 0, "fork");
	if (!pid)
		_exit(child());
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "%x", status);
	DCHECK(cuMemcpyDtoH(&word, memory, 4));
	REQUIRE(word == 77, "%u", word);
	DCHECK(cuMemFree(memory));
	return verified("a child cannot use the driver, its parent can");
}

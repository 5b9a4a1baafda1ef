// SPDX-License-Identifier: GPL-2.0-or-later
/* A kernel that writes to a wrong address: every later call reports it. */
#include "driver.h"

int main()
{
	CUdeviceptr wrong = 0, memory;
	CUmodule module;
	CUfunction function;
	void *params[] = {&wrong};

	driver_start();
	module = driver_module();
	function = driver_function(module, "wrong_address");
	DCHECK(cuMemAlloc(&memory, 100));
	DCHECK(cuCtxSynchronize());
	DCHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	DEXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	DEXPECT(cuMemAlloc(&memory, 100), CUDA_ERROR_ILLEGAL_ADDRESS);
	DEXPECT(cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	DEXPECT(cuMemsetD8(memory, 0, 100), CUDA_ERROR_ILLEGAL_ADDRESS);
	return verified("a wrong address is reported by every later call");
}

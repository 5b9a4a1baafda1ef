// SPDX-License-Identifier: GPL-2.0-or-later
/* The older forms of contexts: made without and with an affinity, attached and detached, flags,
 * configurations. */
#define __CUDA_API_VERSION_INTERNAL
#include "driver.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

int main()
{
	CUcontext context, other, attached, current;
	CUexecAffinityParam affinity = {};
	CUsharedconfig shared;
	unsigned int flags;
	CUdevice device, of;
	int supported = -1;

	DCHECK(cuInit(0));
	DCHECK(cuDeviceGet(&device, 0));
	DEXPECT(cuCtxAttach(&attached, 0), CUDA_ERROR_INVALID_CONTEXT);
	DCHECK(cuCtxCreate_v2(&context, CU_CTX_SCHED_YIELD, device));
	DCHECK(cuCtxGetFlags(&flags));
	REQUIRE((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_YIELD, "%x", flags);
	DCHECK(cuCtxAttach(&attached, 0));
	REQUIRE(attached == context, "another context");
	DEXPECT(cuCtxAttach(&attached, 1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuCtxAttach(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuCtxDetach(context));
	DCHECK(cuCtxGetCurrent(&current));
	REQUIRE(current == context, "detached once, it is gone");
	DCHECK(cuCtxCreate_v3(&other, NULL, 0, 0, device));
	DCHECK(cuCtxGetDevice_v2(&of, context));
	REQUIRE(of == device, "%d", of);
	DCHECK(cuCtxSynchronize_v2(context));
	DCHECK(cuCtxGetSharedMemConfig(&shared));
	DCHECK(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
	DEXPECT(cuCtxSetSharedMemConfig((CUsharedconfig)77), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuCtxGetSharedMemConfig(NULL), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device));
	REQUIRE(supported == 0 || supported == 1, "%d", supported);
	DEXPECT(cuDeviceGetExecAffinitySupport(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, device),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuCtxGetExecAffinity(&affinity, (CUexecAffinityType)77),
		CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
	DCHECK(cuCtxSetFlags(CU_CTX_SCHED_SPIN));
	DCHECK(cuCtxGetFlags(&flags));
	REQUIRE((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_SPIN, "%x", flags);
	DEXPECT(cuCtxSetFlags(0x10000), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuCtxDestroy(other));
	DCHECK(cuCtxDetach(context));
	DCHECK(cuCtxGetCurrent(&current));
	REQUIRE(!current, "detached twice, it is still there");
	return verified("older forms of contexts");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints what a program sees of NCCL's types. tests/check/nccl.sh compiles it with NVIDIA's header
 * and with ours. */
#include <stddef.h>
#include <stdio.h>

#ifdef THEIRS
#include <nccl.h>
#define inline /* it declares functions for kernels, which C would want to have */
#include <nccl_device/host.h>
#undef inline
#else
#include "qcu-library/nccl/api.h"
#endif

#define VALUE(x) printf("%s %lld\n", #x, (long long)(x))

int main(void)
{
	VALUE(NCCL_UNIQUE_ID_BYTES);
	VALUE(NCCL_CONFIG_UNDEF_INT);
	VALUE(NCCL_SPLIT_NOCOLOR);
	VALUE(NCCL_API_MAGIC);
	VALUE(sizeof(ncclUniqueId));
	VALUE(sizeof(ncclResult_t));
	VALUE(sizeof(ncclRedOp_t));
	VALUE(sizeof(ncclDataType_t));
	VALUE(ncclSuccess);
	VALUE(ncclUnhandledCudaError);
	VALUE(ncclSystemError);
	VALUE(ncclInternalError);
	VALUE(ncclInvalidArgument);
	VALUE(ncclInvalidUsage);
	VALUE(ncclRemoteError);
	VALUE(ncclInProgress);
	VALUE(ncclSum);
	VALUE(ncclProd);
	VALUE(ncclMax);
	VALUE(ncclMin);
	VALUE(ncclAvg);
	VALUE(ncclNumOps);
	VALUE(ncclMaxRedOp);
	VALUE(ncclInt8);
	VALUE(ncclUint8);
	VALUE(ncclInt32);
	VALUE(ncclUint32);
	VALUE(ncclInt64);
	VALUE(ncclUint64);
	VALUE(ncclFloat16);
	VALUE(ncclFloat32);
	VALUE(ncclFloat64);
	VALUE(ncclBfloat16);
	VALUE(ncclFloat8e4m3);
	VALUE(ncclFloat8e5m2);
	VALUE(ncclScalarDevice);
	VALUE(ncclScalarHostImmediate);
	VALUE(offsetof(ncclConfig_t, magic));
	VALUE(offsetof(ncclConfig_t, version));
	VALUE(offsetof(ncclConfig_t, blocking));
	VALUE(sizeof(ncclTeam_t));
	VALUE(sizeof(ncclCommProperties_t));
	VALUE(offsetof(ncclCommProperties_t, rank));
	VALUE(offsetof(ncclCommProperties_t, nvmlDev));
	VALUE(offsetof(ncclCommProperties_t, multimemSupport));
	VALUE(offsetof(ncclCommProperties_t, nLsaTeams));
	VALUE(offsetof(ncclCommProperties_t, commHash));
	VALUE(offsetof(ncclCommProperties_t, ginSupport));
	VALUE(offsetof(ncclCommProperties_t, devCommRuntimeVersionSize));
	VALUE(offsetof(ncclCommProperties_t, cftCountedSupport));
	VALUE(ncclStatGpuMemSuspended);
	VALUE(ncclStatGpuMemTotal);
	VALUE(offsetof(ncclSimInfo_t, magic));
	VALUE(offsetof(ncclSimInfo_t, estimatedTime));
	return 0;
}

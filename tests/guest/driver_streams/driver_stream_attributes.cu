// SPDX-License-Identifier: GPL-2.0-or-later
/* Attributes of streams, and copies of them. */
#include "driver.h"

int main()
{
	CUstreamAttrValue value = {}, back = {};
	CUstream a, b;

	driver_start();
	DCHECK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	DCHECK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	value.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
	DCHECK(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	DCHECK(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &back));
	REQUIRE(back.syncPolicy == CU_SYNC_POLICY_BLOCKING_SYNC, "%d", (int)back.syncPolicy);
	DCHECK(cuStreamCopyAttributes(b, a));
	back.syncPolicy = CU_SYNC_POLICY_AUTO;
	DCHECK(cuStreamGetAttribute(b, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &back));
	REQUIRE(back.syncPolicy == CU_SYNC_POLICY_BLOCKING_SYNC, "%d", (int)back.syncPolicy);
	DEXPECT(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &back),
		CUDA_ERROR_INVALID_VALUE);
	ONLY_OURS(DEXPECT(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, NULL),
			  CUDA_ERROR_INVALID_VALUE));
	DCHECK(cuStreamDestroy(a));
	DCHECK(cuStreamDestroy(b));
	return verified("attributes of streams");
}

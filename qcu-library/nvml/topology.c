// SPDX-License-Identifier: LGPL-2.1-or-later
/* How devices and processors lie to one another, as far as a guest can know. */
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "qcu-library/nvml/api.h"
#include "qcu-library/nvml/state.h"

static nv_return check_both(const struct nv_device *a, const struct nv_device *b, const void *to)
{
	nv_return err = qcul_nvml_check(a);

	if (!err)
		err = qcul_nvml_check(b);
	return err || to ? err : NV_INVALID_ARGUMENT;
}

nv_return nvmlDeviceOnSameBoard(nv_device_t a, nv_device_t b, int *same)
{
	nv_return err = check_both(a, b, same);

	if (err)
		return err;
	*same = a == b || (a->desc.attr[cudaDevAttrIsMultiGpuBoard] &&
			   a->desc.attr[cudaDevAttrMultiGpuBoardGroupID] ==
				   b->desc.attr[cudaDevAttrMultiGpuBoardGroupID]);
	return NV_SUCCESS;
}

/* The host's switches and bridges are not known here. */
nv_return nvmlDeviceGetTopologyCommonAncestor(nv_device_t a, nv_device_t b, nv_topology *level)
{
	nv_return err = check_both(a, b, level);

	if (err)
		return err;
	if (a != b)
		return NV_NOT_SUPPORTED;
	*level = NV_TOPOLOGY_INTERNAL;
	return NV_SUCCESS;
}

nv_return nvmlDeviceGetP2PStatus(nv_device_t a, nv_device_t b, nv_peer_index what,
				 nv_peer_status *status)
{
	nv_return err = check_both(a, b, status);
	int possible = 0;

	if (err)
		return err;
	if (what > NV_PEER_PCI)
		return NV_INVALID_ARGUMENT;
	if (a == b)
		possible = 1;
	else if (what == NV_PEER_ATOMICS)
		err = qcul_nvml_peer(a, b, cudaDevP2PAttrNativeAtomicSupported, &possible);
	else if (what != NV_PEER_NVLINK)
		err = qcul_nvml_peer(a, b, QCU_PEER_POSSIBLE, &possible);
	if (!err)
		*status = possible ? NV_PEER_OK : NV_PEER_STATUS_NOT_SUPPORTED;
	return err;
}

/* The guest's processors are all the same to a device. */
nv_return nvmlDeviceGetCpuAffinity(nv_device_t device, unsigned int words, unsigned long *set)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), i;
	nv_return err = qcul_nvml_check(device);
	const long bits = 8 * sizeof(*set);

	if (err)
		return err;
	if (!words || !set)
		return NV_INVALID_ARGUMENT;
	if (cpus > bits * (long)words)
		return NV_INSUFFICIENT_SIZE;
	memset(set, 0, words * sizeof(*set));
	for (i = 0; i < cpus; i++)
		set[i / bits] |= 1ul << i % bits;
	return NV_SUCCESS;
}

nv_return nvmlDeviceGetCpuAffinityWithinScope(nv_device_t device, unsigned int words,
					      unsigned long *set, nv_scope scope)
{
	nv_return err = qcul_nvml_check(device);

	if (!err && scope > NV_SCOPE_SOCKET)
		err = NV_INVALID_ARGUMENT;
	return err ? err : nvmlDeviceGetCpuAffinity(device, words, set);
}

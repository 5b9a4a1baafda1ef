// SPDX-License-Identifier: LGPL-2.1-or-later
/* Several devices in one program: may kernels of one device use the memory of another? */
#include "qcu-library/device/device.h"
#include "qcu-library/link/ask.h"

static cudaError_t peer_info(int device, int peer, uint32_t attr, int *value)
{
	return qcul_ask_peer_info(device, qcul_device_ordinal(peer), attr, value);
}

static cudaError_t can_access(int *can, int device, int peer)
{
	cudaError_t err = can ? qcul_device_check(device) : cudaErrorInvalidValue;

	if (!err)
		err = qcul_device_check(peer);
	if (err)
		return err;
	*can = 0;
	return device == peer ? cudaSuccess : peer_info(device, peer, QCU_PEER_POSSIBLE, can);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	return qcul_done(can_access(can, device, peer));
}

static cudaError_t p2p_attribute(int *value, enum cudaDeviceP2PAttr attr, int device, int peer)
{
	cudaError_t err = value ? qcul_device_check(device) : cudaErrorInvalidValue;

	if (!err)
		err = qcul_device_check(peer);
	if (!err && device == peer)
		err = cudaErrorInvalidDevice;
	if (!err && attr < cudaDevP2PAttrPerformanceRank)
		err = cudaErrorInvalidValue;
	return err ? err : peer_info(device, peer, attr, value);
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int device, int peer)
{
	return qcul_done(p2p_attribute(value, attr, device, peer));
}

/* attr: QCU_PEER_ATOMICS or QCU_PEER_HOST_ATOMICS. */
static cudaError_t atomics(unsigned int *capabilities, const enum cudaAtomicOperation *operations,
			   unsigned int count, int device, int peer, uint32_t attr)
{
	cudaError_t err = qcul_ready();
	unsigned int i;
	int value;

	if (!capabilities || !operations || !count)
		return cudaErrorInvalidValue;
	for (i = 0; i < count && !err; i++) {
		if (operations[i] > cudaAtomicOperationFloatMax)
			return cudaErrorInvalidValue;
		err = peer_info(device, peer, attr + operations[i], &value);
		if (!err)
			capabilities[i] = (unsigned int)value;
	}
	return err;
}

cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
						const enum cudaAtomicOperation *operations,
						unsigned int count, int device)
{
	cudaError_t err = qcul_device_check(device);

	return qcul_done(err ? err
			     : atomics(capabilities, operations, count, device, device,
				       QCU_PEER_HOST_ATOMICS));
}

cudaError_t cudaDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
					       const enum cudaAtomicOperation *operations,
					       unsigned int count, int device, int peer)
{
	cudaError_t err = qcul_device_check(device);

	if (!err)
		err = qcul_device_check(peer);
	if (!err && device == peer)
		err = cudaErrorInvalidDevice;
	return qcul_done(
		err ? err
		    : atomics(capabilities, operations, count, device, peer, QCU_PEER_ATOMICS));
}

static cudaError_t peer_access(int peer, uint32_t enable)
{
	return qcul_ask_peer_access(qcul_self.device, qcul_device_ordinal(peer), enable);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	cudaError_t err = qcul_device_check(peer);

	if (!err)
		err = qcul_ready();
	if (!err && flags)
		err = cudaErrorInvalidValue;
	if (!err && peer == qcul_self.device)
		err = cudaErrorPeerAccessUnsupported;
	return qcul_done(err ? err : peer_access(peer, 1));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	cudaError_t err = qcul_device_check(peer);

	if (!err)
		err = qcul_ready();
	if (!err && peer == qcul_self.device)
		err = cudaErrorPeerAccessNotEnabled;
	return qcul_done(err ? err : peer_access(peer, 0));
}

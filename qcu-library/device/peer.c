// SPDX-License-Identifier: LGPL-2.1-or-later
/* Several devices in one program: may kernels of one device use the memory of another? */
#include "qcu-library/device/device.h"

static cudaError_t peer_info(int device, int peer, uint32_t attr, int *value)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_PEER_INFO);
	cudaError_t err;

	cmd.device = qcul_device_ordinal(device);
	cmd.peer_info.peer = qcul_device_ordinal(peer);
	cmd.peer_info.attr = attr;
	err = qcul_send(&cmd, 1);
	if (!err)
		*value = cmd.peer_info.value;
	return err;
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
	struct qCUcmd cmd = qcul_cmd(QCU_OP_PEER_ACCESS);

	cmd.peer_access.peer = qcul_device_ordinal(peer);
	cmd.peer_access.enable = enable;
	return qcul_send(&cmd, 1);
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

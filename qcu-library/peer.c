// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Several devices in one program. Kernels of one cannot reach the memory of another yet, and the
 * answers here say so; copies between devices work.
 */
#include "qcu-library/device.h"

static cudaError_t check(int device)
{
	cudaError_t err = qcul_open();

	if (err)
		return err;
	return device >= 0 && device < qcul_device_count() ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	cudaError_t err = can ? check(device) : cudaErrorInvalidValue;

	if (!err)
		err = check(peer);
	if (!err)
		*can = 0;
	return qcul_done(err);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	cudaError_t err = check(peer);

	if (!err)
		err = flags ? cudaErrorInvalidValue : cudaErrorPeerAccessUnsupported;
	return qcul_done(err);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	cudaError_t err = check(peer);

	return qcul_done(err ? err : cudaErrorPeerAccessNotEnabled);
}

static cudaError_t copy(void *dst, int dst_device, const void *src, int src_device, size_t count,
			cudaStream_t stream)
{
	struct qcul_copy c = {
		.dst = dst,
		.src = src,
		.width = count,
		.height = 1,
		.kind = cudaMemcpyDeviceToDevice,
	};
	cudaError_t err = check(dst_device);

	if (!err)
		err = check(src_device);
	return err ? err : qcul_copy(&c, stream);
}

cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t count)
{
	return qcul_done(copy(dst, dst_device, src, src_device, count, cudaStreamLegacy));
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
				size_t count, cudaStream_t stream)
{
	return qcul_done(copy(dst, dst_device, src, src_device, count, stream));
}

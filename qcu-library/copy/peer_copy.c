// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copies between devices, which always work. */
#include "qcu-library/copy/copy.h"

static cudaError_t copy_between_devices(void *dst, int dst_device, const void *src, int src_device,
					size_t count, cudaStream_t stream)
{
	struct qcul_copy c = {
		.dst = dst,
		.src = src,
		.width = count,
		.height = 1,
		.kind = cudaMemcpyDeviceToDevice,
	};
	cudaError_t err = qcul_device_check(dst_device);

	if (!err)
		err = qcul_device_check(src_device);
	return err ? err : qcul_copy(&c, stream);
}

cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t count)
{
	return qcul_done(
		copy_between_devices(dst, dst_device, src, src_device, count, cudaStreamLegacy));
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
				size_t count, cudaStream_t stream)
{
	return qcul_done(copy_between_devices(dst, dst_device, src, src_device, count, stream));
}

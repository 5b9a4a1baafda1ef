// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls that need no device, and the answer of calls that are not implemented. */
#include "qcu-library/link/link.h"

cudaError_t qcul_unsupported(const char *name, atomic_flag *said)
{
	qcul_say_once(said, "%s is not supported", name);
	return qcul_done(cudaErrorNotSupported);
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
						   enum cudaChannelFormatKind kind)
{
	return (struct cudaChannelFormatDesc){.x = x, .y = y, .z = z, .w = w, .f = kind};
}

/* These calls do nothing natively either if no profiler is attached. */
cudaError_t cudaProfilerStart(void)
{
	return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
	return cudaSuccess;
}

/*
 * What these tables hold is known only to NVIDIA's own libraries, which would call the driver with
 * it behind this library's back.
 */
cudaError_t cudaGetExportTable(const void **table, const cudaUUID_t *id)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!table || !id)
		return qcul_done(cudaErrorInvalidValue);
	qcul_say_once(
		&said,
		"cudaGetExportTable is refused: NVIDIA's private tables do not exist in a VM; "
		"libraries that need them cannot run here");
	return qcul_done(cudaErrorNotSupported);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* The start of the driver API, and calls that need no device. */
#include "qcu-library/driver_base/needs.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/malloc/malloc_hook.h"

atomic_int qcul_driver_state;

/* As with NVIDIA's driver, the child of a process that has used it cannot use it. */
static void mark_driver_forked(void)
{
	if (qcul_opened() || atomic_load(&qcul_driver_state) == QCUL_STARTED)
		atomic_store(&qcul_driver_state, QCUL_FORKED);
}

QCUL_AT_FORK(QCUL_FORK_DRIVER, .child = mark_driver_forked)

CUresult qcul_driver_started(void)
{
	int not_yet = QCUL_NOT_STARTED;

	/* The runtime starts the driver for itself. */
	if (qcul_opened())
		atomic_compare_exchange_strong(&qcul_driver_state, &not_yet, QCUL_STARTED);
	return atomic_load(&qcul_driver_state) == QCUL_STARTED ? CUDA_SUCCESS
							       : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult qcul_driver_unsupported(const char *what, atomic_flag *said)
{
	return QCUL_RUNTIME(qcul_unsupported(what, said));
}

CUresult cuInit(unsigned int flags)
{
	CUresult result;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (atomic_load(&qcul_driver_state) == QCUL_FORKED)
		return CUDA_ERROR_NOT_INITIALIZED;
	qcul_malloc_arm();
	result = QCUL_RUNTIME(qcul_open());
	if (!result && !qcul_device_count())
		result = CUDA_ERROR_NO_DEVICE;
	if (!result)
		atomic_store_explicit(&qcul_driver_state, QCUL_STARTED, memory_order_release);
	return result;
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	return QCUL_RUNTIME(cudaDriverGetVersion(version));
}

/*
 * What these tables hold is known only to NVIDIA's own libraries. They do not exist here, and
 * nothing imitates them.
 */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	*table = NULL;
	qcul_say_once(&said, "cuGetExportTable is refused: NVIDIA's private tables do not exist in "
			     "a VM; libraries that need them cannot run here");
	return CUDA_ERROR_NOT_FOUND;
}

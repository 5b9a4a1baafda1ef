// SPDX-License-Identifier: LGPL-2.1-or-later
/* cuGetProcAddress, and the runtime's functions that do the same. */
#include <string.h>

#include "qcu-library/driver_api/table.h"
#include "qcu-library/driver_base/driver.h"
#include "qcu-library/device/device.h"

#define STREAM_FLAGS \
	(CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)

static struct {
	const struct qcul_driver_function *functions;
	size_t function_count;
} process;

void qcul_driver_functions_are(const struct qcul_driver_function *list, size_t count)
{
	process.functions = list;
	process.function_count = count;
}

/*
 * Finds the newest form of a function that `version` of CUDA has. A function without a form of its
 * own for per-thread streams is the same with both.
 */
static void *find_driver_function(const char *name, int version, bool own,
				  CUdriverProcAddressQueryResult *status)
{
	const struct qcul_driver_function *f = process.functions, *end, *found = NULL;
	bool exists = false;

	for (end = f + process.function_count; f < end; f++) {
		if (strcmp(f->name, name) != 0)
			continue;
		exists = true;
		if (f->since > version || (f->stream == QCUL_OWN_STREAM && !own))
			continue;
		if (!found || f->stream > found->stream ||
		    (f->stream == found->stream && f->since > found->since))
			found = f;
	}
	*status = found	   ? CU_GET_PROC_ADDRESS_SUCCESS
		  : exists ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
			   : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return found ? (void *)found->address : NULL;
}

/* A function that is not there is no error: its address is NULL, and the status says why. */
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	CUdriverProcAddressQueryResult how;

	if (!symbol || !function || flags & ~(cuuint64_t)STREAM_FLAGS || flags == STREAM_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	*function = find_driver_function(
		symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &how);
	if (status)
		*status = how;
	return CUDA_SUCCESS;
}

/* Programs that look for cuGetProcAddress with a version before 12 get this. It has no status. */
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
	CUresult result = cuGetProcAddress_v2(symbol, function, version, flags, NULL);

	return !result && !*function ? CUDA_ERROR_NOT_FOUND : result;
}

/* For the runtime: a status of cudaDriverEntryPointQueryResult. */
static void *entry_point_for_runtime(const char *symbol, unsigned int version, bool own,
				     int *status)
{
	CUdriverProcAddressQueryResult how;
	void *function = find_driver_function(symbol, (int)version, own, &how);

	*status = (int)how;
	return function;
}
_Static_assert((int)CU_GET_PROC_ADDRESS_SUCCESS == (int)cudaDriverEntryPointSuccess &&
		       (int)CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND ==
			       (int)cudaDriverEntryPointSymbolNotFound &&
		       (int)CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT ==
			       (int)cudaDriverEntryPointVersionNotSufficent,
	       "the same values");

__attribute__((constructor)) static void offer_entry_points(void)
{
	qcul_entry_points_by(entry_point_for_runtime);
}

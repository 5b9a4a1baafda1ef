// SPDX-License-Identifier: GPL-2.0-or-later
/* cuGetProcAddress: forms of functions by version and by stream, and names that do not exist. */
#include "driver.h"

static void *find(const char *name, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;
	void *function;

	DCHECK(cuGetProcAddress(name, &function, version, flags, &status));
	REQUIRE(function && status == CU_GET_PROC_ADDRESS_SUCCESS, "%d", (int)status);
	return function;
}

static void missing(const char *name, int version, CUdriverProcAddressQueryResult why)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	void *function = &status;

	DCHECK(cuGetProcAddress(name, &function, version, 0, &status));
	REQUIRE(!function && status == why, "%d", (int)status);
}

int main()
{
	typedef CUresult init_fn(unsigned int);
	typedef CUresult count_fn(int *);
	CUuuid id = {};
	const void *table = &id;
	void *function;
	int count = 0;

	/* Found before cuInit, and used for it. */
	DCHECK(((init_fn *)find("cuInit", 2000, 0))(0));
	DCHECK(((count_fn *)find("cuDeviceGetCount", 13000, 0))(&count));
	REQUIRE(count > 0, "%d", count);
	REQUIRE(find("cuMemAlloc", 3020, 0) != find("cuMemAlloc", 2000, 0), "one form");
	REQUIRE(find("cuMemAlloc", 3020, 0) == find("cuMemAlloc", 13000, 0), "two forms");
	REQUIRE(find("cuCtxCreate", 11040, 0) != find("cuCtxCreate", 3020, 0), "one form");
	REQUIRE(find("cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM) ==
			find("cuLaunchKernel", 13000, 0),
		"two forms");
	REQUIRE(find("cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) !=
			find("cuLaunchKernel", 13000, 0),
		"one form");
	/* A function without streams is the same with both. */
	REQUIRE(find("cuMemFree", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) ==
			find("cuMemFree", 13000, 0),
		"two forms");
	/* Programs that can draw look for these at their start, and give up CUDA without them. */
	find("cuGraphicsGLRegisterBuffer", 3000, 0);
	find("cuGLGetDevices", 6050, 0);
	find("cuGraphicsEGLRegisterImage", 7000, 0);
	missing("cuNoSuchFunction", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	missing("cuLaunchKernelEx", 11000, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	ONLY_OURS(DEXPECT(cuGetProcAddress(NULL, &function, 13000, 0, NULL),
			  CUDA_ERROR_INVALID_VALUE));
	ONLY_OURS(DEXPECT(cuGetProcAddress("cuInit", NULL, 13000, 0, NULL),
			  CUDA_ERROR_INVALID_VALUE));
	DEXPECT(cuGetProcAddress("cuInit", &function, 13000, 0x80, NULL), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuGetExportTable(NULL, &id), CUDA_ERROR_INVALID_VALUE);
	(void)table;
	return verified("functions by name, version and stream");
}

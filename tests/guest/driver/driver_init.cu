// SPDX-License-Identifier: GPL-2.0-or-later
/* The start of the driver API: nothing works before cuInit, and the devices after it. */
#include "driver.h"

static void before_init(void)
{
	CUcontext context;
	CUdevice device;
	int number;

	DEXPECT(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
	DEXPECT(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
	DEXPECT(cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
		CUDA_ERROR_NOT_INITIALIZED);
	DEXPECT(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
	DEXPECT(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
	DEXPECT(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
	DEXPECT(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuDeviceGetCount(&number), CUDA_ERROR_NOT_INITIALIZED);
}

static void devices(void)
{
	int count, major, minor, warp, i;
	CUdevice device;
	size_t bytes;
	char name[100], two[2] = {'x', 'x'};
	CUuuid uuid, first;

	DEXPECT(cuDeviceGetCount(NULL), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuDeviceGetCount(&count));
	REQUIRE(count > 0, "%d devices", count);
	DEXPECT(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, count),
		CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
		CUDA_ERROR_INVALID_VALUE);
	for (i = 0; i < count; i++) {
		DCHECK(cuDeviceGet(&device, i));
		DCHECK(cuDeviceGetName(name, sizeof(name), device));
		REQUIRE(name[0], "no name");
		DCHECK(cuDeviceGetName(two, 2, device));
		REQUIRE(two[0] == name[0] && !two[1], "%d", two[1]);
		DCHECK(cuDeviceTotalMem(&bytes, device));
		REQUIRE(bytes > 1 << 20, "%zu", bytes);
		DCHECK(cuDeviceGetAttribute(&major,
					    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
		DCHECK(cuDeviceGetAttribute(&minor,
					    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
		REQUIRE(major * 10 + minor >= 75, "%d.%d", major, minor);
		DCHECK(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
		REQUIRE(warp == 32, "%d", warp);
		DCHECK(cuDeviceGetUuid(&uuid, device));
		if (i == 0)
			first = uuid;
		else
			REQUIRE(memcmp(&first, &uuid, sizeof(uuid)), "two with one UUID");
	}
}

static void names(void)
{
	const char *text = "";

	DCHECK(cuGetErrorName(CUDA_ERROR_INVALID_CONTEXT, &text));
	REQUIRE(!strcmp(text, "CUDA_ERROR_INVALID_CONTEXT"), "%s", text);
	DCHECK(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
	REQUIRE(!strcmp(text, "invalid argument"), "%s", text);
	DEXPECT(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
	REQUIRE(!text, "%s", text);
	DEXPECT(cuGetErrorString((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
}

int main()
{
	int version, again;

	DCHECK(cuDriverGetVersion(&version));
	REQUIRE(version >= 13000, "%d", version);
	names();
	before_init();
	DCHECK(cuInit(0));
	DCHECK(cuInit(0));
	DCHECK(cuDriverGetVersion(&again));
	REQUIRE(version == again, "%d", again);
	DEXPECT(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
	devices();
	return verified("cuInit comes first, then there are devices");
}

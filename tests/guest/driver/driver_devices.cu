// SPDX-License-Identifier: GPL-2.0-or-later
/* What a device says of itself in several ways: attributes, the old properties, the bus, its UUID.
 */
#include "driver.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int attribute(CUdevice_attribute which, CUdevice device)
{
	int value = -1;

	DCHECK(cuDeviceGetAttribute(&value, which, device));
	return value;
}

int main()
{
	CUdevice device, again;
	CUdevprop properties;
	int major, minor, bus, slot, domain, linear, i;
	char text[64], little[4];
	CUuuid uuid, other;
	size_t bytes, free_bytes, all;
	unsigned int got_domain, got_bus, got_slot;

	device = driver_start();
	DCHECK(cuDeviceComputeCapability(&major, &minor, device));
	REQUIRE(major == attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device), "%d",
		major);
	REQUIRE(minor == attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device), "%d",
		minor);
	DCHECK(cuDeviceGetProperties(&properties, device));
	REQUIRE(properties.maxThreadsPerBlock ==
			attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device),
		"%d", properties.maxThreadsPerBlock);
	REQUIRE(properties.SIMDWidth == 32, "%d", properties.SIMDWidth);
	REQUIRE(properties.clockRate == attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device), "%d",
		properties.clockRate);
	for (i = 0; i < 3; i++) {
		CUdevice_attribute block =
			(CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
		CUdevice_attribute grid =
			(CUdevice_attribute)(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);

		REQUIRE(properties.maxThreadsDim[i] == attribute(block, device), "%d", i);
		REQUIRE(properties.maxGridSize[i] == attribute(grid, device), "%d", i);
	}
	domain = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, device);
	bus = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device);
	slot = attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, device);
	DCHECK(cuDeviceGetPCIBusId(text, sizeof(text), device));
	REQUIRE(sscanf(text, "%x:%x:%x.0", &got_domain, &got_bus, &got_slot) == 3, "%s", text);
	REQUIRE((int)got_domain == domain && (int)got_bus == bus && (int)got_slot == slot, "%s",
		text);
	DCHECK(cuDeviceGetByPCIBusId(&again, text));
	REQUIRE(again == device, "%d", again);
	DEXPECT(cuDeviceGetByPCIBusId(&again, "no bus"), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuDeviceGetByPCIBusId(&again, "ffff:ff:1f.0"), CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuDeviceGetPCIBusId(little, sizeof(little), device), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuDeviceGetUuid(&uuid, device));
	DCHECK(cuDeviceGetUuid(&other, device));
	REQUIRE(!memcmp(&uuid, &other, sizeof(uuid)), "two UUIDs");
	DCHECK(cuDeviceTotalMem(&bytes, device));
	DCHECK(cuMemGetInfo(&free_bytes, &all));
	REQUIRE(all == bytes && free_bytes <= all, "%zu %zu %zu", bytes, free_bytes, all);
	/* Every number up to the last one that CUDA 13.0 knows is answered, except for the gaps. */
	linear = 0;
	for (i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
		linear += !cuDeviceGetAttribute(&major, (CUdevice_attribute)i, device);
	REQUIRE(linear > 120, "%d attributes", linear);
	DEXPECT(cuDeviceGetAttribute(&major, (CUdevice_attribute)0, device),
		CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuDeviceGetTexture1DLinearMaxWidth(&bytes, CU_AD_FORMAT_FLOAT, 1, device));
	REQUIRE(bytes >= 1 << 20, "%zu", bytes);
	return verified("a device says the same in all ways");
}

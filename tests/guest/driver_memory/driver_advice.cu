// SPDX-License-Identifier: GPL-2.0-or-later
/* Managed memory: advice, what was advised, prefetches to the device and back, several ranges at
 * once, wrong ones. */
#include "driver.h"

#define BYTES (4u << 20)

static CUmemLocation place(CUmemLocationType type, int id)
{
	CUmemLocation l = {};

	l.type = type;
	l.id = id;
	return l;
}

int main()
{
	CUdevice device = driver_start();
	CUmemLocation here = place(CU_MEM_LOCATION_TYPE_DEVICE, device);
	CUmemLocation host = place(CU_MEM_LOCATION_TYPE_HOST, 0);
	CUmemLocation nowhere = place(CU_MEM_LOCATION_TYPE_DEVICE, 4711);
	CUmem_range_attribute which[2] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
					  CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
	int mostly = -1, preferred = -1;
	size_t sizes[2] = {4, 4};
	void *data[2] = {&mostly, &preferred};
	CUdeviceptr managed, plain;
	unsigned int *words, i;
	CUstream stream;

	DCHECK(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	DCHECK(cuMemAlloc(&plain, BYTES));
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	words = (unsigned int *)(uintptr_t)managed;
	DEXPECT(cuMemAdvise(managed, BYTES, (CUmem_advise)77, here), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemAdvise(plain, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, here),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemAdvise(managed, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, here),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemAdvise(managed, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, nowhere),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemPrefetchAsync(plain, BYTES, here, 0, stream), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemPrefetchAsync(managed, BYTES, nowhere, 0, stream), CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuMemPrefetchAsync(managed, BYTES, here, 1, stream), CUDA_ERROR_INVALID_VALUE);

	for (i = 0; i < BYTES / 4; i++)
		words[i] = i;
	DCHECK(cuMemAdvise(managed, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
	DCHECK(cuMemAdvise(managed, BYTES, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here));
	DCHECK(cuMemRangeGetAttribute(&mostly, 4, which[0], managed, BYTES));
	REQUIRE(mostly == 1, "%d", mostly);
	DCHECK(cuMemRangeGetAttributes(data, sizes, which, 2, managed, BYTES));
	REQUIRE(mostly == 1 && preferred == device, "%d %d", mostly, preferred);
	DCHECK(cuMemAdvise(managed, BYTES, CU_MEM_ADVISE_UNSET_READ_MOSTLY, here));
	DCHECK(cuMemAdvise(managed, BYTES, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, here));
	DCHECK(cuMemRangeGetAttributes(data, sizes, which, 2, managed, BYTES));
	REQUIRE(mostly == 0 && preferred == CU_DEVICE_INVALID, "%d %d", mostly, preferred);

	DCHECK(cuMemPrefetchAsync(managed, BYTES, here, 0, stream));
	DCHECK(cuMemsetD32Async(managed + BYTES / 2, 5, 4, stream));
	DCHECK(cuMemPrefetchAsync(managed, BYTES, host, 0, stream));
	DCHECK(cuStreamSynchronize(stream));
	for (i = 0; i < BYTES / 4; i++)
		REQUIRE(words[i] == (i - BYTES / 8 < 4 ? 5 : i), "%u: %u", i, words[i]);
	DCHECK(cuStreamAttachMemAsync(stream, managed, 0, CU_MEM_ATTACH_HOST));
	DCHECK(cuStreamSynchronize(stream));
	words[0] = 9;
	DCHECK(cuStreamAttachMemAsync(stream, managed, 0, CU_MEM_ATTACH_GLOBAL));
	DCHECK(cuStreamSynchronize(stream));
	DCHECK(cuMemcpyDtoH(&i, managed, 4));
	REQUIRE(i == 9, "%u", i);
	DCHECK(cuStreamDestroy(stream));
	DCHECK(cuMemFree(managed));
	DCHECK(cuMemFree(plain));
	return verified("advice for managed memory");
}

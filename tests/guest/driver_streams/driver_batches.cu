// SPDX-License-Identifier: GPL-2.0-or-later
/* Many copies in one call. */
#include "driver.h"

#define BLOCKS 5
#define BYTES  3000

int main()
{
	static unsigned char from[BLOCKS][BYTES], to[BLOCKS][BYTES];
	CUdeviceptr memory[BLOCKS], srcs[BLOCKS], dsts[BLOCKS];
	CUmemcpyAttributes attributes = {};
	size_t sizes[BLOCKS], first = 0;
	CUstream stream;
	int i;

	driver_start();
	fill_words(from, sizeof(from), 8);
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	for (i = 0; i < BLOCKS; i++) {
		DCHECK(cuMemAlloc(&memory[i], BYTES));
		srcs[i] = (CUdeviceptr)(uintptr_t)from[i];
		dsts[i] = (CUdeviceptr)(uintptr_t)to[i];
		sizes[i] = BYTES;
	}
	DCHECK(cuMemcpyBatchAsync(memory, srcs, sizes, BLOCKS, &attributes, &first, 1, stream));
	DCHECK(cuMemcpyBatchAsync(dsts, memory, sizes, BLOCKS, &attributes, &first, 1, stream));
	DCHECK(cuStreamSynchronize(stream));
	REQUIRE(!memcmp(from, to, sizeof(from)), "at %zu",
		first_difference(from, to, sizeof(from)));
	DEXPECT(cuMemcpyBatchAsync(memory, srcs, sizes, BLOCKS, &attributes, &first, 0, stream),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemcpyBatchAsync(memory, srcs, sizes, BLOCKS, &attributes, &first, 1, NULL),
		CUDA_ERROR_INVALID_VALUE);
	for (i = 0; i < BLOCKS; i++)
		DCHECK(cuMemFree(memory[i]));
	DCHECK(cuStreamDestroy(stream));
	return verified("%d copies in one call", BLOCKS);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copies one GiB and a few bytes at once, from pinned memory to the device and from there to memory
 * of malloc, all at odd addresses.
 */
#include <unistd.h>

#include "tests/loopback/check.h"

#define LEN ((1ul << 30) + 5)

int main(void)
{
	char *pinned, *heap, *dev;
	size_t at;

	/* At most five times as much is in use at once. */
	if ((unsigned long)sysconf(_SC_AVPHYS_PAGES) * (unsigned long)sysconf(_SC_PAGESIZE) <
	    5 * LEN) {
		puts("less than 5 GiB of memory are free");
		return 77;
	}
	OK(cudaMalloc((void **)&dev, LEN + 16));
	OK(cudaMallocHost((void **)&pinned, LEN + 16));
	heap = malloc(LEN + 16);
	REQUIRE(heap, "out of memory");
	fill(pinned + 1, LEN, 1);
	OK(cudaMemcpy(dev + 7, pinned + 1, LEN, cudaMemcpyHostToDevice));
	OK(cudaMemcpy(heap + 3, dev + 7, LEN, cudaMemcpyDeviceToHost));
	at = differs(heap + 3, pinned + 1, LEN);
	REQUIRE(at == LEN, "byte %zu", at);
	free(heap);
	OK(cudaFreeHost(pinned));
	OK(cudaFree(dev));
	return 0;
}

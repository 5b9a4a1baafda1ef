// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory filled with values of one, two and four bytes, in runs and rectangles. */
#include "driver.h"

#define PITCH 512
#define ROWS  5

static unsigned char got[PITCH * ROWS];
static CUdeviceptr memory;

static void clear(void)
{
	DCHECK(cuMemsetD8(memory, 0xee, sizeof(got)));
}

/* The first `width` values of each of the rows are `value`, all else is as before. */
static void expect(unsigned int value, unsigned int elem, size_t width, size_t rows)
{
	size_t x, y;

	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	for (y = 0; y < ROWS; y++)
		for (x = 0; x < PITCH; x++) {
			unsigned char want = 0xee;

			if (y < rows && x < width * elem)
				want = (unsigned char)(value >> 8 * (x % elem));
			REQUIRE(got[y * PITCH + x] == want, "%zu,%zu: %x, not %x", x, y,
				got[y * PITCH + x], want);
		}
}

int main()
{
	driver_start();
	DCHECK(cuMemAlloc(&memory, sizeof(got)));
	clear();
	expect(0xee, 1, PITCH, ROWS);
	DCHECK(cuMemsetD8(memory, 0x12, 33));
	expect(0x12, 1, 33, 1);
	DCHECK(cuMemsetD16(memory, 0x1234, 33));
	expect(0x1234, 2, 33, 1);
	clear();
	DCHECK(cuMemsetD32(memory, 0x12345678, 33));
	expect(0x12345678, 4, 33, 1);
	clear();
	DCHECK(cuMemsetD2D8(memory, PITCH, 0x21, 33, 4));
	expect(0x21, 1, 33, 4);
	DCHECK(cuMemsetD2D16(memory, PITCH, 0x4321, 33, 4));
	expect(0x4321, 2, 33, 4);
	DCHECK(cuMemsetD2D32(memory, PITCH, 0x87654321, 33, 4));
	expect(0x87654321, 4, 33, 4);
	clear();
	DCHECK(cuMemsetD8Async(memory, 1, 100, NULL));
	DCHECK(cuMemsetD16Async(memory, 0x0202, 20, NULL));
	DCHECK(cuMemsetD16Async(memory, 0x0101, 20, NULL));
	expect(1, 1, 100, 1);
	DCHECK(cuMemsetD32Async(memory, 0x01020304, 25, NULL));
	expect(0x01020304, 4, 25, 1);
	clear();
	DCHECK(cuMemsetD2D8Async(memory, PITCH, 9, 7, 2, NULL));
	expect(9, 1, 7, 2);
	DCHECK(cuMemsetD2D16Async(memory, PITCH, 0x0908, 7, 2, NULL));
	expect(0x0908, 2, 7, 2);
	DCHECK(cuMemsetD2D32Async(memory, PITCH, 0x0a090807, 7, 2, NULL));
	expect(0x0a090807, 4, 7, 2);
	DEXPECT(cuMemsetD16(memory + 1, 1, 4), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemsetD32(memory + 2, 1, 4), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemsetD8(memory, 1, sizeof(got) + 1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemsetD8(0, 1, 4), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemFree(memory));
	return verified("fills of every width");
}

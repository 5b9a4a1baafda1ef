// SPDX-License-Identifier: GPL-2.0-or-later
/* Copies of rectangles and boxes between memory with other distances between its rows. */
#include "driver.h"

#define W 40
#define H 6
#define D 3

static unsigned char from[D][8][64], to[D][8][64];

static void rectangle(void)
{
	CUDA_MEMCPY2D c = {};
	CUdeviceptr memory;
	unsigned int x, y;
	size_t pitch;

	DCHECK(cuMemAllocPitch(&memory, &pitch, W, H, 4));
	DCHECK(cuMemsetD8(memory, 0, pitch * H));
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = from;
	c.srcPitch = 64;
	c.srcXInBytes = 3;
	c.srcY = 1;
	c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.dstDevice = memory;
	c.dstPitch = pitch;
	c.dstXInBytes = 2;
	c.dstY = 1;
	c.WidthInBytes = 20;
	c.Height = 4;
	DCHECK(cuMemcpy2D(&c));
	memset(to, 0xff, sizeof(to));
	c = (CUDA_MEMCPY2D){};
	c.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
	c.srcDevice = memory;
	c.srcPitch = pitch;
	c.dstMemoryType = CU_MEMORYTYPE_HOST;
	c.dstHost = to;
	c.dstPitch = 64;
	c.WidthInBytes = W;
	c.Height = H;
	DCHECK(cuMemcpy2DAsync(&c, NULL));
	DCHECK(cuStreamSynchronize(NULL));
	for (y = 0; y < H; y++)
		for (x = 0; x < W; x++) {
			bool in = x >= 2 && x < 22 && y >= 1 && y < 5;

			REQUIRE(to[0][y][x] == (in ? from[0][y][x + 1] : 0), "%u,%u: %d", x, y,
				to[0][y][x]);
		}
	REQUIRE(to[0][0][W] == 0xff && to[0][H][0] == 0xff, "too much was copied");
	c.srcPitch = W - 1;
	DEXPECT(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemcpy2D(NULL), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemFree(memory));
}

static void box(void)
{
	CUDA_MEMCPY3D c = {};
	CUdeviceptr memory;
	unsigned int x, y, z;

	DCHECK(cuMemAlloc(&memory, W * H * D));
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = from;
	c.srcPitch = 64;
	c.srcHeight = 8;
	c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.dstDevice = memory;
	c.dstPitch = W;
	c.dstHeight = H;
	c.WidthInBytes = W;
	c.Height = H;
	c.Depth = D;
	DCHECK(cuMemcpy3D(&c));
	memset(to, 0xff, sizeof(to));
	c = (CUDA_MEMCPY3D){};
	c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = memory;
	c.srcPitch = W;
	c.srcHeight = H;
	c.srcZ = 1;
	c.dstMemoryType = CU_MEMORYTYPE_HOST;
	c.dstHost = to;
	c.dstPitch = 64;
	c.dstHeight = 8;
	c.dstZ = 1;
	c.WidthInBytes = W;
	c.Height = H;
	c.Depth = D - 1;
	DCHECK(cuMemcpy3DAsync(&c, NULL));
	DCHECK(cuStreamSynchronize(NULL));
	for (z = 0; z < D; z++)
		for (y = 0; y < 8; y++)
			for (x = 0; x < 64; x++) {
				bool in = z > 0 && y < H && x < W;

				REQUIRE(to[z][y][x] == (in ? from[z][y][x] : 0xff), "%u,%u,%u: %d",
					x, y, z, to[z][y][x]);
			}
	/* What should be zero, and is not looked at. */
	c.srcLOD = 1;
	DCHECK(cuMemcpy3D(&c));
	/* Nothing to copy, whatever else there is. */
	c.Depth = 0;
	c.srcMemoryType = (CUmemorytype)77;
	DCHECK(cuMemcpy3D(&c));
	DCHECK(cuMemFree(memory));
}

int main()
{
	driver_start();
	fill_words(from, sizeof(from), 5);
	rectangle();
	box();
	return verified("rectangles and boxes");
}

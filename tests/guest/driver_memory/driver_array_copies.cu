// SPDX-License-Identifier: GPL-2.0-or-later
/* Copies between arrays, and between arrays and memory, with and without waiting; boxes in arrays.
 */
#include "driver.h"

#define W 64

static CUarray line(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {};
	CUarray array;

	d.Width = W;
	d.Format = CU_AD_FORMAT_UNSIGNED_INT32;
	d.NumChannels = 1;
	DCHECK(cuArrayCreate(&array, &d));
	return array;
}

static void runs(void)
{
	static unsigned int in[W], out[W];
	CUarray a = line(), b = line();
	CUdeviceptr memory;

	fill_words(in, sizeof(in), 1);
	DCHECK(cuMemAlloc(&memory, sizeof(in)));
	DCHECK(cuMemcpyHtoAAsync(a, 0, in, sizeof(in), NULL));
	DCHECK(cuMemcpyAtoA(b, 16, a, 8, 32));
	DCHECK(cuMemcpyAtoD(memory, b, 16, 32));
	DCHECK(cuMemcpyDtoH(out, memory, 32));
	REQUIRE(!memcmp(out, in + 2, 32), "%x", out[0]);
	DCHECK(cuMemcpyDtoA(a, 128, memory, 32));
	DCHECK(cuMemcpyAtoHAsync(out, a, 128, 32, NULL));
	DCHECK(cuStreamSynchronize(NULL));
	REQUIRE(!memcmp(out, in + 2, 32), "%x", out[0]);
	DEXPECT(cuMemcpyAtoH(out, a, W * 4 - 4, 8), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemcpyHtoA(a, W * 4, in, 4), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuArrayDestroy(a));
	DCHECK(cuArrayDestroy(b));
	DCHECK(cuMemFree(memory));
}

static void box(void)
{
	static unsigned short in[3][4][8][2], out[3][4][8][2];
	CUDA_ARRAY3D_DESCRIPTOR d = {}, back;
	CUDA_MEMCPY3D c = {};
	CUarray array;
	int z, y;

	d.Width = 8;
	d.Height = 4;
	d.Depth = 3;
	d.Format = CU_AD_FORMAT_UNSIGNED_INT16;
	d.NumChannels = 2;
	DCHECK(cuArray3DCreate(&array, &d));
	DCHECK(cuArray3DGetDescriptor(&back, array));
	REQUIRE(back.Depth == 3 && back.NumChannels == 2, "%zu", back.Depth);
	fill_words(in, sizeof(in), 2);
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = in;
	c.srcPitch = 32;
	c.srcHeight = 4;
	c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	c.dstArray = array;
	c.WidthInBytes = 32;
	c.Height = 4;
	c.Depth = 3;
	DCHECK(cuMemcpy3D(&c));
	c = (CUDA_MEMCPY3D){};
	c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	c.srcArray = array;
	c.srcXInBytes = 8;
	c.srcY = 1;
	c.srcZ = 1;
	c.dstMemoryType = CU_MEMORYTYPE_HOST;
	c.dstHost = out;
	c.dstPitch = 32;
	c.dstHeight = 4;
	c.WidthInBytes = 16;
	c.Height = 2;
	c.Depth = 2;
	DCHECK(cuMemcpy3D(&c));
	for (z = 0; z < 2; z++)
		for (y = 0; y < 2; y++)
			REQUIRE(!memcmp(out[z][y], in[z + 1][y + 1][2], 16), "%d %d", z, y);
	/* Half an element, which CUDA forbids, and which NVIDIA's driver copies somehow. */
	c.srcXInBytes = 2;
	ONLY_OURS(DEXPECT(cuMemcpy3D(&c), CUDA_ERROR_INVALID_VALUE));
	DCHECK(cuArrayDestroy(array));
}

int main()
{
	driver_start();
	runs();
	box();
	return verified("copies with arrays");
}

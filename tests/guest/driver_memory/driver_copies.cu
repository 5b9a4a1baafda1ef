// SPDX-License-Identifier: GPL-2.0-or-later
/* Copies without a direction, between contexts, in boxes between devices, of many runs, and of rows
 * that fit badly. */
#include "driver.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define BYTES 4096

static unsigned char from[BYTES], to[BYTES];

static void run()
{
	CUdeviceptr a, b, h = (CUdeviceptr)(uintptr_t)from, t = (CUdeviceptr)(uintptr_t)to;
	CUcontext context;
	CUstream stream;

	DCHECK(cuCtxGetCurrent(&context));
	DCHECK(cuMemAlloc(&a, BYTES));
	DCHECK(cuMemAlloc(&b, BYTES));
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	/* The addresses say where they are. */
	DCHECK(cuMemcpy(a, h, BYTES));
	DCHECK(cuMemcpy(b, a, BYTES));
	/* Neither a copy on the device nor memset waits, and the stream does not wait for them. */
	DCHECK(cuCtxSynchronize());
	DCHECK(cuMemcpyAsync(t, b, BYTES, stream));
	DCHECK(cuStreamSynchronize(stream));
	REQUIRE(!memcmp(from, to, BYTES), "byte %zu", first_difference(from, to, BYTES));
	DCHECK(cuMemsetD8(b, 0, BYTES));
	DCHECK(cuCtxSynchronize());
	DCHECK(cuMemcpyPeerAsync(b, context, a, context, BYTES, stream));
	DCHECK(cuMemcpyDtoHAsync(to, b, BYTES, stream));
	DCHECK(cuStreamSynchronize(stream));
	REQUIRE(!memcmp(from, to, BYTES), "byte %zu", first_difference(from, to, BYTES));
	DEXPECT(cuMemcpy(a, h, (size_t)1 << 40), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemFree(a));
	DCHECK(cuMemFree(b));
	DCHECK(cuStreamDestroy(stream));
}

static void boxes()
{
	CUDA_MEMCPY3D_PEER c = {};
	CUDA_MEMCPY2D rows = {};
	CUcontext context;
	CUdeviceptr a, b;
	unsigned int x, y, z;

	DCHECK(cuCtxGetCurrent(&context));
	DCHECK(cuMemAlloc(&a, BYTES));
	DCHECK(cuMemAlloc(&b, BYTES));
	DCHECK(cuMemcpyHtoD(a, from, BYTES));
	DCHECK(cuMemsetD8(b, 0xee, BYTES));
	/* 4 slices of 4 rows of 64 bytes, of which 3 x 2 x 10 bytes go. */
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = a;
	c.dstDevice = b;
	c.srcContext = c.dstContext = context;
	c.srcPitch = c.dstPitch = 64;
	c.srcHeight = c.dstHeight = 4;
	c.srcXInBytes = 5;
	c.srcY = 1;
	c.srcZ = 1;
	c.WidthInBytes = 10;
	c.Height = 2;
	c.Depth = 3;
	DCHECK(cuMemcpy3DPeer(&c));
	DCHECK(cuMemcpyDtoH(to, b, BYTES));
	for (z = 0; z < 4; z++)
		for (y = 0; y < 4; y++)
			for (x = 0; x < 64; x++) {
				unsigned char got = to[(z * 4 + y) * 64 + x];
				bool in = z < 3 && y < 2 && x < 10;

				REQUIRE(got == (in ? from[((z + 1) * 4 + y + 1) * 64 + x + 5]
						   : 0xee),
					"%u,%u,%u: %u", x, y, z, got);
			}
	/* A pitch that no hardware likes. */
	rows.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	rows.srcDevice = a;
	rows.srcPitch = 13;
	rows.dstMemoryType = CU_MEMORYTYPE_HOST;
	rows.dstHost = to;
	rows.dstPitch = 7;
	rows.WidthInBytes = 7;
	rows.Height = 20;
	DCHECK(cuMemcpy2DUnaligned(&rows));
	for (y = 0; y < 20; y++)
		REQUIRE(!memcmp(to + y * 7, from + y * 13, 7), "row %u", y);
	rows.srcPitch = 3;
	DEXPECT(cuMemcpy2DUnaligned(&rows), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemFree(a));
	DCHECK(cuMemFree(b));
}

int main()
{
	driver_start();
	fill_words(from, BYTES, 3);
	run();
	boxes();
	return verified("copies that know their direction, boxes and rows");
}

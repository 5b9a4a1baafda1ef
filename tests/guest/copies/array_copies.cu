// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CUDA arrays hold what every kind of copy writes to them: rows with a pitch from pageable,
 * pinned and device memory, boxes, runs through rows, copies from array to array, layers and
 * mipmap levels. Queries about the arrays are tested, too.
 */
#include <sys/mman.h>

#include "check.h"

#define W 101
#define H 67
#define D 5
#define PITCH 512

/* The deprecated functions are still tested. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static unsigned char *host, *back, *mirror;

static void same(const void *a, const void *b, size_t bytes, const char *what)
{
	size_t at = first_difference(a, b, bytes);

	REQUIRE(at == bytes, "%s: byte %zu of %zu", what, at, bytes);
}

/*
 * Updates the expected packed content of the array after a rectangle of `from` has been copied
 * there.
 */
static void put(unsigned char *array, size_t row, size_t x, size_t y, const unsigned char *from,
		size_t pitch, size_t width, size_t height)
{
	for (size_t i = 0; i < height; i++)
		memcpy(array + (y + i) * row + x, from + i * pitch, width);
}

static void rectangles(unsigned char *from, unsigned char *to, cudaMemcpyKind up,
		       cudaMemcpyKind down, cudaStream_t stream, const char *what)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<ushort2>();
	const size_t row = W * sizeof(ushort2), bytes = row * H;
	cudaArray_t array;

	CHECK(cudaMallocArray(&array, &format, W, H));
	fill_words(host, PITCH * H, 7);
	CHECK(cudaMemcpy(from, host, PITCH * H, cudaMemcpyDefault));
	if (stream)
		CHECK(cudaMemcpy2DToArrayAsync(array, 0, 0, from, PITCH, row, H, up, stream));
	else
		CHECK(cudaMemcpy2DToArray(array, 0, 0, from, PITCH, row, H, up));
	put(mirror, row, 0, 0, host, PITCH, row, H);
	/* A part of the rectangle, at another place. */
	if (stream)
		CHECK(cudaMemcpy2DToArrayAsync(array, 12, 3, from + 4, PITCH, 40, 20, up, stream));
	else
		CHECK(cudaMemcpy2DToArray(array, 12, 3, from + 4, PITCH, 40, 20, up));
	put(mirror, row, 12, 3, host + 4, PITCH, 40, 20);
	CHECK(cudaMemset(to, 0, PITCH * H));
	if (stream) {
		CHECK(cudaMemcpy2DFromArrayAsync(to, PITCH, array, 8, 1, row - 8, H - 1, down,
						 stream));
		CHECK(cudaStreamSynchronize(stream));
	} else {
		CHECK(cudaMemcpy2DFromArray(to, PITCH, array, 8, 1, row - 8, H - 1, down));
	}
	CHECK(cudaMemcpy(back, to, PITCH * H, cudaMemcpyDefault));
	for (size_t y = 0; y < H - 1; y++)
		same(back + y * PITCH, mirror + (y + 1) * row + 8, row - 8, what);
	for (size_t y = 0; y < H - 1; y++)
		REQUIRE(!back[y * PITCH + row - 8], "%s: row %zu is written too far", what, y);
	/* The whole array, without gaps. */
	CHECK(cudaMemcpy2DFromArray(back, row, array, 0, 0, row, H, cudaMemcpyDeviceToHost));
	same(back, mirror, bytes, what);
	CHECK(cudaFreeArray(array));
}

static void runs(cudaStream_t stream)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	const size_t row = W * 4, bytes = row * H;
	cudaArray_t a, b;

	fill_words(host, bytes, 3);
	CHECK(cudaMallocArray(&a, &format, W, H));
	CHECK(cudaMallocArray(&b, &format, W + 9, H));
	CHECK(cudaMemcpyToArray(a, 0, 0, host, bytes, cudaMemcpyHostToDevice));
	/* From the middle of one row to the middle of another. */
	CHECK(cudaMemcpyToArray(a, 200, 2, host, 5 * row + 100, cudaMemcpyHostToDevice));
	memcpy(mirror, host, bytes);
	memcpy(mirror + 2 * row + 200, host, 5 * row + 100);
	CHECK(cudaMemcpyFromArray(back, a, 40, 1, bytes - row - 40, cudaMemcpyDeviceToHost));
	same(back, mirror + row + 40, bytes - row - 40, "run");
	CHECK(cudaMemcpyToArrayAsync(a, 12, 4, host, 3 * row, cudaMemcpyHostToDevice, stream));
	memcpy(mirror + 4 * row + 12, host, 3 * row);
	memset(back, 0, bytes);
	CHECK(cudaMemcpyFromArrayAsync(back, a, 0, 3, 6 * row, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	same(back, mirror + 3 * row, 6 * row, "run in a stream");
	/* Rows of another length. */
	CHECK(cudaMemcpyArrayToArray(b, 16, 0, a, 8, 0, bytes - 8, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpyFromArray(back, b, 16, 0, bytes - 8, cudaMemcpyDeviceToHost));
	same(back, mirror + 8, bytes - 8, "array to array, run");
	CHECK(cudaMemcpy2DArrayToArray(b, 4, 1, a, 0, 2, 100, 30, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy2DFromArray(back, 100, b, 4, 1, 100, 30, cudaMemcpyDeviceToHost));
	for (size_t y = 0; y < 30; y++)
		same(back + y * 100, mirror + (y + 2) * row, 100, "array to array, rows");
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
}

static void boxes(bool layered)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<int4>();
	const size_t row = W * 16, slice = row * H;
	cudaExtent extent = make_cudaExtent(W, H, D);
	cudaMemcpy3DParms p = {};
	cudaArray_t a, b;
	cudaPitchedPtr dev;

	fill_words(host, slice * D, 11);
	CHECK(cudaMalloc3DArray(&a, &format, extent, layered ? cudaArrayLayered : 0));
	CHECK(cudaMalloc3DArray(&b, &format, extent, layered ? cudaArrayLayered : 0));
	p.srcPtr = make_cudaPitchedPtr(host, row, W, H);
	p.dstArray = a;
	p.extent = extent;
	p.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&p));
	/* A box from a to b, from b to device memory, and from there to the host. */
	p = {};
	p.srcArray = a;
	p.srcPos = make_cudaPos(2, 3, 1);
	p.dstArray = b;
	p.dstPos = make_cudaPos(20, 5, 2);
	p.extent = make_cudaExtent(50, 30, 3);
	p.kind = cudaMemcpyDeviceToDevice;
	CHECK(cudaMemcpy3DAsync(&p, 0));
	CHECK(cudaMalloc3D(&dev, make_cudaExtent(row, H, D)));
	CHECK(cudaMemset(dev.ptr, 0, dev.pitch * H * D));
	p = {};
	p.srcArray = b;
	p.srcPos = make_cudaPos(20, 5, 2);
	p.dstPtr = dev;
	/* In elements: if the other side is an array, CUDA counts in elements in memory, too. */
	p.dstPos = make_cudaPos(4, 7, 1);
	p.extent = make_cudaExtent(50, 30, 3);
	p.kind = cudaMemcpyDeviceToDevice;
	CHECK(cudaMemcpy3D(&p));
	CHECK(cudaMemcpy2D(back, row, dev.ptr, dev.pitch, row, H * D, cudaMemcpyDeviceToHost));
	memset(mirror, 0, slice * D);
	for (size_t z = 0; z < 3; z++)
		for (size_t y = 0; y < 30; y++)
			memcpy(mirror + (z + 1) * slice + (y + 7) * row + 64,
			       host + (z + 1) * slice + (y + 3) * row + 2 * 16, 50 * 16);
	same(back, mirror, slice * D, "box");
	/* Up from device memory, and down in one piece. */
	p = {};
	p.srcPtr = dev;
	p.dstArray = a;
	p.extent = extent;
	p.kind = cudaMemcpyDefault;
	CHECK(cudaMemcpy3D(&p));
	p = {};
	p.srcArray = a;
	p.dstPtr = make_cudaPitchedPtr(back, row, W, H);
	p.extent = extent;
	p.kind = cudaMemcpyDeviceToHost;
	memset(back, 1, slice * D);
	CHECK(cudaMemcpy3D(&p));
	same(back, mirror, slice * D, "box from device memory");
	CHECK(cudaFree(dev.ptr));
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
}

static void levels(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>(), got;
	cudaMipmappedArray_t mipmap;
	cudaExtent size;
	cudaArray_t level, again;
	unsigned int flags;

	CHECK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(64, 32, 0), 99));
	for (unsigned int i = 0; i < 7; i++) {
		size_t w = 64 >> i, h = 32 >> i ? 32 >> i : 1;

		CHECK(cudaGetMipmappedArrayLevel(&level, mipmap, i));
		CHECK(cudaGetMipmappedArrayLevel(&again, mipmap, i));
		CHECK(cudaArrayGetInfo(&got, &size, &flags, level));
		REQUIRE(size.width == w && size.height == h && size.depth == 0,
			"level %u: %zu x %zu x %zu", i, size.width, size.height, size.depth);
		fill_words(host, w * h, 20 + i);
		CHECK(cudaMemcpy2DToArray(again, 0, 0, host, w, w, h, cudaMemcpyHostToDevice));
	}
	EXPECT(cudaGetMipmappedArrayLevel(&level, mipmap, 7), cudaErrorInvalidValue);
	for (unsigned int i = 0; i < 7; i++) {
		size_t w = 64 >> i, h = 32 >> i ? 32 >> i : 1;

		CHECK(cudaGetMipmappedArrayLevel(&level, mipmap, i));
		fill_words(host, w * h, 20 + i);
		CHECK(cudaMemcpy2DFromArray(back, w, level, 0, 0, w, h, cudaMemcpyDeviceToHost));
		same(back, host, w * h, "level");
	}
	CHECK(cudaFreeMipmappedArray(mipmap));
}

/* The copies are captured into a graph. Each launch makes them again. */
static void captured(unsigned char *pinned, unsigned char *pinned2)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<ushort2>();
	const size_t row = W * sizeof(ushort2);
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaArray_t array;

	CHECK(cudaMallocArray(&array, &format, W, H));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaMemcpy2DToArrayAsync(array, 8, 2, pinned, PITCH, 40, 20, cudaMemcpyHostToDevice,
				       stream));
	CHECK(cudaMemcpy2DFromArrayAsync(pinned2, PITCH, array, 8, 2, 40, 20,
					 cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	memset(pinned2, 0, PITCH * H);
	for (uint32_t round = 0; round < 2; round++) {
		fill_words(pinned, PITCH * H, 40 + round);
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		for (size_t y = 0; y < 20; y++)
			same(pinned2 + y * PITCH, pinned + y * PITCH, 40, "captured");
		REQUIRE(!pinned2[40] && !pinned2[20 * PITCH], "round %u: more than that", round);
	}
	CHECK(cudaMemcpy2DFromArray(back, row, array, 8, 2, 40, 20, cudaMemcpyDeviceToHost));
	for (size_t y = 0; y < 20; y++)
		same(back + y * row, pinned + y * PITCH, 40, "captured, in the array");
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFreeArray(array));
}

/* Memory that is neither pinned nor from malloc, in rows that cross page borders. */
static void elsewhere(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	const size_t row = 1000 * 4, bytes = row * 300;
	unsigned char *map = (unsigned char *)mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE,
						   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cudaArray_t a;

	REQUIRE(map != MAP_FAILED, "mmap");
	fill_words(map + 4, bytes, 5);
	memcpy(host, map + 4, bytes);
	CHECK(cudaMallocArray(&a, &format, 1000, 300));
	CHECK(cudaMemcpy2DToArray(a, 0, 0, map + 4, row, row, 300, cudaMemcpyHostToDevice));
	memset(map, 0, bytes + 4096);
	CHECK(cudaMemcpy2DFromArray(map + 8, row, a, 0, 0, row, 300, cudaMemcpyDeviceToHost));
	same(map + 8, host, bytes, "mapped memory");
	CHECK(cudaFreeArray(a));
	munmap(map, bytes + 4096);
}

static void info(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc(16, 16, 0, 0, cudaChannelFormatKindSigned);
	cudaChannelFormatDesc got = {};
	cudaArraySparseProperties sparse;
	cudaArrayMemoryRequirements wants;
	cudaMipmappedArray_t mipmap;
	cudaArray_t a, plane;
	cudaExtent size;
	unsigned int flags;
	size_t most;

	CHECK(cudaMalloc3DArray(&a, &format, make_cudaExtent(16, 0, 7),
				cudaArrayLayered | cudaArraySurfaceLoadStore));
	CHECK(cudaArrayGetInfo(&got, &size, &flags, a));
	REQUIRE(got.x == 16 && got.y == 16 && !got.z && !got.w &&
			got.f == cudaChannelFormatKindSigned,
		"%d %d %d %d %d", got.x, got.y, got.z, got.w, got.f);
	REQUIRE(size.width == 16 && !size.height && size.depth == 7, "%zu x %zu x %zu", size.width,
		size.height, size.depth);
	REQUIRE(flags == (cudaArrayLayered | cudaArraySurfaceLoadStore), "%x", flags);
	CHECK(cudaArrayGetInfo(NULL, NULL, NULL, a));
	/*
	 * The array is not sparse, has one plane, and has its own memory. The same holds for
	 * mipmaps.
	 */
	EXPECT(cudaArrayGetSparseProperties(&sparse, a), cudaErrorInvalidValue);
	EXPECT(cudaArrayGetMemoryRequirements(&wants, a, 0), cudaErrorInvalidValue);
	EXPECT(cudaArrayGetPlane(&plane, a, 0), cudaErrorInvalidValue);
	CHECK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(64, 32, 0), 2));
	EXPECT(cudaMipmappedArrayGetSparseProperties(&sparse, mipmap), cudaErrorInvalidValue);
	EXPECT(cudaMipmappedArrayGetMemoryRequirements(&wants, mipmap, 0), cudaErrorInvalidValue);
	CHECK(cudaFreeMipmappedArray(mipmap));
	(void)cudaGetLastError();
	CHECK(cudaDeviceGetTexture1DLinearMaxWidth(&most, &format, 0));
	REQUIRE(most >= 1 << 20, "%zu", most);
	got.x = 0;
	CHECK(cudaGetChannelDesc(&got, a));
	REQUIRE(got.x == 16, "%d", got.x);
	CHECK(cudaFreeArray(a));
}

static void refused(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaChannelFormatDesc three = {32, 32, 32, 0, cudaChannelFormatKindFloat};
	cudaArray_t a;

	EXPECT(cudaMallocArray(NULL, &format, 16, 16), cudaErrorInvalidValue);
	EXPECT(cudaMallocArray(&a, NULL, 16, 16), cudaErrorInvalidValue);
	EXPECT(cudaMallocArray(&a, &format, 0, 0), cudaErrorInvalidValue);
	EXPECT(cudaMallocArray(&a, &format, (size_t)1 << 40, 1), cudaErrorInvalidValue);
	EXPECT(cudaMallocArray(&a, &three, 16, 16), cudaErrorInvalidChannelDescriptor);
	CHECK(cudaFreeArray(NULL));
	CHECK(cudaFreeMipmappedArray(NULL));
	CHECK(cudaMallocArray(&a, &format, 16, 16));
	EXPECT(cudaMemcpy2DToArray(a, 0, 0, NULL, 64, 64, 16, cudaMemcpyHostToDevice),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemcpy2DToArray(a, 0, 0, host, 64, 64, 17, cudaMemcpyHostToDevice),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemcpy2DToArray(a, 4, 0, host, 64, 64, 16, cudaMemcpyHostToDevice),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemcpy2DToArray(a, 0, 0, host, 60, 64, 16, cudaMemcpyHostToDevice),
	       cudaErrorInvalidPitchValue);
	EXPECT(cudaMemcpy2DToArray(a, 0, 0, host, 64, 64, 16, (cudaMemcpyKind)77),
	       cudaErrorInvalidMemcpyDirection);
	EXPECT(cudaMemcpy2DToArray(a, 0, 0, host, 64, 64, 16, cudaMemcpyDeviceToHost),
	       cudaErrorInvalidMemcpyDirection);
	CHECK(cudaMemcpy2DToArray(a, 0, 0, host, 64, 0, 16, cudaMemcpyHostToDevice));
	(void)cudaGetLastError();
	CHECK(cudaFreeArray(a));
}

int main(void)
{
	const size_t bytes = (size_t)W * 16 * H * D + (2 << 20);
	unsigned char *pinned, *pinned2, *dev, *dev2;
	cudaStream_t stream;

	host = (unsigned char *)malloc(bytes);
	back = (unsigned char *)malloc(bytes);
	mirror = (unsigned char *)malloc(bytes);
	REQUIRE(host && back && mirror, "out of memory");
	CHECK(cudaMallocHost(&pinned, PITCH * H));
	CHECK(cudaMallocHost(&pinned2, PITCH * H));
	CHECK(cudaMalloc(&dev, PITCH * H));
	CHECK(cudaMalloc(&dev2, PITCH * H));
	CHECK(cudaStreamCreate(&stream));
	rectangles(pinned, pinned2, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, NULL, "pinned");
	rectangles(pinned, pinned2, cudaMemcpyDefault, cudaMemcpyDefault, stream, "pinned, stream");
	rectangles(dev, dev2, cudaMemcpyDeviceToDevice, cudaMemcpyDeviceToDevice, NULL, "device");
	rectangles(dev, pinned, cudaMemcpyDefault, cudaMemcpyDeviceToHost, stream, "device, stream");
	captured(pinned, pinned2);
	runs(stream);
	boxes(false);
	boxes(true);
	levels();
	elsewhere();
	info();
	refused();
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev2));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFreeHost(pinned2));
	return verified("arrays hold what 12 kinds of copies put into them");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Surfaces: kernels write arrays of one, two and three dimensions and of layers in place and
 * read them again. A texture sees what the kernels have written. Beyond the edges, a write is
 * lost or goes to the edge, and a read gives zero or the edge, according to the boundary mode.
 */
#include "check.h"

#define W 100
#define H 37
#define D 6

__global__ void write_2d(cudaSurfaceObject_t surf)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	/* Threads outside write nothing. */
	surf2Dwrite(make_ushort4(x, y, x ^ y, 7), surf, x * 8, y, cudaBoundaryModeZero);
}

__global__ void rotate_2d(cudaSurfaceObject_t from, cudaSurfaceObject_t to)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < W && y < H)
		surf2Dwrite(surf2Dread<ushort4>(from, x * 8, y), to, (W - 1 - x) * 8, H - 1 - y);
}

__global__ void read_texture(cudaTextureObject_t tex, ushort4 *out)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < W && y < H)
		out[y * W + x] = tex2D<ushort4>(tex, x + 0.5f, y + 0.5f);
}

__global__ void edges(cudaSurfaceObject_t surf, int *out)
{
	int i = threadIdx.x;

	out[i] = surf1Dread<int>(surf, (i - 16) * 4, cudaBoundaryModeClamp);
	out[i + 64] = surf1Dread<int>(surf, (i - 16) * 4, cudaBoundaryModeZero);
}

__global__ void clamped_write(cudaSurfaceObject_t surf)
{
	surf1Dwrite(1234, surf, 1000 * 4, cudaBoundaryModeClamp);
	surf1Dwrite(4321, surf, -1000 * 4, cudaBoundaryModeClamp);
	surf1Dwrite(9, surf, 32 * 4, cudaBoundaryModeZero);
}

__global__ void write_3d(cudaSurfaceObject_t surf, bool layers)
{
	int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
	float2 v = make_float2(x + 100 * y, z);

	if (layers)
		surf2DLayeredwrite(v, surf, x * 8, y, z);
	else
		surf3Dwrite(v, surf, x * 8, y, z);
}

__global__ void read_3d(cudaSurfaceObject_t surf, float2 *out, bool layers)
{
	int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
	float2 *to = out + (z * blockDim.y + y) * blockDim.x + x;

	*to = layers ? surf2DLayeredread<float2>(surf, x * 8, y, z)
		     : surf3Dread<float2>(surf, x * 8, y, z);
}

__global__ void bytes_and_pairs(cudaSurfaceObject_t bytes, cudaSurfaceObject_t wide,
				  unsigned char *out)
{
	int x = threadIdx.x;

	surf2Dwrite((unsigned char)(x * 3), bytes, x, 1);
	surf2Dwrite(make_uint2(x, ~x), wide, x * 8, 0);
	out[x] = surf2Dread<unsigned char>(bytes, x, 1);
}

static cudaSurfaceObject_t surface(cudaArray_t array)
{
	cudaResourceDesc resource = {}, again = {};
	cudaSurfaceObject_t surf;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	CHECK(cudaCreateSurfaceObject(&surf, &resource));
	CHECK(cudaGetSurfaceObjectResourceDesc(&again, surf));
	REQUIRE(again.resType == cudaResourceTypeArray && again.res.array.array == array,
		"another resource");
	return surf;
}

static void two_dimensions(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<ushort4>();
	static ushort4 back[H][W], seen[H][W];
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {};
	cudaTextureObject_t tex;
	cudaSurfaceObject_t from, to;
	cudaArray_t a, b;
	dim3 grid(4, 3), block(32, 16);
	ushort4 *dev;

	CHECK(cudaMallocArray(&a, &format, W, H, cudaArraySurfaceLoadStore));
	CHECK(cudaMallocArray(&b, &format, W, H, cudaArraySurfaceLoadStore));
	from = surface(a);
	to = surface(b);
	write_2d<<<grid, block>>>(from);
	CHECK_LAUNCH();
	rotate_2d<<<grid, block>>>(from, to);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy2DFromArray(back, sizeof(back[0]), b, 0, 0, sizeof(back[0]), H,
				    cudaMemcpyDeviceToHost));
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			int u = W - 1 - x, v = H - 1 - y;
			ushort4 g = back[y][x];

			REQUIRE(g.x == u && g.y == v && g.z == (u ^ v) && g.w == 7,
				"(%d, %d): %d %d %d %d", x, y, g.x, g.y, g.z, g.w);
		}
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = b;
	CHECK(cudaCreateTextureObject(&tex, &resource, &desc, NULL));
	CHECK(cudaMalloc(&dev, sizeof(seen)));
	read_texture<<<grid, block>>>(tex, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(seen, dev, sizeof(seen), cudaMemcpyDeviceToHost));
	REQUIRE(!memcmp(seen, back, sizeof(seen)), "the texture has something else");
	CHECK(cudaDestroyTextureObject(tex));
	CHECK(cudaDestroySurfaceObject(from));
	CHECK(cudaDestroySurfaceObject(to));
	CHECK(cudaFree(dev));
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
}

static void one_dimension(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
	int host[32], back[128], *dev;
	cudaSurfaceObject_t surf;
	cudaArray_t array;

	for (int i = 0; i < 32; i++)
		host[i] = 1000 + i;
	CHECK(cudaMallocArray(&array, &format, 32, 0, cudaArraySurfaceLoadStore));
	CHECK(cudaMemcpy2DToArray(array, 0, 0, host, 128, 128, 1, cudaMemcpyHostToDevice));
	CHECK(cudaMalloc(&dev, sizeof(back)));
	surf = surface(array);
	edges<<<1, 64>>>(surf, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++) {
		int at = i - 16, near = at < 0 ? 0 : at < 32 ? at : 31;

		REQUIRE(back[i] == host[near], "clamp, %d: %d", at, back[i]);
		REQUIRE(back[i + 64] == (at == near ? host[at] : 0), "zero, %d: %d", at,
			back[i + 64]);
	}
	clamped_write<<<1, 1>>>(surf);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy2DFromArray(back, 128, array, 0, 0, 128, 1, cudaMemcpyDeviceToHost));
	host[0] = 4321;
	host[31] = 1234;
	REQUIRE(!memcmp(back, host, sizeof(host)), "writes beyond the edges");
	CHECK(cudaDestroySurfaceObject(surf));
	CHECK(cudaFree(dev));
	CHECK(cudaFreeArray(array));
}

static void three_dimensions(bool layers)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float2>();
	static float2 back[D * 8 * 16], copied[D * 8 * 16];
	cudaMemcpy3DParms p = {};
	cudaSurfaceObject_t surf;
	cudaArray_t array;
	float2 *dev;

	CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(16, 8, D),
				cudaArraySurfaceLoadStore | (layers ? cudaArrayLayered : 0)));
	CHECK(cudaMalloc(&dev, sizeof(back)));
	surf = surface(array);
	write_3d<<<D, dim3(16, 8)>>>(surf, layers);
	CHECK_LAUNCH();
	read_3d<<<D, dim3(16, 8)>>>(surf, dev, layers);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	p.srcArray = array;
	p.dstPtr = make_cudaPitchedPtr(copied, 16 * 8, 16, 8);
	p.extent = make_cudaExtent(16, 8, D);
	p.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaMemcpy3D(&p));
	for (int i = 0; i < D * 8 * 16; i++)
		REQUIRE(back[i].x == (float)(i % 16 + 100 * (i / 16 % 8)) &&
				back[i].y == (float)(i / 128),
			"%d: (%g, %g)", i, back[i].x, back[i].y);
	REQUIRE(!memcmp(back, copied, sizeof(back)), "the copy has something else");
	CHECK(cudaDestroySurfaceObject(surf));
	CHECK(cudaFree(dev));
	CHECK(cudaFreeArray(array));
}

static void narrow_and_wide(void)
{
	cudaChannelFormatDesc byte = cudaCreateChannelDesc<unsigned char>();
	cudaChannelFormatDesc word = cudaCreateChannelDesc<uint2>();
	unsigned char back[64], *dev;
	cudaSurfaceObject_t narrow, wide;
	cudaArray_t a, b;
	uint2 pairs[64];

	CHECK(cudaMallocArray(&a, &byte, 64, 2, cudaArraySurfaceLoadStore));
	CHECK(cudaMallocArray(&b, &word, 64, 1, cudaArraySurfaceLoadStore));
	CHECK(cudaMalloc(&dev, 64));
	narrow = surface(a);
	wide = surface(b);
	bytes_and_pairs<<<1, 64>>>(narrow, wide, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, 64, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy2DFromArray(pairs, sizeof(pairs), b, 0, 0, sizeof(pairs), 1,
				    cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++) {
		REQUIRE(back[i] == (unsigned char)(3 * i), "byte %d: %d", i, back[i]);
		REQUIRE(pairs[i].x == (unsigned)i && pairs[i].y == ~(unsigned)i, "pair %d", i);
	}
	CHECK(cudaDestroySurfaceObject(narrow));
	CHECK(cudaDestroySurfaceObject(wide));
	CHECK(cudaFree(dev));
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
}

int main(void)
{
	two_dimensions();
	one_dimension();
	three_dimensions(false);
	three_dimensions(true);
	narrow_and_wide();
	return verified("surfaces of 1, 2 and 3 dimensions, and what happens beyond their edges");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Mipmapped arrays in external memory, which comes from the driver API and its file descriptor. Two
 * processes place the same array in the same memory. How an array lies in it is the device's own.
 */
#include "driver.h"
#include "processes/ipc.h"

#define SIZE 64

static CUmemAllocationProp prop;
static size_t unit;

static cudaExternalMemory_t import(int fd)
{
	cudaExternalMemoryHandleDesc desc = {};
	cudaExternalMemory_t memory;

	desc.type = cudaExternalMemoryHandleTypeOpaqueFd;
	desc.handle.fd = fd;
	desc.size = unit;
	CHECK(cudaImportExternalMemory(&memory, &desc));
	return memory;
}

static cudaExternalMemoryMipmappedArrayDesc words(unsigned int levels)
{
	cudaExternalMemoryMipmappedArrayDesc desc = {};

	desc.formatDesc = cudaCreateChannelDesc<unsigned int>();
	desc.extent = make_cudaExtent(SIZE, SIZE, 0);
	desc.flags = cudaArraySurfaceLoadStore;
	desc.numLevels = levels;
	return desc;
}

static void wrong(cudaExternalMemory_t memory)
{
	cudaExternalMemoryMipmappedArrayDesc desc = words(1);
	cudaMipmappedArray_t mipmap;

	EXPECT(cudaExternalMemoryGetMappedMipmappedArray(NULL, memory, &desc),
	       cudaErrorInvalidValue);
	EXPECT(cudaExternalMemoryGetMappedMipmappedArray(&mipmap, NULL, &desc),
	       cudaErrorInvalidValue);
	EXPECT(cudaExternalMemoryGetMappedMipmappedArray(&mipmap, memory, NULL),
	       cudaErrorInvalidValue);
	desc.extent = make_cudaExtent(1 << 14, 1 << 14, 0);
	EXPECT(cudaExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc),
	       cudaErrorInvalidValue);
	desc = words(1);
	desc.flags = cudaArrayLayered; /* of no layers */
	EXPECT(cudaExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc),
	       cudaErrorInvalidValue);
	desc = words(0);
	ONLY_OURS(EXPECT(cudaExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc),
			 cudaErrorInvalidValue));
	desc = words(8); /* 64 halves 6 times */
	EXPECT(cudaExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc),
	       cudaErrorInvalidValue);
	desc = words(1);
	desc.offset = unit;
	EXPECT(cudaExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc),
	       cudaErrorInvalidValue);
	desc.offset = (unsigned long long)-4096;
	EXPECT(cudaExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc),
	       cudaErrorInvalidValue);
}

static cudaArray_t level_of(cudaMipmappedArray_t mipmap, unsigned int level)
{
	cudaArray_t array;

	CHECK(cudaGetMipmappedArrayLevel(&array, mipmap, level));
	return array;
}

static void write_level(cudaMipmappedArray_t mipmap, unsigned int level, unsigned int seed)
{
	const unsigned int n = SIZE >> level;
	static unsigned int rows[SIZE * SIZE];
	unsigned int i;

	for (i = 0; i < n * n; i++)
		rows[i] = seed + i * 2654435761u;
	CHECK(cudaMemcpy2DToArray(level_of(mipmap, level), 0, 0, rows, n * 4, n * 4, n,
				  cudaMemcpyHostToDevice));
}

static void verify_level(cudaMipmappedArray_t mipmap, unsigned int level, unsigned int seed)
{
	const unsigned int n = SIZE >> level;
	static unsigned int rows[SIZE * SIZE];
	unsigned int i;

	CHECK(cudaMemcpy2DFromArray(rows, n * 4, level_of(mipmap, level), 0, 0, n * 4, n,
				    cudaMemcpyDeviceToHost));
	for (i = 0; i < n * n; i++)
		REQUIRE(rows[i] == seed + i * 2654435761u, "%x at %u", rows[i], i);
}

/* A kernel of the runtime's adds one to each element of a level through a surface. */
__global__ void add_one(cudaSurfaceObject_t surface, int n)
{
	const int x = threadIdx.x, y = blockIdx.x;

	if (x < n && y < n)
		surf2Dwrite(surf2Dread<unsigned int>(surface, x * 4, y) + 1, surface, x * 4, y);
}

static void add_to(cudaMipmappedArray_t mipmap, unsigned int level)
{
	cudaResourceDesc desc = {};
	cudaSurfaceObject_t surface;

	desc.resType = cudaResourceTypeArray;
	desc.res.array.array = level_of(mipmap, level);
	CHECK(cudaCreateSurfaceObject(&surface, &desc));
	add_one<<<SIZE, SIZE>>>(surface, SIZE >> level);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaDestroySurfaceObject(surface));
}

/* The array and a buffer are the same memory. */
static void buffer(cudaExternalMemory_t memory)
{
	const cudaExternalMemoryMipmappedArrayDesc desc = words(1);
	cudaExternalMemoryBufferDesc all = {};
	cudaMipmappedArray_t mipmap;
	unsigned int word;
	void *ptr;

	all.size = unit;
	CHECK(cudaExternalMemoryGetMappedBuffer(&ptr, memory, &all));
	CHECK(cudaExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc));
	CHECK(cudaMemset(ptr, 7, unit));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy2DFromArray(&word, 4, level_of(mipmap, 0), 4 * 63, 63, 4, 1,
				    cudaMemcpyDeviceToHost));
	REQUIRE(word == 0x07070707, "%x", word);
	CHECK(cudaFreeMipmappedArray(mipmap));
	CHECK(cudaFree(ptr));
}

/* By the driver API: half as large, at an offset, of floats. */
static void by_driver(cudaExternalMemory_t memory)
{
	CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC desc = {};
	CUDA_ARRAY3D_DESCRIPTOR told;
	CUmipmappedArray mipmap;
	CUarray array;

	desc.offset = 65536;
	desc.arrayDesc.Width = SIZE;
	desc.arrayDesc.Height = SIZE / 2;
	desc.arrayDesc.Format = CU_AD_FORMAT_FLOAT;
	desc.arrayDesc.NumChannels = 2;
	desc.numLevels = 3;
	DEXPECT(cuExternalMemoryGetMappedMipmappedArray(NULL, (CUexternalMemory)memory, &desc),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuExternalMemoryGetMappedMipmappedArray(&mipmap, (CUexternalMemory)memory, NULL),
		CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuExternalMemoryGetMappedMipmappedArray(&mipmap, (CUexternalMemory)memory, &desc));
	DCHECK(cuMipmappedArrayGetLevel(&array, mipmap, 2));
	DCHECK(cuArray3DGetDescriptor(&told, array));
	REQUIRE(told.Width == SIZE / 4 && told.Height == SIZE / 8 && told.NumChannels == 2,
		"%zu x %zu", told.Width, told.Height);
	DCHECK(cuMipmappedArrayDestroy(mipmap));
}

static void parent(const struct peer *p)
{
	const cudaExternalMemoryMipmappedArrayDesc desc = words(3);
	CUmemGenericAllocationHandle handle;
	cudaExternalMemory_t memory;
	cudaMipmappedArray_t mipmap;
	int fd;

	DCHECK(cuMemCreate(&handle, unit, &prop, 0));
	DCHECK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					    0));
	tell_file(p, fd);
	memory = import(fd);
	wrong(memory);
	buffer(memory);
	by_driver(memory);
	CHECK(cudaExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc));
	write_level(mipmap, 0, 1);
	write_level(mipmap, 2, 2);
	CHECK(cudaDeviceSynchronize());
	meet(p);
	/* The other process adds one to each element. */
	meet(p);
	/* The array stays when the memory is let go. */
	CHECK(cudaDestroyExternalMemory(memory));
	DCHECK(cuMemRelease(handle));
	verify_level(mipmap, 0, 2);
	verify_level(mipmap, 2, 3);
	add_to(mipmap, 0);
	verify_level(mipmap, 0, 3);
	CHECK(cudaFreeMipmappedArray(mipmap));
}

static void child(const struct peer *p)
{
	const cudaExternalMemoryMipmappedArrayDesc desc = words(3);
	const cudaExternalMemory_t memory = import(hear_file(p));
	cudaMipmappedArray_t mipmap;

	CHECK(cudaExternalMemoryGetMappedMipmappedArray(&mipmap, memory, &desc));
	meet(p);
	verify_level(mipmap, 0, 1);
	verify_level(mipmap, 2, 2);
	add_to(mipmap, 0);
	add_to(mipmap, 2);
	meet(p);
	CHECK(cudaFreeMipmappedArray(mipmap));
	CHECK(cudaDestroyExternalMemory(memory));
}

int main()
{
	const struct peer p = start_peer();

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = driver_start();
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	DCHECK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	if (!p.pid) {
		child(&p);
		return 0;
	}
	parent(&p);
	end_peer(&p);
	return verified("two processes use arrays in the same memory");
}

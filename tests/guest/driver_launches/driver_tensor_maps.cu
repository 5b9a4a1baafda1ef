// SPDX-License-Identifier: GPL-2.0-or-later
/* Tensor maps: encoded in all three ways, moved to another address, and wrong ones. */
#include "driver.h"

static CUdeviceptr memory;
static const cuuint64_t dims[2] = {64, 32}, strides[1] = {256}, uneven[1] = {250};
static const cuuint32_t box[2] = {16, 8}, steps[2] = {1, 1}, large_box[2] = {512, 8},
			none[2] = {0, 8};

static CUresult tiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, CUdeviceptr at,
		      const cuuint64_t *dim, const cuuint64_t *stride, const cuuint32_t *part)
{
	return cuTensorMapEncodeTiled(map, type, rank, (void *)at, dim, stride, part, steps,
				      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
				      CU_TENSOR_MAP_L2_PROMOTION_NONE,
				      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void wrong(CUtensorMap *map)
{
	const CUtensorMapDataType f32 = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;

	DEXPECT(tiled(NULL, f32, 2, memory, dims, strides, box), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(tiled(map, (CUtensorMapDataType)77, 2, memory, dims, strides, box),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(tiled(map, f32, 0, memory, dims, strides, box), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(tiled(map, f32, 6, memory, dims, strides, box), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(tiled(map, f32, 2, memory + 4, dims, strides, box), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(tiled(map, f32, 2, memory, NULL, strides, box), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(tiled(map, f32, 2, memory, dims, uneven, box), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(tiled(map, f32, 2, memory, dims, strides, large_box), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(tiled(map, f32, 2, memory, dims, strides, none), CUDA_ERROR_INVALID_VALUE);
	ONLY_OURS(DEXPECT(cuTensorMapReplaceAddress(NULL, (void *)memory), CUDA_ERROR_INVALID_VALUE));
	DEXPECT(cuTensorMapReplaceAddress(map, (void *)(memory + 4)), CUDA_ERROR_INVALID_VALUE);
}

int main()
{
	static const cuuint64_t deep[4] = {64, 16, 16, 2}, deep_strides[3] = {256, 4096, 65536};
	static const cuuint32_t deep_steps[4] = {1, 1, 1, 1};
	static const int corner[2] = {0, 0};
	CUtensorMap map, other, moved;
	CUdevice device = driver_start();
	int major;

	DCHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
	if (major < 9) {
		printf("skipped: devices before 9.0 have no tensor maps\n");
		return 77;
	}
	DCHECK(cuMemAlloc(&memory, 1 << 20));
	/* The driver leaves some bytes of a map as they are. */
	memset(&map, 0, sizeof(map));
	memset(&other, 0, sizeof(other));
	DCHECK(tiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, memory, dims, strides, box));
	moved = map; /* a call that fails may leave its map half changed */
	wrong(&moved);
	/* The same again is the same; another address makes another map, and so does replacing it.
	 */
	DCHECK(tiled(&other, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, memory, dims, strides, box));
	REQUIRE(!memcmp(&map, &other, sizeof(map)), "two encodings of one map");
	DCHECK(tiled(&other, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, memory + 4096, dims, strides,
		     box));
	REQUIRE(memcmp(&map, &other, sizeof(map)), "the address is not in the map");
	moved = map;
	DCHECK(cuTensorMapReplaceAddress(&moved, (void *)(memory + 4096)));
	REQUIRE(!memcmp(&moved, &other, sizeof(map)), "the address was not replaced");
	DCHECK(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, (void *)memory,
				       deep, deep_strides, corner, corner, 16, 8, deep_steps,
				       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
				       CU_TENSOR_MAP_L2_PROMOTION_NONE,
				       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
	DCHECK(cuMemFree(memory));
	return verified("tensor maps");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Arrays, texture objects and surface objects. */
#include "driver.h"

#define W 16
#define H 4

static CUarray array_of(unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {};
	CUarray array;

	d.Width = W;
	d.Height = H;
	d.Format = CU_AD_FORMAT_FLOAT;
	d.NumChannels = 1;
	d.Flags = flags;
	DCHECK(cuArray3DCreate(&array, &d));
	return array;
}

static void copy(void *host, CUarray array, bool up)
{
	CUDA_MEMCPY2D c = {};

	c.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
	c.dstMemoryType = up ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
	c.srcHost = c.dstHost = host;
	c.srcArray = c.dstArray = array;
	c.srcPitch = c.dstPitch = up ? W * 4 : W * 4;
	c.WidthInBytes = W * 4;
	c.Height = H;
	DCHECK(cuMemcpy2D(&c));
}

static void texture(CUmodule module)
{
	static float in[H][W], out[H][W];
	CUDA_RESOURCE_DESC r = {}, r_back;
	CUDA_TEXTURE_DESC t = {}, t_back;
	CUarray array = array_of(0);
	unsigned int width = W, x, y;
	CUtexObject object;
	CUdeviceptr to;
	void *params[] = {&object, &to, &width};

	for (y = 0; y < H; y++)
		for (x = 0; x < W; x++)
			in[y][x] = (float)(100 * y + x);
	copy(in, array, true);
	r.resType = CU_RESOURCE_TYPE_ARRAY;
	r.res.array.hArray = array;
	t.addressMode[0] = t.addressMode[1] = t.addressMode[2] = CU_TR_ADDRESS_MODE_CLAMP;
	DCHECK(cuTexObjectCreate(&object, &r, &t, NULL));
	DCHECK(cuTexObjectGetResourceDesc(&r_back, object));
	REQUIRE(r_back.resType == CU_RESOURCE_TYPE_ARRAY && r_back.res.array.hArray == array, "%d",
		(int)r_back.resType);
	DCHECK(cuTexObjectGetTextureDesc(&t_back, object));
	REQUIRE(t_back.addressMode[1] == CU_TR_ADDRESS_MODE_CLAMP, "%d",
		(int)t_back.addressMode[1]);
	DCHECK(cuMemAlloc(&to, sizeof(out)));
	DCHECK(cuLaunchKernel(driver_function(module, "read_texture"), H, 1, 1, W, 1, 1, 0, NULL,
			      params, NULL));
	DCHECK(cuMemcpyDtoH(out, to, sizeof(out)));
	REQUIRE(!memcmp(in, out, sizeof(in)), "%f", out[1][1]);
	DCHECK(cuMemFree(to));
	DCHECK(cuTexObjectDestroy(object));
	r.res.array.hArray = NULL;
	DEXPECT(cuTexObjectCreate(NULL, &r, &t, NULL), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuArrayDestroy(array));
	ONLY_OURS(DEXPECT(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE));
}

static void surface(CUmodule module)
{
	static float out[H][W];
	CUarray array = array_of(CUDA_ARRAY3D_SURFACE_LDST);
	CUDA_RESOURCE_DESC r = {};
	CUsurfObject object;
	float value = 0.5f;
	void *params[] = {&object, &value};
	unsigned int x, y;

	r.resType = CU_RESOURCE_TYPE_ARRAY;
	r.res.array.hArray = array;
	DCHECK(cuSurfObjectCreate(&object, &r));
	DCHECK(cuLaunchKernel(driver_function(module, "write_surface"), H, 1, 1, W, 1, 1, 0, NULL,
			      params, NULL));
	copy(out, array, false);
	for (y = 0; y < H; y++)
		for (x = 0; x < W; x++)
			REQUIRE(out[y][x] == 0.5f + (float)(100 * y + x), "%u,%u: %f", x, y,
				out[y][x]);
	DCHECK(cuSurfObjectDestroy(object));
	DCHECK(cuArrayDestroy(array));
}

static void descriptors(void)
{
	CUDA_ARRAY_DESCRIPTOR flat = {}, flat_back;
	CUDA_ARRAY3D_DESCRIPTOR d = {}, back;
	unsigned char in[32], out[32];
	CUmipmappedArray mipmap;
	CUarray array, level;

	flat.Width = 32;
	flat.Format = CU_AD_FORMAT_UNSIGNED_INT8;
	flat.NumChannels = 1;
	DCHECK(cuArrayCreate(&array, &flat));
	DCHECK(cuArrayGetDescriptor(&flat_back, array));
	REQUIRE(flat_back.Width == 32 && flat_back.Format == CU_AD_FORMAT_UNSIGNED_INT8 &&
			flat_back.NumChannels == 1,
		"%zu", flat_back.Width);
	fill_words(in, sizeof(in), 3);
	DCHECK(cuMemcpyHtoA(array, 0, in, sizeof(in)));
	DCHECK(cuMemcpyAtoH(out, array, 8, 8));
	REQUIRE(!memcmp(in + 8, out, 8), "%d", out[0]);
	DCHECK(cuArrayDestroy(array));
	flat.NumChannels = 3;
	DEXPECT(cuArrayCreate(&array, &flat), CUDA_ERROR_INVALID_VALUE);
	d.Width = 32;
	d.Height = 16;
	d.Format = CU_AD_FORMAT_HALF;
	d.NumChannels = 4;
	DCHECK(cuMipmappedArrayCreate(&mipmap, &d, 3));
	DCHECK(cuMipmappedArrayGetLevel(&level, mipmap, 1));
	DCHECK(cuArray3DGetDescriptor(&back, level));
	REQUIRE(back.Width == 16 && back.Height == 8 && back.Format == CU_AD_FORMAT_HALF &&
			back.NumChannels == 4,
		"%zux%zu", back.Width, back.Height);
	DCHECK(cuMipmappedArrayDestroy(mipmap));
}

int main()
{
	CUmodule module;

	driver_start();
	module = driver_module();
	texture(module);
	surface(module);
	descriptors();
	DCHECK(cuModuleUnload(module));
	return verified("arrays, textures and surfaces");
}

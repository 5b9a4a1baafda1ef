// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Wrong descriptions of textures and surfaces get CUDA's own error codes at the call, and the
 * device works as before.
 */
#include "check.h"

__global__ void read_one(cudaTextureObject_t tex, float *out)
{
	*out = tex1Dfetch<float>(tex, 3);
}

static cudaResourceDesc of_array(cudaArray_t array)
{
	cudaResourceDesc r = {};

	r.resType = cudaResourceTypeArray;
	r.res.array.array = array;
	return r;
}

static void still_works(float *dev, float *out)
{
	const float host[4] = {1, 2, 3, 4};
	cudaResourceDesc r = {};
	cudaTextureDesc d = {};
	cudaTextureObject_t tex;
	float back = 0;

	(void)cudaGetLastError();
	CHECK(cudaMemcpy(dev, host, sizeof(host), cudaMemcpyHostToDevice));
	r.resType = cudaResourceTypeLinear;
	r.res.linear.devPtr = dev;
	r.res.linear.desc = cudaCreateChannelDesc<float>();
	r.res.linear.sizeInBytes = sizeof(host);
	CHECK(cudaCreateTextureObject(&tex, &r, &d, NULL));
	read_one<<<1, 1>>>(tex, out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&back, out, sizeof(back), cudaMemcpyDeviceToHost));
	REQUIRE(back == 4, "%g", back);
	CHECK(cudaDestroyTextureObject(tex));
}

int main(void)
{
	cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
	cudaChannelFormatDesc bytes = cudaCreateChannelDesc<unsigned char>();
	cudaArray_t array, plain;
	cudaResourceDesc r;
	cudaTextureDesc d = {}, got;
	cudaResourceViewDesc view;
	cudaTextureObject_t tex;
	cudaSurfaceObject_t surf;
	float *dev, *out, got_back;
	size_t most;

	CHECK(cudaMalloc(&dev, 4096));
	CHECK(cudaMalloc(&out, 4));
	CHECK(cudaMallocArray(&array, &floats, 16, 16, cudaArraySurfaceLoadStore));
	CHECK(cudaMallocArray(&plain, &bytes, 16, 16));
	r = of_array(array);

	EXPECT(cudaCreateTextureObject(NULL, &r, &d, NULL), cudaErrorInvalidValue);
	EXPECT(cudaCreateTextureObject(&tex, NULL, &d, NULL), cudaErrorInvalidValue);
	EXPECT(cudaCreateTextureObject(&tex, &r, NULL, NULL), cudaErrorInvalidResourceHandle);
	still_works(dev, out);
	/* Integers cannot be filtered unless they are read as fractions. */
	r = of_array(plain);
	d.filterMode = cudaFilterModeLinear;
	EXPECT(cudaCreateTextureObject(&tex, &r, &d, NULL), cudaErrorInvalidFilterSetting);
	d.readMode = cudaReadModeNormalizedFloat;
	CHECK(cudaCreateTextureObject(&tex, &r, &d, NULL));
	EXPECT(cudaGetTextureObjectTextureDesc(NULL, tex), cudaErrorInvalidResourceHandle);
	CHECK(cudaGetTextureObjectTextureDesc(&got, tex));
	CHECK(cudaGetTextureObjectResourceViewDesc(&view, tex));
	CHECK(cudaDestroyTextureObject(tex));
	still_works(dev, out);
	/* Linear memory. */
	r = {};
	r.resType = cudaResourceTypeLinear;
	r.res.linear.desc = floats;
	r.res.linear.sizeInBytes = 64;
	d = {};
	EXPECT(cudaCreateTextureObject(&tex, &r, &d, NULL), cudaErrorInvalidValue);
	r.res.linear.devPtr = (char *)dev + 4;
	EXPECT(cudaCreateTextureObject(&tex, &r, &d, NULL), cudaErrorInvalidValue);
	r.res.linear.devPtr = dev;
	CHECK(cudaDeviceGetTexture1DLinearMaxWidth(&most, &floats, 0));
	r.res.linear.sizeInBytes = (most + 1) * sizeof(float);
	EXPECT(cudaCreateTextureObject(&tex, &r, &d, NULL), cudaErrorInvalidValue);
	still_works(dev, out);
	/* The size may reach past the memory. */
	r.res.linear.sizeInBytes = 64 << 20;
	CHECK(cudaCreateTextureObject(&tex, &r, &d, NULL));
	CHECK(cudaMemset(out, 0, 4));
	read_one<<<1, 1>>>(tex, out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&got_back, out, 4, cudaMemcpyDeviceToHost));
	REQUIRE(got_back == 4, "%g", got_back);
	CHECK(cudaDestroyTextureObject(tex));
	still_works(dev, out);
	/* A surface needs an array. */
	r = of_array(array);
	EXPECT(cudaCreateSurfaceObject(NULL, &r), cudaErrorInvalidValue);
	EXPECT(cudaCreateSurfaceObject(&surf, NULL), cudaErrorInvalidValue);
	r.resType = cudaResourceTypeLinear;
	EXPECT(cudaCreateSurfaceObject(&surf, &r), cudaErrorInvalidChannelDescriptor);
	/* An array made without the flag is accepted all the same. */
	r = of_array(plain);
	CHECK(cudaCreateSurfaceObject(&surf, &r));
	CHECK(cudaDestroySurfaceObject(surf));
	still_works(dev, out);
	CHECK(cudaFreeArray(array));
	CHECK(cudaFreeArray(plain));
	CHECK(cudaFree(dev));
	CHECK(cudaFree(out));
	return verified("wrong textures and surfaces got CUDA's own error");
}

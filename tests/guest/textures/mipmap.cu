// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A mipmapped texture. Each level has a color of its own, so a value shows which levels were
 * used, and in which shares: by level, by gradient, nearest and mixed, with bias and limits.
 */
#include <math.h>

#include "check.h"

#define SIZE 64
#define LEVELS 7
#define N 64

__global__ void by_level(cudaTextureObject_t tex, float *out)
{
	int i = threadIdx.x;

	/*
	 * From one below the first level to one above the last, in steps of an eighth, with a
	 * small offset.
	 */
	out[i] = tex2DLod<float>(tex, 0.3f, 0.7f, (float)i / 8 - 1 + 1.0f / 32);
}

/* 2^i texels from one place to the next. */
__global__ void by_gradient(cudaTextureObject_t tex, float *out)
{
	int i = threadIdx.x;
	float step = exp2f((float)i) / SIZE;

	out[i] = tex2DGrad<float>(tex, 0.3f, 0.7f, make_float2(step, 0), make_float2(0, step / 2));
}

__global__ void texels(cudaTextureObject_t tex, int level, float *out)
{
	int size = SIZE >> level;

	out[threadIdx.y * 8 + threadIdx.x] = tex2DLod<float>(
		tex, (threadIdx.x + 0.5f) / size, (threadIdx.y + 0.5f) / size, (float)level);
}

static float color(int level)
{
	return (float)(100 * level + 7);
}

static cudaTextureObject_t texture(cudaMipmappedArray_t mipmap, bool mixed, float bias, float least,
				   float most)
{
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {};
	cudaTextureObject_t tex;

	resource.resType = cudaResourceTypeMipmappedArray;
	resource.res.mipmap.mipmap = mipmap;
	desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeWrap;
	desc.filterMode = cudaFilterModeLinear;
	desc.normalizedCoords = 1;
	desc.mipmapFilterMode = mixed ? cudaFilterModeLinear : cudaFilterModePoint;
	desc.mipmapLevelBias = bias;
	desc.minMipmapLevelClamp = least;
	desc.maxMipmapLevelClamp = most;
	CHECK(cudaCreateTextureObject(&tex, &resource, &desc, NULL));
	return tex;
}

static float expected(float lod, bool mixed, float least, float most)
{
	float level, part;

	lod = fminf(fmaxf(lod, least), fminf(most, LEVELS - 1));
	if (!mixed)
		return color((int)floorf(lod + 0.5f));
	level = floorf(lod);
	part = lod - level;
	return color((int)level) * (1 - part) + (part > 0 ? color((int)level + 1) * part : 0);
}

static void levels(cudaMipmappedArray_t mipmap, float *dev, bool mixed, float bias, float least,
		   float most)
{
	cudaTextureObject_t tex = texture(mipmap, mixed, bias, least, most);
	float back[N];

	by_level<<<1, N>>>(tex, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		float lod = (float)i / 8 - 1 + 1.0f / 32 + bias;
		float want = expected(lod, mixed, least, most);

		REQUIRE(fabsf(back[i] - want) < 1, "level %g of [%g, %g], %s: %g instead of %g",
			lod, least, most, mixed ? "mixed" : "nearest", back[i], want);
	}
	by_gradient<<<1, LEVELS + 1>>>(tex, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	for (int i = 0; i <= LEVELS; i++) {
		float want = expected((float)i + bias, mixed, least, most);

		REQUIRE(fabsf(back[i] - want) < 4, "gradient of 2^%d texels: %g instead of %g", i,
			back[i], want);
	}
	CHECK(cudaDestroyTextureObject(tex));
}

int main(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	static float host[SIZE * SIZE], back[64];
	cudaMipmappedArray_t mipmap;
	cudaTextureObject_t tex;
	cudaArray_t level;
	float *dev;

	CHECK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(SIZE, SIZE, 0), LEVELS));
	for (int i = 0; i < LEVELS; i++) {
		int size = SIZE >> i;

		for (int k = 0; k < size * size; k++)
			host[k] = color(i);
		CHECK(cudaGetMipmappedArrayLevel(&level, mipmap, i));
		CHECK(cudaMemcpy2DToArray(level, 0, 0, host, size * 4, size * 4, size,
					  cudaMemcpyHostToDevice));
	}
	CHECK(cudaMalloc(&dev, sizeof(host)));
	for (int mixed = 0; mixed < 2; mixed++) {
		levels(mipmap, dev, mixed, 0, 0, 100);
		levels(mipmap, dev, mixed, 0, 2, 4);
		levels(mipmap, dev, mixed, 1.25f, 0, 100);
	}
	/* A separate texture of one level. */
	for (int k = 0; k < 64; k++)
		host[k] = (float)(k * k);
	CHECK(cudaGetMipmappedArrayLevel(&level, mipmap, 3));
	CHECK(cudaMemcpy2DToArray(level, 0, 0, host, 32, 32, 8, cudaMemcpyHostToDevice));
	tex = texture(mipmap, false, 0, 0, 100);
	texels<<<1, dim3(8, 8)>>>(tex, 3, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	for (int k = 0; k < 64; k++)
		REQUIRE(back[k] == host[k], "texel %d of level 3: %g", k, back[k]);
	CHECK(cudaDestroyTextureObject(tex));
	CHECK(cudaFreeMipmappedArray(mipmap));
	CHECK(cudaFree(dev));
	return verified("%d levels by number and by gradient, nearest and mixed", LEVELS);
}

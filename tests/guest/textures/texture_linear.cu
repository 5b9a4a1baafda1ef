// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Textures over ordinary device memory: a line of elements that is read by index, and rows with
 * a pitch that are filtered. What a kernel has written there, the next one reads through the
 * texture.
 */
#include <math.h>

#include "check.h"

#define N 1000
#define W 60
#define H 40

__global__ void fetch(cudaTextureObject_t tex, int *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	/* 64 before the first, 64 after the last */
	if (i < N + 128)
		out[i] = tex1Dfetch<int>(tex, i - 64);
}

__global__ void fetch_pairs(cudaTextureObject_t tex, float2 *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N / 2)
		out[i] = tex1Dfetch<float2>(tex, i);
}

__global__ void fetch_bytes(cudaTextureObject_t tex, float4 *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		out[i] = tex1Dfetch<float4>(tex, i);
}

__global__ void rewrite(int *p)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		p[i] = -p[i];
}

__global__ void blur(cudaTextureObject_t tex, float *out)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	/* At corners: the mean of four texels. */
	if (x < W && y < H)
		out[y * W + x] = tex2D<float>(tex, x, y);
}

static cudaTextureObject_t line(void *dev, cudaChannelFormatDesc format, size_t bytes,
				cudaTextureReadMode mode)
{
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {};
	cudaTextureObject_t tex;

	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = dev;
	resource.res.linear.desc = format;
	resource.res.linear.sizeInBytes = bytes;
	desc.readMode = mode;
	CHECK(cudaCreateTextureObject(&tex, &resource, &desc, NULL));
	return tex;
}

static void integers(void)
{
	static int host[N], back[N + 128];
	cudaTextureObject_t tex;
	int *dev, *out;

	fill_words(host, sizeof(host), 1);
	CHECK(cudaMalloc(&dev, sizeof(host)));
	CHECK(cudaMalloc(&out, sizeof(back)));
	CHECK(cudaMemcpy(dev, host, sizeof(host), cudaMemcpyHostToDevice));
	tex = line(dev, cudaCreateChannelDesc<int>(), sizeof(host), cudaReadModeElementType);
	for (int round = 0; round < 2; round++) {
		fetch<<<10, 128>>>(tex, out);
		CHECK_LAUNCH();
		CHECK(cudaMemcpy(back, out, sizeof(back), cudaMemcpyDeviceToHost));
		for (int i = 0; i < N + 128; i++) {
			int want = i < 64 || i >= N + 64 ? 0 : host[i - 64];

			REQUIRE(back[i] == (round ? -want : want), "round %d, %d: %d instead of %d",
				round, i - 64, back[i], want);
		}
		rewrite<<<10, 128>>>(dev);
		CHECK_LAUNCH();
	}
	CHECK(cudaDestroyTextureObject(tex));
	CHECK(cudaFree(dev));
	CHECK(cudaFree(out));
}

static void pairs_and_bytes(void)
{
	static float host[N];
	static float2 pairs[N / 2];
	static unsigned char bytes[N * 4];
	static float4 fractions[N];
	cudaTextureObject_t tex;
	void *dev, *out;

	for (int i = 0; i < N; i++)
		host[i] = (float)i * 0.25f;
	fill_words(bytes, sizeof(bytes), 9);
	CHECK(cudaMalloc(&dev, N * 4));
	CHECK(cudaMalloc(&out, N * 16));
	CHECK(cudaMemcpy(dev, host, sizeof(host), cudaMemcpyHostToDevice));
	tex = line(dev, cudaCreateChannelDesc<float2>(), sizeof(host), cudaReadModeElementType);
	fetch_pairs<<<4, 128>>>(tex, (float2 *)out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(pairs, out, sizeof(pairs), cudaMemcpyDeviceToHost));
	REQUIRE(!memcmp(pairs, host, sizeof(host)), "pairs");
	CHECK(cudaDestroyTextureObject(tex));
	CHECK(cudaMemcpy(dev, bytes, sizeof(bytes), cudaMemcpyHostToDevice));
	tex = line(dev, cudaCreateChannelDesc<uchar4>(), sizeof(bytes), cudaReadModeNormalizedFloat);
	fetch_bytes<<<8, 128>>>(tex, (float4 *)out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(fractions, out, sizeof(fractions), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N * 4; i++) {
		float f = ((const float *)fractions)[i];

		REQUIRE(fabsf(f - bytes[i] / 255.0f) < 1e-6f, "byte %d: %g", i, f);
	}
	CHECK(cudaDestroyTextureObject(tex));
	CHECK(cudaFree(dev));
	CHECK(cudaFree(out));
}

static void rows(void)
{
	static float host[H][W], back[H][W];
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {};
	cudaTextureObject_t tex;
	size_t pitch;
	float *dev, *out;

	for (int i = 0; i < H * W; i++)
		host[i / W][i % W] = (float)(scramble(i, 4) & 255);
	CHECK(cudaMallocPitch(&dev, &pitch, sizeof(host[0]), H));
	CHECK(cudaMemcpy2D(dev, pitch, host, sizeof(host[0]), sizeof(host[0]), H,
			   cudaMemcpyHostToDevice));
	CHECK(cudaMalloc(&out, sizeof(back)));
	resource.resType = cudaResourceTypePitch2D;
	resource.res.pitch2D.devPtr = dev;
	resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
	resource.res.pitch2D.width = W;
	resource.res.pitch2D.height = H;
	resource.res.pitch2D.pitchInBytes = pitch;
	desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
	desc.filterMode = cudaFilterModeLinear;
	CHECK(cudaCreateTextureObject(&tex, &resource, &desc, NULL));
	blur<<<dim3(4, 3), dim3(16, 16)>>>(tex, out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, out, sizeof(back), cudaMemcpyDeviceToHost));
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			int l = x ? x - 1 : 0, u = y ? y - 1 : 0;
			float want = (host[u][l] + host[u][x] + host[y][l] + host[y][x]) / 4;

			REQUIRE(fabsf(back[y][x] - want) <= 1, "(%d, %d): %g instead of %g", x, y,
				back[y][x], want);
		}
	CHECK(cudaDestroyTextureObject(tex));
	CHECK(cudaFree(dev));
	CHECK(cudaFree(out));
}

int main(void)
{
	integers();
	pairs_and_bytes();
	rows();
	return verified("lines and rows of device memory as textures");
}

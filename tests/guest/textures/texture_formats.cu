// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The formats of texels: 8, 16 and 32 bits, signed, unsigned and float, one to four channels;
 * read unchanged, as fractions of one, and with the sRGB curve.
 */
#include <cuda_fp16.h>
#include <math.h>

#include "check.h"

#define W 64
#define H 4

template <typename T> __global__ void read_all(cudaTextureObject_t tex, T *out)
{
	int x = threadIdx.x, y = blockIdx.x;

	out[y * W + x] = tex2D<T>(tex, x + 0.5f, y + 0.5f);
}

static cudaTextureObject_t texture(cudaArray_t array, cudaTextureReadMode mode, bool srgb,
				   bool linear)
{
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {};
	cudaTextureObject_t tex;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
	desc.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
	desc.readMode = mode;
	desc.sRGB = srgb;
	CHECK(cudaCreateTextureObject(&tex, &resource, &desc, NULL));
	return tex;
}

/* Reads an array of elements E back as R. */
template <typename E, typename R>
static void read_back(const cudaChannelFormatDesc &format, const E *texels, R *back,
		      cudaTextureReadMode mode, bool srgb = false, bool linear = false)
{
	cudaTextureObject_t tex;
	cudaArray_t array;
	R *dev;

	CHECK(cudaMallocArray(&array, &format, W, H));
	CHECK(cudaMemcpy2DToArray(array, 0, 0, texels, W * sizeof(E), W * sizeof(E), H,
				  cudaMemcpyHostToDevice));
	CHECK(cudaMalloc(&dev, W * H * sizeof(R)));
	tex = texture(array, mode, srgb, linear);
	read_all<<<H, W>>>(tex, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, W * H * sizeof(R), cudaMemcpyDeviceToHost));
	CHECK(cudaDestroyTextureObject(tex));
	CHECK(cudaFree(dev));
	CHECK(cudaFreeArray(array));
}

template <typename E> static void as_they_are(const char *name)
{
	static E texels[W * H], back[W * H];
	size_t at;

	fill_words(texels, sizeof(texels), 3);
	read_back(cudaCreateChannelDesc<E>(), texels, back, cudaReadModeElementType);
	at = first_difference(texels, back, sizeof(texels));
	REQUIRE(at == sizeof(texels), "%s: byte %zu", name, at);
}

/*
 * The least value, the greatest, and values in between. Each channel has a fourth of a row's
 * values.
 */
template <typename E> static void fractions(const char *name, float least, float most)
{
	static E texels[W * H];
	static float back[W * H];

	for (int i = 0; i < W * H; i++)
		texels[i] = (E)(least + (most - least) * (float)i / (W * H - 1));
	for (int linear = 0; linear < 2; linear++) {
		read_back(cudaCreateChannelDesc<E>(), texels, back, cudaReadModeNormalizedFloat,
			  false, linear);
		for (int i = 0; i < W * H; i++) {
			float want = fmaxf((float)texels[i] / most, -1.0f);

			/* A GPU's own arithmetic has an error of this size. */
			REQUIRE(fabsf(back[i] - want) < 3e-5f, "%s %d: %.9g instead of %.9g", name,
				(int)texels[i], back[i], want);
		}
	}
}

static void halves(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDescHalf();
	static __half texels[W * H];
	static float back[W * H];

	for (int i = 0; i < W * H; i++)
		texels[i] = __float2half((float)(i - 100) * 0.37f);
	texels[0] = __ushort_as_half(1);      /* the smallest of all */
	texels[1] = __ushort_as_half(0x7c00); /* infinity */
	texels[2] = __ushort_as_half(0xfbff); /* -65504 */
	read_back(format, texels, back, cudaReadModeElementType);
	for (int i = 0; i < W * H; i++)
		REQUIRE(back[i] == __half2float(texels[i]), "half %d: %.9g", i, back[i]);
}

static void curve(void)
{
	static uchar4 texels[W * H];
	static float4 back[W * H];

	for (int i = 0; i < W * H; i++)
		texels[i] = make_uchar4(i, 255 - i, i / 2, i);
	read_back(cudaCreateChannelDesc<uchar4>(), texels, back, cudaReadModeNormalizedFloat, true);
	for (int i = 0; i < W * H; i++) {
		float v = (float)texels[i].x / 255;
		float want = v <= 0.04045f ? v / 12.92f : powf((v + 0.055f) / 1.055f, 2.4f);

		/* The GPU's tables are not very fine. The fourth channel is no color. */
		REQUIRE(fabsf(back[i].x - want) < 4e-3f, "sRGB %d: %g instead of %g", i, back[i].x,
			want);
		REQUIRE(fabsf(back[i].w - v) < 1e-5f, "alpha %d: %g", i, back[i].w);
	}
}

int main(void)
{
	as_they_are<unsigned char>("unsigned char");
	as_they_are<signed char>("signed char");
	as_they_are<uchar2>("uchar2");
	as_they_are<char4>("char4");
	as_they_are<unsigned short>("unsigned short");
	as_they_are<short2>("short2");
	as_they_are<ushort4>("ushort4");
	as_they_are<int>("int");
	as_they_are<uint2>("uint2");
	as_they_are<int4>("int4");
	fractions<unsigned char>("unsigned char", 0, 255);
	fractions<signed char>("signed char", -128, 127);
	fractions<unsigned short>("unsigned short", 0, 65535);
	fractions<short>("short", -32768, 32767);
	halves();
	curve();
	return verified("texels of 10 formats, as fractions, halves and on sRGB's curve");
}

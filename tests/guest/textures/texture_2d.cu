// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A 2D texture, read at every kind of place with every address mode, nearest and linear, in
 * texels and in fractions of its size. Each value must be what the CPU computes from the same
 * texels.
 */
#include <math.h>

#include "check.h"

#define W 32
#define H 16
#define N 2048

struct point {
	float x, y;
};

__global__ void read_points(cudaTextureObject_t tex, const point *p, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = tex2D<float>(tex, p[i].x, p[i].y);
}

static float texels[H][W];
static point points[N];
static float got[N];

static const float border = 5;

/* A GPU rounds the weights of a mixture; values are below 1024. */
#define TOLERANCE 4

/* Returns an index after the address mode; -1: the border. */
static int index_of(int i, int n, cudaTextureAddressMode mode)
{
	switch (mode) {
	case cudaAddressModeWrap:
		return ((i % n) + n) % n;
	case cudaAddressModeMirror:
		i = ((i % (2 * n)) + 2 * n) % (2 * n);
		return i < n ? i : 2 * n - 1 - i;
	case cudaAddressModeClamp:
		return i < 0 ? 0 : i < n ? i : n - 1;
	default:
		return i < 0 || i >= n ? -1 : i;
	}
}

static double texel(int x, int y, cudaTextureAddressMode mx, cudaTextureAddressMode my)
{
	x = index_of(x, W, mx);
	y = index_of(y, H, my);
	return x < 0 || y < 0 ? border : texels[y][x];
}

static double expected(double x, double y, bool linear, cudaTextureAddressMode mx,
		       cudaTextureAddressMode my)
{
	double a, b;
	int i, j;

	if (!linear)
		return texel((int)floor(x), (int)floor(y), mx, my);
	x -= 0.5;
	y -= 0.5;
	i = (int)floor(x);
	j = (int)floor(y);
	a = x - i;
	b = y - j;
	return (1 - a) * (1 - b) * texel(i, j, mx, my) + a * (1 - b) * texel(i + 1, j, mx, my) +
	       (1 - a) * b * texel(i, j + 1, mx, my) + a * b * texel(i + 1, j + 1, mx, my);
}

static void one(cudaArray_t array, const point *dev, float *out, bool linear, bool normalized,
		cudaTextureAddressMode mx, cudaTextureAddressMode my)
{
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {}, again;
	cudaResourceDesc what;
	cudaTextureObject_t tex;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	desc.addressMode[0] = mx;
	desc.addressMode[1] = my;
	desc.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
	desc.normalizedCoords = normalized;
	desc.borderColor[0] = border;
	CHECK(cudaCreateTextureObject(&tex, &resource, &desc, NULL));
	CHECK(cudaGetTextureObjectTextureDesc(&again, tex));
	REQUIRE(again.addressMode[1] == my && again.filterMode == desc.filterMode &&
			again.normalizedCoords == normalized,
		"the description has changed");
	CHECK(cudaGetTextureObjectResourceDesc(&what, tex));
	REQUIRE(what.resType == cudaResourceTypeArray && what.res.array.array == array,
		"another resource");
	read_points<<<(N + 127) / 128, 128>>>(tex, dev, out, N);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK(cudaDestroyTextureObject(tex));
	for (int i = 0; i < N; i++) {
		double x = points[i].x, y = points[i].y, want;

		if (normalized) {
			x *= W;
			y *= H;
		}
		want = expected(x, y, linear, mx, my);
		REQUIRE(fabs(got[i] - want) <= (linear ? TOLERANCE : 0),
			"(%g, %g) %s, %s, modes %d %d: %.9g instead of %.9g", points[i].x,
			points[i].y, linear ? "linear" : "nearest", normalized ? "normalized" : "texels",
			mx, my, got[i], want);
	}
}

/* Between these places the weights are rounded, never by more than 1/256. */
static void precision(cudaArray_t array, point *dev, float *out)
{
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {};
	cudaTextureObject_t tex;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	desc.addressMode[0] = desc.addressMode[1] = cudaAddressModeClamp;
	desc.filterMode = cudaFilterModeLinear;
	CHECK(cudaCreateTextureObject(&tex, &resource, &desc, NULL));
	for (int i = 0; i < N; i++) {
		points[i].x = 0.5f + (float)i / 100;
		points[i].y = 3.5f;
	}
	CHECK(cudaMemcpy(dev, points, sizeof(points), cudaMemcpyHostToDevice));
	read_points<<<(N + 127) / 128, 128>>>(tex, dev, out, N);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		double want = expected(points[i].x, points[i].y, true, cudaAddressModeClamp,
				       cudaAddressModeClamp);
		int k = (int)floor(points[i].x - 0.5);
		double step = fabs(texel(k, 3, cudaAddressModeClamp, cudaAddressModeClamp) -
				   texel(k + 1, 3, cudaAddressModeClamp, cudaAddressModeClamp));

		REQUIRE(fabs(got[i] - want) <= step / 256 + 0.1, "(%g): %.9g instead of %.9g",
			points[i].x, got[i], want);
	}
	CHECK(cudaDestroyTextureObject(tex));
}

int main(void)
{
	static const cudaTextureAddressMode modes[] = {cudaAddressModeWrap, cudaAddressModeClamp,
						       cudaAddressModeMirror,
						       cudaAddressModeBorder};
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaArray_t array;
	point *dev;
	float *out;

	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			texels[y][x] = (float)(scramble(y * W + x, 1) % 1024);
	CHECK(cudaMallocArray(&array, &format, W, H));
	CHECK(cudaMemcpy2DToArray(array, 0, 0, texels, sizeof(texels[0]), sizeof(texels[0]), H,
				  cudaMemcpyHostToDevice));
	CHECK(cudaMalloc(&dev, sizeof(points)));
	CHECK(cudaMalloc(&out, sizeof(got)));
	for (int normalized = 0; normalized < 2; normalized++) {
		/* Sixteenths of texels, from one size below to two above; none is on an edge. */
		for (int i = 0; i < N; i++) {
			int x = (int)(scramble(i, 2) % (W * 16 * 3)) - W * 16;
			int y = (int)(scramble(i, 3) % (H * 16 * 3)) - H * 16;

			points[i].x = ((float)x + 0.5f) / 16;
			points[i].y = ((float)y + 0.5f) / 16;
			if (normalized) {
				points[i].x /= W;
				points[i].y /= H;
			}
		}
		CHECK(cudaMemcpy(dev, points, sizeof(points), cudaMemcpyHostToDevice));
		for (int linear = 0; linear < 2; linear++)
			for (int mx = 0; mx < 4; mx++)
				for (int my = 0; my < 4; my++) {
					bool repeats = modes[mx] == cudaAddressModeWrap ||
						       modes[mx] == cudaAddressModeMirror ||
						       modes[my] == cudaAddressModeWrap ||
						       modes[my] == cudaAddressModeMirror;

					/* Texel coordinates cannot repeat. */
					if (normalized || !repeats)
						one(array, dev, out, linear, normalized, modes[mx],
						    modes[my]);
				}
	}
	precision(array, dev, out);
	CHECK(cudaFree(dev));
	CHECK(cudaFree(out));
	CHECK(cudaFreeArray(array));
	return verified("%d places of a 2D texture in 40 modes", N);
}

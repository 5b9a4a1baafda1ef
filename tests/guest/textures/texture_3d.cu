// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Textures of one and three dimensions, of layers, and of the faces of a cube: point and linear
 * reads compared with the CPU, and gathers of four neighbours.
 */
#include <math.h>

#include "check.h"

#define N 16
#define LAYERS 5
#define COUNT (N * N * N)

/* A GPU rounds the weights of a mixture; values are below 1024. */
#define TOLERANCE 6

__global__ void read_1d(cudaTextureObject_t tex, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	/* From before the first texel to behind the last, in quarters. */
	out[i] = tex1D<float>(tex, (float)(i - 8) / 4);
}

__global__ void read_3d(cudaTextureObject_t tex, float shift, float *out)
{
	int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;

	out[(z * N + y) * N + x] =
		tex3D<float>(tex, (x + shift) / N, (y + shift) / N, (z + shift) / N);
}

__global__ void read_layers(cudaTextureObject_t tex, float *out)
{
	int x = threadIdx.x, y = threadIdx.y, layer = blockIdx.x;

	out[(layer * N + y) * N + x] = tex2DLayered<float>(tex, x + 0.5f, y + 0.5f, layer);
}

__global__ void read_lines(cudaTextureObject_t tex, float *out)
{
	out[blockIdx.x * N + threadIdx.x] =
		tex1DLayered<float>(tex, threadIdx.x + 0.75f, (int)blockIdx.x);
}

/* The middle of each texel of a face, as a direction. */
__global__ void read_cube(cudaTextureObject_t tex, float *out)
{
	float s = (2 * threadIdx.x + 1.0f) / N - 1, t = (2 * threadIdx.y + 1.0f) / N - 1;
	float x = 0, y = 0, z = 0;

	switch (blockIdx.x) {
	case 0:
		x = 1, y = -t, z = -s;
		break;
	case 1:
		x = -1, y = -t, z = s;
		break;
	case 2:
		x = s, y = 1, z = t;
		break;
	case 3:
		x = s, y = -1, z = -t;
		break;
	case 4:
		x = s, y = -t, z = 1;
		break;
	case 5:
		x = -s, y = -t, z = -1;
		break;
	}
	/* The length of the direction does not matter. */
	out[(blockIdx.x * N + threadIdx.y) * N + threadIdx.x] =
		texCubemap<float>(tex, 3 * x, 3 * y, 3 * z);
}

__global__ void gather(cudaTextureObject_t tex, float4 *out)
{
	/* Corners between texels: rounding does not change them. */
	out[threadIdx.y * N + threadIdx.x] =
		tex2Dgather<float4>(tex, threadIdx.x, threadIdx.y, 1);
}

static float host[COUNT], back[COUNT];

static void fill(size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++)
		host[i] = (float)(scramble((uint32_t)i, seed) & 1023);
}

static cudaArray_t make(int w, int h, int d, unsigned int flags)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaMemcpy3DParms p = {};
	cudaArray_t array;

	CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(w, h, d), flags));
	p.srcPtr = make_cudaPitchedPtr(host, w * sizeof(float), w, h ? h : 1);
	p.dstArray = array;
	p.extent = make_cudaExtent(w, h ? h : 1, d ? d : 1);
	p.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&p));
	return array;
}

static cudaTextureObject_t texture(cudaArray_t array, bool linear, bool normalized,
				   cudaTextureAddressMode mode)
{
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {};
	cudaTextureObject_t tex;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	for (int i = 0; i < 3; i++)
		desc.addressMode[i] = mode;
	desc.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
	desc.normalizedCoords = normalized;
	CHECK(cudaCreateTextureObject(&tex, &resource, &desc, NULL));
	return tex;
}

static void done(cudaTextureObject_t tex, cudaArray_t array)
{
	CHECK(cudaDestroyTextureObject(tex));
	CHECK(cudaFreeArray(array));
}

static void check_is(const float *want, int n, float tolerance, const char *what)
{
	for (int i = 0; i < n; i++)
		REQUIRE(fabsf(back[i] - want[i]) <= tolerance, "%s %d: %g instead of %g", what, i,
			back[i], want[i]);
}

static void one_dimension(float *dev)
{
	static float want[128];
	cudaTextureObject_t tex;
	cudaArray_t array;

	fill(N, 1);
	array = make(N, 0, 0, 0);
	tex = texture(array, true, false, cudaAddressModeClamp);
	read_1d<<<1, 128>>>(tex, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(want), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 128; i++) {
		float at = (float)(i - 8) / 4 - 0.5f, low = floorf(at), a = at - low;
		int l = (int)low, h = l + 1;

		l = l < 0 ? 0 : l < N ? l : N - 1;
		h = h < 0 ? 0 : h < N ? h : N - 1;
		want[i] = host[l] * (1 - a) + host[h] * a;
	}
	check_is(want, 128, TOLERANCE, "1D, quarter");
	done(tex, array);
}

static void three_dimensions(float *dev)
{
	static float want[COUNT];
	cudaTextureObject_t tex;
	cudaArray_t array;

	fill(COUNT, 2);
	array = make(N, N, N, 0);
	tex = texture(array, false, true, cudaAddressModeWrap);
	read_3d<<<N, dim3(N, N)>>>(tex, 0.5f, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	check_is(host, COUNT, 0, "3D, nearest");
	CHECK(cudaDestroyTextureObject(tex));
	tex = texture(array, true, true, cudaAddressModeWrap);
	read_3d<<<N, dim3(N, N)>>>(tex, 0.75f, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++) {
		int x = i % N, y = i / N % N, z = i / N / N;
		double sum = 0;

		for (int k = 0; k < 8; k++) {
			int a = (x + (k & 1)) % N, b = (y + (k >> 1 & 1)) % N, c = (z + (k >> 2)) % N;
			double weight = (k & 1 ? 0.25 : 0.75) * (k & 2 ? 0.25 : 0.75) *
					(k & 4 ? 0.25 : 0.75);

			sum += weight * host[(c * N + b) * N + a];
		}
		want[i] = (float)sum;
	}
	check_is(want, COUNT, TOLERANCE, "3D, linear");
	done(tex, array);
}

static void layers(float *dev)
{
	static float want[N * LAYERS];
	cudaTextureObject_t tex;
	cudaArray_t array;

	fill(N * N * LAYERS, 3);
	array = make(N, N, LAYERS, cudaArrayLayered);
	tex = texture(array, true, false, cudaAddressModeClamp);
	read_layers<<<LAYERS, dim3(N, N)>>>(tex, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	check_is(host, N * N * LAYERS, 0, "layers");
	done(tex, array);
	array = make(N, 0, LAYERS, cudaArrayLayered);
	tex = texture(array, true, false, cudaAddressModeBorder);
	read_lines<<<LAYERS, N>>>(tex, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N * LAYERS; i++)
		want[i] = host[i] * 0.75f + ((i + 1) % N ? host[i + 1] : 0) * 0.25f;
	check_is(want, N * LAYERS, TOLERANCE, "layers of lines");
	done(tex, array);
}

static void cube(float *dev)
{
	cudaTextureObject_t tex;
	cudaArray_t array;

	fill(N * N * 6, 4);
	array = make(N, N, 6, cudaArrayCubemap);
	tex = texture(array, false, true, cudaAddressModeClamp);
	read_cube<<<6, dim3(N, N)>>>(tex, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	check_is(host, N * N * 6, 0, "cube");
	done(tex, array);
}

static void neighbours(float *dev)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float2>();
	static float2 pairs[N][N];
	static float4 four[N][N];
	cudaTextureObject_t tex;
	cudaArray_t array;

	for (int i = 0; i < N * N; i++)
		pairs[0][i] = make_float2((float)-i, (float)(scramble(i, 5) & 1023));
	CHECK(cudaMallocArray(&array, &format, N, N, cudaArrayTextureGather));
	CHECK(cudaMemcpy2DToArray(array, 0, 0, pairs, sizeof(pairs[0]), sizeof(pairs[0]), N,
				  cudaMemcpyHostToDevice));
	tex = texture(array, false, false, cudaAddressModeClamp);
	gather<<<1, dim3(N, N)>>>(tex, (float4 *)dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(four, dev, sizeof(four), cudaMemcpyDeviceToHost));
	for (int y = 0; y < N; y++)
		for (int x = 0; x < N; x++) {
			int l = x ? x - 1 : 0, u = y ? y - 1 : 0;
			float4 g = four[y][x];

			REQUIRE(g.x == pairs[y][l].y && g.y == pairs[y][x].y &&
					g.z == pairs[u][x].y && g.w == pairs[u][l].y,
				"(%d, %d): %g %g %g %g", x, y, g.x, g.y, g.z, g.w);
		}
	done(tex, array);
}

int main(void)
{
	float *dev;

	CHECK(cudaMalloc(&dev, sizeof(back)));
	one_dimension(dev);
	three_dimensions(dev);
	layers(dev);
	cube(dev);
	neighbours(dev);
	CHECK(cudaFree(dev));
	return verified("1D, 3D, layered and cube textures, and gathered neighbours");
}

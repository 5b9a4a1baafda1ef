// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Array handles and texture numbers that are stale, that belong to another kind of object, or that
 * never existed. Each call returns an error, and no call touches what the handle points to. The
 * library of a real GPU does not survive some of these calls, so this program is not for a real
 * GPU.
 */
#include "check.h"

/* The deprecated functions are still tested. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
static const struct cudaExtent size = {16, 16, 0};
static float host[256];

/* Calls every function that takes an array. */
static void no_array(cudaArray_t a, cudaError_t code)
{
	const enum cudaMemcpyKind up = cudaMemcpyHostToDevice, down = cudaMemcpyDeviceToHost;
	struct cudaMemcpy3DParms p = {.extent = {16, 16, 1}, .kind = up};
	struct cudaResourceDesc r = {.resType = cudaResourceTypeArray};
	struct cudaTextureDesc d = {0};
	struct cudaChannelFormatDesc f;
	cudaTextureObject_t tex;
	cudaSurfaceObject_t surf;
	cudaArray_t good;

	OK(cudaMallocArray(&good, &format, 16, 16, 0));
	REFUSED(cudaArrayGetInfo(&f, NULL, NULL, a), code);
	REFUSED(cudaGetChannelDesc(&f, a), code);
	REFUSED(cudaMemcpy2DToArray(a, 0, 0, host, 64, 64, 16, up), code);
	REFUSED(cudaMemcpy2DFromArray(host, 64, a, 0, 0, 64, 16, down), code);
	REFUSED(cudaMemcpy2DToArrayAsync(a, 0, 0, host, 64, 64, 16, up, NULL), code);
	REFUSED(cudaMemcpy2DArrayToArray(a, 0, 0, good, 0, 0, 64, 16, cudaMemcpyDeviceToDevice),
		code);
	REFUSED(cudaMemcpy2DArrayToArray(good, 0, 0, a, 0, 0, 64, 16, cudaMemcpyDeviceToDevice),
		code);
	REFUSED(cudaMemcpyToArray(a, 0, 0, host, 64, up), code);
	REFUSED(cudaMemcpyFromArray(host, a, 0, 0, 64, down), code);
	r.res.array.array = a;
	REFUSED(cudaCreateTextureObject(&tex, &r, &d, NULL), code);
	REFUSED(cudaCreateSurfaceObject(&surf, &r), code);
	p.srcPtr = (struct cudaPitchedPtr){host, 64, 64, 16};
	p.dstArray = a;
	if (a)
		REFUSED(cudaMemcpy3D(&p), code);
	OK(cudaFreeArray(good));
}

static void arrays(void)
{
	const cudaError_t bad = cudaErrorInvalidResourceHandle;
	cudaMipmappedArray_t mipmap;
	cudaArray_t a, level, wild[4];
	cudaStream_t stream;
	unsigned int i;

	OK(cudaMallocArray(&a, &format, 16, 16, 0));
	OK(cudaMallocMipmappedArray(&mipmap, &format, size, 3, 0));
	OK(cudaGetMipmappedArrayLevel(&level, mipmap, 1));
	OK(cudaStreamCreate(&stream));
	/* Handles of other kinds, and addresses that are near a good handle or in other memory. */
	wild[0] = (cudaArray_t)(void *)mipmap;
	wild[1] = (cudaArray_t)(void *)stream;
	wild[2] = (cudaArray_t)((char *)a + 1);
	wild[3] = (cudaArray_t)(void *)host;
	for (i = 0; i < 4; i++) {
		no_array(wild[i], bad);
		REFUSED(cudaFreeArray(wild[i]), bad);
	}
	no_array(NULL, bad);
	REFUSED(cudaFreeMipmappedArray((cudaMipmappedArray_t)(void *)a), bad);
	REFUSED(cudaGetMipmappedArrayLevel(&level, (cudaMipmappedArray_t)(void *)a, 0), bad);
	REFUSED(cudaGetMipmappedArrayLevel(&level, NULL, 0), bad);
	/* A level belongs to its mipmapped array and cannot be freed alone. */
	REFUSED(cudaFreeArray(level), bad);
	OK(cudaMemcpy2DToArray(level, 0, 0, host, 32, 32, 8, cudaMemcpyHostToDevice));
	OK(cudaFreeMipmappedArray(mipmap));
	no_array(level, bad);
	REFUSED(cudaFreeMipmappedArray(mipmap), bad);
	OK(cudaFreeArray(a));
	no_array(a, bad);
	REFUSED(cudaFreeArray(a), bad);
	OK(cudaStreamDestroy(stream));
}

static void objects(void)
{
	struct cudaResourceDesc r = {.resType = cudaResourceTypeArray};
	struct cudaTextureDesc d = {0};
	cudaTextureObject_t tex, other;
	cudaSurfaceObject_t surf;

	OK(cudaMallocArray(&r.res.array.array, &format, 16, 16, cudaArraySurfaceLoadStore));
	OK(cudaCreateTextureObject(&tex, &r, &d, NULL));
	OK(cudaCreateSurfaceObject(&surf, &r));
	OK(cudaDestroyTextureObject(0));
	REFUSED(cudaDestroyTextureObject(~0ull), cudaErrorInvalidValue);
	REFUSED(cudaDestroyTextureObject(surf), cudaErrorInvalidValue);
	REFUSED(cudaDestroySurfaceObject(tex), cudaErrorInvalidValue);
	REFUSED(cudaGetTextureObjectResourceDesc(&r, surf), cudaErrorInvalidValue);
	REFUSED(cudaGetSurfaceObjectResourceDesc(&r, tex), cudaErrorInvalidValue);
	/*
	 * The array is freed first. The objects can still be destroyed, and keep their numbers
	 * until then.
	 */
	OK(cudaFreeArray(r.res.array.array));
	OK(cudaMallocArray(&r.res.array.array, &format, 16, 16, 0));
	OK(cudaCreateTextureObject(&other, &r, &d, NULL));
	REQUIRE(other != tex, "the same number twice");
	OK(cudaDestroyTextureObject(tex));
	REFUSED(cudaDestroyTextureObject(tex), cudaErrorInvalidValue);
	REFUSED(cudaGetTextureObjectTextureDesc(&d, tex), cudaErrorInvalidValue);
	OK(cudaDestroySurfaceObject(surf));
	REFUSED(cudaDestroySurfaceObject(surf), cudaErrorInvalidValue);
	/* A reset destroys all arrays and objects. */
	OK(cudaDeviceReset());
	REFUSED(cudaDestroyTextureObject(other), cudaErrorInvalidValue);
	REFUSED(cudaFreeArray(r.res.array.array), cudaErrorInvalidResourceHandle);
}

int main(void)
{
	arrays();
	objects();
	printf("stale and foreign handles of arrays and textures are refused\n");
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Wrong arguments get the codes that NVIDIA's runtime 13 returns on a real GPU, at the call, and
 * the next good call works.
 */
#include "check.h"

static char *dev, *big, *pinned, host[256];
static cudaStream_t stream;

static void still_works(void)
{
	static uint32_t seed;
	char from[128], to[128];

	fill(from, sizeof(from), ++seed);
	OK(cudaMemcpy(dev, from, sizeof(from), cudaMemcpyHostToDevice));
	OK(cudaMemcpy(to, dev, sizeof(to), cudaMemcpyDeviceToHost));
	REQUIRE(differs(from, to, sizeof(to)) == sizeof(to), "a copy after an error is wrong");
}

#define BAD(call, code)              \
	do {                         \
		REFUSED(call, code); \
		still_works();       \
	} while (0)

static void allocation(void)
{
	void *p = (void *)5;
	size_t pitch = 5;

	OK(cudaMalloc(&p, 0));
	REQUIRE(!p, "%p", p);
	p = (void *)5;
	OK(cudaMallocHost(&p, 0));
	REQUIRE(!p, "%p", p);
	p = (void *)5;
	OK(cudaMallocPitch(&p, &pitch, 0, 10));
	REQUIRE(!p && !pitch, "%p %zu", p, pitch);
	BAD(cudaMalloc(NULL, 4), cudaErrorInvalidValue);
	BAD(cudaMallocHost(NULL, 4), cudaErrorInvalidValue);
	BAD(cudaMalloc(&p, 1ull << 50), cudaErrorMemoryAllocation);
	BAD(cudaMallocHost(&p, 1ull << 50), cudaErrorMemoryAllocation);
	BAD(cudaMallocHost(&p, SIZE_MAX), cudaErrorMemoryAllocation);
	BAD(cudaMallocPitch(&p, &pitch, SIZE_MAX, 10), cudaErrorInvalidValue);
	BAD(cudaHostAlloc(&p, 4096, 0x40), cudaErrorInvalidValue);
	BAD(cudaMallocManaged(&p, 16, 7), cudaErrorInvalidValue);

	OK(cudaFree(NULL));
	OK(cudaFreeHost(NULL));
	BAD(cudaFree(host), cudaErrorInvalidValue);
	BAD(cudaFree(dev + 8), cudaErrorInvalidValue);
	BAD(cudaFree(pinned), cudaErrorInvalidValue);
	BAD(cudaFreeHost(host), cudaErrorInvalidValue);
	BAD(cudaFreeHost(pinned + 8), cudaErrorInvalidValue);
	BAD(cudaFreeHost(dev), cudaErrorInvalidValue);
	OK(cudaMalloc(&p, 64));
	OK(cudaFree(p));
	BAD(cudaFree(p), cudaErrorInvalidValue);
	OK(cudaMallocHost(&p, 64));
	OK(cudaFreeHost(p));
	BAD(cudaFreeHost(p), cudaErrorInvalidValue);
	OK(cudaMallocManaged(&p, 64, cudaMemAttachGlobal));
	BAD(cudaFreeHost(p), cudaErrorInvalidValue);
	OK(cudaFree(p));
	BAD(cudaFree(p), cudaErrorInvalidValue);
}

static void copies(void)
{
	const enum cudaMemcpyKind H2H = cudaMemcpyHostToHost, H2D = cudaMemcpyHostToDevice;
	const enum cudaMemcpyKind D2H = cudaMemcpyDeviceToHost, D2D = cudaMemcpyDeviceToDevice;

	BAD(cudaMemcpy(dev, host, 16, (enum cudaMemcpyKind)7), cudaErrorInvalidMemcpyDirection);
	BAD(cudaMemcpyAsync(dev, host, 16, (enum cudaMemcpyKind) - 1, 0),
	    cudaErrorInvalidMemcpyDirection);
	OK(cudaMemcpy(dev, host, 0, (enum cudaMemcpyKind)7));
	OK(cudaMemcpy(NULL, NULL, 0, H2D));
	BAD(cudaMemcpy(NULL, host, 16, H2D), cudaErrorInvalidValue);
	BAD(cudaMemcpy(dev, NULL, 16, H2D), cudaErrorInvalidValue);
	BAD(cudaMemcpy(NULL, host, 16, H2H), cudaErrorInvalidValue);
	BAD(cudaMemcpy(host, host + 128, 16, H2D), cudaErrorInvalidValue);
	BAD(cudaMemcpy(host, host + 128, 16, D2H), cudaErrorInvalidValue);
	BAD(cudaMemcpy(dev, host, 16, D2H), cudaErrorInvalidValue);
	BAD(cudaMemcpy(host, dev, 16, H2D), cudaErrorInvalidValue);
	BAD(cudaMemcpy(host, dev, 16, D2D), cudaErrorInvalidValue);
	BAD(cudaMemcpy(dev, host, 16, D2D), cudaErrorInvalidValue);
	BAD(cudaMemcpy(dev + 1000, host, 64, H2D), cudaErrorInvalidValue);
	BAD(cudaMemcpy(host, dev + 1000, 64, D2H), cudaErrorInvalidValue);
	BAD(cudaMemcpy(dev + 1000, dev, 64, D2D), cudaErrorInvalidValue);
	BAD(cudaMemcpy(big, dev, 2048, D2D), cudaErrorInvalidValue);
	BAD(cudaMemcpy(dev, host, SIZE_MAX, H2D), cudaErrorInvalidValue);
	BAD(cudaMemcpy(dev, (void *)16, 16, H2D), cudaErrorInvalidValue);
	BAD(cudaMemcpy((void *)16, dev, 16, D2H), cudaErrorInvalidValue);
	BAD(cudaMemcpy2D(dev, 16, host, 16, 32, 2, H2D), cudaErrorInvalidPitchValue);
	BAD(cudaMemcpy2D(dev, 16, host, 16, 16, 2, (enum cudaMemcpyKind)9),
	    cudaErrorInvalidMemcpyDirection);
	OK(cudaMemcpy2D(dev, 16, host, 16, 0, 2, H2D));
	/* Directions that are wrong but harmless, as natively: both ends are the GPU's to use. */
	OK(cudaMemcpy(dev, dev + 64, 16, H2D));
	OK(cudaMemcpy(dev, dev + 64, 16, D2H));
	OK(cudaMemcpy(host, dev, 16, H2H));
	OK(cudaMemcpy(dev, pinned, 16, D2D));
	OK(cudaMemcpy(pinned, dev, 16, H2D));
	OK(cudaMemcpy(pinned, host, 16, H2D));
	OK(cudaMemcpy(host, pinned, 16, D2H));
}

static void memsets(void)
{
	BAD(cudaMemset(dev + 1000, 0, 64), cudaErrorInvalidValue);
	BAD(cudaMemset(host, 0, 64), cudaErrorInvalidValue);
	BAD(cudaMemset(NULL, 0, 64), cudaErrorInvalidValue);
	BAD(cudaMemset2D(dev, 16, 0, 32, 4), cudaErrorInvalidValue);
	OK(cudaMemset(NULL, 0, 0));
	OK(cudaMemset2D(dev, 32, 0, 32, 0));
	OK(cudaMemset(pinned, 0, 64));
}

static void handles(void)
{
	cudaStream_t gone;
	cudaEvent_t event, other, untimed;
	unsigned int flags;
	float ms;

	BAD(cudaStreamCreate(NULL), cudaErrorInvalidValue);
	BAD(cudaStreamCreateWithFlags(&gone, 5), cudaErrorInvalidValue);
	BAD(cudaStreamDestroy(0), cudaErrorInvalidResourceHandle);
	BAD(cudaStreamDestroy(cudaStreamLegacy), cudaErrorInvalidResourceHandle);
	BAD(cudaStreamDestroy(cudaStreamPerThread), cudaErrorInvalidResourceHandle);
	OK(cudaStreamCreate(&gone));
	OK(cudaStreamDestroy(gone));
	BAD(cudaStreamDestroy(gone), cudaErrorInvalidResourceHandle);
	BAD(cudaStreamSynchronize(gone), cudaErrorInvalidResourceHandle);
	BAD(cudaMemcpyAsync(dev, host, 16, cudaMemcpyHostToDevice, gone),
	    cudaErrorInvalidResourceHandle);
	BAD(cudaStreamQuery((cudaStream_t)host), cudaErrorInvalidResourceHandle);
	BAD(cudaStreamGetFlags((cudaStream_t)((char *)stream + 1), &flags),
	    cudaErrorInvalidResourceHandle);

	BAD(cudaEventCreateWithFlags(&event, 0x40), cudaErrorInvalidValue);
	BAD(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue);
	OK(cudaEventCreate(&event));
	OK(cudaEventCreate(&other));
	OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	OK(cudaEventQuery(event));
	OK(cudaEventSynchronize(event));
	BAD(cudaEventElapsedTime(&ms, event, other), cudaErrorInvalidResourceHandle);
	OK(cudaEventRecord(event, stream));
	OK(cudaEventRecord(untimed, stream));
	OK(cudaStreamSynchronize(stream));
	BAD(cudaEventElapsedTime(&ms, event, untimed), cudaErrorInvalidResourceHandle);
	BAD(cudaEventElapsedTime(&ms, event, other), cudaErrorInvalidResourceHandle);
	BAD(cudaEventElapsedTime(NULL, event, other), cudaErrorInvalidValue);
	BAD(cudaEventRecord(NULL, stream), cudaErrorInvalidResourceHandle);
	BAD(cudaEventQuery(NULL), cudaErrorInvalidResourceHandle);
	BAD(cudaEventDestroy(NULL), cudaErrorInvalidResourceHandle);
	BAD(cudaEventRecordWithFlags(event, stream, 8), cudaErrorInvalidValue);
	BAD(cudaStreamWaitEvent(stream, NULL, 0), cudaErrorInvalidResourceHandle);
	BAD(cudaStreamWaitEvent(stream, other, 9), cudaErrorInvalidValue);
	BAD(cudaStreamWaitEvent(stream, other, cudaEventWaitExternal), cudaErrorIllegalState);
	OK(cudaStreamWaitEvent(stream, other, 0));
	/* A stream is no event, and the other way round. */
	BAD(cudaEventQuery((cudaEvent_t)stream), cudaErrorInvalidResourceHandle);
	BAD(cudaStreamQuery((cudaStream_t)event), cudaErrorInvalidResourceHandle);
	OK(cudaEventDestroy(event));
	BAD(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
	OK(cudaEventDestroy(other));
	OK(cudaEventDestroy(untimed));
}

static void devices(void)
{
	struct cudaDeviceProp prop;
	char bus[32];
	int v;

	BAD(cudaSetDevice(-1), cudaErrorInvalidDevice);
	BAD(cudaSetDevice(77), cudaErrorInvalidDevice);
	BAD(cudaGetDevice(NULL), cudaErrorInvalidValue);
	BAD(cudaGetDeviceCount(NULL), cudaErrorInvalidValue);
	BAD(cudaGetDeviceProperties(&prop, 9), cudaErrorInvalidDevice);
	BAD(cudaGetDeviceProperties(NULL, 0), cudaErrorInvalidValue);
	BAD(cudaDeviceGetAttribute(&v, (enum cudaDeviceAttr)0, 0), cudaErrorInvalidValue);
	BAD(cudaDeviceGetAttribute(&v, (enum cudaDeviceAttr)500, 0), cudaErrorInvalidValue);
	BAD(cudaDeviceGetAttribute(&v, cudaDevAttrMax, 0), cudaErrorInvalidValue);
	BAD(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 5), cudaErrorInvalidDevice);
	BAD(cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0), cudaErrorInvalidValue);
	BAD(cudaSetDeviceFlags(0x100), cudaErrorInvalidValue);
	BAD(cudaInitDevice(7, 0, 0), cudaErrorInvalidDevice);
	BAD(cudaDeviceGetPCIBusId(bus, 5, 0), cudaErrorInvalidValue);
	BAD(cudaDeviceGetByPCIBusId(&v, "0000:99:00.0"), cudaErrorInvalidDevice);
	BAD(cudaDeviceGetByPCIBusId(&v, "0000:"), cudaErrorInvalidValue);
	BAD(cudaDeviceCanAccessPeer(&v, 0, 63), cudaErrorInvalidDevice);
	BAD(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
	BAD(cudaDeviceEnablePeerAccess(63, 0), cudaErrorInvalidDevice);
	BAD(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
}

static void kernels(void)
{
	struct cudaFuncAttributes attr;
	dim3 one = {1, 1, 1};
	void *p;
	size_t size;
	int blocks;

	BAD(cudaLaunchKernel(NULL, one, one, NULL, 0, 0), cudaErrorInvalidDeviceFunction);
	BAD(cudaLaunchKernel(host, one, one, NULL, 0, 0), cudaErrorInvalidResourceHandle);
	BAD(cudaFuncGetAttributes(&attr, NULL), cudaErrorInvalidDeviceFunction);
	BAD(cudaFuncGetAttributes(&attr, host), cudaErrorInvalidResourceHandle);
	BAD(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, host, 20, 0),
	    cudaErrorInvalidResourceHandle);
	BAD(cudaGetSymbolAddress(&p, host), cudaErrorInvalidSymbol);
	BAD(cudaGetSymbolSize(&size, host), cudaErrorInvalidSymbol);
	BAD(cudaMemcpyToSymbol(host, host, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
	BAD(cudaMemcpyToSymbol(host, host, 4, 0, cudaMemcpyDeviceToHost),
	    cudaErrorInvalidMemcpyDirection);
}

static void pointers(void)
{
	struct cudaPointerAttributes attr;
	unsigned int flags;
	void *p;

	BAD(cudaHostGetFlags(&flags, host), cudaErrorInvalidValue);
	BAD(cudaHostGetFlags(&flags, dev), cudaErrorInvalidValue);
	BAD(cudaHostGetDevicePointer(&p, host, 0), cudaErrorInvalidValue);
	BAD(cudaHostGetDevicePointer(&p, pinned, 1), cudaErrorInvalidValue);
	BAD(cudaHostGetDevicePointer(&p, dev, 0), cudaErrorInvalidValue);
	BAD(cudaPointerGetAttributes(NULL, host), cudaErrorInvalidValue);
	OK(cudaPointerGetAttributes(&attr, host));
	REQUIRE(attr.type == cudaMemoryTypeUnregistered && attr.device == cudaInvalidDeviceId &&
			!attr.devicePointer && attr.hostPointer == host,
		"type %d device %d", attr.type, attr.device);
}

int main(void)
{
	OK(cudaMalloc((void **)&dev, 1024));
	OK(cudaMalloc((void **)&big, 1 << 20));
	OK(cudaMallocHost((void **)&pinned, 8192));
	OK(cudaStreamCreate(&stream));
	still_works();
	allocation();
	copies();
	memsets();
	handles();
	devices();
	kernels();
	pointers();
	OK(cudaStreamDestroy(stream));
	OK(cudaFreeHost(pinned));
	OK(cudaFree(big));
	OK(cudaFree(dev));
	return 0;
}

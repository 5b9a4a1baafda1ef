// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Wrong arguments: the call must return the same error as NVIDIA's runtime 13 on a real GPU, and
 * the next good call must work.
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
	/*
	 * Directions that are wrong but harmless, as with NVIDIA's runtime: the GPU can use both
	 * ends.
	 */
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
	/* A stream is no event, and an event is no stream. */
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
	BAD(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessUnsupported);
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

static void callback(cudaStream_t s, cudaError_t err, void *data)
{
	(void)s;
	(void)err;
	(void)data;
}

static void host_function(void *data)
{
	(void)data;
}

/* Deprecated, but programs still call these functions. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void banks(void)
{
	enum cudaSharedMemConfig config;

	BAD(cudaDeviceSetSharedMemConfig((enum cudaSharedMemConfig)3), cudaErrorInvalidValue);
	BAD(cudaDeviceGetSharedMemConfig(NULL), cudaErrorInvalidValue);
	OK(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte));
	OK(cudaDeviceGetSharedMemConfig(&config));
	REQUIRE(config == cudaSharedMemBankSizeFourByte, "%d", config);
}
#pragma GCC diagnostic pop

static void settings(void)
{
	enum cudaDriverEntryPointQueryResult found;
	enum cudaFuncCache cache;
	int list[2] = {0, 9}, v;
	struct cudaDeviceProp prop;
	unsigned int flags;
	size_t value;
	void *p;

	BAD(cudaDeviceSetLimit((enum cudaLimit)77, 1), cudaErrorInvalidValue);
	BAD(cudaDeviceGetLimit(&value, (enum cudaLimit) - 1), cudaErrorInvalidValue);
	BAD(cudaDeviceGetLimit(NULL, cudaLimitStackSize), cudaErrorInvalidValue);
	BAD(cudaDeviceSetLimit(cudaLimitStackSize, SIZE_MAX), cudaErrorInvalidValue);
	BAD(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, SIZE_MAX), cudaErrorMemoryAllocation);
	BAD(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 129), cudaErrorInvalidValue);
	BAD(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 25), cudaErrorInvalidValue);
	BAD(cudaDeviceSetCacheConfig((enum cudaFuncCache)4), cudaErrorInvalidValue);
	BAD(cudaDeviceGetCacheConfig(NULL), cudaErrorInvalidValue);
	OK(cudaDeviceGetCacheConfig(&cache));
	banks();
	BAD(cudaGetDeviceFlags(NULL), cudaErrorInvalidValue);
	OK(cudaGetDeviceFlags(&flags));
	BAD(cudaSetValidDevices(list, 2), cudaErrorInvalidValue);
	BAD(cudaSetValidDevices(list + 1, 1), cudaErrorInvalidDevice);
	BAD(cudaSetValidDevices(list, -1), cudaErrorInvalidValue);
	BAD(cudaChooseDevice(&v, NULL), cudaErrorInvalidValue);
	memset(&prop, 0, sizeof(prop));
	BAD(cudaChooseDevice(NULL, &prop), cudaErrorInvalidValue);
	BAD(cudaGetDriverEntryPointByVersion("cuInit", &p, 99000, 0, &found),
	    cudaErrorInvalidValue);
	BAD(cudaGetDriverEntryPointByVersion("cuInit", &p, 12000, 9, &found),
	    cudaErrorInvalidValue);
	BAD(cudaGetDriverEntryPointByVersion("cuInit", NULL, 12000, 0, &found),
	    cudaErrorInvalidValue);
	BAD(cudaDeviceFlushGPUDirectRDMAWrites((enum cudaFlushGPUDirectRDMAWritesTarget)5,
					       cudaFlushGPUDirectRDMAWritesToOwner),
	    cudaErrorInvalidValue);
}

static void stream_things(void)
{
	cudaStream_t none = (cudaStream_t)(void *)host;
	cudaStreamAttrValue value;
	unsigned long long id;
	void *p = dev;
	size_t n = 4, zero = 0;
	const void *from = pinned;
	struct cudaMemcpyAttributes order = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};

	memset(&value, 0, sizeof(value));
	BAD(cudaLaunchHostFunc(none, host_function, NULL), cudaErrorInvalidResourceHandle);
	BAD(cudaLaunchHostFunc(stream, NULL, NULL), cudaErrorInvalidValue);
	BAD(cudaStreamAddCallback(none, callback, NULL, 0), cudaErrorInvalidResourceHandle);
	BAD(cudaStreamAddCallback(stream, callback, NULL, 2), cudaErrorInvalidValue);
	BAD(cudaStreamGetId(none, &id), cudaErrorInvalidResourceHandle);
	value.syncPolicy = (enum cudaSynchronizationPolicy)9;
	BAD(cudaStreamSetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value),
	    cudaErrorInvalidValue);
	BAD(cudaStreamSetAttribute(stream, (cudaStreamAttrID)99, &value), cudaErrorInvalidValue);
	BAD(cudaStreamGetAttribute(stream, (cudaStreamAttrID)99, &value), cudaErrorInvalidValue);
	BAD(cudaStreamGetAttribute(none, cudaStreamAttributePriority, &value),
	    cudaErrorInvalidResourceHandle);
	BAD(cudaStreamCopyAttributes(stream, none), cudaErrorInvalidResourceHandle);
	BAD(cudaStreamCopyAttributes(none, stream), cudaErrorInvalidResourceHandle);
	BAD(cudaMemcpyBatchAsync(&p, &from, &n, 1, &order, &zero, 2, stream),
	    cudaErrorInvalidValue);
	BAD(cudaMemcpyBatchAsync(&p, &from, &n, 1, NULL, &zero, 1, stream), cudaErrorInvalidValue);
	BAD(cudaMemcpyBatchAsync(&p, &from, &n, 1, &order, &zero, 1, none),
	    cudaErrorInvalidResourceHandle);
	BAD(cudaMemcpy3DBatchAsync(1, NULL, 0, stream), cudaErrorInvalidValue);
	BAD(cudaMemcpy3DPeer(NULL), cudaErrorInvalidValue);
}

static void managed(void)
{
	struct cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0}, bad = {99, 0};
	cudaStream_t none = (cudaStream_t)(void *)host;
	void *p, *data;
	int value;
	size_t size = sizeof(value);
	enum cudaMemRangeAttribute attr = cudaMemRangeAttributeReadMostly;

	OK(cudaMallocManaged(&p, 10000, cudaMemAttachGlobal));
	BAD(cudaMemAdvise(p, 1 << 20, cudaMemAdviseSetReadMostly, gpu), cudaErrorInvalidValue);
	BAD(cudaMemAdvise(host, 8, cudaMemAdviseSetReadMostly, gpu), cudaErrorInvalidValue);
	BAD(cudaMemAdvise(pinned, 8, cudaMemAdviseSetReadMostly, gpu), cudaErrorInvalidValue);
	BAD(cudaMemAdvise(p, SIZE_MAX, cudaMemAdviseSetReadMostly, gpu), cudaErrorInvalidValue);
	BAD(cudaMemAdvise(p, 8, cudaMemAdviseSetAccessedBy, bad), cudaErrorInvalidValue);
	BAD(cudaMemPrefetchAsync(p, 8, bad, 0, stream), cudaErrorInvalidValue);
	BAD(cudaMemPrefetchAsync(p, 8, gpu, 0, none), cudaErrorInvalidResourceHandle);
	BAD(cudaMemPrefetchAsync(dev, 8, gpu, 0, stream), cudaErrorInvalidValue);
	data = &value;
	BAD(cudaMemRangeGetAttribute(NULL, 4, attr, p, 8), cudaErrorInvalidValue);
	BAD(cudaMemRangeGetAttribute(&value, 8, attr, p, 8), cudaErrorInvalidValue);
	BAD(cudaMemRangeGetAttribute(&value, 4, (enum cudaMemRangeAttribute)40, p, 8),
	    cudaErrorInvalidValue);
	BAD(cudaMemRangeGetAttribute(&value, 4, attr, host, 8), cudaErrorInvalidValue);
	BAD(cudaMemRangeGetAttributes(&data, &size, &attr, 0, p, 8), cudaErrorInvalidValue);
	BAD(cudaStreamAttachMemAsync(stream, dev, 0, cudaMemAttachGlobal), cudaErrorInvalidValue);
	BAD(cudaStreamAttachMemAsync(stream, p, 0, 77), cudaErrorInvalidValue);
	BAD(cudaStreamAttachMemAsync(NULL, p, 0, cudaMemAttachSingle), cudaErrorInvalidValue);
	OK(cudaStreamAttachMemAsync(stream, p, 0, cudaMemAttachSingle));
	/* Advice about freed memory is no longer valid. */
	OK(cudaMemAdvise(p, 4096, cudaMemAdviseSetReadMostly, gpu));
	OK(cudaFree(p));
	BAD(cudaMemRangeGetAttribute(&value, 4, attr, p, 8), cudaErrorInvalidValue);
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
	settings();
	stream_things();
	managed();
	OK(cudaStreamDestroy(stream));
	OK(cudaFreeHost(pinned));
	OK(cudaFree(big));
	OK(cudaFree(dev));
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls every function of the runtime with arguments that it must refuse, or that it must accept
 * although they look odd: null pointers, wrong kinds and flags, stale and foreign handles,
 * negative and huge sizes. The table holds the code that NVIDIA's library returns on a real GPU
 * (`bad_calls --record` prints it there). Where our library returns another code, OURS says so
 * and gives the reason. docs/errors.md lists these cases; `bad_calls --differences` prints it.
 */
#include <fcntl.h>
#include <unistd.h>

#include <cuda_profiler_api.h>

#include "check.h"
#include "ours.h"

/* The table calls deprecated functions, too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define ELEMENTS 4096
#define BYTES	 (ELEMENTS * sizeof(int))

__global__ void add_one(int *p)
{
	p[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

__constant__ int table[16];
__device__ int counter;

static char *dev, *pinned, *heap;
static char stack_like[BYTES];
static cudaStream_t stream, stale_stream;
static cudaEvent_t event, untimed, stale_event, fresh_event;
static cudaArray_t array;
static cudaMemPool_t pool;
static cudaGraph_t graph;
static cudaGraphNode_t node, nodes[4];
static cudaGraphExec_t exec;
static int i32;
static unsigned int u32;
static unsigned long long u64;
static size_t size, size2;
static float f32;
static void *p;
static struct cudaDeviceProp prop;
static struct cudaFuncAttributes func;
static struct cudaPointerAttributes where;
static struct cudaChannelFormatDesc channel;
static struct cudaExtent extent;
static struct cudaMemcpy3DParms parms3d;
static struct cudaPitchedPtr pitched;
static struct cudaResourceDesc resource;
static struct cudaTextureDesc texture;
static cudaTextureObject_t texture_object;
static cudaSurfaceObject_t surface_object;
static struct cudaMemLocation location;
static struct cudaMemPoolProps pool_props;
static struct cudaLaunchConfig_st launch;
static struct cudaHostNodeParams host_node;
static struct cudaKernelNodeParams kernel_node;
static struct cudaMemsetParams memset_node;
static union cudaStreamAttrValue stream_value;
static cudaIpcMemHandle_t ipc_mem;
static cudaIpcEventHandle_t ipc_event;
static enum cudaStreamCaptureStatus capture;
static enum cudaDriverEntryPointQueryResult found;
static cudaLibrary_t library;
static cudaKernel_t kernel;
static cudaFunction_t function;
static cudaGraphExecUpdateResultInfo update_info;
static enum cudaGraphNodeType type;
static char text[64];
static void *kernel_args[1];

static cudaGraph_t good_graph;
static cudaGraphNode_t a_kernel_node, a_memset_node, an_empty_node;
static cudaGraphExec_t good_exec;
static cudaEvent_t other_event;
static struct cudaGraphNodeParams empty_params = {}, unknown_params = {};
static struct cudaMemAllocNodeParams alloc_node;
static cudaGraphInstantiateParams instantiate_params;
static cudaLaunchAttributeValue launch_value;
static enum cudaAtomicOperation atomic_op;

static void CUDART_CB nothing(void *data)
{
	(void)data;
}

static void CUDART_CB callback(cudaStream_t s, cudaError_t e, void *data)
{
	(void)s;
	(void)e;
	(void)data;
}

typedef cudaError_t call_fn(void);

struct bad_call {
	const char *text;
	call_fn *call;
	int native, ours;
	const char *why;
};

#define CALL(expr, code)	     {#expr, []() -> cudaError_t { return expr; }, code, code, NULL}
#define OURS(expr, code, other, why) {#expr, []() -> cudaError_t { return expr; }, code, other, why}

static const struct bad_call calls[] = {
	/* devices */
	CALL(cudaGetDeviceCount(NULL), 1),
	CALL(cudaGetDevice(NULL), 1),
	CALL(cudaSetDevice(-1), 101),
	CALL(cudaSetDevice(4711), 101),
	CALL(cudaInitDevice(4711, 0, 0), 101),
	CALL(cudaInitDevice(0, 0, 0x40), 0),
	CALL(cudaGetDeviceProperties(NULL, 0), 1),
	CALL(cudaGetDeviceProperties(&prop, -1), 101),
	CALL(cudaGetDeviceProperties(&prop, 4711), 101),
	CALL(cudaDeviceGetAttribute(NULL, cudaDevAttrWarpSize, 0), 1),
	CALL(cudaDeviceGetAttribute(&i32, (cudaDeviceAttr)100000, 0), 1),
	CALL(cudaDeviceGetAttribute(&i32, (cudaDeviceAttr)-1, 0), 1),
	CALL(cudaDeviceGetAttribute(&i32, cudaDevAttrWarpSize, -1), 101),
	CALL(cudaChooseDevice(NULL, &prop), 1),
	CALL(cudaChooseDevice(&i32, NULL), 1),
	CALL(cudaSetValidDevices(NULL, 4711), 1),
	CALL(cudaDeviceGetPCIBusId(NULL, 20, 0), 1),
	CALL(cudaDeviceGetPCIBusId(text, 0, 0), 1),
	CALL(cudaDeviceGetPCIBusId(text, 4, 0), 1),
	CALL(cudaDeviceGetPCIBusId(text, 20, 4711), 101),
	CALL(cudaDeviceGetByPCIBusId(NULL, "0000:00:00.0"), 1),
	CALL(cudaDeviceGetByPCIBusId(&i32, NULL), 1),
	CALL(cudaDeviceGetByPCIBusId(&i32, "nonsense"), 1),
	CALL(cudaDeviceGetByPCIBusId(&i32, "ffff:ff:1f.7"), 101),
	CALL(cudaDeviceCanAccessPeer(NULL, 0, 0), 1),
	CALL(cudaDeviceCanAccessPeer(&i32, 0, 4711), 101),
	CALL(cudaDeviceCanAccessPeer(&i32, -1, 0), 101),
	CALL(cudaDeviceEnablePeerAccess(0, 0), 217),
	CALL(cudaDeviceEnablePeerAccess(4711, 0), 101),
	CALL(cudaDeviceEnablePeerAccess(0, 5), 1),
	CALL(cudaDeviceDisablePeerAccess(0), 705),
	CALL(cudaDeviceDisablePeerAccess(4711), 101),
	CALL(cudaDeviceGetP2PAttribute(NULL, cudaDevP2PAttrPerformanceRank, 0, 0), 1),
	CALL(cudaDeviceGetP2PAttribute(&i32, cudaDevP2PAttrPerformanceRank, 0, 4711), 101),
	CALL(cudaDeviceGetP2PAttribute(&i32, cudaDevP2PAttrPerformanceRank, 0, 0), 101),
	CALL(cudaDeviceGetP2PAttribute(&i32, (cudaDeviceP2PAttr)77, 0, 0), 101),
	CALL(cudaDeviceGetLimit(NULL, cudaLimitStackSize), 1),
	CALL(cudaDeviceGetLimit(&size, (cudaLimit)77), 1),
	CALL(cudaDeviceSetLimit((cudaLimit)77, 1), 1),
	CALL(cudaDeviceSetLimit(cudaLimitStackSize, (size_t)1 << 40), 1),
	CALL(cudaDeviceSetLimit(cudaLimitMallocHeapSize, (size_t)1 << 50), 0),
	CALL(cudaDeviceGetCacheConfig(NULL), 1),
	CALL(cudaDeviceSetCacheConfig((cudaFuncCache)77), 1),
	CALL(cudaDeviceGetSharedMemConfig(NULL), 1),
	CALL(cudaDeviceSetSharedMemConfig((cudaSharedMemConfig)77), 1),
	CALL(cudaDeviceGetStreamPriorityRange(NULL, NULL), 0),
	CALL(cudaDeviceGetStreamPriorityRange(&i32, NULL), 0),
	CALL(cudaGetDeviceFlags(NULL), 1),
	CALL(cudaSetDeviceFlags(0x4000), 1),
	CALL(cudaDeviceGetTexture1DLinearMaxWidth(NULL, &channel, 0), 1),
	CALL(cudaDeviceGetTexture1DLinearMaxWidth(&size, NULL, 0), 1),
	CALL(cudaDeviceGetTexture1DLinearMaxWidth(&size, &channel, 4711), 101),
	CALL(cudaDeviceFlushGPUDirectRDMAWrites((cudaFlushGPUDirectRDMAWritesTarget)77,
						cudaFlushGPUDirectRDMAWritesToOwner), 1),
	CALL(cudaDeviceGetDefaultMemPool(NULL, 0), 1),
	CALL(cudaDeviceGetDefaultMemPool(&pool, 4711), 101),
	CALL(cudaDeviceGetMemPool(NULL, 0), 1),
	CALL(cudaDeviceGetMemPool(&pool, -1), 1),
	CALL(cudaDeviceSetMemPool(0, NULL), 1),
	CALL(cudaDriverGetVersion(NULL), 1),
	CALL(cudaRuntimeGetVersion(NULL), 1),
	CALL(cudaCtxResetPersistingL2Cache(), 0),
	CALL(cudaProfilerStart(), 0),
	CALL(cudaProfilerStop(), 0),

	/* errors */
	CALL((cudaGetErrorString((cudaError_t)12345), cudaGetErrorName((cudaError_t)12345),
	      cudaSuccess), 0),
	CALL(cudaPeekAtLastError(), 0),

	/* streams */
	CALL(cudaStreamCreate(NULL), 1),
	CALL(cudaStreamCreateWithFlags(NULL, 0), 1),
	CALL(cudaStreamCreateWithFlags(&stale_stream, 0x40), 1),
	CALL(cudaStreamCreateWithPriority(NULL, 0, 0), 1),
	CALL(cudaStreamCreateWithPriority(&stale_stream, 0x40, 0), 1),
	CALL(cudaStreamDestroy(NULL), 400),
	CALL(cudaStreamDestroy(cudaStreamLegacy), 400),
	CALL(cudaStreamDestroy(cudaStreamPerThread), 400),
	CALL(cudaStreamGetFlags(stream, NULL), 1),
	CALL(cudaStreamGetPriority(stream, NULL), 1),
	CALL(cudaStreamGetId(stream, NULL), 1),
	CALL(cudaStreamGetFlags(NULL, &u32), 0),
	CALL(cudaStreamGetPriority(NULL, &i32), 0),
	CALL(cudaStreamGetId(NULL, &u64), 0),
	CALL(cudaStreamWaitEvent(stream, NULL, 0), 400),
	CALL(cudaStreamWaitEvent(stream, event, 0x40), 1),
	CALL(cudaStreamWaitEvent(stream, fresh_event, 0), 0),
	CALL(cudaStreamAddCallback(stream, NULL, NULL, 0), 1),
	CALL(cudaStreamAddCallback(stream, callback, NULL, 5), 1),
	CALL(cudaLaunchHostFunc(stream, NULL, NULL), 1),
	CALL(cudaLaunchHostFunc(stream, nothing, NULL), 0),
	CALL(cudaStreamAttachMemAsync(stream, NULL, 0, cudaMemAttachSingle), 1),
	CALL(cudaStreamAttachMemAsync(stream, dev, 0, cudaMemAttachSingle), 1),
	CALL(cudaStreamCopyAttributes(NULL, NULL), 0),
	CALL(cudaStreamGetAttribute(stream, (cudaLaunchAttributeID)77, &stream_value), 1),
	CALL(cudaStreamSetAttribute(stream, (cudaLaunchAttributeID)77, &stream_value), 1),
	CALL(cudaStreamIsCapturing(stream, NULL), 1),
	CALL(cudaStreamIsCapturing(stream, &capture), 0),
	CALL(cudaStreamGetCaptureInfo(stream, NULL, NULL, NULL, NULL, NULL, NULL), 1),
	CALL(cudaStreamBeginCapture(stream, (cudaStreamCaptureMode)77), 1),
	CALL(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal), 900),
	CALL(cudaStreamEndCapture(stream, &graph), 401),
	CALL(cudaStreamEndCapture(stream, NULL), 401),

	/* events */
	CALL(cudaEventCreate(NULL), 1),
	CALL(cudaEventCreateWithFlags(NULL, 0), 1),
	CALL(cudaEventCreateWithFlags(&stale_event, 0x40), 1),
	CALL(cudaEventCreateWithFlags(&stale_event, cudaEventInterprocess), 1),
	CALL(cudaEventDestroy(NULL), 400),
	CALL(cudaEventRecord(NULL, stream), 400),
	CALL(cudaEventRecordWithFlags(NULL, stream, 0), 400),
	CALL(cudaEventRecordWithFlags(event, stream, 0x40), 1),
	CALL(cudaEventQuery(NULL), 400),
	CALL(cudaEventSynchronize(NULL), 400),
	CALL(cudaEventQuery(fresh_event), 0),
	CALL(cudaEventSynchronize(fresh_event), 0),
	CALL(cudaEventElapsedTime(NULL, event, event), 1),
	CALL(cudaEventElapsedTime(&f32, NULL, event), 400),
	CALL(cudaEventElapsedTime(&f32, event, NULL), 400),
	CALL(cudaEventElapsedTime(&f32, event, fresh_event), 400),
	CALL(cudaEventElapsedTime(&f32, event, untimed), 400),
	CALL(cudaIpcGetEventHandle(NULL, event), 400),
	CALL(cudaIpcGetEventHandle(&ipc_event, event), 400),
	CALL(cudaIpcGetEventHandle(&ipc_event, NULL), 1),
	CALL(cudaIpcOpenEventHandle(NULL, ipc_event), 1),

	/* memory */
	CALL(cudaMalloc(NULL, 16), 1),
	CALL(cudaMalloc(&p, (size_t)1 << 50), 2),
	CALL(cudaMalloc(&p, SIZE_MAX), 2),
	CALL(cudaMalloc(&p, 0), 0),
	CALL(cudaMallocHost(NULL, 16), 1),
	CALL(cudaMallocHost(&p, (size_t)1 << 50), 2),
	CALL(cudaMallocHost(&p, SIZE_MAX), 2),
	CALL(cudaHostAlloc(NULL, 16, 0), 1),
	CALL(cudaHostAlloc(&p, 16, 0x40), 1),
	CALL(cudaMallocManaged(NULL, 16, cudaMemAttachGlobal), 1),
	CALL(cudaMallocManaged(&p, 16, 77), 1),
	CALL(cudaMallocManaged(&p, 0, cudaMemAttachGlobal), 0),
	CALL(cudaMallocPitch(NULL, &size, 16, 16), 1),
	CALL(cudaMallocPitch(&p, NULL, 16, 16), 1),
	CALL(cudaMallocPitch(&p, &size, SIZE_MAX, 16), 1),
	CALL(cudaMalloc3D(NULL, make_cudaExtent(16, 16, 16)), 1),
	CALL(cudaMalloc3D(&pitched, make_cudaExtent(SIZE_MAX, 16, 16)), 1),
	CALL(cudaFree(NULL), 0),
	CALL(cudaFree(stack_like), 1),
	CALL(cudaFree(dev + 4), 1),
	CALL(cudaFree(pinned), 1),
	CALL(cudaFreeHost(NULL), 0),
	CALL(cudaFreeHost(stack_like), 1),
	CALL(cudaFreeHost(heap), 1),
	CALL(cudaFreeHost(dev), 1),
	CALL(cudaFreeHost(pinned + 64), 1),
	CALL(cudaHostRegister(NULL, 4096, 0), 1),
	CALL(cudaHostRegister(heap, 0, 0), 1),
	CALL(cudaHostRegister(heap, 4096, 0x4000), 1),
	CALL(cudaHostRegister(pinned, 4096, 0), 1),
	CALL(cudaHostRegister(dev, 4096, 0), 1),
	CALL(cudaHostUnregister(NULL), 1),
	CALL(cudaHostUnregister(heap), 713),
	CALL(cudaHostUnregister(dev), 1),
	CALL(cudaHostUnregister(pinned), 1),
	CALL(cudaHostGetDevicePointer(NULL, pinned, 0), 1),
	CALL(cudaHostGetDevicePointer(&p, NULL, 0), 1),
	CALL(cudaHostGetDevicePointer(&p, heap, 0), 1),
	CALL(cudaHostGetDevicePointer(&p, pinned, 1), 1),
	CALL(cudaHostGetFlags(NULL, pinned), 1),
	CALL(cudaHostGetFlags(&u32, NULL), 1),
	CALL(cudaHostGetFlags(&u32, heap), 1),
	CALL(cudaPointerGetAttributes(NULL, dev), 1),
	CALL(cudaPointerGetAttributes(&where, NULL), 0),
	CALL(cudaPointerGetAttributes(&where, heap), 0),
	CALL(cudaMemGetInfo(NULL, NULL), 0),
	CALL(cudaMemAdvise(heap, 4096, cudaMemAdviseSetReadMostly, location), 1),
	CALL(cudaMemAdvise(NULL, 4096, cudaMemAdviseSetReadMostly, location), 1),
	CALL(cudaMemPrefetchAsync(NULL, 4096, location, 0, stream), 1),
	CALL(cudaMemPrefetchAsync(dev, 4096, location, 0, stream), 1),
	CALL(cudaMemRangeGetAttribute(NULL, 4, cudaMemRangeAttributeReadMostly, heap, 4096), 1),
	CALL(cudaMemRangeGetAttribute(&i32, 4, cudaMemRangeAttributeReadMostly, NULL, 4096), 1),
	CALL(cudaIpcGetMemHandle(&ipc_mem, NULL), 1),
	CALL(cudaIpcGetMemHandle(&ipc_mem, heap), 1),
	CALL(cudaIpcOpenMemHandle(NULL, ipc_mem, cudaIpcMemLazyEnablePeerAccess), 1),
	CALL(cudaIpcOpenMemHandle(&p, ipc_mem, 0x40), 1),
	CALL(cudaIpcCloseMemHandle(NULL), 1),
	CALL(cudaIpcCloseMemHandle(dev), 1),

	/* copies */
	CALL(cudaMemcpy(NULL, heap, 16, cudaMemcpyHostToDevice), 1),
	CALL(cudaMemcpy(dev, NULL, 16, cudaMemcpyHostToDevice), 1),
	CALL(cudaMemcpy(heap, NULL, 16, cudaMemcpyDeviceToHost), 1),
	CALL(cudaMemcpy(dev, heap, 16, (cudaMemcpyKind)77), 21),
	CALL(cudaMemcpy(dev, heap, 16, (cudaMemcpyKind)-1), 21),
	CALL(cudaMemcpy(dev, heap, 16, cudaMemcpyDeviceToHost), 1),
	CALL(cudaMemcpy(heap, dev, 16, cudaMemcpyHostToDevice), 1),
	CALL(cudaMemcpy(dev, heap, 16, cudaMemcpyDeviceToDevice), 1),
	CALL(cudaMemcpy(dev, heap, (size_t)1 << 40, cudaMemcpyHostToDevice), 1),
	CALL(cudaMemcpy(NULL, NULL, 0, (cudaMemcpyKind)77), 0),
	CALL(cudaMemcpy(dev, heap, 16, cudaMemcpyDefault), 0),
	CALL(cudaMemcpyAsync(NULL, heap, 16, cudaMemcpyHostToDevice, stream), 1),
	CALL(cudaMemcpyAsync(dev, NULL, 16, cudaMemcpyHostToDevice, stream), 1),
	CALL(cudaMemcpyAsync(dev, heap, 16, (cudaMemcpyKind)77, stream), 21),
	CALL(cudaMemcpyAsync(dev, heap, 16, cudaMemcpyDeviceToHost, stream), 1),
	CALL(cudaMemcpyAsync(dev, dev + BYTES, (size_t)1 << 40, cudaMemcpyDeviceToDevice, stream), 1),
	CALL(cudaMemcpy2D(dev, 8, heap, 16, 16, 4, cudaMemcpyHostToDevice), 12),
	CALL(cudaMemcpy2D(dev, 16, heap, 8, 16, 4, cudaMemcpyHostToDevice), 12),
	CALL(cudaMemcpy2D(NULL, 16, heap, 16, 16, 4, cudaMemcpyHostToDevice), 1),
	CALL(cudaMemcpy2D(dev, 16, heap, 16, 16, 4, (cudaMemcpyKind)77), 21),
	CALL(cudaMemcpy2D(dev, 16, heap, 16, 0, 4, cudaMemcpyHostToDevice), 0),
	OURS(cudaMemcpy2D(dev, SIZE_MAX, heap, 16, 16, 4, cudaMemcpyHostToDevice), 0, 1,
	     "rows that lie outside of all addresses are refused"),
	CALL(cudaMemcpy2DAsync(dev, 8, heap, 16, 16, 4, cudaMemcpyHostToDevice, stream), 12),
	CALL(cudaMemcpy2DAsync(dev, 16, NULL, 16, 16, 4, cudaMemcpyHostToDevice, stream), 1),
	CALL(cudaMemcpy3D(NULL), 1),
	CALL(cudaMemcpy3D(&parms3d), 0),
	CALL(cudaMemcpy3DAsync(NULL, stream), 1),
	CALL(cudaMemcpy3DPeer(NULL), 1),
	CALL(cudaMemcpy3DPeerAsync(NULL, stream), 1),
	CALL(cudaMemcpyPeer(dev, 4711, dev + 64, 0, 16), 101),
	CALL(cudaMemcpyPeer(dev, 0, NULL, 0, 16), 1),
	CALL(cudaMemcpyPeerAsync(dev, 0, dev + 64, -1, 16, stream), 101),
	CALL(cudaMemcpyBatchAsync(NULL, NULL, NULL, 1, NULL, NULL, 0, stream), 1),
	CALL(cudaMemset(NULL, 0, 16), 1),
	CALL(cudaMemset(heap, 0, 16), 1),
	CALL(cudaMemset(dev, 0, (size_t)1 << 40), 1),
	CALL(cudaMemset(NULL, 0, 0), 0),
	CALL(cudaMemsetAsync(NULL, 0, 16, stream), 1),
	CALL(cudaMemsetAsync(heap, 0, 16, stream), 1),
	CALL(cudaMemset2D(dev, 8, 0, 16, 4), 1),
	CALL(cudaMemset2D(NULL, 16, 0, 16, 4), 1),
	CALL(cudaMemset2DAsync(NULL, 16, 0, 16, 4, stream), 1),
	CALL(cudaMemset3D(pitched, 0, make_cudaExtent(16, 4, 4)), 1),
	CALL(cudaMemset3DAsync(pitched, 0, make_cudaExtent(16, 4, 4), stream), 1),
	CALL(cudaMemcpyToSymbol(stack_like, heap, 4), 13),
	CALL(cudaMemcpyToSymbol((const void *)NULL, heap, 4), 13),
	CALL(cudaMemcpyToSymbol(table, heap, 65), 1),
	CALL(cudaMemcpyToSymbol(table, heap, 4, 61), 1),
	CALL(cudaMemcpyToSymbol(table, heap, 4, (size_t)-4), 1),
	CALL(cudaMemcpyToSymbol(table, NULL, 4), 1),
	CALL(cudaMemcpyToSymbol(table, heap, 4, 0, (cudaMemcpyKind)77), 21),
	CALL(cudaMemcpyToSymbol(table, heap, 4, 0, cudaMemcpyDeviceToHost), 21),
	CALL(cudaMemcpyToSymbolAsync(stack_like, heap, 4, 0, cudaMemcpyHostToDevice, stream), 13),
	CALL(cudaMemcpyFromSymbol(heap, stack_like, 4), 13),
	CALL(cudaMemcpyFromSymbol(heap, table, 65), 1),
	CALL(cudaMemcpyFromSymbol((void *)NULL, table, 4), 1),
	CALL(cudaMemcpyFromSymbol(heap, table, 4, 0, cudaMemcpyHostToDevice), 21),
	CALL(cudaMemcpyFromSymbolAsync(heap, stack_like, 4, 0, cudaMemcpyDeviceToHost, stream), 13),
	CALL(cudaGetSymbolAddress(&p, stack_like), 13),
	CALL(cudaGetSymbolSize(&size, stack_like), 13),

	/* stream-ordered memory */
	CALL(cudaMallocAsync(NULL, 16, stream), 1),
	CALL(cudaMallocAsync(&p, (size_t)1 << 50, stream), 2),
	CALL(cudaFreeAsync(NULL, stream), 0),
	CALL(cudaFreeAsync(heap, stream), 1),
	CALL(cudaFreeAsync(dev + 4, stream), 1),
	CALL(cudaMallocFromPoolAsync(NULL, 16, pool, stream), 1),
	CALL(cudaMallocFromPoolAsync(&p, 16, (cudaMemPool_t)NULL, stream), 1),
	CALL(cudaMemPoolCreate(NULL, &pool_props), 1),
	CALL(cudaMemPoolCreate(&pool, NULL), 1),
	CALL(cudaMemPoolCreate(&pool, &pool_props), 1),
	CALL(cudaMemPoolDestroy(NULL), 1),
	CALL(cudaMemPoolTrimTo(NULL, 0), 1),
	CALL(cudaMemPoolGetAttribute(NULL, cudaMemPoolAttrUsedMemCurrent, &u64), 1),
	CALL(cudaMemPoolSetAttribute(NULL, cudaMemPoolAttrReleaseThreshold, &u64), 1),
	CALL(cudaMemPoolGetAccess(NULL, NULL, &location), 1),

	/* arrays, textures, surfaces */
	CALL(cudaMallocArray(NULL, &channel, 16, 16), 1),
	CALL(cudaMallocArray(&array, NULL, 16, 16), 1),
	CALL(cudaMallocArray(&array, &channel, 0, 16), 1),
	CALL(cudaMallocArray(&array, &channel, (size_t)1 << 40, 16), 1),
	CALL(cudaMalloc3DArray(NULL, &channel, make_cudaExtent(4, 4, 4)), 1),
	CALL(cudaMalloc3DArray(&array, &channel, make_cudaExtent(0, 4, 4)), 1),
	CALL(cudaFreeArray(NULL), 0),
	CALL(cudaFreeMipmappedArray(NULL), 0),
	CALL(cudaArrayGetInfo(&channel, &extent, &u32, NULL), 400),
	CALL(cudaGetChannelDesc(NULL, NULL), 1),
	CALL(cudaGetChannelDesc(&channel, NULL), 400),
	CALL(cudaMallocMipmappedArray(NULL, &channel, make_cudaExtent(4, 4, 0), 1), 1),
	CALL(cudaGetMipmappedArrayLevel(&array, NULL, 0), 400),
	CALL(cudaMemcpy2DToArray(NULL, 0, 0, heap, 16, 16, 4, cudaMemcpyHostToDevice), 400),
	CALL(cudaMemcpy2DFromArray(heap, 16, NULL, 0, 0, 16, 4, cudaMemcpyDeviceToHost), 400),
	CALL(cudaMemcpy2DArrayToArray(NULL, 0, 0, NULL, 0, 0, 16, 4, cudaMemcpyDeviceToDevice), 400),
	CALL(cudaMemcpy2DToArrayAsync(NULL, 0, 0, heap, 16, 16, 4, cudaMemcpyHostToDevice, stream), 400),
	CALL(cudaMemcpy2DFromArrayAsync(heap, 16, NULL, 0, 0, 16, 4, cudaMemcpyDeviceToHost,
					stream), 400),
	CALL(cudaCreateTextureObject(NULL, &resource, &texture, NULL), 400),
	CALL(cudaCreateTextureObject(&texture_object, NULL, &texture, NULL), 1),
	CALL(cudaCreateTextureObject(&texture_object, &resource, NULL, NULL), 400),
	CALL(cudaCreateTextureObject(&texture_object, &resource, &texture, NULL), 400),
	CALL(cudaDestroyTextureObject(0), 0),
	CALL(cudaGetTextureObjectResourceDesc(NULL, 0), 1),
	CALL(cudaGetTextureObjectTextureDesc(NULL, 0), 400),
	CALL(cudaCreateSurfaceObject(NULL, &resource), 1),
	CALL(cudaCreateSurfaceObject(&surface_object, NULL), 1),
	CALL(cudaCreateSurfaceObject(&surface_object, &resource), 400),
	CALL(cudaDestroySurfaceObject(0), 0),
	OURS(cudaGetSurfaceObjectResourceDesc(NULL, 0), 101, 1, "the null pointer is looked at first"),

	/* kernels */
	CALL(cudaLaunchKernel((const void *)NULL, dim3(1), dim3(1), kernel_args, 0, stream), 98),
	CALL(cudaLaunchKernel((const void *)stack_like, dim3(1), dim3(1), kernel_args, 0, stream), 400),
	CALL(cudaLaunchKernel((const void *)add_one, dim3(0), dim3(1), kernel_args, 0, stream), 1),
	CALL(cudaLaunchKernel((const void *)add_one, dim3(1), dim3(0), kernel_args, 0, stream), 1),
	CALL(cudaLaunchKernel((const void *)add_one, dim3(1), dim3(1025), kernel_args, 0, stream), 1),
	CALL(cudaLaunchKernel((const void *)add_one, dim3(1), dim3(1, 1, 65), kernel_args, 0,
			      stream), 1),
	CALL(cudaLaunchKernel((const void *)add_one, dim3(1, 65536), dim3(1), kernel_args, 0,
			      stream), 1),
	CALL(cudaLaunchKernel((const void *)add_one, dim3(1), dim3(1), kernel_args, 1 << 20,
			      stream), 1),
	CALL(cudaLaunchCooperativeKernel((const void *)NULL, dim3(1), dim3(1), kernel_args, 0,
					 stream), 98),
	CALL(cudaLaunchCooperativeKernel((const void *)add_one, dim3(1 << 20), dim3(1024),
					 kernel_args, 0, stream), 720),
	CALL(cudaLaunchKernelExC(&launch, (const void *)NULL, kernel_args), 98),
	CALL(cudaLaunchKernelExC(&launch, (const void *)add_one, kernel_args), 0),
	CALL(cudaFuncGetAttributes(NULL, (const void *)add_one), 1),
	CALL(cudaFuncGetAttributes(&func, (const void *)NULL), 98),
	CALL(cudaFuncGetAttributes(&func, (const void *)stack_like), 400),
	CALL(cudaFuncSetAttribute((const void *)add_one, (cudaFuncAttribute)77, 1), 1),
	CALL(cudaFuncSetAttribute((const void *)add_one,
				  cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 30), 1),
	CALL(cudaFuncSetAttribute((const void *)NULL, cudaFuncAttributeMaxDynamicSharedMemorySize,
				  1),
	     98),
	CALL(cudaFuncSetCacheConfig((const void *)add_one, (cudaFuncCache)77), 1),
	CALL(cudaFuncSetCacheConfig((const void *)stack_like, cudaFuncCachePreferL1), 400),
	CALL(cudaFuncGetName(NULL, (const void *)add_one), 1),
	CALL(cudaFuncGetName((const char **)&p, (const void *)stack_like), 400),
	CALL(cudaFuncGetParamInfo((const void *)add_one, 1, &size, &size2), 1),
	CALL(cudaFuncGetParamInfo((const void *)add_one, 0, NULL, &size2), 1),
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, (const void *)add_one, 32, 0), 1),
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&i32, (const void *)add_one, 0, 0), 1),
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&i32, (const void *)add_one, -1, 0), 1),
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&i32, (const void *)stack_like, 32, 0),
	     400),
	CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&i32, (const void *)add_one, 32,
								    0, 77),
	     1),
	CALL(cudaGetFuncBySymbol(NULL, (const void *)add_one), 0),
	CALL(cudaGetFuncBySymbol(&function, (const void *)stack_like), 98),
	CALL(cudaGetKernel(NULL, (const void *)add_one), 1),
	CALL(cudaGetKernel(&kernel, (const void *)stack_like), 98),

	/* libraries */
	CALL(cudaLibraryLoadData(NULL, text, NULL, NULL, 0, NULL, NULL, 0), 1),
	CALL(cudaLibraryLoadData(&library, NULL, NULL, NULL, 0, NULL, NULL, 0), 1),
	CALL(cudaLibraryLoadFromFile(&library, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0), 301),
	CALL(cudaLibraryLoadFromFile(&library, NULL, NULL, NULL, 0, NULL, NULL, 0), 1),
	CALL(cudaLibraryUnload(NULL), 400),
	CALL(cudaLibraryGetKernel(NULL, NULL, "k"), 1),
	CALL(cudaLibraryGetKernel(&kernel, NULL, "k"), 400),
	CALL(cudaLibraryGetKernelCount(NULL, NULL), 1),
	CALL(cudaLibraryGetKernelCount(&u32, NULL), 400),
	CALL(cudaLibraryEnumerateKernels(NULL, 1, NULL), 1),
	CALL(cudaLibraryEnumerateKernels(&kernel, 1, NULL), 400),
	CALL(cudaLibraryGetManaged(&p, &size, NULL, "g"), 400),
	CALL(cudaLibraryGetUnifiedFunction(&p, NULL, "f"), 400),
	CALL(cudaLibraryGetGlobal(&p, &size, NULL, "g"), 400),

	/* graphs */
	CALL(cudaGraphCreate(NULL, 0), 1),
	CALL(cudaGraphCreate(&graph, 77), 1),
	CALL(cudaGraphDestroy(NULL), 1),
	CALL(cudaGraphClone(NULL, NULL), 1),
	CALL(cudaGraphAddEmptyNode(NULL, NULL, NULL, 0), 1),
	CALL(cudaGraphAddKernelNode(&node, NULL, NULL, 0, &kernel_node), 98),
	CALL(cudaGraphAddHostNode(&node, NULL, NULL, 0, &host_node), 1),
	CALL(cudaGraphAddMemsetNode(&node, NULL, NULL, 0, &memset_node), 1),
	CALL(cudaGraphAddMemcpyNode1D(&node, NULL, NULL, 0, dev, heap, 16, cudaMemcpyHostToDevice), 1),
	CALL(cudaGraphAddChildGraphNode(&node, NULL, NULL, 0, NULL), 1),
	CALL(cudaGraphAddDependencies(NULL, NULL, NULL, NULL, 1), 1),
	CALL(cudaGraphGetNodes(NULL, nodes, &size), 1),
	CALL(cudaGraphGetRootNodes(NULL, nodes, &size), 1),
	CALL(cudaGraphGetEdges(NULL, nodes, nodes, NULL, &size), 1),
	CALL(cudaGraphNodeGetType(NULL, &type), 1),
	CALL(cudaGraphDestroyNode(NULL), 1),
	CALL(cudaGraphInstantiate(NULL, NULL, 0), 1),
	CALL(cudaGraphInstantiateWithFlags(&exec, NULL, 0), 1),
	CALL(cudaGraphLaunch(NULL, stream), 1),
	CALL(cudaGraphUpload(NULL, stream), 1),
	CALL(cudaGraphExecDestroy(NULL), 1),
	CALL(cudaGraphExecUpdate(NULL, NULL, &update_info), 1),
	CALL(cudaGraphDebugDotPrint(NULL, "/dev/null", 0), 1),
	CALL(cudaGraphConditionalHandleCreate(NULL, graph, 0, 0), 1),
	CALL(cudaGraphConditionalHandleCreate(&u64, NULL, 0, 0), 1),
	CALL(cudaGraphConditionalHandleCreate(&u64, graph, 0, 2), 1),
	CALL(cudaUserObjectCreate(NULL, NULL, nothing, 1, cudaUserObjectNoDestructorSync), 1),
	CALL(cudaUserObjectRelease(NULL, 1), 1),
	CALL(cudaUserObjectRetain(NULL, 1), 1),

	/* nodes of graphs */
	CALL(cudaGraphAddNode(NULL, good_graph, NULL, NULL, 0, &empty_params), 1),
	CALL(cudaGraphAddNode(&node, NULL, NULL, NULL, 0, &empty_params), 1),
	CALL(cudaGraphAddNode(&node, good_graph, NULL, NULL, 0, NULL), 1),
	CALL(cudaGraphAddNode(&node, good_graph, NULL, NULL, 1, &empty_params), 1),
	CALL(cudaGraphAddNode(&node, good_graph, NULL, NULL, 0, &unknown_params), 1),
	CALL(cudaGraphAddMemcpyNode(&node, good_graph, NULL, 0, NULL), 1),
	CALL(cudaGraphAddMemcpyNode(&node, NULL, NULL, 0, &parms3d), 1),
	CALL(cudaGraphAddMemcpyNode(&node, good_graph, NULL, 0, &parms3d), 1),
	CALL(cudaGraphAddMemcpyNodeToSymbol(&node, good_graph, NULL, 0, stack_like, heap, 16, 0,
					    cudaMemcpyHostToDevice), 13),
	CALL(cudaGraphAddMemcpyNodeToSymbol(&node, good_graph, NULL, 0, table, heap, 4096, 0,
					    cudaMemcpyHostToDevice), 1),
	CALL(cudaGraphAddMemcpyNodeToSymbol(&node, good_graph, NULL, 0, table, heap, 16, 0,
					    cudaMemcpyDeviceToHost), 21),
	CALL(cudaGraphAddMemcpyNodeFromSymbol(&node, good_graph, NULL, 0, heap, stack_like, 16, 0,
					      cudaMemcpyDeviceToHost), 13),
	CALL(cudaGraphAddMemcpyNodeFromSymbol(&node, good_graph, NULL, 0, heap, table, 16, 60,
					      cudaMemcpyDeviceToHost), 1),
	CALL(cudaGraphAddMemcpyNode1D(&node, good_graph, NULL, 0, dev, heap, 16, (cudaMemcpyKind)77),
	     21),
	CALL(cudaGraphAddMemcpyNode1D(&node, good_graph, NULL, 0, NULL, heap, 16,
				      cudaMemcpyHostToDevice), 1),
	CALL(cudaGraphAddEventRecordNode(&node, good_graph, NULL, 0, NULL), 1),
	CALL(cudaGraphAddEventRecordNode(NULL, good_graph, NULL, 0, event), 1),
	CALL(cudaGraphAddEventWaitNode(&node, good_graph, NULL, 0, NULL), 1),
	CALL(cudaGraphAddEventWaitNode(&node, NULL, NULL, 0, event), 1),
	CALL(cudaGraphAddMemAllocNode(&node, good_graph, NULL, 0, NULL), 1),
	CALL(cudaGraphAddMemAllocNode(&node, good_graph, NULL, 0, &alloc_node), 1),
	CALL(cudaGraphAddMemFreeNode(&node, good_graph, NULL, 0, NULL), 1),
	CALL(cudaGraphAddMemFreeNode(&node, good_graph, NULL, 0, heap), 1),
	CALL(cudaGraphAddMemsetNode(&node, good_graph, NULL, 0, NULL), 1),
	CALL(cudaGraphAddMemsetNode(&node, good_graph, NULL, 0, &memset_node), 1),
	CALL(cudaGraphAddHostNode(&node, good_graph, NULL, 0, NULL), 1),
	CALL(cudaGraphAddHostNode(&node, good_graph, NULL, 0, &host_node), 1),
	CALL(cudaGraphAddKernelNode(&node, good_graph, NULL, 0, NULL), 1),
	CALL(cudaGraphAddKernelNode(&node, good_graph, NULL, 0, &kernel_node), 98),
	CALL(cudaGraphKernelNodeGetParams(NULL, &kernel_node), 1),
	CALL(cudaGraphKernelNodeGetParams(an_empty_node, &kernel_node), 1),
	CALL(cudaGraphKernelNodeSetParams(NULL, &kernel_node), 98),
	CALL(cudaGraphKernelNodeSetParams(a_memset_node, &kernel_node), 98),
	CALL(cudaGraphKernelNodeSetParams(a_kernel_node, NULL), 1),
	CALL(cudaGraphKernelNodeGetAttribute(NULL, cudaLaunchAttributePriority, &launch_value), 1),
	CALL(cudaGraphKernelNodeGetAttribute(a_kernel_node, (cudaLaunchAttributeID)77, &launch_value),
	     1),
	CALL(cudaGraphKernelNodeSetAttribute(NULL, cudaLaunchAttributePriority, &launch_value), 1),
	CALL(cudaGraphKernelNodeSetAttribute(a_kernel_node, (cudaLaunchAttributeID)77, &launch_value),
	     1),
	CALL(cudaGraphKernelNodeCopyAttributes(NULL, a_kernel_node), 1),
	CALL(cudaGraphKernelNodeCopyAttributes(a_kernel_node, NULL), 1),
	CALL(cudaGraphMemcpyNodeGetParams(NULL, &parms3d), 1),
	CALL(cudaGraphMemcpyNodeGetParams(a_kernel_node, &parms3d), 1),
	CALL(cudaGraphMemcpyNodeSetParams(a_kernel_node, &parms3d), 1),
	CALL(cudaGraphMemcpyNodeSetParams(NULL, &parms3d), 1),
	CALL(cudaGraphMemcpyNodeSetParams1D(NULL, dev, heap, 16, cudaMemcpyHostToDevice), 1),
	CALL(cudaGraphMemcpyNodeSetParamsToSymbol(NULL, table, heap, 16, 0, cudaMemcpyHostToDevice),
	     1),
	CALL(cudaGraphMemcpyNodeSetParamsFromSymbol(NULL, heap, table, 16, 0,
						    cudaMemcpyDeviceToHost), 1),
	CALL(cudaGraphMemsetNodeGetParams(NULL, &memset_node), 1),
	CALL(cudaGraphMemsetNodeGetParams(a_kernel_node, &memset_node), 1),
	CALL(cudaGraphMemsetNodeSetParams(NULL, &memset_node), 1),
	CALL(cudaGraphMemsetNodeSetParams(a_kernel_node, &memset_node), 1),
	CALL(cudaGraphHostNodeGetParams(NULL, &host_node), 1),
	CALL(cudaGraphHostNodeSetParams(NULL, &host_node), 1),
	CALL(cudaGraphHostNodeSetParams(a_kernel_node, &host_node), 1),
	CALL(cudaGraphChildGraphNodeGetGraph(NULL, &graph), 1),
	CALL(cudaGraphChildGraphNodeGetGraph(a_kernel_node, &graph), 1),
	CALL(cudaGraphEventRecordNodeGetEvent(NULL, &other_event), 1),
	CALL(cudaGraphEventRecordNodeGetEvent(a_kernel_node, &other_event), 1),
	CALL(cudaGraphEventRecordNodeSetEvent(NULL, event), 1),
	CALL(cudaGraphEventRecordNodeSetEvent(a_kernel_node, event), 1),
	CALL(cudaGraphEventWaitNodeGetEvent(NULL, &other_event), 1),
	CALL(cudaGraphEventWaitNodeSetEvent(NULL, event), 1),
	CALL(cudaGraphEventWaitNodeSetEvent(a_kernel_node, event), 1),
	CALL(cudaGraphMemAllocNodeGetParams(NULL, &alloc_node), 1),
	CALL(cudaGraphMemAllocNodeGetParams(a_kernel_node, &alloc_node), 1),
	CALL(cudaGraphMemFreeNodeGetParams(NULL, &p), 1),
	CALL(cudaGraphNodeSetParams(NULL, &empty_params), 1),
	CALL(cudaGraphNodeSetParams(a_kernel_node, NULL), 1),
	CALL(cudaGraphNodeSetParams(a_kernel_node, &empty_params), 1),
	CALL(cudaGraphNodeGetDependencies(NULL, nodes, NULL, &size), 1),
	CALL(cudaGraphNodeGetDependencies(a_kernel_node, NULL, NULL, NULL), 1),
	CALL(cudaGraphNodeGetDependentNodes(NULL, nodes, NULL, &size), 1),
	CALL(cudaGraphNodeFindInClone(NULL, a_kernel_node, good_graph), 1),
	CALL(cudaGraphNodeFindInClone(&node, NULL, good_graph), 1),
	CALL(cudaGraphNodeFindInClone(&node, a_kernel_node, NULL), 1),
	CALL(cudaGraphNodeFindInClone(&node, a_kernel_node, good_graph), 1),
	CALL(cudaGraphRemoveDependencies(NULL, &a_kernel_node, &a_memset_node, NULL, 1), 1),
	CALL(cudaGraphAddDependencies(good_graph, &a_kernel_node, &a_kernel_node, NULL, 1), 1),
	CALL(cudaGraphAddDependencies(good_graph, NULL, NULL, NULL, 1), 1),
	CALL(cudaGraphRetainUserObject(good_graph, NULL, 1, 0), 1),
	CALL(cudaGraphReleaseUserObject(good_graph, NULL, 1), 1),
	CALL(cudaGraphRetainUserObject(NULL, NULL, 1, 0), 1),

	/* instances of graphs */
	CALL(cudaGraphInstantiateWithParams(&exec, good_graph, NULL), 1),
	CALL(cudaGraphInstantiateWithParams(&exec, NULL, &instantiate_params), 1),
	CALL(cudaGraphInstantiate(&exec, good_graph, 0x4000), 1),
	CALL(cudaGraphExecGetFlags(NULL, &u64), 1),
	CALL(cudaGraphExecGetFlags(good_exec, NULL), 1),
	CALL(cudaGraphExecKernelNodeSetParams(NULL, a_kernel_node, &kernel_node), 98),
	CALL(cudaGraphExecKernelNodeSetParams(good_exec, NULL, &kernel_node), 98),
	CALL(cudaGraphExecKernelNodeSetParams(good_exec, a_memset_node, &kernel_node), 98),
	CALL(cudaGraphExecMemcpyNodeSetParams(NULL, a_kernel_node, &parms3d), 1),
	CALL(cudaGraphExecMemcpyNodeSetParams(good_exec, a_kernel_node, NULL), 1),
	CALL(cudaGraphExecMemcpyNodeSetParams1D(good_exec, a_kernel_node, dev, heap, 16,
						cudaMemcpyHostToDevice), 1),
	CALL(cudaGraphExecMemcpyNodeSetParamsToSymbol(good_exec, a_kernel_node, table, heap, 16, 0,
						      cudaMemcpyHostToDevice), 1),
	CALL(cudaGraphExecMemcpyNodeSetParamsFromSymbol(good_exec, a_kernel_node, heap, table, 16,
							0, cudaMemcpyDeviceToHost), 1),
	CALL(cudaGraphExecMemsetNodeSetParams(good_exec, a_kernel_node, &memset_node), 1),
	CALL(cudaGraphExecMemsetNodeSetParams(NULL, a_memset_node, &memset_node), 1),
	CALL(cudaGraphExecHostNodeSetParams(good_exec, a_kernel_node, &host_node), 1),
	CALL(cudaGraphExecEventRecordNodeSetEvent(good_exec, a_kernel_node, event), 1),
	CALL(cudaGraphExecEventWaitNodeSetEvent(good_exec, a_kernel_node, event), 1),
	CALL(cudaGraphExecNodeSetParams(good_exec, a_kernel_node, NULL), 1),
	CALL(cudaGraphExecNodeSetParams(NULL, a_kernel_node, &empty_params), 1),
	CALL(cudaGraphNodeSetEnabled(NULL, a_kernel_node, 1), 1),
	CALL(cudaGraphNodeSetEnabled(good_exec, NULL, 1), 1),
	CALL(cudaGraphNodeSetEnabled(good_exec, an_empty_node, 1), 1),
	CALL(cudaGraphNodeGetEnabled(good_exec, a_kernel_node, NULL), 1),
	CALL(cudaGraphNodeGetEnabled(NULL, a_kernel_node, &u32), 1),
	CALL(cudaGraphExecUpdate(good_exec, NULL, &update_info), 1),
	CALL(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, NULL), 1),
	CALL(cudaDeviceGetGraphMemAttribute(4711, cudaGraphMemAttrUsedMemCurrent, &u64), 101),
	CALL(cudaDeviceGetGraphMemAttribute(0, (cudaGraphMemAttributeType)77, &u64), 1),
	CALL(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &u64), 1),
	CALL(cudaDeviceSetGraphMemAttribute(4711, cudaGraphMemAttrUsedMemHigh, &u64), 101),
	CALL(cudaDeviceGraphMemTrim(4711), 101),

	/* captures */
	CALL(cudaStreamBeginCaptureToGraph(stream, NULL, NULL, NULL, 0, cudaStreamCaptureModeGlobal),
	     1),
	CALL(cudaStreamBeginCaptureToGraph(stream, good_graph, NULL, NULL, 1,
					   cudaStreamCaptureModeGlobal), 1),
	CALL(cudaStreamBeginCaptureToGraph(stream, good_graph, NULL, NULL, 0,
					   (cudaStreamCaptureMode)77), 1),
	CALL(cudaStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 0), 401),
	CALL(cudaStreamUpdateCaptureDependencies(stream, NULL, NULL, 0, 77), 401),

	/* batches */
	CALL(cudaMemcpy3DBatchAsync(1, NULL, 0, stream), 1),
	CALL(cudaMemcpy3DBatchAsync(0, NULL, 0, stream), 1),
	CALL(cudaMemPrefetchBatchAsync(NULL, NULL, 1, &location, NULL, 1, 0, stream), 1),
	CALL(cudaMemDiscardBatchAsync(NULL, NULL, 1, 0, stream), 1),
	CALL(cudaMemDiscardAndPrefetchBatchAsync(NULL, NULL, 1, &location, NULL, 1, 0, stream), 1),
	CALL(cudaMemRangeGetAttributes(NULL, NULL, NULL, 1, dev, 16), 1),

	/* more functions of arrays, pools, kernels and logs */
	CALL(cudaArrayGetMemoryRequirements(NULL, NULL, 0), 1),
	CALL(cudaArrayGetPlane(&array, NULL, 0), 400),
	CALL(cudaArrayGetSparseProperties(NULL, NULL), 1),
	CALL(cudaMipmappedArrayGetMemoryRequirements(NULL, NULL, 0), 1),
	CALL(cudaMipmappedArrayGetSparseProperties(NULL, NULL), 1),
	CALL(cudaMemcpyToArray(NULL, 0, 0, heap, 16, cudaMemcpyHostToDevice), 400),
	CALL(cudaMemcpyToArrayAsync(NULL, 0, 0, heap, 16, cudaMemcpyHostToDevice, stream), 400),
	CALL(cudaMemcpyFromArray(heap, NULL, 0, 0, 16, cudaMemcpyDeviceToHost), 400),
	CALL(cudaMemcpyFromArrayAsync(heap, NULL, 0, 0, 16, cudaMemcpyDeviceToHost, stream), 400),
	CALL(cudaMemcpyArrayToArray(NULL, 0, 0, NULL, 0, 0, 16, cudaMemcpyDeviceToDevice), 400),
	CALL(cudaGetTextureObjectResourceViewDesc(NULL, 0), 1),
	CALL(cudaMemGetDefaultMemPool(NULL, &location, cudaMemAllocationTypePinned), 1),
	CALL(cudaMemGetDefaultMemPool(&pool, NULL, cudaMemAllocationTypePinned), 1),
	CALL(cudaMemGetMemPool(NULL, &location, cudaMemAllocationTypePinned), 1),
	CALL(cudaMemSetMemPool(&location, cudaMemAllocationTypePinned, NULL), 1),
	CALL(cudaDeviceGetHostAtomicCapabilities(NULL, &atomic_op, 1, 0), 1),
	CALL(cudaDeviceGetHostAtomicCapabilities(&u32, &atomic_op, 1, 4711), 101),
	CALL(cudaDeviceGetP2PAtomicCapabilities(&u32, &atomic_op, 1, 0, 4711), 101),
	CALL(cudaFuncSetSharedMemConfig((const void *)stack_like, cudaSharedMemBankSizeDefault), 400),
	CALL(cudaFuncSetSharedMemConfig((const void *)add_one, (cudaSharedMemConfig)77), 1),
	CALL(cudaKernelSetAttributeForDevice(NULL, cudaFuncAttributeMaxDynamicSharedMemorySize, 1, 0),
	     400),
	CALL(cudaOccupancyAvailableDynamicSMemPerBlock(&size, (const void *)add_one, 0, 32), 1),
	CALL(cudaOccupancyMaxActiveClusters(NULL, (const void *)add_one, &launch), 1),
	CALL(cudaOccupancyMaxActiveClusters(&i32, (const void *)add_one, &launch), 0),
	CALL(cudaOccupancyMaxPotentialClusterSize(NULL, (const void *)add_one, &launch), 1),
	CALL(cudaLogsCurrent(NULL, 0), 1),
	CALL(cudaLogsDumpToFile(NULL, "/nonexistent/file", 0), 1),
	CALL(cudaLogsDumpToMemory(NULL, NULL, NULL, 0), 1),
	CALL(cudaLogsRegisterCallback(NULL, NULL, NULL), 1),
	CALL(cudaLogsUnregisterCallback(NULL), 1),

	/* functions of the driver */
	CALL(cudaGetDriverEntryPointByVersion("noSuchFunction", &p, 13000, cudaEnableDefault,
					      &found), 0),

	/* a good call after all of these */
	CALL(cudaMemcpy(dev, heap, BYTES, cudaMemcpyHostToDevice), 0),
	CALL(cudaDeviceSynchronize(), 0),
};

static void set_up_graph(void)
{
	struct cudaKernelNodeParams k = {};
	struct cudaMemsetParams m = {};

	k.func = (void *)add_one;
	k.gridDim = k.blockDim = dim3(1);
	k.kernelParams = kernel_args;
	m.dst = dev;
	m.elementSize = 1;
	m.width = 16;
	m.height = 1;
	CHECK(cudaGraphCreate(&good_graph, 0));
	CHECK(cudaGraphAddEmptyNode(&an_empty_node, good_graph, NULL, 0));
	CHECK(cudaGraphAddKernelNode(&a_kernel_node, good_graph, NULL, 0, &k));
	CHECK(cudaGraphAddMemsetNode(&a_memset_node, good_graph, NULL, 0, &m));
	CHECK(cudaGraphInstantiate(&good_exec, good_graph, 0));
	empty_params.type = cudaGraphNodeTypeEmpty;
	unknown_params.type = (cudaGraphNodeType)77;
}

static void set_up(void)
{
	heap = (char *)malloc(BYTES);
	REQUIRE(heap, "out of memory");
	memset(heap, 1, BYTES);
	CHECK(cudaMalloc(&dev, BYTES));
	CHECK(cudaMallocHost(&pinned, BYTES));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaEventCreate(&event));
	CHECK(cudaEventCreate(&fresh_event));
	CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	CHECK(cudaEventRecord(event, stream));
	CHECK(cudaEventRecord(untimed, stream));
	CHECK(cudaStreamSynchronize(stream));
	channel = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
	kernel_args[0] = &dev;
	set_up_graph();
}

/* Prints the table of docs/errors.md. */
static void differences(void)
{
	puts("<!-- SPDX-License-Identifier: GPL-2.0-or-later -->\n"
	     "<!-- Printed by build/tests/guest/bad_calls --differences; do not edit. -->\n"
	     "# Where an error code differs from NVIDIA's\n\n"
	     "`tests/guest/errors/bad_calls.cu` makes every call of its table natively and in the VM. These\n"
	     "give another code than NVIDIA's library does on a real GPU; all the others the same.\n\n"
	     "| call | native | here | why |\n|---|---|---|---|");
	for (const struct bad_call &c : calls)
		if (c.native != c.ours)
			printf("| `%s` | %s | %s | %s |\n", c.text,
			       cudaGetErrorName((cudaError_t)c.native),
			       cudaGetErrorName((cudaError_t)c.ours), c.why);
}

int main(int argc, char **argv)
{
	bool record = argc > 1 && !strcmp(argv[1], "--record"), ours = is_ours("cudaMalloc");
	int from = argc > 2 ? atoi(argv[2]) : 0, wrong = 0, count = 0;

	if (argc > 1 && !strcmp(argv[1], "--differences")) {
		differences();
		return 0;
	}
	set_up();
	for (const struct bad_call &c : calls) {
		int want = ours ? c.ours : c.native;
		int got, last;

		if (count++ < from)
			continue;
		/* A call that crashes NVIDIA's library has no place in the table. */
		if (record) {
			printf("%d\t%s\t", count, c.text);
			fflush(stdout);
		}
		(void)cudaGetLastError();
		got = c.call();
		last = cudaGetLastError();
		if (record)
			printf("%d\t%d\n", got, last);
		if (got != want) {
			wrong++;
			if (!record)
				fprintf(stderr, "%s\n\tgave %d, expected %d\n", c.text, got, want);
		}
	}
	if (record)
		return 0;
	if (wrong) {
		fprintf(stderr, "%d of %d calls gave another code\n", wrong, count);
		return 1;
	}
	return verified("%d bad calls gave the codes of a real GPU", count);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libcudart.so.12 and libcudart.so.13 in one process. The calls of CUDA 12 that have another form
 * take and return 12's structures, and no byte more; both libraries have the same devices, memory,
 * streams and errors. Needs nothing of NVIDIA's CUDA 12.
 */
#include <dlfcn.h>
#include <malloc.h>

#include "qcu-library/cuda12/cuda12.h"
#include "tests/loopback/check.h"

#define SIZE (1u << 20)

static void *symbol(const char *name)
{
	static void *library;
	void *f;

	if (!library)
		library = dlopen("libcudart.so.12", RTLD_NOW);
	REQUIRE(library, "%s", dlerror());
	f = dlsym(library, name);
	REQUIRE(f, "libcudart.so.12 has no %s", name);
	return f;
}

/* The function of libcudart.so.12 that has this form; and one that has the same form as 13's. */
#define IN_12(name) ((__typeof__(cuda12_##name) *)symbol("cuda" #name))
#define SAME(name)  ((__typeof__(name) *)symbol(#name))

/* A structure of 12 with guard bytes behind it. */
#define GUARDED(type)              \
	struct {                   \
		type s;            \
		char behind[1200]; \
	}
#define GUARD(g)  memset(&(g), 0x5a, sizeof(g))
#define INTACT(g) REQUIRE(intact((g).behind, sizeof((g).behind)), "written behind the structure")

static bool intact(const char *p, size_t len)
{
	while (len && p[len - 1] == 0x5a)
		len--;
	return !len;
}

static void versions(void)
{
	int in12, in13, driver;

	REFUSED(IN_12(RuntimeGetVersion)(NULL), cudaErrorInvalidValue);
	OK(IN_12(RuntimeGetVersion)(&in12));
	OK(cudaRuntimeGetVersion(&in13));
	REQUIRE(in12 == 12090 && in13 >= 13000, "versions %d and %d", in12, in13);
	OK(SAME(cudaDriverGetVersion)(&driver));
	REQUIRE(driver >= in13, "driver %d", driver);
}

static void properties(void)
{
	GUARDED(struct cuda12_device_prop) g;
	struct cudaDeviceProp p;
	int i, value;

	REFUSED(IN_12(GetDeviceProperties_v2)(NULL, 0), cudaErrorInvalidValue);
	REFUSED(IN_12(GetDeviceProperties_v2)(&g.s, 99), cudaErrorInvalidDevice);
	REFUSED(IN_12(GetDeviceProperties)(NULL, 0), cudaErrorInvalidValue);
	OK(cudaGetDeviceProperties(&p, 0));
	GUARD(g);
	OK(IN_12(GetDeviceProperties_v2)(&g.s, 0));
	INTACT(g);
	REQUIRE(!strcmp(g.s.name, p.name) && g.s.totalGlobalMem == p.totalGlobalMem &&
			g.s.major == p.major && g.s.multiProcessorCount == p.multiProcessorCount &&
			g.s.maxThreadsPerBlock == p.maxThreadsPerBlock &&
			g.s.maxGridSize[1] == p.maxGridSize[1] &&
			g.s.l2CacheSize == p.l2CacheSize &&
			g.s.memoryPoolsSupported == p.memoryPoolsSupported,
		"other properties than 13's");
	OK(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0));
	REQUIRE(g.s.clockRate == value && value, "clock rate %d, not %d", g.s.clockRate, value);
	OK(cudaDeviceGetAttribute(&value, cudaDevAttrMemoryClockRate, 0));
	REQUIRE(g.s.memoryClockRate == value, "memory clock rate %d", g.s.memoryClockRate);
	REQUIRE(!g.s.cooperativeMultiDeviceLaunch, "what is not supported is offered");
	OK(IN_12(DeviceGetAttribute)(&value, CUDA12_ATTR_MULTI_DEVICE_LAUNCH, 0));
	REQUIRE(!value, "what is not supported is offered");
	/* The older call fills in CUDA 11's structure, which ends before this field. */
	GUARD(g);
	OK(IN_12(GetDeviceProperties)(&g.s, 0));
	REQUIRE(g.s.hostRegisterSupported == 0x5a5a5a5a, "more than CUDA 11's structure");
	REQUIRE(g.s.l2CacheSize == p.l2CacheSize, "other properties than 13's");

	REFUSED(IN_12(ChooseDevice)(&i, NULL), cudaErrorInvalidValue);
	memset(&g, 0, sizeof(g));
	OK(IN_12(ChooseDevice)(&i, &g.s));
	REQUIRE(i == 0, "device %d", i);
}

static void pointers(void)
{
	GUARDED(struct cuda12_pointer_attributes) g;
	void *p;

	REFUSED(IN_12(PointerGetAttributes)(NULL, &g), cudaErrorInvalidValue);
	OK(SAME(cudaMalloc)(&p, SIZE));
	GUARD(g);
	OK(IN_12(PointerGetAttributes)(&g.s, p));
	INTACT(g);
	REQUIRE(g.s.type == cudaMemoryTypeDevice && g.s.devicePointer == p && !g.s.hostPointer &&
			g.s.device == 0,
		"type %d, %p", g.s.type, g.s.devicePointer);
	/* Memory of one library can be freed by the other. */
	OK(cudaFree(p));
}

static void managed(void)
{
	cudaStream_t stream;
	void *p;
	int place;

	OK(SAME(cudaStreamCreate)(&stream));
	OK(SAME(cudaMallocManaged)(&p, SIZE, cudaMemAttachGlobal));
	REFUSED(IN_12(MemAdvise)(p, SIZE, cudaMemAdviseSetPreferredLocation, 99),
		cudaErrorInvalidValue);
	REFUSED(IN_12(MemPrefetchAsync)(p, SIZE, 99, stream), cudaErrorInvalidDevice);
	OK(IN_12(MemAdvise)(p, SIZE, cudaMemAdviseSetReadMostly, 99));
	OK(IN_12(MemAdvise)(p, SIZE, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId));
	OK(cudaMemRangeGetAttribute(&place, sizeof(place), cudaMemRangeAttributePreferredLocation,
				    p, SIZE));
	REQUIRE(place == cudaCpuDeviceId, "preferred place %d", place);
	OK(IN_12(MemPrefetchAsync)(p, SIZE, 0, stream));
	OK(cudaMemRangeGetAttribute(&place, sizeof(place),
				    cudaMemRangeAttributeLastPrefetchLocation, p, SIZE));
	REQUIRE(place == 0, "prefetched to %d", place);
	OK(IN_12(MemPrefetchAsync_ptsz)(p, SIZE, cudaCpuDeviceId, NULL));
	OK(cudaMemRangeGetAttribute(&place, sizeof(place),
				    cudaMemRangeAttributeLastPrefetchLocation, p, SIZE));
	REQUIRE(place == cudaCpuDeviceId, "prefetched to %d", place);
	OK(SAME(cudaFree)(p));
	OK(cudaStreamDestroy(stream));
}

static void batches(void)
{
	char up[64] = "a batch of copies", down[64] = "";
	struct cudaMemcpyAttributes attributes = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
	size_t size = sizeof(up), first = 0, failed = 42;
	void *from = up, *device, *to = down;
	cudaStream_t stream;

	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc(&device, SIZE));
	REFUSED(IN_12(MemcpyBatchAsync)(&device, &from, &size, 1, &attributes, &first, 0, &failed,
					stream),
		cudaErrorInvalidValue);
	REQUIRE(failed == SIZE_MAX, "failed %zu", failed);
	failed = 42;
	REFUSED(IN_12(Memcpy3DBatchAsync)(1, NULL, &failed, 0, stream), cudaErrorInvalidValue);
	REQUIRE(failed == SIZE_MAX, "failed %zu", failed);
	OK(IN_12(MemcpyBatchAsync)(&device, &from, &size, 1, &attributes, &first, 1, NULL, stream));
	OK(IN_12(MemcpyBatchAsync)(&to, &device, &size, 1, &attributes, &first, 1, NULL, stream));
	OK(SAME(cudaStreamSynchronize)(stream));
	REQUIRE(!strcmp(up, down), "copied \"%s\"", down);
	OK(cudaFree(device));
	OK(cudaStreamDestroy(stream));
}

static void textures(void)
{
	struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	GUARDED(struct cuda12_resource_desc) r;
	GUARDED(struct cuda12_resource_view_desc) v;
	struct cudaTextureDesc texture = {0};
	cudaTextureObject_t object;
	cudaSurfaceObject_t surface;
	cudaArray_t array;

	OK(SAME(cudaMallocArray)(&array, &format, 64, 64, cudaArraySurfaceLoadStore));
	/* What follows 12's structure is not zero, and is not read. */
	GUARD(r);
	GUARD(v);
	memset(&r.s, 0, sizeof(r.s));
	r.s.resType = cudaResourceTypeArray;
	r.s.res.array.array = array;
	v.s = (struct cuda12_resource_view_desc){
		.format = cudaResViewFormatNone,
		.width = 64,
		.height = 64,
	};
	REFUSED(IN_12(CreateTextureObject)(&object, NULL, &texture, NULL), cudaErrorInvalidValue);
	REFUSED(IN_12(CreateSurfaceObject)(&surface, NULL), cudaErrorInvalidValue);
	OK(IN_12(CreateTextureObject)(&object, &r.s, &texture, &v.s));
	OK(IN_12(CreateSurfaceObject)(&surface, &r.s));
	GUARD(r);
	OK(IN_12(GetTextureObjectResourceDesc)(&r.s, object));
	INTACT(r);
	REQUIRE(r.s.resType == cudaResourceTypeArray && r.s.res.array.array == array,
		"another array");
	GUARD(r);
	OK(IN_12(GetSurfaceObjectResourceDesc)(&r.s, surface));
	INTACT(r);
	REQUIRE(r.s.res.array.array == array, "another array");
	GUARD(v);
	OK(IN_12(GetTextureObjectResourceViewDesc)(&v.s, object));
	INTACT(v);
	REQUIRE(v.s.width == 64 && v.s.lastLayer == 0, "another view");
	OK(SAME(cudaDestroyTextureObject)(object));
	OK(cudaDestroySurfaceObject(surface));
	OK(cudaFreeArray(array));
}

static void graphs(void)
{
	const cudaGraphNode_t *dependencies;
	enum cudaStreamCaptureStatus status;
	cudaGraphNode_t a, b, found[2];
	unsigned long long id, again;
	struct cudaGraphNodeParams empty = {.type = cudaGraphNodeTypeEmpty};
	cudaGraph_t graph, captured;
	cudaStream_t stream;
	size_t n;

	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddEmptyNode(&a, graph, NULL, 0));
	OK(IN_12(GraphAddNode)(&b, graph, &a, 1, &empty));
	n = 2;
	OK(IN_12(GraphNodeGetDependencies)(b, found, &n));
	REQUIRE(n == 1 && found[0] == a, "%zu dependencies", n);
	n = 2;
	OK(IN_12(GraphNodeGetDependentNodes)(a, found, &n));
	REQUIRE(n == 1 && found[0] == b, "%zu dependent nodes", n);
	OK(IN_12(GraphRemoveDependencies)(graph, &a, &b, 1));
	OK(IN_12(GraphGetEdges)(graph, NULL, NULL, &n));
	REQUIRE(n == 0, "%zu edges", n);
	REFUSED(IN_12(GraphAddDependencies)(graph, &a, &a, 1), cudaErrorInvalidValue);
	OK(IN_12(GraphAddDependencies)(graph, &a, &b, 1));
	n = 2;
	OK(((__typeof__(cudaGraphGetEdges) *)symbol("cudaGraphGetEdges_v2"))(graph, found,
									     found + 1, NULL, &n));
	REQUIRE(n == 1 && found[0] == a, "%zu edges", n);

	OK(cudaStreamCreate(&stream));
	OK(cudaStreamBeginCaptureToGraph(stream, graph, &b, NULL, 1, cudaStreamCaptureModeRelaxed));
	OK(IN_12(StreamGetCaptureInfo)(stream, &status, &id));
	REQUIRE(status == cudaStreamCaptureStatusActive, "status %d", status);
	OK(IN_12(StreamGetCaptureInfo_v2)(stream, &status, &again, &captured, &dependencies, &n));
	REQUIRE(again == id && captured == graph && n == 1 && dependencies[0] == b,
		"%zu dependencies", n);
	OK(IN_12(StreamUpdateCaptureDependencies)(stream, &a, 1, cudaStreamSetCaptureDependencies));
	OK(IN_12(StreamGetCaptureInfo_v2)(stream, &status, NULL, NULL, &dependencies, &n));
	REQUIRE(n == 1 && dependencies[0] == a, "%zu dependencies", n);
	OK(cudaStreamEndCapture(stream, &captured));
	OK(cudaStreamDestroy(stream));
	OK(cudaGraphDestroy(graph));
}

/* Both libraries have one last error in each thread. */
static void errors(void)
{
	void *p;

	EXPECT(SAME(cudaMalloc)(NULL, 1), cudaErrorInvalidValue);
	EXPECT(cudaPeekAtLastError(), cudaErrorInvalidValue);
	EXPECT(SAME(cudaGetLastError)(), cudaErrorInvalidValue);
	OK(cudaGetLastError());
	REFUSED(IN_12(LaunchCooperativeKernelMultiDevice)(NULL, 0, 0), cudaErrorNotSupported);
	REFUSED(IN_12(LaunchKernelExC)(NULL, NULL, NULL), cudaErrorInvalidValue);
	OK(((cudaError_t(*)(void))symbol("cudaThreadSynchronize"))());
	p = malloc(8 * SIZE);
	REQUIRE(p && malloc_usable_size(p) >= 8 * SIZE, "malloc_usable_size");
	free(p);
}

int main(void)
{
	versions();
	properties();
	pointers();
	managed();
	batches();
	textures();
	graphs();
	errors();
	return 0;
}

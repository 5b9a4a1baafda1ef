// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What CUDA 11.8 has in another form than CUDA 12, called as a program of 11.8 calls it. cases.sh
 * compiles this file with NVIDIA's header of 11.8, and links it to linked.cu and the static runtime
 * of 11.8.
 */
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

/* qcu-library/cuda12/cuda11.c has the same numbers. */
_Static_assert(sizeof(struct cudaFuncAttributes) == 56, "functions");
_Static_assert(sizeof(struct cudaDeviceProp) == 728, "devices");
_Static_assert(sizeof(struct cudaTextureDesc) == 68, "textures");

#define CANARY 0x5a

int linked_main(int argc, char **argv);
void compute(int *v) __asm__("_Z7computePi");

/* The compiler of linked.cu is newer than the runtime, and calls these. */
cudaError_t __cudaGetKernel(void **kernel, const void *entry);
cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
			       cudaStream_t stream);

cudaError_t __cudaGetKernel(void **kernel, const void *entry)
{
	*kernel = (void *)entry;
	return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
			       cudaStream_t stream)
{
	return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

static int is_canary(const void *p, size_t size)
{
	const unsigned char *c = p;

	while (size && c[size - 1] == CANARY)
		size--;
	return !size;
}

#define CHECK(x)                                          \
	do {                                              \
		if (!(x)) {                               \
			printf("%d: %s\n", __LINE__, #x); \
			return 1;                         \
		}                                         \
	} while (0)

static int structures(void)
{
	struct {
		struct cudaFuncAttributes a;
		char behind[128];
	} function;
	struct {
		struct cudaDeviceProp p;
		char behind[512];
	} device;
	int chosen = -1;

	memset(&function, CANARY, sizeof(function));
	CHECK(cudaFuncGetAttributes(NULL, (const void *)compute) == cudaErrorInvalidValue);
	CHECK(!cudaFuncGetAttributes(&function.a, (const void *)compute));
	CHECK(function.a.maxThreadsPerBlock > 0 && function.a.maxThreadsPerBlock <= 1024);
	CHECK(is_canary(function.behind, sizeof(function.behind)));
	memset(&device, CANARY, sizeof(device));
	CHECK(!cudaGetDeviceProperties(&device.p, 0));
	CHECK(is_canary(device.behind, sizeof(device.behind)));
	CHECK(cudaChooseDevice(&chosen, NULL) == cudaErrorInvalidValue);
	CHECK(!cudaChooseDevice(&chosen, &device.p) && chosen == 0);
	return 0;
}

static int textures(void)
{
	struct cudaResourceDesc linear = {.resType = cudaResourceTypeLinear};
	struct {
		struct cudaTextureDesc t;
		char behind[16];
	} texture, back;
	struct cudaTextureDesc_v2 newer = {.readMode = cudaReadModeElementType}, newer_back;
	cudaTextureObject_t object;

	linear.res.linear.desc =
		(struct cudaChannelFormatDesc){32, 0, 0, 0, cudaChannelFormatKindFloat};
	linear.res.linear.sizeInBytes = 1024;
	CHECK(!cudaMalloc(&linear.res.linear.devPtr, 1024));
	memset(&texture, CANARY, sizeof(texture));
	memset(&texture.t, 0, sizeof(texture.t));
	texture.t.maxAnisotropy = 3;
	CHECK(!cudaCreateTextureObject(&object, &linear, &texture.t, NULL));
	memset(&back, CANARY, sizeof(back));
	CHECK(!cudaGetTextureObjectTextureDesc(&back.t, object));
	CHECK(back.t.maxAnisotropy == 3 && is_canary(back.behind, sizeof(back.behind)));
	CHECK(!cudaDestroyTextureObject(object));
	newer.maxAnisotropy = 2;
	CHECK(!cudaCreateTextureObject_v2(&object, &linear, &newer, NULL));
	CHECK(!cudaGetTextureObjectTextureDesc_v2(&newer_back, object));
	CHECK(newer_back.maxAnisotropy == 2 && !newer_back.seamlessCubemap);
	CHECK(!cudaDestroyTextureObject(object) && !cudaFree(linear.res.linear.devPtr));
	return 0;
}

static int graphs(void)
{
	cudaGraphNode_t node, wrong = (cudaGraphNode_t)&node;
	enum cudaGraphExecUpdateResult result;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	char log[4] = "xyz";

	CHECK(!cudaGraphCreate(&graph, 0) && !cudaGraphAddEmptyNode(&node, graph, NULL, 0));
	CHECK(cudaGraphInstantiate(NULL, graph, NULL, NULL, 0) == cudaErrorInvalidValue);
	CHECK(!cudaGraphInstantiate(&exec, graph, &wrong, log, sizeof(log)));
	CHECK(!wrong && !*log && log[1] == 'y');
	CHECK(cudaGraphExecUpdate(exec, graph, NULL, &result) == cudaErrorInvalidValue);
	CHECK(cudaGraphExecUpdate(exec, graph, &wrong, NULL) == cudaErrorInvalidValue);
	CHECK(!cudaGraphExecUpdate(exec, graph, &wrong, &result));
	CHECK(result == cudaGraphExecUpdateSuccess && !wrong);
	CHECK(!cudaGraphAddEmptyNode(&node, graph, NULL, 0));
	CHECK(cudaGraphExecUpdate(exec, graph, &wrong, &result) == cudaErrorGraphExecUpdateFailure);
	CHECK(result == cudaGraphExecUpdateErrorTopologyChanged);
	CHECK(!cudaGraphExecDestroy(exec) && !cudaGraphDestroy(graph));
	return 0;
}

static int functions(void)
{
	void *function = NULL;
	size_t offset;

	CHECK(!cudaGetDriverEntryPoint("cuMemAlloc", &function, cudaEnableDefault) && function);
	CHECK(!cudaGetDriverEntryPoint_ptsz("cuMemcpyAsync", &function, cudaEnableDefault));
	CHECK(cudaGetDriverEntryPoint("cuNever", &function, cudaEnableDefault) ==
	      cudaErrorSymbolNotFound);
	CHECK(cudaGetLastError() == cudaErrorSymbolNotFound && !cudaGetLastError());
	/* What is gone in CUDA 12 says its name. */
	CHECK(cudaBindTexture(&offset, NULL, NULL, NULL, 4) == cudaErrorNotSupported);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "cuda-11"))
		return structures() || textures() || graphs() || functions();
	return linked_main(argc, argv);
}

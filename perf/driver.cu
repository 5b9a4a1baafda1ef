// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What calls of the driver API cost, in microseconds: launches by handle, what a compiler's own
 * launcher does before each of them, and what is asked all the time. The functions come from
 * cudaGetDriverEntryPointByVersion, so that without a VM they are our library's, too: there the
 * process has the GPU's own libcuda.so.1.
 */
#include <cuda.h>

#include "perf/bench.h"

__global__ void nothing(void)
{
}

__global__ void count(unsigned int *n, const float *a, const float *b)
{
	if (a == b)
		atomicAdd(n, 1);
}

static decltype(&cuInit) init;
static decltype(&cuLaunchKernel) launch_kernel;
static decltype(&cuLaunchKernelEx) launch_ex;
static decltype(&cuPointerGetAttribute) pointer_attribute;
static decltype(&cuCtxGetCurrent) get_current;
static decltype(&cuCtxSetCurrent) set_current;
static decltype(&cuDevicePrimaryCtxGetState) primary_state;
static decltype(&cuDeviceGetAttribute) device_attribute;
static decltype(&cuFuncGetAttribute) function_attribute;
static decltype(&cuStreamIsCapturing) is_capturing;

template <typename F> static void find(F *function, const char *name)
{
	cudaDriverEntryPointQueryResult result;

	CHECK(cudaGetDriverEntryPointByVersion(name, (void **)function, CUDA_VERSION,
					       cudaEnableDefault, &result));
	REQUIRE(result == cudaDriverEntryPointSuccess, "there is no %s", name);
}

#define DCHECK(call)                                                                             \
	do {                                                                                     \
		CUresult result_ = (call);                                                       \
		if (result_ != CUDA_SUCCESS)                                                     \
			BENCH_FAIL(1, "%s:%d: %s: %d", __FILE__, __LINE__, #call, (int)result_); \
	} while (0)

struct state {
	CUfunction nothing, count;
	CUcontext context;
	CUstream stream;
	CUdeviceptr counter, data;
	unsigned long long launched;
};

#define OPERATION(name, ...)                                                   \
	static void name(void *arg, unsigned int n)                            \
	{                                                                      \
		struct state *s __attribute__((unused)) = (struct state *)arg; \
                                                                               \
		while (n--)                                                    \
			__VA_ARGS__;                                           \
	}

OPERATION(launch, DCHECK(launch_kernel(s->nothing, 1, 1, 1, 32, 1, 1, 0, s->stream, NULL, NULL)))

static void drained(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;
	void *params[] = {&s->counter, &s->data, &s->data};

	s->launched += n;
	while (n--)
		DCHECK(launch_kernel(s->count, 1, 1, 1, 1, 1, 1, 0, s->stream, params, NULL));
	CHECK(cudaStreamSynchronize(s->stream));
}

/*
 * A launch as Triton's launcher makes it: the context, the address of each tensor, and the launch
 * with a list of attributes, which is empty.
 */
static void one_like_triton(struct state *s)
{
	CUlaunchConfig config = {};
	CUlaunchAttribute attributes[4];
	CUdeviceptr at[3] = {s->counter, s->data, s->data};
	void *params[] = {&at[0], &at[1], &at[2]};
	CUcontext context;

	DCHECK(get_current(&context));
	for (CUdeviceptr &a : at)
		DCHECK(pointer_attribute(&a, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, a));
	config.gridDimX = config.gridDimY = config.gridDimZ = 1;
	config.blockDimX = config.blockDimY = config.blockDimZ = 1;
	config.hStream = s->stream;
	config.attrs = attributes;
	DCHECK(launch_ex(&config, s->count, params, NULL));
}

static void like_triton(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;

	s->launched += n;
	while (n--)
		one_like_triton(s);
}

static void like_triton_drained(void *arg, unsigned int n)
{
	like_triton(arg, n);
	CHECK(cudaStreamSynchronize(((struct state *)arg)->stream));
}

OPERATION(ask_pointer, {
	CUdeviceptr at;

	DCHECK(pointer_attribute(&at, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, s->data));
})
OPERATION(ask_current, {
	CUcontext context;

	DCHECK(get_current(&context));
})
OPERATION(set_context, DCHECK(set_current(s->context)))
OPERATION(ask_primary, {
	unsigned int flags;
	int active;

	DCHECK(primary_state(bench.device, &flags, &active));
})
OPERATION(ask_device, {
	int value;

	DCHECK(device_attribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, bench.device));
})
OPERATION(ask_function, {
	int value;

	DCHECK(function_attribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, s->count));
})
OPERATION(ask_capture, {
	CUstreamCaptureStatus status;

	DCHECK(is_capturing(s->stream, &status));
})

static void settle(void *arg)
{
	CHECK(cudaStreamSynchronize(((struct state *)arg)->stream));
}

static void one(struct state *s, const char *name, void (*run)(void *, unsigned int),
		unsigned int most, bool queues)
{
	struct bench_case b = {};

	if (!bench_begins(name))
		return;
	b.name = name;
	b.unit = "us";
	b.run = run;
	b.settle = queues ? settle : NULL;
	b.arg = s;
	b.most = most;
	b.enough = queues || most ? 0.02 : 0;
	b.checked = run == launch ? "-" : "whole";
	bench_run(&b);
}

int main(int argc, char **argv)
{
	struct state s = {};
	cudaFunction_t function;
	unsigned int got;

	bench_begin(argc, argv, "driver", "What calls of the driver API cost, in us.", 0, 0, NULL);
	find(&init, "cuInit");
	find(&launch_kernel, "cuLaunchKernel");
	find(&launch_ex, "cuLaunchKernelEx");
	find(&pointer_attribute, "cuPointerGetAttribute");
	find(&get_current, "cuCtxGetCurrent");
	find(&set_current, "cuCtxSetCurrent");
	find(&primary_state, "cuDevicePrimaryCtxGetState");
	find(&device_attribute, "cuDeviceGetAttribute");
	find(&function_attribute, "cuFuncGetAttribute");
	find(&is_capturing, "cuStreamIsCapturing");
	DCHECK(init(0));
	CHECK(cudaGetFuncBySymbol(&function, (const void *)nothing));
	s.nothing = function;
	CHECK(cudaGetFuncBySymbol(&function, (const void *)count));
	s.count = function;
	CHECK(cudaStreamCreate(&s.stream));
	CHECK(cudaMalloc((void **)&s.counter, 4));
	CHECK(cudaMalloc((void **)&s.data, 4));
	CHECK(cudaMemset((void *)s.counter, 0, 4));
	DCHECK(get_current(&s.context));

	one(&s, "cuLaunchKernel/issue", launch, 128, true);
	one(&s, "cuLaunchKernel/drained", drained, 1000, false);
	one(&s, "like-triton/issue", like_triton, 128, true);
	one(&s, "like-triton/drained", like_triton_drained, 1000, false);
	one(&s, "cuPointerGetAttribute", ask_pointer, 0, false);
	one(&s, "cuCtxGetCurrent", ask_current, 0, false);
	one(&s, "cuCtxSetCurrent", set_context, 0, false);
	one(&s, "cuDevicePrimaryCtxGetState", ask_primary, 0, false);
	one(&s, "cuDeviceGetAttribute", ask_device, 0, false);
	one(&s, "cuFuncGetAttribute", ask_function, 0, false);
	one(&s, "cuStreamIsCapturing", ask_capture, 0, false);

	CHECK(cudaMemcpy(&got, (void *)s.counter, 4, cudaMemcpyDeviceToHost));
	REQUIRE(got == (unsigned int)s.launched, "%u launches of %llu were done", got, s.launched);
	CHECK(cudaFree((void *)s.counter));
	CHECK(cudaFree((void *)s.data));
	return bench_end();
}

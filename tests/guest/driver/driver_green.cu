// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Green contexts: wrong input, then the device's multiprocessors are split, streams of two parts
 * work side by side and wait for each other, one of them becomes the thread's context, and what
 * belongs to it is split again. A GPU uses no other multiprocessors for a part than its own.
 */
#include <string.h>

#include "driver.h"

#define N    4096
#define MOST 1024

static CUdevice device;
static CUfunction fill, where;

static void wrong(const CUdevResource *all)
{
	CUdevResource parts[4], r = *all, none = {};
	CUdevResourceDesc desc;
	unsigned int n = 4;
	CUgreenCtx green;
	CUcontext context;

	DEXPECT(cuDeviceGetDevResource(99, &r, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuDeviceGetDevResource(device, NULL, CU_DEV_RESOURCE_TYPE_SM),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuDeviceGetDevResource(device, &r, CU_DEV_RESOURCE_TYPE_INVALID),
		CUDA_ERROR_INVALID_RESOURCE_TYPE);
	DEXPECT(cuDevSmResourceSplitByCount(parts, NULL, all, NULL, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuDevSmResourceSplitByCount(parts, &n, NULL, NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuDevSmResourceSplitByCount(parts, &n, &none, NULL, 0, 0),
		CUDA_ERROR_INVALID_RESOURCE_TYPE);
	REQUIRE(cuDevSmResourceSplitByCount(parts, &n, all, NULL, 0, all->sm.smCount + 1),
		"more than there are");
	DEXPECT(cuDevResourceGenerateDesc(NULL, &r, 1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuDevResourceGenerateDesc(&desc, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	ONLY_OURS(DEXPECT(cuDevResourceGenerateDesc(&desc, &r, 0), CUDA_ERROR_INVALID_VALUE));
	DEXPECT(cuDevResourceGenerateDesc(&desc, &none, 1), CUDA_ERROR_INVALID_RESOURCE_TYPE);
	DCHECK(cuDevResourceGenerateDesc(&desc, &r, 1));
	DEXPECT(cuGreenCtxCreate(&green, desc, 99, CU_GREEN_CTX_DEFAULT_STREAM),
		CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuGreenCtxCreate(&green, desc, device, 0), CUDA_ERROR_INVALID_VALUE);
	ONLY_OURS(DEXPECT(cuGreenCtxCreate(NULL, desc, device, CU_GREEN_CTX_DEFAULT_STREAM),
			  CUDA_ERROR_INVALID_VALUE));
	ONLY_OURS(DEXPECT(cuGreenCtxCreate(&green, (CUdevResourceDesc)&r, device,
					   CU_GREEN_CTX_DEFAULT_STREAM),
			  CUDA_ERROR_INVALID_VALUE));
	ONLY_OURS(DEXPECT(cuGreenCtxDestroy((CUgreenCtx)&r), CUDA_ERROR_INVALID_CONTEXT));
	ONLY_OURS(DEXPECT(cuCtxFromGreenCtx(&context, NULL), CUDA_ERROR_INVALID_CONTEXT));
	/* Made up: with other numbers in what a program must not touch. */
	memset(r._internal_padding, 0x5a, sizeof(r._internal_padding));
	ONLY_OURS(DEXPECT(cuDevSmResourceSplitByCount(parts, &n, &r, NULL, 0, 0),
			  CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION));
	ONLY_OURS(DEXPECT(cuDevResourceGenerateDesc(&desc, &r, 1),
			  CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION));
}

static CUgreenCtx make(CUdevResource *parts, unsigned int count)
{
	CUdevResourceDesc desc;
	CUgreenCtx green;

	DCHECK(cuDevResourceGenerateDesc(&desc, parts, count));
	DCHECK(cuGreenCtxCreate(&green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
	return green;
}

static unsigned int multiprocessors(CUgreenCtx green)
{
	CUdevResource r;

	DCHECK(cuGreenCtxGetDevResource(green, &r, CU_DEV_RESOURCE_TYPE_SM));
	REQUIRE(r.type == CU_DEV_RESOURCE_TYPE_SM, "type %d", (int)r.type);
	return r.sm.smCount;
}

static void launch(CUfunction f, CUstream stream, CUdeviceptr to, unsigned int count,
		   unsigned int value)
{
	void *args[] = {&to, &count, &value};

	DCHECK(cuLaunchKernel(f, f == fill ? count / 64 : count, 1, 1, 64, 1, 1, 0, stream, args,
			      NULL));
}

static void is_filled(CUdeviceptr at, unsigned int value, const char *what)
{
	static unsigned int host[N];
	unsigned int i;

	DCHECK(cuMemcpyDtoH(host, at, sizeof(host)));
	for (i = 0; i < N; i++)
		REQUIRE(host[i] == value + i, "%s: %u at %u", what, host[i], i);
}

/* On a GPU, the blocks ran on the part's multiprocessors. With dynamic parallelism there may be two
 * more. */
static void stays_inside(CUstream stream, CUdeviceptr memory, unsigned int most)
{
	static unsigned int seen[MOST + 1];
	unsigned int i, used = 0;
	char name[256];

	DCHECK(cuMemsetD32Async(memory, 0, MOST + 1, stream));
	launch(where, stream, memory, MOST, 0);
	DCHECK(cuStreamSynchronize(stream));
	DCHECK(cuMemcpyDtoH(seen, memory, sizeof(seen)));
	for (i = 0; i < MOST; i++)
		used += !!seen[i];
	DCHECK(cuDeviceGetName(name, sizeof(name), device));
	REQUIRE(seen[MOST] == MOST && used, "%u blocks ran", seen[MOST]);
	REQUIRE(strstr(name, "software") || used <= most + 2, "%u multiprocessors of %u", used,
		most);
}

static void side_by_side(CUgreenCtx a, CUgreenCtx b, CUdeviceptr memory)
{
	const CUdeviceptr second = memory + N * 4;
	CUstream in_a, in_b, late, plain;
	CUgreenCtx of;
	CUcontext context, primary;
	CUevent event;
	unsigned int flags;

	DEXPECT(cuGreenCtxStreamCreate(&in_a, a, 0, 0), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuGreenCtxStreamCreate(&in_a, a, CU_STREAM_NON_BLOCKING, 0));
	DCHECK(cuGreenCtxStreamCreate(&in_b, b, CU_STREAM_NON_BLOCKING, -1));
	DCHECK(cuStreamGetFlags(in_a, &flags));
	REQUIRE(flags == CU_STREAM_NON_BLOCKING, "flags %u", flags);
	DCHECK(cuStreamGetGreenCtx(in_b, &of));
	REQUIRE(of == b, "another green context");
	DCHECK(cuStreamGetGreenCtx(NULL, &of));
	REQUIRE(!of, "stream 0 has a green context");
	DCHECK(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
	DCHECK(cuStreamGetGreenCtx(plain, &of));
	REQUIRE(!of, "a stream of the primary context has a green one");
	DCHECK(cuCtxGetCurrent(&primary));
	DCHECK(cuStreamGetCtx_v2(in_a, &context, &of));
	REQUIRE(of == a && context == primary, "the stream is of %p and %p", (void *)of,
		(void *)context);
	stays_inside(in_a, memory, multiprocessors(a));
	stays_inside(in_b, memory, multiprocessors(b));

	/* b's streams come after what a's have got, also the one that is made later. */
	DCHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	launch(fill, in_a, memory, N, 100);
	DCHECK(cuGreenCtxRecordEvent(a, event));
	DCHECK(cuGreenCtxWaitEvent(b, event));
	DCHECK(cuMemcpyDtoDAsync(second, memory, N * 4, in_b));
	DCHECK(cuStreamSynchronize(in_b));
	is_filled(second, 100, "a copy in another part");
	DCHECK(cuEventQuery(event));
	launch(fill, in_a, memory, N, 200);
	DCHECK(cuGreenCtxRecordEvent(a, event));
	DCHECK(cuGreenCtxWaitEvent(b, event));
	DCHECK(cuGreenCtxStreamCreate(&late, b, CU_STREAM_NON_BLOCKING, 0));
	DCHECK(cuMemcpyDtoDAsync(second, memory, N * 4, late));
	DCHECK(cuStreamSynchronize(late));
	is_filled(second, 200, "a copy in a new stream");
	DCHECK(cuEventDestroy(event));
	DCHECK(cuStreamDestroy(late));
	DCHECK(cuStreamDestroy(in_a));
	DCHECK(cuStreamDestroy(in_b));
	DCHECK(cuStreamDestroy(plain));
}

/* As the thread's context: its default stream is the part's, and new streams are in it. */
static void current(CUgreenCtx green, CUdeviceptr memory)
{
	CUcontext context, now;
	CUdevResource r;
	CUgreenCtx of;
	CUstream stream;

	DCHECK(cuCtxFromGreenCtx(&context, green));
	DCHECK(cuCtxPushCurrent(context));
	DCHECK(cuCtxGetDevResource(context, &r, CU_DEV_RESOURCE_TYPE_SM));
	REQUIRE(r.sm.smCount == multiprocessors(green), "%u multiprocessors", r.sm.smCount);
	DCHECK(cuStreamGetGreenCtx(NULL, &of));
	REQUIRE(of == green, "stream 0 is not of the green context");
	launch(fill, NULL, memory, N, 300);
	is_filled(memory, 300, "stream 0");
	stays_inside(NULL, memory, r.sm.smCount);
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DCHECK(cuStreamGetGreenCtx(stream, &of));
	REQUIRE(of == green, "a new stream is not of the green context");
	launch(fill, stream, memory, N, 400);
	DCHECK(cuCtxSynchronize());
	DCHECK(cuStreamDestroy(stream));
	DCHECK(cuCtxPopCurrent(&now));
	REQUIRE(now == context, "another context was current");
	DCHECK(cuStreamGetGreenCtx(NULL, &of));
	REQUIRE(!of, "stream 0 is still of the green context");
	is_filled(memory, 400, "a new stream");
}

int main()
{
	CUdevResource all, parts[2], rest, again;
	unsigned int n, simulated = 0, least;
	CUgreenCtx a, b, c;
	CUdeviceptr memory;
	CUmodule module;

	device = driver_start();
	module = driver_module();
	fill = driver_function(module, "fill");
	where = driver_function(module, "count_where");
	DCHECK(cuMemAlloc(&memory, 2 * N * 4));
	DCHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	REQUIRE(all.type == CU_DEV_RESOURCE_TYPE_SM && all.sm.smCount && all.sm.minSmPartitionSize,
		"%u multiprocessors", all.sm.smCount);
	wrong(&all);

	least = all.sm.minSmPartitionSize;
	DCHECK(cuDevSmResourceSplitByCount(NULL, &simulated, &all, NULL, 0, least));
	REQUIRE(simulated, "no group can be made");
	if (simulated < 2) {
		printf("skipped: one part of multiprocessors\n");
		return 77;
	}
	n = 1;
	DCHECK(cuDevSmResourceSplitByCount(parts, &n, &all, &rest, 0, least));
	REQUIRE(n == 1 && parts[0].sm.smCount >= least &&
			parts[0].sm.smCount + rest.sm.smCount == all.sm.smCount,
		"%u groups of %u, and a rest of %u of %u", n, parts[0].sm.smCount, rest.sm.smCount,
		all.sm.smCount);
	a = make(parts, 1);
	b = make(&rest, 1);
	REQUIRE(multiprocessors(a) == parts[0].sm.smCount && multiprocessors(b) == rest.sm.smCount,
		"%u and %u", multiprocessors(a), multiprocessors(b));
	/* What comes from two splits does not belong together, nor does a part with itself. */
	n = 2;
	DCHECK(cuDevSmResourceSplitByCount(parts, &n, &all, NULL, 0, least));
	REQUIRE(n == 2, "%u groups", n);
	{
		CUdevResource both[2] = {parts[0], rest}, twice[2] = {parts[0], parts[0]};
		CUdevResourceDesc desc;

		ONLY_OURS(DEXPECT(cuDevResourceGenerateDesc(&desc, both, 2),
				  CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION));
		ONLY_OURS(DEXPECT(cuDevResourceGenerateDesc(&desc, twice, 2),
				  CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION));
		ONLY_OURS(DEXPECT(cuDevSmResourceSplitByCount(both, &n, &parts[0], NULL, 0, 0),
				  CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION));
	}
	c = make(parts, 2);
	REQUIRE(multiprocessors(c) == parts[0].sm.smCount + parts[1].sm.smCount, "%u",
		multiprocessors(c));
	side_by_side(a, b, memory);
	current(b, memory);

	/* The two parts of c are split again. */
	DCHECK(cuGreenCtxGetDevResource(c, &again, CU_DEV_RESOURCE_TYPE_SM));
	n = 1;
	DCHECK(cuDevSmResourceSplitByCount(parts, &n, &again, &rest, 0, least));
	DCHECK(cuGreenCtxDestroy(a));
	a = make(parts, 1);
	REQUIRE(multiprocessors(a) == parts[0].sm.smCount, "%u", multiprocessors(a));
	current(a, memory);
	DCHECK(cuGreenCtxDestroy(a));
	DCHECK(cuGreenCtxDestroy(b));
	DCHECK(cuGreenCtxDestroy(c));
	ONLY_OURS(DEXPECT(cuGreenCtxGetDevResource(c, &again, CU_DEV_RESOURCE_TYPE_SM),
			  CUDA_ERROR_INVALID_CONTEXT));
	/* Its multiprocessors are gone, too. */
	ONLY_OURS(REQUIRE(cuDevSmResourceSplitByCount(parts, &n, &again, NULL, 0, least),
			  "parts of what is gone"));
	DCHECK(cuMemFree(memory));
	return verified("green contexts");
}

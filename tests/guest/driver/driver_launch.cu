// SPDX-License-Identifier: GPL-2.0-or-later
/* Launches: parameters as a list of addresses and as a buffer, shapes, and what is refused. */
#include "driver.h"

#define N 1000

static void add(CUmodule module)
{
	static float a[N], b[N], sum[N];
	CUfunction function = driver_function(module, "add");
	CUdeviceptr da, db, ds;
	unsigned int count = N, i;
	void *params[] = {&da, &db, &ds, &count};

	for (i = 0; i < N; i++) {
		a[i] = (float)i;
		b[i] = (float)(2 * i);
	}
	DCHECK(cuMemAlloc(&da, sizeof(a)));
	DCHECK(cuMemAlloc(&db, sizeof(a)));
	DCHECK(cuMemAlloc(&ds, sizeof(a)));
	DCHECK(cuMemcpyHtoD(da, a, sizeof(a)));
	DCHECK(cuMemcpyHtoD(db, b, sizeof(b)));
	DCHECK(cuLaunchKernel(function, (N + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	DCHECK(cuMemcpyDtoH(sum, ds, sizeof(sum)));
	for (i = 0; i < N; i++)
		REQUIRE(sum[i] == (float)(3 * i), "%u: %f", i, sum[i]);
	DCHECK(cuMemFree(da));
	DCHECK(cuMemFree(db));
	DCHECK(cuMemFree(ds));
}

/* The kernel's parameters lie at 0, 8, 16 and 24. */
static void buffer(CUmodule module)
{
	struct {
		unsigned char a;
		double b;
		unsigned short c;
		CUdeviceptr to;
	} args = {200, 2.75, 60000, 0};
	size_t size = sizeof(args), little = 8;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};
	void *short_one[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE,
			     &little, CU_LAUNCH_PARAM_END};
	CUfunction function = driver_function(module, "several");
	unsigned long long got[3];
	void *params[] = {&args.a, &args.b, &args.c, &args.to};
	size_t offset, bytes;

	DCHECK(cuMemAlloc(&args.to, sizeof(got)));
	DCHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	DCHECK(cuMemcpyDtoH(got, args.to, sizeof(got)));
	REQUIRE(got[0] == 200 && got[1] == 11 && got[2] == 60000, "%llu %llu %llu", got[0], got[1],
		got[2]);
	DCHECK(cuMemsetD8(args.to, 0, sizeof(got)));
	DCHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	DCHECK(cuMemcpyDtoH(got, args.to, sizeof(got)));
	REQUIRE(got[0] == 200 && got[1] == 11 && got[2] == 60000, "%llu %llu %llu", got[0], got[1],
		got[2]);
	DCHECK(cuFuncGetParamInfo(function, 1, &offset, &bytes));
	REQUIRE(offset == 8 && bytes == 8, "%zu %zu", offset, bytes);
	DCHECK(cuFuncGetParamInfo(function, 3, &offset, NULL));
	REQUIRE(offset == 24, "%zu", offset);
	DEXPECT(cuFuncGetParamInfo(function, 4, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
	ONLY_OURS(DEXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, short_one),
			  CUDA_ERROR_INVALID_VALUE));
	DEXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra),
		CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemFree(args.to));
}

static void shared(CUmodule module)
{
	CUfunction function = driver_function(module, "block_sums");
	unsigned int got[8], i;
	CUdeviceptr to;
	void *params[] = {&to};

	DCHECK(cuMemAlloc(&to, sizeof(got)));
	DCHECK(cuLaunchKernel(function, 8, 1, 1, 64, 1, 1, 64 * 4, NULL, params, NULL));
	DCHECK(cuMemcpyDtoH(got, to, sizeof(got)));
	for (i = 0; i < 8; i++)
		REQUIRE(got[i] == 64 * i + 64 * 63 / 2, "%u: %u", i, got[i]);
	DCHECK(cuMemFree(to));
}

static void refused(CUmodule module)
{
	CUfunction function = driver_function(module, "nothing");

	DEXPECT(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	DEXPECT(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 1 << 30, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	DCHECK(cuCtxSynchronize());
}

int main()
{
	CUmodule module;

	driver_start();
	module = driver_module();
	add(module);
	buffer(module);
	shared(module);
	refused(module);
	DCHECK(cuModuleUnload(module));
	return verified("launches with lists and buffers of parameters");
}

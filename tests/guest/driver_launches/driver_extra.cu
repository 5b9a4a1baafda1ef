// SPDX-License-Identifier: GPL-2.0-or-later
/* The parameters of a launch in one buffer (`extra`): the order of its entries, more than is
 * needed, wrong ones. */
#include "driver.h"

/* The kernel's parameters lie at 0, 8, 16 and 24. */
static struct {
	unsigned char a;
	double b;
	unsigned short c;
	CUdeviceptr to;
	char more[32];
} args = {200, 2.75, 60000, 0, ""};

static CUfunction several, nothing;

static CUresult launch(CUfunction function, void **extra)
{
	return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra);
}

static void expect(void)
{
	unsigned long long got[3];

	DCHECK(cuMemcpyDtoH(got, args.to, sizeof(got)));
	REQUIRE(got[0] == 200 && got[1] == 11 && got[2] == 60000, "%llu %llu %llu", got[0], got[1],
		got[2]);
	DCHECK(cuMemsetD8(args.to, 0, sizeof(got)));
}

static void wrong(void)
{
	size_t size = 32, little = 31, none = 0;
	void *no_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_END};
	void *no_buffer[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
	void *nothing_in_it[] = {CU_LAUNCH_PARAM_END};
	void *short_one[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE,
			     &little, CU_LAUNCH_PARAM_END};
	void *empty[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &none,
			 CU_LAUNCH_PARAM_END};
	void *unknown[] = {(void *)7, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			   CU_LAUNCH_PARAM_END};
	void *params[] = {&args.a, &args.b, &args.c, &args.to};
	void *good[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			CU_LAUNCH_PARAM_END};

	DEXPECT(launch(several, no_size), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(launch(several, no_buffer), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(launch(several, nothing_in_it), CUDA_ERROR_INVALID_VALUE);
	/* NVIDIA's driver reads on behind the end. */
	ONLY_OURS(DEXPECT(launch(several, short_one), CUDA_ERROR_INVALID_VALUE));
	ONLY_OURS(DEXPECT(launch(several, empty), CUDA_ERROR_INVALID_VALUE));
	DEXPECT(launch(several, unknown), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(launch(several, NULL), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuLaunchKernel(several, 1, 1, 1, 1, 1, 1, 0, NULL, params, good),
		CUDA_ERROR_INVALID_VALUE);
}

static void right(void)
{
	size_t size = 32, much = sizeof(args);
	void *first[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};
	void *second[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER, &args,
			  CU_LAUNCH_PARAM_END};
	void *larger[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &much,
			  CU_LAUNCH_PARAM_END};
	CUlaunchConfig config = {};

	DCHECK(launch(several, first));
	expect();
	DCHECK(launch(several, second));
	expect();
	/* More than the parameters need is refused. */
	DEXPECT(launch(several, larger), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	config.gridDimX = config.gridDimY = config.gridDimZ = 1;
	config.blockDimX = config.blockDimY = config.blockDimZ = 1;
	DCHECK(cuLaunchKernelEx(&config, several, NULL, first));
	expect();
	/* A kernel without parameters takes neither. */
	DCHECK(launch(nothing, NULL));
	DCHECK(cuCtxSynchronize());
}

int main()
{
	CUmodule module;

	driver_start();
	module = driver_module();
	several = driver_function(module, "several");
	nothing = driver_function(module, "nothing");
	DCHECK(cuMemAlloc(&args.to, 24));
	wrong();
	right();
	DCHECK(cuMemFree(args.to));
	DCHECK(cuModuleUnload(module));
	return verified("parameters of a launch in one buffer");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* CUDA C++ that is compiled at run time: NVRTC makes PTX, which is loaded and launched. */
#include <dlfcn.h>
#include <nvrtc.h>

#include "driver.h"

static const char source[] = "template <typename T> __device__ T twice(T v) { return v + v; }\n"
			     "extern \"C\" __global__ void axpy(float a, const float *x, float *y, int n)\n"
			     "{\n"
			     "	int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
			     "	if (i < n)\n"
			     "		y[i] = twice(a) * x[i] + y[i];\n"
			     "}\n";

static void *library;

template <typename F> static void find(F *function, const char *name)
{
	*function = (F)dlsym(library, name);
	REQUIRE(*function, "%s", name);
}

static char *compile(const char *text, const char *arch, bool good)
{
	decltype(&nvrtcCreateProgram) create;
	decltype(&nvrtcCompileProgram) compile_program;
	decltype(&nvrtcGetPTXSize) size_of;
	decltype(&nvrtcGetPTX) get;
	decltype(&nvrtcDestroyProgram) destroy;
	nvrtcProgram program;
	nvrtcResult result;
	size_t size;
	char *ptx = NULL;

	find(&create, "nvrtcCreateProgram");
	find(&compile_program, "nvrtcCompileProgram");
	find(&size_of, "nvrtcGetPTXSize");
	find(&get, "nvrtcGetPTX");
	find(&destroy, "nvrtcDestroyProgram");
	REQUIRE(!create(&program, text, "axpy.cu", 0, NULL, NULL), "nvrtcCreateProgram");
	result = compile_program(program, 1, &arch);
	REQUIRE(good == (result == NVRTC_SUCCESS), "nvrtcCompileProgram: %d", (int)result);
	if (good) {
		REQUIRE(!size_of(program, &size), "nvrtcGetPTXSize");
		ptx = (char *)malloc(size);
		REQUIRE(!get(program, ptx), "nvrtcGetPTX");
	}
	REQUIRE(!destroy(&program), "nvrtcDestroyProgram");
	return ptx;
}

int main()
{
	static float x[1000], y[1000];
	CUdeviceptr dx, dy;
	CUmodule module;
	CUdevice device;
	char arch[64], *ptx;
	int major, minor, n = 1000, i;
	float a = 1.5f;
	void *params[] = {&a, &dx, &dy, &n};

	library = dlopen("libnvrtc.so.13", RTLD_NOW);
	if (!library)
		library = dlopen("/usr/local/cuda/lib64/libnvrtc.so.13", RTLD_NOW);
	if (!library) {
		printf("skipped: there is no NVRTC: %s\n", dlerror());
		return 77;
	}
	device = driver_start();
	DCHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
	DCHECK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
	snprintf(arch, sizeof(arch), "--gpu-architecture=compute_%d%d", major, minor);
	compile("this is not C++", arch, false);
	ptx = compile(source, arch, true);
	DCHECK(cuModuleLoadData(&module, ptx));
	free(ptx);
	for (i = 0; i < n; i++) {
		x[i] = (float)i;
		y[i] = 1;
	}
	DCHECK(cuMemAlloc(&dx, sizeof(x)));
	DCHECK(cuMemAlloc(&dy, sizeof(y)));
	DCHECK(cuMemcpyHtoD(dx, x, sizeof(x)));
	DCHECK(cuMemcpyHtoD(dy, y, sizeof(y)));
	DCHECK(cuLaunchKernel(driver_function(module, "axpy"), 8, 1, 1, 128, 1, 1, 0, NULL, params,
			      NULL));
	DCHECK(cuMemcpyDtoH(y, dy, sizeof(y)));
	for (i = 0; i < n; i++)
		REQUIRE(y[i] == 3 * (float)i + 1, "%d: %f", i, y[i]);
	DCHECK(cuModuleUnload(module));
	return verified("a kernel is compiled while the program runs");
}

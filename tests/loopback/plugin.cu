// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A kernel in a shared object that is loaded and unloaded again and again, as applications do
 * with plugins. This file is compiled twice: with PLUGIN it is the shared object.
 */
#include "check.h"

#ifdef PLUGIN

__device__ int bias = 5;
__managed__ int managed = 7;

__global__ void store(int *out, int x)
{
	*out = x + bias;
	managed++;
}

extern "C" cudaError_t plugin_run(int *out, int x)
{
	int b = 100;

	OK(cudaMemcpyToSymbol(bias, &b, sizeof(b)));
	REQUIRE(managed == 7, "%d", managed);
	store<<<1, 1>>>(out, x);
	OK(cudaDeviceSynchronize());
	REQUIRE(managed == 8, "%d", managed);
	return cudaGetLastError();
}

#else

#include <dlfcn.h>

int main(int argc, char **argv)
{
	char path[4096];
	int *dev, i, got;

	(void)argc;
	snprintf(path, sizeof(path), "%s.so", argv[0]);
	OK(cudaMalloc((void **)&dev, sizeof(int)));
	for (i = 0; i < 50; i++) {
		void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		cudaError_t (*run)(int *, int);

		REQUIRE(lib, "%s", dlerror());
		run = (cudaError_t(*)(int *, int))dlsym(lib, "plugin_run");
		REQUIRE(run, "%s", dlerror());
		OK(run(dev, i));
		OK(cudaMemcpy(&got, dev, sizeof(got), cudaMemcpyDeviceToHost));
		REQUIRE(got == i + 100, "round %d: %d", i, got);
		dlclose(lib);
	}
	OK(cudaFree(dev));
	return 0;
}

#endif

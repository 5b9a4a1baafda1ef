// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program as a wheel is: it finds NVIDIA's libraries by a path that is written into it (RPATH),
 * or loads one by its whole path. It prints in which file it found the function. Compiled with
 * LIBRARY, this file is what lies at that path.
 */
#ifdef LIBRARY
int cublasGetVersion_v2(void);
__attribute__((visibility("default"))) int cublasGetVersion_v2(void)
{
	return 0;
}
#else
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *lib = dlopen(argc > 1 ? argv[1] : "libcublas.so.13", RTLD_NOW);
	void *fn = lib ? dlsym(lib, argc > 2 ? argv[2] : "cublasGetVersion_v2") : NULL;
	Dl_info info;

	if (!fn || !dladdr(fn, &info)) {
		fprintf(stderr, "no library: %s\n", dlerror());
		return 1;
	}
	puts(info.dli_fname);
	return 0;
}
#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/* Modules and libraries from files and fat binaries, several at once, unloaded in another order. */
#include <unistd.h>

#include "driver.h"

#define MANY 12

static unsigned int number(CUmodule module)
{
	unsigned int value;
	CUdeviceptr at;
	size_t bytes;

	DCHECK(cuModuleGetGlobal(&at, &bytes, module, "number"));
	DCHECK(cuMemcpyDtoH(&value, at, 4));
	return value;
}

static void set_number(CUmodule module, unsigned int value)
{
	CUdeviceptr at;

	DCHECK(cuModuleGetGlobal(&at, NULL, module, "number"));
	DCHECK(cuMemcpyHtoD(at, &value, 4));
}

static void write_file(char *name, const char *text, size_t bytes)
{
	int fd = mkstemp(name);

	REQUIRE(fd >= 0, "mkstemp");
	REQUIRE(write(fd, text, bytes) == (ssize_t)bytes, "write");
	close(fd);
}

static void files(void)
{
	char good[] = "/tmp/driver_file_XXXXXX", cut[] = "/tmp/driver_file_XXXXXX",
	     empty[] = "/tmp/driver_file_XXXXXX";
	CUlibrary library;
	CUmodule module;
	CUkernel kernel;
	CUdeviceptr at;
	size_t bytes;
	unsigned int n;

	write_file(good, driver_kernels, strlen(driver_kernels));
	write_file(cut, driver_kernels, strlen(driver_kernels) / 2);
	write_file(empty, "", 0);
	DEXPECT(cuModuleLoad(&module, cut), CUDA_ERROR_INVALID_PTX);
	REQUIRE(cuModuleLoad(&module, empty), "an empty file");
	REQUIRE(cuModuleLoad(&module, "/tmp"), "a folder");
	DEXPECT(cuModuleLoad(&module, ""), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuLibraryLoadFromFile(&library, "/no/such/file", NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_FILE_NOT_FOUND);
	DCHECK(cuLibraryLoadFromFile(&library, good, NULL, NULL, 0, NULL, NULL, 0));
	DCHECK(cuLibraryGetKernelCount(&n, library));
	REQUIRE(n >= 8, "%u", n);
	DCHECK(cuLibraryGetKernel(&kernel, library, "fill"));
	DCHECK(cuLibraryGetGlobal(&at, &bytes, library, "number"));
	REQUIRE(bytes == 4, "%zu", bytes);
	DCHECK(cuLibraryGetModule(&module, library));
	REQUIRE(number(module) == 7, "%u", number(module));
	/* A library's module belongs to the library. */
	DEXPECT(cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);
	DCHECK(cuLibraryUnload(library));
	unlink(good);
	unlink(cut);
	unlink(empty);
}

static void many(void)
{
	CUmodule modules[MANY];
	unsigned int i;

	for (i = 0; i < MANY; i++) {
		modules[i] = driver_module();
		set_number(modules[i], 100 + i);
	}
	for (i = 0; i < MANY; i += 2)
		DCHECK(cuModuleUnload(modules[i]));
	for (i = 1; i < MANY; i += 2)
		REQUIRE(number(modules[i]) == 100 + i, "%u: %u", i, number(modules[i]));
	for (i = 0; i < MANY; i += 2)
		modules[i] = driver_module();
	for (i = 0; i < MANY; i++)
		REQUIRE(number(modules[i]) == (i % 2 ? 100 + i : 7), "%u: %u", i,
			number(modules[i]));
	for (i = MANY; i-- > 0;)
		DCHECK(cuModuleUnload(modules[i]));
}

int main()
{
	CUmodule module;

	driver_start();
	files();
	many();
	DEXPECT(cuModuleLoadFatBinary(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuModuleLoadFatBinary(NULL, driver_kernels), CUDA_ERROR_INVALID_VALUE);
	return verified("modules from files, and many of them");
}

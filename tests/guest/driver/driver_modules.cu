// SPDX-License-Identifier: GPL-2.0-or-later
/* Modules: from memory and from a file, their functions and variables, and wrong handles. */
#include <unistd.h>

#include "driver.h"

static unsigned int run(CUmodule module)
{
	unsigned int got[4];
	CUdeviceptr to;
	void *params[] = {&to};

	DCHECK(cuMemAlloc(&to, sizeof(got)));
	DCHECK(cuLaunchKernel(driver_function(module, "use_variables"), 1, 1, 1, 4, 1, 1, 0, NULL,
			      params, NULL));
	DCHECK(cuMemcpyDtoH(got, to, sizeof(got)));
	DCHECK(cuMemFree(to));
	return got[0] + got[1] + got[2] + got[3];
}

/* Returns where `number` is. */
static CUdeviceptr variables(CUmodule module)
{
	CUdeviceptr at, table;
	unsigned int value;
	size_t bytes;

	DCHECK(cuModuleGetGlobal(&at, &bytes, module, "number"));
	REQUIRE(bytes == 4, "%zu", bytes);
	DCHECK(cuMemcpyDtoH(&value, at, 4));
	REQUIRE(value == 7, "%u", value);
	REQUIRE(run(module) == 128, "%u", run(module));
	value = 8;
	DCHECK(cuMemcpyHtoD(at, &value, 4));
	REQUIRE(run(module) == 132, "%u", run(module));
	DCHECK(cuModuleGetGlobal(NULL, &bytes, module, "table"));
	REQUIRE(bytes == 16, "%zu", bytes);
	DCHECK(cuModuleGetGlobal(&table, NULL, module, "table"));
	DEXPECT(cuModuleGetGlobal(&table, &bytes, module, "no_such_variable"),
		CUDA_ERROR_NOT_FOUND);
	DEXPECT(cuModuleGetGlobal(&table, &bytes, NULL, "number"), CUDA_ERROR_INVALID_HANDLE);
	return at;
}

static CUresult look_at(CUdeviceptr at)
{
	CUmemorytype type;

	return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
}

static void file(void)
{
	char name[] = "/tmp/driver_modules_XXXXXX";
	int fd = mkstemp(name);
	CUmodule module;

	REQUIRE(fd >= 0, "mkstemp");
	REQUIRE(write(fd, driver_kernels, strlen(driver_kernels)) ==
			(ssize_t)strlen(driver_kernels),
		"write");
	close(fd);
	DCHECK(cuModuleLoad(&module, name));
	unlink(name);
	REQUIRE(run(module) == 128, "%u", run(module));
	DCHECK(cuModuleUnload(module));
	DEXPECT(cuModuleLoad(&module, name), CUDA_ERROR_FILE_NOT_FOUND);
}

static void functions(CUmodule module)
{
	CUfunction list[32], found;
	CUmodule owner;
	unsigned int count, i, same = 0;
	const char *name;

	DCHECK(cuModuleGetFunctionCount(&count, module));
	REQUIRE(count >= 8 && count <= 32, "%u", count);
	DCHECK(cuModuleEnumerateFunctions(list, count, module));
	DCHECK(cuModuleGetFunction(&found, module, "fill"));
	for (i = 0; i < count; i++) {
		DCHECK(cuFuncGetName(&name, list[i]));
		if (!strcmp(name, "fill") && list[i] == found)
			same++;
	}
	REQUIRE(same == 1, "fill was found %u times", same);
	DCHECK(cuFuncGetModule(&owner, found));
	REQUIRE(owner == module, "another module");
	DEXPECT(cuModuleGetFunction(&found, module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
	DEXPECT(cuModuleGetFunction(&found, module, NULL), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuModuleGetFunction(NULL, module, "fill"), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuModuleGetFunctionCount(NULL, module), CUDA_ERROR_INVALID_VALUE);
}

int main()
{
	CUmoduleLoadingMode mode;
	CUmodule module, other;
	CUfunction function;
	CUdeviceptr at;

	driver_start();
	DCHECK(cuModuleGetLoadingMode(&mode));
	DEXPECT(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuModuleLoadData(NULL, driver_kernels), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuModuleLoadData(&module, "this is no PTX"), CUDA_ERROR_INVALID_IMAGE);
	DEXPECT(cuModuleLoadData(&module, ".version 7.0\n.target sm_75\nnonsense\n"),
		CUDA_ERROR_INVALID_PTX);
	DCHECK(cuModuleLoadDataEx(&module, driver_kernels, 0, NULL, NULL));
	at = variables(module);
	functions(module);
	/* Another load has variables of its own. */
	other = driver_module();
	REQUIRE(run(other) == 128, "%u", run(other));
	REQUIRE(run(module) == 132, "%u", run(module));
	DCHECK(cuModuleUnload(other));
	DCHECK(look_at(at));
	DCHECK(cuModuleUnload(module));
	DEXPECT(look_at(at), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	DEXPECT(cuModuleGetFunction(&function, module, "fill"), CUDA_ERROR_INVALID_HANDLE);
	DEXPECT(cuModuleUnload(NULL), CUDA_ERROR_INVALID_HANDLE);
	file();
	return verified("modules have their own functions and variables");
}

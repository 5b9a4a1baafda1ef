// SPDX-License-Identifier: GPL-2.0-or-later
/* The compiler's options: texts of errors with line and reason, the time, wrong values. */
#include "driver.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"

static const char bad[] =
	HEAD ".visible .entry k()\n{\n.reg .b32 %a;\nmov.u32 %a, %nowhere;\nret;\n}\n";

static char info[4096], error[4096];

static CUresult load(CUmodule *module, const char *image, size_t room, size_t *used, float *ms)
{
	CUjit_option options[] = {
		CU_JIT_INFO_LOG_BUFFER,	   CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER,   CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_LOG_VERBOSE,	   CU_JIT_WALL_TIME,
		CU_JIT_MAX_REGISTERS,	   CU_JIT_OPTIMIZATION_LEVEL,
		CU_JIT_GENERATE_LINE_INFO,
	};
	void *values[] = {info, (void *)room, error,	 (void *)room, (void *)1,
			  0,	(void *)64,   (void *)3, (void *)1};
	CUresult result;

	memset(info, '?', sizeof(info));
	memset(error, '?', sizeof(error));
	result = cuModuleLoadDataEx(module, image, 9, options, values);
	*used = (size_t)values[3];
	memcpy(ms, &values[5], sizeof(*ms));
	return result;
}

int main()
{
	CUjit_option option = CU_JIT_OPTIMIZATION_LEVEL;
	void *value = (void *)7;
	CUlibrary library;
	CUmodule module;
	size_t used;
	float ms;

	/* What was compiled before would come from a file, without a text. */
	setenv("CUDA_CACHE_DISABLE", "1", 1);
	driver_start();
	DEXPECT(cuModuleLoadDataEx(&module, driver_kernels, 1, NULL, &value),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuModuleLoadDataEx(&module, driver_kernels, 1, &option, NULL),
		CUDA_ERROR_INVALID_VALUE);
	/* Higher than the highest level is the highest. */
	DCHECK(cuModuleLoadDataEx(&module, driver_kernels, 1, &option, &value));
	DCHECK(cuModuleUnload(module));
	option = (CUjit_option)77;
	DEXPECT(cuModuleLoadDataEx(&module, driver_kernels, 1, &option, &value),
		CUDA_ERROR_INVALID_VALUE);

	DEXPECT(load(&module, bad, sizeof(error), &used, &ms), CUDA_ERROR_INVALID_PTX);
	REQUIRE(used && used == strlen(error), "%zu of %s", used, error);
	REQUIRE(strstr(error, "line 7") && strstr(error, "nowhere"), "%s", error);
	/* In a small room there is as much as fits, with its end. */
	DEXPECT(load(&module, bad, 10, &used, &ms), CUDA_ERROR_INVALID_PTX);
	REQUIRE(strlen(error) == 9 && error[10] == '?', "%s", error);
	/* In none there is nothing. NVIDIA's driver writes the text's end all the same. */
	DEXPECT(load(&module, bad, 0, &used, &ms), CUDA_ERROR_INVALID_PTX);
	ONLY_OURS(REQUIRE(error[0] == '?' && !used, "%s", error));

	DCHECK(load(&module, driver_kernels, sizeof(error), &used, &ms));
	REQUIRE(!error[0] && !used, "%s", error);
	REQUIRE(strstr(info, "fill"), "%s", info);
	REQUIRE(ms > 0, "%f ms", ms);
	DCHECK(cuModuleUnload(module));

	option = CU_JIT_MAX_REGISTERS;
	value = (void *)32;
	DCHECK(cuLibraryLoadData(&library, driver_kernels, &option, &value, 1, NULL, NULL, 0));
	DCHECK(cuLibraryUnload(library));
	return verified("the compiler says what is wrong");
}

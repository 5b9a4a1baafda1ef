// SPDX-License-Identifier: GPL-2.0-or-later
/* Links: two units of PTX, from memory and from a file, become one module, and so does one with an
 * object file or an archive of the host's; what is wrong has a text. */
#include <unistd.h>

#include "driver.h"
#include "driver_unit.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"

static const char defines[] = HEAD ".visible .global .align 4 .u32 base = 21;\n"
				   ".visible .func (.param .b32 r) twice(.param .b32 v)\n{\n"
				   ".reg .b32 %a;\nld.param.b32 %a, [v];\nadd.u32 %a, %a, %a;\n"
				   "st.param.b32 [r], %a;\nret;\n}\n";
static const char uses[] =
	HEAD ".extern .global .align 4 .u32 base;\n"
	     ".extern .func (.param .b32 r) twice(.param .b32 v);\n"
	     ".visible .entry k(.param .u64 p)\n{\n"
	     ".reg .b64 %p;\n.reg .b32 %a;\n"
	     "ld.param.u64 %p, [p];\ncvta.to.global.u64 %p, %p;\nld.global.u32 %a, [base];\n"
	     "{\n.param .b32 r;\n.param .b32 v;\nst.param.b32 [v], %a;\n"
	     "call (r), twice, (v);\nld.param.b32 %a, [r];\n}\n"
	     "st.global.u32 [%p], %a;\nret;\n}\n";

static char error[4096];

static CUlinkState create(void)
{
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	static void *values[2];
	CUlinkState state;

	values[0] = error;
	values[1] = (void *)sizeof(error);
	error[0] = '\0';
	DCHECK(cuLinkCreate(2, options, values, &state));
	return state;
}

static CUresult add(CUlinkState state, const char *ptx)
{
	return cuLinkAddData(state, CU_JIT_INPUT_PTX, (void *)ptx, strlen(ptx) + 1, "unit", 0, NULL,
			     NULL);
}

static void run(const void *image)
{
	unsigned int got = 0;
	CUdeviceptr at;
	CUmodule module;
	void *params[] = {&at};

	DCHECK(cuModuleLoadData(&module, image));
	DCHECK(cuMemAlloc(&at, 4));
	DCHECK(cuLaunchKernel(driver_function(module, "k"), 1, 1, 1, 1, 1, 1, 0, NULL, params,
			      NULL));
	DCHECK(cuMemcpyDtoH(&got, at, 4));
	REQUIRE(got == 42, "%u", got);
	DCHECK(cuMemFree(at));
	DCHECK(cuModuleUnload(module));
}

static void wrong(void)
{
	CUlinkState state = create();
	void *image;
	size_t bytes;

	DEXPECT(cuLinkCreate(0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuLinkAddData(state, CU_JIT_INPUT_PTX, NULL, 5, "unit", 0, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuLinkAddData(state, (CUjitInputType)9, (void *)uses, 5, "unit", 0, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/no/such/file", 0, NULL, NULL),
		CUDA_ERROR_FILE_NOT_FOUND);
	ONLY_OURS(DEXPECT(cuLinkAddData((CUlinkState)&state, CU_JIT_INPUT_PTX, (void *)uses,
					sizeof(uses), "unit", 0, NULL, NULL),
			  CUDA_ERROR_INVALID_HANDLE));
	DEXPECT(cuLinkComplete(state, NULL, &bytes), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(add(state, HEAD ".visible .entry k()\n{\nmov.u32 %a, 1;\n}\n"),
		CUDA_ERROR_INVALID_PTX);
	REQUIRE(strstr(error, "line 6"), "%s", error);
	DCHECK(cuLinkDestroy(state));
	ONLY_OURS(DEXPECT(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE));
	ONLY_OURS(DEXPECT(cuLinkComplete(state, &image, &bytes), CUDA_ERROR_INVALID_HANDLE));
	state = create();
	DCHECK(add(state, uses));
	REQUIRE(cuLinkComplete(state, &image, &bytes) != CUDA_SUCCESS, "a function is missing");
	REQUIRE(strstr(error, "twice"), "%s", error);
	DCHECK(cuLinkDestroy(state));
}

/* What the second unit defines comes from an object file or an archive. */
static void from_host(CUjitInputType type, const unsigned char *data, size_t size)
{
	char name[] = "/tmp/driver_link_XXXXXX";
	int fd = mkstemp(name);
	CUlinkState state;
	void *image;
	size_t bytes;

	REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size, "file");
	close(fd);
	/* A file that ends too early: NVIDIA's driver reads on. */
	state = create();
	ONLY_OURS(REQUIRE(cuLinkAddData(state, type, (void *)data, 100, "unit", 0, NULL, NULL) !=
				  CUDA_SUCCESS,
			  "a part of a file"));
	DCHECK(cuLinkDestroy(state));
	for (int from_file = 0; from_file < 2; from_file++) {
		state = create();
		DCHECK(add(state, uses));
		if (from_file)
			DCHECK(cuLinkAddFile(state, type, name, 0, NULL, NULL));
		else
			DCHECK(cuLinkAddData(state, type, (void *)data, size, "unit", 0, NULL,
					     NULL));
		DCHECK(cuLinkComplete(state, &image, &bytes));
		run(image);
		DCHECK(cuLinkDestroy(state));
	}
	unlink(name);
}

int main()
{
	char name[] = "/tmp/driver_link_XXXXXX";
	CUlinkState state;
	void *image, *copy;
	size_t bytes;
	int fd;

	DEXPECT(cuLinkCreate(0, NULL, NULL, &state), CUDA_ERROR_NOT_INITIALIZED);
	driver_start();
	wrong();
	fd = mkstemp(name);
	REQUIRE(fd >= 0 && write(fd, defines, strlen(defines)) == (ssize_t)strlen(defines), "file");
	close(fd);
	state = create();
	DCHECK(add(state, uses));
	DCHECK(cuLinkAddFile(state, CU_JIT_INPUT_PTX, name, 0, NULL, NULL));
	unlink(name);
	DCHECK(cuLinkComplete(state, &image, &bytes));
	REQUIRE(bytes > 0, "%zu", bytes);
	run(image);
	/* The image is the program's to keep, and goes with the link. */
	copy = malloc(bytes);
	memcpy(copy, image, bytes);
	DCHECK(cuLinkDestroy(state));
	run(copy);
	free(copy);
	from_host(CU_JIT_INPUT_OBJECT, driver_unit_o, sizeof(driver_unit_o));
	from_host(CU_JIT_INPUT_LIBRARY, driver_unit_a, sizeof(driver_unit_a));
	return verified("two units are one module");
}

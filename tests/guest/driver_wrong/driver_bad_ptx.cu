// SPDX-License-Identifier: GPL-2.0-or-later
/* PTX with errors of many kinds: each is refused, and the log has the line and the reason. */
#include "driver.h"

#define HEAD "\n.version 7.5\n.target sm_75\n.address_size 64\n"

/* The text begins in line 1, so the statement after HEAD is in line 5. */
static const struct {
	const char *text;
	CUresult code;
	const char *line, *reason; /* what the log names; NULL: not looked at */
} bad[] = {
	{HEAD ".visible .entry k() { frobnicate.u32 %r1; }\n", CUDA_ERROR_INVALID_PTX, "line 5",
	 "frobnicate"},
	{HEAD ".visible .entry k()\n{\n.reg .b32 %a;\nmov.u32 %a, %b;\nret;\n}\n",
	 CUDA_ERROR_INVALID_PTX, "line 8", "%b"},
	{HEAD ".visible .entry k()\n{\nbra nowhere;\nret;\n}\n", CUDA_ERROR_INVALID_PTX, "line 7",
	 "nowhere"},
	{HEAD ".visible .entry k()\n{\ncall missing, ();\nret;\n}\n", CUDA_ERROR_INVALID_PTX,
	 "line 7", NULL},
	{HEAD ".visible .entry k() { ret; }\n.visible .entry k() { ret; }\n",
	 CUDA_ERROR_INVALID_PTX, "line 6", "k"},
	{"\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n",
	 CUDA_ERROR_INVALID_IMAGE, NULL, NULL},
	{HEAD ".visible .entry k()\n{\nret\n}\n", CUDA_ERROR_INVALID_PTX, "line 8", NULL},
	{HEAD ".visible .entry k()\n{\nret;\n", CUDA_ERROR_INVALID_PTX, NULL, NULL},
	{"\n.version 7.5\n.address_size 64\n.visible .entry k() { ret; }\n", CUDA_ERROR_INVALID_PTX,
	 NULL, ".target"},
};

int main()
{
	static char log[4096];
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	unsigned int i, n = sizeof(bad) / sizeof(*bad);
	CUlibrary library;
	CUmodule module;

	driver_start();
	for (i = 0; i < n; i++) {
		void *values[] = {log, (void *)sizeof(log)};
		CUresult got;

		memset(log, 0, sizeof(log));
		got = cuModuleLoadDataEx(&module, bad[i].text, 2, options, values);
		REQUIRE(got == bad[i].code, "%u: %s: %s", i, result_name(got), log);
		REQUIRE(!bad[i].line || strstr(log, bad[i].line), "%u: not %s: %s", i, bad[i].line,
			log);
		REQUIRE(!bad[i].reason || strstr(log, bad[i].reason), "%u: not %s: %s", i,
			bad[i].reason, log);
		/* Without a log, and as a library, the code is the same. */
		DEXPECT(cuModuleLoadData(&module, bad[i].text), bad[i].code);
		/* NVIDIA's driver compiles a library when it is first used. */
		ONLY_OURS(DEXPECT(cuLibraryLoadData(&library, bad[i].text, NULL, NULL, 0, NULL,
						    NULL, 0),
				  bad[i].code));
	}
	/* The context is as it was. */
	module = driver_module();
	DCHECK(cuLaunchKernel(driver_function(module, "nothing"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL,
			      NULL));
	DCHECK(cuCtxSynchronize());
	DCHECK(cuModuleUnload(module));
	return verified("%u kinds of bad PTX, with line and reason", n);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Options for the compiler when a library is loaded: how many registers a kernel may have. */
#include "check.h"

/*
 * For blocks of 1024 threads, the compiler may use 64 registers per thread. This kernel needs more.
 */
static const char head[] = ".version 7.0\n"
			   ".target sm_75\n"
			   ".address_size 64\n"
			   ".visible .entry sums(.param .u64 to)\n"
			   "{\n"
			   ".reg .pred %p;\n"
			   ".reg .b32 %r<100>;\n"
			   ".reg .b64 %rd<2>;\n"
			   "ld.param.u64 %rd1, [to];\n"
			   "cvta.to.global.u64 %rd1, %rd1;\n";

/* Ninety numbers are in use at once, from one round of a loop to the next. */
static const char *make_hungry(void)
{
	static char text[sizeof(head) + 200 * 60];
	int n = sprintf(text, "%s", head), i;

	for (i = 1; i <= 90; i++)
		n += sprintf(text + n, "ld.volatile.global.u32 %%r%d, [%%rd1+%d];\n", i, 4 * i);
	n += sprintf(text + n, "ld.volatile.global.u32 %%r99, [%%rd1];\nagain:\n");
	for (i = 90; i > 1; i--)
		n += sprintf(text + n, "mad.lo.u32 %%r%d, %%r%d, %%r%d, 7;\n", i - 1, i, i - 1);
	n += sprintf(text + n, "xor.b32 %%r90, %%r90, %%r1;\n"
			       "sub.u32 %%r99, %%r99, 1;\n"
			       "setp.ne.u32 %%p, %%r99, 0;\n"
			       "@%%p bra again;\n");
	sprintf(text + n, "st.volatile.global.u32 [%%rd1], %%r1;\nret;\n}\n");
	return text;
}

/* With fewer registers than it needs, a kernel can have larger blocks. The compiler finds a way. */
int main(void)
{
	const char *text = make_hungry();
	enum cudaJitOption options[] = {cudaJitMaxRegisters, cudaJitErrorLogBuffer,
					cudaJitErrorLogBufferSizeBytes, cudaJitWallTime};
	enum cudaLibraryOption preserved = cudaLibraryBinaryIsPreserved;
	char log[100] = "not touched";
	void *values[] = {(void *)32, log, (void *)sizeof(log), NULL}, *one = (void *)1;
	struct cudaFuncAttributes wide, narrow;
	cudaLibrary_t library, limited;
	cudaKernel_t kernel;

	EXPECT(cudaLibraryLoadData(&library, text, NULL, values, 1, NULL, NULL, 0),
	       cudaErrorInvalidValue);
	EXPECT(cudaLibraryLoadData(&library, text, options, NULL, 1, NULL, NULL, 0),
	       cudaErrorInvalidValue);
	EXPECT(cudaLibraryLoadFromFile(&library, "/dev/null", NULL, NULL, 0, &preserved, &one, 1),
	       cudaErrorInvalidValue);
	(void)cudaGetLastError();
	OK(cudaLibraryLoadData(&library, text, NULL, NULL, 0, &preserved, &one, 1));
	OK(cudaLibraryGetKernel(&kernel, library, "sums"));
	OK(cudaFuncGetAttributes(&wide, (const void *)kernel));
	OK(cudaLibraryLoadData(&limited, text, options, values, 4, NULL, NULL, 0));
	OK(cudaLibraryGetKernel(&kernel, limited, "sums"));
	OK(cudaFuncGetAttributes(&narrow, (const void *)kernel));
	REQUIRE(wide.numRegs > 64, "%d registers", wide.numRegs);
	REQUIRE(narrow.numRegs <= 32, "%d registers where 32 are permitted", narrow.numRegs);
	REQUIRE(wide.maxThreadsPerBlock < 1024 && narrow.maxThreadsPerBlock == 1024,
		"blocks of %d and %d", wide.maxThreadsPerBlock, narrow.maxThreadsPerBlock);
	REQUIRE(!log[0], "the compiler says: %s", log);
	printf("a library of at most 32 registers has larger blocks\n");
	OK(cudaLibraryUnload(library));
	OK(cudaLibraryUnload(limited));
	return 0;
}

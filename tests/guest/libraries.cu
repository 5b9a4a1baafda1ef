// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Modules loaded while the program runs: PTX from memory and from a file, kernels and variables
 * found by name and used as registered ones are, or listed, managed memory, what the compiler is
 * told; and what is wrong is refused.
 */
#include <unistd.h>

#include "check.h"

#define N 1000

static const char ptx[] = ".version 7.0\n"
			  ".target sm_75\n"
			  ".address_size 64\n"
			  ".visible .global .align 4 .u32 offset = 7;\n"
			  ".visible .entry shift(.param .u64 to, .param .u32 count)\n"
			  "{\n"
			  ".reg .pred %p;\n"
			  ".reg .b32 %r<6>;\n"
			  ".reg .b64 %rd<4>;\n"
			  "ld.param.u64 %rd1, [to];\n"
			  "ld.param.u32 %r1, [count];\n"
			  "mov.u32 %r2, %tid.x;\n"
			  "mov.u32 %r3, %ctaid.x;\n"
			  "mov.u32 %r4, %ntid.x;\n"
			  "mad.lo.u32 %r2, %r3, %r4, %r2;\n"
			  "setp.ge.u32 %p, %r2, %r1;\n"
			  "@%p bra done;\n"
			  "ld.global.u32 %r3, [offset];\n"
			  "add.u32 %r4, %r2, %r3;\n"
			  "cvta.to.global.u64 %rd1, %rd1;\n"
			  "mul.wide.u32 %rd2, %r2, 4;\n"
			  "add.u64 %rd3, %rd1, %rd2;\n"
			  "st.global.u32 [%rd3], %r4;\n"
			  "done: ret;\n"
			  "}\n";

/* What a compiler may use for each of 1024 threads is 64 registers; this one needs more. */
static const char hungry[] = ".version 7.0\n"
			     ".target sm_75\n"
			     ".address_size 64\n"
			     ".visible .global .attribute(.managed) .align 4 .u32 total = 5;\n"
			     ".visible .global .align 4 .u32 plain = 6;\n"
			     ".visible .entry count(.param .u32 by)\n"
			     "{\n"
			     ".reg .b32 %r<3>;\n"
			     "ld.param.u32 %r1, [by];\n"
			     "atom.global.add.u32 %r2, [total], %r1;\n"
			     "ret;\n"
			     "}\n"
			     ".visible .entry nothing()\n"
			     "{\n"
			     "ret;\n"
			     "}\n"
			     ".visible .entry sums(.param .u64 to)\n"
			     "{\n"
			     ".reg .pred %p;\n"
			     ".reg .b32 %r<100>;\n"
			     ".reg .b64 %rd<2>;\n"
			     "ld.param.u64 %rd1, [to];\n"
			     "cvta.to.global.u64 %rd1, %rd1;\n";

__global__ void registered(int *p)
{
	*p = 42;
}

static int *dev;

static void run(cudaKernel_t kernel, int offset, const char *what)
{
	static int host[N];
	int n = N;
	void *args[] = {&dev, &n};

	CHECK(cudaMemset(dev, 0, sizeof(host)));
	CHECK(cudaLaunchKernel((const void *)kernel, dim3((N + 127) / 128), dim3(128), args, 0, 0));
	CHECK(cudaMemcpy(host, dev, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		REQUIRE(host[i] == i + offset, "%s: element %d is %d", what, i, host[i]);
}

static void use(cudaLibrary_t library, const char *what)
{
	cudaKernel_t kernel, again;
	struct cudaFuncAttributes attr;
	void *variable;
	size_t size;
	int eleven = 11;

	CHECK(cudaLibraryGetKernel(&kernel, library, "shift"));
	CHECK(cudaLibraryGetKernel(&again, library, "shift"));
	REQUIRE(kernel == again, "two kernels of one name");
	run(kernel, 7, what);
	CHECK(cudaLibraryGetGlobal(&variable, &size, library, "offset"));
	REQUIRE(size == sizeof(int), "%zu bytes", size);
	CHECK(cudaMemcpy(variable, &eleven, sizeof(eleven), cudaMemcpyHostToDevice));
	run(kernel, 11, what);
	CHECK(cudaFuncGetAttributes(&attr, (const void *)kernel));
	REQUIRE(attr.maxThreadsPerBlock >= 128, "%d threads", attr.maxThreadsPerBlock);
	EXPECT(cudaLibraryGetKernel(&kernel, library, "nothing"), cudaErrorSymbolNotFound);
	EXPECT(cudaLibraryGetGlobal(&variable, &size, library, "nothing"), cudaErrorSymbolNotFound);
	(void)cudaGetLastError();
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Ninety numbers that are all alive at once, from one round of a loop to the next. */
static const char *make_hungry(void)
{
	static char text[sizeof(hungry) + 200 * 60];
	int n = sprintf(text, "%s", hungry);

	for (int i = 1; i <= 90; i++)
		n += sprintf(text + n, "ld.volatile.global.u32 %%r%d, [%%rd1+%d];\n", i, 4 * i);
	n += sprintf(text + n, "ld.volatile.global.u32 %%r99, [%%rd1];\nagain:\n");
	for (int i = 90; i > 1; i--)
		n += sprintf(text + n, "mad.lo.u32 %%r%d, %%r%d, %%r%d, 7;\n", i - 1, i, i - 1);
	n += sprintf(text + n, "xor.b32 %%r90, %%r90, %%r1;\n"
			       "sub.u32 %%r99, %%r99, 1;\n"
			       "setp.ne.u32 %%p, %%r99, 0;\n"
			       "@%%p bra again;\n");
	sprintf(text + n, "st.volatile.global.u32 [%%rd1], %%r1;\nret;\n}\n");
	return text;
}

/* Each kernel once, with the handle that its name gives. */
static void enumerate(const char *text)
{
	cudaKernel_t kernels[8], found;
	const char *names[8];
	cudaLibrary_t library;
	unsigned int count = 77;

	CHECK(cudaLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	EXPECT(cudaLibraryGetKernelCount(NULL, library), cudaErrorInvalidValue);
	EXPECT(cudaLibraryGetKernelCount(&count, NULL), cudaErrorInvalidResourceHandle);
	EXPECT(cudaLibraryEnumerateKernels(kernels, 8, NULL), cudaErrorInvalidResourceHandle);
	CHECK(cudaLibraryGetKernelCount(&count, library));
	REQUIRE(count == 3, "%u kernels", count);
	memset(kernels, 0, sizeof(kernels));
	CHECK(cudaLibraryEnumerateKernels(kernels, 2, library));
	REQUIRE(kernels[0] && kernels[1] && !kernels[2], "two were asked for");
	CHECK(cudaLibraryEnumerateKernels(kernels, 8, library));
	for (unsigned int i = 0; i < count; i++) {
		CHECK(cudaFuncGetName(&names[i], (const void *)kernels[i]));
		CHECK(cudaLibraryGetKernel(&found, library, names[i]));
		REQUIRE(found == kernels[i], "%s has another handle", names[i]);
	}
	qsort(names, count, sizeof(names[0]), by_name);
	for (unsigned int i = 0; i < count; i++)
		printf("kernel %s\n", names[i]);
	CHECK(cudaLibraryUnload(library));
}

/* Both sides have it at one address. */
static void managed(const char *text)
{
	cudaLibrary_t library;
	cudaKernel_t kernel;
	int by = 37, *total;
	void *args[] = {&by}, *p, *same;
	size_t size;

	CHECK(cudaLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	EXPECT(cudaLibraryGetManaged(&p, &size, NULL, "total"), cudaErrorInvalidResourceHandle);
	EXPECT(cudaLibraryGetManaged(&p, &size, library, NULL), cudaErrorInvalidValue);
	EXPECT(cudaLibraryGetManaged(&p, &size, library, "plain"), cudaErrorSymbolNotFound);
	EXPECT(cudaLibraryGetManaged(&p, &size, library, "missing"), cudaErrorSymbolNotFound);
	EXPECT(cudaLibraryGetUnifiedFunction(&p, library, "count"), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaLibraryGetManaged(&p, &size, library, "total"));
	CHECK(cudaLibraryGetManaged(&same, NULL, library, "total"));
	REQUIRE(p == same && size == sizeof(int), "%zu bytes", size);
	total = (int *)p;
	REQUIRE(*total == 5, "%d at the beginning", *total);
	CHECK(cudaLibraryGetKernel(&kernel, library, "count"));
	for (int i = 1; i <= 3; i++) {
		CHECK(cudaLaunchKernel((const void *)kernel, dim3(2), dim3(64), args, 0, 0));
		CHECK(cudaDeviceSynchronize());
		REQUIRE(*total == 5 + 37 * 128, "%d after launch %d", *total, i);
		*total = 5;
	}
	printf("managed memory of a library: %d\n", *total);
	CHECK(cudaLibraryUnload(library));
}

/* With fewer registers than it wants a kernel has larger blocks; the compiler finds a way. */
static void registers(const char *text)
{
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
	CHECK(cudaLibraryLoadData(&library, text, NULL, NULL, 0, &preserved, &one, 1));
	CHECK(cudaLibraryGetKernel(&kernel, library, "sums"));
	CHECK(cudaFuncGetAttributes(&wide, (const void *)kernel));
	CHECK(cudaLibraryLoadData(&limited, text, options, values, 4, NULL, NULL, 0));
	CHECK(cudaLibraryGetKernel(&kernel, limited, "sums"));
	CHECK(cudaFuncGetAttributes(&narrow, (const void *)kernel));
	REQUIRE(wide.numRegs > 64, "%d registers", wide.numRegs);
	REQUIRE(narrow.numRegs <= 32, "%d registers where 32 are permitted", narrow.numRegs);
	REQUIRE(wide.maxThreadsPerBlock < 1024 && narrow.maxThreadsPerBlock == 1024,
		"blocks of %d and %d", wide.maxThreadsPerBlock, narrow.maxThreadsPerBlock);
	REQUIRE(!log[0], "the compiler says: %s", log);
	printf("a library of at most 32 registers has larger blocks\n");
	CHECK(cudaLibraryUnload(library));
	CHECK(cudaLibraryUnload(limited));
}

int main(void)
{
	char path[] = "/tmp/qcuda-library-XXXXXX";
	cudaLibrary_t one, two;
	cudaFunction_t function;
	cudaKernel_t kernel;
	int fd, got;

	CHECK(cudaMalloc(&dev, N * sizeof(int)));
	EXPECT(cudaLibraryLoadFromFile(&one, "/no/such/file", NULL, NULL, 0, NULL, NULL, 0),
	       cudaErrorFileNotFound);
	EXPECT(cudaLibraryUnload(NULL), cudaErrorInvalidResourceHandle);
	(void)cudaGetLastError();

	CHECK(cudaLibraryLoadData(&one, ptx, NULL, NULL, 0, NULL, NULL, 0));
	use(one, "from memory");
	fd = mkstemp(path);
	REQUIRE(fd >= 0 && write(fd, ptx, sizeof(ptx) - 1) == sizeof(ptx) - 1, "a file");
	close(fd);
	CHECK(cudaLibraryLoadFromFile(&two, path, NULL, NULL, 0, NULL, NULL, 0));
	remove(path);
	/* Its variable is its own. */
	use(two, "from a file");
	CHECK(cudaLibraryUnload(one));
	CHECK(cudaLibraryGetKernel(&kernel, two, "shift"));
	run(kernel, 11, "after the other has gone");
	CHECK(cudaLibraryUnload(two));

	CHECK(cudaGetFuncBySymbol(&function, (const void *)registered));
	REQUIRE(function, "no function");
	CHECK(cudaGetKernel(&kernel, (const void *)registered));
	void *args[] = {&dev};
	CHECK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), args, 0, 0));
	CHECK(cudaMemcpy(&got, dev, sizeof(got), cudaMemcpyDeviceToHost));
	REQUIRE(got == 42, "%d", got);
	CHECK(cudaFree(dev));
	enumerate(make_hungry());
	managed(make_hungry());
	registers(make_hungry());
	return verified("kernels and variables of libraries, found by name and listed");
}

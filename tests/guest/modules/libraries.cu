// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Modules loaded while the program runs: PTX from memory and from a file. Kernels and variables
 * are found by name and used like registered ones, or are listed; managed memory; and wrong
 * calls are refused.
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

/* Three kernels, and a variable of each kind. */
static const char several[] = ".version 7.0\n"
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
			      "ret;\n"
			      "}\n";

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

/* Lists each kernel once, with the handle that its name gives. */
static void enumerate(void)
{
	cudaKernel_t kernels[8], found;
	const char *names[8];
	cudaLibrary_t library;
	unsigned int count = 77;

	CHECK(cudaLibraryLoadData(&library, several, NULL, NULL, 0, NULL, NULL, 0));
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

/* The host and the device have the variable at the same address. */
static void managed(void)
{
	cudaLibrary_t library;
	cudaKernel_t kernel;
	int by = 37, *total;
	void *args[] = {&by}, *p, *same;
	size_t size;

	CHECK(cudaLibraryLoadData(&library, several, NULL, NULL, 0, NULL, NULL, 0));
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
	/* The second module has its own variable. */
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
	enumerate();
	managed();
	return verified("kernels and variables of libraries, found by name and listed");
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The library answers questions about constant properties without a command to the mirror, at
 * the latest from the second time on. The program runs itself with QCU_TRACE and counts the
 * commands between its marks.
 */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void kernel(int *p)
{
	extern __shared__ int shared[];

	shared[threadIdx.x] = threadIdx.x;
	__syncthreads();
	*p = shared[0];
}

/* The calls from here to the next mark must send exactly this many commands. */
static void mark(const char *name, unsigned int want)
{
	fprintf(stderr, "mark %u %s\n", want, name);
}

static int traced(void)
{
	struct cudaFuncAttributes attr;
	struct cudaDeviceProp prop;
	cudaEvent_t event;
	cudaStream_t stream;
	int value, i, *dev;
	size_t size;
	char text[64];

	OK(cudaGetDeviceCount(&value));
	OK(cudaMalloc(&dev, 4));
	OK(cudaGetDeviceProperties(&prop, 0));
	OK(cudaFuncGetAttributes(&attr, kernel));
	OK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize));
	OK(cudaDeviceSynchronize());

	mark("what never asks", 0);
	for (i = 0; i < 3; i++) {
		OK(cudaGetDeviceCount(&value));
		OK(cudaGetDevice(&value));
		OK(cudaSetDevice(0));
		OK(cudaGetLastError());
		OK(cudaPeekAtLastError());
		OK(cudaDriverGetVersion(&value));
		OK(cudaRuntimeGetVersion(&value));
		OK(cudaDeviceGetStreamPriorityRange(&value, NULL));
		OK(cudaDeviceGetCacheConfig((enum cudaFuncCache *)&value));
		OK(cudaGetDeviceFlags((unsigned int *)&value));
		EXPECT(cudaSetDevice(1000), cudaErrorInvalidDevice);
		EXPECT(cudaGetLastError(), cudaErrorInvalidDevice);
	}
	mark("cudaDeviceGetAttribute", 0);
	for (i = 1; i < 120; i++)
		(void)cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)i, 0);
	(void)cudaGetLastError();
	mark("cudaGetDeviceProperties", 0);
	OK(cudaGetDeviceProperties(&prop, 0));
	OK(cudaDeviceGetPCIBusId(text, sizeof(text), 0));
	OK(cudaDeviceGetByPCIBusId(&value, text));
	mark("cudaFuncGetAttributes", 0);
	OK(cudaFuncGetAttributes(&attr, kernel));
	OK(cudaFuncGetAttributes(&attr, kernel));
	mark("a change, and what it makes of the attributes", 2);
	OK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
	OK(cudaFuncGetAttributes(&attr, kernel));
	REQUIRE(attr.maxDynamicSharedSizeBytes == 1024, "%d", attr.maxDynamicSharedSizeBytes);
	OK(cudaFuncGetAttributes(&attr, kernel));
	REQUIRE(attr.maxDynamicSharedSizeBytes == 1024, "%d", attr.maxDynamicSharedSizeBytes);
	mark("cudaDeviceGetLimit", 0);
	OK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize));
	mark("a change, and what it makes of the limit", 2);
	OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20));
	OK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize));
	REQUIRE(size == 32 << 20, "%zu", size);
	OK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize));
	REQUIRE(size == 32 << 20, "%zu", size);
	mark("a launch that cannot be", 0);
	kernel<<<1, 100000, 4>>>(dev);
	EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
	/*
	 * A posted command is carried out at some later time. The wait makes it end before the
	 * next mark.
	 */
	mark("a launch, and a wait", 2);
	kernel<<<1, 1, 4>>>(dev);
	OK(cudaGetLastError());
	OK(cudaDeviceSynchronize());
	mark("a stream's and an event's life, and a wait", 6);
	OK(cudaStreamCreate(&stream));
	OK(cudaEventCreate(&event));
	OK(cudaEventRecord(event, stream));
	OK(cudaStreamDestroy(stream));
	OK(cudaEventDestroy(event));
	OK(cudaDeviceSynchronize());
	mark("end", 0);
	return 0;
}

int main(int argc, char **argv)
{
	char line[512], name[] = "/tmp/qcu-answers-XXXXXX", what[128] = "";
	unsigned int want = 0, got = 0, marks = 0;
	int fd, status;
	FILE *f;
	pid_t pid;

	if (argc > 1)
		return traced();
	fd = mkstemp(name);
	REQUIRE(fd >= 0, "no file: %s", strerror(errno));
	unlink(name);
	pid = fork();
	if (!pid) {
		dup2(fd, 2);
		setenv("QCU_TRACE", "1", 1);
		execl(argv[0], argv[0], "traced", (char *)NULL);
		_exit(127);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid, "%s", strerror(errno));
	f = fdopen(fd, "r");
	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "mark ", 5)) {
			REQUIRE(!marks || got == want, "%s: %u commands, not %u", what, got, want);
			REQUIRE(sscanf(line, "mark %u %127[^\n]", &want, what) == 2, "%s", line);
			marks++;
			got = 0;
		} else if (strstr(line, " seq ")) {
			got++;
		} else {
			fputs(line, stderr);
		}
	}
	fclose(f);
	REQUIRE(status == 0, "status %#x", status);
	REQUIRE(marks == 11, "%u marks", marks);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
// How fast buffers are written, read and mapped, with plain malloc memory and with memory that
// OpenCL has allocated (CL_MEM_ALLOC_HOST_PTR). Prints CSV: benchmark, way, memory, bytes, GB/s,
// the median of several runs.
#include "common.h"

enum { RUNS = 9 };

static void report(const char *way, const char *memory, size_t size, double *times)
{
	double middle = median(times, RUNS);
	printf("bandwidth,%s,%s,%zu,%.3f\n", way, memory, size, (double)size / middle * 1e-9);
	fflush(stdout);
}

/* Each run is one blocking call, or one that does not block and clFinish. */
static void copies(size_t size, const char *memory, char *host)
{
	double writes[RUNS], reads[RUNS];
	cl_mem device_buffer = buffer(CL_MEM_READ_WRITE, size, NULL);
	memset(host, 1, size);
	for (int i = -2; i < RUNS; i++) {
		double began = seconds();
		CL(clEnqueueWriteBuffer(queue, device_buffer, CL_TRUE, 0, size, host, 0, NULL,
					NULL));
		double between = seconds();
		CL(clEnqueueReadBuffer(queue, device_buffer, CL_TRUE, 0, size, host, 0, NULL,
				       NULL));
		double ended = seconds();
		if (i < 0)
			continue;
		writes[i] = between - began;
		reads[i] = ended - between;
	}
	report("write", memory, size, writes);
	report("read", memory, size, reads);
	CL(clReleaseMemObject(device_buffer));
}

/* Mapping a buffer of the device copies it to the host, and unmapping copies it back. */
static void maps(size_t size, const char *memory, cl_mem_flags flags)
{
	double down[RUNS], up[RUNS];
	cl_mem mapped = buffer(CL_MEM_READ_WRITE | flags, size, NULL);
	const cl_int pattern = 7;
	CL(clEnqueueFillBuffer(queue, mapped, &pattern, 4, 0, size, 0, NULL, NULL));
	for (int i = -2; i < RUNS; i++) {
		cl_int code;
		CL(clFinish(queue));
		double began = seconds();
		char *at = clEnqueueMapBuffer(queue, mapped, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
					      size, 0, NULL, NULL, &code);
		CL(code);
		double between = seconds();
		at[0]++;
		CL(clEnqueueUnmapMemObject(queue, mapped, at, 0, NULL, NULL));
		CL(clFinish(queue));
		double ended = seconds();
		if (i < 0)
			continue;
		down[i] = between - began;
		up[i] = ended - between;
	}
	report("map", memory, size, down);
	report("unmap", memory, size, up);
	CL(clReleaseMemObject(mapped));
}

int main(int argc, char **argv)
{
	size_t most = megabytes(argc, argv, 1, 256) << 20;
	start();
	for (size_t size = 1 << 20; size <= most; size *= 4) {
		char *plain = aligned_alloc(4096, size);
		cl_int code;
		if (!plain)
			return 1;
		copies(size, "plain", plain);
		free(plain);
		cl_mem pinned = buffer(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, NULL);
		char *at = clEnqueueMapBuffer(queue, pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
					      size, 0, NULL, NULL, &code);
		CL(code);
		copies(size, "allocated", at);
		CL(clEnqueueUnmapMemObject(queue, pinned, at, 0, NULL, NULL));
		CL(clFinish(queue));
		CL(clReleaseMemObject(pinned));
		maps(size, "plain", 0);
		maps(size, "allocated", CL_MEM_ALLOC_HOST_PTR);
	}
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What both OpenCL benchmarks share: the device, errors, time, and the median of several runs. */
#pragma once
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CL(call)                                                                          \
	do {                                                                              \
		cl_int cl_code = (call);                                                  \
		if (cl_code != CL_SUCCESS) {                                              \
			fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, \
				cl_code);                                                 \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;

static inline void start(void)
{
	cl_platform_id platform;
	cl_int code;
	CL(clGetPlatformIDs(1, &platform, NULL));
	CL(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL));
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
	CL(code);
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
	CL(code);
}

static inline cl_mem buffer(cl_mem_flags flags, size_t size, void *host)
{
	cl_int code;
	cl_mem made = clCreateBuffer(context, flags, size, host, &code);
	CL(code);
	return made;
}

static inline double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static inline double median(double *times, int count)
{
	qsort(times, (size_t)count, sizeof(*times), by_size);
	return times[count / 2];
}

/* A size in MiB from the command line, or a default. */
static inline size_t megabytes(int argc, char **argv, int index, size_t otherwise)
{
	if (index >= argc)
		return otherwise;
	char *end;
	unsigned long value = strtoul(argv[index], &end, 10);
	if (*end || value < 1 || value > 4096) {
		fprintf(stderr, "%s: a number of MiB from 1 to 4096\n", argv[index]);
		exit(2);
	}
	return value;
}

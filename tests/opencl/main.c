// SPDX-License-Identifier: GPL-2.0-or-later
// Runs the tests of a group: all of them, or those that are named. --list prints their names.
#include "cl.h"
#include <stdarg.h>
#include <unistd.h>

cl_platform_id platform;
cl_device_id device;
cl_context context;
cl_command_queue queue;

static struct test *tests, **last = &tests;
static const char *running = "start";
static cl_program program;

void add_test(struct test *test)
{
	*last = test;
	last = &test->next;
}

const char *code_name(cl_int code)
{
	static const struct {
		cl_int code;
		const char *name;
	} names[] = {
#define NAME(code) {code, #code}
		NAME(CL_SUCCESS),
		NAME(CL_DEVICE_NOT_FOUND),
		NAME(CL_COMPILER_NOT_AVAILABLE),
		NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE),
		NAME(CL_OUT_OF_RESOURCES),
		NAME(CL_OUT_OF_HOST_MEMORY),
		NAME(CL_PROFILING_INFO_NOT_AVAILABLE),
		NAME(CL_MEM_COPY_OVERLAP),
		NAME(CL_BUILD_PROGRAM_FAILURE),
		NAME(CL_MAP_FAILURE),
		NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET),
		NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
		NAME(CL_COMPILE_PROGRAM_FAILURE),
		NAME(CL_LINK_PROGRAM_FAILURE),
		NAME(CL_DEVICE_PARTITION_FAILED),
		NAME(CL_KERNEL_ARG_INFO_NOT_AVAILABLE),
		NAME(CL_INVALID_VALUE),
		NAME(CL_INVALID_DEVICE_TYPE),
		NAME(CL_INVALID_PLATFORM),
		NAME(CL_INVALID_DEVICE),
		NAME(CL_INVALID_CONTEXT),
		NAME(CL_INVALID_QUEUE_PROPERTIES),
		NAME(CL_INVALID_COMMAND_QUEUE),
		NAME(CL_INVALID_HOST_PTR),
		NAME(CL_INVALID_MEM_OBJECT),
		NAME(CL_INVALID_IMAGE_SIZE),
		NAME(CL_INVALID_SAMPLER),
		NAME(CL_INVALID_BINARY),
		NAME(CL_INVALID_BUILD_OPTIONS),
		NAME(CL_INVALID_PROGRAM),
		NAME(CL_INVALID_PROGRAM_EXECUTABLE),
		NAME(CL_INVALID_KERNEL_NAME),
		NAME(CL_INVALID_KERNEL_DEFINITION),
		NAME(CL_INVALID_KERNEL),
		NAME(CL_INVALID_ARG_INDEX),
		NAME(CL_INVALID_ARG_VALUE),
		NAME(CL_INVALID_ARG_SIZE),
		NAME(CL_INVALID_KERNEL_ARGS),
		NAME(CL_INVALID_WORK_DIMENSION),
		NAME(CL_INVALID_WORK_GROUP_SIZE),
		NAME(CL_INVALID_WORK_ITEM_SIZE),
		NAME(CL_INVALID_GLOBAL_OFFSET),
		NAME(CL_INVALID_EVENT_WAIT_LIST),
		NAME(CL_INVALID_EVENT),
		NAME(CL_INVALID_OPERATION),
		NAME(CL_INVALID_BUFFER_SIZE),
		NAME(CL_INVALID_GLOBAL_WORK_SIZE),
		NAME(CL_INVALID_PROPERTY),
		NAME(CL_INVALID_COMPILER_OPTIONS),
		NAME(CL_INVALID_LINKER_OPTIONS),
		NAME(CL_INVALID_DEVICE_PARTITION_COUNT),
#undef NAME
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == code)
			return names[i].name;
	return "another code";
}

void fail(const char *file, int line, const char *what, cl_int got)
{
	printf("FAIL %s: %s:%d: %s (%d, %s)\n", running, file, line, what, got, code_name(got));
	fflush(stdout);
	_exit(1);
}

cl_program program_of(const char *source)
{
	cl_int code;
	cl_program made = clCreateProgramWithSource(context, 1, &source, NULL, &code);
	CL(code);
	code = clBuildProgram(made, 1, &device, "", NULL, NULL);
	if (code != CL_SUCCESS) {
		char log[4096] = "";
		clGetProgramBuildInfo(made, device, CL_PROGRAM_BUILD_LOG, sizeof(log), log, NULL);
		printf("%s\n", log);
	}
	CL(code);
	return made;
}

cl_program group_program(void)
{
	if (!program)
		program = program_of(group_source);
	return program;
}

cl_kernel kernel(const char *name)
{
	cl_int code;
	cl_kernel made = clCreateKernel(group_program(), name, &code);
	CL(code);
	return made;
}

cl_mem counting(size_t count, cl_int first, cl_mem_flags flags)
{
	cl_int code, *numbers = malloc(count * sizeof(*numbers));
	CHECK(numbers);
	for (size_t i = 0; i < count; i++)
		numbers[i] = first + (cl_int)i;
	cl_mem buffer = clCreateBuffer(context, flags | CL_MEM_COPY_HOST_PTR,
				       count * sizeof(*numbers), numbers, &code);
	CL(code);
	free(numbers);
	return buffer;
}

void run_on(cl_kernel kernel, size_t global, size_t local, ...)
{
	va_list buffers;
	cl_mem buffer;
	va_start(buffers, local);
	for (cl_uint i = 0; (buffer = va_arg(buffers, cl_mem)); i++)
		CL(clSetKernelArg(kernel, i, sizeof(buffer), &buffer));
	va_end(buffers);
	CL(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, local ? &local : NULL, 0, NULL,
				  NULL));
	CL(clFinish(queue));
}

void read_ints(cl_mem buffer, cl_int *to, size_t count)
{
	CL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, count * sizeof(*to), to, 0, NULL, NULL));
}

static void start(void)
{
	cl_int code;
	CL(clGetPlatformIDs(1, &platform, NULL));
	CL(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL));
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
	CL(code);
	const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE,
						  0};
	queue = clCreateCommandQueueWithProperties(context, device, properties, &code);
	CL(code);
}

static int wanted(const char *name, char **names)
{
	if (!*names)
		return 1;
	for (; *names; names++)
		if (!strcmp(*names, name))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (struct test *t = tests; t; t = t->next)
			puts(t->name);
		return 0;
	}
	start();
	int ran = 0;
	for (struct test *t = tests; t; t = t->next) {
		if (!wanted(t->name, argv + 1))
			continue;
		running = t->name;
		t->run();
		printf("ok %s\n", t->name);
		ran++;
	}
	running = "end";
	if (program)
		CL(clReleaseProgram(program));
	CL(clReleaseCommandQueue(queue));
	CL(clReleaseContext(context));
	CHECK(ran > 0);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
// Programs and kernels as objects: options, errors and their log, binaries, compiling and linking,
// arguments.
#include "cl.h"
#include <stdatomic.h>
#include <time.h>

const char *const group_source =
	"#ifndef FACTOR\n"
	"#define FACTOR 3\n"
	"#endif\n"
	"kernel void times(global int *v) { v[get_global_id(0)] *= FACTOR; }\n"
	"kernel void plus(global int *v, int add, local int *scratch, float unused) {\n"
	"	scratch[get_local_id(0)] = add; v[get_global_id(0)] += scratch[get_local_id(0)];\n"
	"}\n";

enum { N = 256 };

static cl_int numbers[N];

static cl_program from_source(const char *source)
{
	cl_int code;
	cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
	CL(code);
	return program;
}

/* Runs the kernel "times" of a program, and returns the factor. */
static cl_int factor_of(cl_program program)
{
	cl_int code;
	cl_kernel times = clCreateKernel(program, "times", &code);
	CL(code);
	cl_mem buffer = counting(N, 1, CL_MEM_READ_WRITE);
	run_on(times, N, 32, buffer, NULL);
	read_ints(buffer, numbers, N);
	for (int i = 0; i < N; i++)
		CHECK(numbers[i] == numbers[0] * (i + 1));
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(times));
	return numbers[0];
}

TEST(options)
{
	char text[256];
	cl_program program = from_source(group_source);
	CL(clBuildProgram(program, 1, &device, "-DFACTOR=5 -cl-fast-relaxed-math", NULL, NULL));
	CL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, sizeof(text), text,
				 NULL));
	printf(" with %s: %d\n", text, factor_of(program));
	/* Another time, after its kernels are gone. */
	CL(clBuildProgram(program, 1, &device, "-D FACTOR=7", NULL, NULL));
	printf(" again: %d\n", factor_of(program));
	CL(clReleaseProgram(program));
	program = from_source(group_source);
	EXPECT(CL_INVALID_BUILD_OPTIONS,
	       clBuildProgram(program, 1, &device, "--no-such-option", NULL, NULL));
	CL(clReleaseProgram(program));
}

TEST(errors_and_the_log)
{
	static char log[65536];
	size_t size;
	cl_build_status status;
	cl_program program = from_source("kernel void wrong(global int *v) {\n"
					 "	v[0] = no_such_name;\n"
					 "}\n");
	EXPECT(CL_BUILD_PROGRAM_FAILURE, clBuildProgram(program, 1, &device, "", NULL, NULL));
	CL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status,
				 NULL));
	CHECK(status == CL_BUILD_ERROR);
	CL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size));
	CHECK(size > 1 && size <= sizeof(log));
	CL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log, NULL));
	CHECK(strstr(log, "no_such_name") && strstr(log, "undeclared identifier") &&
	      strstr(log, ":2:"));
	EXPECT(CL_INVALID_VALUE,
	       clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size - 1, log, NULL));
	cl_int code;
	CHECK(!clCreateKernel(program, "wrong", &code));
	CHECK(code == CL_INVALID_PROGRAM_EXECUTABLE);
	CL(clReleaseProgram(program));
}

static atomic_int built;

static void CL_CALLBACK on_built(cl_program program, void *data)
{
	(void)program;
	atomic_store(&built, *(int *)data);
}

TEST(build_callback)
{
	int seven = 7;
	cl_build_status status;
	cl_program program = from_source(group_source);
	CL(clBuildProgram(program, 1, &device, "", on_built, &seven));
	while (!atomic_load(&built))
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	CHECK(atomic_load(&built) == 7);
	CL(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status,
				 NULL));
	CHECK(status == CL_BUILD_SUCCESS);
	CHECK(factor_of(program) == 3);
	CL(clReleaseProgram(program));
}

TEST(binaries)
{
	size_t size;
	cl_int code, of_binary;
	CL(clGetProgramInfo(group_program(), CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, NULL));
	CHECK(size > 0);
	unsigned char *binary = malloc(size);
	CL(clGetProgramInfo(group_program(), CL_PROGRAM_BINARIES, sizeof(binary), &binary, NULL));
	cl_program program = clCreateProgramWithBinary(
		context, 1, &device, &size, (const unsigned char **)&binary, &of_binary, &code);
	CL(code);
	CL(of_binary);
	CL(clBuildProgram(program, 1, &device, "", NULL, NULL));
	CHECK(factor_of(program) == 3);
	CL(clReleaseProgram(program));
	memset(binary, 0x5a, size);
	CHECK(!clCreateProgramWithBinary(context, 1, &device, &size,
					 (const unsigned char **)&binary, &of_binary, &code));
	CHECK(code == CL_INVALID_BINARY);
	free(binary);
}

TEST(compile_and_link)
{
	cl_int code;
	cl_program header = from_source("int half_of(int x);\n");
	cl_program parts[2] = {from_source("#include \"half.h\"\n"
					   "kernel void times(global int *v) { v[get_global_id(0)] "
					   "*= half_of(22); }\n"),
			       from_source("int half_of(int x) { return x / 2; }\n")};
	const char *name = "half.h";
	CL(clCompileProgram(parts[0], 1, &device, "", 1, &header, &name, NULL, NULL));
	CL(clCompileProgram(parts[1], 1, &device, "", 0, NULL, NULL, NULL, NULL));
	cl_program linked = clLinkProgram(context, 1, &device, "", 2, parts, NULL, NULL, &code);
	CL(code);
	printf(" the factor is %d\n", factor_of(linked));
	CL(clReleaseProgram(linked));
	linked = clLinkProgram(context, 1, &device, "", 1, parts, NULL, NULL, &code);
	CHECK(code != CL_SUCCESS);
	if (linked)
		CL(clReleaseProgram(linked));
	CL(clReleaseProgram(parts[0]));
	CL(clReleaseProgram(parts[1]));
	CL(clReleaseProgram(header));
}

TEST(program_queries)
{
	char names[256];
	size_t count;
	cl_uint devices;
	CL(clGetProgramInfo(group_program(), CL_PROGRAM_NUM_KERNELS, sizeof(count), &count, NULL));
	CL(clGetProgramInfo(group_program(), CL_PROGRAM_KERNEL_NAMES, sizeof(names), names, NULL));
	CL(clGetProgramInfo(group_program(), CL_PROGRAM_NUM_DEVICES, sizeof(devices), &devices,
			    NULL));
	CHECK(count == 2 && devices == 1);
	CHECK(!strcmp(names, "times;plus") || !strcmp(names, "plus;times"));
	cl_kernel kernels[2];
	cl_uint made;
	CL(clCreateKernelsInProgram(group_program(), 2, kernels, &made));
	CHECK(made == 2);
	EXPECT(CL_INVALID_VALUE, clCreateKernelsInProgram(group_program(), 1, kernels, &made));
	CL(clReleaseKernel(kernels[0]));
	CL(clReleaseKernel(kernels[1]));
}

TEST(kernel_queries)
{
	static const char *const names[] = {"v", "add", "scratch", "unused"};
	cl_int code;
	cl_program program = from_source(group_source);
	CL(clBuildProgram(program, 1, &device, "-cl-kernel-arg-info", NULL, NULL));
	cl_kernel plus = clCreateKernel(program, "plus", &code);
	CL(code);
	char text[64];
	cl_uint count;
	size_t size;
	CL(clGetKernelInfo(plus, CL_KERNEL_FUNCTION_NAME, sizeof(text), text, NULL));
	CHECK(!strcmp(text, "plus"));
	CL(clGetKernelInfo(plus, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL));
	CHECK(count == 4);
	for (cl_uint i = 0; i < 4; i++) {
		cl_kernel_arg_address_qualifier address;
		CL(clGetKernelArgInfo(plus, i, CL_KERNEL_ARG_NAME, sizeof(text), text, NULL));
		CHECK(!strcmp(text, names[i]));
		CL(clGetKernelArgInfo(plus, i, CL_KERNEL_ARG_TYPE_NAME, sizeof(text), text, NULL));
		CL(clGetKernelArgInfo(plus, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof(address),
				      &address, NULL));
		printf(" %s: %s, %s\n", names[i], text,
		       address == CL_KERNEL_ARG_ADDRESS_GLOBAL	? "global"
		       : address == CL_KERNEL_ARG_ADDRESS_LOCAL ? "local"
								: "private");
	}
	CL(clGetKernelWorkGroupInfo(plus, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(size), &size,
				    NULL));
	CHECK(size >= 32);
	CL(clGetKernelWorkGroupInfo(plus, device, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE,
				    sizeof(size), &size, NULL));
	printf(" work groups in multiples of %zu\n", size);
	CL(clReleaseKernel(plus));
	CL(clReleaseProgram(program));
}

TEST(arguments)
{
	cl_kernel plus = kernel("plus");
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	const size_t global = N, local = 32;
	cl_int add = 100;
	cl_float unused = 0;
	CL(clSetKernelArg(plus, 0, sizeof(buffer), &buffer));
	CL(clSetKernelArg(plus, 1, sizeof(add), &add));
	CL(clSetKernelArg(plus, 2, 32 * sizeof(cl_int), NULL));
	EXPECT(CL_INVALID_KERNEL_ARGS,
	       clEnqueueNDRangeKernel(queue, plus, 1, NULL, &global, &local, 0, NULL, NULL));
	CL(clSetKernelArg(plus, 3, sizeof(unused), &unused));
	CL(clEnqueueNDRangeKernel(queue, plus, 1, NULL, &global, &local, 0, NULL, NULL));
	/* Arguments are read when a launch is enqueued. */
	add = 1000;
	CL(clSetKernelArg(plus, 1, sizeof(add), &add));
	CL(clEnqueueNDRangeKernel(queue, plus, 1, NULL, &global, &local, 0, NULL, NULL));
	read_ints(buffer, numbers, N);
	for (int i = 0; i < N; i++)
		CHECK(numbers[i] == i + 1100);
	cl_int code;
	cl_kernel copy = clCloneKernel(plus, &code);
	CL(code);
	CL(clEnqueueNDRangeKernel(queue, copy, 1, NULL, &global, &local, 0, NULL, NULL));
	read_ints(buffer, numbers, N);
	CHECK(numbers[5] == 5 + 2100);
	CL(clReleaseKernel(copy));
	CL(clReleaseKernel(plus));
	CL(clReleaseMemObject(buffer));
}

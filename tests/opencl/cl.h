/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the OpenCL tests share. A program holds the tests of one group of the API, in one process
 * and with one context, because compilers take long in an emulated guest. It prints "ok NAME" for
 * each test, or why it failed. What it prints is the same with every driver below PoCL: no times,
 * no addresses.
 */
#pragma once
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

extern cl_platform_id platform;
extern cl_device_id device;
extern cl_context context;
/* In order, with profiling. */
extern cl_command_queue queue;

void add_test(struct test *test);
void fail(const char *file, int line, const char *what, cl_int got);
const char *code_name(cl_int code);

/* The group's kernels are in one program, which is built once. */
extern const char *const group_source;
cl_program group_program(void);
cl_kernel kernel(const char *name);
cl_program program_of(const char *source);

/* A buffer with numbers that count up from first. */
cl_mem counting(size_t count, cl_int first, cl_mem_flags flags);
/* Sets the arguments of a kernel that takes buffers only, up to a NULL, and runs it. */
void run_on(cl_kernel kernel, size_t global, size_t local, ...);
void read_ints(cl_mem buffer, cl_int *to, size_t count);

#define TEST(function)                                                     \
	static void function(void);                                        \
	__attribute__((constructor)) static void register_##function(void) \
	{                                                                  \
		static struct test test = {#function, function, NULL};     \
		add_test(&test);                                           \
	}                                                                  \
	static void function(void)

/* A failure ends the test's process. */
#define CL(call)                                                  \
	do {                                                      \
		cl_int cl_code = (call);                          \
		if (cl_code != CL_SUCCESS)                        \
			fail(__FILE__, __LINE__, #call, cl_code); \
	} while (0)

#define EXPECT(code, call)                                                         \
	do {                                                                       \
		cl_int cl_code = (call);                                           \
		if (cl_code != (code))                                             \
			fail(__FILE__, __LINE__, #call " is not " #code, cl_code); \
	} while (0)

#define CHECK(condition)                                         \
	do {                                                     \
		if (!(condition))                                \
			fail(__FILE__, __LINE__, #condition, 0); \
	} while (0)

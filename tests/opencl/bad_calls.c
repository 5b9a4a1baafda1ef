// SPDX-License-Identifier: GPL-2.0-or-later
// Calls that are wrong, as a table: the call, and the code that it must give. Where OpenCL leaves a
// choice, the code is this PoCL's.
#include "cl.h"
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

const char *const group_source = "kernel void add_one(global int *v, int add, local int *l) { l[0] "
				 "= add; v[get_global_id(0)] += 1; }\n";

enum { SIZE = 4096 };

static cl_mem buffer, other_buffer, write_only_for_host;
static cl_kernel add_one;
static cl_event event, gate;
static cl_program unbuilt;
static cl_context other_context;
static cl_command_queue other_queue;
static char memory[2 * SIZE];
static cl_int code;
static size_t one = 1, zero, huge = SIZE_MAX / 2, many = 1 << 20;
static const size_t origin[3], far_origin[3] = {SIZE, 0, 0}, region[3] = {64, 4, 1},
			       no_region[3] = {64, 0, 1};
static const char *source = "kernel void nothing(void) {}\n", *null_source;
static cl_buffer_region outside = {0, SIZE + 1}, empty_region = {0, 0};
static const cl_queue_properties bad_queue[] = {CL_QUEUE_PROPERTIES, 1 << 20, 0},
				 unknown_queue[] = {0x7777, 1, 0};
static const cl_context_properties bad_context[] = {0x7777, 1, 0},
				   no_platform[] = {CL_CONTEXT_PLATFORM, 0, 0};

/* A call that returns an object: its code is in "code". */
static cl_int made(void *object)
{
	CHECK(!object == (code != CL_SUCCESS));
	return code;
}

#define CALLS                                                                                      \
	X(CL_INVALID_VALUE, clGetPlatformIDs(0, &platform, NULL))                                  \
	X(CL_INVALID_VALUE, clGetPlatformIDs(0, NULL, NULL))                                       \
	X(CL_INVALID_VALUE, clGetPlatformInfo(platform, 0x7777, sizeof(memory), memory, NULL))     \
	X(CL_INVALID_VALUE, clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 0, &device, NULL))        \
	X(CL_DEVICE_NOT_FOUND, clGetDeviceIDs(platform, 0x40, 1, &device, NULL))                   \
	X(CL_DEVICE_NOT_FOUND,                                                                     \
	  clGetDeviceIDs(platform, CL_DEVICE_TYPE_ACCELERATOR, 1, &device, NULL))                  \
	X(CL_INVALID_DEVICE, clGetDeviceInfo(NULL, CL_DEVICE_NAME, sizeof(memory), memory, NULL))  \
	X(CL_INVALID_VALUE, clGetDeviceInfo(device, 0x7777, sizeof(memory), memory, NULL))         \
	X(CL_INVALID_VALUE, clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, 1, memory, NULL)) \
	X(CL_INVALID_VALUE, made(clCreateContext(NULL, 0, &device, NULL, NULL, &code)))            \
	X(CL_INVALID_VALUE, made(clCreateContext(NULL, 1, &device, NULL, memory, &code)))          \
	X(CL_INVALID_PROPERTY, made(clCreateContext(bad_context, 1, &device, NULL, NULL, &code)))  \
	X(CL_INVALID_PLATFORM, made(clCreateContext(no_platform, 1, &device, NULL, NULL, &code)))  \
	X(CL_INVALID_CONTEXT, clRetainContext(NULL))                                               \
	X(CL_INVALID_CONTEXT, clReleaseContext(NULL))                                              \
	X(CL_INVALID_CONTEXT,                                                                      \
	  clGetContextInfo(NULL, CL_CONTEXT_DEVICES, sizeof(memory), memory, NULL))                \
	X(CL_INVALID_VALUE, clGetContextInfo(context, 0x7777, sizeof(memory), memory, NULL))       \
	X(CL_INVALID_CONTEXT, made(clCreateCommandQueueWithProperties(NULL, device, NULL, &code))) \
	X(CL_INVALID_DEVICE, made(clCreateCommandQueueWithProperties(context, NULL, NULL, &code))) \
	X(CL_INVALID_VALUE,                                                                        \
	  made(clCreateCommandQueueWithProperties(context, device, bad_queue, &code)))             \
	X(CL_INVALID_VALUE,                                                                        \
	  made(clCreateCommandQueueWithProperties(context, device, unknown_queue, &code)))         \
	X(CL_INVALID_COMMAND_QUEUE, clRetainCommandQueue(NULL))                                    \
	X(CL_INVALID_COMMAND_QUEUE, clReleaseCommandQueue(NULL))                                   \
	X(CL_INVALID_COMMAND_QUEUE, clFlush(NULL))                                                 \
	X(CL_INVALID_COMMAND_QUEUE, clFinish(NULL))                                                \
	X(CL_INVALID_CONTEXT, made(clCreateBuffer(NULL, CL_MEM_READ_WRITE, SIZE, NULL, &code)))    \
	X(CL_INVALID_BUFFER_SIZE,                                                                  \
	  made(clCreateBuffer(context, CL_MEM_READ_WRITE, 0, NULL, &code)))                        \
	X(CL_INVALID_BUFFER_SIZE,                                                                  \
	  made(clCreateBuffer(context, CL_MEM_READ_WRITE, huge, NULL, &code)))                     \
	X(CL_INVALID_VALUE, made(clCreateBuffer(context, 1 << 20, SIZE, NULL, &code)))             \
	X(CL_INVALID_VALUE,                                                                        \
	  made(clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, SIZE, NULL, &code)))  \
	X(CL_INVALID_HOST_PTR,                                                                     \
	  made(clCreateBuffer(context, CL_MEM_USE_HOST_PTR, SIZE, NULL, &code)))                   \
	X(CL_INVALID_HOST_PTR,                                                                     \
	  made(clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, memory, &code)))                   \
	X(CL_INVALID_VALUE,                                                                        \
	  made(clCreateBuffer(context, CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, SIZE, memory,  \
			      &code)))                                                             \
	X(CL_INVALID_MEM_OBJECT,                                                                   \
	  made(clCreateSubBuffer(NULL, 0, CL_BUFFER_CREATE_TYPE_REGION, &outside, &code)))         \
	X(CL_INVALID_VALUE,                                                                        \
	  made(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &outside, &code)))       \
	X(CL_INVALID_VALUE, made(clCreateSubBuffer(buffer, 0, 0x7777, &outside, &code)))           \
	X(CL_INVALID_BUFFER_SIZE,                                                                  \
	  made(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &empty_region, &code)))  \
	X(CL_INVALID_MEM_OBJECT, clRetainMemObject(NULL))                                          \
	X(CL_INVALID_MEM_OBJECT, clReleaseMemObject(NULL))                                         \
	X(CL_INVALID_MEM_OBJECT, clGetMemObjectInfo(NULL, CL_MEM_SIZE, 8, memory, NULL))           \
	X(CL_INVALID_VALUE, clGetMemObjectInfo(buffer, 0x7777, 8, memory, NULL))                   \
	X(CL_INVALID_VALUE, clSetMemObjectDestructorCallback(buffer, NULL, NULL))                  \
	X(CL_INVALID_COMMAND_QUEUE,                                                                \
	  clEnqueueReadBuffer(NULL, buffer, CL_TRUE, 0, 4, memory, 0, NULL, NULL))                 \
	X(CL_INVALID_MEM_OBJECT,                                                                   \
	  clEnqueueReadBuffer(queue, NULL, CL_TRUE, 0, 4, memory, 0, NULL, NULL))                  \
	X(CL_INVALID_VALUE,                                                                        \
	  clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, NULL, 0, NULL, NULL))                  \
	X(CL_INVALID_VALUE,                                                                        \
	  clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, SIZE + 1, memory, 0, NULL, NULL))         \
	X(CL_INVALID_VALUE,                                                                        \
	  clEnqueueReadBuffer(queue, buffer, CL_TRUE, SIZE, 1, memory, 0, NULL, NULL))             \
	X(CL_INVALID_VALUE,                                                                        \
	  clEnqueueReadBuffer(queue, buffer, CL_TRUE, huge, 4, memory, 0, NULL, NULL))             \
	X(CL_INVALID_VALUE,                                                                        \
	  clEnqueueReadBuffer(queue, buffer, CL_TRUE, 8, SIZE_MAX - 4, memory, 0, NULL, NULL))     \
	X(CL_INVALID_EVENT_WAIT_LIST,                                                              \
	  clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, memory, 1, NULL, NULL))                \
	X(CL_INVALID_EVENT_WAIT_LIST,                                                              \
	  clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, memory, 0, &event, NULL))              \
	X(CL_INVALID_CONTEXT,                                                                      \
	  clEnqueueReadBuffer(queue, other_buffer, CL_TRUE, 0, 4, memory, 0, NULL, NULL))          \
	X(CL_INVALID_CONTEXT,                                                                      \
	  clEnqueueReadBuffer(other_queue, buffer, CL_TRUE, 0, 4, memory, 0, NULL, NULL))          \
	X(CL_INVALID_CONTEXT,                                                                      \
	  clEnqueueReadBuffer(other_queue, other_buffer, CL_TRUE, 0, 4, memory, 1, &event, NULL))  \
	X(CL_INVALID_OPERATION,                                                                    \
	  clEnqueueReadBuffer(queue, write_only_for_host, CL_TRUE, 0, 4, memory, 0, NULL, NULL))   \
	X(CL_INVALID_VALUE,                                                                        \
	  clEnqueueWriteBuffer(queue, buffer, CL_TRUE, SIZE - 3, 4, memory, 0, NULL, NULL))        \
	X(CL_INVALID_VALUE,                                                                        \
	  clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 4, NULL, 0, NULL, NULL))                 \
	X(CL_INVALID_VALUE, clEnqueueCopyBuffer(queue, buffer, buffer, 0, SIZE, 1, 0, NULL, NULL)) \
	X(CL_INVALID_VALUE,                                                                        \
	  clEnqueueCopyBuffer(queue, buffer, buffer, SIZE_MAX, 0, 8, 0, NULL, NULL))               \
	X(CL_MEM_COPY_OVERLAP,                                                                     \
	  clEnqueueCopyBuffer(queue, buffer, buffer, 0, 8, 16, 0, NULL, NULL))                     \
	X(CL_INVALID_CONTEXT,                                                                      \
	  clEnqueueCopyBuffer(queue, buffer, other_buffer, 0, 0, 16, 0, NULL, NULL))               \
	X(CL_INVALID_VALUE, clEnqueueFillBuffer(queue, buffer, NULL, 4, 0, 16, 0, NULL, NULL))     \
	X(CL_INVALID_VALUE, clEnqueueFillBuffer(queue, buffer, memory, 0, 0, 16, 0, NULL, NULL))   \
	X(CL_INVALID_VALUE, clEnqueueFillBuffer(queue, buffer, memory, 5, 0, 20, 0, NULL, NULL))   \
	X(CL_INVALID_VALUE, clEnqueueFillBuffer(queue, buffer, memory, 8, 4, 16, 0, NULL, NULL))   \
	X(CL_INVALID_VALUE,                                                                        \
	  clEnqueueFillBuffer(queue, buffer, memory, 8, 0, SIZE + 8, 0, NULL, NULL))               \
	X(CL_INVALID_VALUE,                                                                        \
	  clEnqueueReadBufferRect(queue, buffer, CL_TRUE, origin, origin, no_region, 64, 0, 64, 0, \
				  memory, 0, NULL, NULL))                                          \
	X(CL_INVALID_VALUE, clEnqueueReadBufferRect(queue, buffer, CL_TRUE, far_origin, origin,    \
						    region, 64, 0, 64, 0, memory, 0, NULL, NULL))  \
	X(CL_INVALID_VALUE, clEnqueueReadBufferRect(queue, buffer, CL_TRUE, origin, origin,        \
						    region, 32, 0, 64, 0, memory, 0, NULL, NULL))  \
	X(CL_INVALID_VALUE, clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, NULL, origin, region, \
						     64, 0, 64, 0, memory, 0, NULL, NULL))         \
	X(CL_MEM_COPY_OVERLAP, clEnqueueCopyBufferRect(queue, buffer, buffer, origin, origin,      \
						       region, 64, 0, 64, 0, 0, NULL, NULL))       \
	X(CL_INVALID_VALUE, made(clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0,        \
						    SIZE + 1, 0, NULL, NULL, &code)))              \
	X(CL_INVALID_MEM_OBJECT,                                                                   \
	  made(clEnqueueMapBuffer(queue, NULL, CL_TRUE, CL_MAP_READ, 0, 4, 0, NULL, NULL, &code))) \
	X(CL_INVALID_VALUE, clEnqueueUnmapMemObject(queue, buffer, memory, 0, NULL, NULL))         \
	X(CL_INVALID_VALUE, clEnqueueMigrateMemObjects(queue, 0, &buffer, 0, 0, NULL, NULL))       \
	X(CL_INVALID_VALUE, clEnqueueMigrateMemObjects(queue, 1, &buffer, 1 << 10, 0, NULL, NULL)) \
	X(CL_INVALID_CONTEXT, made(clCreateProgramWithSource(NULL, 1, &source, NULL, &code)))      \
	X(CL_INVALID_VALUE, made(clCreateProgramWithSource(context, 0, &source, NULL, &code)))     \
	X(CL_INVALID_VALUE,                                                                        \
	  made(clCreateProgramWithSource(context, 1, &null_source, NULL, &code)))                  \
	X(CL_INVALID_VALUE,                                                                        \
	  made(clCreateProgramWithBinary(context, 0, &device, &one, NULL, NULL, &code)))           \
	X(CL_INVALID_VALUE,                                                                        \
	  made(clCreateProgramWithBinary(context, 1, &device, &zero,                               \
					 (const unsigned char **)&source, NULL, &code)))           \
	X(CL_INVALID_PROGRAM, clBuildProgram(NULL, 1, &device, "", NULL, NULL))                    \
	X(CL_INVALID_VALUE, clBuildProgram(unbuilt, 1, NULL, "", NULL, NULL))                      \
	X(CL_INVALID_VALUE, clBuildProgram(unbuilt, 0, &device, "", NULL, NULL))                   \
	X(CL_INVALID_VALUE, clBuildProgram(unbuilt, 1, &device, "", NULL, memory))                 \
	X(CL_INVALID_BUILD_OPTIONS,                                                                \
	  clBuildProgram(unbuilt, 1, &device, "-cl-no-such-thing", NULL, NULL))                    \
	X(CL_INVALID_OPERATION, clBuildProgram(group_program(), 1, &device, "", NULL, NULL))       \
	X(CL_INVALID_VALUE, clGetProgramInfo(unbuilt, 0x7777, 8, memory, NULL))                    \
	X(CL_INVALID_VALUE, clGetProgramBuildInfo(unbuilt, device, 0x7777, 8, memory, NULL))       \
	X(CL_INVALID_DEVICE,                                                                       \
	  clGetProgramBuildInfo(unbuilt, NULL, CL_PROGRAM_BUILD_STATUS, 8, memory, NULL))          \
	X(CL_INVALID_PROGRAM, clReleaseProgram(NULL))                                              \
	X(CL_INVALID_PROGRAM, made(clCreateKernel(NULL, "nothing", &code)))                        \
	X(CL_INVALID_PROGRAM_EXECUTABLE, made(clCreateKernel(unbuilt, "nothing", &code)))          \
	X(CL_INVALID_KERNEL_NAME, made(clCreateKernel(group_program(), "no_such_kernel", &code)))  \
	X(CL_INVALID_VALUE, made(clCreateKernel(group_program(), NULL, &code)))                    \
	X(CL_INVALID_KERNEL, clRetainKernel(NULL))                                                 \
	X(CL_INVALID_KERNEL, clReleaseKernel(NULL))                                                \
	X(CL_INVALID_KERNEL, clSetKernelArg(NULL, 0, 4, memory))                                   \
	X(CL_INVALID_ARG_INDEX, clSetKernelArg(add_one, 3, 4, memory))                             \
	X(CL_INVALID_ARG_SIZE, clSetKernelArg(add_one, 0, 4, &buffer))                             \
	X(CL_INVALID_ARG_SIZE, clSetKernelArg(add_one, 1, 8, memory))                              \
	X(CL_INVALID_ARG_VALUE, clSetKernelArg(add_one, 1, 4, NULL))                               \
	X(CL_INVALID_ARG_VALUE, clSetKernelArg(add_one, 2, 4, memory))                             \
	X(CL_INVALID_ARG_SIZE, clSetKernelArg(add_one, 2, 0, NULL))                                \
	X(CL_INVALID_ARG_INDEX,                                                                    \
	  clGetKernelArgInfo(add_one, 9, CL_KERNEL_ARG_NAME, 64, memory, NULL))                    \
	X(CL_INVALID_VALUE, clGetKernelInfo(add_one, 0x7777, 8, memory, NULL))                     \
	X(CL_INVALID_VALUE, clGetKernelWorkGroupInfo(add_one, device, 0x7777, 8, memory, NULL))    \
	X(CL_INVALID_WORK_DIMENSION,                                                               \
	  clEnqueueNDRangeKernel(queue, add_one, 0, NULL, &one, NULL, 0, NULL, NULL))              \
	X(CL_INVALID_WORK_DIMENSION,                                                               \
	  clEnqueueNDRangeKernel(queue, add_one, 4, NULL, &one, NULL, 0, NULL, NULL))              \
	X(CL_INVALID_KERNEL_ARGS,                                                                  \
	  clEnqueueNDRangeKernel(queue, add_one, 1, NULL, &one, NULL, 0, NULL, NULL))              \
	X(CL_INVALID_COMMAND_QUEUE,                                                                \
	  clEnqueueNDRangeKernel(NULL, add_one, 1, NULL, &one, NULL, 0, NULL, NULL))               \
	X(CL_INVALID_CONTEXT,                                                                      \
	  clEnqueueNDRangeKernel(other_queue, add_one, 1, NULL, &one, NULL, 0, NULL, NULL))        \
	X(CL_INVALID_VALUE, clWaitForEvents(0, &event))                                            \
	X(CL_INVALID_VALUE, clWaitForEvents(1, NULL))                                              \
	X(CL_INVALID_EVENT, clRetainEvent(NULL))                                                   \
	X(CL_INVALID_EVENT, clReleaseEvent(NULL))                                                  \
	X(CL_INVALID_EVENT, clGetEventInfo(NULL, CL_EVENT_COMMAND_TYPE, 8, memory, NULL))          \
	X(CL_INVALID_VALUE, clGetEventInfo(event, 0x7777, 8, memory, NULL))                        \
	X(CL_INVALID_VALUE, clGetEventProfilingInfo(event, 0x7777, 8, memory, NULL))               \
	X(CL_INVALID_EVENT, clSetUserEventStatus(event, CL_COMPLETE))                              \
	X(CL_INVALID_VALUE, clSetUserEventStatus(gate, 1))                                         \
	X(CL_INVALID_VALUE, clSetEventCallback(event, CL_COMPLETE, NULL, NULL))                    \
	X(CL_INVALID_CONTEXT, made(clCreateUserEvent(NULL, &code)))                                \
	X(CL_INVALID_EVENT_WAIT_LIST, clEnqueueMarkerWithWaitList(queue, 1, NULL, NULL))           \
	X(CL_INVALID_COMMAND_QUEUE, clEnqueueBarrierWithWaitList(NULL, 0, NULL, NULL))             \
	X(CL_INVALID_VALUE, clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, NULL, 4, 0, NULL, NULL))  \
	X(CL_INVALID_VALUE, clEnqueueSVMMemcpy(queue, CL_TRUE, NULL, memory, 4, 0, NULL, NULL))    \
	X(CL_INVALID_VALUE, clEnqueueSVMMemFill(queue, NULL, memory, 4, 16, 0, NULL, NULL))

static void prepare(void)
{
	buffer = counting(SIZE / 4, 0, CL_MEM_READ_WRITE);
	write_only_for_host = counting(SIZE / 4, 0, CL_MEM_READ_WRITE | CL_MEM_HOST_WRITE_ONLY);
	add_one = kernel("add_one");
	CL(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 4, memory, 0, NULL, &event));
	gate = clCreateUserEvent(context, &code);
	CL(code);
	unbuilt = clCreateProgramWithSource(context, 1, &source, NULL, &code);
	CL(code);
	other_context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
	CL(code);
	other_queue = clCreateCommandQueueWithProperties(other_context, device, NULL, &code);
	CL(code);
	other_buffer = clCreateBuffer(other_context, CL_MEM_READ_WRITE, SIZE, NULL, &code);
	CL(code);
}

static const char *volatile now;

/* A call that crashes is named, too. */
static void on_crash(int signal)
{
	if (write(1, now, strlen(now)) < 0 || write(1, " crashes\n", 9) < 0)
		_exit(2);
	_exit(128 + signal);
}

TEST(bad_calls)
{
	signal(SIGSEGV, on_crash);
	int calls = 0, bad = 0;
	prepare();
#define X(want, call)                                                                        \
	do {                                                                                 \
		now = #call;                                                                 \
		cl_int got = (call);                                                         \
		calls++;                                                                     \
		if (got != (want)) {                                                         \
			printf(" %s: %s, not %s\n", #call, code_name(got), code_name(want)); \
			bad++;                                                               \
		}                                                                            \
	} while (0);
	CALLS
#undef X
	printf(" %d calls\n", calls);
	CHECK(!bad);
	CL(clSetUserEventStatus(gate, CL_COMPLETE));
	CL(clReleaseEvent(gate));
	CL(clReleaseEvent(event));
	CL(clReleaseKernel(add_one));
	CL(clReleaseProgram(unbuilt));
	CL(clReleaseMemObject(buffer));
	CL(clReleaseMemObject(write_only_for_host));
	CL(clReleaseMemObject(other_buffer));
	CL(clReleaseCommandQueue(other_queue));
	CL(clReleaseContext(other_context));
}

/* Sizes of work at their limits. */
TEST(bad_sizes_of_work)
{
	cl_int numbers[16];
	size_t most, seven = 7, eight = 8;
	cl_mem v = counting(16, 0, CL_MEM_READ_WRITE);
	cl_kernel k = kernel("add_one");
	const cl_int add = 1;
	CL(clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(most), &most, NULL));
	most++;
	CL(clSetKernelArg(k, 0, sizeof(v), &v));
	CL(clSetKernelArg(k, 1, 4, &add));
	CL(clSetKernelArg(k, 2, 64, NULL));
	EXPECT(CL_INVALID_WORK_GROUP_SIZE,
	       clEnqueueNDRangeKernel(queue, k, 1, NULL, &most, &most, 0, NULL, NULL));
	code = clEnqueueNDRangeKernel(queue, k, 1, NULL, &many, &many, 0, NULL, NULL);
	printf(" a group of 2^20: %s\n", code_name(code));
	CHECK(code != CL_SUCCESS);
	/* From OpenCL 2.0 on the last group may be smaller. */
	code = clEnqueueNDRangeKernel(queue, k, 1, NULL, &eight, &seven, 0, NULL, NULL);
	printf(" 8 items in groups of 7: %s\n", code_name(code));
	code = clEnqueueNDRangeKernel(queue, k, 1, NULL, &zero, NULL, 0, NULL, NULL);
	printf(" no items: %s\n", code_name(code));
	CL(clFinish(queue));
	read_ints(v, numbers, 16);
	CL(clReleaseMemObject(v));
	CL(clReleaseKernel(k));
}

// SPDX-License-Identifier: GPL-2.0-or-later
// Events: what they tell, profiling, callbacks, and events of the program's own.
#include "cl.h"
#include <stdatomic.h>
#include <time.h>

const char *const group_source =
	"kernel void add_one(global int *v) { v[get_global_id(0)] += 1; }\n";

enum { N = 1024 };

static cl_int numbers[N];

/* Without threads for its queues, PoCL's CUDA device ends the program at an event of the program's
 * own. */
__attribute__((constructor)) static void with_threads(void)
{
	setenv("POCL_CUDA_DISABLE_QUEUE_THREADS", "0", 1);
}

static cl_event write_event(cl_mem buffer, cl_uint count, const cl_event *after)
{
	cl_event event;
	CL(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(numbers), numbers, count, after,
				&event));
	return event;
}

static cl_int status_of(cl_event event)
{
	cl_int status;
	CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL));
	return status;
}

TEST(event_queries)
{
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	cl_event event = write_event(buffer, 0, NULL);
	cl_command_type type;
	cl_command_queue q;
	cl_context c;
	cl_uint count;
	CL(clWaitForEvents(1, &event));
	CL(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL));
	CL(clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof(q), &q, NULL));
	CL(clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof(c), &c, NULL));
	CL(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(count), &count, NULL));
	CHECK(type == CL_COMMAND_WRITE_BUFFER && q == queue && c == context && count >= 1);
	CHECK(status_of(event) == CL_COMPLETE);
	CL(clReleaseEvent(event));
	CL(clReleaseMemObject(buffer));
}

TEST(profiling)
{
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	cl_kernel add = kernel("add_one");
	const size_t global = N;
	cl_event events[2];
	cl_ulong queued[2], submitted[2], started[2], ended[2];
	CL(clSetKernelArg(add, 0, sizeof(buffer), &buffer));
	for (int i = 0; i < 2; i++) {
		CL(clEnqueueNDRangeKernel(queue, add, 1, NULL, &global, NULL, 0, NULL, &events[i]));
		CL(clWaitForEvents(1, &events[i]));
		CL(clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_QUEUED, 8, &queued[i],
					   NULL));
		CL(clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_SUBMIT, 8, &submitted[i],
					   NULL));
		CL(clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_START, 8, &started[i],
					   NULL));
		CL(clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_END, 8, &ended[i],
					   NULL));
		CHECK(queued[i] <= submitted[i] && started[i] <= ended[i]);
	}
	CHECK(queued[0] <= queued[1] && ended[0] <= started[1]);
	const cl_queue_properties plain[] = {0};
	cl_int code;
	cl_command_queue q = clCreateCommandQueueWithProperties(context, device, plain, &code);
	CL(code);
	cl_event event;
	CL(clEnqueueNDRangeKernel(q, add, 1, NULL, &global, NULL, 0, NULL, &event));
	CL(clFinish(q));
	EXPECT(CL_PROFILING_INFO_NOT_AVAILABLE,
	       clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, 8, &ended[0], NULL));
	CL(clReleaseEvent(event));
	CL(clReleaseCommandQueue(q));
	CL(clReleaseEvent(events[0]));
	CL(clReleaseEvent(events[1]));
	CL(clReleaseKernel(add));
	CL(clReleaseMemObject(buffer));
}

TEST(user_events)
{
	cl_int code;
	cl_event gate = clCreateUserEvent(context, &code);
	CL(code);
	CHECK(status_of(gate) == CL_SUBMITTED);
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	for (int i = 0; i < N; i++)
		numbers[i] = 3 * i;
	cl_event written = write_event(buffer, 1, &gate);
	CL(clFlush(queue));
	CHECK(status_of(written) > CL_COMPLETE);
	CL(clSetUserEventStatus(gate, CL_COMPLETE));
	EXPECT(CL_INVALID_OPERATION, clSetUserEventStatus(gate, CL_COMPLETE));
	CL(clWaitForEvents(1, &written));
	memset(numbers, 0, sizeof(numbers));
	read_ints(buffer, numbers, N);
	for (int i = 0; i < N; i++)
		CHECK(numbers[i] == 3 * i);
	CL(clReleaseEvent(written));
	CL(clReleaseEvent(gate));
	CL(clReleaseMemObject(buffer));
}

static atomic_int called, status_seen;

static void CL_CALLBACK count_call(cl_event event, cl_int status, void *data)
{
	(void)event;
	atomic_store(&status_seen, status);
	atomic_fetch_add(&called, *(int *)data);
}

TEST(callbacks)
{
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	cl_int code;
	int one = 1, ten = 10;
	cl_event gate = clCreateUserEvent(context, &code);
	CL(code);
	cl_event written = write_event(buffer, 1, &gate);
	CL(clSetEventCallback(written, CL_COMPLETE, count_call, &one));
	CL(clSetEventCallback(written, CL_COMPLETE, count_call, &ten));
	CL(clFlush(queue));
	CHECK(atomic_load(&called) == 0);
	CL(clSetUserEventStatus(gate, CL_COMPLETE));
	CL(clWaitForEvents(1, &written));
	while (atomic_load(&called) != 11)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	CHECK(atomic_load(&status_seen) == CL_COMPLETE);
	CL(clReleaseEvent(written));
	CL(clReleaseEvent(gate));
	CL(clReleaseMemObject(buffer));
}

TEST(wait_for_many)
{
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	cl_event events[32];
	for (int i = 0; i < 32; i++)
		events[i] = write_event(buffer, i > 2 ? 3 : 0, i > 2 ? &events[i - 3] : NULL);
	CL(clWaitForEvents(32, events));
	for (int i = 0; i < 32; i++) {
		CHECK(status_of(events[i]) == CL_COMPLETE);
		CL(clReleaseEvent(events[i]));
	}
	CL(clReleaseMemObject(buffer));
}

/* The last reference to a queue is that of its last command, or the program's. */
TEST(queue_released_before_its_event)
{
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	for (int i = 0; i < 300; i++) {
		cl_int code;
		cl_command_queue q =
			clCreateCommandQueueWithProperties(context, device, NULL, &code);
		CL(code);
		cl_event written;
		CL(clEnqueueWriteBuffer(q, buffer, CL_FALSE, 0, sizeof(numbers), numbers, 0, NULL,
					&written));
		CL(clWaitForEvents(1, &written));
		CL(clReleaseEvent(written));
		CL(clReleaseCommandQueue(q));
	}
	CL(clReleaseMemObject(buffer));
}

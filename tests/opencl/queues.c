// SPDX-License-Identifier: GPL-2.0-or-later
// Command queues: in order and out of order, markers and barriers, several queues and threads.
#include "cl.h"
#include <pthread.h>

const char *const group_source =
	"kernel void add_one(global int *v) { v[get_global_id(0)] += 1; }\n"
	"kernel void twice(global int *v) { v[get_global_id(0)] *= 2; }\n"
	"kernel void copy(global int *to, global const int *from) { to[get_global_id(0)] = "
	"from[get_global_id(0)]; }\n";

enum { N = 1024 };

static cl_int numbers[N];

static cl_command_queue new_queue(cl_command_queue_properties wanted)
{
	cl_int code;
	const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, wanted, 0};
	cl_command_queue made =
		clCreateCommandQueueWithProperties(context, device, properties, &code);
	CL(code);
	return made;
}

static void launch(cl_command_queue to, cl_kernel kernel, cl_mem buffer, cl_uint count,
		   const cl_event *after, cl_event *event)
{
	const size_t global = N, local = 64;
	CL(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
	CL(clEnqueueNDRangeKernel(to, kernel, 1, NULL, &global, &local, count, after, event));
}

static void check_all(cl_command_queue from, cl_mem buffer, int factor, int add)
{
	CL(clEnqueueReadBuffer(from, buffer, CL_TRUE, 0, sizeof(numbers), numbers, 0, NULL, NULL));
	for (int i = 0; i < N; i++)
		CHECK(numbers[i] == i * factor + add);
}

TEST(in_order)
{
	cl_command_queue q = new_queue(0);
	cl_kernel add = kernel("add_one"), twice = kernel("twice");
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	for (int i = 0; i < 5; i++) {
		launch(q, add, buffer, 0, NULL, NULL);
		launch(q, twice, buffer, 0, NULL, NULL);
	}
	check_all(q, buffer, 32, 62);
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(add));
	CL(clReleaseKernel(twice));
	CL(clReleaseCommandQueue(q));
}

TEST(out_of_order_with_events)
{
	cl_command_queue q = new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_kernel add = kernel("add_one"), twice = kernel("twice");
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	cl_event done[6];
	for (int i = 0; i < 6; i++)
		launch(q, i % 2 ? twice : add, buffer, i > 0, i ? &done[i - 1] : NULL, &done[i]);
	CL(clWaitForEvents(1, &done[5]));
	check_all(q, buffer, 8, 14);
	for (int i = 0; i < 6; i++)
		CL(clReleaseEvent(done[i]));
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(add));
	CL(clReleaseKernel(twice));
	CL(clReleaseCommandQueue(q));
}

TEST(out_of_order_with_barriers)
{
	cl_command_queue q = new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_kernel add = kernel("add_one"), twice = kernel("twice");
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	for (int i = 0; i < 3; i++) {
		launch(q, add, buffer, 0, NULL, NULL);
		CL(clEnqueueBarrierWithWaitList(q, 0, NULL, NULL));
		launch(q, twice, buffer, 0, NULL, NULL);
		CL(clEnqueueBarrierWithWaitList(q, 0, NULL, NULL));
	}
	CL(clFinish(q));
	check_all(q, buffer, 8, 14);
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(add));
	CL(clReleaseKernel(twice));
	CL(clReleaseCommandQueue(q));
}

TEST(markers)
{
	cl_kernel add = kernel("add_one");
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	cl_event first, marker, all;
	cl_int status;
	launch(queue, add, buffer, 0, NULL, &first);
	CL(clEnqueueMarkerWithWaitList(queue, 1, &first, &marker));
	launch(queue, add, buffer, 0, NULL, NULL);
	CL(clEnqueueMarkerWithWaitList(queue, 0, NULL, &all));
	CL(clWaitForEvents(1, &all));
	CL(clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			  NULL));
	CHECK(status == CL_COMPLETE);
	check_all(queue, buffer, 1, 2);
	CL(clReleaseEvent(first));
	CL(clReleaseEvent(marker));
	CL(clReleaseEvent(all));
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(add));
}

TEST(two_queues)
{
	cl_command_queue other = new_queue(0);
	cl_kernel add = kernel("add_one"), copy = kernel("copy");
	cl_mem from = counting(N, 0, CL_MEM_READ_WRITE), to = counting(N, 0, CL_MEM_READ_WRITE);
	const size_t global = N;
	for (int i = 0; i < 8; i++) {
		cl_event added, copied;
		launch(queue, add, from, 0, NULL, &added);
		CL(clFlush(queue));
		CL(clSetKernelArg(copy, 0, sizeof(to), &to));
		CL(clSetKernelArg(copy, 1, sizeof(from), &from));
		CL(clEnqueueNDRangeKernel(other, copy, 1, NULL, &global, NULL, 1, &added, &copied));
		CL(clFlush(other));
		CL(clEnqueueBarrierWithWaitList(queue, 1, &copied, NULL));
		CL(clReleaseEvent(added));
		CL(clReleaseEvent(copied));
	}
	check_all(other, to, 1, 8);
	CL(clFinish(queue));
	CL(clReleaseMemObject(from));
	CL(clReleaseMemObject(to));
	CL(clReleaseKernel(add));
	CL(clReleaseKernel(copy));
	CL(clReleaseCommandQueue(other));
}

static void *work(void *data)
{
	cl_int *result = data, own[N];
	cl_command_queue q = new_queue(0);
	cl_kernel add = kernel("add_one");
	cl_mem buffer = counting(N, *result, CL_MEM_READ_WRITE);
	for (int i = 0; i < 20; i++)
		launch(q, add, buffer, 0, NULL, NULL);
	CL(clEnqueueReadBuffer(q, buffer, CL_TRUE, 0, sizeof(own), own, 0, NULL, NULL));
	*result = own[N - 1];
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(add));
	CL(clReleaseCommandQueue(q));
	return NULL;
}

TEST(threads_with_queues)
{
	pthread_t threads[4];
	cl_int results[4];
	group_program();
	for (int i = 0; i < 4; i++) {
		results[i] = 1000 * i;
		CHECK(!pthread_create(&threads[i], NULL, work, &results[i]));
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		CHECK(results[i] == 1000 * i + N - 1 + 20);
	}
}

TEST(queue_queries)
{
	cl_command_queue q =
		new_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE);
	cl_command_queue_properties properties;
	cl_context c;
	cl_device_id d;
	cl_uint count;
	CL(clGetCommandQueueInfo(q, CL_QUEUE_PROPERTIES, sizeof(properties), &properties, NULL));
	CL(clGetCommandQueueInfo(q, CL_QUEUE_CONTEXT, sizeof(c), &c, NULL));
	CL(clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof(d), &d, NULL));
	CL(clRetainCommandQueue(q));
	CL(clGetCommandQueueInfo(q, CL_QUEUE_REFERENCE_COUNT, sizeof(count), &count, NULL));
	CHECK(c == context && d == device && count == 2);
	CHECK(properties == (CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE));
	CL(clReleaseCommandQueue(q));
	CL(clReleaseCommandQueue(q));
}

TEST(released_with_work_in_flight)
{
	cl_command_queue q = new_queue(0);
	cl_kernel add = kernel("add_one");
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	cl_event last = NULL;
	for (int i = 0; i < 50; i++) {
		if (last)
			CL(clReleaseEvent(last));
		launch(q, add, buffer, 0, NULL, &last);
	}
	CL(clReleaseKernel(add));
	CL(clReleaseCommandQueue(q));
	CL(clWaitForEvents(1, &last));
	CL(clReleaseEvent(last));
	check_all(queue, buffer, 1, 50);
	CL(clReleaseMemObject(buffer));
}

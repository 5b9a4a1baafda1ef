// SPDX-License-Identifier: GPL-2.0-or-later
// Shared virtual memory, coarse: host and kernels use the same pointers.
#include "cl.h"
#include <stdatomic.h>
#include <time.h>

const char *const group_source =
	"struct node { global struct node *next; int value; };\n"
	"kernel void add_one(global int *v) { v[get_global_id(0)] += 1; }\n"
	"kernel void follow(global struct node *n, global int *sum) {\n"
	"	int s = 0; while (n) { s += n->value; n->value = -n->value; n = n->next; } *sum = "
	"s;\n"
	"}\n";

enum { N = 2048 };

static cl_int *alloc(size_t size)
{
	cl_int *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, size, 0);
	CHECK(memory);
	return memory;
}

static void map(void *memory, size_t size, cl_map_flags flags)
{
	CL(clEnqueueSVMMap(queue, CL_TRUE, flags, memory, size, 0, NULL, NULL));
}

static void unmap(void *memory)
{
	CL(clEnqueueSVMUnmap(queue, memory, 0, NULL, NULL));
}

TEST(svm_map_and_kernels)
{
	const size_t global = N;
	cl_int *v = alloc(N * 4);
	cl_kernel add_one = kernel("add_one");
	map(v, N * 4, CL_MAP_WRITE);
	for (int i = 0; i < N; i++)
		v[i] = 3 * i;
	unmap(v);
	CL(clSetKernelArgSVMPointer(add_one, 0, v));
	CL(clEnqueueNDRangeKernel(queue, add_one, 1, NULL, &global, NULL, 0, NULL, NULL));
	map(v, N * 4, CL_MAP_READ);
	for (int i = 0; i < N; i++)
		CHECK(v[i] == 3 * i + 1);
	unmap(v);
	CL(clFinish(queue));
	/* A part of it. */
	const size_t half = N / 2;
	CL(clSetKernelArgSVMPointer(add_one, 0, v + half));
	CL(clEnqueueNDRangeKernel(queue, add_one, 1, NULL, &half, NULL, 0, NULL, NULL));
	map(v, N * 4, CL_MAP_READ);
	for (int i = 0; i < N; i++)
		CHECK(v[i] == 3 * i + 1 + (i >= N / 2));
	unmap(v);
	CL(clFinish(queue));
	clSVMFree(context, v);
	CL(clReleaseKernel(add_one));
}

struct node {
	struct node *next;
	cl_int value;
};

TEST(svm_list)
{
	struct node *nodes[10];
	const size_t one = 1;
	cl_int *sum = alloc(4);
	cl_kernel follow = kernel("follow");
	for (int i = 0; i < 10; i++) {
		nodes[i] = (struct node *)alloc(sizeof(struct node));
		map(nodes[i], sizeof(struct node), CL_MAP_WRITE);
	}
	for (int i = 0; i < 10; i++)
		*nodes[i] = (struct node){i < 9 ? nodes[i + 1] : NULL, i + 1};
	for (int i = 0; i < 10; i++)
		unmap(nodes[i]);
	CL(clSetKernelArgSVMPointer(follow, 0, nodes[0]));
	CL(clSetKernelArgSVMPointer(follow, 1, sum));
	CL(clSetKernelExecInfo(follow, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(nodes), nodes));
	CL(clEnqueueNDRangeKernel(queue, follow, 1, NULL, &one, &one, 0, NULL, NULL));
	map(sum, 4, CL_MAP_READ);
	CHECK(*sum == 55);
	unmap(sum);
	map(nodes[7], sizeof(struct node), CL_MAP_READ);
	CHECK(nodes[7]->value == -8 && nodes[7]->next == nodes[8]);
	unmap(nodes[7]);
	CL(clFinish(queue));
	for (int i = 0; i < 10; i++)
		clSVMFree(context, nodes[i]);
	clSVMFree(context, sum);
	CL(clReleaseKernel(follow));
}

TEST(svm_copies_and_fills)
{
	cl_int *a = alloc(N * 4), *b = alloc(N * 4), own[N];
	const cl_int pattern[2] = {7, -7};
	CL(clEnqueueSVMMemFill(queue, a, pattern, sizeof(pattern), N * 4, 0, NULL, NULL));
	CL(clEnqueueSVMMemcpy(queue, CL_TRUE, b, a, N * 4, 0, NULL, NULL));
	CL(clEnqueueSVMMemcpy(queue, CL_TRUE, own, b, N * 4, 0, NULL, NULL));
	for (int i = 0; i < N; i++)
		CHECK(own[i] == pattern[i % 2]);
	for (int i = 0; i < N; i++)
		own[i] = i;
	CL(clEnqueueSVMMemcpy(queue, CL_TRUE, b + 1, own, (N - 1) * 4, 0, NULL, NULL));
	map(b, N * 4, CL_MAP_READ);
	for (int i = 1; i < N; i++)
		CHECK(b[i] == i - 1);
	CHECK(b[0] == 7);
	unmap(b);
	CL(clFinish(queue));
	clSVMFree(context, a);
	clSVMFree(context, b);
}

static atomic_int freed;

static void CL_CALLBACK free_them(cl_command_queue q, cl_uint count, void **pointers, void *data)
{
	(void)q;
	for (cl_uint i = 0; i < count; i++)
		clSVMFree(context, pointers[i]);
	atomic_fetch_add((atomic_int *)data, (int)count);
}

TEST(svm_free_in_a_queue)
{
	void *memory[2] = {alloc(64), alloc(64)}, *more[2] = {alloc(4096), alloc(4096)};
	CL(clEnqueueSVMFree(queue, 2, memory, NULL, NULL, 0, NULL, NULL));
	CL(clEnqueueSVMFree(queue, 2, more, free_them, &freed, 0, NULL, NULL));
	CL(clFinish(queue));
	while (atomic_load(&freed) != 2)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	CHECK(!clSVMAlloc(context, CL_MEM_READ_WRITE, 0, 0));
	CHECK(!clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 3));
}

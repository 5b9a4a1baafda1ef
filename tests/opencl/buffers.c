// SPDX-License-Identifier: GPL-2.0-or-later
// Buffers: copies of all kinds, fills, sub-buffers, mappings, and memory of the host as a buffer.
#include "cl.h"

const char *const group_source =
	"kernel void add_one(global int *v) { v[get_global_id(0)] += 1; }\n"
	"kernel void add(global int *to, global const int *a, global const int *b) {\n"
	"	size_t i = get_global_id(0); to[i] = a[i] + b[i];\n"
	"}\n";

enum { N = 4096 };

static cl_int numbers[N], more[N];

static cl_mem empty(size_t size, cl_mem_flags flags)
{
	cl_int code;
	cl_mem buffer = clCreateBuffer(context, flags, size, NULL, &code);
	CL(code);
	return buffer;
}

static void count_up(cl_int first)
{
	for (int i = 0; i < N; i++)
		numbers[i] = first + i;
}

/* Fails unless the buffer's numbers count up from first. */
static void check_counting(cl_mem buffer, cl_int first)
{
	memset(more, 0xee, sizeof(more));
	read_ints(buffer, more, N);
	for (int i = 0; i < N; i++)
		CHECK(more[i] == first + i);
}

TEST(write_read)
{
	cl_mem buffer = empty(sizeof(numbers), CL_MEM_READ_WRITE);
	count_up(7);
	CL(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof(numbers), numbers, 0, NULL,
				NULL));
	CL(clFinish(queue));
	check_counting(buffer, 7);
	CL(clReleaseMemObject(buffer));
}

TEST(parts_of_buffers)
{
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	const cl_int marks[3] = {-1, -2, -3};
	CL(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 100 * 4, sizeof(marks), marks, 0, NULL,
				NULL));
	CL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 98 * 4, 7 * 4, more, 0, NULL, NULL));
	for (int i = 0; i < 7; i++)
		printf(" %d", more[i]);
	printf("\n");
	CL(clReleaseMemObject(buffer));
}

TEST(copy_between_buffers)
{
	cl_mem from = counting(N, 1000, CL_MEM_READ_ONLY), to = counting(N, 0, CL_MEM_READ_WRITE);
	CL(clEnqueueCopyBuffer(queue, from, to, 16, 256, 400, 0, NULL, NULL));
	read_ints(to, more, N);
	for (int i = 0; i < N; i++)
		CHECK(more[i] == (i >= 64 && i < 164 ? 1000 + i - 60 : i));
	CL(clReleaseMemObject(from));
	CL(clReleaseMemObject(to));
}

TEST(copy_inside_a_buffer)
{
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	CL(clEnqueueCopyBuffer(queue, buffer, buffer, 0, N * 2, N * 2, 0, NULL, NULL));
	EXPECT(CL_MEM_COPY_OVERLAP,
	       clEnqueueCopyBuffer(queue, buffer, buffer, 0, 4, 8, 0, NULL, NULL));
	read_ints(buffer, more, N);
	for (int i = 0; i < N; i++)
		CHECK(more[i] == i % (N / 2));
	CL(clReleaseMemObject(buffer));
}

/*
 * A 64 by 64 matrix: a part of 3 columns, 4 rows. PoCL hands the rows of a slice to the driver,
 * which wants them to hold the part: so the slice is the whole matrix.
 */
TEST(write_and_read_rects)
{
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	const size_t at[3] = {5 * 4, 6, 0}, zero[3] = {0, 0, 0}, region[3] = {3 * 4, 4, 1};
	cl_int part[12];
	CL(clEnqueueReadBufferRect(queue, buffer, CL_TRUE, at, zero, region, 64 * 4, N * 4, 3 * 4,
				   0, part, 0, NULL, NULL));
	for (int i = 0; i < 12; i++)
		CHECK(part[i] == (6 + i / 3) * 64 + 5 + i % 3);
	for (int i = 0; i < 12; i++)
		part[i] = -part[i];
	CL(clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, at, zero, region, 64 * 4, N * 4, 3 * 4,
				    0, part, 0, NULL, NULL));
	read_ints(buffer, more, N);
	for (int i = 0; i < N; i++) {
		int row = i / 64, column = i % 64,
		    inside = row >= 6 && row < 10 && column >= 5 && column < 8;
		CHECK(more[i] == (inside ? -i : i));
	}
	CL(clReleaseMemObject(buffer));
}

/* A block of 2 by 3 by 2 out of 16 by 16 by 16. */
TEST(copy_rects)
{
	cl_mem from = counting(N, 0, CL_MEM_READ_ONLY), to = empty(sizeof(more), CL_MEM_READ_WRITE);
	const cl_int nothing = -1;
	const size_t at[3] = {4 * 4, 2, 3}, there[3] = {8 * 4, 1, 9}, region[3] = {2 * 4, 3, 2};
	CL(clEnqueueFillBuffer(queue, to, &nothing, 4, 0, sizeof(more), 0, NULL, NULL));
	CL(clEnqueueCopyBufferRect(queue, from, to, at, there, region, 64, 1024, 64, 1024, 0, NULL,
				   NULL));
	read_ints(to, more, N);
	int found = 0;
	for (int i = 0; i < N; i++) {
		int x = i % 16 - 8, y = i / 16 % 16 - 1, z = i / 256 - 9;
		if (x < 0 || x > 1 || y < 0 || y > 2 || z < 0 || z > 1) {
			CHECK(more[i] == -1);
			continue;
		}
		CHECK(more[i] == (z + 3) * 256 + (y + 2) * 16 + x + 4);
		found++;
	}
	printf(" %d elements\n", found);
	CL(clReleaseMemObject(from));
	CL(clReleaseMemObject(to));
}

TEST(fills)
{
	static const size_t sizes[] = {1, 2, 4, 8, 16, 32, 64, 128};
	unsigned char pattern[128], got[512];
	cl_mem buffer = empty(512, CL_MEM_READ_WRITE);
	for (int i = 0; i < 128; i++)
		pattern[i] = 3 * i + 1;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		memset(got, 0, sizeof(got));
		CL(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 512, got, 0, NULL, NULL));
		CL(clEnqueueFillBuffer(queue, buffer, pattern, sizes[s], 128, 256, 0, NULL, NULL));
		CL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 512, got, 0, NULL, NULL));
		for (int i = 0; i < 512; i++)
			CHECK(got[i] == (i < 128 || i >= 384 ? 0 : pattern[i % sizes[s]]));
	}
	EXPECT(CL_INVALID_VALUE,
	       clEnqueueFillBuffer(queue, buffer, pattern, 3, 0, 48, 0, NULL, NULL));
	CL(clReleaseMemObject(buffer));
}

TEST(sub_buffers)
{
	cl_int code;
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	cl_uint align;
	CL(clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(align), &align, NULL));
	cl_buffer_region region = {1024 * 4, 512 * 4};
	CHECK(region.origin % (align / 8) == 0);
	cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
	CL(code);
	cl_mem parent;
	size_t offset;
	CL(clGetMemObjectInfo(part, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent, NULL));
	CL(clGetMemObjectInfo(part, CL_MEM_OFFSET, sizeof(offset), &offset, NULL));
	CHECK(parent == buffer && offset == region.origin);
	cl_kernel add_one = kernel("add_one");
	run_on(add_one, 512, 64, part, NULL);
	read_ints(part, more, 512);
	for (int i = 0; i < 512; i++)
		CHECK(more[i] == 1025 + i);
	read_ints(buffer, more, N);
	for (int i = 0; i < N; i++)
		CHECK(more[i] == i + (i >= 1024 && i < 1536));
	const cl_int mark = -5;
	CL(clEnqueueFillBuffer(queue, part, &mark, 4, 4, 4, 0, NULL, NULL));
	read_ints(buffer, more, N);
	CHECK(more[1025] == -5 && more[1024] == 1025 && more[1026] == 1027);
	region.origin = 4;
	clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
	CHECK(code == CL_MISALIGNED_SUB_BUFFER_OFFSET);
	CL(clReleaseKernel(add_one));
	CL(clReleaseMemObject(part));
	CL(clReleaseMemObject(buffer));
}

/* Maps the buffer with flags, checks that it counts from first, and adds to each number. */
static void map_and_add(cl_mem buffer, cl_map_flags flags, cl_int first, cl_int add)
{
	cl_int code;
	cl_int *mapped =
		clEnqueueMapBuffer(queue, buffer, CL_TRUE, flags, 0, N * 4, 0, NULL, NULL, &code);
	CL(code);
	for (int i = 0; i < N; i++) {
		CHECK(mapped[i] == first + i);
		if (add)
			mapped[i] += add;
	}
	CL(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
	CL(clFinish(queue));
}

TEST(map_and_unmap)
{
	cl_mem buffer = counting(N, 5, CL_MEM_READ_WRITE);
	map_and_add(buffer, CL_MAP_READ, 5, 0);
	map_and_add(buffer, CL_MAP_READ | CL_MAP_WRITE, 5, 10);
	check_counting(buffer, 15);
	cl_int code;
	cl_int *part = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION,
					  400, 40, 0, NULL, NULL, &code);
	CL(code);
	for (int i = 0; i < 10; i++)
		part[i] = 115 + i;
	cl_uint maps;
	CL(clGetMemObjectInfo(buffer, CL_MEM_MAP_COUNT, sizeof(maps), &maps, NULL));
	CHECK(maps == 1);
	CL(clEnqueueUnmapMemObject(queue, buffer, part, 0, NULL, NULL));
	check_counting(buffer, 15);
	CL(clReleaseMemObject(buffer));
}

enum { LARGE = 1 << 20 };

static cl_int *map_large(cl_mem buffer, cl_map_flags flags, size_t first, size_t count)
{
	cl_int code;
	cl_int *mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, flags, first * 4, count * 4, 0,
					    NULL, NULL, &code);
	CL(code);
	return mapped;
}

/* The memory of a large mapping stays with its buffer: the next one need not wait for new pages. */
TEST(large_maps)
{
	cl_mem buffer = empty(LARGE * 4, CL_MEM_READ_WRITE);
	cl_int *all = map_large(buffer, CL_MAP_WRITE, 0, LARGE);
	for (int i = 0; i < LARGE; i++)
		all[i] = i;
	CL(clEnqueueUnmapMemObject(queue, buffer, all, 0, NULL, NULL));
	CL(clFinish(queue));
	void *taken = malloc(LARGE * 4);
	cl_int *again = map_large(buffer, CL_MAP_READ, 0, LARGE);
	CHECK(again == all);
	cl_int *half = map_large(buffer, CL_MAP_READ | CL_MAP_WRITE, LARGE / 2, LARGE / 2);
	for (int i = 0; i < LARGE; i++)
		CHECK(again[i] == i);
	for (int i = 0; i < LARGE / 2; i++) {
		CHECK(half[i] == LARGE / 2 + i);
		half[i] = -i;
	}
	CL(clEnqueueUnmapMemObject(queue, buffer, again, 0, NULL, NULL));
	CL(clEnqueueUnmapMemObject(queue, buffer, half, 0, NULL, NULL));
	CL(clFinish(queue));
	again = map_large(buffer, CL_MAP_READ, LARGE / 4, LARGE / 2);
	for (int i = 0; i < LARGE / 2; i++)
		CHECK(again[i] == (i < LARGE / 4 ? LARGE / 4 + i : LARGE / 4 - i));
	CL(clEnqueueUnmapMemObject(queue, buffer, again, 0, NULL, NULL));
	CL(clReleaseMemObject(buffer));
	free(taken);
}

/* Reads, writes, maps and kernels see the same numbers. */
static void use_buffer(cl_mem buffer)
{
	cl_kernel add_one = kernel("add_one");
	count_up(0);
	CL(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof(numbers), numbers, 0, NULL,
				NULL));
	run_on(add_one, N, 128, buffer, NULL);
	check_counting(buffer, 1);
	map_and_add(buffer, CL_MAP_READ | CL_MAP_WRITE, 1, 2);
	run_on(add_one, N, 128, buffer, NULL);
	map_and_add(buffer, CL_MAP_READ, 4, 0);
	check_counting(buffer, 4);
	CL(clReleaseKernel(add_one));
}

TEST(alloc_host_ptr)
{
	cl_mem buffer = empty(sizeof(numbers), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
	use_buffer(buffer);
	CL(clReleaseMemObject(buffer));
	buffer = counting(N, 3, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR);
	map_and_add(buffer, CL_MAP_READ, 3, 0);
	CL(clReleaseMemObject(buffer));
}

TEST(use_host_ptr)
{
	cl_int code;
	cl_int *own = aligned_alloc(4096, sizeof(numbers));
	CHECK(own);
	for (int i = 0; i < N; i++)
		own[i] = 20 + i;
	cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
				       sizeof(numbers), own, &code);
	CL(code);
	void *pointer;
	CL(clGetMemObjectInfo(buffer, CL_MEM_HOST_PTR, sizeof(pointer), &pointer, NULL));
	CHECK(pointer == own);
	cl_kernel add_one = kernel("add_one");
	run_on(add_one, N, 128, buffer, NULL);
	cl_int *mapped = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, N * 4, 0, NULL,
					    NULL, &code);
	CL(code);
	CHECK(mapped == own);
	for (int i = 0; i < N; i++)
		CHECK(own[i] == 21 + i);
	CL(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL));
	CL(clFinish(queue));
	use_buffer(buffer);
	CL(clReleaseKernel(add_one));
	CL(clReleaseMemObject(buffer));
	free(own);
}

/* Larger than the blocks that malloc keeps, so that it lies in chunks in a guest. */
TEST(large_malloc_memory)
{
	const size_t size = 24 << 20;
	cl_uint *from = malloc(size), *to = malloc(size);
	CHECK(from && to);
	for (size_t i = 0; i < size / 4; i++)
		from[i] = (cl_uint)i * 2654435761u;
	cl_mem buffer = empty(size, CL_MEM_READ_WRITE);
	CL(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, size, from, 0, NULL, NULL));
	CL(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, size, to, 0, NULL, NULL));
	CL(clFinish(queue));
	CHECK(!memcmp(from, to, size));
	CL(clReleaseMemObject(buffer));
	free(from);
	free(to);
}

TEST(migrate)
{
	cl_mem buffers[2] = {counting(N, 1, CL_MEM_READ_WRITE), counting(N, 2, CL_MEM_READ_WRITE)};
	CL(clEnqueueMigrateMemObjects(queue, 2, buffers, 0, 0, NULL, NULL));
	CL(clEnqueueMigrateMemObjects(queue, 2, buffers, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL,
				      NULL));
	CL(clFinish(queue));
	check_counting(buffers[0], 1);
	check_counting(buffers[1], 2);
	CL(clReleaseMemObject(buffers[0]));
	CL(clReleaseMemObject(buffers[1]));
}

static int destroyed[2], order;

static void CL_CALLBACK at_end(cl_mem buffer, void *data)
{
	(void)buffer;
	*(int *)data = ++order;
}

TEST(destructor_callbacks)
{
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	CL(clSetMemObjectDestructorCallback(buffer, at_end, &destroyed[0]));
	CL(clSetMemObjectDestructorCallback(buffer, at_end, &destroyed[1]));
	CL(clRetainMemObject(buffer));
	CL(clReleaseMemObject(buffer));
	CHECK(!destroyed[0] && !destroyed[1]);
	CL(clReleaseMemObject(buffer));
	printf(" the first one came as number %d, the second as number %d\n", destroyed[0],
	       destroyed[1]);
}

TEST(three_buffers)
{
	cl_mem a = counting(N, 1, CL_MEM_READ_ONLY), b = counting(N, 10, CL_MEM_READ_ONLY);
	cl_mem to = empty(sizeof(more), CL_MEM_WRITE_ONLY);
	cl_kernel add = kernel("add");
	run_on(add, N, 0, to, a, b, NULL);
	read_ints(to, more, N);
	for (int i = 0; i < N; i++)
		CHECK(more[i] == 11 + 2 * i);
	CL(clReleaseKernel(add));
	CL(clReleaseMemObject(a));
	CL(clReleaseMemObject(b));
	CL(clReleaseMemObject(to));
}

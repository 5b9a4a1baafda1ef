// SPDX-License-Identifier: GPL-2.0-or-later
// What kernels do: ids, local memory, barriers, atomics, vectors, constants, numbers of all widths,
// printf.
#include "cl.h"
#include <math.h>

#define SOURCE(...) #__VA_ARGS__ "\n"

const char *const group_source = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
	/* clang-format off */
	SOURCE(kernel void ids(global int *v) {
		size_t i = get_global_id(1) * get_global_size(0) + get_global_id(0);
		v[i] = get_global_id(0) + 100 * get_global_id(1) + 10000 * get_local_id(0) + 100000 * get_group_id(1)
			+ 1000000 * get_num_groups(0);
	})
	SOURCE(kernel void reverse_groups(global int *v, local int *part) {
		size_t i = get_local_id(0); size_t n = get_local_size(0);
		part[i] = v[get_global_id(0)];
		barrier(CLK_LOCAL_MEM_FENCE);
		v[get_global_id(0)] = part[n - 1 - i];
	})
	SOURCE(kernel void sum_groups(global int *sums, global const int *v) {
		local int part[64];
		size_t i = get_local_id(0);
		part[i] = v[get_global_id(0)];
		for (int rest = 32; rest; rest /= 2) {
			barrier(CLK_LOCAL_MEM_FENCE);
			if (i < rest) part[i] += part[i + rest];
		}
		if (!i) sums[get_group_id(0)] = part[0];
	})
	SOURCE(kernel void two_arrays(global int *v, local int *a, local short *b) {
		local int fixed[32];
		size_t i = get_local_id(0);
		a[i] = v[get_global_id(0)]; b[i] = 2 * i; fixed[i] = 1;
		barrier(CLK_LOCAL_MEM_FENCE);
		v[get_global_id(0)] = a[31 - i] + b[31 - i] + fixed[31 - i];
	})
	SOURCE(kernel void count_up(global int *v, local int *l) {
		if (!get_local_id(0)) *l = 0;
		barrier(CLK_LOCAL_MEM_FENCE);
		atomic_inc(l);
		atomic_add(&v[0], 3); atomic_sub(&v[1], 2); atomic_max(&v[2], (int)get_global_id(0));
		atomic_min(&v[3], -(int)get_global_id(0)); atomic_or(&v[4], 1 << (get_global_id(0) % 20));
		atomic_and(&v[5], ~(1 << (get_global_id(0) % 20))); atomic_xor(&v[6], (int)get_global_id(0));
		atomic_dec(&v[7]);
		barrier(CLK_LOCAL_MEM_FENCE);
		if (!get_local_id(0)) atomic_add(&v[8], *l);
		int old = v[9]; int seen;
		while ((seen = atomic_cmpxchg(&v[9], old, old + 5)) != old) old = seen;
		atomic_xchg(&v[10], 77);
	})
	SOURCE(kernel void vectors(global int4 *v, global float *f) {
		size_t i = get_global_id(0);
		int4 a = v[i]; a = a.wzyx * 2 + (int4)(1, 2, 3, 4);
		v[i] = select(a, -a, a > 20);
		float3 b = vload3(i, f); b = cross(b, (float3)(0, 0, 1)); vstore3(b + dot(b, b), i, f);
	})
	SOURCE(constant int table[8] = {1, 1, 2, 3, 5, 8, 13, 21};
	kernel void constants(global int *v, constant int *factors, constant int *more) {
		size_t i = get_global_id(0);
		v[i] = table[i % 8] * factors[i % 4] + more[0];
	})
	SOURCE(kernel void widths(global char *c, global ushort *s, global long *l, global double *d) {
		size_t i = get_global_id(0);
		c[i] = add_sat(c[i], (char)100); s[i] = mul24((int)s[i], 3) + rotate((ushort)1, (ushort)i);
		l[i] = mul_hi(l[i], (long)1 << 40) - hadd(l[i], 1L); d[i] = fma(d[i], d[i], 0.5) / 3;
	})
	SOURCE(kernel void mathematics(global float *v) {
		size_t i = get_global_id(0);
		float x = (i + 1) * 0.37f;
		float whole;
		int power;
		v[12 * i] = sqrt(x); v[12 * i + 1] = sin(x); v[12 * i + 2] = exp(-x); v[12 * i + 3] = log(x);
		v[12 * i + 4] = pow(x, 1.5f); v[12 * i + 5] = atan2(x, 2.0f); v[12 * i + 6] = fmod(x, 0.3f);
		v[12 * i + 7] = tgamma(x); v[12 * i + 8] = modf(x, &whole) + whole; v[12 * i + 9] = frexp(x, &power) + power;
		v[12 * i + 10] = native_recip(x) * x; v[12 * i + 11] = clamp(mix(x, 2.0f, 0.25f), 0.5f, 1.5f) + sign(-x);
	})
	SOURCE(struct item { int a; float b; char c[6]; };
	kernel void structures(global struct item *v, struct item add, int4 ints, float2 floats) {
		size_t i = get_global_id(0);
		v[i].a += add.a + ints.w; v[i].b += add.b + floats.y; v[i].c[i % 6] = add.c[5 - i % 6];
	})
	SOURCE(int steps(int n, int *calls) { ++*calls; while (n > 1) { n = n % 2 ? 3 * n + 1 : n / 2; ++*calls; } return n; }
	kernel void branches(global int *v) {
		size_t i = get_global_id(0);
		int calls = 0; int own[16]; int sum = 0;
		for (int k = 0; k < 16; k++) own[(k * 7 + i) % 16] = k * k;
		for (int k = 0; k < 16; k++) { if (k == i % 16) continue; sum += own[k]; if (sum > 900) break; }
		switch (i % 4) { case 0: sum += 1; break; case 1: sum -= 1; break; default: sum *= 2; }
		v[i] = sum + steps(i % 7 + 1, &calls) + 10000 * calls;
	})
	SOURCE(kernel void copies(global int *to, global const int *from, local int *part) {
		size_t n = get_local_size(0);
		event_t e = async_work_group_copy(part, from + get_group_id(0) * n, n, 0);
		wait_group_events(1, &e);
		part[get_local_id(0)] *= 2;
		barrier(CLK_LOCAL_MEM_FENCE);
		e = async_work_group_copy(to + get_group_id(0) * n, part, n, 0);
		wait_group_events(1, &e);
	})
	SOURCE(kernel void say(int n) {
		if (!get_global_id(0)) printf("%d %x %f %c %s %%\n", n, 255, 3.25f, 'q', "text");
	})
	SOURCE(global int counter = 5;
	kernel void remember(global int *v) { v[0] = atomic_add(&counter, 3); })
	SOURCE(int generic_get(int *p) { return *p + 1; }
	kernel void generic_pointers(global int *v, local int *l) {
		int own = 40; *l = 30;
		v[1] = generic_get(&own); v[2] = generic_get(l); v[3] = generic_get(v);
	})
	SOURCE(kernel __attribute__((reqd_work_group_size(16, 2, 1))) void required(global int *v) {
		v[get_global_id(1) * get_global_size(0) + get_global_id(0)] = get_local_size(0) * 10 + get_local_size(1);
	});
/* clang-format on */

enum { N = 1024 };

static cl_int numbers[N];

static cl_mem zeros(size_t size)
{
	cl_int code;
	void *zero = calloc(1, size);
	cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, size,
				       zero, &code);
	CL(code);
	free(zero);
	return buffer;
}

static void launch(cl_kernel k, size_t global, size_t local)
{
	CL(clEnqueueNDRangeKernel(queue, k, 1, NULL, &global, local ? &local : NULL, 0, NULL,
				  NULL));
	CL(clFinish(queue));
}

static void print_ints(const char *what, const cl_int *v, int count)
{
	printf(" %s:", what);
	for (int i = 0; i < count; i++)
		printf(" %d", v[i]);
	printf("\n");
}

/* Without an offset: PoCL's CUDA device ignores it. */
TEST(ids)
{
	cl_kernel ids = kernel("ids");
	cl_mem buffer = zeros(sizeof(numbers));
	const size_t global[2] = {16, 8}, local[2] = {8, 2};
	CL(clSetKernelArg(ids, 0, sizeof(buffer), &buffer));
	CL(clEnqueueNDRangeKernel(queue, ids, 2, NULL, global, local, 0, NULL, NULL));
	read_ints(buffer, numbers, 128);
	for (int i = 0; i < 128; i++) {
		int x = i % 16, y = i / 16;
		CHECK(numbers[i] == x + 100 * y + 10000 * (x % 8) + 100000 * (y / 2) + 2000000);
	}
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(ids));
}

TEST(local_memory)
{
	cl_kernel reverse = kernel("reverse_groups");
	cl_mem buffer = counting(N, 0, CL_MEM_READ_WRITE);
	CL(clSetKernelArg(reverse, 0, sizeof(buffer), &buffer));
	CL(clSetKernelArg(reverse, 1, 128 * sizeof(cl_int), NULL));
	launch(reverse, N, 128);
	read_ints(buffer, numbers, N);
	for (int i = 0; i < N; i++)
		CHECK(numbers[i] == i / 128 * 128 + 127 - i % 128);
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(reverse));
}

TEST(reduction)
{
	cl_kernel sum = kernel("sum_groups");
	cl_mem from = counting(N, 0, CL_MEM_READ_ONLY), to = zeros(16 * 4);
	run_on(sum, N, 64, to, from, NULL);
	read_ints(to, numbers, 16);
	for (int i = 0; i < 16; i++)
		CHECK(numbers[i] == 64 * 64 * i + 63 * 32);
	CL(clReleaseMemObject(from));
	CL(clReleaseMemObject(to));
	CL(clReleaseKernel(sum));
}

TEST(several_local_arrays)
{
	cl_kernel two = kernel("two_arrays");
	cl_mem buffer = counting(64, 0, CL_MEM_READ_WRITE);
	CL(clSetKernelArg(two, 0, sizeof(buffer), &buffer));
	CL(clSetKernelArg(two, 1, 32 * sizeof(cl_int), NULL));
	CL(clSetKernelArg(two, 2, 32 * sizeof(cl_short), NULL));
	launch(two, 64, 32);
	read_ints(buffer, numbers, 64);
	for (int i = 0; i < 64; i++)
		CHECK(numbers[i] == i / 32 * 32 + (31 - i % 32) * 3 + 1);
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(two));
}

TEST(atomics)
{
	static const cl_int start[11] = {0, 0, -5, 5, 0, -1, 0, 0, 0, 0, 0};
	cl_kernel count = kernel("count_up");
	cl_mem buffer = zeros(sizeof(start));
	CL(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof(start), start, 0, NULL, NULL));
	CL(clSetKernelArg(count, 0, sizeof(buffer), &buffer));
	CL(clSetKernelArg(count, 1, sizeof(cl_int), NULL));
	launch(count, 256, 32);
	read_ints(buffer, numbers, 11);
	print_ints("of 256 items", numbers, 11);
	CHECK(numbers[0] == 768 && numbers[1] == -512 && numbers[2] == 255 && numbers[3] == -255);
	CHECK(numbers[8] == 256 && numbers[9] == 1280 && numbers[10] == 77);
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(count));
}

TEST(vector_types)
{
	cl_float f[24];
	cl_kernel vectors = kernel("vectors");
	cl_mem v = counting(32, 0, CL_MEM_READ_WRITE), floats = zeros(sizeof(f));
	for (int i = 0; i < 24; i++)
		f[i] = i * 0.5f;
	CL(clEnqueueWriteBuffer(queue, floats, CL_TRUE, 0, sizeof(f), f, 0, NULL, NULL));
	run_on(vectors, 8, 8, v, floats, NULL);
	read_ints(v, numbers, 32);
	CL(clEnqueueReadBuffer(queue, floats, CL_TRUE, 0, sizeof(f), f, 0, NULL, NULL));
	print_ints("int4", numbers, 12);
	for (int i = 0; i < 8; i++) {
		float x = 1.5f * i, y = x + 0.5f, square = x * x + y * y;
		CHECK(fabsf(f[3 * i] - (y + square)) < 1e-4f &&
		      fabsf(f[3 * i + 1] - (square - x)) < 1e-4f);
		CHECK(fabsf(f[3 * i + 2] - square) < 1e-4f);
	}
	CL(clReleaseMemObject(v));
	CL(clReleaseMemObject(floats));
	CL(clReleaseKernel(vectors));
}

TEST(constant_memory)
{
	cl_kernel constants = kernel("constants");
	cl_mem v = zeros(64 * 4), factors = counting(4, 1, CL_MEM_READ_ONLY),
	       more = counting(1, 1000, CL_MEM_READ_ONLY);
	run_on(constants, 64, 32, v, factors, more, NULL);
	read_ints(v, numbers, 64);
	print_ints("constants", numbers, 12);
	for (int i = 8; i < 64; i++)
		CHECK(numbers[i] == numbers[i - 8]);
	CL(clReleaseMemObject(v));
	CL(clReleaseMemObject(factors));
	CL(clReleaseMemObject(more));
	CL(clReleaseKernel(constants));
}

TEST(number_widths)
{
	cl_char c[8] = {0, 27, 28, 100, -128, -1, 1, 2};
	cl_ushort s[8] = {0, 1, 2, 1000, 20000, 5, 6, 7};
	cl_long l[8] = {0, 1, -1, 1ll << 40, -(1ll << 50), 1ll << 62, 12345678901ll, 3};
	cl_double d[8] = {0, 1, -1, 1e10, 1e-10, 3, 5, 7};
	cl_kernel widths = kernel("widths");
	cl_mem bc = zeros(sizeof(c)), bs = zeros(sizeof(s)), bl = zeros(sizeof(l)),
	       bd = zeros(sizeof(d));
	CL(clEnqueueWriteBuffer(queue, bc, CL_TRUE, 0, sizeof(c), c, 0, NULL, NULL));
	CL(clEnqueueWriteBuffer(queue, bs, CL_TRUE, 0, sizeof(s), s, 0, NULL, NULL));
	CL(clEnqueueWriteBuffer(queue, bl, CL_TRUE, 0, sizeof(l), l, 0, NULL, NULL));
	CL(clEnqueueWriteBuffer(queue, bd, CL_TRUE, 0, sizeof(d), d, 0, NULL, NULL));
	run_on(widths, 8, 8, bc, bs, bl, bd, NULL);
	CL(clEnqueueReadBuffer(queue, bc, CL_TRUE, 0, sizeof(c), c, 0, NULL, NULL));
	CL(clEnqueueReadBuffer(queue, bs, CL_TRUE, 0, sizeof(s), s, 0, NULL, NULL));
	CL(clEnqueueReadBuffer(queue, bl, CL_TRUE, 0, sizeof(l), l, 0, NULL, NULL));
	CL(clEnqueueReadBuffer(queue, bd, CL_TRUE, 0, sizeof(d), d, 0, NULL, NULL));
	for (int i = 0; i < 8; i++)
		printf(" %d %u %lld %.17g\n", c[i], s[i], (long long)l[i], d[i]);
	CHECK(c[1] == 127 && c[2] == 127 && c[4] == -28);
	CL(clReleaseMemObject(bc));
	CL(clReleaseMemObject(bs));
	CL(clReleaseMemObject(bl));
	CL(clReleaseMemObject(bd));
	CL(clReleaseKernel(widths));
}

static void close_to(float got, double want)
{
	CHECK(fabs(got - want) <= 1e-4 * fmax(1, fabs(want)));
}

TEST(mathematics)
{
	enum { COUNT = 12 };
	float v[12 * COUNT];
	cl_kernel mathematics = kernel("mathematics");
	cl_mem buffer = zeros(sizeof(v));
	run_on(mathematics, COUNT, 0, buffer, NULL);
	CL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(v), v, 0, NULL, NULL));
	for (int i = 0; i < COUNT; i++) {
		double x = (i + 1) * 0.37f, mixed = x + (2 - x) * 0.25;
		int power;
		float *got = v + 12 * i;
		close_to(got[0], sqrt(x));
		close_to(got[1], sin(x));
		close_to(got[2], exp(-x));
		close_to(got[3], log(x));
		close_to(got[4], pow(x, 1.5));
		close_to(got[5], atan2(x, 2));
		close_to(got[6], fmod((float)x, 0.3f));
		close_to(got[7], tgamma(x));
		close_to(got[8], x);
		close_to(got[9], frexp(x, &power) + power);
		close_to(got[10], 1);
		close_to(got[11], fmin(fmax(mixed, 0.5), 1.5) - 1);
	}
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(mathematics));
}

TEST(structures_by_value)
{
	struct item {
		cl_int a;
		cl_float b;
		cl_char c[6];
	} items[12] = {{0}}, add = {100, 0.5f, {'a', 'b', 'c', 'd', 'e', 'f'}};
	cl_int4 ints = {{1, 2, 3, 4}};
	cl_float2 floats = {{1, 2}};
	cl_kernel structures = kernel("structures");
	cl_mem buffer = zeros(sizeof(items));
	CL(clSetKernelArg(structures, 0, sizeof(buffer), &buffer));
	CL(clSetKernelArg(structures, 1, sizeof(add), &add));
	CL(clSetKernelArg(structures, 2, sizeof(ints), &ints));
	CL(clSetKernelArg(structures, 3, sizeof(floats), &floats));
	launch(structures, 12, 0);
	CL(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof(items), items, 0, NULL, NULL));
	for (int i = 0; i < 12; i++)
		CHECK(items[i].a == 104 && items[i].b == 2.5f &&
		      items[i].c[i % 6] == "fedcba"[i % 6]);
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(structures));
}

TEST(branches_and_calls)
{
	cl_kernel branches = kernel("branches");
	cl_mem buffer = zeros(28 * 4);
	run_on(branches, 28, 28, buffer, NULL);
	read_ints(buffer, numbers, 28);
	print_ints("results", numbers, 28);
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(branches));
}

TEST(work_group_copies)
{
	cl_kernel copies = kernel("copies");
	cl_mem from = counting(N, 0, CL_MEM_READ_ONLY), to = zeros(sizeof(numbers));
	CL(clSetKernelArg(copies, 0, sizeof(to), &to));
	CL(clSetKernelArg(copies, 1, sizeof(from), &from));
	CL(clSetKernelArg(copies, 2, 64 * sizeof(cl_int), NULL));
	launch(copies, N, 64);
	read_ints(to, numbers, N);
	for (int i = 0; i < N; i++)
		CHECK(numbers[i] == 2 * i);
	CL(clReleaseMemObject(from));
	CL(clReleaseMemObject(to));
	CL(clReleaseKernel(copies));
}

/* PoCL's CUDA device has these conversions, without widths. */
TEST(printf_in_kernels)
{
	cl_kernel say = kernel("say");
	for (cl_int i = -1; i < 2; i++) {
		CL(clSetKernelArg(say, 0, sizeof(i), &i));
		launch(say, 64, 32);
	}
	CL(clReleaseKernel(say));
}

TEST(variables_of_the_program)
{
	cl_kernel remember = kernel("remember");
	cl_mem buffer = zeros(4);
	for (int i = 0; i < 3; i++) {
		run_on(remember, 1, 1, buffer, NULL);
		read_ints(buffer, numbers, 1);
		CHECK(numbers[0] == 5 + 3 * i);
	}
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(remember));
}

TEST(pointers_without_a_space)
{
	cl_kernel generic = kernel("generic_pointers");
	cl_mem buffer = counting(4, 50, CL_MEM_READ_WRITE);
	CL(clSetKernelArg(generic, 0, sizeof(buffer), &buffer));
	CL(clSetKernelArg(generic, 1, sizeof(cl_int), NULL));
	launch(generic, 1, 1);
	read_ints(buffer, numbers, 4);
	CHECK(numbers[1] == 41 && numbers[2] == 31 && numbers[3] == 51);
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(generic));
}

TEST(sizes_of_work_groups)
{
	cl_kernel required = kernel("required");
	cl_mem buffer = zeros(sizeof(numbers));
	const size_t global[2] = {32, 4}, right[2] = {16, 2}, wrong[2] = {8, 2}, odd[2] = {24, 4};
	CL(clSetKernelArg(required, 0, sizeof(buffer), &buffer));
	EXPECT(CL_INVALID_WORK_GROUP_SIZE,
	       clEnqueueNDRangeKernel(queue, required, 2, NULL, global, wrong, 0, NULL, NULL));
	EXPECT(CL_INVALID_WORK_GROUP_SIZE,
	       clEnqueueNDRangeKernel(queue, required, 2, NULL, odd, right, 0, NULL, NULL));
	CL(clEnqueueNDRangeKernel(queue, required, 2, NULL, global, right, 0, NULL, NULL));
	read_ints(buffer, numbers, 128);
	for (int i = 0; i < 128; i++)
		CHECK(numbers[i] == 162);
	CL(clReleaseMemObject(buffer));
	CL(clReleaseKernel(required));
}

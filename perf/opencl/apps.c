// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Six applications in OpenCL, with inputs that grow: fast Walsh transform, Black-Scholes, Mersenne
 * Twister, matrix multiply, scan, separable convolution. A run is what a program does with its
 * data: it makes buffers, writes the input, runs the kernels, reads the result and releases the
 * buffers. Context and program are made once before.
 *
 * Prints CSV: benchmark, application, bytes of input, milliseconds of a run (median), and whether a
 * sample of the result is right. For the Mersenne Twister, which has no input, the bytes are those
 * of its output.
 */
#include "common.h"
#include <math.h>

#define SOURCE(...) #__VA_ARGS__ "\n"

/* clang-format off */
static const char *const source =
	SOURCE(kernel void walsh(global float *v, uint stride) {
		size_t i = get_global_id(0);
		size_t at = (i / stride) * 2 * stride + i % stride;
		float a = v[at]; float b = v[at + stride];
		v[at] = a + b; v[at + stride] = a - b;
	})
	SOURCE(float normal(float d) {
		float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
		float sum = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
		float c = 0.39894228f * exp(-0.5f * d * d) * sum;
		return d > 0 ? 1.0f - c : c;
	}
	kernel void black_scholes(global float *call, global float *put, global const float *price,
				  global const float *strike, global const float *years) {
		size_t i = get_global_id(0);
		float s = price[i]; float x = strike[i]; float t = years[i];
		float root = sqrt(t);
		float d1 = (log(s / x) + (0.02f + 0.5f * 0.3f * 0.3f) * t) / (0.3f * root);
		float d2 = d1 - 0.3f * root;
		float discounted = x * exp(-0.02f * t);
		call[i] = s * normal(d1) - discounted * normal(d2);
		put[i] = discounted * (1.0f - normal(d2)) - s * (1.0f - normal(d1));
	})
	/* Small twisters: 19 words of state, period 2^607 - 1. Each item writes every 4096th number. */
	SOURCE(kernel void twister(global float *v, uint each) {
		uint id = get_global_id(0);
		uint state[19]; uint at = 0;
		state[0] = id * 2654435761u + 1u;
		for (uint i = 1; i < 19; i++) state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
		for (uint i = 0; i < each; i++) {
			uint next = at + 1 < 19 ? at + 1 : 0; uint far = at + 9 < 19 ? at + 9 : at - 10;
			uint x = (state[at] & 0xfffffffeu) | (state[next] & 1u);
			x = state[far] ^ (x >> 1) ^ ((x & 1u) ? 0x9908b0dfu : 0u);
			state[at] = x; at = next;
			x ^= x >> 12; x ^= (x << 7) & 0x9d2c5680u; x ^= (x << 15) & 0xefc60000u; x ^= x >> 18;
			v[id + i * 4096u] = ((float)(x >> 8) + 0.5f) * (1.0f / 16777216.0f);
		}
	}
	kernel void box_muller(global float2 *v) {
		size_t i = get_global_id(0);
		float2 u = v[i];
		float r = sqrt(-2.0f * log(u.x)); float angle = 6.2831853f * u.y;
		v[i] = (float2)(r * cos(angle), r * sin(angle));
	})
	SOURCE(kernel __attribute__((reqd_work_group_size(16, 16, 1)))
	void multiply(global float *c, global const float *a, global const float *b, uint n) {
		local float left[16][17]; local float right[16][17];
		uint x = get_local_id(0); uint y = get_local_id(1); size_t column = get_global_id(0); size_t row = get_global_id(1);
		float sum = 0;
		for (uint k = 0; k < n; k += 16) {
			left[y][x] = a[row * n + k + x]; right[y][x] = b[(k + y) * (size_t)n + column];
			barrier(CLK_LOCAL_MEM_FENCE);
			for (uint i = 0; i < 16; i++) sum += left[y][i] * right[i][x];
			barrier(CLK_LOCAL_MEM_FENCE);
		}
		c[row * n + column] = sum;
	})
	/* A group scans 1024 numbers; the groups' sums are scanned the same way and added. */
	SOURCE(kernel __attribute__((reqd_work_group_size(256, 1, 1)))
	void scan(global uint *v, global uint *sums, ulong count) {
		local uint part[256];
		uint i = get_local_id(0); size_t at = get_group_id(0) * (size_t)1024 + 4 * i;
		uint own[4]; uint sum = 0;
		for (uint k = 0; k < 4; k++) { own[k] = sum; sum += at + k < count ? v[at + k] : 0; }
		part[i] = sum;
		for (uint far = 1; far < 256; far *= 2) {
			barrier(CLK_LOCAL_MEM_FENCE);
			uint other = i >= far ? part[i - far] : 0;
			barrier(CLK_LOCAL_MEM_FENCE);
			part[i] += other;
		}
		barrier(CLK_LOCAL_MEM_FENCE);
		uint before = i ? part[i - 1] : 0;
		for (uint k = 0; k < 4; k++) if (at + k < count) v[at + k] = own[k] + before;
		if (i == 255) sums[get_group_id(0)] = part[255];
	}
	kernel void add_sums(global uint *v, global const uint *sums, ulong count) {
		size_t i = get_global_id(0);
		if (i < count) v[i] += sums[i / 1024];
	})
	SOURCE(constant float weights[17] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1};
	kernel void rows(global float *to, global const float *from, int width, int height) {
		int x = get_global_id(0); int y = get_global_id(1);
		float sum = 0;
		for (int k = -8; k <= 8; k++) sum += weights[k + 8] * (x + k >= 0 && x + k < width ? from[(size_t)y * width + x + k] : 0);
		to[(size_t)y * width + x] = sum / 81;
	}
	kernel void columns(global float *to, global const float *from, int width, int height) {
		int x = get_global_id(0); int y = get_global_id(1);
		float sum = 0;
		for (int k = -8; k <= 8; k++) sum += weights[k + 8] * (y + k >= 0 && y + k < height ? from[(size_t)(y + k) * width + x] : 0);
		to[(size_t)y * width + x] = sum / 81;
	});
/* clang-format on */

static cl_program program;
static float *in, *out;
static int checking;
static double finished; /* when a run has done its work; what follows checks its result */

static cl_kernel kernel(const char *name)
{
	cl_int code;
	cl_kernel made = clCreateKernel(program, name, &code);
	CL(code);
	return made;
}

static void set(cl_kernel k, cl_uint index, size_t size, const void *value)
{
	CL(clSetKernelArg(k, index, size, value));
}

static void launch(cl_kernel k, cl_uint dimensions, const size_t *global, const size_t *local)
{
	CL(clEnqueueNDRangeKernel(queue, k, dimensions, NULL, global, local, 0, NULL, NULL));
}

static cl_mem input(const void *from, size_t size)
{
	cl_mem made = buffer(CL_MEM_READ_WRITE, size, NULL);
	CL(clEnqueueWriteBuffer(queue, made, CL_FALSE, 0, size, from, 0, NULL, NULL));
	return made;
}

static void output(cl_mem from, void *to, size_t size)
{
	CL(clEnqueueReadBuffer(queue, from, CL_TRUE, 0, size, to, 0, NULL, NULL));
}

static void done(cl_mem a)
{
	CL(clReleaseMemObject(a));
}

static int close_to(double got, double want)
{
	return fabs(got - want) <= 1e-3 * fmax(1, fabs(want));
}

static int walsh(size_t size)
{
	size_t n = size / sizeof(float), half = n / 2;
	cl_kernel k = kernel("walsh");
	cl_mem v = input(in, size);
	set(k, 0, sizeof(v), &v);
	for (cl_uint stride = (cl_uint)half; stride; stride /= 2) {
		set(k, 1, sizeof(stride), &stride);
		launch(k, 1, &half, NULL);
	}
	output(v, out, size);
	done(v);
	CL(clReleaseKernel(k));
	finished = seconds();
	if (!checking)
		return 1;
	double sum = 0, alternating = 0, scale = 0;
	for (size_t i = 0; i < n; i++) {
		sum += in[i];
		alternating += i % 2 ? -in[i] : in[i];
		scale += fabs(in[i]);
	}
	return fabs(out[0] - sum) < 1e-4 * scale && fabs(out[1] - alternating) < 1e-4 * scale;
}

static double normal(double d)
{
	return 0.5 * erfc(-d / sqrt(2));
}

static int black_scholes(size_t size)
{
	size_t n = size / 12 / 64 * 64, part = n * 4;
	cl_kernel k = kernel("black_scholes");
	cl_mem call = buffer(CL_MEM_WRITE_ONLY, part, NULL),
	       put = buffer(CL_MEM_WRITE_ONLY, part, NULL);
	cl_mem args[5] = {call, put, input(in, part), input(in + n, part), input(in + 2 * n, part)};
	for (cl_uint i = 0; i < 5; i++)
		set(k, i, sizeof(args[i]), &args[i]);
	launch(k, 1, &n, NULL);
	output(call, out, part);
	output(put, out + n, part);
	for (int i = 0; i < 5; i++)
		done(args[i]);
	CL(clReleaseKernel(k));
	finished = seconds();
	if (!checking)
		return 1;
	int good = 1;
	for (size_t i = 0; i < n; i += n / 100 + 1) {
		double s = in[i], x = in[n + i], t = in[2 * n + i],
		       d1 = (log(s / x) + 0.065 * t) / (0.3 * sqrt(t));
		double d2 = d1 - 0.3 * sqrt(t),
		       want = s * normal(d1) - x * exp(-0.02 * t) * normal(d2);
		good &= close_to(out[i], want) &&
			close_to(out[i] - out[n + i], s - x * exp(-0.02 * t));
	}
	return good;
}

static int twister(size_t size)
{
	size_t n = size / 4, items = 4096, pairs = n / 2;
	cl_uint each = (cl_uint)(n / items);
	cl_kernel k = kernel("twister"), box = kernel("box_muller");
	cl_mem v = buffer(CL_MEM_READ_WRITE, size, NULL);
	set(k, 0, sizeof(v), &v);
	set(k, 1, sizeof(each), &each);
	launch(k, 1, &items, NULL);
	set(box, 0, sizeof(v), &v);
	launch(box, 1, &pairs, NULL);
	output(v, out, size);
	done(v);
	CL(clReleaseKernel(k));
	CL(clReleaseKernel(box));
	finished = seconds();
	if (!checking)
		return 1;
	double sum = 0, squares = 0;
	for (size_t i = 0; i < n; i++) {
		sum += out[i];
		squares += (double)out[i] * out[i];
	}
	return fabs(sum / (double)n) < 0.02 && fabs(squares / (double)n - 1) < 0.02;
}

static int multiply(size_t size)
{
	cl_uint n = (cl_uint)sqrt((double)size / 8) / 16 * 16;
	size_t part = (size_t)n * n * 4, global[2] = {n, n}, local[2] = {16, 16};
	cl_kernel k = kernel("multiply");
	cl_mem a = input(in, part), b = input(in + (size_t)n * n, part),
	       c = buffer(CL_MEM_WRITE_ONLY, part, NULL);
	set(k, 0, sizeof(c), &c);
	set(k, 1, sizeof(a), &a);
	set(k, 2, sizeof(b), &b);
	set(k, 3, sizeof(n), &n);
	launch(k, 2, global, local);
	output(c, out, part);
	done(a);
	done(b);
	done(c);
	CL(clReleaseKernel(k));
	finished = seconds();
	if (!checking)
		return 1;
	int good = 1;
	for (size_t s = 0; s < 20; s++) {
		size_t row = s * 977 % n, column = s * 1663 % n;
		double want = 0;
		for (size_t i = 0; i < n; i++)
			want += (double)in[row * n + i] * in[(size_t)n * n + i * n + column];
		good &= close_to(out[row * n + column] / want, 1);
	}
	return good;
}

static void scan_part(cl_kernel scan, cl_kernel add, cl_mem v, cl_ulong count)
{
	size_t groups = (count + 1023) / 1024, items = groups * 256,
	       all = (count + 255) / 256 * 256, group = 256;
	cl_mem sums = buffer(CL_MEM_READ_WRITE, groups * 4, NULL);
	set(scan, 0, sizeof(v), &v);
	set(scan, 1, sizeof(sums), &sums);
	set(scan, 2, sizeof(count), &count);
	launch(scan, 1, &items, &group);
	if (groups > 1) {
		scan_part(scan, add, sums, groups);
		set(add, 0, sizeof(v), &v);
		set(add, 1, sizeof(sums), &sums);
		set(add, 2, sizeof(count), &count);
		launch(add, 1, &all, &group);
	}
	done(sums);
}

static int scan(size_t size)
{
	size_t n = size / 4;
	cl_kernel k = kernel("scan"), add = kernel("add_sums");
	cl_mem v = input(in, size);
	const cl_uint *numbers = (const cl_uint *)in, *sums = (const cl_uint *)out;
	scan_part(k, add, v, n);
	output(v, out, size);
	done(v);
	CL(clReleaseKernel(k));
	CL(clReleaseKernel(add));
	finished = seconds();
	if (!checking)
		return 1;
	cl_uint sum = 0;
	for (size_t i = 0; i < n; i++) {
		if (sums[i] != sum)
			return 0;
		sum += numbers[i];
	}
	return 1;
}

static int convolution(size_t size)
{
	/* No more than 65535 work groups below one another, which is CUDA's limit. */
	cl_int width = 4096, height = (cl_int)(size / 16384);
	size_t global[2] = {(size_t)width, (size_t)height}, local[2] = {64, 4};
	cl_kernel k[2] = {kernel("rows"), kernel("columns")};
	cl_mem from = input(in, size), between = buffer(CL_MEM_READ_WRITE, size, NULL),
	       to = buffer(CL_MEM_WRITE_ONLY, size, NULL);
	for (int i = 0; i < 2; i++) {
		set(k[i], 0, sizeof(cl_mem), i ? &to : &between);
		set(k[i], 1, sizeof(cl_mem), i ? &between : &from);
		set(k[i], 2, sizeof(width), &width);
		set(k[i], 3, sizeof(height), &height);
		launch(k[i], 2, global, local);
	}
	output(to, out, size);
	done(from);
	done(between);
	done(to);
	CL(clReleaseKernel(k[0]));
	CL(clReleaseKernel(k[1]));
	finished = seconds();
	if (!checking)
		return 1;
	int good = 1;
	for (int s = 0; s < 20; s++) {
		int x = s * 211 % width, y = s * 97 % height;
		double want = 0;
		for (int j = -8; j <= 8; j++)
			for (int i = -8; i <= 8; i++)
				if (x + i >= 0 && x + i < width && y + j >= 0 && y + j < height)
					want += (9.0 - abs(i)) * (9.0 - abs(j)) *
						in[(size_t)(y + j) * width + x + i];
		good &= close_to(out[(size_t)y * width + x], want / 6561);
	}
	return good;
}

static const struct {
	const char *name;
	int (*run)(size_t size);
} apps[] = {
	{"walsh", walsh},
	{"black_scholes", black_scholes},
	{"mersenne_twister", twister},
	{"multiply", multiply},
	{"scan", scan},
	{"convolution", convolution},
};

int main(int argc, char **argv)
{
	size_t most = megabytes(argc, argv, 1, 64) << 20;
	const size_t runs = megabytes(argc, argv, 2, 5);
	const size_t checked = megabytes(argc, argv, 3, 4096) << 20;
	double times[4096];
	int bad = 0;
	start();
	in = malloc(most);
	out = malloc(most);
	if (!in || !out)
		return 1;
	for (size_t i = 0; i < most / 4; i++)
		in[i] = 1 + (float)((cl_uint)i * 2654435761u >> 8) / (1 << 24);
	memset(out, 0, most);
	cl_int code;
	program = clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &code);
	CL(code);
	CL(clBuildProgram(program, 1, &device, "", NULL, NULL));
	for (size_t a = 0; a < sizeof(apps) / sizeof(apps[0]); a++) {
		for (size_t size = 1 << 20; size <= most; size *= 4) {
			checking = size <= checked;
			int good = apps[a].run(size);
			for (size_t i = 0; i < runs; i++) {
				double began = seconds();
				good &= apps[a].run(size);
				times[i] = finished - began;
			}
			bad += !good;
			printf("apps,%s,%zu,%.3f,%s\n", apps[a].name, size,
			       median(times, (int)runs) * 1e3,
			       !good	  ? "WRONG"
			       : checking ? "right"
					  : "unchecked");
			fflush(stdout);
		}
	}
	return bad > 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernels for test_ptx_nvcc.c, which runs what nvcc makes of them, optimised and for debugging,
 * and compares with the same computation in C.
 */
#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace cg = cooperative_groups;

#define TILE 16

typedef float (*unary_fn)(float);

struct pair {
	int a;
	char b;
	double c;
};

__constant__ float weights[4] = { 1.0f, 2.0f, 3.0f, 4.0f };
__constant__ pair const_pair = { 5, 6, 7.5 };
__device__ int counter = 7;
__device__ int *counter_at = &counter;
extern __shared__ float dyn[];

static __device__ float twice(float x)
{
	return 2 * x;
}

static __device__ float plus_one(float x)
{
	return x + 1;
}

__device__ unary_fn table[2] = { twice, plus_one };

extern "C" __global__ void vec_add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

extern "C" __global__ void mat_mul(const float *a, const float *b, float *c, int n)
{
	__shared__ float sa[TILE][TILE], sb[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
	float sum = 0;

	for (int t = 0; t < n / TILE; t++) {
		sa[threadIdx.y][threadIdx.x] = a[row * n + t * TILE + threadIdx.x];
		sb[threadIdx.y][threadIdx.x] = b[(t * TILE + threadIdx.y) * n + col];
		__syncthreads();
		for (int k = 0; k < TILE; k++)
			sum += sa[threadIdx.y][k] * sb[k][threadIdx.x];
		__syncthreads();
	}
	c[row * n + col] = sum;
}

extern "C" __global__ void pointers(float *out, int which, pair p)
{
	__shared__ float s[64];
	int t = threadIdx.x;

	s[t] = weights[t & 3] * which;
	dyn[t] = t;
	__syncthreads();
	out[t] = table[which & 1](s[63 - t]) + dyn[63 - t] + *counter_at + p.a + (float)p.c +
		 const_pair.b + (float)const_pair.c;
}

static __device__ __noinline__ int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

extern "C" __global__ void recurse(int *out)
{
	out[threadIdx.x] = fib(threadIdx.x % 13);
}

extern "C" __global__ void forever_deep(int *out)
{
	struct {
		__device__ int go(int n)
		{
			volatile int pad[64];
			pad[n & 63] = n;
			return n == -1 ? 0 : go(n + 1) + pad[n & 63];
		}
	} d;
	out[0] = d.go(threadIdx.x);
}

extern "C" __global__ void spin_lock(int *lock, int *sum)
{
	bool done = false;

	while (!done) {
		if (atomicCAS(lock, 0, 1) == 0) {
			*(volatile int *)sum = *(volatile int *)sum + 1;
			__threadfence();
			atomicExch(lock, 0);
			done = true;
		}
	}
}

extern "C" __global__ void spin_tight(int *lock, int *sum)
{
	while (atomicCAS(lock, 0, 1) != 0)
		;
	*(volatile int *)sum = *(volatile int *)sum + 1;
	__threadfence();
	atomicExch(lock, 0);
}

extern "C" __global__ void warp_ops(int *o, const int *in)
{
	int t = threadIdx.x, v = in[t], all;

	o[t + 0] = __shfl_xor_sync(~0u, v, 5);
	o[t + 32] = __shfl_down_sync(~0u, v, 3, 8);
	o[t + 64] = __shfl_up_sync(~0u, v, 2, 16);
	o[t + 96] = __shfl_sync(~0u, v, t / 2 + 1, 32);
	o[t + 128] = __ballot_sync(~0u, v & 1);
	o[t + 160] = __match_any_sync(~0u, v & 3);
	o[t + 192] = __match_all_sync(~0u, v & 0, &all) + all;
	o[t + 224] = __all_sync(~0u, v >= 0) * 2 + __any_sync(~0u, v == 17);
	if (t & 1)
		o[t + 256] = __shfl_sync(0xaaaaaaaa, v, (t + 2) & 31);
	else
		o[t + 256] = __shfl_sync(0x55555555, v, (t + 4) & 31);
	/* one shfl, reached in two ways */
	if (t < 11)
		o[t + 288] = __shfl_sync(~0u, v, 31 - t) + 1;
	else
		o[t + 288] = __shfl_sync(~0u, v, 31 - t) + 2;
	if (t >= 8) {
		o[t + 320] = __activemask();
		return;
	}
	/* members that have ended are not waited for */
	o[t + 320] = __ballot_sync(0xff, 1);
}

extern "C" __global__ void block_votes(int *o)
{
	int t = threadIdx.x;

	if (t < 40)
		o[t] = __syncthreads_count(t % 3 == 0);
	else
		o[t] = __syncthreads_count(t % 3 == 0) + 100;
	o[t] += __syncthreads_and(t < 1000) * 1000 + __syncthreads_or(t == 99) * 10000;
	if (t >= 64)
		return;
	__syncthreads();
	o[t] += 1;
}

extern "C" __global__ void atomics(int *i, unsigned *u, unsigned long long *l, float *f, double *d)
{
	__shared__ int si;
	__shared__ float sf;
	int t = blockIdx.x * blockDim.x + threadIdx.x;

	if (!threadIdx.x) {
		si = 0;
		sf = 0;
	}
	__syncthreads();
	atomicAdd(&si, t);
	atomicAdd(&sf, 0.5f);
	atomicAdd(i + 0, t);
	atomicMin(i + 1, -t);
	atomicMax(i + 2, t);
	atomicXor(i + 3, t * 7919);
	atomicOr(i + 4, 1 << (t & 31));
	atomicAnd(i + 5, ~(1 << (t % 7)));
	atomicSub(i + 6, 2);
	atomicInc(u + 0, 6);
	atomicDec(u + 1, 6);
	atomicMax(u + 2, (unsigned)-t);
	atomicAdd(l + 0, 1ull << 33);
	atomicMax(l + 1, (unsigned long long)t << 32);
	atomicAdd(f, 0.25f);
	atomicAdd(d, 0.125);
	__syncthreads();
	if (!threadIdx.x) {
		atomicAdd(i + 7, si);
		atomicAdd(f + 1, sf);
	}
}

extern "C" __global__ void halves(__half2 *h, __nv_bfloat16 *b, float *f)
{
	int t = threadIdx.x;
	__half2 x = h[t], y = h[t + 32];

	h[t + 64] = __hfma2(x, y, x);
	h[t + 96] = __hadd2(x, y);
	h[t + 128] = __hmax2(x, y);
	f[t] = __half2float(__low2half(x)) + (__hgt(__low2half(x), __high2half(x)) ? 1000 : 0);
	b[t + 32] = __float2bfloat16(__bfloat162float(b[t]) * 3.0f);
	b[t + 64] = b[t] + b[t + 32];
}

extern "C" __global__ void special(float *f, double *d, int n)
{
	int t = threadIdx.x;
	float x = f[t];
	double y = d[t];

	if (t >= n)
		return;
	f[t + 32] = sinf(x);
	f[t + 64] = expf(x);
	f[t + 96] = powf(fabsf(x), 1.7f);
	f[t + 128] = sqrtf(fabsf(x)) / (1 + x * x);
	f[t + 160] = __sinf(x) + __expf(x) + rsqrtf(fabsf(x) + 1);
	f[t + 192] = sinf(x * 100000.0f);
	d[t + 32] = sin(y);
	d[t + 64] = exp(y);
	d[t + 96] = pow(fabs(y), 1.7);
	d[t + 128] = sqrt(fabs(y)) / (1 + y * y);
	d[t + 160] = log(fabs(y) + 0.5);
	d[t + 192] = sin(y * 1e9);
}

extern "C" __global__ void integers(const int *in, long long *o)
{
	int t = threadIdx.x, a = in[t], b = in[t + 32];
	long long q = (long long)a * 1000003 + b, r = b ? b : 1;

	o[t] = q / r;
	o[t + 32] = q % r;
	o[t + 64] = (unsigned)a / (unsigned)r;
	o[t + 96] = __brev(a) + __clz(b) + __popc(a) + __ffs(b);
	o[t + 128] = __byte_perm(a, b, 0x5142);
	o[t + 160] = __funnelshift_l(a, b, t);
	o[t + 192] = __mulhi(a, b) + (long long)__umulhi(a, b);
	o[t + 224] = __dp4a(a, b, t);
	o[t + 256] = __mul64hi(q, q * 3);
	o[t + 288] = (short)a * (short)b + (signed char)a;
	o[t + 320] = __clzll(q) + __popcll(q) + __ffsll(q) + (long long)__brevll(q);
	o[t + 352] = __usad(a, b, 5) + abs(a % 1000) + min(a, b) / 3;
}

extern "C" __global__ void jump(int *o, int n)
{
	int t = threadIdx.x, v = t;

	switch ((t + n) % 9) {
	case 0: v = v * 3 + 1; break;
	case 1: v = v ^ 0x55; break;
	case 2: v = o[t] + 9; break;
	case 3: v = v << 3; break;
	case 4: v = -v; break;
	case 5: o[t] = 1; /* fall through */
	case 6: v += 77; break;
	case 7: v = v / 3; break;
	default: v = 1000 - v;
	}
	for (int i = 0; i < t % 5; i++) {
		if (v % 2)
			continue;
		v += i;
		if (v > 500)
			break;
	}
	o[t + 64] = v;
}

extern "C" __global__ void talk(int n)
{
	if (threadIdx.x == 3)
		printf("n=%d f=%.3f s=%s c=%c x=%#x l=%lld u=%u %%|%5d|%-5d|%05.1f\n", n, 1.5 * n,
		       "str", 'q', n, 1234567890123ll, 4000000000u, n, n, 2.25);
}

extern "C" __global__ void claim(int n)
{
	assert(threadIdx.x < n);
}

extern "C" __global__ void grid_sum(int *part, int *out)
{
	cg::grid_group g = cg::this_grid();
	auto tile = cg::tiled_partition<8>(cg::this_thread_block());
	int v = threadIdx.x + blockIdx.x;

	for (int i = 4; i; i /= 2)
		v += tile.shfl_down(v, i);
	if (tile.thread_rank() == 0)
		atomicAdd(&part[blockIdx.x], v);
	g.sync();
	if (g.thread_rank() == 0)
		for (int i = 0; i < (int)gridDim.x; i++)
			*out += part[i];
	g.sync();
	if (threadIdx.x == 0)
		part[blockIdx.x] += *out;
}

extern "C" __global__ void aggregate(int *n, int *order)
{
	if (threadIdx.x % 3 == 0) {
		auto g = cg::coalesced_threads();
		int base = 0;

		if (g.thread_rank() == 0)
			base = atomicAdd(n, g.size());
		order[g.shfl(base, 0) + g.thread_rank()] = threadIdx.x;
	}
}

extern "C" __global__ void vectors(const float4 *in, float4 *out, const short4 *s, char2 *c)
{
	int t = threadIdx.x;
	float4 v = in[t], local[3];
	short4 w = s[t];

	for (int i = 0; i < 3; i++)
		local[(i + t) % 3] = make_float4(v.x + i, v.y * i, v.z - i, v.w);
	out[t] = local[t % 3];
	c[t] = make_char2((char)(w.x + w.y), (char)(w.z - w.w));
}

extern "C" __global__ void heap(int **p)
{
	int *a = (int *)malloc(64);

	for (int i = 0; i < 16; i++)
		a[i] = i * threadIdx.x;
	p[threadIdx.x] = a;
	if (threadIdx.x & 1)
		free(a);
}

extern "C" __global__ void out_of_bounds(int *p, int i)
{
	p[i] = 1;
}

extern "C" __global__ void endless(volatile int *p)
{
	while (*p == 0)
		;
}

extern "C" __global__ void special_regs(unsigned *o)
{
	unsigned w, lt, ns, sm;

	asm volatile("mov.u32 %0, %%warpid;" : "=r"(w));
	asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
	asm volatile("mov.u32 %0, %%nsmid;" : "=r"(ns));
	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	long long c0 = clock64();
	unsigned i = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
	unsigned n = blockDim.x * blockDim.y * blockDim.z;
	long long c1 = clock64();

	o[(i * n + t) * 4] = i * 1000 + t;
	o[(i * n + t) * 4 + 1] = w * 100 + (c1 >= c0);
	o[(i * n + t) * 4 + 2] = lt;
	o[(i * n + t) * 4 + 3] = ns * 10 + (sm < ns);
}

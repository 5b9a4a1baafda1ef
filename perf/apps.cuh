/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The applications' kernels, and what each application needs: how much memory for an input of a
 * given size, what to put in, what to launch, and which result must come out (the CPU computes some
 * elements a second time and compares). Ordinary textbook versions: the mix of copies and kernels
 * matters, not the last FLOP.
 */
#ifndef PERF_APPS_CUH
#define PERF_APPS_CUH

#include <math.h>

#include "perf/bench.h"

struct plan {
	uint64_t n;    /* elements, or a power of two */
	unsigned side; /* of a matrix or an image */
	uint64_t in_bytes, out_bytes, tmp_bytes;
	void *in, *out;	       /* of the program */
	char *din, *dout, *dtmp; /* on the GPU */
};

struct app {
	const char *name, *kind; /* of numbers that go in: "float" or "word" */
	void (*plan)(struct plan *p, uint64_t bytes);
	void (*launch)(struct plan *p);
	void (*check)(const struct plan *p);
};

static inline __host__ __device__ uint32_t app_word(uint64_t i)
{
	uint32_t x = (uint32_t)i * 0x9e3779b1u + 0x27d4eb2fu;

	x ^= x >> 15;
	x *= 0x2c1b3c6du;
	return x ^ x >> 13;
}

/* In [0, 1). */
static inline __host__ __device__ float app_float(uint64_t i)
{
	return (float)(app_word(i) >> 8) * (1.0f / (1 << 24));
}

static inline void near(const char *what, uint64_t i, double got, double want, double tolerance)
{
	REQUIRE(fabs(got - want) <= tolerance, "%s: element %llu is %g, not %g", what,
		(unsigned long long)i, got, want);
}

static inline unsigned int blocks_of(uint64_t n, unsigned int threads)
{
	return (unsigned int)((n + threads - 1) / threads);
}

static void square(struct plan *p, uint64_t bytes, unsigned int matrices)
{
	p->side = 32;
	while ((uint64_t)(p->side + 32) * (p->side + 32) * 4 * matrices <= bytes)
		p->side += 32;
	p->n = (uint64_t)p->side * p->side;
	p->in_bytes = p->n * 4 * matrices;
	p->out_bytes = p->n * 4;
}

/* The elements that a check compares: 64 of them, always with the first and the last. */
static uint64_t probe(uint64_t n, unsigned int k)
{
	return k == 63 ? n - 1 : n / 63 * k + (k ? k % 7 : 0) % n;
}

/* ---- Black-Scholes: prices, strikes and years in, call and put out ---- */

static __host__ __device__ float normal(float d)
{
	float k = 1 / (1 + 0.2316419f * fabsf(d));
	float c = 0.39894228f * expf(-0.5f * d * d) * k *
		  (0.31938153f +
		   k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));

	return d > 0 ? 1 - c : c;
}

static __host__ __device__ void price(float s, float x, float t, float *call, float *put)
{
	const float rate = 0.02f, vol = 0.3f;
	float root = vol * sqrtf(t), d1 = (logf(s / x) + (rate + 0.5f * vol * vol) * t) / root;
	float d2 = d1 - root, later = x * expf(-rate * t);

	*call = s * normal(d1) - later * normal(d2);
	*put = later * (1 - normal(d2)) - s * (1 - normal(d1));
}

static __host__ __device__ void option(float a, float b, float c, float *s, float *x, float *t)
{
	*s = 5 + 25 * a;
	*x = 1 + 99 * b;
	*t = 0.25f + 9.75f * c;
}

__global__ void black_scholes(const float *in, float *out, uint64_t n)
{
	uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
	float s, x, t;

	if (i >= n)
		return;
	option(in[i], in[n + i], in[2 * n + i], &s, &x, &t);
	price(s, x, t, &out[i], &out[n + i]);
}

static void bs_plan(struct plan *p, uint64_t bytes)
{
	p->n = bytes / 12;
	p->in_bytes = p->n * 12;
	p->out_bytes = p->n * 8;
}

static void bs_launch(struct plan *p)
{
	black_scholes<<<blocks_of(p->n, 256), 256>>>((float *)p->din, (float *)p->dout, p->n);
}

static void bs_check(const struct plan *p)
{
	const float *in = (const float *)p->in, *out = (const float *)p->out;

	for (unsigned int k = 0; k < 64; k++) {
		uint64_t i = probe(p->n, k);
		float s, x, t, call, put;

		option(in[i], in[p->n + i], in[2 * p->n + i], &s, &x, &t);
		price(s, x, t, &call, &put);
		near("BlackScholes", i, out[i], call, 1e-3);
		near("BlackScholes", i, out[p->n + i], put, 1e-3);
	}
}

/* ---- fast Walsh transform, whole in place ---- */

__global__ void walsh_step(int *data, uint64_t stride, uint64_t pairs)
{
	uint64_t t = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;

	if (t >= pairs)
		return;
	uint64_t at = t / stride * stride * 2 + t % stride;
	int a = data[at], b = data[at + stride];

	data[at] = a + b;
	data[at + stride] = a - b;
}

#define WALSH_BLOCK 512

__global__ void walsh_small(const int *in, int *out)
{
	__shared__ int part[WALSH_BLOCK];
	unsigned int t = threadIdx.x;
	uint64_t base = blockIdx.x * (uint64_t)WALSH_BLOCK;

	/* Only a few bits of each, so that no sum is too large. */
	part[t] = in[base + t] & 15;
	part[t + WALSH_BLOCK / 2] = in[base + t + WALSH_BLOCK / 2] & 15;
	for (unsigned int stride = 1; stride < WALSH_BLOCK; stride *= 2) {
		unsigned int at = t / stride * stride * 2 + t % stride;
		int a, b;

		__syncthreads();
		a = part[at];
		b = part[at + stride];
		part[at] = a + b;
		part[at + stride] = a - b;
	}
	__syncthreads();
	out[base + t] = part[t];
	out[base + t + WALSH_BLOCK / 2] = part[t + WALSH_BLOCK / 2];
}

static void walsh_plan(struct plan *p, uint64_t bytes)
{
	p->n = WALSH_BLOCK;
	while (p->n * 2 * 4 <= bytes)
		p->n *= 2;
	p->in_bytes = p->out_bytes = p->n * 4;
}

static void walsh_launch(struct plan *p)
{
	walsh_small<<<(unsigned int)(p->n / WALSH_BLOCK), WALSH_BLOCK / 2>>>((int *)p->din,
									     (int *)p->dout);
	for (uint64_t stride = WALSH_BLOCK; stride < p->n; stride *= 2)
		walsh_step<<<blocks_of(p->n / 2, 256), 256>>>((int *)p->dout, stride, p->n / 2);
}

/* Checks two of the results; each is a sum over the whole input. */
static void walsh_check(const struct plan *p)
{
	const int *in = (const int *)p->in, *out = (const int *)p->out;
	uint64_t other = p->n / 2 + 1;
	long long all = 0, some = 0;

	for (uint64_t i = 0; i < p->n; i++) {
		int v = in[i] & 15;

		all += v;
		some += (i & 1) ^ (i / (p->n / 2)) ? -v : v;
	}
	near("walsh", 0, out[0], (double)all, 0);
	near("walsh", other, out[other], (double)some, 0);
}

/* ---- Mersenne Twister: seeds in, numbers out ---- */

#define MT_WORDS  624
#define MT_MIDDLE 397
#define MT_ROUNDS 16

static __host__ __device__ uint32_t mt_twist(uint32_t high, uint32_t low, uint32_t other)
{
	uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);

	return other ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
}

static __host__ __device__ uint32_t mt_temper(uint32_t y)
{
	y ^= y >> 11;
	y ^= y << 7 & 0x9d2c5680u;
	y ^= y << 15 & 0xefc60000u;
	return y ^ y >> 18;
}

/* A block is a generator. A word may depend on a new word: hence three phases. */
__global__ void mersenne_twister(const uint32_t *seed, uint32_t *out)
{
	__shared__ uint32_t state[2][MT_WORDS];
	int t = threadIdx.x, from = 0;

	if (t == 0) {
		uint32_t x = seed[blockIdx.x];

		state[0][0] = x;
		for (int i = 1; i < MT_WORDS; i++)
			state[0][i] = x = 1812433253u * (x ^ x >> 30) + i;
	}
	__syncthreads();
	for (int round = 0; round < MT_ROUNDS; round++, from = 1 - from) {
		uint32_t *old = state[from], *now = state[1 - from];
		const int step = MT_WORDS - MT_MIDDLE;

		for (int p = 0; p < 3; p++) {
			int end = p == 2 ? MT_WORDS - 1 : (p + 1) * step;

			for (int i = p * step + t; i < end; i += blockDim.x)
				now[i] = mt_twist(old[i], old[i + 1],
						  p ? now[i - step] : old[i + MT_MIDDLE]);
			__syncthreads();
		}
		if (t == 0)
			now[MT_WORDS - 1] = mt_twist(old[MT_WORDS - 1], now[0], now[MT_MIDDLE - 1]);
		__syncthreads();
		for (int i = t; i < MT_WORDS; i += blockDim.x)
			out[((uint64_t)blockIdx.x * MT_ROUNDS + round) * MT_WORDS + i] =
				mt_temper(now[i]);
	}
}

static void mt_plan(struct plan *p, uint64_t bytes)
{
	p->n = bytes / (4 * MT_ROUNDS * MT_WORDS);
	p->n += !p->n;
	p->in_bytes = p->n * 4;
	p->out_bytes = p->n * 4 * MT_ROUNDS * MT_WORDS;
}

static void mt_launch(struct plan *p)
{
	mersenne_twister<<<(unsigned int)p->n, 208>>>((uint32_t *)p->din, (uint32_t *)p->dout);
}

static void mt_check(const struct plan *p)
{
	const uint32_t *seed = (const uint32_t *)p->in, *out = (const uint32_t *)p->out;
	uint32_t state[MT_WORDS];

	for (unsigned int k = 0; k < 3; k++) {
		uint64_t b = k == 2 ? p->n - 1 : p->n / 2 * k;
		const uint32_t *o = out + b * MT_ROUNDS * MT_WORDS;

		state[0] = seed[b];
		for (int i = 1; i < MT_WORDS; i++)
			state[i] = 1812433253u * (state[i - 1] ^ state[i - 1] >> 30) + i;
		for (int r = 0; r < MT_ROUNDS; r++)
			for (int i = 0; i < MT_WORDS; i++) {
				state[i] = mt_twist(state[i], state[(i + 1) % MT_WORDS],
						    state[(i + MT_MIDDLE) % MT_WORDS]);
				REQUIRE(*o == mt_temper(state[i]),
					"MersenneTwister: generator %llu, number %d is wrong",
					(unsigned long long)b, r * MT_WORDS + i);
				o++;
			}
	}
}

/* ---- matrices: multiplication in tiles, and addition ---- */

#define TILE 16

__global__ void matrix_multiply(const float *a, const float *b, float *c, unsigned int n)
{
	__shared__ float ta[TILE][TILE], tb[TILE][TILE];
	unsigned int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
	float sum = 0;

	for (unsigned int k = 0; k < n; k += TILE) {
		ta[threadIdx.y][threadIdx.x] = a[(uint64_t)y * n + k + threadIdx.x];
		tb[threadIdx.y][threadIdx.x] = b[(uint64_t)(k + threadIdx.y) * n + x];
		__syncthreads();
		for (int i = 0; i < TILE; i++)
			sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
		__syncthreads();
	}
	c[(uint64_t)y * n + x] = sum;
}

__global__ void matrix_add(const float *a, const float *b, float *c, uint64_t n)
{
	uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

static void two_matrices(struct plan *p, uint64_t bytes)
{
	square(p, bytes, 2);
}

static void multiply_launch(struct plan *p)
{
	dim3 grid(p->side / TILE, p->side / TILE), block(TILE, TILE);
	float *in = (float *)p->din;

	matrix_multiply<<<grid, block>>>(in, in + p->n, (float *)p->dout, p->side);
}

static void multiply_check(const struct plan *p)
{
	const float *a = (const float *)p->in, *b = a + p->n, *c = (const float *)p->out;

	for (unsigned int k = 0; k < 64; k++) {
		uint64_t i = probe(p->n, k), y = i / p->side, x = i % p->side;
		double sum = 0;

		for (unsigned int j = 0; j < p->side; j++)
			sum += (double)a[y * p->side + j] * b[(uint64_t)j * p->side + x];
		near("matrixMul", i, c[i], sum, 1e-5 * p->side);
	}
}

static void add_launch(struct plan *p)
{
	float *in = (float *)p->din;

	matrix_add<<<blocks_of(p->n, 256), 256>>>(in, in + p->n, (float *)p->dout, p->n);
}

static void add_check(const struct plan *p)
{
	const float *a = (const float *)p->in, *b = a + p->n, *c = (const float *)p->out;

	for (unsigned int k = 0; k < 64; k++) {
		uint64_t i = probe(p->n, k);

		near("matrixAdd", i, c[i], a[i] + b[i], 1e-6);
	}
}

/* ---- scan: sums of all earlier elements, level by level ---- */

#define SCAN 1024 /* elements of a block, two for each thread */

__global__ void scan_blocks(const uint32_t *in, uint32_t *out, uint32_t *total, uint64_t n)
{
	__shared__ uint32_t sum[2][SCAN / 2];
	unsigned int t = threadIdx.x, from = 0;
	uint64_t i = blockIdx.x * (uint64_t)SCAN + 2 * t;
	uint32_t a = i < n ? in[i] : 0, b = i + 1 < n ? in[i + 1] : 0;

	sum[0][t] = a + b;
	__syncthreads();
	for (unsigned int step = 1; step < SCAN / 2; step *= 2, from = 1 - from) {
		sum[1 - from][t] = sum[from][t] + (t >= step ? sum[from][t - step] : 0);
		__syncthreads();
	}
	if (i < n)
		out[i] = sum[from][t] - b;
	if (i + 1 < n)
		out[i + 1] = sum[from][t];
	if (t == SCAN / 2 - 1)
		total[blockIdx.x] = sum[from][t];
}

__global__ void scan_add(uint32_t *out, const uint32_t *before, uint64_t n)
{
	uint64_t i = (blockIdx.x + (uint64_t)1) * SCAN + threadIdx.x;
	uint32_t add = before[blockIdx.x];

	for (unsigned int k = 0; k < SCAN; k += blockDim.x)
		if (i + k < n)
			out[i + k] += add;
}

static void scan_plan(struct plan *p, uint64_t bytes)
{
	p->n = bytes / 4;
	p->in_bytes = p->out_bytes = p->n * 4;
	p->tmp_bytes = (p->n / SCAN + 1) * 12 + 4096;
}

/* Works in place if in and out are the same. */
static void scan_level(uint32_t *in, uint32_t *out, uint32_t *tmp, uint64_t n)
{
	unsigned int blocks = blocks_of(n, SCAN);

	scan_blocks<<<blocks, SCAN / 2>>>(in, out, tmp, n);
	if (blocks == 1)
		return;
	scan_level(tmp, tmp, tmp + blocks, blocks);
	scan_add<<<blocks - 1, 256>>>(out, tmp, n);
}

static void scan_launch(struct plan *p)
{
	scan_level((uint32_t *)p->din, (uint32_t *)p->dout, (uint32_t *)p->dtmp, p->n);
}

static void scan_check(const struct plan *p)
{
	const uint32_t *in = (const uint32_t *)p->in, *out = (const uint32_t *)p->out;
	uint32_t sum = 0;

	for (uint64_t i = 0; i < p->n; i++) {
		sum += in[i];
		if (i % 997 && i + 1 < p->n)
			continue;
		REQUIRE(out[i] == sum, "scan: element %llu is wrong", (unsigned long long)i);
	}
}

/* ---- separable convolution: rows, then columns ---- */

#define RADIUS 8
#define ROW    128

static __host__ __device__ float weight(int k)
{
	return 1.0f / (float)(1 + (k < 0 ? -k : k));
}

__global__ void convolve(const float *in, float *out, int side, int dx, int dy)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
	float sum = 0;

	if (x >= side)
		return;
	for (int k = -RADIUS; k <= RADIUS; k++) {
		int fx = x + k * dx, fy = y + k * dy;

		if (fx >= 0 && fx < side && fy >= 0 && fy < side)
			sum += in[(uint64_t)fy * side + fx] * weight(k);
	}
	out[(uint64_t)y * side + x] = sum;
}

static void image_plan(struct plan *p, uint64_t bytes)
{
	square(p, bytes, 1);
	p->tmp_bytes = p->in_bytes;
}

static void convolve_launch(struct plan *p)
{
	dim3 grid(blocks_of(p->side, ROW), p->side);
	int side = (int)p->side;

	convolve<<<grid, ROW>>>((float *)p->din, (float *)p->dtmp, side, 1, 0);
	convolve<<<grid, ROW>>>((float *)p->dtmp, (float *)p->dout, side, 0, 1);
}

static void convolve_check(const struct plan *p)
{
	const float *in = (const float *)p->in, *out = (const float *)p->out;
	int side = (int)p->side;

	for (unsigned int k = 0; k < 64; k++) {
		uint64_t i = probe(p->n, k);
		int y = (int)(i / p->side), x = (int)(i % p->side);
		double sum = 0;

		for (int a = -RADIUS; a <= RADIUS; a++)
			for (int b = -RADIUS; b <= RADIUS; b++)
				if (y + a >= 0 && y + a < side && x + b >= 0 && x + b < side)
					sum += (double)weight(a) * weight(b) *
					       in[(uint64_t)(y + a) * side + x + b];
		near("convolution", i, out[i], sum, 1e-3);
	}
}

/* ---- DCT of blocks of 8x8 ---- */

static __host__ __device__ float basis(int u, int x)
{
	return (u ? 0.5f : 0.35355339f) * cosf((float)((2 * x + 1) * u) * 0.19634954f);
}

__global__ void dct8x8(const float *in, float *out, unsigned int side)
{
	__shared__ float table[8][9], tile[4][8][9], half[4][8][9];
	int u = threadIdx.x, v = threadIdx.y, z = threadIdx.z;
	uint64_t at = (uint64_t)(blockIdx.y * 8 + v) * side + (blockIdx.x * 4 + z) * 8 + u;
	float sum = 0;

	if (z == 0)
		table[v][u] = basis(v, u);
	tile[z][v][u] = in[at];
	__syncthreads();
	for (int k = 0; k < 8; k++)
		sum += tile[z][v][k] * table[u][k];
	half[z][v][u] = sum;
	__syncthreads();
	sum = 0;
	for (int k = 0; k < 8; k++)
		sum += half[z][k][u] * table[v][k];
	out[at] = sum;
}

static void dct_plan(struct plan *p, uint64_t bytes)
{
	square(p, bytes, 1);
}

static void dct_launch(struct plan *p)
{
	dim3 grid(p->side / 32, p->side / 8), block(8, 8, 4);

	dct8x8<<<grid, block>>>((float *)p->din, (float *)p->dout, p->side);
}

static void dct_check(const struct plan *p)
{
	const float *in = (const float *)p->in, *out = (const float *)p->out;

	for (unsigned int k = 0; k < 64; k++) {
		uint64_t i = probe(p->n, k);
		int y = (int)(i / p->side), x = (int)(i % p->side), y0 = y & ~7, x0 = x & ~7;
		double sum = 0;

		for (int a = 0; a < 8; a++)
			for (int b = 0; b < 8; b++)
				sum += (double)basis(y - y0, a) * basis(x - x0, b) *
				       in[(uint64_t)(y0 + a) * p->side + x0 + b];
		near("dct8x8", i, out[i], sum, 1e-4);
	}
}

static const struct app apps[] = {
	{"BlackScholes", "float", bs_plan, bs_launch, bs_check},
	{"fastWalsh", "word", walsh_plan, walsh_launch, walsh_check},
	{"MersenneTwister", "word", mt_plan, mt_launch, mt_check},
	{"matrixMul", "float", two_matrices, multiply_launch, multiply_check},
	{"scan", "word", scan_plan, scan_launch, scan_check},
	{"convolution", "float", image_plan, convolve_launch, convolve_check},
	{"dct8x8", "float", dct_plan, dct_launch, dct_check},
	{"matrixAdd", "float", two_matrices, add_launch, add_check},
};

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers wider than a register: 128-bit addition and subtraction with carries in PTX (add.cc,
 * addc, sub.cc, subc), a product of two 64-bit halves with mad.lo.cc and madc.hi, __umul64hi and
 * __mul64hi, the compiler's own 128-bit integers, and a 512-bit product by long multiplication.
 */
#include "check.h"

#define THREADS 128
#define WORDS	8

typedef unsigned __int128 u128;

struct results {
	u128 sum, difference, product, quotient, remainder, left, right;
	__int128 halved;
	unsigned long long high;
	long long signed_high;
	uint32_t carry, borrow, big[2 * WORDS];
};

__host__ __device__ static unsigned long long draw(int i, int which)
{
	unsigned long long x =
		(unsigned long long)scramble(i, which) << 32 | scramble(i, which + 100);

	/* Many runs of ones and zeros, for long carries. */
	return i % 3 == 0 ? ~0ull << (x & 63) : i % 3 == 1 ? ~0ull >> (x & 63) : x;
}

__host__ __device__ static u128 draw_wide(int i, int which)
{
	return (u128)draw(i, which) << 64 | draw(i, which + 1);
}

__host__ __device__ static void schoolbook(int i, uint32_t *out)
{
	for (int k = 0; k < 2 * WORDS; k++)
		out[k] = 0;
	for (int a = 0; a < WORDS; a++) {
		unsigned long long carry = 0;

		for (int b = 0; b < WORDS; b++) {
			carry += (unsigned long long)scramble(i * WORDS + a, 1) *
					 scramble(i * WORDS + b, 2) +
				 out[a + b];
			out[a + b] = (uint32_t)carry;
			carry >>= 32;
		}
		out[a + WORDS] = (uint32_t)carry;
	}
}

__global__ void compute(results *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	u128 a = draw_wide(i, 1), b = draw_wide(i, 3);
	uint32_t x[4], y[4], s[4];
	results r;

	for (int k = 0; k < 4; k++) {
		x[k] = (uint32_t)(a >> (32 * k));
		y[k] = (uint32_t)(b >> (32 * k));
	}
	asm("add.cc.u32 %0, %5, %9;\n\taddc.cc.u32 %1, %6, %10;\n\t"
	    "addc.cc.u32 %2, %7, %11;\n\taddc.cc.u32 %3, %8, %12;\n\taddc.u32 %4, 0, 0;"
	    : "=&r"(s[0]), "=&r"(s[1]), "=&r"(s[2]), "=&r"(s[3]), "=&r"(r.carry)
	    : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]),
	      "r"(y[3]));
	r.sum = (u128)s[3] << 96 | (u128)s[2] << 64 | (u128)s[1] << 32 | s[0];
	asm("sub.cc.u32 %0, %5, %9;\n\tsubc.cc.u32 %1, %6, %10;\n\t"
	    "subc.cc.u32 %2, %7, %11;\n\tsubc.cc.u32 %3, %8, %12;\n\tsubc.u32 %4, 0, 0;"
	    : "=&r"(s[0]), "=&r"(s[1]), "=&r"(s[2]), "=&r"(s[3]), "=&r"(r.borrow)
	    : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]),
	      "r"(y[3]));
	r.difference = (u128)s[3] << 96 | (u128)s[2] << 64 | (u128)s[1] << 32 | s[0];
	/* (x1,x0) * (y1,y0), column by column. */
	asm("mul.lo.u32 %0, %4, %6;\n\tmul.hi.u32 %1, %4, %6;\n\t"
	    "mad.lo.cc.u32 %1, %4, %7, %1;\n\tmadc.hi.u32 %2, %4, %7, 0;\n\t"
	    "mad.lo.cc.u32 %1, %5, %6, %1;\n\tmadc.hi.cc.u32 %2, %5, %6, %2;\n\t"
	    "addc.u32 %3, 0, 0;\n\t"
	    "mad.lo.cc.u32 %2, %5, %7, %2;\n\tmadc.hi.u32 %3, %5, %7, %3;"
	    : "=&r"(s[0]), "=&r"(s[1]), "=&r"(s[2]), "=&r"(s[3])
	    : "r"(x[0]), "r"(x[1]), "r"(y[0]), "r"(y[1]));
	r.product = (u128)s[3] << 96 | (u128)s[2] << 64 | (u128)s[1] << 32 | s[0];
	r.high = __umul64hi(draw(i, 1), draw(i, 3));
	r.signed_high = __mul64hi((long long)draw(i, 1), (long long)draw(i, 3));
	r.quotient = a / (b >> (i % 120) | 1);
	r.remainder = a % (b >> (i % 120) | 1);
	r.left = a << (i % 128);
	r.right = a >> (i % 128);
	r.halved = (__int128)a >> (i % 128);
	schoolbook(i, r.big);
	out[i] = r;
}

static void same(u128 got, u128 want, int i, const char *what)
{
	REQUIRE(got == want, "thread %d: %s is %016llx%016llx, expected %016llx%016llx", i, what,
		(unsigned long long)(got >> 64), (unsigned long long)got,
		(unsigned long long)(want >> 64), (unsigned long long)want);
}

int main(void)
{
	static results got[THREADS];
	results *dev;

	CHECK(cudaMalloc(&dev, sizeof(got)));
	compute<<<2, THREADS / 2>>>(dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < THREADS; i++) {
		const results &r = got[i];
		u128 a = draw_wide(i, 1), b = draw_wide(i, 3), d = b >> (i % 120) | 1;
		uint32_t big[2 * WORDS];

		same(r.sum, a + b, i, "the sum");
		same(r.carry, a + b < a, i, "the carry");
		same(r.difference, a - b, i, "the difference");
		same(r.borrow, a < b ? 0xffffffffu : 0, i, "the borrow");
		same(r.product, (u128)(uint64_t)a * (uint64_t)b, i, "the product");
		same(r.high, (u128)draw(i, 1) * draw(i, 3) >> 64, i, "the high half");
		same((uint64_t)r.signed_high,
		     (uint64_t)((__int128)(int64_t)draw(i, 1) * (int64_t)draw(i, 3) >> 64), i,
		     "the signed high half");
		same(r.quotient, a / d, i, "the quotient");
		same(r.remainder, a % d, i, "the remainder");
		same(r.left, a << (i % 128), i, "the left shift");
		same(r.right, a >> (i % 128), i, "the right shift");
		same((u128)r.halved, (u128)((__int128)a >> (i % 128)), i, "the arithmetic shift");
		schoolbook(i, big);
		REQUIRE(!memcmp(r.big, big, sizeof(big)), "thread %d: the 512-bit product", i);
	}
	CHECK(cudaFree(dev));
	return verified("%d pairs of wide integers", THREADS);
}

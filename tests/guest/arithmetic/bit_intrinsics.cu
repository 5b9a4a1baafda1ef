// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bits: population count, leading zeros, first set bit, reversal, byte permutation, funnel
 * shifts, rotations, absolute differences, rounded averages, 24-bit products; in 32 and 64 bits,
 * for zeros, ones and everything in between.
 */
#include "check.h"

#define N 400

__host__ __device__ static unsigned long long draw(int i, int which)
{
	unsigned long long x =
		(unsigned long long)scramble(i, which) << 32 | scramble(i, which + 50);

	return i < 65 ? (i < 64 ? 1ull << i : 0) : i < 129 ? ~0ull >> (i - 65) : x >> (i & 31);
}

struct results {
	int popc, clz, ffs, popc_wide, clz_wide, ffs_wide, fns;
	unsigned int brev, perm, funnel_l, funnel_r, funnel_lc, funnel_rc, sad, usad, hadd, rhadd,
		uhadd, urhadd, mul24, umul24, mulhi;
	int smulhi;
	unsigned long long brev_wide;
};

__global__ void compute(results *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned long long x = draw(i, 1);
	unsigned int a = (unsigned int)x, b = (unsigned int)draw(i, 2),
		     c = (unsigned int)draw(i, 3);
	results r;

	if (i >= n)
		return;
	r.popc = __popc(a);
	r.clz = __clz(a);
	r.ffs = __ffs(a);
	r.brev = __brev(a);
	r.popc_wide = __popcll(x);
	r.clz_wide = __clzll(x);
	r.ffs_wide = __ffsll(x);
	r.brev_wide = __brevll(x);
	r.perm = __byte_perm(a, b, c);
	r.funnel_l = __funnelshift_l(a, b, c);
	r.funnel_r = __funnelshift_r(a, b, c);
	r.funnel_lc = __funnelshift_lc(a, b, c);
	r.funnel_rc = __funnelshift_rc(a, b, c);
	r.sad = __sad((int)a, (int)b, c);
	r.usad = __usad(a, b, c);
	r.hadd = __hadd((int)a, (int)b);
	r.rhadd = __rhadd((int)a, (int)b);
	r.uhadd = __uhadd(a, b);
	r.urhadd = __urhadd(a, b);
	r.mul24 = __mul24((int)a, (int)b);
	r.umul24 = __umul24(a, b);
	r.mulhi = __umulhi(a, b);
	r.smulhi = __mulhi((int)a, (int)b);
	r.fns = (int)__fns(a, 0, 2);
	out[i] = r;
}

static unsigned int bytes_of(unsigned int a, unsigned int b, unsigned int how)
{
	unsigned long long both = (unsigned long long)b << 32 | a;
	unsigned int r = 0;

	for (int k = 0; k < 4; k++)
		r |= (unsigned int)(both >> (how >> (4 * k) & 7) * 8 & 0xff) << (8 * k);
	return r;
}

static unsigned long long reversed(unsigned long long x, int bits)
{
	unsigned long long r = 0;

	for (int k = 0; k < bits; k++)
		r |= (x >> k & 1) << (bits - 1 - k);
	return r;
}

#define SAME(field, want)                                                           \
	REQUIRE(r.field == (want), #field " of %016llx, %08x, %08x: %llx", x, b, c, \
		(unsigned long long)r.field)

int main(void)
{
	static results out[N];
	results *dev;

	CHECK(cudaMalloc(&dev, sizeof(out)));
	compute<<<(N + 127) / 128, 128>>>(dev, N);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		unsigned long long x = draw(i, 1);
		unsigned int a = (unsigned int)x, b = (unsigned int)draw(i, 2),
			     c = (unsigned int)draw(i, 3), shift = c & 31,
			     clamped = c < 32 ? c : 32;
		unsigned long long both = (unsigned long long)b << 32 | a;
		unsigned int two = a & (a - 1);
		long long sa = (int)a, sb = (int)b;
		int s24a = (int)(a << 8) >> 8, s24b = (int)(b << 8) >> 8;
		const results &r = out[i];

		SAME(popc, __builtin_popcount(a));
		SAME(clz, a ? __builtin_clz(a) : 32);
		SAME(ffs, __builtin_ffs((int)a));
		SAME(brev, (unsigned int)reversed(a, 32));
		SAME(popc_wide, __builtin_popcountll(x));
		SAME(clz_wide, x ? __builtin_clzll(x) : 64);
		SAME(ffs_wide, __builtin_ffsll((long long)x));
		SAME(brev_wide, reversed(x, 64));
		SAME(perm, bytes_of(a, b, c));
		SAME(funnel_l, (unsigned int)((both << shift) >> 32));
		SAME(funnel_r, (unsigned int)(both >> shift));
		SAME(funnel_lc, clamped == 32 ? a : (unsigned int)((both << clamped) >> 32));
		SAME(funnel_rc, (unsigned int)(both >> clamped));
		SAME(sad, (unsigned int)((sa > sb ? sa - sb : sb - sa) + c));
		SAME(usad, (a > b ? a - b : b - a) + c);
		SAME(hadd, (unsigned int)((sa + sb) >> 1));
		SAME(rhadd, (unsigned int)((sa + sb + 1) >> 1));
		SAME(uhadd, (unsigned int)(((unsigned long long)a + b) >> 1));
		SAME(urhadd, (unsigned int)(((unsigned long long)a + b + 1) >> 1));
		SAME(mul24, (unsigned int)((long long)s24a * s24b));
		SAME(umul24, (a & 0xffffffu) * (b & 0xffffffu));
		SAME(mulhi, (unsigned int)((unsigned long long)a * b >> 32));
		SAME(smulhi, (int)(sa * sb >> 32));
		SAME(fns, two ? __builtin_ctz(two) : -1);
	}
	CHECK(cudaFree(dev));
	return verified("24 operations on %d operands", N);
}

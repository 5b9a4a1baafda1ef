// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Several small integers in one word: dot products of four bytes and of two shorts (__dp4a,
 * __dp2a), and sums, differences, minima, comparisons and saturation of bytes and shorts, lane
 * by lane.
 */
#include "check.h"

#define N 500

struct results {
	int dp4a, dp2a_lo, dp2a_hi;
	unsigned int udp4a, vadd4, vsub4, vaddss4, vaddus4, vmaxs4, vminu4, vabsdiffu4, vcmpgts4,
		vsadu4, vavgu4, vadd2, vsubss2, vmaxu2, vmins2, vcmpeq2, vneg2, vabs4;
};

__global__ void compute(const unsigned int *x, results *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned int a = x[i], b = x[(i + 7) % N], c = x[(i + 31) % N];
	results r;

	r.dp4a = __dp4a((int)a, (int)b, (int)c);
	r.udp4a = __dp4a(a, b, c);
	r.dp2a_lo = __dp2a_lo((int)a, (int)b, (int)c);
	r.dp2a_hi = __dp2a_hi((int)a, (int)b, (int)c);
	r.vadd4 = __vadd4(a, b);
	r.vsub4 = __vsub4(a, b);
	r.vaddss4 = __vaddss4(a, b);
	r.vaddus4 = __vaddus4(a, b);
	r.vmaxs4 = __vmaxs4(a, b);
	r.vminu4 = __vminu4(a, b);
	r.vabsdiffu4 = __vabsdiffu4(a, b);
	r.vcmpgts4 = __vcmpgts4(a, b);
	r.vsadu4 = __vsadu4(a, b);
	r.vavgu4 = __vavgu4(a, b);
	r.vadd2 = __vadd2(a, b);
	r.vsubss2 = __vsubss2(a, b);
	r.vmaxu2 = __vmaxu2(a, b);
	r.vmins2 = __vmins2(a, b);
	r.vcmpeq2 = __vcmpeq2(a, b);
	r.vneg2 = __vneg2(a);
	r.vabs4 = __vabs4(a);
	out[i] = r;
}

static int clamp(int x, int low, int high)
{
	return x < low ? low : x > high ? high : x;
}

template <typename F> static unsigned int each(int bits, unsigned int a, unsigned int b, F f)
{
	unsigned int word = 0, mask = (1u << bits) - 1;

	for (int at = 0; at < 32; at += bits) {
		unsigned int u = a >> at & mask, v = b >> at & mask;

		word |= (f((int)u, (int)v, (int)(u << (32 - bits)) >> (32 - bits),
			   (int)(v << (32 - bits)) >> (32 - bits)) &
			 mask)
			<< at;
	}
	return word;
}

/* `expr` for each part: x and y are signed, u and v unsigned. */
#define LANES(bits, a, b, expr)                           \
	each(bits, a, b, [](int u, int v, int x, int y) { \
		(void)u, (void)v, (void)x, (void)y;       \
		return (unsigned int)(expr);              \
	})

#define SAME(field, expression)                                                                    \
	want = (unsigned int)(expression);                                                         \
	REQUIRE((unsigned int)r.field == want, #field " of %08x, %08x, %08x: %08x, expected %08x", \
		a, b, c, (unsigned int)r.field, want)

int main(void)
{
	static unsigned int in[N];
	static results out[N];
	unsigned int *dev;
	results *dev_out;

	for (int i = 0; i < N; i++)
		in[i] = scramble(i, 1);
	for (int i = 0; i < N; i += 5) /* edges: bytes of 0, 7f, 80, ff */
		in[i] = (in[i] >> 1 & 0x01010101u) * 0x7f ^ (in[i] & 0x01010101u) * 0xff;
	in[50] = in[57] & 0xffff;
	CHECK(cudaMalloc(&dev, sizeof(in)));
	CHECK(cudaMalloc(&dev_out, sizeof(out)));
	CHECK(cudaMemcpy(dev, in, sizeof(in), cudaMemcpyHostToDevice));
	compute<<<N / 50, 50>>>(dev, dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev_out, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		unsigned int a = in[i], b = in[(i + 7) % N], c = in[(i + 31) % N], want;
		unsigned int dot = c, udot = c, low = c, high = c, sad = 0;
		const results &r = out[i];

		for (int k = 0; k < 4; k++) {
			int x = (signed char)(a >> 8 * k), y = (signed char)(b >> 8 * k);
			int u = a >> 8 * k & 0xff, v = b >> 8 * k & 0xff;

			dot += x * y;
			udot += u * v;
			sad += u > v ? u - v : v - u;
		}
		for (int k = 0; k < 2; k++) {
			low += (short)(a >> 16 * k) * (signed char)(b >> 8 * k);
			high += (short)(a >> 16 * k) * (signed char)(b >> (16 + 8 * k));
		}
		SAME(dp4a, dot);
		SAME(udp4a, udot);
		SAME(dp2a_lo, low);
		SAME(dp2a_hi, high);
		SAME(vsadu4, sad);
		SAME(vadd4, LANES(8, a, b, u + v));
		SAME(vsub4, LANES(8, a, b, u - v));
		SAME(vaddss4, LANES(8, a, b, clamp(x + y, -128, 127)));
		SAME(vaddus4, LANES(8, a, b, clamp(u + v, 0, 255)));
		SAME(vmaxs4, LANES(8, a, b, x > y ? x : y));
		SAME(vminu4, LANES(8, a, b, u < v ? u : v));
		SAME(vabsdiffu4, LANES(8, a, b, u > v ? u - v : v - u));
		SAME(vcmpgts4, LANES(8, a, b, x > y ? -1 : 0));
		SAME(vavgu4, LANES(8, a, b, (u + v + 1) >> 1));
		SAME(vadd2, LANES(16, a, b, u + v));
		SAME(vsubss2, LANES(16, a, b, clamp(x - y, -32768, 32767)));
		SAME(vmaxu2, LANES(16, a, b, u > v ? u : v));
		SAME(vmins2, LANES(16, a, b, x < y ? x : y));
		SAME(vcmpeq2, LANES(16, a, b, u == v ? -1 : 0));
		SAME(vneg2, LANES(16, a, b, -u));
		SAME(vabs4, LANES(8, a, b, x < 0 ? -x : x));
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_out));
	return verified("21 packed operations on %d words", N);
}

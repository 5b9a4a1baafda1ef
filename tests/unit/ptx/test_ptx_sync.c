// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Instructions of later GPUs: mbarrier, clusters of one block, copies with mbarriers, moves of
 * matrices, alloca, 128-bit registers, vector atomics; and old ones: shuffles and votes without
 * .sync.
 */
#include <math.h>

#include "tests/unit/ptx/test_ptx_env.h"

#define HEAD ".version 9.0\n.target sm_100a\n.address_size 64\n"
/* %r0: thread; %d0: the address of this thread's 16 bytes; %d1: the buffer */
#define START                                                                      \
	".reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<12>;\n" \
	".reg .f32 %f<8>; .reg .b128 %q<4>;\n"                                     \
	"ld.param.u64 %d1, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 16;\n" \
	"add.u64 %d0, %d0, %d1;\n"
#define KERNEL(code) HEAD ".entry k(.param .u64 p)\n{\n" START code "\nret;\n}\n"
#define WORDS	     4096

static uint32_t *out;

static void run_on(const char *text, unsigned int block)
{
	struct ptx_module *m = must_load(text);

	must_launch(m, "k", 1, block, 0, &out, sizeof(out));
	ptx_unload(m);
}

static void run(const char *text, unsigned int block)
{
	memset(out, 0, WORDS * 4);
	run_on(text, block);
}

static void run_fails(const char *text, unsigned int block, enum ptx_status want, const char *say)
{
	struct ptx_module *m = must_load(text);
	struct ptx_diag d;
	enum ptx_status st = launch(m, "k", 1, block, 0, &out, sizeof(out), &d);

	if (st != want || !strstr(d.text, say))
		fail_msg("%s: %s", ptx_status_name(st), d.text);
	ptx_unload(m);
}

static int setup(void **state)
{
	(void)state;
	out = dev_alloc(WORDS * 4);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dev_free(out);
	return 0;
}

/*
 * In every round all threads write, arrive and wait, then read a neighbour's value. Both kinds of
 * wait.
 */
static void test_mbarrier(void **state)
{
	(void)state;
	run(KERNEL(".shared .align 8 .b64 bar; .shared .u32 s[96];\n"
		   "mov.u32 %r1, bar; mov.u32 %r2, s; shl.b32 %r3, %r0, 2;\n"
		   "add.u32 %r2, %r2, %r3; setp.ne.u32 %p1, %r0, 0;\n"
		   "@!%p1 mbarrier.init.shared.b64 [%r1], 96; bar.sync 0;\n"
		   "mov.u32 %r4, 0; mov.u32 %r5, 0;\nLOOP:\n"
		   "add.u32 %r6, %r0, %r4; st.shared.u32 [%r2], %r6;\n"
		   "mbarrier.arrive.shared.b64 %d2, [%r1]; and.b32 %r7, %r4, 1;\n"
		   "setp.eq.u32 %p2, %r7, 0; @%p2 bra PARITY;\nSTATE:\n"
		   "mbarrier.test_wait.shared.b64 %p3, [%r1], %d2; @!%p3 bra STATE; bra DONE;\n"
		   "PARITY: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], %r7, 1000;\n"
		   "@!%p3 bra PARITY;\nDONE:\n"
		   "xor.b32 %r8, %r0, 1; shl.b32 %r8, %r8, 2; mov.u32 %r9, s;\n"
		   "add.u32 %r8, %r8, %r9; ld.shared.u32 %r9, [%r8]; add.u32 %r5, %r5, %r9;\n"
		   "bar.sync 0; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 5; @%p2 bra LOOP;\n"
		   "st.global.u32 [%d0], %r5; mbarrier.pending_count.b64 %r9, %d2;\n"
		   "st.global.u32 [%d0+4], %r9;"),
	    96);
	for (unsigned int t = 0; t < 96; t++)
		assert_int_equal(out[4 * t], 5 * (t ^ 1) + 10);
	/* the last round's states: each arrival found one fewer pending */
	for (unsigned int k = 1; k <= 96; k++) {
		unsigned int found = 0;

		for (unsigned int t = 0; t < 96; t++)
			found += out[4 * t + 1] == k;
		assert_int_equal(found, 1);
	}
}

/* Expected bytes hold a phase open. A drop lowers what later phases need. */
static void test_mbarrier_counts(void **state)
{
	(void)state;
	run(KERNEL(".shared .align 8 .b64 bar; mov.u32 %r1, bar; mov.u64 %d3, bar;\n"
		   "cvta.shared.u64 %d3, %d3; mov.u32 %r9, 0;\n"
		   "mbarrier.init.b64 [%d3], 3;\n"
		   "mbarrier.arrive.expect_tx.shared.b64 %d2, [%r1], 64;\n"
		   "mbarrier.arrive.shared.b64 _, [%r1], 2;\n"
		   /* all have arrived, 64 bytes have not */
		   "mbarrier.test_wait.shared.b64 %p1, [%r1], %d2; @!%p1 or.b32 %r9, %r9, 1;\n"
		   "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 40;\n"
		   "mbarrier.test_wait.shared.b64 %p1, [%r1], %d2; @!%p1 or.b32 %r9, %r9, 2;\n"
		   "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 24;\n"
		   "mbarrier.test_wait.shared.b64 %p1, [%r1], %d2; @%p1 or.b32 %r9, %r9, 4;\n"
		   "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0; @%p1 or.b32 %r9, %r9, 8;\n"
		   "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 1;\n"
		   "@!%p1 or.b32 %r9, %r9, 16;\n"
		   /* the next phase: one drops out, two arrive; after that two are enough */
		   "mbarrier.arrive_drop.b64 %d2, [%d3]; mbarrier.arrive.shared.b64 _, [%r1], 2;\n"
		   "mbarrier.test_wait.b64 %p1, [%d3], %d2; @%p1 or.b32 %r9, %r9, 32;\n"
		   "mbarrier.arrive.noComplete.shared.b64 %d2, [%r1], 1;\n"
		   "mbarrier.pending_count.b64 %r8, %d2; setp.eq.u32 %p1, %r8, 2;\n"
		   "@%p1 or.b32 %r9, %r9, 64; mbarrier.arrive.shared.b64 _, [%r1];\n"
		   "mbarrier.test_wait.shared.b64 %p1, [%r1], %d2; @%p1 or.b32 %r9, %r9, 128;\n"
		   "mbarrier.inval.shared.b64 [%r1]; st.global.u32 [%d0], %r9;"),
	    1);
	assert_int_equal(out[0], 255);
	run_fails(KERNEL(".shared .align 8 .b64 b; mbarrier.arrive.shared.b64 %d2, [b];"), 1,
		  PTX_TRAP, "not initialised");
	run_fails(KERNEL(".shared .align 8 .b64 b; mbarrier.init.shared.b64 [b], 0;"), 1, PTX_TRAP,
		  "0 arrivals");
	run_fails(KERNEL(".shared .align 8 .b64 b; mbarrier.init.shared.b64 [b], 1;\n"
			 "mbarrier.arrive.shared.b64 %d2, [b], 2;"),
		  1, PTX_TRAP, "2 arrive");
	run_fails(KERNEL(".shared .align 8 .b64 b; mbarrier.init.shared.b64 [b], 1;\n"
			 "mbarrier.arrive.noComplete.shared.b64 %d2, [b], 1;"),
		  1, PTX_TRAP, "noComplete");
	run_fails(KERNEL("mbarrier.init.b64 [%d1], 1;"), 1, PTX_ILLEGAL_ADDRESS, "shared memory");
	run_fails(KERNEL(".shared .align 8 .b8 b[16]; mbarrier.init.shared.b64 [b+4], 1;"), 1,
		  PTX_MISALIGNED_ADDRESS, "misaligned");
}

/* The copies of all threads, tracked by one mbarrier; with sizes, zeros and a predicate. */
static void test_cp_async(void **state)
{
	(void)state;
	memset(out, 0, WORDS * 4);
	for (unsigned int i = 0; i < 256; i++)
		out[1024 + i] = i + 1;
	run_on(KERNEL(".shared .align 8 .b64 bar; .shared .align 16 .b8 s[1024];\n"
		      "mov.u32 %r1, bar; mov.u32 %r2, s; shl.b32 %r3, %r0, 4;\n"
		      "add.u32 %r2, %r2, %r3; setp.ne.u32 %p1, %r0, 0;\n"
		      "@!%p1 mbarrier.init.shared.b64 [%r1], 64; bar.sync 0;\n"
		      "st.shared.v4.u32 [%r2], {9, 9, 9, 9};\n"
		      "add.u64 %d4, %d0, 4096; and.b32 %r4, %r0, 3; shl.b32 %r5, %r4, 2;\n"
		      "setp.eq.u32 %p2, %r4, 2; @%p2 bra IGNORE;\n"
		      "cp.async.cg.shared.global [%r2], [%d4], 16, %r5; bra OVER;\n"
		      "IGNORE: cp.async.ca.shared.global [%r2], [%d4], 8, %p2;\n"
		      "cp.async.ca.shared.global [%r2+8], [%d4+8], 8, !%p2;\nOVER:\n"
		      "cp.async.mbarrier.arrive.shared.b64 [%r1];\n"
		      "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];\nW:\n"
		      "mbarrier.test_wait.parity.shared.b64 %p3, [%r1], 0; @!%p3 bra W;\n"
		      "xor.b32 %r6, %r3, 16; mov.u32 %r7, s; add.u32 %r6, %r6, %r7;\n"
		      "ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r6];\n"
		      "st.global.v4.u32 [%d0], {%r8, %r9, %r10, %r11};"),
	       64);
	for (unsigned int t = 0; t < 64; t++)
		for (unsigned int k = 0; k < 4; k++) {
			unsigned int from = t ^ 1, part = from & 3, want = 4 * from + k + 1;

			if (part == 2 ? k < 2 : k >= part)
				want = 0;
			assert_int_equal(out[4 * t + k], want);
		}
}

static void test_cluster(void **state)
{
	(void)state;
	run(KERNEL(".shared .u32 s[96]; mov.u32 %r2, s; shl.b32 %r3, %r0, 2;\n"
		   "add.u32 %r3, %r3, %r2; mov.u32 %r5, 0; mov.u32 %r9, 0;\nL:\n"
		   "add.u32 %r4, %r0, %r5; st.shared.u32 [%r3], %r4;\n"
		   "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
		   "sub.u32 %r6, 95, %r0; shl.b32 %r6, %r6, 2; add.u32 %r6, %r6, %r2;\n"
		   "mapa.shared::cluster.u32 %r7, %r6, 0; ld.shared::cluster.u32 %r8, [%r7];\n"
		   "add.u32 %r9, %r9, %r8; barrier.cluster.arrive.relaxed;\n"
		   "barrier.cluster.wait.acquire; add.u32 %r5, %r5, 1;\n"
		   "setp.lt.u32 %p1, %r5, 4; @%p1 bra L;\n"
		   "getctarank.shared::cluster.u32 %r10, %r6; add.u32 %r9, %r9, %r10;\n"
		   "mov.u32 %r11, %cluster_nctarank; mov.u32 %r12, %cluster_ctarank;\n"
		   "st.global.v4.u32 [%d0], {%r9, %r11, %r12, %r10};"),
	    96);
	for (unsigned int t = 0; t < 96; t++) {
		assert_int_equal(out[4 * t], 4 * (95 - t) + 6);
		assert_int_equal(out[4 * t + 1], 1);
		assert_int_equal(out[4 * t + 2], 0);
	}
	run_fails(KERNEL("mapa.u64 %d2, %d1, 1;"), 32, PTX_ILLEGAL_ADDRESS, "no block 1");
	run_fails(KERNEL("barrier.cluster.arrive; barrier.cluster.arrive;"), 64, PTX_TRAP, "twice");
	run_fails(KERNEL("setp.lt.u32 %p1, %r0, 32; @%p1 bra W; bar.sync 1, 64;\n"
			 "W: barrier.cluster.arrive; barrier.cluster.wait;"),
		  64, PTX_TRAP, "deadlock");
}

/* Four matrices of numbered elements go into registers, plain and transposed, and back. */
static void test_matrices(void **state)
{
	const uint16_t *e = (const uint16_t *)(const void *)out;

	(void)state;
	run(KERNEL(".shared .align 16 .b16 s[256]; .shared .align 16 .b16 q[256];\n"
		   "mov.u32 %r1, s; shl.b32 %r2, %r0, 4; add.u32 %r1, %r1, %r2;\n"
		   "mov.u32 %r3, q; add.u32 %r3, %r3, %r2; mov.u32 %r4, 0;\nL:\n"
		   "shl.b32 %r5, %r0, 3; add.u32 %r5, %r5, %r4; cvt.u16.u32 %h1, %r5;\n"
		   "shl.b32 %r6, %r4, 1; add.u32 %r6, %r6, %r1; st.shared.u16 [%r6], %h1;\n"
		   "add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 8; @%p1 bra L; bar.sync 0;\n"
		   "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r1];\n"
		   "st.global.u32 [%d0], %r4; st.global.u32 [%d0+4], %r7;\n"
		   "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r8, %r9}, [%r1];\n"
		   "st.global.u32 [%d0+8], %r9;\n"
		   "movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r5;\n"
		   "st.global.u32 [%d0+12], %r10;\n"
		   "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r3], {%r4, %r5, %r6, %r7};\n"
		   "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];\n"
		   "st.global.v4.u32 [%d0+512], {%r4, %r5, %r6, %r7};\n"),
	    32);
	for (unsigned int t = 0; t < 32; t++) {
		unsigned int r = t / 4, c = t % 4 * 2;

		for (unsigned int k = 0; k < 2; k++) {
			assert_int_equal(e[8 * t + k], r * 8 + c + k);
			assert_int_equal(e[8 * t + 2 + k], 192 + r * 8 + c + k);
			assert_int_equal(e[8 * t + 4 + k], 64 + (c + k) * 8 + r);
			assert_int_equal(e[8 * t + 6 + k], 64 + (c + k) * 8 + r);
		}
		/* row t % 8 of matrix t / 8, stored transposed */
		for (unsigned int k = 0; k < 8; k++)
			assert_int_equal(e[256 + 8 * t + k], t / 8 * 64 + k * 8 + t % 8);
	}
	run_fails(KERNEL("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [0];"), 31, PTX_TRAP,
		  "part of a warp");
	run_fails(KERNEL(".shared .align 16 .b8 s[256];\n"
			 "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [s+8];"),
		  32, PTX_MISALIGNED_ADDRESS, "misaligned");
}

/* Each thread allocates an amount of its own, in a loop that frees it, and behind a call. */
static void test_alloca(void **state)
{
	(void)state;
	run(HEAD
	    ".func (.reg .u32 %s) sum(.reg .u32 %n) {\n"
	    ".reg .pred %p; .reg .u32 %i, %v; .reg .u64 %a, %o, %z;\n"
	    "mul.wide.u32 %z, %n, 4; alloca.u64 %a, %z; mov.u32 %i, 0; mov.u32 %s, 0;\n"
	    "F: mul.wide.u32 %o, %i, 4; add.u64 %o, %o, %a; st.local.u32 [%o], %i;\n"
	    "add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra F; mov.u32 %i, 0;\n"
	    "G: mul.wide.u32 %o, %i, 4; add.u64 %o, %o, %a; ld.local.u32 %v, [%o];\n"
	    "add.u32 %s, %s, %v; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra G; ret; }\n"
	    ".entry k(.param .u64 p)\n{\n" START
	    "add.u32 %r1, %r0, 1; mul.wide.u32 %d2, %r1, 8; mov.u32 %r2, 0;\nL:\n"
	    "stacksave.u64 %d3; alloca.u64 %d4, %d2, 16; alloca.u64 %d5, 24;\n"
	    "sub.u64 %d6, %d5, %d4; st.local.u64 [%d4], %d6; st.local.u64 [%d5], %d1;\n"
	    "call (%r4), sum, (%r1); ld.local.u64 %d7, [%d4]; and.b64 %d8, %d4, 15;\n"
	    "stackrestore.u64 %d3; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 1000;\n"
	    "@%p1 bra L; cvt.u32.u64 %r5, %d7; cvt.u32.u64 %r6, %d8;\n"
	    "st.global.v4.u32 [%d0], {%r4, %r5, %r6, %r2}; ret; }\n",
	    64);
	for (unsigned int t = 0; t < 64; t++) {
		assert_int_equal(out[4 * t], t * (t + 1) / 2);
		assert_int_equal(out[4 * t + 1], (t + 1) * 8);
		assert_int_equal(out[4 * t + 2], 0);
		assert_int_equal(out[4 * t + 3], 1000);
	}
	run_fails(KERNEL("L: alloca.u64 %d4, 1024; bra L;"), 32, PTX_STACK_OVERFLOW, "alloca");
	run_fails(KERNEL("mov.u64 %d2, -1; alloca.u64 %d4, %d2;"), 32, PTX_STACK_OVERFLOW,
		  "alloca");
	run_fails(KERNEL("mov.u64 %d2, 4096; stackrestore.u64 %d2;"), 32, PTX_TRAP, "stackrestore");
}

static void test_128(void **state)
{
	(void)state;
	run(KERNEL(".local .align 16 .b8 l[32]; mov.u64 %d2, 0x1111111111111111;\n"
		   "cvt.u64.u32 %d3, %r0; mov.b128 %q0, {%d2, %d3}; mov.b128 %q1, %q0;\n"
		   "st.local.b128 [l+16], %q1; ld.local.b128 %q2, [l+16];\n"
		   "st.global.b128 [%d0], %q2;\n"
		   /* the lanes count in the low word of one place, 16 bytes at a time */
		   "add.u64 %d1, %d1, 1024; ld.global.b128 %q0, [%d1];\nL:\n"
		   "mov.b128 {%d4, %d5}, %q0; add.u64 %d6, %d4, 1; add.u64 %d7, %d5, 3;\n"
		   "mov.b128 %q1, {%d6, %d7}; atom.global.cas.b128 %q2, [%d1], %q0, %q1;\n"
		   "mov.b128 {%d6, %d7}, %q2; mov.b128 %q0, %q2; setp.ne.u64 %p1, %d6, %d4;\n"
		   "@%p1 bra L;\n"
		   "atom.global.exch.b128 %q3, [%d1+16], %q1; mov.b128 {%d4, %d5}, %q3;\n"
		   "setp.ne.u64 %p1, %d5, 0; @%p1 red.global.add.u32 [%d1+32], 1;"),
	    64);
	for (unsigned int t = 0; t < 64; t++) {
		assert_int_equal(out[4 * t], 0x11111111);
		assert_int_equal(out[4 * t + 1], 0x11111111);
		assert_int_equal(out[4 * t + 2], t);
		assert_int_equal(out[4 * t + 3], 0);
	}
	assert_int_equal(out[256], 64);
	assert_int_equal(out[258], 192);
	assert_int_equal(out[264],
			 63); /* one lane found zero, the others the value of a lane before */
	run_fails(KERNEL("ld.global.b128 %q0, [%d1+8];"), 1, PTX_MISALIGNED_ADDRESS, "16 bytes");
}

static void test_vector_atomics(void **state)
{
	const float *f;

	(void)state;
	run(KERNEL("cvt.rn.f32.u32 %f0, %r0; add.f32 %f1, %f0, %f0; mov.f32 %f2, 0f3F800000;\n"
		   "atom.global.add.v4.f32 {%f4, _, %f6, %f7}, [%d1+1024], {%f0, %f1, %f2, %f2};\n"
		   "red.global.add.v2.f32 [%d1+1040], {%f2, %f0};\n"
		   "cvt.rn.f16.u32 %h0, %r0; neg.f16 %h1, %h0; mov.b32 %r1, {%h0, %h1};\n"
		   "red.global.max.noftz.v2.f16 [%d1+1048], {%h0, %h1};\n"
		   "red.global.min.noftz.v2.f16x2 [%d1+1056], {%r1, %r1};\n"
		   "mov.u16 %h2, 0x3f80;\n"
		   "atom.global.add.noftz.v2.bf16 {%h3, %h4}, [%d1+1064], {%h2, %h2};\n"
		   "atom.global.add.noftz.f16x2 %r2, [%d1+1068], 0x3c003c00;\n"
		   "atom.global.add.noftz.bf16x2 %r2, [%d1+1072], 0x3f803f80;\n"
		   "st.global.f32 [%d0], %f6; mov.b32 %r3, {%h3, %h4}; st.global.u32 [%d0+4], "
		   "%r3;"),
	    32);
	f = (const float *)(const void *)(out + 256);
	assert_true(f[0] == 496 && f[1] == 992 && f[2] == 32 && f[3] == 32);
	assert_true(f[4] == 32 && f[5] == 496);
	assert_int_equal(out[262], 0x4fc0);	/* 31 and -0 or 0 */
	assert_int_equal(out[264], 0xcfc00000); /* 0 and -31 */
	assert_int_equal(out[265], 0xcfc00000);
	assert_int_equal(out[266], 0x42004200); /* 32 */
	assert_int_equal(out[267], 0x50005000);
	assert_int_equal(out[268], 0x42004200);
	for (unsigned int t = 0; t < 32; t++) {
		unsigned int seen = 0;

		for (unsigned int k = 0; k < 32; k++)
			seen += out[4 * k] == ((union {
						      float f;
						      uint32_t u;
					      }){(float)t})
						      .u;
		assert_int_equal(seen, 1);
	}
	run_fails(KERNEL("red.global.add.v4.f32 [%d1+8], {%f0, %f0, %f0, %f0};"), 1,
		  PTX_MISALIGNED_ADDRESS, "16 bytes");
}

/* Without .sync, the members are the active lanes. */
static void test_old_lanes(void **state)
{
	(void)state;
	run(".version 6.0\n.target sm_60\n.address_size 64\n.entry k(.param .u64 p)\n{\n"
	    ".reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<4>;\n"
	    "ld.param.u64 %d1, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 16;\n"
	    "add.u64 %d0, %d0, %d1; shfl.bfly.b32 %r1|%p1, %r0, 3, 31;\n"
	    "shfl.up.b32 %r2|%p2, %r0, 4, 0; selp.u32 %r3, 100, 0, %p2; add.u32 %r2, %r2, %r3;\n"
	    "setp.lt.u32 %p1, %r0, 10; @%p1 bra LOW; vote.ballot.b32 %r4, %p1;\n"
	    "vote.any.pred %p3, !%p1; bra JOIN;\n"
	    "LOW: vote.ballot.b32 %r4, %p1; vote.all.pred %p3, %p1;\nJOIN:\n"
	    "@%p3 add.u32 %r1, %r1, 1000;\n"
	    "setp.ge.u32 %p2, %r0, 16; @%p2 vote.ballot.b32 %r4, %p2;\n"
	    "st.global.v4.u32 [%d0], {%r1, %r2, %r4, 0}; ret; }\n",
	    32);
	for (unsigned int t = 0; t < 32; t++) {
		assert_int_equal(out[4 * t], (t ^ 3) + 1000);
		assert_int_equal(out[4 * t + 1], t < 4 ? t : t - 4 + 100);
		assert_int_equal(out[4 * t + 2], t < 10 ? 0x3ff : t < 16 ? 0 : 0xffff0000u);
	}
}

static void test_redux_float(void **state)
{
	static const float v[32] = {1.5f, -3, 7, -9, 0, 2};
	union {
		float f;
		uint32_t u;
	} r;

	(void)state;
	memset(out, 0, WORDS * 4);
	memcpy(out + 1024, v, sizeof(v));
	out[1024 + 6] = 0x7fc00000;
	run_on(KERNEL("mul.wide.u32 %d2, %r0, 4; add.u64 %d2, %d2, %d1; ld.global.f32 %f0, "
		      "[%d2+4096];\n"
		      "redux.sync.min.f32 %f1, %f0, -1; redux.sync.max.abs.f32 %f2, %f0, -1;\n"
		      "redux.sync.max.NaN.f32 %f3, %f0, -1;\n"
		      "st.global.f32 [%d0], %f1; st.global.f32 [%d0+4], %f2;\n"
		      "st.global.f32 [%d0+8], %f3;"),
	       32);
	for (unsigned int t = 0; t < 32; t++) {
		r.u = out[4 * t];
		assert_true(r.f == -9);
		r.u = out[4 * t + 1];
		assert_true(r.f == 9);
		assert_int_equal(out[4 * t + 2], 0x7fffffff);
	}
}

/* Hints for the hardware change nothing, and every form of a fence is supported. */
static void test_hints(void **state)
{
	(void)state;
	run(KERNEL("griddepcontrol.wait; griddepcontrol.launch_dependents;\n"
		   "setmaxnreg.inc.sync.aligned.u32 64; setmaxnreg.dec.sync.aligned.u32 40;\n"
		   "createpolicy.fractional.L2::evict_last.b64 %d2, 0.5;\n"
		   "createpolicy.range.global.L2::evict_first.b64 %d3, [%d1], 64, 128;\n"
		   "ld.global.L2::cache_hint.u32 %r1, [%d0], %d2; discard.global.L2 [%d1], 128;\n"
		   "applypriority.global.L2::evict_normal [%d1], 128; prefetchu.L1 [%d1];\n"
		   "prefetch.global.L2::evict_last [%d1]; pmevent 7; nanosleep.u32 20;\n"
		   "fence.sc.cta; fence.acq_rel.sys; fence.acquire.gpu; fence.proxy.alias;\n"
		   "fence.proxy.async.global; fence.mbarrier_init.release.cluster;\n"
		   "fence.acquire.sync_restrict::shared::cluster.cluster; membar.gl; membar.sys;\n"
		   "mov.u32 %r2, %reserved_smem_offset_1; st.shared.u32 [%r2+284], %r0;\n"
		   "bar.sync 0; ld.shared.u32 %r3, [%r2+284]; mov.pred %p1, %is_explicit_cluster;\n"
		   "@!%p1 add.u32 %r1, %r1, 5; add.u32 %r1, %r1, %r3;\n"
		   "st.global.L1::no_allocate.u32 [%d0], %r1;"),
	    1);
	assert_int_equal(out[0], 5);
}

/*
 * A bulk copy to shared memory completes on an mbarrier, and one back needs a group only. The first
 * 64 words of the buffer end up behind the next 64.
 */
static void test_bulk_copy(void **state)
{
	static const char good[] = HEAD
		".shared .align 16 .b8 other[32]; .shared .align 16 .b8 s[512]; .shared .align 8 "
		".b64 bar;\n"
		".entry k(.param .u64 p)\n{\n" START
		"st.shared.u32 [other], 0; setp.ne.u32 %p1, %r0, 0; @%p1 bra WAIT;\n"
		"mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], "
		"256;\n"
		"mov.u32 %r2, 256;\n"
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+16], [%d1], "
		"%r2, "
		"[bar];\n"
		"WAIT: bar.sync 0; mov.u32 %r3, bar;\n"
		"AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra AGAIN;\n"
		"@%p1 bra END; fence.proxy.async.shared::cta; mov.u32 %r4, s;\n"
		"cp.async.bulk.global.shared::cta.bulk_group [%d1+512], [%r4+16], %r2;\n"
		"cp.async.bulk.global.shared::cta.bulk_group [%d1+768], [s+208], 16;\n"
		"cp.async.bulk.prefetch.L2.global [%d1], %r2;\n"
		"cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\nEND: ret;\n}\n";
	static const struct {
		const char *insn;
		enum ptx_status st;
		const char *say;
	} bad[] = {
		{"cp.async.bulk.global.shared::cta.bulk_group [%d1], [s], 24;",
		 PTX_MISALIGNED_ADDRESS, "24 bytes"},
		{"cp.async.bulk.global.shared::cta.bulk_group [%d1+8], [s], 16;",
		 PTX_MISALIGNED_ADDRESS, "misaligned"},
		{"cp.async.bulk.global.shared::cta.bulk_group [%d1], [s], 528;",
		 PTX_ILLEGAL_ADDRESS, "shared"},
		{"cp.async.bulk.global.shared::cta.bulk_group [%d1], [%d1], 16;",
		 PTX_ILLEGAL_ADDRESS, "shared"},
		{"cp.async.bulk.global.shared::cta.bulk_group [%d1+16384], [s], 16;",
		 PTX_ILLEGAL_ADDRESS, "global"},
		{"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d1], "
		 "16, "
		 "[bar];",
		 PTX_TRAP, "mbarrier"},
	};

	(void)state;
	memset(out, 0, WORDS * 4);
	for (uint32_t i = 0; i < 64; i++)
		out[i] = i + 1;
	run_on(good, 64);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(out[128 + i], i + 1);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(out[192 + i], 48 + i + 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[2048] = HEAD ".entry k(.param .u64 p)\n{\n" START
				       ".shared .align 16 .b8 s[512]; .shared .align 8 .b64 bar;\n";

		strcat(text, bad[i].insn);
		strcat(text, "\nret;\n}\n");
		run_fails(text, 1, bad[i].st, bad[i].say);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bulk_copy),	cmocka_unit_test(test_mbarrier),
		cmocka_unit_test(test_mbarrier_counts), cmocka_unit_test(test_cp_async),
		cmocka_unit_test(test_cluster),		cmocka_unit_test(test_matrices),
		cmocka_unit_test(test_alloca),		cmocka_unit_test(test_128),
		cmocka_unit_test(test_vector_atomics),	cmocka_unit_test(test_old_lanes),
		cmocka_unit_test(test_redux_float),	cmocka_unit_test(test_hints),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

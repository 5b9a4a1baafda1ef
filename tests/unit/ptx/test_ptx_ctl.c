// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Control flow and lanes together, in PTX that compilers rarely write: indexed branches, calls with
 * registers, partial barriers, waiting blocks, address spaces, and several launches at once.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/ptx/test_ptx_env.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
/* %r0: thread; %d0: the address of this thread's word; %d1: the buffer */
#define START                                                                     \
	".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<8>;\n" \
	"ld.param.u64 %d1, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 4;\n" \
	"add.u64 %d0, %d0, %d1;\n"
#define KERNEL(code) HEAD ".entry k(.param .u64 p)\n{\n" START code "\n}\n"

static uint32_t *run(const char *text, unsigned int grid, unsigned int block)
{
	struct ptx_module *m = must_load(text);
	uint32_t *out = dev_alloc(4096);

	must_launch(m, "k", grid, block, 4096, &out, sizeof(out));
	ptx_unload(m);
	return out;
}

static void run_fails(const char *text, enum ptx_status want)
{
	struct ptx_module *m = must_load(text);
	uint32_t *out = dev_alloc(4096);
	struct ptx_diag d;
	enum ptx_status st = launch(m, "k", 1, 64, 0, &out, sizeof(out), &d);

	if (st != want)
		fail_msg("%s: %s instead of %s", ptx_status_name(st), d.text,
			 ptx_status_name(want));
	ptx_unload(m);
	dev_free(out);
}

static void test_indexed_branch(void **state)
{
	uint32_t *o = run(KERNEL("and.b32 %r1, %r0, 3; setp.lt.u32 %p1, %r0, 40; mov.u32 %r2, 9;\n"
				 "T: .branchtargets A, B, C, D;\n"
				 "@%p1 brx.idx %r1, T;\n mov.u32 %r2, 5; bra.uni OUT;\n"
				 "A: mov.u32 %r2, 100; bra OUT;\nB: mov.u32 %r2, 101;\n"
				 "C: add.u32 %r2, %r2, 1;\nbra OUT;\nD: mov.u32 %r2, 103;\n"
				 "OUT: st.global.u32 [%d0], %r2; ret;"),
			  1, 64);

	(void)state;
	for (unsigned int t = 0; t < 64; t++) {
		static const uint32_t want[4] = {100, 102, 10, 103};

		assert_int_equal(o[t], t < 40 ? want[t & 3] : 5);
	}
	dev_free(o);
	run_fails(KERNEL("T: .branchtargets A, B;\nbrx.idx %r0, T;\nA: ret;\nB: ret;"),
		  PTX_ILLEGAL_ADDRESS);
}

static void test_register_calls(void **state)
{
	uint32_t *o =
		run(HEAD
		    ".func (.reg .u32 %s, .reg .u64 %w) sum(.reg .u32 %a, .reg .u32 %b) {\n"
		    ".reg .pred %q; setp.gt.u32 %q, %a, 20; add.u32 %s, %a, %b;\n"
		    "mul.wide.u32 %w, %a, %b; @%q ret; add.u32 %s, %s, 1000; ret; }\n"
		    ".func (.param .u32 r) deep(.param .u32 n) {\n"
		    ".reg .pred %q; .reg .u32 %n, %m; .param .u32 a; .param .u32 b;\n"
		    "ld.param.u32 %n, [n]; setp.eq.u32 %q, %n, 0;\n"
		    "@%q bra Z; sub.u32 %m, %n, 1; st.param.u32 [a], %m;\n"
		    "call (b), deep, (a); ld.param.u32 %m, [b]; add.u32 %n, %n, %m;\n"
		    "Z: st.param.u32 [r], %n; ret; }\n"
		    ".entry k(.param .u64 p)\n{\n" START
		    "call (%r1, %d2), sum, (%r0, 7); cvt.u32.u64 %r2, %d2; add.u32 %r1, %r1, %r2;\n"
		    "{ .param .u32 x; .param .u32 y; st.param.u32 [x], %r0;\n"
		    "call (y), deep, (x); ld.param.u32 %r3, [y];\n"
		    "call (%r4), deep, (5); add.u32 %r3, %r3, %r4; }\n"
		    "add.u32 %r1, %r1, %r3; st.global.u32 [%d0], %r1; ret; }\n",
		    1, 64);

	(void)state;
	for (unsigned int t = 0; t < 64; t++)
		assert_int_equal(o[t], t + 7 + (t > 20 ? 0 : 1000) + t * 7 + t * (t + 1) / 2 + 15);
	dev_free(o);
}

static void test_barriers(void **state)
{
	/*
	 * Warp 0 produces and warp 1 consumes: barrier 1 without waiting, barrier 2 for 64 threads.
	 */
	uint32_t *o =
		run(KERNEL(".shared .u32 s[64]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2;\n"
			   "add.u32 %r1, %r1, %r2; setp.ge.u32 %p1, %r0, 32;\n"
			   "setp.ge.u32 %p2, %r0, 64; @%p2 bra REST; @%p1 bra EAT;\n"
			   "add.u32 %r3, %r0, 500; st.shared.u32 [%r1], %r3;\n"
			   "bar.arrive 1, 64; barrier.sync 2, 64; ld.shared.u32 %r4, [%r1+128];\n"
			   "bra OUT;\nEAT: bar.sync 1, 64; ld.shared.u32 %r4, [%r1-128];\n"
			   "add.u32 %r5, %r4, 1; st.shared.u32 [%r1], %r5;\n"
			   "barrier.sync 2, 64; bra OUT;\n"
			   "REST: mov.u32 %r4, 3;\nOUT: st.global.u32 [%d0], %r4; ret;"),
		    1, 96);

	(void)state;
	for (unsigned int t = 0; t < 96; t++)
		assert_int_equal(o[t], t < 32 ? t + 501 : t < 64 ? t - 32 + 500 : 3);
	dev_free(o);
	/* threads that wait for each other at different barriers */
	run_fails(KERNEL("setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 1; @!%p1 bar.sync 2; ret;"),
		  PTX_TRAP);
	run_fails(KERNEL("bar.sync 16;"), PTX_TRAP);
	run_fails(KERNEL("bar.sync 1, 33;"), PTX_TRAP);
	run_fails(KERNEL("trap;"), PTX_TRAP);
	/* a lane that others wait for waits elsewhere */
	run_fails(KERNEL("setp.eq.u32 %p1, %r0, 3; @%p1 bar.sync 1; @!%p1 bar.warp.sync -1; ret;"),
		  PTX_TRAP);
}

static void test_lanes(void **state)
{
	uint32_t *o =
		run(KERNEL("setp.lt.u32 %p1, %r0, 9; @%p1 bra LOW;\n"
			   "redux.sync.add.u32 %r1, %r0, 0xfffffe00;\n"
			   "redux.sync.max.s32 %r2, %r0, 0xfffffe00; bra OUT;\n"
			   "LOW: redux.sync.xor.b32 %r1, %r0, 0x1ff;\n"
			   "elect.sync %r2|%p2, 0x1ff; @%p2 add.u32 %r2, %r2, 1000;\n"
			   "OUT: st.global.u32 [%d0], %r1; st.global.u32 [%d0+128], %r2;\n"
			   "cvt.u64.u32 %d2, %r0; shr.u64 %d2, %d2, 3; shl.b64 %d2, %d2, 40;\n"
			   "match.any.sync.b64 %r3, %d2, -1; st.global.u32 [%d0+256], %r3;\n"
			   "ret;"),
		    1, 32);

	(void)state;
	for (unsigned int t = 0; t < 32; t++) {
		assert_int_equal(o[t], t < 9 ? (0 ^ 1 ^ 2 ^ 3 ^ 4 ^ 5 ^ 6 ^ 7 ^ 8) : 496 - 36);
		assert_int_equal(o[t + 32], t >= 9 ? 31 : t ? 0 : 1000);
		assert_int_equal(o[t + 64], 0xffu << (t & 24));
	}
	dev_free(o);
}

static void test_spaces(void **state)
{
	uint32_t *o = run(
		HEAD
		".const .u32 c[2] = {5, 6};\n.global .u64 at[2] = {generic(c)+4, at};\n"
		".global .b8 bytes[8] = {0xFF(c), 0xFF00(c), 0xFF0000(c), 0xFF000000(c), 1};\n"
		".entry k(.param .u64 p)\n{\n" START
		".local .align 16 .b8 l[64]; .shared .align 16 .b8 s[2048];\n"
		/* one bit for each true statement */
		"mov.u32 %r9, 0;\n"
		"mov.u64 %d2, l; cvta.local.u64 %d3, %d2; isspacep.local %p1, %d3;\n"
		"@%p1 or.b32 %r9, %r9, 1; isspacep.shared %p1, %d3; @!%p1 or.b32 %r9, %r9, 2;\n"
		"st.u32 [%d3+8], %r0; st.local.u32 [l+12], 77;\n"
		"ld.local.v2.u32 {%r1, %r2}, [%d2+8]; setp.eq.u32 %p1, %r1, %r0;\n"
		"setp.eq.and.u32 %p1, %r2, 77, %p1; @%p1 or.b32 %r9, %r9, 4;\n"
		"ld.v2.u32 {%r1, %r2}, [%d3+8]; setp.eq.u32 %p1, %r2, 77;\n"
		"@%p1 or.b32 %r9, %r9, 8;\n"
		"mov.u64 %d4, s; cvta.shared.u64 %d5, %d4; isspacep.shared %p1, %d5;\n"
		"@%p1 or.b32 %r9, %r9, 16; shl.b32 %r3, %r0, 4; cvt.u64.u32 %d6, %r3;\n"
		"add.u64 %d5, %d5, %d6; st.u32 [%d5], %r0; cvta.to.shared.u64 %d7, %d5;\n"
		"ld.shared.u32 %r4, [%d7]; setp.eq.u32 %p1, %r4, %r0;\n"
		"@%p1 or.b32 %r9, %r9, 32;\n"
		"ld.global.u64 %d2, [at]; ld.u32 %r5, [%d2]; setp.eq.u32 %p1, %r5, 6;\n"
		"@%p1 or.b32 %r9, %r9, 64; isspacep.const %p1, %d2; @%p1 or.b32 %r9, %r9, 128;\n"
		"ld.global.u64 %d2, [at+8]; mov.u64 %d3, at; setp.eq.u64 %p1, %d2, %d3;\n"
		"@%p1 or.b32 %r9, %r9, 256; isspacep.global %p1, %d2;\n"
		"@%p1 or.b32 %r9, %r9, 512;\n"
		"ld.global.u32 %r6, [bytes]; mov.u64 %d2, c; cvt.u32.u64 %r7, %d2;\n"
		"setp.eq.u32 %p1, %r6, %r7; @%p1 or.b32 %r9, %r9, 1024;\n"
		"mov.u64 %d2, p; cvta.param.u64 %d2, %d2; ld.u64 %d3, [%d2];\n"
		"setp.eq.u64 %p1, %d3, %d1; @%p1 or.b32 %r9, %r9, 2048;\n"
		"cvt.u32.u64 %r8, %d7; st.global.u32 [%d0], 4242;\n"
		"cp.async.ca.shared.global [%r8+4], [%d0], 4; cp.async.commit_group;\n"
		"cp.async.wait_group 0; ld.shared.u32 %r4, [%d7+4];\n"
		"setp.eq.u32 %p1, %r4, 4242; @%p1 or.b32 %r9, %r9, 4096;\n"
		"st.global.u32 [%d0], %r9; ret; }\n",
		1, 50);

	(void)state;
	for (unsigned int t = 0; t < 50; t++)
		assert_int_equal(o[t], 8191);
	dev_free(o);
}

/* Each invalid access must fail, and none may harm this process. */
static void test_bad_accesses(void **state)
{
	static const struct {
		const char *code;
		enum ptx_status want;
	} bad[] = {
		{"ld.global.u32 %r1, [0];", PTX_ILLEGAL_ADDRESS},
		{"ld.global.u32 %r1, [%d1-4];", PTX_ILLEGAL_ADDRESS},
		{"ld.global.u32 %r1, [%d1+4096];", PTX_ILLEGAL_ADDRESS},
		{"ld.global.u64 %d2, [%d1+4092];", PTX_MISALIGNED_ADDRESS},
		{"ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d1+8];", PTX_MISALIGNED_ADDRESS},
		{"st.global.u16 [%d0+1], %h1;", PTX_MISALIGNED_ADDRESS},
		{"mov.u64 %d2, -8; st.u64 [%d2], %d1;", PTX_ILLEGAL_ADDRESS},
		{"mov.u64 %d2, 0x7000000000000000; ld.u32 %r1, [%d2];", PTX_ILLEGAL_ADDRESS},
		{"mov.u64 %d2, 0x4000000000000000; ld.u32 %r1, [%d2+999999];", PTX_ILLEGAL_ADDRESS},
		{"mov.u64 %d2, 0x5000000000000000; st.u32 [%d2-4], %r1;", PTX_ILLEGAL_ADDRESS},
		{"ld.shared.u32 %r1, [0xfffffffc];", PTX_ILLEGAL_ADDRESS},
		{"mov.u32 %r1, -4; ld.shared.u32 %r2, [%r1+8];", PTX_ILLEGAL_ADDRESS},
		{"ld.local.u32 %r1, [0x7fffffff0];", PTX_ILLEGAL_ADDRESS},
		{"mov.u64 %d2, p; ld.param.u64 %d3, [%d2+8];", PTX_ILLEGAL_ADDRESS},
		{"atom.global.add.u32 %r1, [%d1+2], 1;", PTX_MISALIGNED_ADDRESS},
		{"atom.shared.add.u32 %r1, [0x100000], 1;", PTX_ILLEGAL_ADDRESS},
		{"red.global.add.u64 [%d1+8192], %d0;", PTX_ILLEGAL_ADDRESS},
		{"setp.eq.u32 %p1, %r0, 45; @%p1 st.global.u32 [0x1000], %r0;",
		 PTX_ILLEGAL_ADDRESS},
		{"mov.u64 %d2, 1234; call (%r1), %d2, (%r2);", PTX_ILLEGAL_ADDRESS},
		{"mov.u64 %d2, 0x7000000000000010; call %d2;", PTX_ILLEGAL_ADDRESS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[2048];

		snprintf(text, sizeof(text), "%s.entry k(.param .u64 p)\n{\n%s%s\nret;\n}\n", HEAD,
			 START, bad[i].code);
		run_fails(text, bad[i].want);
	}
}

/* A function that only a call through a pointer reaches is checked when it is reached. */
/* As -rdc=true leaves it: a use, then the definition, which is larger than the declaration. */
static void test_used_before_defined(void **state)
{
	static const char text[] =
		".version 8.0\n.target sm_75\n.address_size 64\n"
		".extern .global .align 4 .b8 open[];\n.extern .global .align 4 .b8 small[4];\n"
		".visible .entry k(.param .u64 out)\n{\n"
		".reg .b64 %d<4>; .reg .b32 %r<8>;\n"
		"ld.param.u64 %d1, [out];\n"
		"mov.u64 %d2, open;\nld.global.u32 %r1, [%d2+12];\n"
		"mov.u64 %d3, small+800;\nld.u32 %r2, [%d3+-4];\n"
		"ld.global.u32 %r3, [open+12];\n"
		"st.u32 [%d1], %r1; st.u32 [%d1+4], %r2; st.u32 [%d1+8], %r3;\nret;\n}\n"
		".visible .global .align 4 .u32 open[100] = {1, 2, 3, 7};\n"
		".visible .global .align 4 .u32 small[200];\n";
	uint32_t *out = dev_alloc(12);
	struct ptx_module *m = must_load(text);
	uint64_t addr, p = (uintptr_t)out;
	size_t size;

	(void)state;
	assert_int_equal(ptx_var_find(m, "small", &addr, &size), PTX_OK);
	assert_int_equal(size, 800);
	((uint32_t *)(uintptr_t)addr)[199] = 8;
	must_launch(m, "k", 1, 1, 0, &p, sizeof(p));
	assert_int_equal(out[0], 7);
	assert_int_equal(out[1], 8);
	assert_int_equal(out[2], 7);
	ptx_unload(m);
	dev_free(out);
}

static void test_call_to_nothing(void **state)
{
	(void)state;
	run_fails(HEAD ".func nobody();\n.func a(); .func b(); .alias a, b; .alias b, a;\n"
		       ".func g() { call nobody; ret; }\n.func h() { call a; ret; }\n"
		       ".entry k(.param .u64 p) { .reg .b64 %d; mov.u64 %d, g; call %d; ret; }\n",
		  PTX_UNSUPPORTED);
	run_fails(HEAD ".func nobody();\n.func a(); .func b(); .alias a, b; .alias b, a;\n"
		       ".func h() { call a; ret; }\n"
		       ".entry k(.param .u64 p) { .reg .b64 %d; mov.u64 %d, h; call %d; ret; }\n",
		  PTX_UNSUPPORTED);
	run_fails(HEAD ".func a(); .func b(); .alias a, b; .alias b, a;\n"
		       ".entry k(.param .u64 p) { call a; ret; }\n",
		  PTX_UNSUPPORTED);
}

/* A block waits for a later block, without a cooperative launch. */
static void test_waiting_blocks(void **state)
{
	uint32_t *o = run(KERNEL("mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 7;\n"
				 "@%p1 st.global.u32 [%d1+512], 1;\nW: ld.volatile.global.u32 %r2, "
				 "[%d1+512]; setp.eq.u32 %p1, %r2, 0; @%p1 bra W;\n"
				 "atom.global.add.u32 %r3, [%d0], 1; ret;"),
			  8, 32);

	(void)state;
	for (unsigned int t = 0; t < 32; t++)
		assert_int_equal(o[t], 8);
	dev_free(o);
}

static const char count_text[] =
	KERNEL("mov.u32 %r1, 0;\nL: atom.global.add.u32 %r2, [%d1], 1; add.u32 %r1, %r1, 1;\n"
	       "setp.lt.u32 %p1, %r1, 50; @%p1 bra L; ret;");

struct job {
	struct ptx_module *m;
	uint32_t *out;
	enum ptx_status st;
};

static void *many(void *arg)
{
	struct job *j = arg;
	struct ptx_diag d;

	j->st = PTX_OK;
	for (int i = 0; i < 5 && j->st == PTX_OK; i++)
		j->st = launch(j->m, "k", 6, 64, 0, &j->out, sizeof(j->out), &d);
	return NULL;
}

static void test_parallel_launches(void **state)
{
	struct ptx_module *m = must_load(count_text);
	uint32_t *out = dev_alloc(4096);
	struct job j[4];
	pthread_t t[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		j[i] = (struct job){m, out, PTX_OK};
		pthread_create(&t[i], NULL, many, &j[i]);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(j[i].st, PTX_OK);
	}
	assert_int_equal(out[0], 4 * 5 * 6 * 64 * 50);
	ptx_unload(m);
	dev_free(out);
}

/* A child of fork() has none of the helper threads. Its launches must work all the same. */
static void test_fork(void **state)
{
	struct ptx_module *m = must_load(count_text);
	uint32_t *out = dev_alloc(4096);
	int status;
	pid_t pid;

	(void)state;
	must_launch(m, "k", 6, 64, 0, &out, sizeof(out));
	pid = fork();
	if (!pid) {
		struct ptx_diag d;

		alarm(20);
		_exit(launch(m, "k", 6, 64, 0, &out, sizeof(out), &d) == PTX_OK &&
				      out[0] == 2 * 6 * 64 * 50
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	ptx_unload(m);
	dev_free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_indexed_branch),
		cmocka_unit_test(test_register_calls),
		cmocka_unit_test(test_barriers),
		cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_spaces),
		cmocka_unit_test(test_bad_accesses),
		cmocka_unit_test(test_used_before_defined),
		cmocka_unit_test(test_call_to_nothing),
		cmocka_unit_test(test_waiting_blocks),
		cmocka_unit_test(test_parallel_launches),
		cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

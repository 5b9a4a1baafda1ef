// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The checks of QCU_SOFT_CHECK on handwritten PTX: each kind of access, each way to order threads,
 * the names of files and lines. Without checks nothing may be different, and with checks the
 * kernels' results must still be right.
 */
#include "tests/unit/ptx/test_ptx_env.h"

#define HEAD ".version 9.0\n.target sm_100a\n.address_size 64\n"
#define START                                                                      \
	".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<8>;\n"  \
	".reg .b128 %q<2>; .shared .align 16 .b8 s[4096];\n"                       \
	"ld.param.u64 %d1, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 16;\n" \
	"add.u64 %d0, %d0, %d1; mov.u32 %r1, s; shl.b32 %r2, %r0, 4;\n"            \
	"add.u32 %r1, %r1, %r2; xor.b32 %r3, %r0, 33; shl.b32 %r3, %r3, 4;\n"      \
	"mov.u32 %r4, s; add.u32 %r3, %r3, %r4;\n"
/* %r1: this thread's 16 bytes of shared memory; %r3: the bytes of a thread in another warp */
#define KERNEL(code) HEAD ".entry k(.param .u64 p)\n{\n" START code "\nret;\n}\n"

static uint8_t written[4096];
static uint64_t buffer;

static bool was_written(void *ctx, uint64_t addr, size_t len)
{
	bool any = false;

	(void)ctx;
	if (addr - buffer >= sizeof(written))
		return true;
	for (size_t i = 0; i < len; i++)
		any |= written[addr - buffer + i];
	return any;
}

static void wrote(void *ctx, uint64_t addr, size_t len)
{
	(void)ctx;
	if (addr - buffer < sizeof(written))
		memset(written + (addr - buffer), 1, len);
}

static void found(void *ctx, const struct ptx_finding *at)
{
	char line[512];
	int n = snprintf(line, sizeof(line),
			 "%s; kernel %s, %s:%u, block (%u,%u,%u), thread "
			 "(%u,%u,%u)\n",
			 at->what, at->kernel, at->file ? at->file : "PTX", at->line, at->block[0],
			 at->block[1], at->block[2], at->thread[0], at->thread[1], at->thread[2]);

	world_print(ctx, line, (size_t)n);
}

/* Runs with 64 threads. The messages must contain `say`, or there must be none. */
static void check(const char *text, const char *say)
{
	struct ptx_env env = world_env;
	uint8_t *mem = dev_alloc(sizeof(written));
	struct ptx_module *m;
	struct ptx_diag d;

	buffer = (uint64_t)(uintptr_t)mem;
	memset(written, 0, sizeof(written));
	env.found = found;
	env.written = was_written;
	env.wrote = wrote;
	world.len = 0;
	world.text[0] = 0;
	if (ptx_load(text, strlen(text), &env, &m, &d) != PTX_OK)
		fail_msg("line %u: %s", d.line, d.text);
	must_launch(m, "k", 1, 64, 0, &mem, sizeof(mem));
	ptx_unload(m);
	dev_free(mem);
	if (say ? !strstr(world.text, say) : world.len != 0)
		fail_msg("%s\n instead of %s for\n%s", world.text, say ? say : "nothing", text);
}

#define GLOBAL "of global memory at 0x"
#define SHARED "of shared memory at 0x"
#define LOCAL  "of local memory at 0x"
#define RACE   "race on shared memory at 0x"

static void test_unwritten(void **state)
{
	(void)state;
	check(KERNEL("ld.global.u32 %r5, [%d0];"), "read of 4 bytes " GLOBAL);
	check(KERNEL("ld.u64 %d2, [%d0];"), "read of 8 bytes " GLOBAL);
	check(KERNEL("st.global.u8 [%d0+3], 1; ld.global.u32 %r5, [%d0];"), NULL);
	check(KERNEL("st.global.v2.u32 [%d0], {1, 2}; ld.global.v4.u32 {%r5, %r6, %r7, %r8}, "
		     "[%d0];"),
	      "read of 4 bytes " GLOBAL);
	check(KERNEL("mov.b128 %q0, {%d0, %d1}; st.global.b128 [%d0], %q0; ld.global.b128 %q1, "
		     "[%d0];"
		     "atom.global.add.u32 %r5, [%d0+8], 1; red.global.add.f32 [%d0+12], "
		     "0f00000000;"),
	      NULL);
	check(KERNEL("red.global.add.u32 [%d0], 1;"), "read of 4 bytes " GLOBAL);
	check(KERNEL("ld.shared.u16 %h1, [%r1];"), "read of 2 bytes " SHARED);
	check(KERNEL("st.shared.u32 [%r1], 1; ld.shared.u32 %r5, [%r1];"), NULL);
	check(KERNEL("cp.async.ca.shared.global [%r1], [%d0], 4;"), "read of 4 bytes " GLOBAL);
	check(KERNEL("st.global.u32 [%d0], 1; cp.async.cg.shared.global [%r1], [%d0], 16, 4;\n"
		     "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r1];"),
	      NULL);
	check(KERNEL(".local .u32 l[4]; ld.local.u32 %r5, [l+4];"), "read of 4 bytes " LOCAL);
	check(KERNEL(".local .u32 l[4]; mov.u64 %d2, l; cvta.local.u64 %d2, %d2; st.u32 [%d2+4], "
		     "1;\n"
		     "ld.local.u32 %r5, [l+4]; ld.u32 %r6, [%d2+8];"),
	      "read of 4 bytes " LOCAL);
	/* a call's variables are uninitialised, although an earlier call wrote to the same place */
	check(HEAD ".func f(.reg .u32 %w) { .reg .pred %q; .reg .u32 %v; .local .u32 l;\n"
		   "setp.eq.u32 %q, %w, 0; @%q bra R; st.local.u32 [l], 5; ret;\n"
		   "R: ld.local.u32 %v, [l]; ret; }\n"
		   ".entry k(.param .u64 p) { call f, (1); call f, (0); ret; }\n",
	      "read of 4 bytes " LOCAL);
	check(HEAD ".global .u32 g; .entry k(.param .u64 p) { .reg .u32 %r; ld.global.u32 %r, [g]; "
		   "ret; }\n",
	      NULL);
}

#define EXCHANGE(between) "st.shared.u32 [%r1], %r0;\n" between "\nld.shared.u32 %r5, [%r3];"

static void test_races(void **state)
{
	static const char *const orders[] = {
		"bar.sync 0;",
		"barrier.sync 1, 64;",
		"barrier.cluster.arrive; barrier.cluster.wait;",
		"bar.red.popc.u32 %r5, 0, %p1;",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		char text[4096];

		snprintf(text, sizeof(text),
			 "%s.entry k(.param .u64 p)\n{\n%sst.shared.u32 [%%r1], %%r0;\n%s\n"
			 "ld.shared.u32 %%r5, [%%r3];\nret;\n}\n",
			 HEAD, START, orders[i]);
		check(text, NULL);
	}
	check(KERNEL("st.shared.u32 [%r1], 0; bar.sync 0;\n" EXCHANGE("")), RACE);
	check(KERNEL("st.shared.u32 [%r1], 0; bar.sync 0;\n" EXCHANGE("bar.warp.sync -1;")), RACE);
	/* a write that changes nothing is no race, whichever thread writes */
	check(KERNEL("st.shared.u32 [%r4], 7; st.shared.u32 [%r4], 7;"), NULL);
	check(KERNEL("st.shared.u32 [%r4], %r0;"), RACE);
	/* one byte each is no race, although the bytes are in one word */
	check(KERNEL("add.u32 %r5, %r4, %r0; cvt.u16.u32 %h1, %r0; st.shared.u8 [%r5], %h1;"),
	      NULL);
	/* between lanes of one warp, a barrier of the warp is enough */
	check(KERNEL("xor.b32 %r5, %r0, 1; shl.b32 %r5, %r5, 4; add.u32 %r5, %r5, %r4;\n"
		     "st.shared.u32 [%r1], %r0; bar.warp.sync -1; ld.shared.u32 %r6, [%r5];"),
	      NULL);
	check(KERNEL("xor.b32 %r5, %r0, 1; shl.b32 %r5, %r5, 4; add.u32 %r5, %r5, %r4;\n"
		     "st.shared.u32 [%r1], %r0; ld.shared.u32 %r6, [%r5];"),
	      RACE);
	/*
	 * atomics do not race with atomics, nor volatile with volatile, but each races with the
	 * rest
	 */
	check(KERNEL("st.shared.u32 [%r4], 0; bar.sync 0; atom.shared.add.u32 %r5, [%r4], 1;"),
	      NULL);
	check(KERNEL("st.shared.u32 [%r4], 0; bar.sync 0; atom.shared.add.u32 %r5, [%r4], 1;\n"
		     "ld.shared.u32 %r6, [%r4];"),
	      RACE);
	check(KERNEL("st.volatile.shared.u32 [%r4], %r0; ld.volatile.shared.u32 %r6, [%r4];"),
	      NULL);
	check(KERNEL("st.shared.u32 [%r1], 0; bar.sync 0; ld.shared.u32 %r5, [%r3];\n"
		     "st.shared.u32 [%r1], 9;"),
	      "a write, after a read by thread (");
}

static void test_lines(void **state)
{
	(void)state;
	check(KERNEL(".loc 2 77 3\nld.global.u32 %r5, [%d0];\n"
		     ".loc 1 5 1\nst.global.u32 [%d0], %r5;") ".file 1 \"/a/b/one.cu\"\n"
							      ".file 2 \"two.cuh\", 123, 456\n",
	      "; kernel k, two.cuh:77, block (0,0,0), thread (0,0,0)\n");
	check(KERNEL("\nld.global.u32 %r5, [%d0];"), "; kernel k, PTX:13, block");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unwritten),
		cmocka_unit_test(test_races),
		cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Wrong input must be reported with its line, and must do no harm: malformed text, wrong types,
 * truncation at any place, random damage, absurd launches, and unsupported instructions.
 */
#include "tests/rounds.h"
#include "tests/unit/ptx/test_ptx_env.h"

#define HEAD		 ".version 8.0\n.target sm_75\n.address_size 64\n"
#define BODY(decl, code) HEAD ".entry k(.param .u64 p)\n{\n" decl "\n" code "\nret;\n}\n"
#define REGS		 ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .f32 %f<4>;"

static void expect(const char *text, enum ptx_status want, unsigned int line)
{
	struct ptx_module *m = (void *)1;
	struct ptx_diag d;
	enum ptx_status st = ptx_load(text, strlen(text), &world_env, &m, &d);

	if (st != want || (line && d.line != line))
		fail_msg("%s, line %u: %s\n  for: %s", ptx_status_name(st), d.line, d.text, text);
	if (st == PTX_OK) {
		ptx_unload(m);
	} else {
		assert_null(m);
		assert_true(d.text[0]);
	}
}

static void test_malformed(void **state)
{
	static const struct {
		const char *text;
		unsigned int line;
	} bad[] = {
		{"", 0},
		{"hello", 1},
		{".target sm_75\n", 1},
		{".version 8.0\n", 0},
		{".version 8.0\n.target nothing\n", 2},
		{HEAD ".frobnicate 1\n", 4},
		{HEAD ".entry k(\n", 0},
		{HEAD ".entry k() { ret;\n", 0},
		{HEAD ".entry k() { ret }\n", 4},
		{HEAD ".entry k() { bra NOWHERE; }\n", 4},
		{HEAD ".entry k() { frob.u32 %r1; }\n", 4},
		{HEAD ".entry k() { add.u32 %r1, %r2, %r3; }\n", 4},
		{HEAD ".entry k() {} .entry k() {}\n", 4},
		{HEAD ".entry k(.param .u32 a, .param .u32 a) {}\n", 4},
		{HEAD ".entry k(.param .q32 a) {}\n", 4},
		{HEAD ".global .u32 x = {1, 2};\n", 4},
		{HEAD ".global .u32 x[2] = {1, 2, 3};\n", 4},
		{HEAD ".global .u32 x[2] = {{{{1}}}};\n", 4},
		{HEAD ".global .u64 x = nobody;\n", 4},
		{HEAD ".global .u32 x[0] = {1, 2, 3};\n", 4},
		{HEAD ".global .u32 x[0][3] = {{1, 2, 3}};\n", 4},
		{HEAD ".extern .global .u32 x[2] = {1, 2};\n", 4},
		{HEAD ".func a(.param .u64 x);\n.entry k(.param .u64 x)\n{ .param .u64 q; "
		      "call a, (q); }\n.alias a, k;\n",
		 6},
		{HEAD ".global .align 3 .u32 x;\n", 4},
		{HEAD ".global .b8 x[18446744073709551615];\n", 4},
		{HEAD ".global .b8 x[99999999999999999999];\n", 4},
		{HEAD ".shared .b8 s[1000000];\n", 4},
		{HEAD "/* no end", 0},
		{HEAD ".section .debug { .b8 1", 0},
		{BODY("", ".reg .u32 %r<99999999>;"), 7},
		{BODY("", ".reg .zip %r;"), 7},
		{BODY(REGS, "vshl.u32.u32.s32.clamp %r1, %r2, %r3;"), 7},
		{BODY(REGS, "add.u32 %r0, %r1, %d0;"), 7},
		{BODY(REGS, "add.u64 %d0, %d1, %r0;"), 7},
		{BODY(REGS, "add.u32 %r0, %r1;"), 7},
		{BODY(REGS, "add.u32 %r0, %r1, %r2, %r3;"), 7},
		{BODY(REGS, "add.pred %p0, %p1, %p2;"), 7},
		{BODY(REGS, "add.u32.u32.u32 %r0, %r1, %r2;"), 7},
		{BODY(REGS, "and.f32 %f0, %f1, %f2;"), 7},
		{BODY(REGS, "rem.f32 %f0, %f1, %f2;"), 7},
		{BODY(REGS, "mul.u32 %r0, %r1, %r2;"), 7},
		{BODY(REGS, "setp.lt.u32 %r0, %r1, %r2;"), 7},
		{BODY(REGS, "setp.zz.u32 %p0, %r1, %r2;"), 7},
		{BODY(REGS, "selp.u32 %r0, %r1, %r2, %r3;"), 7},
		{BODY(REGS, "@%r0 add.u32 %r0, %r1, %r2;"), 7},
		{BODY(REGS, "ld.global.u32 %r0, %d0;"), 7},
		{BODY(REGS, "ld.global.u32 %r0, [%h0];"), 7},
		{BODY(REGS, "ld.global.u32 %h0, [%d0];"), 7},
		{BODY(REGS, "ld.global.v4.u32 {%r0, %r1}, [%d0];"), 7},
		{BODY(REGS, "ld.param.u64 %d0, [p+8];"), 7},
		{BODY(REGS, "ld.param.u64 %d0, [p-8];"), 7},
		{BODY(REGS, "ld.param.u64 %d0, [q];"), 7},
		{BODY(REGS, "st.param.u64 [p], %d0;"), 7},
		{BODY(REGS, "st.const.u32 [%d0], %r0;"), 7},
		{BODY(REGS, "atom.global.inc.f32 %f0, [%d0], %f1;"), 7},
		{BODY(REGS, "mov.b64 {%r0, %r1, %r2}, %d0;"), 7},
		{BODY(REGS, "mov.u32 %r0, %tid;"), 7},
		{BODY(REGS, "mov.u16 %h0, %tid.x;"), 7},
		{BODY(REGS, "mov.u32 %r0, %r99;"), 7},
		{BODY(REGS, "call nobody;"), 7},
		{BODY(REGS, "call (%r0), k, (%r1);"), 7},
		{BODY(REGS, "lop3.b32 %r0, %r1, %r2, %r3, 256;"), 7},
		{BODY(REGS, "mov.f32 %f0, 0f123;"), 7},
		{BODY(REGS, "mov.u32 %r0, 0x;"), 7},
		{BODY(REGS, "mov.u32 %r0, 1 2;"), 7},
		{BODY(REGS, "brx.idx %r0, %r1;"), 7},
		{BODY(REGS, "shfl.sync.up.b32 %r0, %r1, %r2;"), 7},
		{BODY(REGS, "vadd.s32.s32.s32 %r0, %r1.b4, %r2;"), 7},
		{BODY(REGS, "vadd.s32.s32 %r0, %r1, %r2;"), 7},
		{BODY(REGS, "vadd2.s32.s32.s32 %r0.h2, %r1, %r2, %r3;"), 7},
		{BODY(REGS, "vadd2.s32.s32.s32 %r0, %r1.h4, %r2, %r3;"), 7},
		{BODY(REGS, "vset.u32.u32 %r0, %r1, %r2;"), 7},
		{BODY(REGS, "vshl.u32.u32.u32 %r0, %r1, %r2;"), 7},
		{BODY(REGS, "add.frob.u32 %r0, %r1, %r2;"), 7},
		{BODY(REGS, "add.u32 %r0, %r1.b0, %r2;"), 7},
		{BODY(REGS, "add.u32 %r0, -%r1, %r2;"), 7},
		{BODY(REGS, "cvt.rn.e4m3x2.f32 %h0, %f0, %f1;"), 7},
		{BODY(REGS, "cvt.rn.f32.tf32 %f0, %f1;"), 7},
		{BODY(REGS, "cvt.rna.f16.f32 %h0, %f1;"), 7},
		{BODY(REGS, "cvt.frn.f16.f32 %h0, %f1;"), 7},
		{BODY(REGS, "cvt.pack.sat.u8.s32 %r0, %r1, %r2, %r3;"), 7},
		{BODY(REGS, "cvt.pack.u16.s32 %r0, %r1, %r2;"), 7},
		{BODY(REGS, "max.xorsign.f32 %f0, %f1, %f2;"), 7},
		{BODY(REGS, "max.u32 %r0, %r1, %r2, %r3;"), 7},
		{BODY(REGS, "lop3.xor.b32 %r0|%p0, %r1, %r2, %r3, 1, %p1;"), 7},
		{BODY(REGS, "lop3.or.b32 %r0, %r1, %r2, %r3, 1, %p1;"), 7},
		{BODY(REGS, "add.f32.f64 %f0, %d1, %f2;"), 7},
		{BODY(REGS, "mbarrier.init.global.b64 [%d0], 1;"), 7},
		{BODY(REGS, "mbarrier.init.shared.b64 [%r0];"), 7},
		{BODY(REGS, "mbarrier.test_wait.shared.b64 %p0, [%r0], %r1;"), 7},
		{BODY(REGS, "mbarrier.what.shared.b64 [%r0];"), 7},
		{BODY(REGS, "atom.global.add.v2.f64 {%d0, %d1}, [%d0], {%d0, %d1};"), 7},
		{BODY(REGS, "atom.shared.add.v2.f32 {%f0, %f1}, [%r0], {%f0, %f1};"), 7},
		{BODY(REGS, "red.global.add.v2.f32 [%d0], {%f0};"), 7},
		{BODY(REGS, "atom.global.add.b128 %d0, [%d1], %d2;"), 7},
		{BODY(REGS, "setmaxnreg.inc.sync.aligned.u32 65;"), 7},
		{BODY(REGS, "griddepcontrol.what;"), 7},
		{BODY(REGS, "discard.global.L2 [%d0], 64;"), 7},
		{BODY(REGS, "alloca.u64 %d0, 8, 3;"), 7},
		{BODY(REGS, "mapa.u32 %r0, %r1;"), 7},
		{BODY(REGS, "redux.sync.add.f32 %f0, %f1, -1;"), 7},
		{BODY(REGS, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%r1];"), 7},
		{BODY(REGS, "barrier.cluster.arrive.wait;"), 7},
		{BODY(REGS, "{{{{"), 0},
		{HEAD ".func f(.param .u32 a) { ret; }\n.entry k() { call f; }\n", 5},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect(bad[i].text, PTX_INVALID_PTX, bad[i].line);
	expect(HEAD ".func a(); .func b(); .alias a, b; .alias b, a;\n.entry k() { call a; }\n",
	       PTX_OK, 0);
	expect(HEAD ".func f(.reg .pred %p) { ret; }\n", PTX_INVALID_PTX, 4);
	expect(BODY(".reg .b128 %q; .reg .b64 %d;", "call %d, (%q);"), PTX_INVALID_PTX, 7);
	expect(HEAD ".global .b8 big[80000000];\n", PTX_NO_MEMORY, 0);
	for (int i = 0; i < WORLD_MAX; i++)
		assert_false(world.mem[i].addr);
}

/* A kernel with an unsupported instruction does not keep the other kernels from running. */
static void test_unsupported(void **state)
{
	static const char text[] = HEAD
		".func g() {\nwgmma.fence.sync.aligned;\nret;\n}\n"
		".entry exotic() {\ntcgen05.mma.cta_group::1.kind::f16 [a], b, c, d, e, {f};\n}\n"
		".entry below() {\ncall g;\n}\n"
		".entry plain(.param .u64 p) {\n.reg .b64 %d; ld.param.u64 %d, [p];\n"
		"st.global.u32 [%d], 7;\n}\n";
	struct ptx_module *m = must_load(text);
	uint32_t *out = dev_alloc(4);
	struct ptx_diag d;

	(void)state;
	assert_int_equal(launch(m, "exotic", 1, 1, 0, NULL, 0, &d), PTX_UNSUPPORTED);
	assert_int_equal(d.line, 9);
	assert_non_null(strstr(d.text, "tcgen05.mma.cta_group::1"));
	assert_int_equal(launch(m, "below", 1, 1, 0, NULL, 0, &d), PTX_UNSUPPORTED);
	assert_non_null(strstr(d.text, "wgmma.fence"));
	must_launch(m, "plain", 1, 1, 0, &out, sizeof(out));
	assert_int_equal(*out, 7);
	ptx_unload(m);
	dev_free(out);
	expect(HEAD ".extern .func cudaNobody();\n.entry k() { call cudaNobody; }\n", PTX_OK, 0);
}

/*
 * What only new tensor cores have, their copy engine, and instructions that reach across blocks or
 * GPUs: the message has the whole name of the instruction.
 */
static void test_named(void **state)
{
	static const char *const missing[] = {
		"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32 {%f0}, {%r0}, "
		"{%r1}, {%f2};",
		"mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0};",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0}, %d0, %d1, 1, 1, 1, 0, 0;",
		"wgmma.commit_group.sync.aligned;",
		"wgmma.wait_group.sync.aligned 0;",
		"tcgen05.wait::ld.sync.aligned;",
		"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
		"[%r0], [%d0, {%r1, %r2}], [%r2];",
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [%r0], %r1;",
		"prefetch.tensormap [%d0];",
		"tensormap.replace.tile.global_address.global.b1024.b64 [%d0], %d1;",
		"fence.proxy.tensormap::generic.release.gpu;",
		"multimem.ld_reduce.global.add.u32 %r0, [%d0];",
		"multimem.st.global.u32 [%d0], %r0;",
		"multimem.red.global.add.u32 [%d0], %r0;",
		"st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r0], %r1, [%r2];",
		"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
		"[%r0], %r1, [%r2];",
		"st.bulk.weak.shared::cta [%d0], %d1, 0;",
		"clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p0, %d0;",
		"fma.rn.oob.f16 %h0, %h1, %h2, %h3;",
		"cvt.rs.f16x2.f32 %r0, %f1, %f2, %r3;",
		"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2];",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		char text[1024], name[40];
		struct ptx_module *m;
		struct ptx_diag d;
		uint64_t p = 0;

		snprintf(text, sizeof(text), BODY("%s", "%s"), REGS, missing[i]);
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(missing[i], " ;"), missing[i]);
		m = must_load(text);
		if (launch(m, "k", 1, 1, 0, &p, sizeof(p), &d) != PTX_UNSUPPORTED || d.line != 7 ||
		    !strstr(d.text, name))
			fail_msg("%s: line %u: %s", missing[i], d.line, d.text);
		ptx_unload(m);
	}
}

/* A cluster is one block here. A kernel that asks for more does not run. */
static void test_clusters(void **state)
{
	static const char *const sizes[] = {"1", "1, 1, 1", "2", "1, 2", "1, 1, 4294967295"};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		enum ptx_status want = i < 2 ? PTX_OK : PTX_UNSUPPORTED, st;
		char text[1024];
		struct ptx_module *m;
		struct ptx_diag d;
		uint64_t p = 0;

		snprintf(text, sizeof(text),
			 HEAD ".entry k(.param .u64 p)\n.reqnctapercluster %s\n{\nret;\n}\n",
			 sizes[i]);
		m = must_load(text);
		st = launch(m, "k", 1, 1, 0, &p, sizeof(p), &d);
		if (st != want || (st != PTX_OK && !strstr(d.text, ".reqnctapercluster")))
			fail_msg("%s: %s: %s", sizes[i], ptx_status_name(st), d.text);
		ptx_unload(m);
	}
}

/*
 * A module may contain calls of unknown functions. The launch of a kernel with such a call fails,
 * and the message has the function's name.
 */
static void test_unknown_functions(void **state)
{
	static const struct {
		const char *name, *say;
	} all[] = {
		{"cudaGetParameterBufferV2", "launch from a kernel by 'cudaGetParameterBufferV2'"},
		{"cudaLaunchDeviceV2", "launch from a kernel by 'cudaLaunchDeviceV2'"},
		{"__cudaCDP2LaunchDevice", "launch from a kernel by '__cudaCDP2LaunchDevice'"},
		{"__cudaCDP2Memcpy3DAsync", "call of unknown function '__cudaCDP2Memcpy3DAsync'"},
		{"cudaDeviceSynchronize", "call of unknown function 'cudaDeviceSynchronize'"},
		{"_ZN9somewhere4else30a_function_in_another_unit_that_was_never_linkedEPKd",
		 "'_ZN9somewhere4else30a_function_in_another_unit_that_was_never_linkedEPKd'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char text[1024], kernel[3][8] = {"direct", "deep", "pointer"};
		struct ptx_module *m;

		snprintf(text, sizeof(text),
			 HEAD ".extern .func %s();\n.func f() { call %s; ret; }\n"
			      ".entry direct() { call %s; ret; }\n.entry deep() { call f; ret; }\n"
			      ".entry pointer() { .reg .b64 %%d<1>; mov.u64 %%d0, %s;\n"
			      "form: .callprototype _ (); call %%d0, (), form; ret; }\n"
			      ".entry good() { ret; }\n",
			 all[i].name, all[i].name, all[i].name, all[i].name);
		m = must_load(text);
		for (int k = 0; k < 3; k++) {
			struct ptx_diag d;
			enum ptx_status st = launch(m, kernel[k], 1, 1, 0, NULL, 0, &d);

			if (st != PTX_UNSUPPORTED || d.line != (k == 2 ? 9 : 4) ||
			    !strstr(d.text, kernel[k]) ||
			    !strstr(d.text, k == 2 ? all[i].name : all[i].say))
				fail_msg("%s: %s, line %u: %s", all[i].name, ptx_status_name(st),
					 d.line, d.text);
		}
		must_launch(m, "good", 1, 32, 0, NULL, 0);
		ptx_unload(m);
	}
}

static void test_launches(void **state)
{
	static const char text[] =
		HEAD ".entry k(.param .u64 p) {}\n.entry r() .reqntid 32, 2, 1 {}\n"
		     ".entry m() .maxntid 64, 1, 1 {}\n"
		     ".extern .shared .b8 dyn[];\n.entry s() {.shared .b8 x[40000]; ret; }\n";
	static const struct {
		const char *name;
		uint32_t grid[3], block[3], shared;
		size_t bytes;
		enum ptx_status want;
	} all[] = {
		{"k", {1, 1, 1}, {1, 1, 1}, 0, 8, PTX_OK},
		{"k", {1, 1, 1}, {1, 1, 1}, 0, 7, PTX_BAD_LAUNCH},
		{"k", {0, 1, 1}, {1, 1, 1}, 0, 8, PTX_BAD_LAUNCH},
		{"k", {1, 0, 1}, {1, 1, 1}, 0, 8, PTX_BAD_LAUNCH},
		{"k", {1, 65536, 1}, {1, 1, 1}, 0, 8, PTX_BAD_LAUNCH},
		{"k", {0x80000000u, 1, 1}, {1, 1, 1}, 0, 8, PTX_BAD_LAUNCH},
		{"k", {1, 1, 1}, {0, 1, 1}, 0, 8, PTX_BAD_LAUNCH},
		{"k", {1, 1, 1}, {1025, 1, 1}, 0, 8, PTX_BAD_LAUNCH},
		{"k", {1, 1, 1}, {1, 1, 65}, 0, 8, PTX_BAD_LAUNCH},
		{"k", {1, 1, 1}, {1024, 1024, 64}, 0, 8, PTX_BAD_LAUNCH},
		{"k", {1, 1, 1}, {UINT32_MAX, UINT32_MAX, UINT32_MAX}, 0, 8, PTX_BAD_LAUNCH},
		{"k", {1, 1, 1}, {32, 32, 1}, 0, 8, PTX_OK},
		{"k", {1, 1, 1}, {1, 1, 1}, UINT32_MAX, 8, PTX_BAD_LAUNCH},
		{"r", {1, 1, 1}, {64, 1, 1}, 0, 0, PTX_BAD_LAUNCH},
		{"r", {1, 1, 1}, {32, 2, 1}, 0, 0, PTX_OK},
		{"m", {1, 1, 1}, {65, 1, 1}, 0, 0, PTX_BAD_LAUNCH},
		{"s", {1, 1, 1}, {1, 1, 1}, 192000, 0, PTX_OK},
		{"s", {1, 1, 1}, {1, 1, 1}, 193000, 0, PTX_BAD_LAUNCH},
	};
	struct ptx_module *m = must_load(text);
	uint64_t p = 0;
	struct ptx_diag d;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct ptx_launch l = {
			.dynamic_shared = all[i].shared, .params = &p, .param_bytes = all[i].bytes};

		memcpy(l.grid, all[i].grid, sizeof(l.grid));
		memcpy(l.block, all[i].block, sizeof(l.block));
		assert_int_equal(ptx_run(ptx_kernel_find(m, all[i].name), &l, &d), all[i].want);
	}
	assert_null(ptx_kernel_find(m, "x"));
	assert_non_null(ptx_kernel_at(m, 3));
	assert_null(ptx_kernel_at(m, 4));
	ptx_unload(m);
}

static char *slurp(size_t *n)
{
	FILE *f = fopen(PTX_KERNELS ".fast.ptx", "r");
	char *text;
	long len;

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	len = ftell(f);
	rewind(f);
	text = malloc((size_t)len + 1);
	assert_non_null(text);
	*n = fread(text, 1, (size_t)len, f);
	text[*n] = 0;
	fclose(f);
	return text;
}

/* An exact copy of the bytes, so that a sanitizer sees any access beyond them. */
static void try_text(const char *text, size_t n, bool run)
{
	char *copy = malloc(n ? n : 1);
	static uint64_t params[16];
	struct ptx_module *m;
	struct ptx_diag d;
	enum ptx_status st;

	memcpy(copy, text, n);
	st = ptx_load(copy, n, &world_env, &m, &d);
	free(copy);
	if (st != PTX_OK) {
		assert_null(m);
		return;
	}
	for (unsigned int i = 0; run && ptx_kernel_at(m, i); i++) {
		static volatile int cancel = 1;
		struct ptx_launch l = {.grid = {1, 1, 1},
				       .block = {40, 1, 1},
				       .params = params,
				       .param_bytes = sizeof(params),
				       .cancel = &cancel};

		/* null pointers everywhere: the call must return a status, whatever happens */
		ptx_run(ptx_kernel_at(m, i), &l, &d);
	}
	ptx_unload(m);
}

static void test_truncated(void **state)
{
	size_t n;
	char *text = slurp(&n);

	(void)state;
	for (size_t i = 0; i < n; i += SANITIZED ? 389 : 97)
		try_text(text, i, false);
	free(text);
	for (int i = 0; i < WORLD_MAX; i++)
		assert_false(world.mem[i].addr);
}

static void test_damaged(void **state)
{
	static const char *const words[] = {
		"%rd1", "%p1",	"%r2", "0",    "-1",  "0x7fffffffffffffff", "{",   "}", "[", ";",
		".u32", ".f64", ".v4", "@%p1", "bra", ".b8 x[4];",	    "ret;"};
	uint64_t seed = 88172645463325252ull;
	size_t n;
	char *text = slurp(&n), *copy = malloc(n + 64);

	(void)state;
	assert_non_null(copy);
	for (int round = 0; round < ROUNDS(400); round++) {
		size_t len = n;

		memcpy(copy, text, n);
		for (int k = 0; k < 1 + round % 4; k++) {
			size_t at, wl;
			const char *w;

			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			at = (size_t)(seed % (n - 32));
			w = words[(seed >> 32) % (sizeof(words) / sizeof(words[0]))];
			wl = strlen(w);
			if (seed & 1 << 20)
				memcpy(copy + at, w, wl);
			else
				copy[at] = (char)(seed >> 40);
		}
		try_text(copy, len, true);
	}
	free(text);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_unsupported),
		cmocka_unit_test(test_named),
		cmocka_unit_test(test_clusters),
		cmocka_unit_test(test_unknown_functions),
		cmocka_unit_test(test_launches),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Mutations of PTX text. Text with bytes changed at random hardly ever gets past the parser. These
 * mutations often do, and reach the executor: they insert, remove and move lines, and replace
 * registers, modifiers, types and numbers by others.
 */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define LINE_MAX_BYTES 512u
#define WORD_MAX_BYTES 64u

/* Words of the same list may replace one another. */
static const char *const types[] = {".u8",   ".s8",   ".b8",	".u16",	  ".s16",  ".b16",
				    ".u32",  ".s32",  ".b32",	".u64",	  ".s64",  ".b64",
				    ".f16",  ".f32",  ".f64",	".f16x2", ".bf16", ".bf16x2",
				    ".b128", ".pred", ".u16x2", ".s16x2"};
static const char *const spaces[] = {".global", ".shared",	".local", ".param",
				     ".const",	".shared::cta", ".reg"};
static const char *const rounds[] = {".rn",	".rz",	    ".rm",   ".rp",  ".rni",
				     ".rzi",	".rmi",	    ".rpi",  ".ftz", ".sat",
				     ".approx", ".full",    ".wide", ".hi",  ".lo",
				     ".relu",	".xorsign", ".abs",  ".NaN"};
static const char *const compares[] = {".eq",  ".ne",  ".lt",  ".le",  ".gt",  ".ge",
				       ".lo",  ".ls",  ".hi",  ".hs",  ".equ", ".neu",
				       ".ltu", ".leu", ".gtu", ".geu", ".num", ".nan"};
static const char *const atoms[] = {".add", ".min", ".max", ".inc",  ".dec",
				    ".and", ".or",  ".xor", ".exch", ".cas"};
static const char *const syncs[] = {".sync", ".aligned", ".arrive", ".red", ".popc", ".all",
				    ".any",  ".uni",	 ".ballot", ".idx", ".up",   ".down",
				    ".bfly", ".warp",	 ".cta",    ".gpu", ".sys",  ".cluster"};
static const char *const vectors[] = {".v2", ".v4", ".v8"};
static const char *const others[] = {
	".extern",  ".visible", ".weak",	  ".entry",	   ".func",  ".align",	".volatile",
	".relaxed", ".acquire", ".release",	  ".acq_rel",	   ".weak",  ".cg",	".ca",
	".nc",	    ".maxntid", ".reqntid",	  ".noreturn",	   ".alias", ".pragma", ".loc",
	".file",    ".section", ".branchtargets", ".callprototype"};
static const char *const opcodes[] = {
	"abs",	      "activemask",   "add",	    "add.cc",	 "addc",       "and",
	"atom",	      "bar",	      "barrier",    "bfe",	 "bfi",	       "bfind",
	"bmsk",	      "bra",	      "brev",	    "brx.idx",	 "call",       "clz",
	"cnot",	      "copysign",     "cos.approx", "cp.async",	 "cvt",	       "cvta",
	"cvta.to",    "discard",      "div",	    "dp2a",	 "dp4a",       "elect.sync",
	"ex2.approx", "exit",	      "fence",	    "fma",	 "fns",	       "isspacep",
	"istypep",    "ld",	      "lg2.approx", "lop3",	 "mad",	       "mad24",
	"match",      "max",	      "membar",	    "min",	 "mov",	       "mul",
	"mul24",      "nanosleep",    "neg",	    "not",	 "or",	       "popc",
	"prefetch",   "prmt",	      "rcp",	    "red",	 "redux.sync", "rem",
	"ret",	      "rsqrt.approx", "sad",	    "selp",	 "set",	       "setp",
	"shf.l.wrap", "shf.r.clamp",  "shfl",	    "shl",	 "shr",	       "sin.approx",
	"slct",	      "sqrt",	      "st",	    "sub",	 "suld",       "sust",
	"szext",      "tanh.approx",  "testp",	    "tex",	 "trap",       "txq",
	"vote",	      "xor",	      "ld.param",   "st.param",	 "tld4",       "suq",
	"sured",      "mapa",	      "alloca",	    "stacksave", "vabsdiff4",  "vadd"};
static const char *const numbers[] = {"0",
				      "1",
				      "-1",
				      "2",
				      "3",
				      "4",
				      "7",
				      "8",
				      "15",
				      "16",
				      "31",
				      "32",
				      "33",
				      "63",
				      "64",
				      "65",
				      "127",
				      "128",
				      "255",
				      "256",
				      "511",
				      "1023",
				      "1024",
				      "4096",
				      "65535",
				      "65536",
				      "524288",
				      "1048576",
				      "0x7fffffff",
				      "0x80000000",
				      "4294967295",
				      "4294967296",
				      "0x7fffffffffffffff",
				      "0x8000000000000000",
				      "18446744073709551615",
				      "0f3F800000",
				      "0f7FC00000",
				      "0fFF800000",
				      "0f00000001",
				      "0d3FF0000000000000",
				      "0d7FF8000000000000",
				      "0x5410",
				      "1.5",
				      "1e300"};
static const char *const specials[] = {"%tid.x",
				       "%tid.y",
				       "%ntid.x",
				       "%ctaid.x",
				       "%nctaid.x",
				       "%laneid",
				       "%warpid",
				       "%nwarpid",
				       "%smid",
				       "%nsmid",
				       "%gridid",
				       "%clock",
				       "%clock64",
				       "%clock_hi",
				       "%globaltimer",
				       "%globaltimer_lo",
				       "%lanemask_eq",
				       "%lanemask_lt",
				       "%lanemask_ge",
				       "%dynamic_smem_size",
				       "%total_smem_size",
				       "%envreg1",
				       "WARP_SZ",
				       "_",
				       "%tid",
				       "%ctaid"};

#define LIST(a)                             \
	{                                   \
		a, sizeof(a) / sizeof(a[0]) \
	}
static const struct {
	const char *const *words;
	uint32_t count;
} lists[] = {LIST(types),   LIST(spaces), LIST(rounds),	 LIST(compares), LIST(atoms),	LIST(syncs),
	     LIST(vectors), LIST(others), LIST(opcodes), LIST(numbers),	 LIST(specials)};
#define LISTS (sizeof(lists) / sizeof(lists[0]))

/*
 * Whole statements. They use names as nvcc gives them to registers, so they make sense in nvcc's
 * code.
 */
static const char *const statements[] = {
	"\tbar.sync 0;\n",
	"\tbar.sync 1, 32;\n",
	"\tbarrier.sync %r1, %r2;\n",
	"\tbar.red.popc.u32 %r1, 0, %p1;\n",
	"\tbar.warp.sync -1;\n",
	"\tbar.warp.sync %r3;\n",
	"\tvote.sync.ballot.b32 %r1, %p1, %r2;\n",
	"\tshfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;\n",
	"\tshfl.sync.idx.b32 %r1, %r2, %r3, %r4, %r5;\n",
	"\tmatch.any.sync.b32 %r1, %r2, %r3;\n",
	"\tmatch.all.sync.b64 %r1|%p1, %rd2, %r3;\n",
	"\tredux.sync.add.s32 %r1, %r2, %r3;\n",
	"\tactivemask.b32 %r1;\n",
	"\tatom.global.add.u32 %r1, [%rd1], %r2;\n",
	"\tatom.global.cas.b64 %rd1, [%rd2], %rd3, %rd4;\n",
	"\tatom.shared.cas.b16 %rs1, [%r1], %rs2, %rs3;\n",
	"\tatom.global.add.noftz.f16x2 %r1, [%rd1], %r2;\n",
	"\tatom.add.f64 %fd1, [%rd1], %fd2;\n",
	"\tred.shared.max.s32 [%r1], %r2;\n",
	"\tld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+16];\n",
	"\tld.u8 %rs1, [%rd1];\n",
	"\tld.param.u64 %rd1, [%rd2];\n",
	"\tld.volatile.shared.b64 %rd1, [%r1+8];\n",
	"\tst.local.v2.b32 [%rd1], {%r1, %r2};\n",
	"\tst.global.f32 [%rd1+-4], %f1;\n",
	"\tst.shared.b16 [%r1], %rs1;\n",
	"\tld.const.b64 %rd1, [%rd2];\n",
	"\tcp.async.ca.shared.global [%r1], [%rd1], 16, %r2;\n",
	"\tcvta.to.global.u64 %rd1, %rd2;\n",
	"\tcvta.local.u64 %rd1, %rd2;\n",
	"\tcvta.shared.u64 %rd1, %rd2;\n",
	"\tmov.u32 %r1, %tid.x;\n",
	"\tmov.b64 %rd1, {%r1, %r2};\n",
	"\tmov.b64 {%r1, %r2}, %rd1;\n",
	"\tmov.b32 %r1, {%rs1, %rs2};\n",
	"\tmov.u64 %rd1, vprintf;\n",
	"\tmov.u64 %rd1, malloc;\n",
	"\tdiv.s32 %r1, %r2, %r3;\n",
	"\trem.u64 %rd1, %rd2, %rd3;\n",
	"\tdiv.s64 %rd1, %rd2, -1;\n",
	"\tmul.wide.s32 %rd1, %r1, 4;\n",
	"\tadd.s64 %rd1, %rd1, %rd2;\n",
	"\tmad.lo.s32 %r1, %r2, %r3, %r4;\n",
	"\tmadc.hi.cc.u32 %r1, %r2, %r3, %r4;\n",
	"\tmad24.hi.s32 %r1, %r2, %r3, %r4;\n",
	"\tdp4a.s32.u32 %r1, %r2, %r3, %r4;\n",
	"\tprmt.b32.f4e %r1, %r2, %r3, %r4;\n",
	"\tbfe.s64 %rd1, %rd2, %r1, %r2;\n",
	"\tbfi.b32 %r1, %r2, %r3, %r4, %r5;\n",
	"\tbfind.shiftamt.s64 %r1, %rd1;\n",
	"\tshf.l.clamp.b32 %r1, %r2, %r3, %r4;\n",
	"\tlop3.b32 %r1, %r2, %r3, %r4, 0x96;\n",
	"\tshl.b64 %rd1, %rd2, %r1;\n",
	"\tshr.s16 %rs1, %rs2, %r1;\n",
	"\tfns.b32 %r1, %r2, %r3, %r4;\n",
	"\tsad.s32 %r1, %r2, %r3, %r4;\n",
	"\tcvt.rni.s8.f32 %r1, %f1;\n",
	"\tcvt.sat.s64.f64 %rd1, %fd1;\n",
	"\tcvt.rn.f16.f32 %rs1, %f1;\n",
	"\tcvt.rn.bf16x2.f32 %r1, %f1, %f2;\n",
	"\tcvt.rzi.u16.f16 %rs1, %rs2;\n",
	"\tcvt.s32.s8 %r1, %r2;\n",
	"\tfma.rn.f16x2 %r1, %r2, %r3, %r4;\n",
	"\tfma.rm.ftz.sat.f32 %f1, %f2, %f3, %f4;\n",
	"\tsqrt.rn.f64 %fd1, %fd2;\n",
	"\tex2.approx.ftz.f32 %f1, %f2;\n",
	"\tsin.approx.f32 %f1, %f2;\n",
	"\ttanh.approx.f16x2 %r1, %r2;\n",
	"\trcp.approx.ftz.f64 %fd1, %fd2;\n",
	"\tmin.NaN.f32 %f1, %f2, %f3;\n",
	"\tslct.f32.s32 %f1, %f2, %f3, %r1;\n",
	"\ttestp.infinite.f32 %p1, %f1;\n",
	"\tcopysign.f64 %fd1, %fd2, %fd3;\n",
	"\tset.lt.and.f32.s32 %f1, %r1, %r2, %p1;\n",
	"\tsetp.ltu.xor.f16x2 %p1|%p2, %r1, %r2, %p3;\n",
	"\tsetp.lt.s32 %p1, %r1, %r2;\n",
	"\tselp.b64 %rd1, %rd2, %rd3, %p1;\n",
	"\tnot.pred %p1, %p2;\n",
	"\t@%p1 bra $L__BB0_2;\n",
	"\t@!%p1 bra.uni $L__BB0_1;\n",
	"\t@%p1 ret;\n",
	"\t@%p1 exit;\n",
	"$L__BB0_1:\n",
	"$L__BB0_2:\n",
	"\tts: .branchtargets $L__BB0_1, $L__BB0_2;\n",
	"\tbrx.idx %r1, ts;\n",
	"\t.param .b64 param0;\n\tst.param.b64 [param0], %rd1;\n",
	"\t.param .b32 retval0;\n\tcall.uni (retval0), vprintf, (param0, param0);\n",
	"\t.param .b64 retval1;\n\tcall.uni (retval1), malloc, (param0);\n",
	"\tld.param.b64 %rd1, [retval1];\n",
	"\tcall.uni free, (param0);\n",
	"\tcall (retval0), f, (param0);\n",
	"\tcall (retval0), %rd1, (param0), proto;\n",
	"\tproto: .callprototype (.param .b32 _) _ (.param .b64 _);\n",
	"\t.local .align 8 .b8 __local_depot0[64];\n",
	"\t.shared .align 4 .b8 sh[128];\n",
	"\t.reg .b32 %q<4>;\n",
	"\t.reg .v2 .b32 %v;\n",
	".extern .shared .align 16 .b8 dyn[];\n",
	".global .align 8 .u64 table[2] = {f, generic(sh)+4};\n",
	".const .align 4 .b8 cst[8] = {1, 2, 3, 0xff};\n",
	".extern .global .align 4 .b8 ext[];\n",
	".global .align 4 .u32 ext[4] = {1, 2};\n",
	".weak .func (.param .b32 r) f(.param .b64 a, .param .align 8 .b8 s[24])\n{\n\tret;\n}\n",
	".alias f, g;\n",
	"\t.shared .align 8 .b64 bars[4];\n\tmov.u32 %r1, bars;\n",
	"\tmbarrier.init.shared.b64 [%r1], 40;\n",
	"\tmbarrier.init.b64 [%rd1], 1;\n",
	"\tmbarrier.arrive.shared.b64 %rd2, [%r1];\n",
	"\tmbarrier.arrive.noComplete.shared.b64 %rd2, [%r1], 1;\n",
	"\tmbarrier.arrive.expect_tx.shared.b64 %rd2, [%r1], 64;\n",
	"\tmbarrier.arrive_drop.b64 %rd2, [%rd3];\n",
	"\tmbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 24;\n",
	"\tmbarrier.test_wait.shared.b64 %p1, [%r1], %rd2;\n",
	"\tmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2, 1000;\n",
	"\tmbarrier.pending_count.b64 %r1, %rd2;\n",
	"\tmbarrier.inval.shared.b64 [%r1];\n",
	"\tcp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];\n",
	"\tcp.async.cg.shared.global [%r1], [%rd1], 16, %r5;\n",
	"\tcp.async.ca.shared.global [%r1+8], [%rd1+8], 8, !%p2;\n",
	"\tcp.async.commit_group;\n\tcp.async.wait_group 0;\n",
	"\tldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r1];\n",
	"\tldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r4, %r5}, [%r1];\n",
	"\tstmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r1], {%r4, %r5, %r6, %r7};\n",
	"\tmovmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;\n",
	"\tcreatepolicy.fractional.L2::evict_last.b64 %rd2, 0.5;\n",
	"\tgetctarank.shared::cluster.u32 %r1, %r2;\n",
	"\tmapa.shared::cluster.u32 %r1, %r2, 0;\n",
	"\tmapa.u64 %rd1, %rd2, 1;\n",
	"\tgriddepcontrol.wait;\n",
	"\tsetmaxnreg.inc.sync.aligned.u32 64;\n",
	"\talloca.u64 %rd1, %rd2, 16;\n",
	"\talloca.u64 %rd1, 24;\n",
	"\tstacksave.u64 %rd1;\n",
	"\tstackrestore.u64 %rd1;\n",
	"\t.reg .b128 %q<4>;\n\tmov.b128 %q1, {%rd1, %rd2};\n",
	"\tmov.b128 {%rd1, %rd2}, %q1;\n",
	"\tld.global.b128 %q1, [%rd1];\n",
	"\tst.shared.b128 [%r1], %q1;\n",
	"\tatom.global.cas.b128 %q1, [%rd1], %q2, %q3;\n",
	"\tatom.global.exch.b128 %q1, [%rd1], %q2;\n",
	"\tatom.global.add.v4.f32 {%f1, _, %f2, %f3}, [%rd1], {%f1, %f2, %f3, %f4};\n",
	"\tatom.global.add.noftz.v2.bf16 {%rs1, %rs2}, [%rd1], {%rs3, %rs4};\n",
	"\tred.global.max.noftz.v2.f16x2 [%rd1], {%r1, %r2};\n",
	"\tld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];\n",
	"\tcvt.pack.sat.s4.s32.b32 %r1, %r2, %r3, %r4;\n",
	"\tcvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;\n",
	"\tcvt.rn.f16x2.e5m2x2 %r1, %rs1;\n",
	"\tcvt.rna.tf32.f32 %r1, %f1;\n",
	"\tcvt.rn.bf16.s32 %rs1, %r1;\n",
	"\tfma.rn.f32x2 %rd1, %rd2, %rd3, %rd4;\n",
	"\tadd.rz.ftz.f32x2 %rd1, %rd2, %rd3;\n",
	"\tmax.f32 %f1, %f2, %f3, %f4;\n",
	"\tmin.xorsign.abs.f16 %rs1, %rs2, %rs3;\n",
	"\tadd.s16x2 %r1, %r2, %r3;\n",
	"\tmin.relu.s16x2 %r1, %r2, %r3;\n",
	"\tsub.cc.u64 %rd1, %rd2, %rd3;\n\tsubc.u64 %rd1, %rd2, %rd3;\n",
	"\tadd.cc.u32 %r1, %r2, %r3;\n\taddc.u32 %r1, %r2, %r3;\n",
	"\tvadd.s32.u32.s32.sat %r1.b2, %r2.b3, %r3.h0, %r4;\n",
	"\tvmad.s32.u32.s32.sat.shr7 %r1, %r2.b0, %r3.h1, %r4;\n",
	"\tvset4.u32.s32.gt.add %r1, %r2, %r3, %r4;\n",
	"\tvabsdiff4.u32.u32.u32 %r1.b32, %r2.b5432, %r3.b1076, %r4;\n",
	"\tvshl.u32.u32.u32.clamp.max %r1, %r2, %r3, %r4;\n",
	"\tbmsk.clamp.b32 %r1, %r2, %r3;\n",
	"\tszext.wrap.s32 %r1, %r2, %r3;\n",
	"\telect.sync %r1|%p1, -1;\n",
	"\tbarrier.cta.red.popc.aligned.u32 %r1, 1, 64, %p1;\n",
	"\tldu.global.f32 %f1, [%rd1];\n",
	"\tmov.b32 %r1, %envreg2;\n",
	"\tmov.v4.u32 {%r1, %r2, %r3, %r4}, %tid;\n",
	"\tisspacep.shared %p1, %rd1;\n",
	"\tnanosleep.u32 %r1;\n",
	"\tmembar.gl;\n",
	"\tfence.acq_rel.sys;\n",
	"\ttrap;\n",
	"\tdiscard.global.L2 [%rd1], 128;\n",
	"\ttex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];\n",
	"\ttex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5}];\n",
	"\ttex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6, %f7, %f7}];\n",
	"\ttex.a1d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %f6}];\n",
	"\ttex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6, %f7, %f7}];\n",
	"\ttex.acube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%r5, %f6, %f7, %f8}];\n",
	"\ttex.level.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6, %f7, %f7}], %f8;\n",
	"\ttex.grad.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1, {%f5,%f6}], {%f7,%f8}, {%f9,%f1};\n",
	"\ttld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];\n",
	"\ttxq.width.b32 %r1, [%rd1];\n",
	"\tsuq.height.b32 %r1, [%rd1];\n",
	"\tsuld.b.2d.b32.trap {%r1}, [%rd1, {%r2, %r3}];\n",
	"\tsuld.b.a2d.v2.b16.zero {%rs1, %rs2}, [%rd1, {%r2, %r3, %r4, %r4}];\n",
	"\tsust.b.1d.v4.b32.clamp [%rd1, {%r1}], {%r2, %r3, %r4, %r5};\n",
	"\tsust.p.2d.b32.trap [%rd1, {%r2, %r3}], {%r4};\n",
	"\tsured.b.add.2d.u32.clamp [%rd1, {%r2, %r3}], %r4;\n",
	"\t.loc 1 10 3\n",
	"\t.loc 1 10 3, function_name $L__info_string0, inlined_at 1 4 5\n",
	"\t.pragma \"nounroll\";\n",
};
#define STATEMENTS (sizeof(statements) / sizeof(statements[0]))

/* Replaces `cut` bytes at `at` with `n` bytes of `s`. */
static size_t splice(char *text, size_t len, size_t max, size_t at, size_t cut, const char *s,
		     size_t n)
{
	if (len - cut + n > max)
		return len;
	memmove(text + at + n, text + at + cut, len - at - cut);
	memcpy(text + at, s, n);
	return len - cut + n;
}

/* Picks a line. Returns where it begins, and its length with the newline. */
static size_t pick_line(const char *text, size_t len, uint64_t *random, size_t *n)
{
	size_t at = len ? fuzz_random(random, (uint32_t)len) : 0, end;

	while (at && text[at - 1] != '\n')
		at--;
	for (end = at; end < len && text[end] != '\n';)
		end++;
	*n = end - at + (end < len);
	return at;
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.' ||
	       c == ':';
}

/* Picks a word: a register, a number, one modifier, a name. Stores 0 in *n if there is none near.
 */
static size_t pick_word(const char *text, size_t len, uint64_t *random, size_t *n)
{
	size_t at = len ? fuzz_random(random, (uint32_t)len) : 0, end;
	unsigned int tries;

	for (tries = 0; tries < 64 && at < len && !in_word(text[at]); tries++)
		at++;
	*n = 0;
	if (at >= len || !in_word(text[at]))
		return 0;
	while (at && in_word(text[at]) && text[at] != '.' && text[at] != '%' &&
	       in_word(text[at - 1]))
		at--;
	for (end = at + 1; end < len && in_word(text[end]) && text[end] != '.'; end++)
		;
	*n = end - at < WORD_MAX_BYTES ? end - at : WORD_MAX_BYTES;
	return at;
}

/* Returns the list that a word is in, or -1. */
static int list_of(const char *s, size_t n)
{
	for (unsigned int i = 0; i < LISTS; i++)
		for (uint32_t k = 0; k < lists[i].count; k++)
			if (strlen(lists[i].words[k]) == n && !memcmp(lists[i].words[k], s, n))
				return (int)i;
	return -1;
}

/*
 * Most of the time replaces a word with a similar one: a type with a type, a register with a
 * register of the text.
 */
static size_t change_word(char *text, size_t len, size_t max, uint64_t *random)
{
	char other[WORD_MAX_BYTES];
	size_t n, m = 0, at = pick_word(text, len, random, &n);
	int list;

	if (!n)
		return len;
	list = list_of(text + at, n);
	if (isdigit((unsigned char)text[at]))
		list = 9;
	if (list < 0 || !fuzz_random(random, 8)) {
		/*
		 * Take a word from elsewhere, with the same first character if one is soon found.
		 */
		for (unsigned int tries = 0; tries < 16; tries++) {
			size_t from = pick_word(text, len, random, &m);

			memcpy(other, text + from, m);
			if (m && other[0] == text[at] &&
			    (m < 2 || n < 2 || other[1] == text[at + 1]))
				break;
		}
		return m ? splice(text, len, max, at, n, other, m) : len;
	}
	if (!fuzz_random(random, 16))
		list = (int)fuzz_random(random, LISTS);
	{
		const char *w = lists[list].words[fuzz_random(random, lists[list].count)];

		return splice(text, len, max, at, n, w, strlen(w));
	}
}

static size_t move_line(char *text, size_t len, size_t max, uint64_t *random, bool keep)
{
	char line[LINE_MAX_BYTES];
	size_t n, at = pick_line(text, len, random, &n), to, dummy;

	if (n > sizeof(line))
		return len;
	memcpy(line, text + at, n);
	if (!keep)
		len = splice(text, len, max, at, n, "", 0);
	to = pick_line(text, len, random, &dummy);
	return splice(text, len, max, to, 0, line, n);
}

static size_t mutate_once(char *text, size_t len, size_t max, uint64_t *random)
{
	size_t n, at;
	const char *s;

	switch (fuzz_random(random, 16)) {
	case 0:
	case 1:
		at = pick_line(text, len, random, &n);
		return splice(text, len, max, at, n, "", 0);
	case 2:
		return move_line(text, len, max, random, true);
	case 3:
		return move_line(text, len, max, random, false);
	case 4:
	case 5:
	case 6:
	case 7:
		s = statements[fuzz_random(random, STATEMENTS)];
		at = pick_line(text, len, random, &n);
		return splice(text, len, max, at, 0, s, strlen(s));
	case 8: /* insert a modifier */
		at = pick_word(text, len, random, &n);
		s = lists[fuzz_random(random, 8)].words[0];
		return splice(text, len, max, at + n, 0, s, strlen(s));
	case 9: /* remove a word */
		at = pick_word(text, len, random, &n);
		return splice(text, len, max, at, n, "", 0);
	default:
		return change_word(text, len, max, random);
	}
}

size_t fuzz_mutate_ptx(char *text, size_t len, size_t max, uint64_t *random)
{
	unsigned int times = 1 + fuzz_random(random, 4);

	if (!len || !fuzz_random(random, 12))
		return LLVMFuzzerMutate((uint8_t *)text, len, max);
	while (times--)
		len = mutate_once(text, len, max, random);
	return len;
}

size_t fuzz_cross_ptx(const char *a, size_t a_len, const char *b, size_t b_len, char *out,
		      size_t max, uint64_t *random)
{
	unsigned int times = 1 + fuzz_random(random, 8);
	size_t len = a_len < max ? a_len : max;

	memcpy(out, a, len);
	while (times-- && b_len) {
		size_t n, dummy, from = pick_line(b, b_len, random, &n);
		size_t at = pick_line(out, len, random, &dummy);

		len = splice(out, len, max, at, 0, b + from, n);
	}
	return len;
}

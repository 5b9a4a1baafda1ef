/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares one instruction with one C function. Every combination of the given values goes through
 * the instruction, on whole warps and again on single lanes (under a guard). The result must have
 * the same bits as the function's.
 */
#ifndef TEST_PTX_OP_H
#define TEST_PTX_OP_H

#include "tests/unit/ptx/test_ptx_env.h"

typedef uint64_t (*op_fn)(uint64_t a, uint64_t b, uint64_t c);

struct op_case {
	const char *text;    /* with $d, $a, $b, $c for the operands */
	char dt, at, bt, ct; /* registers: h 16 bits, r 32, d 64; '-' none */
	op_fn want;
	const uint64_t *va, *vb, *vc;
	unsigned int na, nb, nc;
};

#define COUNT(v) (sizeof(v) / sizeof((v)[0]))

static inline const char *op_bits(char t)
{
	return t == 'h' ? "16" : t == 'r' ? "32" : "64";
}

static inline uint64_t op_mask(char t)
{
	return t == 'h' ? 0xffff : t == 'r' ? 0xffffffffu : UINT64_MAX;
}

static inline void op_text(const struct op_case *o, char *out, size_t cap)
{
	const char *f = o->text;
	size_t n = 0;

	while (*f && n + 8 < cap) {
		if (*f == '$') {
			n += (size_t)snprintf(out + n, cap - n, "%%%c", f[1] == 'd' ? 'x' : f[1]);
			f += 2;
		} else {
			out[n++] = *f++;
		}
	}
	out[n] = 0;
}

static inline void op_check(const struct op_case *o)
{
	unsigned int nb = o->bt == '-' ? 1 : o->nb, nc = o->ct == '-' ? 1 : o->nc;
	unsigned int n = o->na * nb * nc;
	uint64_t *in = dev_alloc(n * 24), *out = dev_alloc(n * 16);
	char insn[512], text[4096];
	struct ptx_module *m;
	struct {
		void *in, *out;
		uint32_t n, pad;
	} p = {in, out, n, 0};
	char bt = o->bt == '-' ? 'r' : o->bt, ct = o->ct == '-' ? 'r' : o->ct;

	op_text(o, insn, sizeof(insn));
	snprintf(text, sizeof(text),
		 ".version 8.0\n.target sm_90\n.address_size 64\n"
		 ".visible .entry k(.param .u64 pin, .param .u64 pout, .param .u32 pn)\n{\n"
		 ".reg .pred %%p<4>; .reg .b32 %%i<4>; .reg .b64 %%t<6>;\n"
		 ".reg .b%s %%x; .reg .b%s %%a; .reg .b%s %%b; .reg .b%s %%c;\n"
		 "ld.param.u64 %%t0, [pin]; ld.param.u64 %%t1, [pout]; ld.param.u32 %%i0, [pn];\n"
		 "mov.u32 %%i1, %%ctaid.x; mov.u32 %%i2, %%tid.x;\n"
		 "mad.lo.u32 %%i1, %%i1, 64, %%i2;\n"
		 "setp.ge.u32 %%p0, %%i1, %%i0; @%%p0 bra END;\n"
		 "mul.wide.u32 %%t2, %%i1, 24; add.u64 %%t2, %%t0, %%t2;\n"
		 "mul.wide.u32 %%t3, %%i1, 16; add.u64 %%t3, %%t1, %%t3;\n"
		 "ld.global.b%s %%a, [%%t2]; ld.global.b%s %%b, [%%t2+8];\n"
		 "ld.global.b%s %%c, [%%t2+16];\n"
		 "mov.b%s %%x, 0;\n%s\nst.global.b%s [%%t3], %%x;\n"
		 "and.b32 %%i3, %%i2, 1; setp.eq.u32 %%p1, %%i3, 1;\n"
		 "mov.b%s %%x, 0;\n@%%p1 bra ODD;\n%s\nbra.uni JOIN;\nODD:\n%s\nJOIN:\n"
		 "st.global.b%s [%%t3+8], %%x;\nEND: ret;\n}\n",
		 op_bits(o->dt), op_bits(o->at), op_bits(bt), op_bits(ct), op_bits(o->at),
		 op_bits(bt), op_bits(ct), op_bits(o->dt), insn, op_bits(o->dt), op_bits(o->dt),
		 insn, insn, op_bits(o->dt));
	for (unsigned int i = 0; i < n; i++) {
		in[3 * i] = o->va[i % o->na];
		in[3 * i + 1] = o->bt == '-' ? 0 : o->vb[i / o->na % nb];
		in[3 * i + 2] = o->ct == '-' ? 0 : o->vc[i / o->na / nb];
	}
	m = must_load(text);
	must_launch(m, "k", (n + 63) / 64, 64, 0, &p, sizeof(p));
	for (unsigned int i = 0; i < n; i++) {
		uint64_t a = in[3 * i] & op_mask(o->at), b = in[3 * i + 1] & op_mask(bt);
		uint64_t c = in[3 * i + 2] & op_mask(ct);
		uint64_t want = o->want(a, b, c) & op_mask(o->dt);

		for (int k = 0; k < 2; k++)
			if (out[2 * i + (unsigned int)k] != want)
				fail_msg("%s: a=%llx b=%llx c=%llx: %llx instead of %llx (%s)",
					 o->text, (unsigned long long)a, (unsigned long long)b,
					 (unsigned long long)c,
					 (unsigned long long)out[2 * i + (unsigned int)k],
					 (unsigned long long)want, k ? "diverged" : "together");
	}
	ptx_unload(m);
	dev_free(in);
	dev_free(out);
}

#endif

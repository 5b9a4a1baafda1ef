/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of handlers that do arithmetic on registers. There are two such tables, compiled from
 * the same source, which is why the handlers are in headers: one table for any x86-64, and one for
 * processors with AVX2 and FMA. ptx_load() picks one for each module.
 */
#ifndef QCU_SOFT_PTX_OPS_H
#define QCU_SOFT_PTX_OPS_H

#include "qcu-device/soft/ptx/base/ptx_int.h"

/* Kinds of data; B types count as unsigned. The X kinds honour the modifiers in flags. */
enum ptx_kind {
	K_NONE,
	K_PRED,
	K_U16,
	K_S16,
	K_U32,
	K_S32,
	K_U64,
	K_S64,
	K_F16,
	K_BF16,
	K_F16X2,
	K_BF16X2,
	K_U16X2,
	K_S16X2,
	K_F32,
	K_F32X,
	K_F64,
	K_F64X,
	K_COUNT
};

enum ptx_op {
	V_NONE,
	V_MOV,
	V_ADD,
	V_SUB,
	V_MUL, /* .lo for integers */
	V_MULHI,
	V_MULWIDE,
	V_MAD,
	V_MADHI,
	V_MADWIDE,
	V_MUL24,
	V_MUL24HI,
	V_MAD24,
	V_MAD24HI,
	V_MAD24HISAT,
	V_ADDSAT,
	V_SUBSAT,
	V_MADHISAT,
	V_DIV,
	V_REM,
	V_MIN,
	V_MAX,
	V_ABS,
	V_NEG,
	V_SAD,
	V_AND,
	V_OR,
	V_XOR,
	V_NOT,
	V_CNOT,
	V_SHL,
	V_SHR,
	V_POPC,
	V_CLZ,
	V_BREV,
	V_BFIND,
	V_BFINDSHIFT,
	V_BFE,
	V_BFI,
	V_LOP3,
	V_SHFL_WRAP,
	V_SHFL_CLAMP,
	V_SHFR_WRAP,
	V_SHFR_CLAMP,
	V_PRMT,
	V_BMSK,
	V_BMSK_WRAP,
	V_SZEXT,
	V_SZEXT_WRAP,
	V_FNS,
	V_SELP,
	V_SLCT_S32,
	V_SLCT_F32,
	V_ADDC, /* add, sub, mad with carry in or out */
	V_SUBC,
	V_MADC,
	V_DP4A,
	V_DP2A,
	V_FMA,
	V_SQRT,
	V_RCP,
	V_RCP64H, /* rcp.approx.ftz.f64 */
	V_RSQRT,
	V_RSQRT64H,
	V_EX2,
	V_LG2,
	V_SIN,
	V_COS,
	V_TANH,
	V_COPYSIGN,
	V_TESTP,
	V_CVT_S64_S32,
	V_CVT_U64_U32,
	V_CVT_U32_U64,
	V_CVT_F32_S32,
	V_CVT_F32_U32,
	V_CVT_S32_F32_RZ,
	V_CVT_F64_F32,
	V_CVT_F32_F64,
	V_CVT_F64_S32,
	V_SETP, /* with sub = enum ptx_cmp; one entry per kind */
	V_COUNT
};

enum ptx_cmp {
	CMP_EQ,
	CMP_NE,
	CMP_LT,
	CMP_LE,
	CMP_GT,
	CMP_GE,
	CMP_EQU,
	CMP_NEU,
	CMP_LTU,
	CMP_LEU,
	CMP_GTU,
	CMP_GEU,
	CMP_NUM,
	CMP_NAN,
	CMP_COUNT
};

struct ptx_ops {
	ptx_fn op[V_COUNT][K_COUNT];
	ptx_fn setp[CMP_COUNT][K_COUNT];
};

extern const struct ptx_ops ptx_ops_base, ptx_ops_avx2;

/* ptx_misc.c: setp that combines its result with another predicate, or writes two predicates */
void ptx_setp_combine(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m, uint32_t r);

/* Predicate operand c of an instruction, one bit per lane. */
static inline uint32_t ptx_pred_c(struct ptx_warp *w, const struct ptx_insn *in)
{
	uint32_t p = *(uint32_t *)ptx_at(w, in->c);

	return in->flags & IF_NEGC ? ~p : p;
}

#endif

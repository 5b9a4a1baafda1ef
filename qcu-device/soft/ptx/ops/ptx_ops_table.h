/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table itself; PTX_OPS_NAME is the name of the one that is compiled. An empty entry means that
 * PTX has no such instruction for that type.
 */
#include "qcu-device/soft/ptx/ops/ptx_op_int.h"
#include "qcu-device/soft/ptx/ops/ptx_op_float.h"
#include "qcu-device/soft/ptx/ops/ptx_op_cmp.h"
#include "qcu-device/soft/ptx/ops/ptx_op_half.h"

#define U_ALL(n) [K_U16] = n##_u16, [K_U32] = n##_u32, [K_U64] = n##_u64
#define S_ALL(n) [K_S16] = n##_s16, [K_S32] = n##_s32, [K_S64] = n##_s64
#define US_ALL(n)                                                                   \
	[K_U16] = n##_u16, [K_U32] = n##_u32, [K_U64] = n##_u64, [K_S16] = n##_u16, \
	[K_S32] = n##_u32, [K_S64] = n##_u64
#define F_ALL(n) [K_F32] = n##_f32, [K_F32X] = n##_f32x, [K_F64] = n##_f64, [K_F64X] = n##_f64x
#define F_ONE(n) [K_F32] = n##_f32, [K_F32X] = n##_f32x
#define H_ALL(n) \
	[K_F16] = n##_f16, [K_BF16] = n##_bf16, [K_F16X2] = n##_f16x2, [K_BF16X2] = n##_bf16x2
#define BY_SIZE(n) [K_U16] = n##_16, [K_U32] = n##_32, [K_U64] = n##_64
#define SETP_F(c)                                                                       \
	[K_F32] = setp_##c##_f32, [K_F32X] = setp_##c##_f32x, [K_F64] = setp_##c##_f64, \
	[K_F16] = setp_##c##_f16, [K_BF16] = setp_##c##_bf16

const struct ptx_ops PTX_OPS_NAME = {
	.op = {
		[V_MOV] = { BY_SIZE(mov), [K_PRED] = mov_pred },
		[V_ADD] = { US_ALL(add), F_ALL(add), H_ALL(add), [K_U16X2] = add_u16x2,
			    [K_S16X2] = add_u16x2 },
		[V_SUB] = { US_ALL(sub), F_ALL(sub), H_ALL(sub), [K_U16X2] = sub_u16x2,
			    [K_S16X2] = sub_u16x2 },
		[V_MUL] = { US_ALL(mul), F_ALL(mul), H_ALL(mul) },
		[V_MULHI] = { U_ALL(mulhi), S_ALL(mulhi) },
		[V_MULWIDE] = { [K_U16] = mulwide_u16, [K_S16] = mulwide_s16,
				[K_U32] = mulwide_u32, [K_S32] = mulwide_s32 },
		[V_MAD] = { US_ALL(mad) },
		[V_MADHI] = { U_ALL(madhi), S_ALL(madhi) },
		[V_MADWIDE] = { [K_U16] = madwide_u16, [K_S16] = madwide_s16,
				[K_U32] = madwide_u32, [K_S32] = madwide_s32 },
		[V_MUL24] = { [K_U32] = mul24_u32, [K_S32] = mul24_s32 },
		[V_MUL24HI] = { [K_U32] = mul24hi_u32, [K_S32] = mul24hi_s32 },
		[V_MAD24] = { [K_U32] = mad24_u32, [K_S32] = mad24_s32 },
		[V_MAD24HI] = { [K_U32] = mad24hi_u32, [K_S32] = mad24hi_s32 },
		[V_MAD24HISAT] = { [K_S32] = mad24hisat_s32 },
		[V_ADDSAT] = { [K_S32] = addsat_s32 },
		[V_SUBSAT] = { [K_S32] = subsat_s32 },
		[V_MADHISAT] = { [K_S32] = madhisat_s32 },
		[V_DIV] = { U_ALL(div), S_ALL(div), F_ALL(div) },
		[V_REM] = { U_ALL(rem), S_ALL(rem) },
		[V_MIN] = { U_ALL(min), S_ALL(min), F_ONE(min), [K_F64] = min_f64, H_ALL(min),
			    [K_U16X2] = min_u16x2, [K_S16X2] = min_s16x2 },
		[V_MAX] = { U_ALL(max), S_ALL(max), F_ONE(max), [K_F64] = max_f64, H_ALL(max),
			    [K_U16X2] = max_u16x2, [K_S16X2] = max_s16x2 },
		[V_ABS] = { S_ALL(abs), F_ONE(abs), [K_F64] = abs_f64, [K_F16] = abs_f16,
			    [K_BF16] = abs_f16, [K_F16X2] = abs_f16x2, [K_BF16X2] = abs_f16x2 },
		[V_NEG] = { S_ALL(neg), F_ONE(neg), [K_F64] = neg_f64, [K_F16] = neg_f16,
			    [K_BF16] = neg_f16, [K_F16X2] = neg_f16x2, [K_BF16X2] = neg_f16x2 },
		[V_SAD] = { U_ALL(sad), S_ALL(sad) },
		[V_AND] = { U_ALL(and), [K_PRED] = and_pred },
		[V_OR] = { U_ALL(or), [K_PRED] = or_pred },
		[V_XOR] = { U_ALL(xor), [K_PRED] = xor_pred },
		[V_NOT] = { U_ALL(not), [K_PRED] = not_pred },
		[V_CNOT] = { U_ALL(cnot) },
		[V_SHL] = { U_ALL(shl) },
		[V_SHR] = { U_ALL(shr), S_ALL(shr) },
		[V_POPC] = { [K_U32] = popc_32, [K_U64] = popc_64 },
		[V_CLZ] = { [K_U32] = clz_32, [K_U64] = clz_64 },
		[V_BREV] = { [K_U32] = brev_32, [K_U64] = brev_64 },
		[V_BFIND] = { [K_U32] = bfind_u32, [K_S32] = bfind_s32, [K_U64] = bfind_u64,
			      [K_S64] = bfind_s64 },
		[V_BFINDSHIFT] = { [K_U32] = bfindshift_u32, [K_S32] = bfindshift_s32,
				   [K_U64] = bfindshift_u64, [K_S64] = bfindshift_s64 },
		[V_BFE] = { [K_U32] = bfe_u32, [K_S32] = bfe_s32, [K_U64] = bfe_u64,
			    [K_S64] = bfe_s64 },
		[V_BFI] = { [K_U32] = bfi_32, [K_U64] = bfi_64 },
		[V_LOP3] = { [K_U32] = lop3_32 },
		[V_SHFL_WRAP] = { [K_U32] = shf_l_wrap },
		[V_SHFL_CLAMP] = { [K_U32] = shf_l_clamp },
		[V_SHFR_WRAP] = { [K_U32] = shf_r_wrap },
		[V_SHFR_CLAMP] = { [K_U32] = shf_r_clamp },
		[V_PRMT] = { [K_U32] = prmt_32 },
		[V_BMSK] = { [K_U32] = bmsk_clamp },
		[V_BMSK_WRAP] = { [K_U32] = bmsk_wrap },
		[V_SZEXT] = { [K_U32] = szext_u32, [K_S32] = szext_s32 },
		[V_SZEXT_WRAP] = { [K_U32] = szext_wrap_u32, [K_S32] = szext_wrap_s32 },
		[V_FNS] = { [K_U32] = fns_32 },
		[V_SELP] = { BY_SIZE(selp) },
		[V_SLCT_S32] = { BY_SIZE(slct_s) },
		[V_SLCT_F32] = { BY_SIZE(slct_f) },
		[V_ADDC] = { [K_U32] = addc_32, [K_U64] = addc_64 },
		[V_SUBC] = { [K_U32] = subc_32, [K_U64] = subc_64 },
		[V_MADC] = { [K_U32] = madc_32, [K_U64] = madc_64 },
		[V_DP4A] = { [K_U32] = dp4a_32 },
		[V_DP2A] = { [K_U32] = dp2a_32 },
		[V_FMA] = { F_ALL(fma), H_ALL(fma) },
		[V_SQRT] = { F_ALL(sqrt) },
		[V_RCP] = { F_ALL(rcp) },
		[V_RCP64H] = { [K_F64] = rcp64h, [K_F64X] = rcp64h },
		[V_RSQRT] = { F_ALL(rsqrt) },
		[V_RSQRT64H] = { [K_F64] = rsqrt64h, [K_F64X] = rsqrt64h },
		[V_EX2] = { F_ONE(ex2), H_ALL(ex2) },
		[V_LG2] = { F_ONE(lg2) },
		[V_SIN] = { F_ONE(sin) },
		[V_COS] = { F_ONE(cos) },
		[V_TANH] = { F_ONE(tanh), H_ALL(tanh) },
		[V_COPYSIGN] = { [K_F32] = copysign_f32, [K_F64] = copysign_f64 },
		[V_CVT_S64_S32] = { [K_S64] = cvt_s64_s32 },
		[V_CVT_U64_U32] = { [K_U64] = cvt_u64_u32 },
		[V_CVT_U32_U64] = { [K_U32] = cvt_u32_u64 },
		[V_CVT_F32_S32] = { [K_F32] = cvt_f32_s32 },
		[V_CVT_F32_U32] = { [K_F32] = cvt_f32_u32 },
		[V_CVT_S32_F32_RZ] = { [K_S32] = cvt_s32_f32 },
		[V_CVT_F64_F32] = { [K_F64] = cvt_f64_f32 },
		[V_CVT_F32_F64] = { [K_F32] = cvt_f32_f64 },
		[V_CVT_F64_S32] = { [K_F64] = cvt_f64_s32 },
	},
	.setp = {
		[CMP_EQ] = { US_ALL(setp_eq), SETP_F(eq) },
		[CMP_NE] = { US_ALL(setp_ne), SETP_F(ne) },
		[CMP_LT] = { U_ALL(setp_lt), S_ALL(setp_lt), SETP_F(lt) },
		[CMP_LE] = { U_ALL(setp_le), S_ALL(setp_le), SETP_F(le) },
		[CMP_GT] = { U_ALL(setp_gt), S_ALL(setp_gt), SETP_F(gt) },
		[CMP_GE] = { U_ALL(setp_ge), S_ALL(setp_ge), SETP_F(ge) },
		[CMP_EQU] = { SETP_F(equ) },
		[CMP_NEU] = { SETP_F(neu) },
		[CMP_LTU] = { SETP_F(ltu) },
		[CMP_LEU] = { SETP_F(leu) },
		[CMP_GTU] = { SETP_F(gtu) },
		[CMP_GEU] = { SETP_F(geu) },
		[CMP_NUM] = { SETP_F(num) },
		[CMP_NAN] = { SETP_F(nan) },
	},
};

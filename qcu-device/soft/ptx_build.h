/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the builders: handlers that are not in the table of arithmetic operations, and small
 * helpers.
 */
#ifndef QCU_SOFT_PTX_BUILD_H
#define QCU_SOFT_PTX_BUILD_H

#include <string.h>

#include "qcu-device/soft/ptx_ops.h"
#include "qcu-device/soft/ptx_parse.h"

/* ptx_misc.c */
void ptx_h_pack(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_unpack(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_time(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_testp(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_isspacep(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_activemask(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_fence(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_nop(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_yield(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_mapa(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_mov128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_minmax(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_setp2(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_cvt.c */
void ptx_h_cvt(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_cvt_pack(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_cvt_tf32(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_cvt_to_small(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_cvt_from_small(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_cvt_pair(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_mem.c */
void ptx_h_ld(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_ld_vec(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_st(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_st_vec(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_ld_area(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_st_area(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_ld_kparam(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_cp_async(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_ld128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_st128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_video.c */
void ptx_h_video(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_mbar.c */
void ptx_h_mbarrier(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_mbarrier_count(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_matrix.c */
void ptx_h_ldmatrix(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_stmatrix(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_movmatrix(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_stack.c */
void ptx_h_alloca(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_stacksave(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_stackrestore(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_atom.c */
void ptx_h_atom_vec(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_atom128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_atom(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);

/* Operations of atom and red, in ptx_insn.sub. */
enum ptx_atom {
	ATOM_ADD,
	ATOM_MIN,
	ATOM_MAX,
	ATOM_INC,
	ATOM_DEC,
	ATOM_AND,
	ATOM_OR,
	ATOM_XOR,
	ATOM_EXCH,
	ATOM_CAS,
};

/* Operations that several lanes do together, in ptx_insn.sub. */
enum ptx_lanes_op {
	LANES_SHFL_UP,
	LANES_SHFL_DOWN,
	LANES_SHFL_BFLY,
	LANES_SHFL_IDX,
	LANES_VOTE_ALL,
	LANES_VOTE_ANY,
	LANES_VOTE_UNI,
	LANES_VOTE_BALLOT,
	LANES_MATCH_ANY,
	LANES_MATCH_ALL,
	LANES_REDUX_ADD,
	LANES_REDUX_MIN,
	LANES_REDUX_MAX,
	LANES_REDUX_AND,
	LANES_REDUX_OR,
	LANES_REDUX_XOR,
	LANES_SYNC,
	LANES_ELECT,
};

/* ptx_build_mixed.c; op is done in single precision */
enum ptx_status ptx_build_mixed(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op);
enum ptx_status ptx_build_f32x2(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op,
				unsigned int nsrc);

/* Kinds of barrier, in ptx_insn.sub. */
enum ptx_bar_op {
	BAR_SYNC,
	BAR_ARRIVE,
	BAR_POPC,
	BAR_AND,
	BAR_OR,
	BAR_CLUSTER_ARRIVE,
	BAR_CLUSTER_WAIT,
};

/* Operations on an mbarrier, in ptx_insn.sub. Their variants, MBAR_ARRIVE etc., are in flags. */
enum ptx_mbar_op {
	MBAR_INIT,
	MBAR_INVAL,
	MBAR_EXPECT_TX,
	MBAR_COMPLETE_TX,
	MBAR_ARRIVE_ON,
	MBAR_TEST,
	MBAR_TRACK, /* cp.async.mbarrier.arrive */
};
/* For ptx_insn.flags, which may also hold IF_A32. */
#define MBAR_ARRIVE	 0x01u /* expect_tx that also arrives */
#define MBAR_DROP	 0x02u
#define MBAR_NO_COMPLETE 0x04u
#define MBAR_PARITY	 0x08u

/* An address as written in the PTX text; see ptx_build_mem.c. */
struct ptx_place {
	uint32_t ref;
	int64_t imm;
	bool a32;
	struct ptx_sym *param; /* not NULL: a parameter, given by name */
};
struct ptx_place ptx_address(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i,
			     enum ptx_space sp);
void ptx_set_address(struct ptx_insn *in, const struct ptx_place *p, enum ptx_space sp);
uint16_t ptx_order_flags(const struct ptx_stmt *s);
bool ptx_is_space(const char *m, enum ptx_space *sp);
bool ptx_is_hint(const char *m);

/* Returns the kind of a type. A .b type counts as unsigned. */
static inline enum ptx_kind ptx_kind(enum ptx_type t)
{
	static const uint8_t k[T_COUNT] = {
		[T_PRED] = K_PRED,   [T_B16] = K_U16,	  [T_U16] = K_U16,
		[T_S16] = K_S16,     [T_F16] = K_F16,	  [T_BF16] = K_BF16,
		[T_B32] = K_U32,     [T_U32] = K_U32,	  [T_S32] = K_S32,
		[T_F32] = K_F32,     [T_F16X2] = K_F16X2, [T_BF16X2] = K_BF16X2,
		[T_U16X2] = K_U16X2, [T_S16X2] = K_S16X2, [T_B64] = K_U64,
		[T_U64] = K_U64,     [T_S64] = K_S64,	  [T_F64] = K_F64,
	};

	return (enum ptx_kind)k[t];
}

/* Returns the kind by size alone, for operations that only move bits. */
static inline enum ptx_kind ptx_kind_bits(enum ptx_type t)
{
	switch (ptx_type_size(t)) {
	case 1:
		return t == T_PRED ? K_PRED : K_NONE;
	case 2:
		return K_U16;
	case 4:
		return K_U32;
	case 8:
		return K_U64;
	default:
		return K_NONE;
	}
}

/* Returns the type that is twice as wide, or T_NONE. */
static inline enum ptx_type ptx_type_wide(enum ptx_type t)
{
	switch (t) {
	case T_U16:
		return T_U32;
	case T_S16:
		return T_S32;
	case T_U32:
		return T_U64;
	case T_S32:
		return T_S64;
	default:
		return T_NONE;
	}
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the builders, which turn statements into decoded instructions.
 */
#ifndef QCU_SOFT_PTX_BUILD_H
#define QCU_SOFT_PTX_BUILD_H

#include <string.h>

#include "qcu-device/soft/ptx/exec/ptx_exec.h"
#include "qcu-device/soft/ptx/memory/ptx_mem.h"
#include "qcu-device/soft/ptx/ops/ptx_handlers.h"
#include "qcu-device/soft/ptx/text/ptx_parse.h"

/* ptx_emit.c */
struct ptx_insn *ptx_emit(struct ptx_parser *P, const struct ptx_stmt *s, ptx_fn fn);
/* Marks a function that needs what the machine does not have: launches that reach it fail. */
void ptx_mark_bad(struct ptx_func *f, const char *text, unsigned int line);
void ptx_emit_bad(struct ptx_parser *P, const char *text, unsigned int line);
uint32_t ptx_const(struct ptx_parser *P, unsigned int width, uint64_t v);
uint32_t ptx_const_own(struct ptx_parser *P, unsigned int width);
uint32_t ptx_xop(struct ptx_parser *P, uint32_t ref);

/* ptx_place.c */
uint32_t ptx_var_ref(struct ptx_parser *P, struct ptx_var *v);
bool ptx_var_place(struct ptx_module *m, struct ptx_var *v);

void ptx_shared_use(struct ptx_parser *P, struct ptx_var *v);
uint32_t ptx_shared_const(struct ptx_parser *P, struct ptx_var *v, unsigned int width,
			  uint64_t add);
void ptx_shared_fix_insns(struct ptx_parser *P, uint32_t from);

/* An address as written in the PTX text */
struct ptx_text_address {
	uint32_t ref;
	int64_t imm;
	bool a32;
	struct ptx_sym *param; /* not NULL: a parameter, given by name */
};
struct ptx_text_address ptx_address(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i,
				    enum ptx_space sp);
void ptx_set_address(struct ptx_insn *in, const struct ptx_text_address *p, enum ptx_space sp);
uint16_t ptx_order_flags(const struct ptx_stmt *s);
bool ptx_is_space(const char *m, enum ptx_space *sp);
bool ptx_is_hint(const char *m);

/* ptx_refs.c */
uint32_t ptx_src(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i, enum ptx_type t);
uint32_t ptx_src_opnd(struct ptx_parser *P, struct ptx_stmt *s, struct ptx_opnd *o,
		      enum ptx_type t);
uint32_t ptx_src_any(struct ptx_parser *P, struct ptx_stmt *s, struct ptx_opnd *o, enum ptx_type t,
		     unsigned int *width);
uint32_t ptx_dst(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i, enum ptx_type t);
uint32_t ptx_dst_opnd(struct ptx_parser *P, struct ptx_opnd *o, enum ptx_type t);
uint32_t ptx_src_pred(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i, bool *neg);
void ptx_want(struct ptx_parser *P, const struct ptx_stmt *s, unsigned int min, unsigned int max);
uint16_t ptx_float_flags(const struct ptx_stmt *s);
uint64_t ptx_imm_bits(const struct ptx_opnd *o, enum ptx_type t);

/* ptx_build_mixed.c; op is done in single precision */
enum ptx_status ptx_build_mixed(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op);
enum ptx_status ptx_build_f32x2(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op,
				unsigned int nsrc);

/* ptx_build_*.c: one function per family of instructions */
typedef enum ptx_status (*ptx_build_fn)(struct ptx_parser *P, struct ptx_stmt *s);
struct ptx_build_entry {
	const char *op;
	ptx_build_fn fn;
};
extern const struct ptx_build_entry ptx_build_int[], ptx_build_float[], ptx_build_mem[],
	ptx_build_ctl[], ptx_build_sync[], ptx_build_video[], ptx_build_atom[], ptx_build_cvt[],
	ptx_build_tex[], ptx_build_mma[];
ptx_build_fn ptx_build_find(const char *op);
enum ptx_status ptx_build_stmt(struct ptx_parser *P, struct ptx_stmt *s);
bool ptx_is_video(const char *op);
bool ptx_known_opcode(const char *op);
/*
 * True for instructions that have a builder, but not with these modifiers. Their operands look
 * different.
 */
bool ptx_known_form(const struct ptx_stmt *s);

/* Forms that one file of builders uses from another */
enum ptx_status ptx_build_minmax(struct ptx_parser *P, struct ptx_stmt *s, bool max);
void ptx_gather_warp(struct ptx_parser *P, struct ptx_stmt *s);
void ptx_build_complete_tx(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i,
			   uint32_t bytes);
enum ptx_status ptx_build_cp_mbarrier(struct ptx_parser *P, struct ptx_stmt *s);

/* ptx_build_call.c: a call has a syntax of its own */
void ptx_parse_call(struct ptx_parser *P, struct ptx_stmt *s);

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

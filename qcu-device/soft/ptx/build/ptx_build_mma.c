// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builders for the instructions of tensor cores: mma and wmma. Products of sparse matrices and of
 * scaled formats name themselves when they run.
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"
#include "qcu-device/soft/ptx/memory/ptx_mma.h"

static const char *const elem_names[E_COUNT] = {
	[E_F16] = "f16",   [E_BF16] = "bf16", [E_TF32] = "tf32", [E_F32] = "f32", [E_F64] = "f64",
	[E_E4M3] = "e4m3", [E_E5M2] = "e5m2", [E_S8] = "s8",	 [E_U8] = "u8",	  [E_S4] = "s4",
	[E_U4] = "u4",	   [E_B1] = "b1",     [E_S32] = "s32",
};

/* The modifiers of an instruction, sorted out. */
struct words {
	enum ptx_elem elem[4];
	unsigned int nelem, nlayout;
	bool column[2]; /* row or col, in order */
	bool sat, xor, and, popc, sync, aligned;
	const char *matrix; /* wmma: a, b, c, d or mma */
	struct ptx_mma s;
	enum ptx_space space;
};

static bool read_shape(const char *m, struct ptx_mma *s)
{
	static const struct {
		const char *name;
		uint8_t m, n;
		uint16_t k;
	} shapes[] = {
		{"m8n8k4", 8, 8, 4},	   {"m16n8k4", 16, 8, 4},     {"m16n8k8", 16, 8, 8},
		{"m16n8k16", 16, 8, 16},   {"m16n8k32", 16, 8, 32},   {"m16n8k64", 16, 8, 64},
		{"m8n8k16", 8, 8, 16},	   {"m8n8k32", 8, 8, 32},     {"m8n8k128", 8, 8, 128},
		{"m16n8k128", 16, 8, 128}, {"m16n8k256", 16, 8, 256}, {"m16n16k16", 16, 16, 16},
		{"m8n32k16", 8, 32, 16},   {"m32n8k16", 32, 8, 16},   {"m16n16k8", 16, 16, 8},
	};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (!strcmp(m, shapes[i].name)) {
			s->m = shapes[i].m;
			s->n = shapes[i].n;
			s->k = shapes[i].k;
			return true;
		}
	return false;
}

/* False: a word is not known here. */
static bool read_words(const struct ptx_stmt *s, struct words *w)
{
	*w = (struct words){0};
	for (unsigned int i = 0; i < s->nmod; i++) {
		const char *m = s->mod[i];
		int e = E_COUNT;

		while (--e > E_NONE && strcmp(m, elem_names[e]))
			;
		if (e > E_NONE && w->nelem < 4)
			w->elem[w->nelem++] = (enum ptx_elem)e;
		else if ((!strcmp(m, "row") || !strcmp(m, "col")) && w->nlayout < 2)
			w->column[w->nlayout++] = *m == 'c';
		else if (!strcmp(m, "satfinite"))
			w->sat = true;
		else if (!strcmp(m, "xor"))
			w->xor = true;
		else if (!strcmp(m, "and"))
			w->and = true;
		else if (!strcmp(m, "popc"))
			w->popc = true;
		else if (!strcmp(m, "sync"))
			w->sync = true;
		else if (!strcmp(m, "aligned"))
			w->aligned = true;
		else if (!i && (!strcmp(m, "load") || !strcmp(m, "store") || !strcmp(m, "mma")))
			w->matrix = m;
		else if (i == 1 && m[0] >= 'a' && m[0] <= 'd' && !m[1])
			w->matrix = m;
		else if (strcmp(m, "rn") && !ptx_is_space(m, &w->space) && !read_shape(m, &w->s))
			return false;
	}
	return true;
}

/* Which elements and shapes go together. The shapes are numbers of k for m8n8, m16n8 and wmma. */
static bool has_allowed_shape(const struct ptx_mma *s, bool wmma)
{
	enum ptx_elem a = (enum ptx_elem)s->elem[MATRIX_A], b = (enum ptx_elem)s->elem[MATRIX_B];
	enum ptx_elem c = (enum ptx_elem)s->elem[MATRIX_C], d = (enum ptx_elem)s->elem[MATRIX_D];
	bool small = s->m == 8 && s->n == 8, tall = s->m == 16 && s->n == 8;
	bool wide = s->m * s->n == 256 && s->k == 16;
	bool floats = (c == E_F16 || c == E_F32) && (d == E_F16 || d == E_F32);
	bool ints = c == E_S32 && d == E_S32;

	switch (a) {
	case E_F16:
		return b == E_F16 && floats && (wmma ? wide : tall && (s->k == 8 || s->k == 16));
	case E_BF16:
		return b == E_BF16 && c == E_F32 && d == E_F32 &&
		       (wmma ? wide : tall && (s->k == 8 || s->k == 16));
	case E_TF32:
		return b == E_TF32 && c == E_F32 && d == E_F32 &&
		       (wmma ? s->n == 16 && s->k == 8 : tall && (s->k == 4 || s->k == 8));
	case E_F64:
		return b == E_F64 && c == E_F64 && d == E_F64 &&
		       ((small && s->k == 4) || (!wmma && tall && s->k >= 4 && s->k <= 16));
	case E_E4M3:
	case E_E5M2:
		return !wmma && (b == E_E4M3 || b == E_E5M2) && floats && tall &&
		       (s->k == 16 || s->k == 32);
	case E_S8:
	case E_U8:
		if (wmma)
			return b == a && ints && wide;
		return (b == E_S8 || b == E_U8) && ints &&
		       ((small && s->k == 16) || (tall && (s->k == 16 || s->k == 32)));
	case E_S4:
	case E_U4:
		if (wmma && b != a)
			return false;
		return (b == E_S4 || b == E_U4) && ints &&
		       ((small && s->k == 32) || (!wmma && tall && (s->k == 32 || s->k == 64)));
	case E_B1:
		return b == E_B1 && ints &&
		       ((small && s->k == 128) || (!wmma && tall && (s->k == 128 || s->k == 256)));
	default:
		return false;
	}
}

static struct ptx_mma_layout *layout_of(struct ptx_parser *P, const struct ptx_mma *s)
{
	struct ptx_mma_layout *y;

	for (y = P->m->layouts; y; y = y->next)
		if (!memcmp(&y->s, s, sizeof(*s)))
			return y;
	y = ptx_malloc_arena(P, sizeof(*y));
	y->s = *s;
	if (!ptx_mma_layout(y))
		ptx_fail(P, PTX_INVALID_PTX, "%s: no such shape", P->stmt.text);
	y->next = P->m->layouts;
	P->m->layouts = y;
	return y;
}

static enum ptx_type reg_type(const struct ptx_mma *s, enum ptx_matrix matrix)
{
	return s->elem[matrix] == E_F64 ? T_B64 : T_B32;
}

/* Reads the registers of operand i into ref, whose number must be n. */
static void fragment(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i, enum ptx_type t,
		     unsigned int n, bool written, uint32_t *ref)
{
	struct ptx_opnd *o = &s->op_[i];
	unsigned int have = o->kind == O_VEC ? o->nvec : 1;

	if (have != n)
		ptx_fail(P, PTX_INVALID_PTX, "%s: %u registers where %u are needed", s->text, have,
			 n);
	if (o->kind == O_VEC)
		o = o->vec;
	for (unsigned int k = 0; k < n; k++)
		ref[k] = written ? ptx_dst_opnd(P, &o[k], t) : ptx_src_opnd(P, s, &o[k], t);
}

static enum ptx_status product(struct ptx_parser *P, struct ptx_stmt *s,
			       const struct ptx_mma *shape, uint16_t flags)
{
	static const uint8_t order[4] = {MATRIX_D, MATRIX_A, MATRIX_B, MATRIX_C};
	unsigned int n[4], all = 0;
	uint32_t ref[4 * PTX_MAX_VEC], x;
	struct ptx_mma_layout *y;
	struct ptx_insn *in;

	ptx_want(P, s, 4, 4);
	for (unsigned int i = 0; i < 4; i++) {
		enum ptx_matrix matrix = (enum ptx_matrix)order[i];

		n[i] = ptx_mma_regs(shape, matrix, flags);
		if (n[i] > PTX_MAX_VEC)
			return PTX_INVALID_PTX;
		fragment(P, s, i, reg_type(shape, matrix), n[i], matrix == MATRIX_D, ref + all);
		all += n[i];
	}
	ptx_gather_warp(P, s);
	y = flags & MMA_QUADS ? ptx_malloc_arena(P, sizeof(*y)) : layout_of(P, shape);
	y->s = *shape;
	x = P->m->nxops;
	for (unsigned int i = 0; i < all; i++)
		ptx_xop(P, ref[i]);
	in = ptx_emit(P, s, ptx_h_mma);
	in->x = x;
	in->nx = (uint8_t)all;
	in->sub = (uint8_t)n[0];
	in->flags = flags;
	in->imm = (int64_t)(uintptr_t)y;
	return PTX_OK;
}

static void set_elems(struct ptx_mma *s, enum ptx_elem d, enum ptx_elem a, enum ptx_elem b,
		      enum ptx_elem c)
{
	s->elem[MATRIX_A] = (uint8_t)a;
	s->elem[MATRIX_B] = (uint8_t)b;
	s->elem[MATRIX_C] = (uint8_t)c;
	s->elem[MATRIX_D] = (uint8_t)d;
}

/* The flags that a product of bits and one that stops at the largest number have. */
static bool product_flags(const struct words *w, uint16_t *flags)
{
	bool bits = w->s.elem[MATRIX_A] == E_B1;

	if (bits != w->popc || bits != (w->xor != w->and) || (w->xor &&w->and))
		return false;
	if (w->sat && w->s.elem[MATRIX_C] != E_S32 && !(*flags & MMA_WMMA))
		return false;
	*flags |= (w->and ? MMA_AND : 0) | (w->sat ? IF_SAT : 0);
	return w->sync && w->aligned;
}

static enum ptx_status b_mma(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint16_t flags = 0;
	struct words w;

	if (!read_words(s, &w))
		return PTX_UNSUPPORTED;
	if (w.matrix || w.nelem != 4 || w.nlayout != 2 || !w.s.m)
		return PTX_INVALID_PTX;
	set_elems(&w.s, w.elem[0], w.elem[1], w.elem[2], w.elem[3]);
	if (!product_flags(&w, &flags))
		return PTX_INVALID_PTX;
	if (w.s.m == 8 && w.s.k == 4 && w.elem[1] == E_F16) {
		bool floats = (w.elem[0] == E_F16 || w.elem[0] == E_F32) &&
			      (w.elem[3] == E_F16 || w.elem[3] == E_F32);

		if (w.elem[2] != E_F16 || !floats)
			return PTX_INVALID_PTX;
		flags |= MMA_QUADS | (w.column[0] ? MMA_A_COL : 0) | (w.column[1] ? 0 : MMA_B_ROW);
	} else if (!has_allowed_shape(&w.s, false) || w.column[0] || !w.column[1]) {
		return PTX_INVALID_PTX;
	}
	return product(P, s, &w.s, flags);
}

static enum ptx_status wmma_mma(struct ptx_parser *P, struct ptx_stmt *s, struct words *w)
{
	uint16_t flags = MMA_WMMA;

	if (w->nlayout != 2)
		return PTX_INVALID_PTX;
	if (w->nelem == 2)
		set_elems(&w->s, w->elem[0], E_F16, E_F16, w->elem[1]);
	else if (w->nelem == 4)
		set_elems(&w->s, w->elem[0], w->elem[1], w->elem[2], w->elem[3]);
	else
		return PTX_INVALID_PTX;
	if (!product_flags(w, &flags) || !has_allowed_shape(&w->s, true))
		return PTX_INVALID_PTX;
	return product(P, s, &w->s, flags);
}

/* Sets the elements that a fragment's own one is used with, so that has_allowed_shape() can tell
 * the shape. */
static bool fragment_shape(struct words *w, enum ptx_matrix matrix)
{
	static const enum ptx_elem with[][2] = {{E_F16, E_F32},	 {E_F16, E_F16}, {E_BF16, E_F32},
						{E_TF32, E_F32}, {E_F64, E_F64}, {E_S8, E_S32},
						{E_U8, E_S32},	 {E_S4, E_S32},	 {E_U4, E_S32},
						{E_B1, E_S32}};

	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
		if (with[i][matrix >= MATRIX_C] != w->elem[0])
			continue;
		set_elems(&w->s, with[i][1], with[i][0], with[i][0], with[i][1]);
		if (has_allowed_shape(&w->s, true))
			return true;
	}
	return false;
}

static enum ptx_status wmma_memory(struct ptx_parser *P, struct ptx_stmt *s, struct words *w,
				   enum ptx_matrix matrix)
{
	bool load = matrix != MATRIX_D;
	unsigned int n, at = load ? 1 : 0;
	uint32_t ref[PTX_MAX_VEC], far = 0, e, x;
	struct ptx_mma_layout *y;
	struct ptx_text_address p;
	struct ptx_insn *in;

	if (!w->sync || !w->aligned || w->nelem != 1 || w->nlayout != 1 || w->popc ||
	    !fragment_shape(w, matrix))
		return PTX_INVALID_PTX;
	if (w->space != SPACE_GENERIC && w->space != SPACE_GLOBAL && w->space != SPACE_SHARED)
		return PTX_INVALID_PTX;
	/* Elements smaller than a byte lie in words: A by rows, B by columns. */
	if (matrix <= MATRIX_B && ptx_elem_bits(w->elem[0]) < 8 &&
	    w->column[0] != (matrix == MATRIX_B))
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 3);
	n = ptx_mma_regs(&w->s, matrix, MMA_WMMA);
	if (n > PTX_MAX_VEC)
		return PTX_INVALID_PTX;
	y = layout_of(P, &w->s);
	p = ptx_address(P, s, at, w->space);
	fragment(P, s, load ? 0 : 1, reg_type(&w->s, matrix), n, load, ref);
	if (s->nop > 2)
		far = ptx_src(P, s, 2, T_U32);
	e = ptx_const(P, 8, (uint64_t)(uintptr_t)&y->s);
	ptx_gather_warp(P, s);
	x = P->m->nxops;
	for (unsigned int i = 0; i < n; i++)
		ptx_xop(P, ref[i]);
	in = ptx_emit(P, s, load ? ptx_h_wmma_load : ptx_h_wmma_store);
	ptx_set_address(in, &p, w->space);
	in->b = far;
	in->e = e;
	in->x = x;
	in->nx = (uint8_t)n;
	in->sub = (uint8_t)(matrix | (w->column[0] ? WMMA_BY_COLUMN : 0));
	return PTX_OK;
}

static enum ptx_status b_wmma(struct ptx_parser *P, struct ptx_stmt *s)
{
	const char *what = s->nmod ? s->mod[0] : "";
	struct words w;

	if (!read_words(s, &w))
		return PTX_UNSUPPORTED;
	if (!w.matrix || !w.s.m)
		return PTX_INVALID_PTX;
	if (!strcmp(what, "mma"))
		return wmma_mma(P, s, &w);
	if (!strcmp(what, "load") && *w.matrix >= 'a' && *w.matrix <= 'c' && !w.matrix[1])
		return wmma_memory(P, s, &w, (enum ptx_matrix)(*w.matrix - 'a'));
	if (!strcmp(what, "store") && *w.matrix == 'd' && !w.matrix[1])
		return wmma_memory(P, s, &w, MATRIX_D);
	return PTX_INVALID_PTX;
}

const struct ptx_build_entry ptx_build_mma[] = {
	{"mma", b_mma},
	{"wmma", b_wmma},
	{NULL, NULL},
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builders for loads, stores, fences, asynchronous copies, and other instructions about addresses.
 * Atomics are in ptx_build_atom.c.
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"

/* Reads the modifiers of a load or store. False: one of them is unknown. */
static bool mem_mods(const struct ptx_stmt *s, enum ptx_space *sp, unsigned int *vec)
{
	*sp = SPACE_GENERIC;
	*vec = 1;
	for (unsigned int i = 0; i < s->nmod; i++) {
		const char *m = s->mod[i];

		if (!strcmp(m, "v2"))
			*vec = 2;
		else if (!strcmp(m, "v4"))
			*vec = 4;
		else if (!strcmp(m, "v8"))
			*vec = 8;
		else if (!ptx_is_space(m, sp) && !ptx_is_hint(m) && !ptx_type_from(m, strlen(m)))
			return false;
	}
	return true;
}

/*
 * Returns the offset of a named parameter's bytes. Range and alignment are checked here, and not
 * again at run time.
 */
static uint32_t param_off(struct ptx_parser *P, struct ptx_stmt *s,
			  const struct ptx_text_address *p, unsigned int at, unsigned int size)
{
	struct ptx_sym *y = p->param;
	int64_t off = p->imm + at;

	if (off < 0 || (uint64_t)off > y->size || size > y->size - (uint64_t)off)
		ptx_fail(P, PTX_INVALID_PTX, "%s: beyond the end of parameter '%s'", s->text,
			 y->name);
	off += y->off;
	if (off % size)
		ptx_fail(P, PTX_INVALID_PTX, "%s: misaligned access to parameter '%s'", s->text,
			 y->name);
	return (uint32_t)off;
}

/* Stores the refs and widths of the registers of a load or store: one register, or a vector. */
static void data_regs(struct ptx_parser *P, struct ptx_stmt *s, struct ptx_opnd *o, bool load,
		      enum ptx_type t, unsigned int vec, uint32_t *ref, uint8_t *width)
{
	struct ptx_opnd *v = o->kind == O_VEC ? o->vec : o;
	unsigned int n = o->kind == O_VEC ? o->nvec : 1, size = ptx_type_size(t);

	if (n != vec)
		ptx_fail(P, PTX_INVALID_PTX, "%s: %u registers where %u are needed", s->text, n,
			 vec);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int w = size < 2 ? 2 : size;

		if (load && v[i].kind == O_SINK) {
			ref[i] = 0;
		} else if (load) {
			if (v[i].kind != O_REG || v[i].type == T_PRED || v[i].neg)
				ptx_fail(P, PTX_INVALID_PTX, "%s: register expected", s->text);
			ref[i] = v[i].reg << 2;
			w = P->width[v[i].reg];
		} else {
			ref[i] = ptx_src_any(P, s, &v[i], t, &w);
		}
		if (w < size || w == 1 || w > 8)
			ptx_fail(P, PTX_INVALID_PTX, "%s: register does not fit type .%s", s->text,
				 ptx_type_name(t));
		width[i] = (uint8_t)w;
	}
}

/* ld.param and st.param by name: emits one instruction for each element. */
static enum ptx_status param_access(struct ptx_parser *P, struct ptx_stmt *s,
				    struct ptx_text_address *p, bool load, enum ptx_type t,
				    unsigned int vec, const uint32_t *ref, const uint8_t *width)
{
	unsigned int size = ptx_type_size(t);
	bool kernel = p->param->kind == SYM_KPARAM;

	if (kernel && !load)
		return PTX_INVALID_PTX;
	for (unsigned int i = 0; i < vec; i++) {
		uint32_t off = param_off(P, s, p, i * size, size);
		struct ptx_insn *in;

		if (!ref[i])
			continue;
		in = ptx_emit(P, s,
			      kernel ? ptx_h_ld_kparam
			      : load ? ptx_h_ld_area
				     : ptx_h_st_area);
		*(load ? &in->d : &in->b) = ref[i];
		in->imm = off;
		in->type = (uint8_t)t;
		in->sub = width[i];
	}
	return PTX_OK;
}

static enum ptx_status load_store128(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_space sp,
				     bool load)
{
	uint32_t reg = load ? ptx_dst(P, s, 0, T_B128) : ptx_src(P, s, 1, T_B128);
	struct ptx_text_address p = ptx_address(P, s, load ? 1 : 0, sp);
	struct ptx_insn *in;

	if (p.param)
		return PTX_UNSUPPORTED;
	in = ptx_emit(P, s, load ? ptx_h_ld128 : ptx_h_st128);
	ptx_set_address(in, &p, sp);
	*(load ? &in->d : &in->b) = reg;
	return PTX_OK;
}

static enum ptx_status load_store(struct ptx_parser *P, struct ptx_stmt *s, bool load)
{
	enum ptx_type t = s->type[0];
	uint32_t ref[PTX_MAX_VEC], x;
	uint8_t width[PTX_MAX_VEC];
	enum ptx_space sp;
	unsigned int vec;
	struct ptx_insn *in;
	struct ptx_text_address p;

	if (!mem_mods(s, &sp, &vec))
		return PTX_UNSUPPORTED;
	if (s->ntype != 1 || t == T_PRED)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 3); /* the third is a cache policy, which is ignored */
	if (t == T_B128)
		return vec == 1 ? load_store128(P, s, sp, load) : PTX_UNSUPPORTED;
	if (!load && sp == SPACE_CONST)
		return PTX_INVALID_PTX;
	p = ptx_address(P, s, load ? 1 : 0, sp);
	data_regs(P, s, &s->op_[load ? 0 : 1], load, t, vec, ref, width);
	if (p.param)
		return param_access(P, s, &p, load, t, vec, ref, width);
	x = P->m->nxops;
	if (vec > 1)
		for (unsigned int i = 0; i < vec; i++) {
			ptx_xop(P, ref[i]);
			if (width[i] != width[0])
				return PTX_UNSUPPORTED;
		}
	if (vec > 1)
		in = ptx_emit(P, s, load ? ptx_h_ld_vec : ptx_h_st_vec);
	else
		in = ptx_emit(P, s, load ? ptx_h_ld : ptx_h_st);
	if (vec == 1)
		*(load ? &in->d : &in->b) = ref[0];
	in->a = p.ref;
	in->imm = p.imm;
	in->flags = (p.a32 ? IF_A32 : 0) | ptx_order_flags(s);
	in->space = (uint8_t)sp;
	in->type = (uint8_t)t;
	in->sub = width[0];
	in->x = x;
	in->nx = (uint8_t)vec;
	if (vec == 1 && load && !ref[0])
		in->d = ptx_new_reg(P, t) << 2;
	return PTX_OK;
}

static enum ptx_status b_ld(struct ptx_parser *P, struct ptx_stmt *s)
{
	return load_store(P, s, true);
}

static enum ptx_status b_st(struct ptx_parser *P, struct ptx_stmt *s)
{
	return load_store(P, s, false);
}

/*
 * cvta: a generic address of global or const memory is the address itself. A generic address of any
 * other space has the space in its upper bits.
 */
static enum ptx_status b_cvta(struct ptx_parser *P, struct ptx_stmt *s)
{
	bool to = ptx_has(s, "to");
	enum ptx_space sp = SPACE_GENERIC;
	uint64_t base = 0;
	uint32_t d, a, b;
	struct ptx_insn *in;

	for (unsigned int i = 0; i < s->nmod; i++)
		ptx_is_space(s->mod[i], &sp);
	if (s->ntype != 1 || sp == SPACE_GENERIC)
		return PTX_INVALID_PTX;
	if (s->type[0] != T_U64)
		return PTX_UNSUPPORTED;
	ptx_want(P, s, 2, 2);
	d = ptx_dst(P, s, 0, T_U64);
	a = ptx_src(P, s, 1, T_U64);
	if (sp == SPACE_SHARED)
		base = PTX_SHARED_BASE;
	else if (sp == SPACE_LOCAL)
		base = PTX_LOCAL_BASE;
	else if (sp == SPACE_PARAM)
		base = PTX_PARAM_BASE;
	b = ptx_const(P, 8, base);
	in = ptx_emit(P, s,
		      !base ? P->m->ops->op[V_MOV][K_U64]
		      : to  ? P->m->ops->op[V_SUB][K_U64]
			    : P->m->ops->op[V_ADD][K_U64]);
	in->d = d;
	in->a = a;
	in->b = b;
	return PTX_OK;
}

static enum ptx_status b_isspacep(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_space sp = SPACE_GENERIC;
	struct ptx_insn *in;
	uint32_t d, a;

	if (s->nmod != 1 || !ptx_is_space(s->mod[0], &sp))
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 2);
	d = ptx_dst(P, s, 0, T_PRED);
	a = ptx_src(P, s, 1, T_U64);
	in = ptx_emit(P, s, ptx_h_isspacep);
	in->d = d;
	in->a = a;
	in->space = (uint8_t)sp;
	return PTX_OK;
}

/*
 * fence and membar: all kinds become the strongest fence. A proxy is another way to access the same
 * memory. The machine has no such ways, so fences of proxies need nothing more. Only the proxy of
 * tensor descriptors (tensormap) is not supported.
 */
static enum ptx_status b_fence(struct ptx_parser *P, struct ptx_stmt *s)
{
	static const char *const words[] = {"gl",
					    "sync",
					    "proxy",
					    "alias",
					    "async",
					    "async::generic",
					    "mbarrier_init",
					    "sync_restrict::shared::cta",
					    "sync_restrict::shared::cluster"};
	enum ptx_space sp;

	for (unsigned int i = 0; i < s->nmod; i++) {
		bool known = ptx_is_hint(s->mod[i]) || ptx_is_space(s->mod[i], &sp);

		for (size_t k = 0; k < sizeof(words) / sizeof(words[0]) && !known; k++)
			known = !strcmp(s->mod[i], words[k]);
		if (!known)
			return PTX_UNSUPPORTED;
	}
	ptx_want(P, s, 0, 0);
	ptx_emit(P, s, ptx_h_fence);
	return PTX_OK;
}

/* Prefetches are hints, which the machine ignores. */
static enum ptx_status b_prefetch(struct ptx_parser *P, struct ptx_stmt *s)
{
	for (unsigned int i = 0; i < s->nmod; i++)
		if (!strcmp(s->mod[i], "tensormap"))
			return PTX_UNSUPPORTED;
	ptx_emit(P, s, ptx_h_nop);
	return PTX_OK;
}

static uint32_t bytes_unless(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i,
			     uint64_t size)
{
	uint32_t none = ptx_const(P, 4, 0), all = ptx_const(P, 4, size), d, c;
	struct ptx_insn *in;
	bool neg;

	c = ptx_src_pred(P, s, i, &neg);
	d = ptx_new_reg(P, T_U32) << 2;
	in = ptx_emit(P, s, P->m->ops->op[V_SELP][K_U32]);
	in->d = d;
	in->a = none;
	in->b = all;
	in->c = c;
	in->flags = neg ? IF_NEGC : 0;
	return d;
}

/*
 * If an address names a shared variable whose address is not known yet, puts the address into a
 * register: the handlers of copies want the address of shared memory there.
 */
static void load_shared_address(struct ptx_parser *P, struct ptx_stmt *s,
				struct ptx_text_address *p)
{
	struct ptx_insn *in;
	uint32_t off;

	if (!P->shared)
		return;
	off = ptx_shared_const(P, P->shared, 8, 0);
	in = ptx_emit(P, s, P->m->ops->op[V_ADD][K_U64]);
	in->a = p->ref;
	in->b = off;
	p->ref = ptx_new_reg(P, T_U64) << 2;
	in->d = p->ref;
	P->shared = NULL;
}

/*
 * cp.async.bulk.DST.SRC.mbarrier::complete_tx::bytes [to], [from], size, [mbar]
 * cp.async.bulk.global.shared::cta.bulk_group [to], [from], size
 */
static enum ptx_status bulk(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_space space[2] = {SPACE_GENERIC, SPACE_GENERIC};
	bool group = ptx_has(s, "bulk_group"), hint = ptx_has(s, "L2::cache_hint");
	unsigned int n = 0, want = (group ? 3 : 4) + hint;
	struct ptx_text_address to, from;
	struct ptx_insn *in;
	uint32_t size, c;

	if (ptx_has(s, "commit_group") || ptx_has(s, "wait_group") || ptx_has(s, "prefetch")) {
		ptx_emit(P, s, ptx_h_nop);
		return PTX_OK;
	}
	for (unsigned int i = 2; i < s->nmod; i++) {
		if (n < 2 && ptx_is_space(s->mod[i], &space[n]))
			n++;
		else if (strcmp(s->mod[i], "bulk_group") && strcmp(s->mod[i], "L2::cache_hint") &&
			 strcmp(s->mod[i], "mbarrier::complete_tx::bytes"))
			return PTX_UNSUPPORTED; /* multicast, a mask of bytes */
	}
	if (n != 2 || group == ptx_has(s, "mbarrier::complete_tx::bytes") ||
	    (space[0] != SPACE_SHARED && space[0] != SPACE_GLOBAL) ||
	    (space[1] != SPACE_SHARED && space[1] != SPACE_GLOBAL) ||
	    (space[0] == SPACE_GLOBAL && (space[1] == SPACE_GLOBAL || !group)))
		return PTX_INVALID_PTX;
	ptx_want(P, s, want, want);
	to = ptx_address(P, s, 0, space[0]);
	load_shared_address(P, s, &to);
	from = ptx_address(P, s, 1, space[1]);
	load_shared_address(P, s, &from);
	size = ptx_src(P, s, 2, T_U32);
	c = ptx_const(P, 8, (uint64_t)to.imm);
	in = ptx_emit(P, s, ptx_h_bulk);
	ptx_set_address(in, &from, space[1]);
	in->b = to.ref;
	in->c = c;
	in->e = size;
	in->sub = (to.a32 ? BULK_TO_A32 : 0) | (space[0] == SPACE_SHARED ? BULK_TO_SHARED : 0);
	if (!group)
		ptx_build_complete_tx(P, s, 3, size);
	return PTX_OK;
}

/* cp.async copies at once. So groups of copies are always complete. */
static enum ptx_status b_cp(struct ptx_parser *P, struct ptx_stmt *s)
{
	struct ptx_insn *in;
	struct ptx_text_address to, from;
	uint32_t c, e = 0;
	uint64_t size;

	if (!s->nmod || strcmp(s->mod[0], "async"))
		return PTX_UNSUPPORTED;
	if (ptx_has(s, "bulk"))
		return bulk(P, s);
	if (ptx_has(s, "mbarrier"))
		return ptx_build_cp_mbarrier(P, s);
	if (ptx_has(s, "commit_group") || ptx_has(s, "wait_group") || ptx_has(s, "wait_all")) {
		ptx_emit(P, s, ptx_h_nop);
		return PTX_OK;
	}
	ptx_want(P, s, 3, 5);
	to = ptx_address(P, s, 0, SPACE_SHARED);
	load_shared_address(P, s, &to);
	from = ptx_address(P, s, 1, SPACE_GLOBAL);
	size = s->op_[2].imm;
	if (s->op_[2].kind != O_IMM || (size != 4 && size != 8 && size != 16))
		return PTX_INVALID_PTX;
	if (s->nop > 3) {
		/* The number of bytes that are read. A predicate: none if it is true, else all. */
		if (s->op_[3].kind == O_REG && s->op_[3].type == T_PRED)
			e = bytes_unless(P, s, 3, size);
		else if (!ptx_has(s, "L2::cache_hint") || s->nop > 4)
			e = ptx_src(P, s, 3, T_U32);
	}
	c = ptx_const(P, 8, (uint64_t)to.imm);
	in = ptx_emit(P, s, ptx_h_cp_async);
	in->a = from.ref;
	in->imm = from.imm;
	in->flags = from.a32 ? IF_A32 : 0;
	in->space = SPACE_GLOBAL;
	in->b = to.ref;
	in->c = c;
	in->e = e;
	in->sub = to.a32;
	in->nx = (uint8_t)size;
	return PTX_OK;
}

const struct ptx_build_entry ptx_build_mem[] = {
	{"ld", b_ld},
	{"ldu", b_ld},
	{"st", b_st},
	{"cvta", b_cvta},
	{"isspacep", b_isspacep},
	{"membar", b_fence},
	{"fence", b_fence},
	{"prefetch", b_prefetch},
	{"prefetchu", b_prefetch},
	{"cp", b_cp},
	{NULL, NULL},
};

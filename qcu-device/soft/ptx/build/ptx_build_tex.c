// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builders for texture and surface instructions: tex, tld4, txq, suld, sust, sured, suq. They name
 * textures and surfaces by objects. Naming them by module variables is not supported: this ended
 * with CUDA 11.
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"
#include "qcu-device/soft/ptx/memory/ptx_tex.h"

static const struct {
	const char *name;
	uint8_t geom;
} geometries[] = {
	{"1d", GEOM_1D},   {"2d", GEOM_2D},	{"3d", GEOM_3D},       {"a1d", GEOM_A1D},
	{"a2d", GEOM_A2D}, {"cube", GEOM_CUBE}, {"acube", GEOM_ACUBE},
};

/* The modifiers of an instruction, by kind. A modifier of any other kind is unknown. */
struct mods {
	uint8_t geom;
	unsigned int vec; /* 0: not given */
	bool level, grad, formatted, raw;
	int component;
	int outside; /* -1: not given */
	int atom;
};

static bool one_mod(struct mods *o, const char *m)
{
	static const char *const outside[] = {"trap", "clamp", "zero"};
	static const char *const atoms[] = {[ATOM_ADD] = "add",
					    [ATOM_MIN] = "min",
					    [ATOM_MAX] = "max",
					    [ATOM_AND] = "and",
					    [ATOM_OR] = "or"};

	for (size_t i = 0; i < sizeof(geometries) / sizeof(geometries[0]); i++)
		if (!strcmp(m, geometries[i].name)) {
			o->geom = geometries[i].geom;
			return true;
		}
	for (int i = 0; i < 3; i++)
		if (!strcmp(m, outside[i])) {
			o->outside = i;
			return true;
		}
	for (size_t i = 0; i < sizeof(atoms) / sizeof(atoms[0]); i++)
		if (atoms[i] && !strcmp(m, atoms[i])) {
			o->atom = (int)i;
			return true;
		}
	if (!strcmp(m, "v2") || !strcmp(m, "v4")) {
		o->vec = (unsigned int)(m[1] - '0');
		return true;
	}
	return ptx_type_from(m, strlen(m)) != T_NONE;
}

/* Reads the modifiers from number `first` on. False: one of them is unknown. */
static bool get_mods(const struct ptx_stmt *s, unsigned int first, struct mods *o)
{
	for (unsigned int i = first; i < s->nmod; i++)
		if (!one_mod(o, s->mod[i]))
			return false;
	return true;
}

static bool has_sampler(const struct ptx_opnd *o)
{
	return o->kind == O_IMAGE && o->nvec == 1 && o->vec[0].kind == O_REG &&
	       ptx_type_size(o->vec[0].type) == 8;
}

/*
 * Returns the ref of the object of operand i. Appends the coordinates to xops, after the registers
 * that are already there, and adds their number to *count.
 */
static uint32_t image(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i, uint8_t geom,
		      enum ptx_type t, unsigned int *count)
{
	struct ptx_opnd *o = &s->op_[i], obj = {.kind = O_REG};
	unsigned int want = GEOM_OPERANDS(geom);

	if (i >= s->nop || o->kind != O_IMAGE || !o->reg || o->imm)
		ptx_fail(P, PTX_INVALID_PTX, "%s: an object and coordinates expected", s->text);
	obj.reg = o->reg;
	obj.type = o->type;
	/* Three coordinates may come as a vector of four, whose last element is ignored. */
	if (o->nvec < want || o->nvec > (want < 3 ? want : 4))
		ptx_fail(P, PTX_INVALID_PTX, "%s: %u coordinates where %u are needed", s->text,
			 o->nvec, want);
	for (unsigned int k = 0; k < want; k++) {
		bool layer = GEOM_LAYERED(geom) && !k;

		ptx_xop(P, ptx_src_opnd(P, s, &o->vec[k], layer ? T_B32 : t));
		++*count;
	}
	return ptx_src_opnd(P, s, &obj, T_U64);
}

/* Returns the registers of an operand, in braces or one alone, and stores their number. */
static struct ptx_opnd *list(struct ptx_opnd *o, unsigned int *n)
{
	*n = o->kind == O_VEC ? o->nvec : 1;
	return o->kind == O_VEC ? o->vec : o;
}

static unsigned int add_dsts(struct ptx_parser *P, struct ptx_stmt *s, unsigned int want,
			     enum ptx_type t)
{
	unsigned int n;
	struct ptx_opnd *v = list(&s->op_[0], &n);

	if (!s->nop || n != want)
		ptx_fail(P, PTX_INVALID_PTX, "%s: %u registers where %u are needed", s->text, n,
			 want);
	for (unsigned int k = 0; k < n; k++)
		ptx_xop(P, v[k].kind == O_SINK ? 0 : ptx_dst_opnd(P, &v[k], t));
	return n;
}

static void add_srcs(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i, unsigned int want,
		     enum ptx_type t, unsigned int *count)
{
	unsigned int n;
	struct ptx_opnd *v = list(&s->op_[i], &n);

	/* Gradients of three values may come as vectors of four. */
	if (i >= s->nop || n < want || n > (want < 3 ? want : 4))
		ptx_fail(P, PTX_INVALID_PTX, "%s: operand of %u values expected", s->text, want);
	/* Bytes are in registers of 16 bits. */
	if (ptx_type_size(t) == 1)
		t = T_B16;
	for (unsigned int k = 0; k < want; k++) {
		ptx_xop(P, ptx_src_opnd(P, s, &v[k], t));
		++*count;
	}
}

static enum ptx_status texture(struct ptx_parser *P, struct ptx_stmt *s, bool gather)
{
	struct mods o = {.outside = -1, .atom = -1};
	unsigned int first = 0, count = 0, dsts, dims;
	enum ptx_type to = s->type[0], at = s->type[1];
	uint32_t a, x = P->m->nxops, d2 = 0;
	uint16_t flags = gather ? TEX_GATHER : 0;
	struct ptx_insn *in;
	int64_t component = 0;

	if (gather) {
		const char *c = s->nmod ? s->mod[0] : "";

		if (!*c || c[1] || !strchr("rgba", *c))
			return PTX_INVALID_PTX;
		component = *c == 'r' ? 0 : *c == 'g' ? 1 : *c == 'b' ? 2 : 3;
		first = 1;
	} else if (s->nmod && (!strcmp(s->mod[0], "level") || !strcmp(s->mod[0], "grad"))) {
		flags = s->mod[0][0] == 'l' ? TEX_LEVEL : TEX_GRAD;
		first = 1;
	} else if (s->nmod && !strcmp(s->mod[0], "base")) {
		first = 1;
	}
	if (!get_mods(s, first, &o) || o.outside >= 0 || o.atom >= 0)
		return PTX_UNSUPPORTED; /* multisample, half results */
	if (s->ntype != 2 || !o.geom)
		return PTX_INVALID_PTX;
	if (o.vec != 4 || ptx_type_size(to) != 4 || to == T_F16X2 || (at != T_F32 && at != T_S32))
		return PTX_UNSUPPORTED;
	if (s->nop > 1 && has_sampler(&s->op_[1]))
		return PTX_UNSUPPORTED;
	if (gather && o.geom != GEOM_2D)
		return PTX_UNSUPPORTED;
	ptx_want(P, s, 2 + (flags & TEX_LEVEL ? 1u : flags & TEX_GRAD ? 2u : 0u), 4);
	/* A further operand would be an offset, or a value to compare depths with. */
	if (s->nop > 2 + (flags & TEX_LEVEL ? 1u : flags & TEX_GRAD ? 2u : 0u))
		return PTX_UNSUPPORTED;
	dsts = add_dsts(P, s, 4, to);
	if (s->op_[0].has_pair && s->op_[0].pair)
		d2 = s->op_[0].pair << 2;
	a = image(P, s, 1, o.geom, at, &count);
	dims = GEOM_IS_CUBE(o.geom) ? 3 : GEOM_DIMS(o.geom);
	if (flags & TEX_LEVEL)
		add_srcs(P, s, 2, 1, at, &count);
	for (unsigned int i = 2; flags & TEX_GRAD && i < 4; i++)
		add_srcs(P, s, i, dims, T_F32, &count);
	in = ptx_emit(P, s, ptx_h_tex);
	in->a = a;
	in->d2 = d2;
	in->x = x;
	in->nx = (uint8_t)(dsts + count);
	in->type2 = (uint8_t)dsts;
	in->type = (uint8_t)at;
	in->sub = o.geom;
	in->flags = flags;
	in->imm = component;
	return PTX_OK;
}

static enum ptx_status b_tex(struct ptx_parser *P, struct ptx_stmt *s)
{
	return texture(P, s, false);
}

static enum ptx_status b_tld4(struct ptx_parser *P, struct ptx_stmt *s)
{
	return texture(P, s, true);
}

static enum ptx_status query(struct ptx_parser *P, struct ptx_stmt *s, bool surface)
{
	static const char *const names[] = {
		"width",       "height",	   "depth", "array_size", "num_mipmap_levels",
		"num_samples", "normalized_coords"};
	bool level = !surface && s->nmod && !strcmp(s->mod[0], "level");
	unsigned int i, what = QUERY_NORMALIZED + 1;
	struct ptx_opnd obj;
	uint32_t d, a, b = 0;
	struct ptx_insn *in;

	if (s->nmod != 2u + level)
		return PTX_INVALID_PTX;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(s->mod[level], names[i]))
			what = i;
	/* The remaining queries ask for numbers that other languages define. */
	if (what > (surface ? QUERY_LAYERS : QUERY_NORMALIZED))
		return PTX_UNSUPPORTED;
	if (level && what > QUERY_DEPTH)
		return PTX_INVALID_PTX;
	if (s->type[0] != T_B32)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2u + level, 2u + level);
	obj = s->op_[1];
	if (obj.kind != O_MEM || !obj.reg || obj.imm)
		return PTX_INVALID_PTX;
	obj.kind = O_REG;
	d = ptx_dst(P, s, 0, T_B32);
	a = ptx_src_opnd(P, s, &obj, T_U64);
	if (level)
		b = ptx_src(P, s, 2, T_B32);
	in = ptx_emit(P, s, ptx_h_query);
	in->d = d;
	in->a = a;
	in->b = b;
	in->sub = (uint8_t)what;
	in->space = surface;
	return PTX_OK;
}

static enum ptx_status b_txq(struct ptx_parser *P, struct ptx_stmt *s)
{
	return query(P, s, false);
}

static enum ptx_status b_suq(struct ptx_parser *P, struct ptx_stmt *s)
{
	return query(P, s, true);
}

/* Skips cache hints from modifier i on, because there are no caches. Returns the next number. */
static unsigned int skip_hints(const struct ptx_stmt *s, unsigned int i)
{
	static const char *const hints[] = {"ca", "cg", "cs", "cv", "wb", "wt"};
	size_t k;

	for (k = 0; i < s->nmod && k < sizeof(hints) / sizeof(hints[0]); k++)
		if (!strcmp(s->mod[i], hints[k])) {
			i++;
			k = 0;
		}
	return i;
}

/* Reads the modifiers of a surface instruction. The first is .b or .p. */
static enum ptx_status surface_mods(const struct ptx_stmt *s, struct mods *o)
{
	unsigned int first = 1;

	*o = (struct mods){.outside = -1, .atom = -1};
	if (!s->nmod || s->mod[0][1] || (s->mod[0][0] != 'b' && s->mod[0][0] != 'p'))
		return PTX_INVALID_PTX;
	o->formatted = s->mod[0][0] == 'p';
	while (first < s->nmod && skip_hints(s, first) != first) {
		/* The geometry may come before or after a hint. */
		first = skip_hints(s, first);
	}
	for (unsigned int i = first; i < s->nmod; i++)
		if (skip_hints(s, i) == i && !one_mod(o, s->mod[i]))
			return PTX_UNSUPPORTED;
	if (!o->geom || GEOM_IS_CUBE(o->geom) || s->ntype != 1 || o->outside < 0)
		return PTX_INVALID_PTX;
	return PTX_OK;
}

static struct ptx_insn *emit_surface(struct ptx_parser *P, struct ptx_stmt *s, const struct mods *o,
				     ptx_fn fn, uint32_t a, uint32_t x, unsigned int dsts,
				     unsigned int count)
{
	struct ptx_insn *in = ptx_emit(P, s, fn);

	in->a = a;
	in->x = x;
	in->nx = (uint8_t)(dsts + count);
	in->type2 = (uint8_t)dsts;
	in->type = (uint8_t)s->type[0];
	in->sub = o->geom;
	in->space = (uint8_t)o->outside;
	in->flags = o->formatted ? SURF_FORMATTED : 0;
	return in;
}

static enum ptx_status b_suld(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint32_t a, x = P->m->nxops;
	unsigned int dsts, count = 0;
	struct mods o;
	enum ptx_status st = surface_mods(s, &o);

	if (st)
		return st;
	if (o.formatted || o.atom >= 0)
		return PTX_INVALID_PTX;
	if (ptx_type_size(s->type[0]) > 8 || s->type[0] == T_PRED)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 2);
	dsts = add_dsts(P, s, o.vec ? o.vec : 1, s->type[0]);
	a = image(P, s, 1, o.geom, T_B32, &count);
	emit_surface(P, s, &o, ptx_h_suld, a, x, dsts, count);
	return PTX_OK;
}

static enum ptx_status b_sust(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint32_t a, x = P->m->nxops;
	unsigned int count = 0;
	struct mods o;
	enum ptx_status st = surface_mods(s, &o);

	if (st)
		return st;
	if (o.atom >= 0 || s->type[0] == T_PRED || ptx_type_size(s->type[0]) > 8 ||
	    (o.formatted && ptx_type_size(s->type[0]) != 4))
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 2);
	a = image(P, s, 0, o.geom, T_B32, &count);
	add_srcs(P, s, 1, o.vec ? o.vec : 1, s->type[0], &count);
	emit_surface(P, s, &o, ptx_h_sust, a, x, 0, count);
	return PTX_OK;
}

static enum ptx_status b_sured(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint32_t a, x = P->m->nxops;
	unsigned int count = 0;
	struct mods o;
	enum ptx_status st = surface_mods(s, &o);

	if (st)
		return st;
	if (o.atom < 0 || o.vec || ptx_type_float(s->type[0]) || ptx_type_size(s->type[0]) < 4 ||
	    ptx_type_size(s->type[0]) > 8)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 2);
	a = image(P, s, 0, o.geom, T_B32, &count);
	add_srcs(P, s, 1, 1, s->type[0], &count);
	emit_surface(P, s, &o, ptx_h_sured, a, x, 0, count)->imm = o.atom;
	return PTX_OK;
}

const struct ptx_build_entry ptx_build_tex[] = {
	{"tex", b_tex},	  {"tld4", b_tld4}, {"txq", b_txq},	{"suq", b_suq},
	{"suld", b_suld}, {"sust", b_sust}, {"sured", b_sured}, {NULL, NULL},
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builders for video instructions. An operand may name a part of a word (%r1.b2). In packed
 * instructions, an operand may name the elements that it takes from both sources (%r1.h32).
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"
#include "qcu-device/soft/ptx/ops/ptx_video.h"

struct video_name {
	const char *name;
	enum ptx_video_op op;
};

static const struct video_name video_names[] = {
	{"vadd", VIDEO_ADD}, {"vsub", VIDEO_SUB}, {"vabsdiff", VIDEO_ABSDIFF},
	{"vmin", VIDEO_MIN}, {"vmax", VIDEO_MAX}, {"vavrg", VIDEO_AVRG},
	{"vset", VIDEO_SET}, {"vshl", VIDEO_SHL}, {"vshr", VIDEO_SHR},
	{"vmad", VIDEO_MAD},
};

/* Finds the operation of a name. A 2 or 4 at the end of the name is the number of elements. */
static bool find_op(const char *name, struct ptx_video *v)
{
	size_t n = strlen(name);

	v->elements = name[n - 1] == '2' ? 2 : name[n - 1] == '4' ? 4 : 1;
	n -= v->elements > 1;
	for (size_t i = 0; i < sizeof(video_names) / sizeof(video_names[0]); i++)
		if (strlen(video_names[i].name) == n && !memcmp(video_names[i].name, name, n)) {
			v->op = video_names[i].op;
			return true;
		}
	return false;
}

static bool read_video_modifiers(const struct ptx_stmt *s, struct ptx_video *v)
{
	static const char *const cmps[] = {"eq", "ne", "lt", "le", "gt", "ge"};
	bool cmp = false, mode = false;

	for (unsigned int i = 0; i < s->nmod; i++) {
		const char *m = s->mod[i];
		bool known = ptx_type_from(m, strlen(m)) != T_NONE;

		for (unsigned int c = 0; c < 6 && v->op == VIDEO_SET; c++)
			if (!strcmp(m, cmps[c])) {
				v->cmp = CMP_EQ + c;
				known = cmp = true;
			}
		if (!strcmp(m, "sat")) {
			v->sat = 1;
		} else if (!strcmp(m, "add") && v->op != VIDEO_MAD) {
			v->second = SECOND_ADD;
		} else if (!strcmp(m, "min") && v->elements == 1 && v->op != VIDEO_MAD) {
			v->second = SECOND_MIN;
		} else if (!strcmp(m, "max") && v->elements == 1 && v->op != VIDEO_MAD) {
			v->second = SECOND_MAX;
		} else if (!strcmp(m, "clamp") || !strcmp(m, "wrap")) {
			v->wrap = *m == 'w';
			mode = true;
		} else if (!strcmp(m, "po") && v->op == VIDEO_MAD) {
			v->plus_one = 1;
		} else if ((!strcmp(m, "shr7") || !strcmp(m, "shr15")) && v->op == VIDEO_MAD) {
			v->scale = m[3] == '7' ? 7 : 15;
		} else if (!known) {
			return false;
		}
	}
	return cmp == (v->op == VIDEO_SET) && mode == (v->op == VIDEO_SHL || v->op == VIDEO_SHR);
}

static bool types(const struct ptx_stmt *s, struct ptx_video *v)
{
	unsigned int at = v->op == VIDEO_SET ? 0 : 1;

	if (s->ntype != at + 2)
		return false;
	for (unsigned int i = 0; i < s->ntype; i++)
		if (s->type[i] != T_U32 && s->type[i] != T_S32)
			return false;
	v->dsigned = at && s->type[0] == T_S32;
	v->asigned = s->type[at] == T_S32;
	v->bsigned = s->type[at + 1] == T_S32;
	/* A shift count cannot be negative. */
	return !v->bsigned || (v->op != VIDEO_SHL && v->op != VIDEO_SHR);
}

/* Parses the part of a scalar operand: b0 to b3, h0, h1. */
static unsigned int parse_selector(struct ptx_parser *P, const struct ptx_stmt *s,
				   const struct ptx_opnd *o)
{
	const char *p = o->part;

	if (!o->npart)
		return SELECT_ALL;
	if (o->npart == 2 && *p == 'b' && p[1] >= '0' && p[1] <= '3')
		return SELECT_B0 + (unsigned int)(p[1] - '0');
	if (o->npart == 2 && *p == 'h' && (p[1] == '0' || p[1] == '1'))
		return SELECT_H0 + (unsigned int)(p[1] - '0');
	ptx_fail(P, PTX_INVALID_PTX, "%s: no such part of an operand", s->text);
}

/* Parses a choice of elements such as h10 or b3210. The element for the highest place is first. */
static unsigned int select_elements(struct ptx_parser *P, const struct ptx_stmt *s,
				    const struct ptx_opnd *o, unsigned int n, unsigned int start)
{
	unsigned int bits = n == 2 ? 2 : 3, sel = 0;

	for (unsigned int k = 0; k < n && !o->npart; k++)
		sel |= (start + k) << k * bits;
	if (!o->npart)
		return sel;
	if (o->npart != n + 1 || o->part[0] != (n == 2 ? 'h' : 'b'))
		ptx_fail(P, PTX_INVALID_PTX, "%s: no such choice of elements", s->text);
	for (unsigned int k = 0; k < n; k++) {
		char c = o->part[n - k];

		if (c < '0' || c >= '0' + (int)(2 * n))
			ptx_fail(P, PTX_INVALID_PTX, "%s: no such element", s->text);
		sel |= (unsigned int)(c - '0') << k * bits;
	}
	return sel;
}

/* Parses the elements that are written: h0, h1, h10 or b0 to b3210. Without a part: all. */
static unsigned int write_mask(struct ptx_parser *P, const struct ptx_stmt *s,
			       const struct ptx_opnd *o, unsigned int n)
{
	unsigned int mask = 0;

	if (!o->npart)
		return (1u << n) - 1;
	if (o->part[0] != (n == 2 ? 'h' : 'b') || o->npart < 2)
		ptx_fail(P, PTX_INVALID_PTX, "%s: no such mask of elements", s->text);
	for (size_t k = 1; k < o->npart; k++) {
		char c = o->part[k];

		if (c < '0' || c >= '0' + (int)n)
			ptx_fail(P, PTX_INVALID_PTX, "%s: no such element", s->text);
		mask |= 1u << (c - '0');
	}
	return mask;
}

static void operands(struct ptx_parser *P, struct ptx_stmt *s, struct ptx_video *v)
{
	const struct ptx_opnd *o = s->op_;

	if (v->elements == 1) {
		v->dpart = parse_selector(P, s, &o[0]);
		v->apart = parse_selector(P, s, &o[1]);
		v->bpart = parse_selector(P, s, &o[2]);
	} else {
		v->mask = write_mask(P, s, &o[0], v->elements);
		v->asel = select_elements(P, s, &o[1], v->elements, 0);
		v->bsel = select_elements(P, s, &o[2], v->elements, v->elements);
	}
	v->aneg = o[1].minus;
	v->bneg = o[2].minus;
	v->cneg = s->nop > 3 && o[3].minus;
	if (s->nop > 3 && o[3].npart)
		ptx_fail(P, PTX_INVALID_PTX, "%s: the third source has no parts", s->text);
	if ((v->aneg || v->bneg || v->cneg) && v->op != VIDEO_MAD)
		ptx_fail(P, PTX_INVALID_PTX, "%s: operands have no sign here", s->text);
}

static enum ptx_status b_video(struct ptx_parser *P, struct ptx_stmt *s)
{
	bool third;
	struct ptx_video v = {0};
	uint32_t d, a, b, c = 0;
	struct ptx_insn *in;

	if (!find_op(s->op, &v) || !read_video_modifiers(s, &v) || !types(s, &v))
		return PTX_INVALID_PTX;
	third = v.elements > 1 || v.op == VIDEO_MAD || v.second || (s->nop && s->op_[0].npart);
	ptx_want(P, s, third ? 4 : 3, third ? 4 : 3);
	operands(P, s, &v);
	if (v.second && v.dpart)
		return PTX_INVALID_PTX;
	d = ptx_dst(P, s, 0, T_U32);
	a = ptx_src(P, s, 1, T_U32);
	b = ptx_src(P, s, 2, T_U32);
	if (third)
		c = ptx_src(P, s, 3, T_U32);
	in = ptx_emit(P, s, ptx_h_video);
	in->d = d;
	in->a = a;
	in->b = b;
	in->c = c ? c : a;
	memcpy(&in->imm, &v, sizeof(v));
	return PTX_OK;
}

const struct ptx_build_entry ptx_build_video[] = {
	{"vadd", b_video},	{"vsub", b_video},  {"vabsdiff", b_video}, {"vmin", b_video},
	{"vmax", b_video},	{"vset", b_video},  {"vshl", b_video},	   {"vshr", b_video},
	{"vmad", b_video},	{"vadd2", b_video}, {"vsub2", b_video},	   {"vavrg2", b_video},
	{"vabsdiff2", b_video}, {"vmin2", b_video}, {"vmax2", b_video},	   {"vset2", b_video},
	{"vadd4", b_video},	{"vsub4", b_video}, {"vavrg4", b_video},   {"vabsdiff4", b_video},
	{"vmin4", b_video},	{"vmax4", b_video}, {"vset4", b_video},	   {NULL, NULL},
};

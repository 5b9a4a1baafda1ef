// SPDX-License-Identifier: GPL-2.0-or-later
/* Operands as the text writes them: registers, numbers, names, vectors and addresses. */
#include <string.h>

#include "qcu-device/soft/ptx/text/ptx_parse.h"

uint32_t ptx_new_reg(struct ptx_parser *P, enum ptx_type t)
{
	unsigned int w = ptx_type_size(t);

	if (P->nregs >= PTX_MAX_REGS)
		ptx_fail(P, PTX_INVALID_PTX, "too many registers");
	if (!ptx_grow((void **)&P->width, &P->width_cap, P->nregs + 1, 1))
		ptx_fail_memory(P);
	if (t != T_PRED && w < 2)
		w = 2;
	P->width[P->nregs] = (uint8_t)w;
	return P->nregs++;
}

static const struct {
	const char *name;
	uint16_t sp;
	uint8_t dims;
} specials[] = {
	{"%tid", SP_TID_X, 3},
	{"%ntid", SP_NTID_X, 3},
	{"%ctaid", SP_CTAID_X, 3},
	{"%nctaid", SP_NCTAID_X, 3},
	{"%laneid", SP_LANEID, 0},
	{"%warpid", SP_WARPID, 0},
	{"%nwarpid", SP_NWARPID, 0},
	{"%smid", SP_SMID, 0},
	{"%nsmid", SP_NSMID, 0},
	{"%lanemask_eq", SP_LANEMASK_EQ, 0},
	{"%lanemask_le", SP_LANEMASK_LE, 0},
	{"%lanemask_lt", SP_LANEMASK_LT, 0},
	{"%lanemask_ge", SP_LANEMASK_GE, 0},
	{"%lanemask_gt", SP_LANEMASK_GT, 0},
	{"%dynamic_smem_size", SP_DYN_SMEM_SIZE, 0},
	{"%total_smem_size", SP_TOTAL_SMEM_SIZE, 0},
	{"%aggr_smem_size", SP_TOTAL_SMEM_SIZE, 0},
	{"%reserved_smem_offset_begin", SP_RESERVED, 0},
	{"%reserved_smem_offset_end", SP_RESERVED_END, 0},
	{"%reserved_smem_offset_0", SP_RESERVED, 0},
	{"%reserved_smem_offset_1", SP_RESERVED1, 0},
	{"%gridid", SP_GRIDID, 0},
	{"%clusterid", SP_CTAID_X, 3}, /* every block is a cluster of its own */
	{"%nclusterid", SP_NCTAID_X, 3},
	{"%cluster_ctaid", SP_ZERO, 1},
	{"%cluster_nctaid", SP_ONE, 1},
	{"%cluster_ctarank", SP_ZERO, 0},
	{"%cluster_nctarank", SP_ONE, 0},
	{"%clock", PTX_SP_CLOCK, 0},
	{"%clock_hi", PTX_SP_CLOCK_HI, 0},
	{"%clock64", PTX_SP_CLOCK64, 0},
	{"%globaltimer", PTX_SP_TIMER, 0},
	{"%globaltimer_lo", PTX_SP_TIMER_LO, 0},
	{"%globaltimer_hi", PTX_SP_TIMER_HI, 0},
	{"WARP_SZ", PTX_SP_WARP_SZ, 0},
};

static bool name_is(const char *s, size_t n, const char *name)
{
	return strlen(name) == n && !memcmp(name, s, n);
}

static bool parse_special(struct ptx_parser *P, struct ptx_opnd *o, const char *s, size_t n)
{
	for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
		if (!name_is(s, n, specials[i].name))
			continue;
		o->kind = O_SREG;
		o->special = specials[i].sp;
		if (specials[i].dims) {
			unsigned int d = 0;

			if (ptx_is_dot(P, "y"))
				d = 1;
			else if (ptx_is_dot(P, "z"))
				d = 2;
			else if (!ptx_is_dot(P, "x"))
				ptx_fail(P, PTX_INVALID_PTX, "%.*s needs .x, .y or .z", (int)n, s);
			ptx_next(P);
			if (specials[i].dims == 3)
				o->special += d;
		}
		return true;
	}
	if (n >= 8 && !memcmp(s, "%envreg", 7)) {
		o->kind = O_SREG;
		o->special = SP_ZERO;
		if (n == 8 && (s[7] == '1' || s[7] == '2'))
			o->special = s[7] == '1' ? SP_ENVREG1 : SP_ENVREG2;
		return true;
	}
	/* 0: the machine has no performance counters, cluster launches or graphs. */
	if ((n > 3 && !memcmp(s, "%pm", 3)) || name_is(s, n, "%is_explicit_cluster") ||
	    name_is(s, n, "%current_graph_exec")) {
		o->kind = O_IMM;
		o->num = TK_INT;
		return true;
	}
	if (name_is(s, n, "%reserved_smem_offset_cap")) {
		o->kind = O_IMM;
		o->num = TK_INT;
		o->imm = PTX_RESERVED_SHARED;
		return true;
	}
	return false;
}

/* Finds a register by name. It is declared alone, or as a member of a family such as %r<100>. */
static bool find_reg(struct ptx_parser *P, const char *s, size_t n, struct ptx_opnd *o)
{
	struct ptx_sym *y = ptx_sym_find(P, s, n);
	size_t k = n;
	uint64_t num = 0;

	if (y && y->kind == SYM_REG) {
		o->reg = y->reg;
		o->type = y->type;
		return true;
	}
	if (y)
		return false;
	while (k > 1 && s[k - 1] >= '0' && s[k - 1] <= '9')
		k--;
	if (k == n || n - k > 8 || (s[k] == '0' && n - k > 1))
		return false;
	for (size_t i = k; i < n; i++)
		num = num * 10 + (uint64_t)(s[i] - '0');
	y = ptx_sym_find(P, s, k);
	if (!y || y->kind != SYM_FAMILY || num >= y->count)
		return false;
	o->reg = y->reg + (uint32_t)num;
	o->type = y->type;
	return true;
}

static void parse_offset(struct ptx_parser *P, struct ptx_opnd *o)
{
	while (ptx_is(P, '+') || ptx_is(P, '-')) {
		bool minus = ptx_is(P, '-');

		ptx_next(P);
		if (ptx_accept(P, '-'))
			minus = !minus;
		if (P->t.kind != TK_INT)
			ptx_fail(P, PTX_INVALID_PTX, "offset expected");
		o->imm += minus ? 0 - P->t.val : P->t.val;
		ptx_next(P);
	}
}

static void parse_name(struct ptx_parser *P, struct ptx_opnd *o, bool mem)
{
	const char *s = P->t.s;
	size_t n = P->t.n;

	ptx_next(P);
	if (n == 1 && *s == '_') {
		o->kind = O_SINK;
		return;
	}
	if (find_reg(P, s, n, o)) {
		o->kind = O_REG;
		return;
	}
	if (!mem && parse_special(P, o, s, n))
		return;
	o->sym = ptx_sym_find(P, s, n);
	if (!o->sym || o->sym->kind == SYM_LABEL) {
		/* A label, which may be defined later. */
		struct ptx_sym *y = ptx_palloc(P, sizeof(*y));

		y->name = s;
		y->len = n;
		y->kind = SYM_LABEL;
		o->sym = y;
	}
	o->kind = O_SYM;
	o->num = TK_INT;
}

static void parse_number(struct ptx_parser *P, struct ptx_opnd *o)
{
	bool minus = false, inv = false;

	while (ptx_is(P, '-') || ptx_is(P, '~') || ptx_is(P, '+')) {
		minus ^= ptx_is(P, '-');
		inv ^= ptx_is(P, '~');
		ptx_next(P);
	}
	if (minus && !inv && P->t.kind == TK_ID) {
		parse_name(P, o, false);
		if (o->kind != O_REG)
			ptx_fail(P, PTX_INVALID_PTX, "'-' needs a number or a register");
		o->minus = true;
		return;
	}
	if (P->t.kind != TK_INT && P->t.kind != TK_F32 && P->t.kind != TK_F64)
		ptx_fail(P, PTX_INVALID_PTX, "operand expected before '%.*s'",
			 (int)(P->t.n > 40 ? 40 : P->t.n), P->t.s);
	o->kind = O_IMM;
	o->num = (uint8_t)P->t.kind;
	o->imm = P->t.val;
	if (inv)
		o->imm = ~o->imm;
	if (minus && o->num == TK_INT)
		o->imm = 0 - o->imm;
	else if (minus)
		o->imm ^= o->num == TK_F32 ? 1ull << 31 : 1ull << 63;
	ptx_next(P);
}

/* Parses {a, b, ...} after the opening brace. */
static void parse_vector(struct ptx_parser *P, struct ptx_opnd *o)
{
	struct ptx_opnd v[PTX_MAX_VEC];

	do {
		if (o->nvec == PTX_MAX_VEC)
			ptx_fail(P, PTX_INVALID_PTX, "vector too long");
		if (ptx_is(P, '{') || ptx_is(P, '['))
			ptx_fail(P, PTX_INVALID_PTX, "vector in a vector");
		ptx_parse_operand(P, &v[o->nvec++]);
	} while (ptx_accept(P, ','));
	ptx_expect(P, '}');
	o->kind = O_VEC;
	o->vec = ptx_palloc(P, o->nvec * sizeof(v[0]));
	memcpy(o->vec, v, o->nvec * sizeof(v[0]));
}

/* Parses [object, {...}] or [object, a] after the comma. */
static void parse_coordinates(struct ptx_parser *P, struct ptx_opnd *o)
{
	if (ptx_accept(P, '{')) {
		parse_vector(P, o);
	} else {
		if (ptx_is(P, '['))
			ptx_fail(P, PTX_INVALID_PTX, "address in an address");
		o->vec = ptx_palloc(P, sizeof(*o->vec));
		ptx_parse_operand(P, o->vec);
		o->nvec = 1;
	}
	o->kind = O_IMAGE;
	/*
	 * [object, sampler, {...}]: the operand above was a separate sampler, and the
	 * coordinates follow. They are dropped, because the builders do not support separate
	 * samplers.
	 */
	while (ptx_accept(P, ',')) {
		struct ptx_opnd more = {0};

		if (!ptx_accept(P, '{'))
			ptx_fail(P, PTX_INVALID_PTX, "coordinates expected");
		parse_vector(P, &more);
	}
}

/* Parses p of a|p after the bar. */
static void parse_pair(struct ptx_parser *P, struct ptx_opnd *o)
{
	struct ptx_opnd q = {0};

	if (P->t.kind != TK_ID)
		ptx_fail(P, PTX_INVALID_PTX, "register expected after '|'");
	parse_name(P, &q, false);
	o->has_pair = true;
	if (q.kind == O_REG && q.type == T_PRED)
		o->pair = q.reg;
	else if (q.kind != O_SINK)
		ptx_fail(P, PTX_INVALID_PTX, "predicate expected after '|'");
}

void ptx_parse_operand(struct ptx_parser *P, struct ptx_opnd *o)
{
	memset(o, 0, sizeof(*o));
	if (ptx_accept(P, '[')) {
		if (P->t.kind == TK_ID)
			parse_name(P, o, true);
		else
			parse_number(P, o);
		if (o->kind != O_REG && o->kind != O_SYM && !(o->kind == O_IMM && o->num == TK_INT))
			ptx_fail(P, PTX_INVALID_PTX, "address expected");
		if (o->kind == O_SYM && o->sym->kind == SYM_LABEL)
			ptx_fail(P, PTX_INVALID_PTX, "'%.*s' is not declared",
				 (int)(o->sym->len > 80 ? 80 : o->sym->len), o->sym->name);
		o->kind = O_MEM;
		parse_offset(P, o);
		if (ptx_accept(P, ','))
			parse_coordinates(P, o);
		ptx_expect(P, ']');
		return;
	}
	if (ptx_accept(P, '{')) {
		parse_vector(P, o);
		if (ptx_accept(P, '|'))
			parse_pair(P, o);
		return;
	}
	if (ptx_accept(P, '!'))
		o->neg = true;
	if (P->t.kind != TK_ID)
		parse_number(P, o);
	else
		parse_name(P, o, false);
	if (o->kind == O_REG && P->t.kind == TK_DOT && P->t.glued) {
		o->part = P->t.s;
		o->npart = P->t.n;
		ptx_next(P);
	}
	if ((o->kind == O_REG || o->kind == O_SINK) && ptx_accept(P, '|'))
		parse_pair(P, o);
	if (o->kind == O_SYM)
		parse_offset(P, o);
}

bool ptx_has(const struct ptx_stmt *s, const char *mod)
{
	for (unsigned int i = 0; i < s->nmod; i++)
		if (!strcmp(s->mod[i], mod))
			return true;
	return false;
}

void ptx_label_ref(struct ptx_parser *P, const char *s, size_t n, uint32_t where, bool table)
{
	struct ptx_fixup *f = ptx_palloc(P, sizeof(*f));

	f->name = s;
	f->len = n;
	f->depth = P->depth;
	f->line = P->t.line;
	f->where = where;
	f->table = table;
	f->next = P->fixups;
	P->fixups = f;
}

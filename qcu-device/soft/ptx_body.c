// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parses function bodies: declarations, labels, and instructions with their operands. Each
 * instruction goes to its builder as soon as it is parsed.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx_parse.h"

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

static void parse_reg(struct ptx_parser *P)
{
	enum ptx_type t;

	ptx_next(P);
	if (P->t.kind != TK_DOT)
		ptx_fail(P, PTX_INVALID_PTX, ".reg: type expected");
	t = ptx_type_from(P->t.s, P->t.n);
	if (!t)
		ptx_fail(P, PTX_INVALID_PTX, "unknown type '.%.*s'",
			 (int)(P->t.n > 40 ? 40 : P->t.n), P->t.s);
	ptx_next(P);
	do {
		struct ptx_sym *y;
		const char *s = P->t.s;
		size_t n = P->t.n;

		if (P->t.kind != TK_ID)
			ptx_fail(P, PTX_INVALID_PTX, "register name expected");
		ptx_next(P);
		if (ptx_accept(P, '<')) {
			uint32_t count = (uint32_t)ptx_expect_uint(P, PTX_MAX_REGS, "registers");

			ptx_expect(P, '>');
			y = ptx_sym_add(P, s, n, SYM_FAMILY);
			y->count = count;
			y->reg = P->nregs;
			for (uint32_t i = 0; i < count; i++)
				ptx_new_reg(P, t);
		} else {
			y = ptx_sym_add(P, s, n, SYM_REG);
			y->reg = ptx_new_reg(P, t);
		}
		y->type = t;
	} while (ptx_accept(P, ','));
	ptx_expect(P, ';');
}

/* Parses a .param variable of a call sequence. It takes some bytes of the parameter area. */
static void parse_param(struct ptx_parser *P)
{
	uint64_t count = 1;
	enum ptx_type t = T_NONE;
	struct ptx_sym *y;

	ptx_next(P);
	while (P->t.kind == TK_DOT) {
		if (ptx_is_dot(P, "align")) {
			ptx_next(P);
			ptx_expect_uint(P, 1024, ".align");
			continue;
		}
		t = ptx_type_from(P->t.s, P->t.n);
		if (!t)
			ptx_fail(P, PTX_INVALID_PTX, "unknown type '.%.*s'",
				 (int)(P->t.n > 40 ? 40 : P->t.n), P->t.s);
		ptx_next(P);
	}
	if (!t || P->t.kind != TK_ID)
		ptx_fail(P, PTX_INVALID_PTX, ".param: type and name expected");
	y = ptx_sym_add(P, P->t.s, P->t.n, SYM_PARAM);
	ptx_next(P);
	if (ptx_accept(P, '[')) {
		count = ptx_expect_uint(P, 65536, "array size");
		ptx_expect(P, ']');
	}
	y->size = count * ptx_type_size(t);
	y->off = P->area;
	if (P->area + y->size > 65536)
		ptx_fail(P, PTX_INVALID_PTX, "parameters too large");
	P->area += (uint32_t)((y->size + 15) & ~15ull);
	if (P->area > P->fn->area_bytes)
		P->fn->area_bytes = P->area;
	ptx_expect(P, ';');
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

/* Refuses parts and signs of operands. Only the builders of video instructions handle them. */
static void refuse_parts(struct ptx_parser *P, const struct ptx_stmt *s)
{
	for (unsigned int i = 0; i < s->nop; i++)
		if (s->op_[i].minus || s->op_[i].npart)
			ptx_fail(P, PTX_INVALID_PTX, "%s: operands have no parts or signs here",
				 s->text);
}

bool ptx_has(const struct ptx_stmt *s, const char *mod)
{
	for (unsigned int i = 0; i < s->nmod; i++)
		if (!strcmp(s->mod[i], mod))
			return true;
	return false;
}

static void add_mod(struct ptx_parser *P, struct ptx_stmt *s)
{
	size_t len = strlen(s->text), room = sizeof(s->text) - 1 - len, n = P->t.n;
	enum ptx_type t = ptx_type_from(P->t.s, P->t.n);
	char *c;

	if (s->nmod == PTX_MAX_MODS)
		ptx_fail(P, PTX_INVALID_PTX, "too many modifiers");
	c = ptx_palloc(P, n + 1);
	memcpy(c, P->t.s, n);
	s->mod[s->nmod++] = c;
	if (t && s->ntype < 4)
		s->type[s->ntype++] = t;
	/* s->text is for messages only. A word that does not fit is left out. */
	if (n + 1 > room)
		return;
	s->text[len] = '.';
	memcpy(s->text + len + 1, c, n);
	s->text[len + 1 + n] = 0;
}

static void skip_statement(struct ptx_parser *P)
{
	while (!ptx_is(P, ';')) {
		if (P->t.kind == TK_EOF)
			ptx_fail(P, PTX_INVALID_PTX, "text ends where ';' is needed");
		ptx_next(P);
	}
	ptx_next(P);
}

static void parse_insn(struct ptx_parser *P, const char *op, size_t n, unsigned int line,
		       uint32_t pred)
{
	struct ptx_stmt *s = &P->stmt;
	enum ptx_status st;
	char *name;

	memset(s, 0, sizeof(*s));
	name = ptx_palloc(P, n + 1);
	memcpy(name, op, n);
	s->op = name;
	memcpy(s->text, name, n > 40 ? 40 : n);
	s->line = line;
	s->pred = pred;
	while (P->t.kind == TK_DOT) {
		add_mod(P, s);
		ptx_next(P);
	}
	if (!strcmp(name, "call")) {
		ptx_parse_call(P, s);
		return;
	}
	if (!ptx_build_find(name) || ptx_known_form(s)) {
		if (!ptx_known_opcode(name) && !ptx_known_form(s)) {
			P->t.line = line;
			ptx_fail(P, PTX_INVALID_PTX, "unknown instruction '%s'", s->text);
		}
		ptx_emit_bad(P, s->text, line);
		skip_statement(P);
		return;
	}
	if (!ptx_is(P, ';'))
		do {
			if (s->nop == PTX_MAX_OPS)
				ptx_fail(P, PTX_INVALID_PTX, "too many operands");
			ptx_parse_operand(P, &s->op_[s->nop++]);
		} while (ptx_accept(P, ','));
	if (!ptx_is(P, ';'))
		ptx_expect(P, ';');
	if (!ptx_is_video(name))
		refuse_parts(P, s);
	st = ptx_build_stmt(P, s);
	if (st == PTX_UNSUPPORTED)
		ptx_emit_bad(P, s->text, line);
	else if (st == PTX_INVALID_PTX)
		ptx_fail(P, st, "%s: no such form of this instruction", s->text);
	ptx_next(P);
}

/* .branchtargets L1, L2; */
static void parse_targets(struct ptx_parser *P, struct ptx_sym *y)
{
	unsigned int cap = 0;

	ptx_next(P);
	do {
		if (P->t.kind != TK_ID)
			ptx_fail(P, PTX_INVALID_PTX, "label expected");
		if (y->nlist == cap) {
			const char **l;

			cap = cap * 2 + 16;
			l = ptx_palloc(P, cap * sizeof(*l));
			if (y->nlist)
				memcpy(l, y->list, y->nlist * sizeof(*l));
			y->list = l;
		}
		y->list[y->nlist] = ptx_strndup(&P->scratch, P->t.s, P->t.n);
		if (!y->list[y->nlist++])
			ptx_fail_memory(P);
		ptx_next(P);
	} while (ptx_accept(P, ','));
	ptx_expect(P, ';');
}

static void parse_label(struct ptx_parser *P, const char *s, size_t n)
{
	struct ptx_sym *y;

	if (ptx_is_dot(P, "branchtargets")) {
		y = ptx_sym_add(P, s, n, SYM_TARGETS);
		parse_targets(P, y);
	} else if (ptx_is_dot(P, "callprototype") || ptx_is_dot(P, "calltargets")) {
		ptx_sym_add(P, s, n, SYM_PROTO);
		skip_statement(P);
	} else {
		y = ptx_sym_add(P, s, n, SYM_LABEL);
		y->off = P->m->ncode;
	}
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

/* Parses ".loc file line column ...": the source line of the next instructions. */
static void parse_loc(struct ptx_parser *P)
{
	unsigned int line = P->t.line;
	uint64_t file;

	ptx_next(P);
	file = P->t.val;
	if (P->t.kind == TK_INT && P->t.line == line)
		ptx_next(P);
	if (P->t.kind == TK_INT && P->t.line == line)
		P->loc = (uint32_t)(file > PTX_MAX_FILES ? 0 : file) << 20 |
			 (uint32_t)(P->t.val > 0xfffff ? 0 : P->t.val);
	while (P->t.kind != TK_EOF && P->t.line == line)
		ptx_next(P);
}

static void parse_statement(struct ptx_parser *P)
{
	const char *s = P->t.s;
	size_t n = P->t.n;
	unsigned int line = P->t.line;
	uint32_t pred = 0;

	if (P->t.kind == TK_DOT) {
		if (ptx_is_dot(P, "reg"))
			parse_reg(P);
		else if (ptx_is_dot(P, "param"))
			parse_param(P);
		else if (ptx_is_dot(P, "local"))
			ptx_parse_var(P, SPACE_LOCAL, false);
		else if (ptx_is_dot(P, "shared"))
			ptx_parse_var(P, SPACE_SHARED, false);
		else if (ptx_is_dot(P, "global"))
			ptx_parse_var(P, SPACE_GLOBAL, false);
		else if (ptx_is_dot(P, "const"))
			ptx_parse_var(P, SPACE_CONST, false);
		else if (ptx_is_dot(P, "extern")) {
			ptx_next(P);
			if (!ptx_is_dot(P, "shared"))
				ptx_fail(P, PTX_INVALID_PTX, ".extern .shared expected");
			ptx_parse_var(P, SPACE_SHARED, true);
		} else if (ptx_is_dot(P, "pragma"))
			skip_statement(P);
		else if (ptx_is_dot(P, "loc"))
			parse_loc(P);
		else if (ptx_is_dot(P, "file"))
			ptx_parse_file(P);
		else
			ptx_fail(P, PTX_INVALID_PTX, "unknown directive '.%.*s'",
				 (int)(n > 40 ? 40 : n), s);
		return;
	}
	if (ptx_accept(P, '@')) {
		struct ptx_opnd o;

		ptx_parse_operand(P, &o);
		if (o.kind != O_REG || o.type != T_PRED || o.has_pair)
			ptx_fail(P, PTX_INVALID_PTX, "'@' needs a predicate");
		pred = o.reg << 2 | o.neg;
		s = P->t.s;
		n = P->t.n;
		line = P->t.line;
	}
	if (P->t.kind != TK_ID)
		ptx_fail(P, PTX_INVALID_PTX, "instruction expected before '%.*s'",
			 (int)(n > 40 ? 40 : n), s);
	ptx_next(P);
	if (!pred && ptx_accept(P, ':'))
		parse_label(P, s, n);
	else
		parse_insn(P, s, n, line, pred);
}

void ptx_parse_body(struct ptx_parser *P, struct ptx_func *f)
{
	unsigned int base = P->depth;
	struct ptx_stmt *s = &P->stmt;

	f->pc = P->m->ncode;
	f->area_bytes = P->area;
	P->loc = 0;
	ptx_expect(P, '{');
	for (;;) {
		if (P->t.kind == TK_EOF)
			ptx_fail(P, PTX_INVALID_PTX, "text ends inside '%s'", f->name);
		if (ptx_accept(P, '{')) {
			ptx_scope_push(P);
		} else if (ptx_is(P, '}')) {
			if (P->depth == base)
				break;
			ptx_scope_pop(P);
			ptx_next(P);
		} else if (!ptx_accept(P, ';')) {
			parse_statement(P);
		}
	}
	/* Adds a return: a body may end without ret, and a label may stand at its end. */
	memset(s, 0, sizeof(*s));
	s->line = P->t.line;
	ptx_emit(P, s, NULL)->ctl = f->entry ? CTL_EXIT : CTL_RET;
	f->end = P->m->ncode;
	f->frame_bytes = PTX_FRAME_AREA + (f->area_bytes + 7) / 8 * PTX_LANES * 8;
	ptx_scope_pop(P);
	if (!ptx_assign_slots(P->m, f, P->width, P->nregs))
		ptx_fail_memory(P);
	ptx_next(P);
}

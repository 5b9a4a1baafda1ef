// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parses function bodies: declarations, labels and instructions. Each instruction goes to its
 * builder as soon as it is parsed.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/build/ptx_build.h"
#include "qcu-device/soft/ptx/build/ptx_regalloc.h"
#include "qcu-device/soft/ptx/load/ptx_load.h"

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

/* Refuses parts and signs of operands. Only the builders of video instructions handle them. */
static void refuse_parts(struct ptx_parser *P, const struct ptx_stmt *s)
{
	for (unsigned int i = 0; i < s->nop; i++)
		if (s->op_[i].minus || s->op_[i].npart)
			ptx_fail(P, PTX_INVALID_PTX, "%s: operands have no parts or signs here",
				 s->text);
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

/* .file number "name" ...: only the last part of the name is kept. */
void ptx_parse_file(struct ptx_parser *P)
{
	unsigned int line = P->t.line;
	struct ptx_module *m = P->m;
	uint64_t number;
	const char *s;
	size_t n;

	ptx_next(P);
	number = P->t.val;
	if (P->t.kind == TK_INT && number <= PTX_MAX_FILES) {
		ptx_next(P);
		if (P->t.kind == TK_STR && P->t.line == line) {
			for (s = P->t.s, n = P->t.n; n && s[n - 1] != '/'; n--)
				;
			if (!ptx_grow((void **)&m->files, &m->files_cap, (uint32_t)number + 1,
				      sizeof(*m->files)))
				ptx_fail_memory(P);
			while (m->nfiles <= number)
				m->files[m->nfiles++] = NULL;
			m->files[number] = ptx_strndup(&m->arena, s + n, P->t.n - n);
			if (!m->files[number])
				ptx_fail_memory(P);
		}
	}
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
	if (!ptx_assign_offsets(P->m, f, P->width, P->nregs))
		ptx_fail_memory(P);
	ptx_next(P);
}

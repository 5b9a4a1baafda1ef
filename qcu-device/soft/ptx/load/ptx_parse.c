// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The outer level of a PTX module: directives, function headers and their parameters.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/build/ptx_build.h"
#include "qcu-device/soft/ptx/load/ptx_load.h"

#define MAX_FORMALS 1024u
/* The most bytes of parameters that a kernel may have on a real device. */
#define MAX_KPARAM_BYTES 32764u
#define MAX_AREA_BYTES	 65536u

static struct ptx_func *func_get(struct ptx_parser *P, const char *s, size_t n)
{
	struct ptx_sym *y = ptx_sym_find(P, s, n);
	struct ptx_module *m = P->m;
	struct ptx_func *f;

	if (y) {
		if (y->kind != SYM_FUNC)
			ptx_fail(P, PTX_INVALID_PTX, "'%s' is not a function", y->name);
		return y->fn;
	}
	y = ptx_sym_add(P, s, n, SYM_FUNC);
	f = ptx_malloc_arena(P, sizeof(*f));
	f->name = y->name;
	f->index = m->nfuncs;
	y->fn = f;
	if (!ptx_grow((void **)&m->funcs, &m->funcs_cap, m->nfuncs + 1, sizeof(*m->funcs)))
		ptx_fail_memory(P);
	m->funcs[m->nfuncs++] = f;
	return f;
}

/* Skips from an opening mark to the closing mark that matches it. */
static void skip_pair(struct ptx_parser *P, char open, char close, const char *missing)
{
	unsigned int depth = 0;

	do {
		if (P->t.kind == TK_EOF)
			ptx_fail(P, PTX_INVALID_PTX, "%s", missing);
		if (ptx_is(P, open))
			depth++;
		else if (ptx_is(P, close))
			depth--;
		ptx_next(P);
	} while (depth);
}

struct formal {
	const char *name;
	uint32_t size, align, off;
	bool reg;
	enum ptx_type type;
	struct formal *next;
};

static struct formal *parse_formal(struct ptx_parser *P)
{
	struct formal *f = ptx_palloc(P, sizeof(*f));
	uint64_t count = 1, align = 0;
	bool array = false;

	if (ptx_is_dot(P, "reg"))
		f->reg = true;
	else if (!ptx_is_dot(P, "param"))
		ptx_fail(P, PTX_INVALID_PTX, ".param expected");
	ptx_next(P);
	while (P->t.kind == TK_DOT) {
		if (ptx_is_dot(P, "align")) {
			ptx_next(P);
			align = ptx_expect_uint(P, 256, ".align");
			if (!align || (align & (align - 1)))
				ptx_fail(P, PTX_INVALID_PTX, ".align must be a power of two");
			continue;
		}
		if (ptx_is_dot(P, "ptr")) {
			/* The words that follow describe the memory that it points to. */
			ptx_next(P);
			while (P->t.kind == TK_DOT) {
				bool al = ptx_is_dot(P, "align");

				ptx_next(P);
				if (al)
					ptx_expect_uint(P, 1u << 30, ".align");
			}
			break;
		}
		if (f->type)
			ptx_fail(P, PTX_INVALID_PTX, "'.%.*s' is out of place", (int)P->t.n,
				 P->t.s);
		f->type = ptx_type_from(P->t.s, P->t.n);
		if (ptx_is_dot(P, "texref") || ptx_is_dot(P, "surfref") ||
		    ptx_is_dot(P, "samplerref"))
			f->type = T_U64;
		if (!f->type)
			ptx_fail(P, PTX_INVALID_PTX, "unknown type '.%.*s'",
				 (int)(P->t.n > 40 ? 40 : P->t.n), P->t.s);
		ptx_next(P);
	}
	if (!f->type)
		ptx_fail(P, PTX_INVALID_PTX, "parameter without type");
	if (P->t.kind != TK_ID)
		ptx_fail(P, PTX_INVALID_PTX, "parameter name expected");
	f->name = ptx_strndup(&P->m->arena, P->t.s, P->t.n);
	if (!f->name)
		ptx_fail_memory(P);
	ptx_next(P);
	while (ptx_accept(P, '[')) {
		array = true;
		if (!ptx_is(P, ']'))
			count *= ptx_expect_uint(P, MAX_AREA_BYTES, "array size");
		else
			count = 0;
		if (count > MAX_AREA_BYTES)
			ptx_fail(P, PTX_INVALID_PTX, "parameter too large");
		ptx_expect(P, ']');
	}
	if (f->reg && (array || f->type == T_B128 || f->type == T_PRED))
		ptx_fail(P, PTX_INVALID_PTX, "register parameter of this kind");
	f->size = (uint32_t)count * ptx_type_size(f->type);
	if (f->reg && f->size < 2)
		f->size = 2; /* no register is smaller */
	f->align = align ? (uint32_t)align : ptx_type_size(f->type);
	return f;
}

static struct formal *parse_formals(struct ptx_parser *P, unsigned int *n)
{
	struct formal *first = NULL, **tail = &first;

	*n = 0;
	ptx_expect(P, '(');
	if (ptx_accept(P, ')'))
		return NULL;
	do {
		if (++*n > MAX_FORMALS)
			ptx_fail(P, PTX_INVALID_PTX, "too many parameters");
		if (ptx_is_id(P, "_") || ptx_is(P, '.'))
			ptx_fail(P, PTX_INVALID_PTX, "parameter expected");
		*tail = parse_formal(P);
		tail = &(*tail)->next;
	} while (ptx_accept(P, ','));
	ptx_expect(P, ')');
	return first;
}

/* Places formal parameters in the function's parameter area, or in registers. */
static struct ptx_arg *place_formal_params(struct ptx_parser *P, struct formal *f, unsigned int n,
					   bool body)
{
	struct ptx_arg *args = ptx_malloc_arena(P, (n + 1) * sizeof(*args));

	for (unsigned int i = 0; i < n; i++, f = f->next) {
		args[i].size = f->size;
		args[i].in_area = !f->reg;
		if (!f->reg) {
			args[i].off = P->area;
			P->area += (f->size + 15) & ~15u;
			if (P->area > MAX_AREA_BYTES)
				ptx_fail(P, PTX_INVALID_PTX, "parameters too large");
		}
		if (!body)
			continue;
		if (f->reg) {
			struct ptx_sym *y = ptx_sym_add(P, f->name, strlen(f->name), SYM_REG);

			y->type = f->type;
			y->reg = ptx_new_reg(P, f->type);
			args[i].ref = y->reg << 2 | REF_REG;
		} else {
			struct ptx_sym *y = ptx_sym_add(P, f->name, strlen(f->name), SYM_PARAM);

			y->off = args[i].off;
			y->size = f->size;
		}
	}
	return args;
}

static void place_kernel(struct ptx_parser *P, struct ptx_func *fn, struct formal *f,
			 unsigned int n)
{
	uint32_t off = 0;

	fn->kparams = ptx_malloc_arena(P, (n + 1) * sizeof(*fn->kparams));
	fn->nparams = n;
	for (unsigned int i = 0; i < n; i++, f = f->next) {
		struct ptx_sym *y;

		if (f->reg)
			ptx_fail(P, PTX_INVALID_PTX, "kernel parameter in a register");
		off = (off + f->align - 1) & ~(f->align - 1);
		fn->kparams[i] =
			(struct ptx_param){.offset = off, .size = f->size, .align = f->align};
		y = ptx_sym_add(P, f->name, strlen(f->name), SYM_KPARAM);
		y->off = off;
		y->size = f->size;
		off += f->size;
		if (off > MAX_KPARAM_BYTES)
			ptx_fail(P, PTX_INVALID_PTX, "kernel parameters too large");
	}
	fn->param_bytes = off;
}

static uint32_t dims(struct ptx_parser *P, uint32_t out[3])
{
	uint64_t all;

	out[1] = out[2] = 1;
	out[0] = (uint32_t)ptx_expect_uint(P, UINT32_MAX, "dimension");
	for (int i = 1; i < 3 && ptx_accept(P, ','); i++)
		out[i] = (uint32_t)ptx_expect_uint(P, UINT32_MAX, "dimension");
	all = (uint64_t)out[0] * out[1];
	if (all <= 1024)
		all *= out[2];
	return all > 1024 ? 1024 : (uint32_t)all;
}

/* Tuning directives between the header and the body. */
static void parse_hints(struct ptx_parser *P, struct ptx_func *f)
{
	uint32_t d[3];

	while (P->t.kind == TK_DOT) {
		if (ptx_is_dot(P, "maxntid")) {
			ptx_next(P);
			f->max_threads = dims(P, d);
		} else if (ptx_is_dot(P, "reqntid")) {
			ptx_next(P);
			f->max_threads = dims(P, f->req_threads);
		} else if (ptx_is_dot(P, "minnctapersm")) {
			ptx_next(P);
			f->min_blocks = dims(P, d);
		} else if (ptx_is_dot(P, "maxnreg")) {
			ptx_next(P);
			f->max_regs = dims(P, d);
		} else if (ptx_is_dot(P, "pragma")) {
			while (!ptx_is(P, ';')) {
				if (P->t.kind == TK_EOF)
					ptx_fail(P, PTX_INVALID_PTX, "';' expected");
				ptx_next(P);
			}
			ptx_next(P);
		} else if (ptx_is_dot(P, "attribute")) {
			ptx_next(P);
			skip_pair(P, '(', ')', "')' expected");
		} else if (ptx_is_dot(P, "reqnctapercluster")) {
			unsigned int line = P->t.line;

			ptx_next(P);
			if (dims(P, d) != 1)
				ptx_mark_bad(f, ".reqnctapercluster", line);
		} else if (ptx_is_dot(P, "maxnctapersm") || ptx_is_dot(P, "maxclusterrank") ||
			   ptx_is_dot(P, "abi_preserve") || ptx_is_dot(P, "abi_preserve_control")) {
			ptx_next(P);
			dims(P, d);
		} else if (ptx_is_dot(P, "noreturn") || ptx_is_dot(P, "explicitcluster") ||
			   ptx_is_dot(P, "blocksareclusters")) {
			ptx_next(P);
		} else {
			ptx_fail(P, PTX_INVALID_PTX, "unknown directive '.%.*s'",
				 (int)(P->t.n > 40 ? 40 : P->t.n), P->t.s);
		}
	}
}

static void parse_func(struct ptx_parser *P, bool entry)
{
	struct formal *params = NULL, *rets = NULL;
	unsigned int np = 0, nr = 0;
	struct ptx_func *f;

	ptx_next(P);
	if (ptx_is_dot(P, "attribute")) {
		ptx_next(P);
		skip_pair(P, '(', ')', "')' expected");
	}
	if (!entry && ptx_is(P, '('))
		rets = parse_formals(P, &nr);
	if (P->t.kind != TK_ID)
		ptx_fail(P, PTX_INVALID_PTX, "function name expected");
	f = func_get(P, P->t.s, P->t.n);
	if (!f->call_line) {
		f->call_line = P->t.line;
		f->entry = entry;
	}
	if (f->entry != entry)
		ptx_fail(P, PTX_INVALID_PTX, "'%s' is both .entry and .func", f->name);
	ptx_next(P);
	if (ptx_is(P, '('))
		params = parse_formals(P, &np);
	parse_hints(P, f);

	if (ptx_is(P, '{') && f->defined)
		ptx_fail(P, PTX_INVALID_PTX, "'%s' is defined twice", f->name);
	P->fn = f;
	P->area = 0;
	P->nregs = 1;
	ptx_scope_push(P);
	if (ptx_is(P, '{')) {
		if (entry) {
			place_kernel(P, f, params, np);
		} else {
			f->params = place_formal_params(P, params, np, true);
			f->rets = place_formal_params(P, rets, nr, true);
			f->nparams = np;
			f->nrets = nr;
		}
		ptx_parse_body(P, f);
		f->defined = true;
	} else {
		if (!entry && !f->defined) {
			f->params = place_formal_params(P, params, np, false);
			f->rets = place_formal_params(P, rets, nr, false);
			f->nparams = np;
			f->nrets = nr;
		}
		ptx_expect(P, ';');
		ptx_scope_pop(P);
	}
	P->fn = NULL;
}

static void parse_target(struct ptx_parser *P)
{
	unsigned int v = 0;

	ptx_next(P);
	if (P->t.kind != TK_ID || P->t.n < 4 || memcmp(P->t.s, "sm_", 3))
		ptx_fail(P, PTX_INVALID_PTX, ".target sm_XY expected");
	for (size_t i = 3; i < P->t.n && P->t.s[i] >= '0' && P->t.s[i] <= '9' && v < 1000; i++)
		v = v * 10 + (unsigned int)(P->t.s[i] - '0');
	P->m->target = v;
	ptx_next(P);
	while (ptx_accept(P, ',')) {
		if (P->t.kind != TK_ID)
			ptx_fail(P, PTX_INVALID_PTX, ".target: word expected");
		ptx_next(P);
	}
}

/* `.alias a, b;`: a is another name of function b. */
static void parse_alias(struct ptx_parser *P)
{
	struct ptx_func *a, *b;
	struct ptx_sym *y;

	ptx_next(P);
	if (P->t.kind != TK_ID)
		ptx_fail(P, PTX_INVALID_PTX, ".alias: name expected");
	a = func_get(P, P->t.s, P->t.n);
	y = ptx_sym_find(P, P->t.s, P->t.n);
	ptx_next(P);
	ptx_expect(P, ',');
	if (P->t.kind != TK_ID)
		ptx_fail(P, PTX_INVALID_PTX, ".alias: name expected");
	b = func_get(P, P->t.s, P->t.n);
	ptx_next(P);
	ptx_expect(P, ';');
	/* Calls before this line refer to `a` itself; ptx_link() follows `next`. */
	a->next = b;
	y->fn = b;
}

static void parse_directive(struct ptx_parser *P)
{
	bool is_extern = false;

	while (ptx_is_dot(P, "extern") || ptx_is_dot(P, "visible") || ptx_is_dot(P, "weak") ||
	       ptx_is_dot(P, "common")) {
		is_extern |= ptx_is_dot(P, "extern");
		ptx_next(P);
	}
	if (ptx_is_dot(P, "version")) {
		ptx_next(P);
		if (P->t.kind != TK_F64)
			ptx_fail(P, PTX_INVALID_PTX, ".version: number expected");
		P->seen_version = true;
		ptx_next(P);
	} else if (ptx_is_dot(P, "target")) {
		parse_target(P);
	} else if (ptx_is_dot(P, "address_size")) {
		ptx_next(P);
		if (ptx_expect_uint(P, 64, ".address_size") != 64)
			ptx_fail(P, PTX_UNSUPPORTED, ".address_size 32 is not supported");
	} else if (ptx_is_dot(P, "entry")) {
		parse_func(P, true);
	} else if (ptx_is_dot(P, "func")) {
		parse_func(P, false);
	} else if (ptx_is_dot(P, "global") || ptx_is_dot(P, "tex")) {
		ptx_parse_var(P, SPACE_GLOBAL, is_extern);
	} else if (ptx_is_dot(P, "const")) {
		ptx_parse_var(P, SPACE_CONST, is_extern);
	} else if (ptx_is_dot(P, "shared")) {
		ptx_parse_var(P, SPACE_SHARED, is_extern);
	} else if (ptx_is_dot(P, "file")) {
		ptx_parse_file(P);
	} else if (ptx_is_dot(P, "loc")) {
		ptx_skip_line(P);
	} else if (ptx_is_dot(P, "section")) {
		ptx_next(P);
		ptx_next(P);
		if (!ptx_is(P, '{'))
			ptx_fail(P, PTX_INVALID_PTX, ".section: '{' expected");
		skip_pair(P, '{', '}', "section does not end");
	} else if (ptx_is_dot(P, "alias")) {
		parse_alias(P);
	} else if (ptx_is_dot(P, "pragma")) {
		while (!ptx_is(P, ';')) {
			if (P->t.kind == TK_EOF)
				ptx_fail(P, PTX_INVALID_PTX, "';' expected");
			ptx_next(P);
		}
		ptx_next(P);
	} else {
		ptx_fail(P, PTX_INVALID_PTX, "unknown directive '.%.*s'",
			 (int)(P->t.n > 40 ? 40 : P->t.n), P->t.s);
	}
}

void ptx_parse_module(struct ptx_parser *P)
{
	while (P->t.kind != TK_EOF) {
		if (P->t.kind != TK_DOT)
			ptx_fail(P, PTX_INVALID_PTX, "directive expected before '%.*s'",
				 (int)(P->t.n > 40 ? 40 : P->t.n), P->t.s);
		if (!P->seen_version && !ptx_is_dot(P, "version"))
			ptx_fail(P, PTX_INVALID_PTX, "PTX must start with .version");
		parse_directive(P);
	}
	if (!P->seen_version)
		ptx_fail(P, PTX_INVALID_PTX, "no PTX text");
	if (!P->m->target)
		ptx_fail(P, PTX_INVALID_PTX, "no .target");
}

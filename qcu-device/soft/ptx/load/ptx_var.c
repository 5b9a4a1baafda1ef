// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Variables of a module and of functions: declarations, initialisers, and addresses.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/build/ptx_build.h"
#include "qcu-device/soft/ptx/load/ptx_load.h"

#define MAX_VAR_BYTES (1ull << 40)
/* No real program has a larger one. The limit keeps a small text from taking a lot of memory. */
#define MAX_INIT_BYTES	(256ull << 20)
#define MAX_LOCAL_BYTES (512u << 10)
#define MAX_SHARED	(227u << 10)

struct init {
	struct ptx_var *v;
	enum ptx_type type;
	unsigned int esize;
	bool open;    /* the initialisers determine the size */
	uint64_t cap; /* the declared size in bytes */
	uint8_t *buf; /* bytes up to the last value; the rest is zero */
	uint64_t len; /* offset of the next value */
	uint64_t alloc;
};

static uint8_t *init_room(struct ptx_parser *P, struct init *in)
{
	uint64_t need = in->len + in->esize;

	if ((!in->open && need > in->cap) || need > MAX_INIT_BYTES)
		ptx_fail(P, PTX_INVALID_PTX, "'%s' has too many initialisers", in->v->name);
	if (need > in->alloc) {
		uint64_t n = in->alloc * 2 > need ? in->alloc * 2 : need + 256;
		uint8_t *b;

		if (!in->open && n > in->cap)
			n = in->cap;
		b = ptx_malloc_arena(P, n);
		memset(b + in->v->init_len, 0, n - in->v->init_len);
		if (in->v->init_len)
			memcpy(b, in->buf, in->v->init_len);
		in->buf = b;
		in->alloc = n;
	}
	in->len = need;
	in->v->init_len = need;
	return in->buf + need - in->esize;
}

static void put_reloc(struct ptx_parser *P, struct init *in, uint64_t mask)
{
	struct ptx_reloc *r = ptx_malloc_arena(P, sizeof(*r));
	bool paren = false;

	if (ptx_is_id(P, "generic")) {
		ptx_next(P);
		ptx_expect(P, '(');
		paren = true;
	}
	if (P->t.kind != TK_ID)
		ptx_fail(P, PTX_INVALID_PTX, "name expected");
	r->name = ptx_strndup(&P->m->arena, P->t.s, P->t.n);
	if (!r->name)
		ptx_fail_memory(P);
	r->line = P->t.line;
	ptx_next(P);
	for (;;) {
		bool minus = ptx_is(P, '-');

		if (paren && ptx_accept(P, ')')) {
			paren = false;
			continue;
		}
		if (!minus && !ptx_is(P, '+'))
			break;
		ptx_next(P);
		if (minus)
			r->add -= (int64_t)ptx_expect_uint(P, INT64_MAX / 4, "offset");
		else
			r->add += (int64_t)ptx_expect_uint(P, INT64_MAX / 4, "offset");
		if (r->add > INT64_MAX / 4 || r->add < -(INT64_MAX / 4))
			ptx_fail(P, PTX_INVALID_PTX, "offset too large");
	}
	if (paren)
		ptx_expect(P, ')');
	r->size = in->esize;
	r->shift = mask ? (unsigned int)__builtin_ctzll(mask) : 0;
	memset(init_room(P, in), 0, in->esize);
	r->off = in->len - in->esize;
	r->next = in->v->relocs;
	in->v->relocs = r;
}

static void put_value(struct ptx_parser *P, struct init *in)
{
	struct ptx_opnd o = {.kind = O_IMM};
	bool minus = false, inv = false;
	uint64_t v;

	if (P->t.kind == TK_ID) {
		put_reloc(P, in, 0);
		return;
	}
	while (ptx_is(P, '-') || ptx_is(P, '+') || ptx_is(P, '~')) {
		minus ^= ptx_is(P, '-');
		inv ^= ptx_is(P, '~');
		ptx_next(P);
	}
	if (P->t.kind != TK_INT && P->t.kind != TK_F32 && P->t.kind != TK_F64)
		ptx_fail(P, PTX_INVALID_PTX, "'%s': initialiser expected", in->v->name);
	o.num = (uint8_t)P->t.kind;
	o.imm = P->t.val;
	ptx_next(P);
	if (o.num == TK_INT && ptx_accept(P, '(')) {
		/* 0xFF00(name): one byte of an address, here the second */
		put_reloc(P, in, o.imm);
		ptx_expect(P, ')');
		return;
	}
	if (inv)
		o.imm = ~o.imm;
	if (minus && o.num == TK_INT)
		o.imm = 0 - o.imm;
	else if (minus)
		o.imm ^= o.num == TK_F32 ? 1ull << 31 : 1ull << 63;
	v = ptx_imm_bits(&o, in->type);
	memcpy(init_room(P, in), &v, in->esize);
}

static void parse_init(struct ptx_parser *P, struct init *in, const uint64_t *dim, unsigned int nd)
{
	uint64_t start = in->len, span = in->esize;

	if (!ptx_accept(P, '{')) {
		put_value(P, in);
		return;
	}
	if (!nd)
		ptx_fail(P, PTX_INVALID_PTX, "'%s': too many braces", in->v->name);
	for (unsigned int i = 0; i < nd; i++)
		span *= dim[i] ? dim[i] : 1;
	if (!ptx_is(P, '}'))
		do
			parse_init(P, in, dim + 1, nd - 1);
		while (ptx_accept(P, ','));
	ptx_expect(P, '}');
	/* Values missing between braces are zero. */
	if (!in->open && in->len - start < span)
		in->len = start + span;
}

static struct ptx_var *declare(struct ptx_parser *P, enum ptx_space space, bool is_extern,
			       const char *s, size_t n, uint64_t size)
{
	struct ptx_sym *y = ptx_sym_find(P, s, n);
	struct ptx_var *v;

	/* A declaration with .extern may come before or after the definition. */
	if (y && y->depth == P->depth && y->kind == SYM_VAR && y->var->space == space &&
	    (is_extern || y->var->is_extern)) {
		v = y->var;
		if (!is_extern) {
			v->is_extern = false;
			v->size = size;
		}
		return v;
	}
	y = ptx_sym_add(P, s, n, SYM_VAR);
	v = ptx_malloc_arena(P, sizeof(*v));
	v->name = y->name;
	v->space = space;
	v->size = size;
	v->is_extern = is_extern;
	y->var = v;
	*P->m->vars_tail = v;
	P->m->vars_tail = &v->next;
	return v;
}

static uint64_t align_up(uint64_t v, uint64_t a)
{
	return (v + a - 1) & ~(a - 1);
}

/*
 * Gives variables of a function their addresses in local and shared memory. Shared variables that
 * several kernels may reach get theirs from ptx_shared_place(), the others from ptx_var_place().
 */
static void place_now(struct ptx_parser *P, struct ptx_var *v)
{
	struct ptx_func *f = P->fn;

	if (v->space == SPACE_LOCAL) {
		uint64_t off = align_up(f->local_bytes, v->align);

		if (v->size > MAX_LOCAL_BYTES || off + v->size > MAX_LOCAL_BYTES)
			ptx_fail(P, PTX_INVALID_PTX, "'%s': too much local memory", v->name);
		v->off = off;
		f->local_bytes = (uint32_t)(off + v->size);
	} else if (v->space == SPACE_SHARED && !v->is_extern) {
		uint64_t off = f && f->entry ? align_up(f->shared_bytes, v->align) : 0;

		if (v->size > MAX_SHARED || off + v->size > MAX_SHARED)
			ptx_fail(P, PTX_INVALID_PTX, "'%s': too much shared memory", v->name);
		if (!f || !f->entry) {
			v->linked = true;
			return;
		}
		v->off = off;
		v->own = true;
		f->shared_bytes = (uint32_t)(off + v->size);
	}
}

void ptx_parse_var(struct ptx_parser *P, enum ptx_space space, bool is_extern)
{
	uint64_t align = 0, lanes = 1;
	enum ptx_type type = T_NONE;
	bool managed = false;

	ptx_next(P);
	while (P->t.kind == TK_DOT) {
		if (ptx_is_dot(P, "align")) {
			ptx_next(P);
			align = ptx_expect_uint(P, 1024, ".align");
			if (!align || (align & (align - 1)))
				ptx_fail(P, PTX_INVALID_PTX, ".align must be a power of two");
			continue;
		}
		if (ptx_is_dot(P, "attribute")) {
			do {
				if (P->t.kind == TK_EOF)
					ptx_fail(P, PTX_INVALID_PTX, "')' expected");
				ptx_next(P);
				managed |= ptx_is_dot(P, "managed");
			} while (!ptx_is(P, ')'));
			ptx_next(P);
			continue;
		}
		if (ptx_is_dot(P, "v2"))
			lanes = 2;
		else if (ptx_is_dot(P, "v4"))
			lanes = 4;
		else if (ptx_is_dot(P, "texref") || ptx_is_dot(P, "surfref") ||
			 ptx_is_dot(P, "samplerref"))
			type = T_U64;
		else
			type = ptx_type_from(P->t.s, P->t.n);
		if (lanes == 1 && !type)
			ptx_fail(P, PTX_INVALID_PTX, "unknown type '.%.*s'",
				 (int)(P->t.n > 40 ? 40 : P->t.n), P->t.s);
		ptx_next(P);
	}
	if (!type || type == T_PRED)
		ptx_fail(P, PTX_INVALID_PTX, "variable without a type");
	do {
		uint64_t dim[8], size = ptx_type_size(type) * lanes;
		const char *s = P->t.s;
		size_t n = P->t.n;
		unsigned int nd = 0;
		bool open = false;
		struct ptx_var *v;

		if (P->t.kind != TK_ID)
			ptx_fail(P, PTX_INVALID_PTX, "variable name expected");
		ptx_next(P);
		while (ptx_accept(P, '[')) {
			if (nd == 7)
				ptx_fail(P, PTX_INVALID_PTX, "too many dimensions");
			dim[nd] = 0;
			if (ptx_is(P, ']'))
				open = true;
			else
				dim[nd] = ptx_expect_uint(P, MAX_VAR_BYTES, "array size");
			if (dim[nd] && size > MAX_VAR_BYTES / dim[nd])
				ptx_fail(P, PTX_INVALID_PTX, "array too large");
			size *= dim[nd++];
			ptx_expect(P, ']');
		}
		if (lanes > 1)
			dim[nd++] = lanes;
		v = declare(P, space, is_extern, s, n, size);
		v->managed |= managed && space == SPACE_GLOBAL;
		if (!v->align || align)
			v->align = align ? (uint32_t)align : ptx_type_size(type) * (uint32_t)lanes;
		if (ptx_accept(P, '=')) {
			struct init in = {.v = v, .type = type, .esize = ptx_type_size(type)};

			if (space != SPACE_GLOBAL && space != SPACE_CONST)
				ptx_fail(P, PTX_INVALID_PTX, "'%s' cannot be initialised", v->name);
			if (in.esize > 8)
				ptx_fail(P, PTX_UNSUPPORTED, "'%s': 128-bit initialiser", v->name);
			if (is_extern)
				ptx_fail(P, PTX_INVALID_PTX,
					 "'%s' is .extern and cannot be initialised", v->name);
			in.open = open;
			in.cap = size;
			parse_init(P, &in, dim, nd);
			if (open)
				v->size = in.len;
			v->init = in.buf;
		} else if (open && !is_extern) {
			ptx_fail(P, PTX_INVALID_PTX, "'%s' has no size", v->name);
		}
		place_now(P, v);
	} while (ptx_accept(P, ','));
	ptx_expect(P, ';');
}

static bool addr_of(struct ptx_module *m, const struct ptx_reloc *r, uint64_t *addr)
{
	for (struct ptx_var *v = m->vars; v; v = v->next)
		if (!strcmp(v->name, r->name)) {
			if (v->space == SPACE_SHARED)
				*addr = PTX_SHARED_BASE + v->off;
			else
				*addr = v->addr;
			return true;
		}
	for (unsigned int i = 0; i < m->nfuncs; i++)
		if (!strcmp(m->funcs[i]->name, r->name)) {
			*addr = PTX_CODE_BASE + m->funcs[i]->index * 16ull;
			return true;
		}
	return false;
}

static void fill_addr_const(struct ptx_module *m, const struct ptx_var *v)
{
	for (unsigned int i = 0; v->addr_const && i < PTX_LANES; i++)
		memcpy(m->consts + (v->addr_const & REF_OFF) + i * 8, &v->addr, 8);
}

bool ptx_init_vars(struct ptx_module *m, struct ptx_diag *diag, enum ptx_status *st)
{
	for (struct ptx_var *v = m->vars; v; v = v->next) {
		if (v->space != SPACE_GLOBAL && v->space != SPACE_CONST)
			continue;
		if (!ptx_var_place(m, v)) {
			ptx_diag_set(diag, 0, "no device memory for variable '%s'", v->name);
			*st = PTX_NO_MEMORY;
			return false;
		}
		fill_addr_const(m, v);
		if (v->init_len && !v->bound)
			memcpy((void *)(uintptr_t)v->addr, v->init, v->init_len);
		if (v->space == SPACE_CONST)
			m->const_size += v->size;
	}
	for (struct ptx_var *v = m->vars; v; v = v->next)
		for (struct ptx_reloc *r = v->bound ? NULL : v->relocs; r; r = r->next) {
			uint64_t a;

			if (!addr_of(m, r, &a)) {
				ptx_diag_set(diag, r->line, "'%s' is not known", r->name);
				*st = PTX_INVALID_PTX;
				return false;
			}
			a = (a + (uint64_t)r->add) >> r->shift;
			memcpy((uint8_t *)(uintptr_t)v->addr + r->off, &a, r->size);
		}
	return true;
}

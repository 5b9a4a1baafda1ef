// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names and their scopes. Scope 0 is the module, scope 1 a function, higher scopes are braces in
 * the function.
 */
#include <string.h>

#include "qcu-device/soft/ptx/text/ptx_parse.h"

void *ptx_palloc(struct ptx_parser *P, size_t n)
{
	void *p = ptx_alloc(&P->scratch, n);

	if (!p)
		ptx_fail_memory(P);
	return p;
}

void *ptx_malloc_arena(struct ptx_parser *P, size_t n)
{
	void *p = ptx_alloc(&P->m->arena, n);

	if (!p)
		ptx_fail_memory(P);
	return p;
}

static uint32_t bucket_of_name(const char *s, size_t n)
{
	uint32_t h = 2166136261u;

	while (n--)
		h = (h ^ (uint8_t)*s++) * 16777619u;
	return (h ^ (h >> 15)) % PTX_SYM_BUCKETS;
}

struct ptx_sym *ptx_sym_find(struct ptx_parser *P, const char *s, size_t n)
{
	struct ptx_sym *y;

	for (y = P->bucket[bucket_of_name(s, n)]; y; y = y->bucket_next)
		if (y->len == n && !memcmp(y->name, s, n))
			return y;
	return NULL;
}

struct ptx_sym *ptx_sym_add(struct ptx_parser *P, const char *s, size_t n, enum ptx_sym_kind kind)
{
	uint32_t h = bucket_of_name(s, n);
	struct ptx_sym *y = ptx_sym_find(P, s, n);

	if (y && y->depth == P->depth)
		ptx_fail(P, PTX_INVALID_PTX, "'%.*s' is declared twice", (int)(n > 80 ? 80 : n), s);
	y = ptx_palloc(P, sizeof(*y));
	y->name = ptx_strndup(&P->m->arena, s, n);
	if (!y->name)
		ptx_fail_memory(P);
	y->len = n;
	y->kind = kind;
	y->depth = P->depth;
	y->bucket_next = P->bucket[h];
	P->bucket[h] = y;
	y->scope_next = P->scope[P->depth];
	P->scope[P->depth] = y;
	return y;
}

void ptx_scope_push(struct ptx_parser *P)
{
	if (P->depth + 1 >= PTX_MAX_DEPTH)
		ptx_fail(P, PTX_INVALID_PTX, "braces nested too deeply");
	P->depth++;
	P->scope[P->depth] = NULL;
	P->area_mark[P->depth] = P->area;
}

/*
 * Branches whose label is not known yet look for it in the scope that ends. If it is not there,
 * they look again when the scope around this one ends.
 */
static void resolve_labels(struct ptx_parser *P)
{
	struct ptx_fixup **pf = &P->fixups;

	while (*pf) {
		struct ptx_fixup *f = *pf;
		struct ptx_sym *y;

		if (f->depth < P->depth) {
			pf = &f->next;
			continue;
		}
		y = ptx_sym_find(P, f->name, f->len);
		if (y && y->depth == P->depth && y->kind == SYM_LABEL) {
			if (f->table)
				P->m->xops[f->where] = y->off << 2 | REF_AREA;
			else
				P->m->code[f->where].imm = y->off;
			*pf = f->next;
			continue;
		}
		if (P->depth == 1) {
			P->t.line = f->line;
			ptx_fail(P, PTX_INVALID_PTX, "no label '%.*s'",
				 (int)(f->len > 80 ? 80 : f->len), f->name);
		}
		f->depth = P->depth - 1;
		pf = &f->next;
	}
}

void ptx_scope_pop(struct ptx_parser *P)
{
	struct ptx_sym *y;

	resolve_labels(P);
	for (y = P->scope[P->depth]; y; y = y->scope_next)
		P->bucket[bucket_of_name(y->name, y->len)] = y->bucket_next;
	P->scope[P->depth] = NULL;
	P->area = P->area_mark[P->depth];
	P->depth--;
}

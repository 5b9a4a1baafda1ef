// SPDX-License-Identifier: GPL-2.0-or-later
/* Adds an instruction to the module's code, and constants to its pool. */
#include <stdio.h>
#include <stdlib.h>

#include "qcu-device/soft/ptx/build/ptx_build.h"

struct ptx_insn *ptx_emit(struct ptx_parser *P, const struct ptx_stmt *s, ptx_fn fn)
{
	struct ptx_module *m = P->m;
	struct ptx_insn *in;

	/* Branch targets and refs use two of their bits for other things. */
	if (m->ncode >= 1u << 28)
		ptx_fail(P, PTX_UNSUPPORTED, "module too large");
	if (!ptx_grow((void **)&m->code, &m->code_cap, m->ncode + 1, sizeof(*m->code)))
		ptx_fail_memory(P);
	in = &m->code[m->ncode++];
	memset(in, 0, sizeof(*in));
	in->fn = fn;
	in->pred = s->pred;
	in->line = s->line;
	in->loc = P->loc;
	return in;
}

void ptx_mark_bad(struct ptx_func *f, const char *text, unsigned int line)
{
	if (f->bad)
		return;
	f->bad = PTX_UNSUPPORTED;
	f->bad_line = line;
	snprintf(f->bad_text, sizeof(f->bad_text), "%s", text);
}

/*
 * Emits a placeholder for an instruction that the machine does not know, and marks the function
 * that contains it.
 */
void ptx_emit_bad(struct ptx_parser *P, const char *text, unsigned int line)
{
	struct ptx_stmt s = {.line = line, .pred = P->stmt.pred};
	struct ptx_func *f = P->fn;
	struct ptx_insn *in = ptx_emit(P, &s, NULL);

	in->ctl = CTL_UNSUPPORTED;
	in->x = f->index;
	ptx_mark_bad(f, text, line);
}

static uint32_t const_hash(unsigned int width, uint64_t v)
{
	v = (v ^ width) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(v >> 32);
}

static bool const_is(const struct ptx_module *m, uint32_t entry, unsigned int width, uint64_t v)
{
	uint64_t have = 0;

	if ((entry & 3) != (width == 2 ? 1u : width == 4 ? 2u : 3u))
		return false;
	memcpy(&have, m->consts + (entry & REF_OFF), width);
	return have == v;
}

/*
 * Doubles the hash table. An entry is the offset of a constant, with a code for its width in the
 * low bits. 0: free.
 */
static bool const_rehash(struct ptx_module *m)
{
	uint32_t cap = m->const_hash_cap ? m->const_hash_cap * 2 : 1024;
	uint32_t *h = calloc(cap, sizeof(*h));

	if (!h)
		return false;
	for (uint32_t i = 0; i < m->const_hash_cap; i++) {
		uint32_t e = m->const_hash[i], at;
		unsigned int width = (e & 3) == 1 ? 2 : (e & 3) == 2 ? 4 : 8;
		uint64_t v = 0;

		if (!e)
			continue;
		memcpy(&v, m->consts + (e & REF_OFF), width);
		for (at = const_hash(width, v) % cap; h[at]; at = (at + 1) % cap)
			;
		h[at] = e;
	}
	free(m->const_hash);
	m->const_hash = h;
	m->const_hash_cap = cap;
	return true;
}

static uint32_t const_room(struct ptx_parser *P, unsigned int width)
{
	struct ptx_module *m = P->m;
	uint32_t off = m->const_len;

	if (off > (1u << 31) ||
	    !ptx_grow((void **)&m->consts, &m->const_cap, off + width * PTX_LANES, 1))
		ptx_fail_memory(P);
	m->const_len += width * PTX_LANES;
	return off;
}

/* Adds a constant that is never shared with an equal one. Its value is set later. */
uint32_t ptx_const_own(struct ptx_parser *P, unsigned int width)
{
	return const_room(P, width) | REF_CONST;
}

/* Returns the ref of a constant: the value, once for each lane. Equal constants are shared. */
uint32_t ptx_const(struct ptx_parser *P, unsigned int width, uint64_t v)
{
	struct ptx_module *m = P->m;
	uint32_t at, off;

	if (width == 1) {
		width = 4;
		v = v ? PTX_FULL : 0;
	}
	if (width < 8)
		v &= (1ull << width * 8) - 1;
	if (m->const_count * 2 >= m->const_hash_cap && !const_rehash(m))
		ptx_fail_memory(P);
	for (at = const_hash(width, v) % m->const_hash_cap; m->const_hash[at];
	     at = (at + 1) % m->const_hash_cap)
		if (const_is(m, m->const_hash[at], width, v))
			return (m->const_hash[at] & REF_OFF) | REF_CONST;
	off = const_room(P, width);
	for (unsigned int i = 0; i < PTX_LANES; i++)
		memcpy(m->consts + off + i * width, &v, width);
	m->const_hash[at] = off | (width == 2 ? 1u : width == 4 ? 2u : 3u);
	m->const_count++;
	return off | REF_CONST;
}

uint32_t ptx_xop(struct ptx_parser *P, uint32_t ref)
{
	struct ptx_module *m = P->m;

	if (!ptx_grow((void **)&m->xops, &m->xops_cap, m->nxops + 1, sizeof(*m->xops)))
		ptx_fail_memory(P);
	m->xops[m->nxops] = ref;
	return m->nxops++;
}

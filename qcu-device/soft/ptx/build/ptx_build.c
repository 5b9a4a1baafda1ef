// SPDX-License-Identifier: GPL-2.0-or-later
/* Turns a statement into a decoded instruction: finds the builder for it. */
#include "qcu-device/soft/ptx/build/ptx_build.h"

ptx_build_fn ptx_build_find(const char *op)
{
	static const struct ptx_build_entry *const all[] = {
		ptx_build_int,	 ptx_build_float, ptx_build_mem, ptx_build_ctl, ptx_build_sync,
		ptx_build_video, ptx_build_atom,  ptx_build_cvt, ptx_build_tex, ptx_build_mma};

	for (size_t t = 0; t < sizeof(all) / sizeof(all[0]); t++)
		for (const struct ptx_build_entry *e = all[t]; e->op; e++)
			if (!strcmp(e->op, op))
				return e->fn;
	return NULL;
}

/*
 * The builders of arithmetic and control flow only look for the modifiers that they know. An
 * unknown modifier may change the meaning of an instruction, and they would not notice it. So every
 * modifier must be one of the words below.
 */
static bool modifiers_known(const struct ptx_stmt *s)
{
	static const char words[] =
		" rn rz rm rp ftz sat relu NaN xorsign abs approx full lo hi wide cc and or xor "
		"eq ne lt le gt ge ls hs equ neu ltu leu gtu geu num nan clamp wrap l r f4e b4e "
		"rc8 "
		"ecl ecr rc16 shiftamt finite infinite number notanumber normal subnormal uni idx "
		"sync aligned arrive red popc warp cta cluster wait acquire release relaxed up "
		"down "
		"bfly all any ballot add min max mask oob ";

	for (unsigned int i = 0; i < s->nmod; i++) {
		size_t n = strlen(s->mod[i]);
		const char *p = words;

		if (ptx_type_from(s->mod[i], n))
			continue;
		for (p = strstr(p, s->mod[i]); p; p = strstr(p + 1, s->mod[i]))
			if (p[-1] == ' ' && p[n] == ' ')
				break;
		if (!p)
			return false;
	}
	return true;
}

static bool has_entry(const struct ptx_build_entry *e, const char *op)
{
	for (; e->op; e++)
		if (!strcmp(e->op, op))
			return true;
	return false;
}

enum ptx_status ptx_build_stmt(struct ptx_parser *P, struct ptx_stmt *s)
{
	bool strict = has_entry(ptx_build_int, s->op) || has_entry(ptx_build_float, s->op) ||
		      has_entry(ptx_build_ctl, s->op);
	uint32_t from = P->m->ncode;
	enum ptx_status st;

	if (strict && !modifiers_known(s))
		return PTX_INVALID_PTX;
	st = ptx_build_find(s->op)(P, s);
	ptx_shared_fix_insns(P, from);
	return st;
}

bool ptx_is_video(const char *op)
{
	return has_entry(ptx_build_video, op);
}

bool ptx_known_form(const struct ptx_stmt *s)
{
	return !strcmp(s->op, "cp") && (ptx_has(s, "tensor") || ptx_has(s, "reduce"));
}

/*
 * Is op a PTX instruction that the machine does not have? A word that is neither here nor in the
 * table of a builder is not PTX.
 */
bool ptx_known_opcode(const char *op)
{
	static const char *const known[] = {
		"clusterlaunchcontrol", "istypep", "multimem", "tcgen05", "tensormap", "wgmma",
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i], op))
			return true;
	return false;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Addresses: of variables, which get their memory here, and as instructions write them. */
#include "qcu-device/soft/ptx/build/ptx_build.h"

/*
 * Gives a variable the address from env->bound, if there is one. A variable that is too large for
 * this place gets memory of its own in ptx_var_place(), so that it overwrites nothing else.
 */
static void place_bound(const struct ptx_env *env, struct ptx_var *v)
{
	for (size_t i = 0; i < env->bound_count; i++)
		if (v->space == SPACE_GLOBAL && v->size <= env->bound[i].size &&
		    !strcmp(v->name, env->bound[i].name)) {
			v->addr = env->bound[i].addr;
			v->bound = true;
		}
}

bool ptx_var_place(struct ptx_module *m, struct ptx_var *v)
{
	if (!v->addr)
		place_bound(&m->env, v);
	if (!v->addr) {
		v->addr = m->env.alloc(m->env.ctx, v->size ? v->size : 1);
		v->placed = v->addr ? ++m->placed : 0;
	}
	return v->addr;
}

/*
 * Returns the operand for the address of a variable in .global or .const. A variable that is
 * defined gets its memory now. If it is only declared so far, its size is not known yet: its
 * address goes into a constant that ptx_init_vars() fills in later. ptx_init_vars() also writes the
 * initialisers.
 */
uint32_t ptx_var_ref(struct ptx_parser *P, struct ptx_var *v)
{
	if (v->is_extern && !v->addr) {
		if (!v->addr_const)
			v->addr_const = ptx_const_own(P, 8);
		return v->addr_const;
	}
	if (!ptx_var_place(P->m, v))
		ptx_fail(P, PTX_NO_MEMORY, "no device memory for variable '%s'", v->name);
	return ptx_const(P, 8, v->addr);
}

/*
 * Is m a word of the memory model or a cache hint? The machine does not reorder or cache, so these
 * words do not change what an instruction does.
 */
bool ptx_is_hint(const char *m)
{
	static const char *const hints[] = {
		"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio",
		"cta",	"cluster",  "gpu",     "sys",	  "nc",	     "ca",	"cg",
		"cs",	"lu",	    "cv",      "wb",	  "wt",	     "sc",	"noftz",
	};

	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (!strcmp(m, hints[i]))
			return true;
	return !strncmp(m, "L1::", 4) || !strncmp(m, "L2::", 4);
}

bool ptx_is_space(const char *m, enum ptx_space *sp)
{
	static const struct {
		const char *name;
		enum ptx_space space;
	} names[] = {
		{"global", SPACE_GLOBAL},      {"shared", SPACE_SHARED},
		{"shared::cta", SPACE_SHARED}, {"shared::cluster", SPACE_SHARED},
		{"local", SPACE_LOCAL},	       {"const", SPACE_CONST},
		{"param", SPACE_PARAM},	       {"param::entry", SPACE_PARAM},
		{"param::func", SPACE_PARAM},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(m, names[i].name)) {
			*sp = names[i].space;
			return true;
		}
	return false;
}

/* Remembers that the function names a shared variable whose address is not known yet. */
void ptx_shared_use(struct ptx_parser *P, struct ptx_var *v)
{
	struct ptx_shared *u;

	if (v->user == P->fn)
		return;
	u = ptx_malloc_arena(P, sizeof(*u));
	u->var = v;
	u->next = P->fn->shared;
	P->fn->shared = u;
	v->user = P->fn;
}

static void shared_fix(struct ptx_parser *P, struct ptx_var *v, uint32_t where, unsigned int width,
		       uint64_t add)
{
	struct ptx_shared_fix *f = ptx_malloc_arena(P, sizeof(*f));

	f->var = v;
	f->where = where;
	f->width = width;
	f->add = add;
	f->next = P->m->shared_fixes;
	P->m->shared_fixes = f;
}

/* The constant that will be the variable's offset behind the kernel's own ones, plus `add`. */
uint32_t ptx_shared_const(struct ptx_parser *P, struct ptx_var *v, unsigned int width, uint64_t add)
{
	uint32_t ref = ptx_const_own(P, width);

	shared_fix(P, v, ref & REF_OFF, width, add);
	return ref;
}

/* To be called for the instructions of one statement, from number `from` on. */
void ptx_shared_fix_insns(struct ptx_parser *P, uint32_t from)
{
	for (uint32_t i = from; P->shared && i < P->m->ncode; i++)
		if (P->m->code[i].a == SP_REF(SP_FUNC_SHARED64))
			shared_fix(P, P->shared, i, 0, 0);
	P->shared = NULL;
}

struct ptx_text_address ptx_address(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i,
				    enum ptx_space sp)
{
	struct ptx_opnd *o = &s->op_[i];
	struct ptx_text_address p = {.imm = (int64_t)o->imm};
	struct ptx_var *v;
	unsigned int w;

	if (i >= s->nop || o->kind != O_MEM)
		ptx_fail(P, PTX_INVALID_PTX, "%s: address expected", s->text);
	p.ref = ptx_const(P, 8, 0);
	if (o->reg) {
		w = P->width[o->reg];
		if (w != 4 && w != 8)
			ptx_fail(P, PTX_INVALID_PTX, "%s: address of %u bits", s->text, w * 8);
		p.ref = o->reg << 2;
		p.a32 = w == 4;
		return p;
	}
	if (!o->sym)
		return p;
	switch (o->sym->kind) {
	case SYM_PARAM:
	case SYM_KPARAM:
		if (sp != SPACE_PARAM)
			ptx_fail(P, PTX_INVALID_PTX, "%s: '%s' is in .param", s->text,
				 o->sym->name);
		p.param = o->sym;
		return p;
	case SYM_VAR:
		break;
	default:
		ptx_fail(P, PTX_INVALID_PTX, "%s: '%s' is not a variable", s->text, o->sym->name);
	}
	v = o->sym->var;
	if (sp != SPACE_GENERIC && sp != v->space)
		ptx_fail(P, PTX_INVALID_PTX, "%s: '%s' is in another space", s->text, v->name);
	if (v->space == SPACE_GLOBAL || v->space == SPACE_CONST) {
		p.ref = ptx_var_ref(P, v);
		return p;
	}
	p.imm += (int64_t)v->off;
	if (v->space == SPACE_LOCAL) {
		p.ref = REF_REG; /* offset 0: where .local starts */
		if (sp == SPACE_GENERIC)
			p.imm += (int64_t)PTX_LOCAL_BASE;
		return p;
	}
	if (!v->own) {
		p.ref = SP_REF(v->is_extern ? SP_DYN_SHARED64 : SP_FUNC_SHARED64);
		if (!v->is_extern) {
			P->shared = v;
			ptx_shared_use(P, v);
		}
	}
	if (sp == SPACE_GENERIC)
		p.imm += (int64_t)PTX_SHARED_BASE;
	return p;
}

uint16_t ptx_order_flags(const struct ptx_stmt *s)
{
	if (ptx_has(s, "acquire") || ptx_has(s, "release") || ptx_has(s, "acq_rel"))
		return IF_STRONG | IF_ORDER;
	return ptx_has(s, "volatile") || ptx_has(s, "relaxed") || ptx_has(s, "mmio") ? IF_STRONG
										     : 0;
}

void ptx_set_address(struct ptx_insn *in, const struct ptx_text_address *p, enum ptx_space sp)
{
	in->a = p->ref;
	in->imm = p->imm;
	in->flags |= p->a32 ? IF_A32 : 0;
	in->space = (uint8_t)sp;
}

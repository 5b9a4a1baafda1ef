/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parsing PTX text: tokens, names and their scopes, statements, and the form in which the builders
 * get a statement. All of this is freed when ptx_load() returns, except the data in the module's
 * arena.
 *
 * The first error ends the parsing: ptx_fail() jumps back to ptx_load(). All memory belongs to an
 * arena, the parser or the module, so nothing leaks.
 */
#ifndef QCU_SOFT_PTX_PARSE_H
#define QCU_SOFT_PTX_PARSE_H

#include <setjmp.h>

#include "qcu-device/soft/ptx/base/ptx_int.h"

#define PTX_MAX_REGS  (1u << 20)
#define PTX_MAX_MODS  16
#define PTX_MAX_OPS   12
#define PTX_MAX_VEC   8
#define PTX_MAX_DEPTH 64

enum ptx_tok_kind {
	TK_EOF,
	TK_ID,	/* name, %name */
	TK_DOT, /* .word */
	TK_INT,
	TK_F32, /* val has the bits */
	TK_F64,
	TK_STR,
	TK_PUNCT,
};

struct ptx_tok {
	enum ptx_tok_kind kind;
	const char *s;
	size_t n;
	uint64_t val;
	unsigned int line;
	char c;
	bool glued; /* no space before it */
};

enum ptx_sym_kind {
	SYM_REG,
	SYM_FAMILY, /* %r<100> */
	SYM_VAR,
	SYM_FUNC,
	SYM_PARAM,  /* formal parameter of a function, or .param variable of a call */
	SYM_KPARAM, /* formal parameter of a kernel */
	SYM_LABEL,
	SYM_PROTO,
	SYM_TARGETS, /* .branchtargets */
};

struct ptx_sym {
	const char *name;
	size_t len;
	enum ptx_sym_kind kind;
	unsigned int depth;
	struct ptx_sym *bucket_next, *scope_next;
	enum ptx_type type; /* of a register */
	uint32_t reg, count;
	uint32_t off; /* parameter: offset; label: pc */
	uint64_t size;
	struct ptx_var *var;
	struct ptx_func *fn;
	const char **list; /* branch targets */
	unsigned int nlist;
};

enum ptx_opk { O_NONE, O_REG, O_IMM, O_SYM, O_MEM, O_VEC, O_SREG, O_SINK, O_IMAGE };

/*
 * An operand as written in the text. O_MEM: [reg + imm] or [sym + imm] or [imm]. O_IMAGE:
 * [reg, {...}], with the list as in O_VEC.
 */
struct ptx_opnd {
	enum ptx_opk kind;
	bool neg;	    /* !%p */
	bool minus;	    /* -%r, in video instructions */
	enum ptx_type type; /* of a register */
	uint32_t reg;	    /* virtual register, from 1 */
	struct ptx_sym *sym;
	bool has_pair;
	uint32_t pair; /* %a|%b: the second one, a predicate */
	uint8_t num;   /* O_IMM: TK_INT, TK_F32 or TK_F64 */
	uint64_t imm;
	unsigned int special; /* O_SREG */
	const char *part;     /* %r.b0, in video instructions; npart is 0 if there is none */
	size_t npart;
	unsigned int nvec;
	struct ptx_opnd *vec;
};

/* One instruction as written in the text. */
struct ptx_stmt {
	const char *op; /* first word */
	char text[100]; /* the name with modifiers, for messages */
	unsigned int line;
	const char *mod[PTX_MAX_MODS];
	unsigned int nmod;
	enum ptx_type type[4]; /* the modifiers that are types, in order */
	unsigned int ntype;
	uint32_t pred;
	unsigned int nop;
	struct ptx_opnd op_[PTX_MAX_OPS];
};

struct ptx_fixup {
	const char *name;
	size_t len;
	unsigned int depth, line;
	uint32_t where; /* index of the instruction, or of the element of xops if table */
	bool table;
	struct ptx_fixup *next;
};

#define PTX_SYM_BUCKETS 4096u

struct ptx_parser {
	struct ptx_module *m;
	struct ptx_arena scratch;
	struct ptx_diag *diag;
	enum ptx_status status;
	jmp_buf out;

	const char *p, *end;
	unsigned int line;
	struct ptx_tok t; /* the current token */

	struct ptx_sym *bucket[PTX_SYM_BUCKETS];
	struct ptx_sym *scope[PTX_MAX_DEPTH];
	uint32_t area_mark[PTX_MAX_DEPTH];
	unsigned int depth;

	struct ptx_func *fn;
	struct ptx_var *shared; /* the shared variable that the statement's address names */
	uint8_t *width;		/* bytes of each virtual register, by number; 1: predicate */
	uint32_t width_cap, nregs;
	uint32_t area; /* bytes of the parameter area in use */
	uint32_t loc;  /* from the last .loc */
	struct ptx_fixup *fixups;
	bool seen_version;
	struct ptx_stmt stmt;
};

/* ptx_lex.c */
void ptx_lex_start(struct ptx_parser *P, const char *text, size_t len);
void ptx_next(struct ptx_parser *P);
void ptx_skip_line(struct ptx_parser *P);
bool ptx_is(struct ptx_parser *P, char c);
bool ptx_is_dot(struct ptx_parser *P, const char *word);
bool ptx_is_id(struct ptx_parser *P, const char *word);
bool ptx_accept(struct ptx_parser *P, char c);
void ptx_expect(struct ptx_parser *P, char c);
uint64_t ptx_expect_uint(struct ptx_parser *P, uint64_t max, const char *what);
__attribute__((noreturn, format(printf, 3, 4))) void
ptx_fail(struct ptx_parser *P, enum ptx_status st, const char *fmt, ...);
__attribute__((noreturn)) void ptx_fail_memory(struct ptx_parser *P);

/* ptx_sym.c */
struct ptx_sym *ptx_sym_find(struct ptx_parser *P, const char *s, size_t n);
struct ptx_sym *ptx_sym_add(struct ptx_parser *P, const char *s, size_t n, enum ptx_sym_kind kind);
void ptx_scope_push(struct ptx_parser *P);
void ptx_scope_pop(struct ptx_parser *P);
void *ptx_palloc(struct ptx_parser *P, size_t n);
void *ptx_malloc_arena(struct ptx_parser *P, size_t n);

/* ptx_operand.c */
uint32_t ptx_new_reg(struct ptx_parser *P, enum ptx_type t);
void ptx_parse_operand(struct ptx_parser *P, struct ptx_opnd *o);
bool ptx_has(const struct ptx_stmt *s, const char *mod);
void ptx_label_ref(struct ptx_parser *P, const char *s, size_t n, uint32_t where, bool table);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Links the PTX of several translation units, which nvcc -rdc=true leaves separate in a program,
 * into one text. The PTX machine takes declarations and definitions in any order, so nothing has to
 * move:
 *
 * - headers stay in the first unit only, and sections with debug information are dropped;
 * - source files, which .loc names by number, get new numbers, so that no two units share a number;
 * - a local symbol whose name another unit also uses is renamed;
 * - of several weak definitions one stays, but a strong definition has precedence over all of them.
 *   The other definitions become declarations. Two strong definitions are an error.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/code/code.h"

/* File numbers are cut off here. The PTX parser knows no name above PTX_MAX_FILES anyway. */
#define FILES_MAX 100000ul

enum lexeme_kind { TOKEN_END, TOKEN_WORD, TOKEN_OTHER };

struct lexeme {
	enum lexeme_kind kind;
	const char *at;
	size_t len;
};

enum linkage { LOCAL, EXTERN, WEAK, STRONG };
enum stmt_kind { STMT_HEADER, STMT_SECTION, STMT_FUNC, STMT_VAR, STMT_OTHER };

/* One directive at the level of the module. */
struct stmt {
	enum stmt_kind kind;
	enum linkage linkage;
	struct lexeme link_word; /* ".weak", ".visible", … */
	struct lexeme name;	 /* the name of the function or variable */
	const char *begin, *end;
	const char *value; /* the body or the initial value; NULL: none */
	bool defines;
};

struct symbol {
	const char *name;
	size_t len;
	uint32_t unit;
	enum linkage linkage;
	bool defines;
	bool rename, demote; /* what linking does to it */
};

struct linker {
	struct symbol *sym;
	size_t count, room;
	char *out;
	size_t len, size;
	/* The first file number of this unit, and of the next one. */
	unsigned long file_base, file_next;
	bool no_memory;
};

/* ---- reading ---- */

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static const char *skip_to_token(const char *p)
{
	for (;;) {
		p += strspn(p, " \t\r\n\f\v");
		if (p[0] == '/' && p[1] == '/') {
			p += strcspn(p, "\n");
		} else if (p[0] == '/' && p[1] == '*') {
			const char *end = strstr(p + 2, "*/");

			p = end ? end + 2 : p + strlen(p);
		} else {
			return p;
		}
	}
}

/* Words are names, numbers and directives with their dot. Texts end with a NUL. */
static struct lexeme next_token(const char *p)
{
	struct lexeme t = {.kind = TOKEN_OTHER, .at = skip_to_token(p), .len = 1};

	if (!*t.at) {
		t.kind = TOKEN_END;
		t.len = 0;
	} else if (word_char(*t.at) || ((*t.at == '.' || *t.at == '%') && word_char(t.at[1]))) {
		t.kind = TOKEN_WORD;
		while (word_char(t.at[t.len]))
			t.len++;
	} else if (*t.at == '"') {
		while (t.at[t.len] && t.at[t.len] != '"' && t.at[t.len] != '\n')
			t.len++;
		if (t.at[t.len])
			t.len++;
	}
	return t;
}

static bool is_word(const struct lexeme *t, const char *word)
{
	return t->kind == TOKEN_WORD && t->len == strlen(word) && !memcmp(t->at, word, t->len);
}

static bool is_char(const struct lexeme *t, char c)
{
	return t->kind == TOKEN_OTHER && *t->at == c;
}

/* p is just after an opening bracket. Returns the position after the matching closing bracket. */
static const char *skip_group(const char *p, char open, char close)
{
	unsigned int depth = 1;
	struct lexeme t;

	do {
		t = next_token(p);
		p = t.at + t.len;
		if (is_char(&t, open))
			depth++;
		else if (is_char(&t, close))
			depth--;
	} while (depth && t.kind != TOKEN_END);
	return p;
}

static bool is_header(const struct lexeme *t)
{
	return is_word(t, ".version") || is_word(t, ".target") || is_word(t, ".address_size");
}

static bool is_space(const struct lexeme *t)
{
	return is_word(t, ".global") || is_word(t, ".const") || is_word(t, ".shared");
}

static bool is_name_token(const struct lexeme *t)
{
	return t->kind == TOKEN_WORD && *t->at != '.' && *t->at != '%' &&
	       !isdigit((unsigned char)*t->at);
}

static void note_linkage(struct stmt *s, const struct lexeme *t)
{
	if (is_word(t, ".extern"))
		s->linkage = EXTERN;
	else if (is_word(t, ".weak") || is_word(t, ".common"))
		s->linkage = WEAK;
	else if (is_word(t, ".visible"))
		s->linkage = STRONG;
	else
		return;
	s->link_word = *t;
}

/* Reads a statement from its first word to its end. False: the text has ended. */
static bool read_stmt(const char *p, struct stmt *s)
{
	struct lexeme t = next_token(p);

	*s = (struct stmt){.kind = STMT_OTHER, .linkage = LOCAL, .begin = t.at};
	if (t.kind == TOKEN_END)
		return false;
	if (is_header(&t) || is_word(&t, ".file")) {
		if (is_header(&t))
			s->kind = STMT_HEADER;
		s->end = t.at + strcspn(t.at, "\n");
		return true;
	}
	if (is_word(&t, ".section"))
		s->kind = STMT_SECTION;
	for (;; t = next_token(p)) {
		p = t.at + t.len;
		if (t.kind == TOKEN_END || is_char(&t, ';'))
			break;
		note_linkage(s, &t);
		if (is_word(&t, ".func") || is_word(&t, ".entry"))
			s->kind = STMT_FUNC;
		else if (s->kind == STMT_OTHER && is_space(&t))
			s->kind = STMT_VAR;
		else if (is_char(&t, '('))
			p = skip_group(p, '(', ')');
		else if (is_name_token(&t) && !s->value && !(s->kind == STMT_FUNC && s->name.len))
			s->name = t;
		else if (is_char(&t, '=') && !s->value)
			s->value = t.at;
		if (!is_char(&t, '{'))
			continue;
		if (!s->value)
			s->value = t.at;
		p = skip_group(p, '{', '}');
		if (s->kind != STMT_VAR)
			break;
	}
	s->end = p;
	s->defines = s->kind == STMT_FUNC ? s->value != NULL : s->linkage != EXTERN;
	return true;
}

/* ---- symbols ---- */

static int compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int c = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return c ? c : (a_len > b_len) - (a_len < b_len);
}

static int compare_symbols(const void *va, const void *vb)
{
	const struct symbol *a = va, *b = vb;
	int c = compare_names(a->name, a->len, b->name, b->len);

	return c ? c : (a->unit > b->unit) - (a->unit < b->unit);
}

static bool add_symbol(struct linker *l, const struct stmt *s, uint32_t unit)
{
	if (l->count == l->room) {
		size_t room = l->room ? l->room * 2 : 256;
		struct symbol *more = realloc(l->sym, room * sizeof(*more));

		if (!more)
			return false;
		l->sym = more;
		l->room = room;
	}
	l->sym[l->count++] = (struct symbol){
		.name = s->name.at,
		.len = s->name.len,
		.unit = unit,
		.linkage = s->linkage,
		.defines = s->defines,
	};
	return true;
}

static bool collect_symbols(struct linker *l, const struct soft_units *units)
{
	struct stmt s;
	uint32_t u;

	for (u = 0; u < units->count; u++) {
		const char *p = units->unit[u].text;

		for (; read_stmt(p, &s); p = s.end)
			if ((s.kind == STMT_FUNC || s.kind == STMT_VAR) && s.name.len &&
			    !add_symbol(l, &s, u))
				return false;
	}
	return true;
}

/* Decides what happens to the symbols of one name. */
static int resolve_name(struct symbol *sym, size_t count, char *why, size_t why_size)
{
	const struct symbol *chosen = NULL;
	size_t i;

	for (i = 0; i < count; i++) {
		if (sym[i].linkage == LOCAL) {
			sym[i].rename = sym[0].unit != sym[count - 1].unit;
		} else if (sym[i].defines && sym[i].linkage == STRONG) {
			if (chosen && chosen->linkage == STRONG) {
				snprintf(why, why_size, "'%.*s' is defined in two units",
					 (int)(sym->len < 120 ? sym->len : 120), sym->name);
				return QCU_ERR_InvalidPtx;
			}
			chosen = &sym[i];
		} else if (sym[i].defines && !chosen) {
			chosen = &sym[i];
		}
	}
	for (i = 0; i < count; i++)
		sym[i].demote = sym[i].linkage == WEAK && chosen && chosen->unit != sym[i].unit;
	return QCU_ERR_Success;
}

static int resolve_symbols(struct linker *l, char *why, size_t why_size)
{
	size_t i, n;
	int err;

	if (l->count)
		qsort(l->sym, l->count, sizeof(*l->sym), compare_symbols);
	for (i = 0; i < l->count; i += n) {
		for (n = 1; i + n < l->count; n++)
			if (compare_names(l->sym[i].name, l->sym[i].len, l->sym[i + n].name,
					  l->sym[i + n].len))
				break;
		err = resolve_name(&l->sym[i], n, why, why_size);
		if (err)
			return err;
	}
	return QCU_ERR_Success;
}

/* NULL: the unit declares no such symbol. */
static const struct symbol *find_unit_symbol(const struct linker *l, const struct lexeme *t,
					     uint32_t unit)
{
	const struct symbol key = {.name = t->at, .len = t->len, .unit = unit};

	return l->count && t->len ? bsearch(&key, l->sym, l->count, sizeof(key), compare_symbols)
				  : NULL;
}

/* ---- writing ---- */

static void append_linked_text(struct linker *l, const char *text, size_t len)
{
	if (l->len + len + 1 > l->size) {
		size_t size = (l->len + len + 1) * 2;
		char *more = realloc(l->out, size);

		if (!more) {
			l->no_memory = true;
			return;
		}
		l->out = more;
		l->size = size;
	}
	memcpy(l->out + l->len, text, len);
	l->len += len;
	l->out[l->len] = '\0';
}

static bool names_file(const struct lexeme *t)
{
	return is_word(t, ".loc") || is_word(t, ".file") || is_word(t, "inlined_at");
}

/* Writes the new number of a source file. Returns the position in the text after the old number. */
static const char *put_file(struct linker *l, const char *p)
{
	struct lexeme t = next_token(p);
	unsigned long n;
	char number[32];
	char *end;

	if (t.kind != TOKEN_WORD || !isdigit((unsigned char)*t.at))
		return p;
	n = strtoul(t.at, &end, 10);
	if (n > FILES_MAX || l->file_base > FILES_MAX)
		n = FILES_MAX;
	n += l->file_base;
	if (n >= l->file_next)
		l->file_next = n + 1;
	snprintf(number, sizeof(number), " %lu", n);
	append_linked_text(l, number, strlen(number));
	return t.at + t.len;
}

/* Copies [p, end), and renames the symbols of the unit that need it. */
static void put_renamed(struct linker *l, const char *p, const char *end, uint32_t unit)
{
	const struct symbol *s;
	char suffix[32];
	struct lexeme t;

	snprintf(suffix, sizeof(suffix), "$unit%u", unit);
	while (p < end) {
		t = next_token(p);
		if (t.at + t.len > end || t.kind == TOKEN_END) {
			append_linked_text(l, p, (size_t)(end - p));
			return;
		}
		append_linked_text(l, p, (size_t)(t.at + t.len - p));
		s = is_name_token(&t) ? find_unit_symbol(l, &t, unit) : NULL;
		if (s && s->rename)
			append_linked_text(l, suffix, strlen(suffix));
		p = t.at + t.len;
		if (names_file(&t))
			p = put_file(l, p);
	}
}

static void put_declaration(struct linker *l, const struct stmt *s, uint32_t unit)
{
	const char *after = s->link_word.at + s->link_word.len;
	const char *end = s->value ? s->value : s->end;

	append_linked_text(l, ".extern", 7);
	put_renamed(l, after, end, unit);
	if (s->value)
		append_linked_text(l, ";", 1);
}

static void put_unit(struct linker *l, const struct soft_unit *u, uint32_t unit)
{
	const char *p = u->text;
	const struct symbol *sym;
	struct stmt s;

	l->file_base = l->file_next;
	for (; read_stmt(p, &s); p = s.end) {
		append_linked_text(l, p, (size_t)(s.begin - p));
		if (s.kind == STMT_SECTION || (s.kind == STMT_HEADER && unit))
			continue;
		sym = s.defines && s.linkage == WEAK ? find_unit_symbol(l, &s.name, unit) : NULL;
		if (sym && sym->demote)
			put_declaration(l, &s, unit);
		else
			put_renamed(l, s.begin, s.end, unit);
	}
	append_linked_text(l, "\n", 1);
}

int soft_link(const struct soft_units *units, char **text, size_t *len, char *why, size_t why_size)
{
	struct linker l = {0};
	uint32_t u;
	int err = QCU_ERR_MemoryAllocation;

	if (units->count == 1) {
		append_linked_text(&l, units->unit[0].text, units->unit[0].len);
	} else {
		if (!collect_symbols(&l, units))
			goto out;
		err = resolve_symbols(&l, why, why_size);
		if (err)
			goto out;
		for (u = 0; u < units->count; u++)
			put_unit(&l, &units->unit[u], u);
	}
	err = l.no_memory || !l.out ? QCU_ERR_MemoryAllocation : QCU_ERR_Success;
out:
	free(l.sym);
	if (err) {
		free(l.out);
		l.out = NULL;
	}
	*text = l.out;
	*len = l.len;
	return err;
}

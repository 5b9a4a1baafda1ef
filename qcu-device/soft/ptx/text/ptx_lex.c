// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Splits PTX text into tokens. The text need not end with a NUL and may contain any bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/text/ptx_parse.h"

void ptx_fail(struct ptx_parser *P, enum ptx_status st, const char *fmt, ...)
{
	va_list ap;

	P->status = st;
	if (P->diag) {
		P->diag->line = P->t.line ? P->t.line : P->line;
		va_start(ap, fmt);
		vsnprintf(P->diag->text, sizeof(P->diag->text), fmt, ap);
		va_end(ap);
	}
	longjmp(P->out, 1);
}

void ptx_fail_memory(struct ptx_parser *P)
{
	ptx_fail(P, PTX_NO_MEMORY, "out of memory while reading PTX");
}

static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
	return is_name_start(c) || is_digit(c);
}

static void skip_space(struct ptx_parser *P)
{
	while (P->p < P->end) {
		char c = *P->p;

		if (c == '\n') {
			P->line++;
			P->p++;
		} else if (c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f') {
			P->p++;
		} else if (c == '/' && P->end - P->p > 1 && P->p[1] == '/') {
			while (P->p < P->end && *P->p != '\n')
				P->p++;
		} else if (c == '/' && P->end - P->p > 1 && P->p[1] == '*') {
			P->t.line = P->line;
			for (P->p += 2;; P->p++) {
				if (P->end - P->p < 2)
					ptx_fail(P, PTX_INVALID_PTX, "comment does not end");
				if (P->p[0] == '*' && P->p[1] == '/')
					break;
				if (*P->p == '\n')
					P->line++;
			}
			P->p += 2;
		} else {
			break;
		}
	}
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Reads digits of this base up to the first character that is not one. */
static uint64_t digits(struct ptx_parser *P, unsigned int base, unsigned int *count)
{
	uint64_t v = 0;
	unsigned int n = 0;

	while (P->p < P->end) {
		int d = hex_digit(*P->p);

		if (d < 0 || (unsigned int)d >= base)
			break;
		if (v > (UINT64_MAX - (unsigned int)d) / base)
			ptx_fail(P, PTX_INVALID_PTX, "number does not fit in 64 bits");
		v = v * base + (unsigned int)d;
		P->p++;
		n++;
	}
	*count = n;
	return v;
}

static void lex_number(struct ptx_parser *P)
{
	const char *s = P->p;
	size_t left = (size_t)(P->end - s);
	unsigned int n;

	P->t.kind = TK_INT;
	if (left > 2 && s[0] == '0' && (s[1] == 'f' || s[1] == 'F' || s[1] == 'd' || s[1] == 'D')) {
		bool f = s[1] == 'f' || s[1] == 'F';

		P->p += 2;
		P->t.val = digits(P, 16, &n);
		if (n != (f ? 8u : 16u))
			ptx_fail(P, PTX_INVALID_PTX, "float constant needs %d hex digits",
				 f ? 8 : 16);
		P->t.kind = f ? TK_F32 : TK_F64;
	} else if (left > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		P->p += 2;
		P->t.val = digits(P, 16, &n);
		if (!n)
			ptx_fail(P, PTX_INVALID_PTX, "hex constant without digits");
	} else if (left > 2 && s[0] == '0' && (s[1] == 'b' || s[1] == 'B')) {
		P->p += 2;
		P->t.val = digits(P, 2, &n);
		if (!n)
			ptx_fail(P, PTX_INVALID_PTX, "binary constant without digits");
	} else {
		const char *q = s;

		while (q < P->end && is_digit(*q))
			q++;
		if (q < P->end && (*q == '.' || *q == 'e' || *q == 'E')) {
			char buf[64];
			size_t len;
			double d;

			if (*q == '.')
				for (q++; q < P->end && is_digit(*q); q++)
					;
			if (q < P->end && (*q == 'e' || *q == 'E')) {
				q++;
				if (q < P->end && (*q == '+' || *q == '-'))
					q++;
				while (q < P->end && is_digit(*q))
					q++;
			}
			len = (size_t)(q - s);
			if (len >= sizeof(buf))
				ptx_fail(P, PTX_INVALID_PTX, "float constant too long");
			memcpy(buf, s, len);
			buf[len] = 0;
			d = strtod(buf, NULL);
			memcpy(&P->t.val, &d, 8);
			P->t.kind = TK_F64;
			P->p = q;
		} else if (s[0] == '0' && q - s > 1) {
			P->p++;
			P->t.val = digits(P, 8, &n);
		} else {
			P->t.val = digits(P, 10, &n);
		}
	}
	if (P->t.kind == TK_INT && P->p < P->end && *P->p == 'U')
		P->p++;
	if (P->p < P->end && is_name_char(*P->p))
		ptx_fail(P, PTX_INVALID_PTX, "bad number");
	P->t.s = s;
	P->t.n = (size_t)(P->p - s);
}

void ptx_next(struct ptx_parser *P)
{
	const char *before = P->p;
	const char *s;
	char c;

	skip_space(P);
	P->t.line = P->line;
	P->t.glued = P->p == before;
	P->t.val = 0;
	P->t.c = 0;
	s = P->p;
	P->t.s = s;
	P->t.n = 0;
	if (s >= P->end || !*s) {
		P->t.kind = TK_EOF;
		return;
	}
	c = *s;
	if (is_digit(c)) {
		lex_number(P);
		return;
	}
	if (is_name_start(c)) {
		while (P->p < P->end && is_name_char(*P->p))
			P->p++;
		P->t.kind = TK_ID;
	} else if (c == '.' && P->end - s > 1 && is_name_char(s[1])) {
		P->p++;
		while (P->p < P->end && is_name_char(*P->p))
			P->p++;
		/* Words like `.L1::evict_last` are one token. */
		while (P->end - P->p > 2 && P->p[0] == ':' && P->p[1] == ':' &&
		       is_name_char(P->p[2])) {
			P->p += 2;
			while (P->p < P->end && is_name_char(*P->p))
				P->p++;
		}
		P->t.kind = TK_DOT;
		P->t.s = s + 1;
		P->t.n = (size_t)(P->p - s) - 1;
		return;
	} else if (c == '"') {
		for (P->p++; P->p < P->end && *P->p != '"' && *P->p != '\n'; P->p++)
			;
		if (P->p >= P->end || *P->p != '"')
			ptx_fail(P, PTX_INVALID_PTX, "string does not end");
		P->p++;
		P->t.kind = TK_STR;
		P->t.s = s + 1;
		P->t.n = (size_t)(P->p - s) - 2;
		return;
	} else {
		P->p++;
		P->t.kind = TK_PUNCT;
		P->t.c = c;
	}
	P->t.n = (size_t)(P->p - s);
}

void ptx_lex_start(struct ptx_parser *P, const char *text, size_t len)
{
	P->p = text;
	P->end = text + len;
	P->line = 1;
	ptx_next(P);
}

/*
 * Skips the rest of the current token's line; for debug directives, which end with their line.
 */
void ptx_skip_line(struct ptx_parser *P)
{
	unsigned int line = P->t.line;

	while (P->t.kind != TK_EOF && P->t.line == line)
		ptx_next(P);
}

bool ptx_is(struct ptx_parser *P, char c)
{
	return P->t.kind == TK_PUNCT && P->t.c == c;
}

bool ptx_is_dot(struct ptx_parser *P, const char *word)
{
	return P->t.kind == TK_DOT && P->t.n == strlen(word) && !memcmp(P->t.s, word, P->t.n);
}

bool ptx_is_id(struct ptx_parser *P, const char *word)
{
	return P->t.kind == TK_ID && P->t.n == strlen(word) && !memcmp(P->t.s, word, P->t.n);
}

bool ptx_accept(struct ptx_parser *P, char c)
{
	if (!ptx_is(P, c))
		return false;
	ptx_next(P);
	return true;
}

void ptx_expect(struct ptx_parser *P, char c)
{
	if (!ptx_accept(P, c)) {
		if (P->t.kind == TK_EOF)
			ptx_fail(P, PTX_INVALID_PTX, "text ends where '%c' is needed", c);
		ptx_fail(P, PTX_INVALID_PTX, "'%c' expected before '%.*s'", c,
			 (int)(P->t.n > 40 ? 40 : P->t.n), P->t.s);
	}
}

uint64_t ptx_expect_uint(struct ptx_parser *P, uint64_t max, const char *what)
{
	uint64_t v = P->t.val;

	if (P->t.kind != TK_INT)
		ptx_fail(P, PTX_INVALID_PTX, "%s: number expected", what);
	if (v > max)
		ptx_fail(P, PTX_INVALID_PTX, "%s: %llu is too large", what, (unsigned long long)v);
	ptx_next(P);
	return v;
}

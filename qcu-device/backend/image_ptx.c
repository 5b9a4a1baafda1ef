// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How much device memory the variables of PTX take, and their names. A declaration looks like this:
 *
 *     .visible .global .align 4 .b8 name[1024][16] = {1, 2};
 *
 * The compiler has the last word on what is right; here the text must only not hide any memory. So
 * what looks like a declaration counts, and a size that is no plain number counts as all memory.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/image.h"

#define ALL ((uint64_t)1 << 40) /* more memory than a GPU has */

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* Returns the end of the blanks and comments that begin here. */
static const char *skip_blanks_in_ptx(const char *p)
{
	for (;;) {
		while (isspace((unsigned char)*p))
			p++;
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

/* A word begins with a point, or ends before one. */
static size_t word_length(const char *p)
{
	size_t n = *p == '.';

	while (in_word(p[n]))
		n++;
	return n;
}

/* An instruction with all that belongs to its name, as in ld.global.u32. */
static size_t instruction_length(const char *p)
{
	size_t n = 0;

	while (in_word(p[n]) || p[n] == '.')
		n++;
	return n;
}

/* The bytes that the word says an element has: .b8, .u32, .f64, .v4 and so on. 0: it says none. */
static uint64_t element_bytes(const char *word, size_t len)
{
	char digits[8] = "";
	unsigned long bits;

	if (len >= 3 && !strncmp(word, ".v", 2) && isdigit((unsigned char)word[2]))
		return 0;
	if (len == 5 && !strncmp(word, ".pred", 5))
		return 1;
	if (len == 7 && !strncmp(word, ".texref", 7))
		return 8;
	if (len < 3 || len > 6 || word[0] != '.' || !strchr("bsuf", word[1]))
		return 0;
	memcpy(digits, word + 2, len - 2);
	bits = strtoul(digits, NULL, 10);
	return bits / 8;
}

/* The number of elements between brackets. Compilers write plain numbers. */
static uint64_t elements(const char *p)
{
	uint64_t value;
	char *end;

	/* Without a number, the initial values say how many there are. */
	if (*p == ']')
		return 1;
	value = strtoull(p, &end, 0);
	if (*end == 'U')
		end++;
	return isdigit((unsigned char)*p) && *skip_blanks_in_ptx(end) == ']' ? value : ALL;
}

/*
 * The size of the variables of one declaration, which begins after ".global". Moves to its end.
 * names: NULL, or they are added.
 */
static uint64_t declared_bytes(const char **text, struct image_names *names)
{
	bool value = false; /* what comes is no name */
	const char *p = skip_blanks_in_ptx(*text);
	uint64_t element = 1, vector = 1, size = 0, now = 1;
	unsigned int depth = 0;

	while (*p && *p != ';' && (depth || (*p != ')' && *p != '}'))) {
		size_t n = word_length(p);

		if (*p == '[' && !depth) {
			p = skip_blanks_in_ptx(p + 1);
			now = times(now, elements(p));
			value = true;
		} else if (*p == ',' && !depth) {
			value = false;
			size = image_add(size, times(now, times(element, vector)));
			now = 1;
		} else if (*p == '{' || *p == '(') {
			depth++;
			value = value || *p == '{';
		} else if ((*p == '}' || *p == ')') && depth) {
			depth--;
		} else if (n && !depth && *p == '.') {
			uint64_t bytes = element_bytes(p, n);

			if (bytes)
				element = bytes;
			else if (n == 3 && !strncmp(p, ".v", 2) && (p[2] == '2' || p[2] == '4'))
				vector = (uint64_t)(p[2] - '0');
		} else if (n && !depth && !value && !isdigit((unsigned char)*p)) {
			if (names)
				image_names_add(names, p, n);
			value = true;
		}
		p = skip_blanks_in_ptx(p + (n ? n : 1));
	}
	*text = p;
	return image_add(size, times(now, times(element, vector)));
}

static uint64_t walk_ptx(const char *text, struct image_names *names)
{
	const char *p = skip_blanks_in_ptx(text);
	bool pointer = false;	/* ".ptr .global" says where a parameter points to */
	bool argument = false;	/* what follows a directive or a comma is no instruction */
	bool predicate = false; /* nor is what follows @ */
	uint64_t sum = 0;

	while (*p) {
		size_t n = word_length(p);
		bool letter = isalpha((unsigned char)*p);

		if (*p == '"') {
			/* A name of a file or a section. */
			p++;
			p += strcspn(p, "\"\n");
			p += *p == '"';
			argument = false;
		} else if (n == 7 && !pointer && !strncmp(p, ".global", 7)) {
			p += n;
			sum = image_add(sum, declared_bytes(&p, names));
			argument = false;
		} else if (names && n == 6 && !pointer && !strncmp(p, ".const", 6)) {
			p += n;
			(void)declared_bytes(&p, names);
			argument = false;
		} else {
			if (letter && !argument && !predicate)
				n = instruction_length(p);
			if (names && n == 6 && !strncmp(p, "malloc", 6))
				names->mallocs = true;
			pointer = n == 4 && !strncmp(p, ".ptr", 4);
			argument = *p == '.' || *p == ',';
			predicate = *p == '@' || (*p == '!' && predicate);
			p += n ? n : 1;
		}
		p = skip_blanks_in_ptx(p);
	}
	return sum;
}

uint64_t image_ptx_memory(const char *text)
{
	return walk_ptx(text, NULL);
}

void image_ptx_names(const char *text, struct image_names *names)
{
	(void)walk_ptx(text, names);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of limits.h as data, and the parser and printer for --limit. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/base/limits.h"

/* A mapping needs page tables: 1/512 of its bytes, and one entry for each of its pieces. */
#define MAPPED_MORE    LIMIT_MIB(256)
#define MAPPED_SESSION 2u
#define MAPPED_VM      8u

/* Limits the values so that the sum over 64 sessions does not overflow. */
#define VALUE_MAX (1ull << 56)

static const struct {
	const char *name;
	enum limit_unit unit;
	uint64_t session, vm;
	const char *help;
} table[LIMIT_KINDS] = {
#define X(NAME, name, unit, session, vm, help) {name, LIMIT_UNIT_##unit, session, vm, help},
	LIMITS(X)
#undef X
};

const char *limit_name(enum limit what)
{
	return table[what].name;
}

void limits_default(struct limits *l)
{
	unsigned int i;

	for (i = 0; i < LIMIT_KINDS; i++) {
		if (!l->session[i])
			l->session[i] = table[i].session;
		if (!l->vm[i])
			l->vm[i] = table[i].vm;
	}
}

void limits_for_ram(struct limits *l, uint64_t bytes)
{
	if (bytes > VALUE_MAX / MAPPED_VM)
		bytes = VALUE_MAX / MAPPED_VM;
	if (l->session[LIMIT_MAPPED] == LIMIT_OF_RAM)
		l->session[LIMIT_MAPPED] = MAPPED_SESSION * bytes + MAPPED_MORE;
	if (l->vm[LIMIT_MAPPED] == LIMIT_OF_RAM)
		l->vm[LIMIT_MAPPED] = MAPPED_VM * bytes + MAPPED_MORE;
}

/* ---- text ---- */

static bool say_bad_limit(char *why, size_t size, const char *text, const char *sentence)
{
	snprintf(why, size, "--limit %.64s: %s", text, sentence);
	return false;
}

static bool unknown(char *why, size_t size, const char *text)
{
	size_t n;
	unsigned int i;

	n = (size_t)snprintf(why, size,
			     "--limit %.64s: NAME=VALUE is wanted, or vm-NAME=VALUE; the names are",
			     text);
	for (i = 0; i < LIMIT_KINDS && n < size; i++)
		n += (size_t)snprintf(why + n, size - n, "%s %s", i ? "," : "", table[i].name);
	return false;
}

static unsigned int find_limit_kind(const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < LIMIT_KINDS; i++)
		if (strlen(table[i].name) == len && !memcmp(table[i].name, name, len))
			break;
	return i;
}

static bool read_value(const char *text, enum limit_unit unit, uint64_t *value)
{
	unsigned int shift = 0;
	unsigned long long n;
	char *end;

	if (!strcmp(text, "none")) {
		*value = LIMIT_NONE;
		return true;
	}
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (unit == LIMIT_UNIT_BYTES && *end) {
		const char *at = strchr("KkMmGg", *end);

		if (!at)
			return false;
		shift = 10 * (unsigned int)((at - "KkMmGg") / 2 + 1);
		end++;
	}
	if (errno || *end || !n || n > VALUE_MAX >> shift)
		return false;
	*value = n << shift;
	return true;
}

bool limits_parse(struct limits *l, const char *text, char *why, size_t size)
{
	bool vm = !strncmp(text, "vm-", 3);
	const char *name = vm ? text + 3 : text, *is = strchr(name, '=');
	static const char *const wanted[] = {
		[LIMIT_UNIT_BYTES] = "a size like 512M or 4G is wanted, or none",
		[LIMIT_UNIT_COUNT] = "a number from 1 on is wanted, or none",
		[LIMIT_UNIT_SECONDS] = "a number of seconds is wanted, or none",
	};
	uint64_t value = 0;
	unsigned int i;

	i = is ? find_limit_kind(name, (size_t)(is - name)) : LIMIT_KINDS;
	if (i == LIMIT_KINDS)
		return unknown(why, size, text);
	if (vm && table[i].vm == LIMIT_EACH)
		return say_bad_limit(why, size, text,
				     "this limit is for each session, without vm-");
	if (!read_value(is + 1, table[i].unit, &value))
		return say_bad_limit(why, size, text, wanted[table[i].unit]);
	*(vm ? &l->vm[i] : &l->session[i]) = value;
	return true;
}

const char *limit_text(enum limit what, uint64_t value, char *buf, size_t size)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
	unsigned int i = 0;

	if (value == LIMIT_NONE) {
		snprintf(buf, size, "none");
	} else if (value == LIMIT_EACH) {
		snprintf(buf, size, "-");
	} else if (table[what].unit == LIMIT_UNIT_BYTES) {
		while (i < 3 && value && !(value & 1023)) {
			value >>= 10;
			i++;
		}
		snprintf(buf, size, "%" PRIu64 " %s", value, units[i]);
	} else {
		snprintf(buf, size, "%" PRIu64 "%s", value,
			 table[what].unit == LIMIT_UNIT_SECONDS ? " s" : "");
	}
	return buf;
}

static const char *of_ram(uint64_t value, unsigned int times, enum limit what, char *buf,
			  size_t size)
{
	if (value != LIMIT_OF_RAM)
		return limit_text(what, value, buf, size);
	snprintf(buf, size, "%u x the VM's memory + %" PRIu64 " MiB", times, MAPPED_MORE >> 20);
	return buf;
}

void limits_line(const struct limits *l, enum limit what, char *buf, size_t size)
{
	char session[64], vm[64];

	snprintf(buf, size, "| %s | %s | %s | %s |", table[what].name,
		 of_ram(l->session[what], MAPPED_SESSION, what, session, sizeof(session)),
		 of_ram(l->vm[what], MAPPED_VM, what, vm, sizeof(vm)), table[what].help);
}

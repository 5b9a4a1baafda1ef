// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the reader of a program's device code: it takes fat binaries apart, unpacks and links
 * them, and loads them as the software GPU does.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/code/code.h"
#include "qcu-device/soft/gpu/soft.h"
#include "tests/fuzz/fatbin.h"

#define TEXT_MAX  32768u
#define UNITS_MAX 6u

static void read_and_link(const uint8_t *data, size_t size, unsigned int sm)
{
	struct soft_units units;
	char why[64], *text = NULL;
	size_t len = 0;

	/* A short buffer for the message: long names must not lead to writes beyond its end. */
	if (soft_fatbin_read(data, size, sm, &units, why, sizeof(why))) {
		if (units.count || strlen(why) >= sizeof(why))
			abort();
		return;
	}
	if (!soft_link(&units, &text, &len, why, sizeof(why))) {
		if (strlen(text) != len)
			abort();
		free(text);
	} else if (text) {
		abort();
	}
	soft_units_free(&units);
}

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct be *be;
	const struct be_options opt = {.vram = 16u << 20, .threads = 1};
	uint64_t free_before, free_after, total;
	struct be_module *m;

	if (!be && be_soft.open(&be, &opt))
		abort();
	read_and_link(data, size, 75);
	read_and_link(data, size, 90);
	be_soft.mem_info(be, 0, &free_before, &total);
	if (!be_soft.module_load(be, data, size, NULL, &m))
		be_soft.module_unload(be, m);
	be_soft.mem_info(be, 0, &free_after, &total);
	if (free_before != free_after)
		abort(); /* memory of variables is lost */
	return 0;
}

/* Builds one container with the text. Returns 0 if there is no room. */
static size_t build(uint8_t *out, size_t room, const char *text, size_t len, uint64_t *random)
{
	static const uint32_t archs[] = {50, 75, 75, 80, 89, 90, 90, 100, 120};
	struct fatbin_entry entry = {
		.kind = fuzz_random(random, 16) ? FATBIN_PTX : FATBIN_ELF,
		.arch = archs[fuzz_random(random, 9)],
	};

	if (!fuzz_random(random, 16))
		entry.flags = fuzz_random(random, 2) ? FATBIN_ARCH : FATBIN_GROUP;
	return fatbin_build(out, room, &entry, text, len, random);
}

/*
 * Changes the PTX in the fat binary and packs it again, so that the sizes are right. Returns 0 if
 * that is not possible.
 */
static size_t repack(uint8_t *data, size_t size, size_t max, uint64_t *random)
{
	struct soft_units units;
	size_t len, at = 0, i;
	uint8_t *out = malloc(max);
	char why[64], *text = malloc(TEXT_MAX);

	if (!out || !text || soft_fatbin_read(data, size, 120, &units, why, sizeof(why))) {
		free(out);
		free(text);
		return 0;
	}
	for (i = 0; i < units.count && i < UNITS_MAX; i++) {
		const struct soft_unit *u = &units.unit[i];
		unsigned int copies = 1 + !fuzz_random(random, 6);

		if (u->len >= TEXT_MAX)
			continue;
		while (copies--) {
			memcpy(text, u->text, u->len);
			len = fuzz_random(random, 3)
				      ? fuzz_mutate_ptx(text, u->len, TEXT_MAX - 1, random)
				      : u->len;
			text[len++] = '\0';
			at += build(out + at, max - at, text, len, random);
		}
	}
	if (at)
		memcpy(data, out, at);
	soft_units_free(&units);
	free(out);
	free(text);
	return at;
}

/* Puts another number into one of the first headers. */
static size_t change_field(uint8_t *data, size_t size, uint64_t *random)
{
	static const uint64_t values[] = {0,	      1,	  2,	      7,
					  8,	      63,	  64,	      65,
					  80,	      255,	  256,	      0x7fff,
					  0xffff,     0x10000,	  0x7fffffff, 0x80000000,
					  UINT32_MAX, 1ull << 32, INT64_MAX,  UINT64_MAX - 79,
					  UINT64_MAX};
	static const uint8_t fields[] = {0,  4,	 6,  8,	 16, 18, 20, 24,
					 32, 36, 40, 44, 48, 56, 64, 72};
	uint8_t *p = data + fields[fuzz_random(random, sizeof(fields))];
	uint64_t v = values[fuzz_random(random, sizeof(values) / sizeof(values[0]))];

	if (size < FATBIN_HEADER + FATBIN_ENTRY)
		return size;
	if (fuzz_random(random, 2))
		memcpy(p, &v, 4);
	else
		memcpy(p, &v, 8);
	return size;
}

FUZZ_ENTRY size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;
	size_t n;

	switch (fuzz_random(&random, 8)) {
	case 0:
	case 1:
		break;
	case 2:
		return change_field(data, size, &random);
	default:
		n = repack(data, size, max, &random);
		if (n)
			return n;
	}
	return LLVMFuzzerMutate(data, size, max);
}

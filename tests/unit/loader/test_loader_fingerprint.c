// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A runtime that is known by its code: code with changes, in two halves, twice, at odd places, cut
 * off, and as it should be. NVIDIA's code is not here, so the fingerprints are of code made up. The
 * tests of the loopback library (loader/) have the real one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qcu-library/loader/fingerprint.h"
#include "tests/unit/loader/elf_file.h"

#define SIZE	  1001u /* of the code */
#define SAMPLE_AT 320u
#define AT	  512u /* where the code lies among that of the file */
#define PLACES	  300u /* of 16 bytes, for code */

static unsigned char code[SIZE];
static bool is_hole[SIZE];
static const uint16_t hole[] = {20 << 1, 0 << 1 | 1, 100 << 1 | 1, 500 << 1, 13 << 1};
static const struct qcul_holes run[] = {{3, 2}, {0, 3}, {3, 1}, {4, 1}};
static const char *const name[] = {"cudaFirst", "cudaLast", "cudaOther"};
static const uint16_t start[] = {0, (SIZE - QCUL_SITE_BYTES) / 16, QCUL_NO_START};
static struct qcul_fingerprint print[] = {
	{.version = "12.0", .major = 12, .size = 64, .sample = 1, .starts = start},
	{.version = "14.5",
	 .major = 13,
	 .size = SIZE,
	 .sample_at = SAMPLE_AT,
	 .first_holes = 1,
	 .count_holes = 3,
	 .starts = start},
};
/* The code's own print is in the table of older versions, or not. */
static const struct qcul_fingerprints tables[2][2] = {
	{{&tables[0][1], print + 1, 1, name, 3, hole, run}, {NULL, print, 1, name, 3, hole, run}},
	{{&tables[1][1], print, 1, NULL, 0, NULL, NULL}, {NULL, print + 1, 1, name, 3, hole, run}},
};
static const struct qcul_fingerprints *all = tables[0];

static struct elf_file file;
static struct qcul_linked linked;

/* Makes the code and its fingerprint. */
static int make_code(void **state)
{
	size_t at = 0, from = 0, i, k;
	uint64_t h = 0;

	(void)state;
	for (i = 0; i < SIZE; i++)
		code[i] = (unsigned char)(i * i * 7 + i * 13 + (i >> 3));
	for (i = 0; i < 5; i++) {
		from = at;
		at += hole[i] >> 1;
		h = qcul_fingerprint_hash(h, code + from, at - from);
		for (k = 0; k < (hole[i] & 1 ? 7u : 4u); k++)
			is_hole[at++] = true;
	}
	print[1].hash = qcul_fingerprint_hash(h, code + at, SIZE - at);
	print[1].sample = qcul_fingerprint_hash(0, code + SAMPLE_AT, 16);
	return 0;
}

/* A file without names, with the code somewhere in its own. */
static void make(void)
{
	static struct elf_file_plan plan;
	size_t i;

	memset(&plan, 0, sizeof(plan));
	for (i = 0; i < PLACES; i++)
		plan.name[i] = "f";
	plan.symbols = PLACES;
	elf_file_make(&file, &plan);
	file.section[FILE_SYMTAB].sh_type = SHT_PROGBITS;
	memcpy(file.data + ELF_FILE_CODE + AT, code, SIZE);
}

static bool find_in(size_t size)
{
	struct qcul_elf e;

	memset(&linked, 0, sizeof(linked));
	linked.state = QCUL_LINKED_STRIPPED;
	if (qcul_elf_open(&e, file.data, size))
		return false;
	qcul_fingerprint_find(&e, all, &linked);
	assert_int_equal(linked.state == QCUL_LINKED_FOUND, !*linked.what);
	assert_int_equal(linked.state == QCUL_LINKED_FOUND, linked.count > 0);
	return linked.state == QCUL_LINKED_FOUND;
}

static void assert_refused(const char *what)
{
	assert_false(find_in(file.size));
	assert_int_equal(linked.state, QCUL_LINKED_STRIPPED);
	if (!strstr(linked.what, what))
		fail_msg("\"%s\" does not say \"%s\"", linked.what, what);
}

static const char unknown[] = "of no CUDA from 12.0 to 14.5";
static const char changed[] = "is like that of CUDA 14.5 but not the same";

/* Each byte outside the holes, and only these. */
static void a_changed_byte(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < SIZE; i++) {
		make();
		file.data[ELF_FILE_CODE + AT + i] ^= 0x80;
		if (is_hole[i])
			assert_true(find_in(file.size));
		else
			assert_refused(i >= SAMPLE_AT && i < SAMPLE_AT + 16 ? unknown : changed);
	}
}

static void it_begins_right_and_ends_wrong(void **state)
{
	size_t i;

	(void)state;
	for (i = SAMPLE_AT + 16; i < SIZE; i += 97) {
		make();
		memset(file.data + ELF_FILE_CODE + AT + i, 0, SIZE - i);
		assert_refused(changed);
	}
	/* Two halves with a gap, as no linker places them. */
	make();
	memmove(file.data + ELF_FILE_CODE + AT + 516, file.data + ELF_FILE_CODE + AT + 500, 501);
	assert_refused(changed);
}

/* The code that is loaded ends inside it, or begins there. */
static void it_is_not_all_there(void **state)
{
	(void)state;
	make();
	file.segment[0].p_filesz = AT + SIZE - 1;
	file.section[FILE_TEXT].sh_size = AT + SIZE - 1;
	assert_refused(changed);
	make();
	file.segment[0].p_offset += AT + 16;
	file.segment[0].p_vaddr += AT + 16;
	file.segment[0].p_filesz -= AT + 16;
	file.section[FILE_TEXT].sh_offset += AT + 16;
	file.section[FILE_TEXT].sh_size -= AT + 16;
	assert_refused(changed);
	/* It would begin before the first address. */
	file.segment[0].p_vaddr = 0;
	assert_refused(changed);
}

static void a_file_that_is_cut_off(void **state)
{
	size_t size;

	(void)state;
	make();
	for (size = 0; size < file.size; size++)
		assert_false(find_in(size));
	assert_true(find_in(file.size));
	/* The part of the last segment that is in the file is not at its end. */
	file.segment[1].p_filesz++;
	assert_refused("the file is cut off");
	file.segment[1].p_offset = UINT64_MAX - 4096;
	assert_refused("the file is cut off");
}

static void it_is_there_twice(void **state)
{
	(void)state;
	make();
	memcpy(file.data + ELF_FILE_CODE + 2048, code, SIZE);
	assert_refused("its code is there twice");
	/* Only a whole one counts. */
	file.data[ELF_FILE_CODE + 2048] ^= 1;
	assert_true(find_in(file.size));
	assert_int_equal(linked.sites[0].addr, ELF_FILE_CODE + AT);
}

/* Code is not compared again and again for a file that is made for that. */
static void more_samples_than_are_followed(void **state)
{
	size_t i;

	(void)state;
	for (i = 7; i <= 8; i++) {
		size_t k;

		make();
		for (k = 0; k < i; k++)
			memcpy(file.data + ELF_FILE_CODE + k * 16, code + SAMPLE_AT, 16);
		if (i < 8)
			assert_true(find_in(file.size));
		else
			assert_refused(changed);
	}
}

static void code_at_other_places(void **state)
{
	size_t i;

	(void)state;
	for (i = 1; i < 16; i++) {
		make();
		memset(file.data + ELF_FILE_CODE + AT, 0, SIZE);
		memcpy(file.data + ELF_FILE_CODE + AT + i, code, SIZE);
		assert_refused(unknown);
		/* What counts is where it is loaded. */
		file.segment[0].p_vaddr += 16 - i;
		assert_true(find_in(file.size));
		assert_int_equal(linked.sites[0].addr % 16, 0);
	}
}

static void what_is_no_code(void **state)
{
	(void)state;
	make();
	file.segment[0].p_flags = PF_R | PF_W;
	assert_refused(unknown);
	make();
	file.section[FILE_TEXT].sh_flags = SHF_ALLOC;
	assert_refused(unknown);
	make();
	file.section[FILE_TEXT].sh_offset = file.size - 8;
	assert_refused(unknown);
	make();
	file.section[FILE_TEXT].sh_size = UINT64_MAX;
	assert_refused(unknown);
	/* The sections say less than is loaded, or something else. */
	make();
	file.section[FILE_TEXT].sh_size = AT + SIZE / 4;
	assert_refused(unknown);
}

/* The same code in many sections or segments is looked at once. */
static void parts_that_overlap(void **state)
{
	(void)state;
	make();
	file.section[FILE_FATBIN] = file.section[FILE_TEXT];
	file.section[FILE_FATBIN].sh_size = file.size - ELF_FILE_CODE;
	file.section[FILE_TEXT].sh_size = 64;
	file.section[FILE_RODATA] = file.section[FILE_TEXT];
	file.section[FILE_RODATA].sh_offset = 0;
	file.section[FILE_RODATA].sh_size = file.size;
	file.segment[0].p_filesz = file.size - ELF_FILE_CODE;
	/* The second section takes all that is left. */
	assert_refused(unknown);
}

static void it_is_found(void **state)
{
	int sections;

	(void)state;
	for (sections = 1; sections >= 0; sections--) {
		make();
		if (!sections)
			file.head->e_shoff = 0;
		assert_true(find_in(file.size));
		assert_int_equal(linked.major, 13);
		assert_string_equal(linked.version, "14.5");
		assert_int_equal(linked.count, 2);
		assert_string_equal(linked.sites[0].name, "cudaFirst");
		assert_int_equal(linked.sites[0].addr, ELF_FILE_CODE + AT);
		assert_string_equal(linked.sites[1].name, "cudaLast");
		assert_int_equal(linked.sites[1].addr, ELF_FILE_CODE + AT + 61 * 16);
	}
}

static void it_is_an_older_version(void **state)
{
	all = tables[1];
	it_is_found(state);
	file.data[ELF_FILE_CODE + AT + 600] ^= 1;
	assert_refused(changed);
	all = tables[0];
}

/* The numbers of NVIDIA's versions: each function has room for a jump, and a place of its own. */
static void check_known(const struct qcul_fingerprints *k)
{
	size_t i, n, j;

	assert_true(k->names_count < QCUL_SITES_MAX);
	for (n = 1; n < k->names_count; n++)
		assert_true(strcmp(k->names[n - 1], k->names[n]) < 0);
	assert_true(k->count > 0);
	for (i = 0; i < k->count; i++) {
		const struct qcul_fingerprint *p = &k->prints[i];
		static bool taken[QCUL_NO_START];
		size_t at = 0, functions = 0;

		memset(taken, 0, sizeof(taken));
		assert_true(p->major == (unsigned int)strtoul(p->version, NULL, 10));
		assert_true(p->sample_at % 16 == 0 && p->sample_at + 16 <= p->size);
		for (n = 0; n < k->names_count; n++) {
			if (p->starts[n] == QCUL_NO_START)
				continue;
			assert_true(p->starts[n] * 16u + QCUL_SITE_BYTES <= p->size);
			assert_false(taken[p->starts[n]]);
			taken[p->starts[n]] = true;
			functions++;
		}
		assert_true(functions > 390);
		for (n = 0; n < p->count_holes; n++) {
			const struct qcul_holes *r = &k->runs[p->first_holes + n];

			for (j = 0; j < r->count; j++)
				at += (k->holes[r->first + j] >> 1) +
				      (k->holes[r->first + j] & 1 ? 7 : 4);
		}
		assert_true(at <= p->size);
	}
}

static void the_known_versions(void **state)
{
	const struct qcul_fingerprints *k;

	(void)state;
	assert_non_null(qcul_fingerprints_known.older);
	for (k = &qcul_fingerprints_known; k; k = k->older)
		check_known(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_changed_byte),
		cmocka_unit_test(it_begins_right_and_ends_wrong),
		cmocka_unit_test(it_is_not_all_there),
		cmocka_unit_test(a_file_that_is_cut_off),
		cmocka_unit_test(it_is_there_twice),
		cmocka_unit_test(more_samples_than_are_followed),
		cmocka_unit_test(code_at_other_places),
		cmocka_unit_test(what_is_no_code),
		cmocka_unit_test(parts_that_overlap),
		cmocka_unit_test(it_is_found),
		cmocka_unit_test(it_is_an_older_version),
		cmocka_unit_test(the_known_versions),
	};

	return cmocka_run_group_tests(tests, make_code, NULL);
}

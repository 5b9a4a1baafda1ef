// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The reader of ELF files. The files lie at the end of a page behind which nothing may be read, so
 * that one byte too many ends the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "qcu-library/loader/elf.h"
#include "tests/unit/loader/elf_file.h"

static struct elf_file file;

/* The first `size` bytes of the file, right before a page that cannot be read. */
static const unsigned char *at_the_edge(size_t size)
{
	static unsigned char *room;

	if (!room) {
		room = mmap(NULL, ELF_FILE_MAX + 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(room != MAP_FAILED);
		assert_int_equal(mprotect(room + ELF_FILE_MAX, 4096, PROT_NONE), 0);
	}
	memcpy(room + ELF_FILE_MAX - size, file.data, size);
	return room + ELF_FILE_MAX - size;
}

static void make(void)
{
	struct elf_file_plan plan;

	elf_file_plan_12(&plan);
	plan.needed = "libfoo.so.1";
	plan.soname = "libbar.so.2";
	plan.rodata = "some text";
	plan.rodata_size = 9;
	elf_file_make(&file, &plan);
}

/* Uses everything of the reader. */
static void read_all(const struct qcul_elf *e)
{
	struct qcul_elf_symbols t;
	struct qcul_elf_symbol s;
	struct qcul_elf_range part;
	Elf64_Phdr p;
	uint64_t value;
	size_t i, sum = 0;

	for (i = 0; qcul_elf_segment(e, i, &p); i++)
		sum += p.p_filesz;
	if (qcul_elf_symbols(e, SHT_SYMTAB, &t))
		for (i = 0; i < t.count; i++)
			if (qcul_elf_symbol(&t, i, &s))
				sum += strlen(s.name);
	if (qcul_elf_section(e, ".rodata", &part))
		for (i = 0; i < part.size; i++)
			sum += e->data[part.offset + i];
	for (i = 0; qcul_elf_next_section(e, ".", &i, &part);)
		sum += part.size ? e->data[part.offset + part.size - 1] : 0;
	for (i = 0; qcul_elf_next_code(e, &i, &part);)
		if (part.size && qcul_elf_addr(e, part.offset, part.size, PF_X, &value))
			sum += e->data[part.offset + part.size - 1];
	for (i = 0; i < 20; i++) {
		const char *text = qcul_elf_dynamic_text(e, DT_NEEDED, i);

		if (text)
			sum += strlen(text);
		if (qcul_elf_dynamic(e, DT_STRTAB, i, &value))
			sum += value;
	}
	qcul_elf_imports(e, "dlsym");
	qcul_elf_dynamic_addr(e, &value);
	assert_true(sum || !sum);
}

/* ---- bad files ---- */

static void refuses_what_is_no_program(void **state)
{
	static const char text[] = "#!/bin/sh\nexec true\n";
	struct qcul_elf e;

	(void)state;
	assert_non_null(qcul_elf_open(&e, text, 0));
	assert_non_null(qcul_elf_open(&e, text, sizeof(text)));
	make();
	assert_non_null(qcul_elf_open(&e, at_the_edge(4), 4));
	assert_non_null(qcul_elf_open(&e, at_the_edge(16), 16));
	assert_non_null(qcul_elf_open(&e, at_the_edge(63), 63));
	file.head->e_type = ET_REL;
	assert_string_equal(qcul_elf_open(&e, file.data, file.size),
			    "is neither a program nor a library");
	file.head->e_type = ET_CORE;
	assert_non_null(qcul_elf_open(&e, file.data, file.size));
}

static void refuses_other_architectures(void **state)
{
	static const char why[] = "is for another architecture than x86-64";
	struct qcul_elf e;

	(void)state;
	make();
	file.head->e_machine = EM_AARCH64;
	assert_string_equal(qcul_elf_open(&e, file.data, file.size), why);
	make();
	file.head->e_ident[EI_CLASS] = ELFCLASS32;
	assert_string_equal(qcul_elf_open(&e, file.data, file.size), why);
	make();
	file.head->e_ident[EI_DATA] = ELFDATA2MSB;
	assert_string_equal(qcul_elf_open(&e, file.data, file.size), why);
}

static void survives_every_cut(void **state)
{
	struct qcul_elf e;
	size_t size;

	(void)state;
	make();
	for (size = 0; size <= file.size; size++) {
		const unsigned char *data = at_the_edge(size);

		if (!qcul_elf_open(&e, data, size))
			read_all(&e);
	}
}

/* Every field of 8 bytes becomes each of these values, one after the other. */
static void survives_every_number(void **state)
{
	static const uint64_t values[] = {0,	      1,	 0xffff,	  0x7fffffff,
					  UINT32_MAX, INT64_MAX, UINT64_MAX - 15, UINT64_MAX};
	struct qcul_elf e;
	size_t at, i, end;

	(void)state;
	make();
	end = file.size;
	for (at = 16; at + 8 <= end; at += 4) {
		/* The code says nothing. */
		if (at == ELF_FILE_CODE)
			at += file.segment[0].p_filesz;
		for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			uint64_t kept;

			memcpy(&kept, file.data + at, sizeof(kept));
			memcpy(file.data + at, &values[i], sizeof(kept));
			if (!qcul_elf_open(&e, at_the_edge(end), end))
				read_all(&e);
			memcpy(file.data + at, &kept, sizeof(kept));
		}
	}
}

static void segments_outside_are_refused(void **state)
{
	struct qcul_elf e;

	(void)state;
	make();
	file.head->e_phoff = file.size - 8;
	assert_non_null(qcul_elf_open(&e, file.data, file.size));
	file.head->e_phoff = UINT64_MAX;
	assert_non_null(qcul_elf_open(&e, file.data, file.size));
}

static void sections_outside_do_not_count(void **state)
{
	struct qcul_elf_symbols t;
	struct qcul_elf_range part;
	struct qcul_elf e;

	(void)state;
	make();
	file.head->e_shoff = file.size - 64;
	assert_null(qcul_elf_open(&e, file.data, file.size));
	assert_false(qcul_elf_symbols(&e, SHT_SYMTAB, &t));
	assert_false(qcul_elf_section(&e, ".rodata", &part));
	make();
	file.section[FILE_SYMTAB].sh_size = file.size;
	file.section[FILE_RODATA].sh_offset = file.size - 8;
	assert_null(qcul_elf_open(&e, file.data, file.size));
	assert_false(qcul_elf_symbols(&e, SHT_SYMTAB, &t));
	assert_false(qcul_elf_section(&e, ".rodata", &part));
}

/* Names that run out of their section. */
static void names_without_an_end_do_not_count(void **state)
{
	struct qcul_elf_symbols t;
	struct qcul_elf_symbol s;
	struct qcul_elf e;

	(void)state;
	make();
	memset(file.names + file.section[FILE_STRTAB].sh_size - 64, 'x', 64);
	assert_null(qcul_elf_open(&e, file.data, file.size));
	assert_false(qcul_elf_symbols(&e, SHT_SYMTAB, &t));
	assert_null(qcul_elf_dynamic_text(&e, DT_NEEDED, 0));
	make();
	file.symbol[3].st_name = (uint32_t)file.section[FILE_STRTAB].sh_size;
	assert_null(qcul_elf_open(&e, file.data, file.size));
	assert_true(qcul_elf_symbols(&e, SHT_SYMTAB, &t));
	assert_true(qcul_elf_symbol(&t, 2, &s));
	assert_false(qcul_elf_symbol(&t, 3, &s));
	assert_false(qcul_elf_symbol(&t, t.count, &s));
}

static void a_segment_without_end_holds_nothing(void **state)
{
	struct qcul_elf_range part;
	struct qcul_elf e;
	size_t offset, i;
	uint64_t addr;

	(void)state;
	make();
	file.segment[0].p_filesz = UINT64_MAX;
	assert_null(qcul_elf_open(&e, file.data, file.size));
	assert_false(qcul_elf_offset(&e, ELF_FILE_CODE, 16, PF_X, &offset));
	assert_false(qcul_elf_offset(&e, ELF_FILE_CODE, UINT64_MAX, PF_X, &offset));
	file.head->e_shoff = 0;
	assert_null(qcul_elf_open(&e, file.data, file.size));
	i = 0;
	assert_false(qcul_elf_next_code(&e, &i, &part));
	assert_true(qcul_elf_addr(&e, ELF_FILE_CODE, 16, PF_X, &addr));
	assert_false(qcul_elf_addr(&e, ELF_FILE_CODE - 1, 16, PF_X, &addr));
}

/* ---- a good file ---- */

static void reads_a_file(void **state)
{
	struct qcul_elf_symbols t;
	struct qcul_elf_symbol s;
	struct qcul_elf_range part;
	struct qcul_elf e;
	uint64_t addr;
	size_t offset, i;

	(void)state;
	make();
	assert_null(qcul_elf_open(&e, file.data, file.size));
	assert_true(qcul_elf_symbols(&e, SHT_SYMTAB, &t));
	assert_true(qcul_elf_symbol(&t, 1, &s));
	assert_string_equal(s.name, "libcudart_static_00");
	assert_true(qcul_elf_symbol(&t, 9, &s));
	assert_string_equal(s.name, "cudaFree");
	assert_int_equal(s.addr, ELF_FILE_CODE + 8 * 16);
	assert_int_equal(s.size, 16);
	assert_int_equal(s.type, STT_FUNC);
	assert_true(s.defined);
	assert_true(qcul_elf_section(&e, ".rodata", &part));
	assert_int_equal(part.size, 9);
	assert_memory_equal(file.data + part.offset, "some text", 9);
	assert_string_equal(qcul_elf_dynamic_text(&e, DT_NEEDED, 0), "libfoo.so.1");
	assert_null(qcul_elf_dynamic_text(&e, DT_NEEDED, 1));
	assert_string_equal(qcul_elf_dynamic_text(&e, DT_SONAME, 0), "libbar.so.2");
	assert_true(qcul_elf_dynamic_addr(&e, &addr));
	assert_int_equal(addr, file.segment[2].p_vaddr);
	assert_true(qcul_elf_offset(&e, ELF_FILE_CODE + 32, 16, PF_X, &offset));
	assert_int_equal(offset, ELF_FILE_CODE + 32);
	assert_false(qcul_elf_offset(&e, addr, 16, PF_X, &offset));
	assert_true(qcul_elf_offset(&e, addr, 16, PF_R, &offset));
	file.segment[0].p_vaddr = 0x7000;
	assert_true(qcul_elf_addr(&e, ELF_FILE_CODE + 32, 16, PF_X, &addr));
	assert_int_equal(addr, 0x7020);
	assert_false(qcul_elf_addr(&e, ELF_FILE_CODE + 32, file.segment[0].p_filesz, PF_X, &addr));
	i = 0;
	assert_true(qcul_elf_next_code(&e, &i, &part));
	assert_int_equal(part.offset, ELF_FILE_CODE);
	assert_false(qcul_elf_next_code(&e, &i, &part));
	i = 0;
	assert_true(qcul_elf_next_section(&e, ".rodata", &i, &part));
	assert_int_equal(part.size, 9);
	assert_false(qcul_elf_next_section(&e, ".rodata", &i, &part));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_no_program),
		cmocka_unit_test(refuses_other_architectures),
		cmocka_unit_test(survives_every_cut),
		cmocka_unit_test(survives_every_number),
		cmocka_unit_test(segments_outside_are_refused),
		cmocka_unit_test(sections_outside_do_not_count),
		cmocka_unit_test(names_without_an_end_do_not_count),
		cmocka_unit_test(a_segment_without_end_holds_nothing),
		cmocka_unit_test(reads_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

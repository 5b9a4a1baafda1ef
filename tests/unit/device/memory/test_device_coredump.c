// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The reader of a GPU's core dump, on dumps that are made here as CUDA lays them out. Broken ones
 * first: cut anywhere, with any byte changed, with tables that lie outside of the file or name
 * each other in a circle. None may be read beyond its end; the sanitizers' build sees that.
 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/qcuerror.h"
#include "qcu-device/backend/coredump.h"

#define FIRST	 0x80000000u
#define MODULE	 (FIRST + 7)
#define BLOCKS	 (FIRST + 13)
#define WARPS	 (FIRST + 14)
#define THREADS	 (FIRST + 15)
#define SECTIONS 8
#define CODE	 0x7f0012345000ull

/* Entries as newer versions of CUDA write them, longer than what is read. */
struct block_entry {
	uint64_t grid;
	uint32_t block[3], pad, cluster[8];
};
struct warp_entry {
	uint64_t error_at;
	uint32_t warp, valid, active, broken, error_known, pad, more[12];
};
struct thread_entry {
	uint64_t at, physical;
	uint32_t lane, thread[3], exception, more[4];
};

struct file {
	unsigned char bytes[1 << 14];
	size_t len;
	Elf64_Shdr sections[SECTIONS];
	unsigned int count;
};

static struct file dump;

static unsigned int add_section(struct file *f, uint32_t type, const void *data, size_t len,
				size_t entry)
{
	Elf64_Shdr *s = &f->sections[f->count];

	*s = (Elf64_Shdr){.sh_type = type, .sh_offset = f->len, .sh_size = len};
	s->sh_entsize = entry;
	memcpy(f->bytes + f->len, data, len);
	f->len = (f->len + len + 7) / 8 * 8;
	return f->count++;
}

static void begin_file(struct file *f)
{
	static const char names[] = "\0.text._Z4fillPfi\0.text.other";

	memset(f, 0, sizeof(*f));
	f->len = sizeof(Elf64_Ehdr);
	f->count = 1;
	add_section(f, SHT_STRTAB, names, sizeof(names), 0);
}

static void end_file(struct file *f)
{
	Elf64_Ehdr h = {.e_shoff = f->len, .e_shnum = (Elf64_Half)f->count, .e_shstrndx = 1};

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_shentsize = sizeof(Elf64_Shdr);
	memcpy(f->bytes, &h, sizeof(h));
	memcpy(f->bytes + f->len, f->sections, f->count * sizeof(Elf64_Shdr));
	f->len += f->count * sizeof(Elf64_Shdr);
}

/* Two blocks with a warp each; thread (1,2,3) of block (4,5,6) has failed in fill(). */
static void make_dump(uint32_t exception)
{
	static struct file module;
	const struct block_entry blocks[2] = {{.block = {9, 9, 9}}, {.block = {4, 5, 6}}};
	const struct warp_entry warp = {.error_at = CODE + 0x80, .error_known = 1};
	const struct thread_entry threads[2] = {
		{.at = CODE + 0x1000, .thread = {9, 9, 9}},
		{.at = CODE + 0x90, .thread = {1, 2, 3}, .exception = exception},
	};
	const char code[256] = {0};
	unsigned int i, b, w;

	begin_file(&module);
	for (i = 0; i < 2; i++) {
		Elf64_Shdr *s = &module.sections[add_section(&module, SHT_PROGBITS, code, 256, 0)];

		s->sh_flags = SHF_ALLOC | SHF_EXECINSTR;
		s->sh_addr = CODE + (i ? 0 : 0x1000);
		s->sh_name = i ? 1 : 18;
	}
	end_file(&module);
	begin_file(&dump);
	b = add_section(&dump, BLOCKS, blocks, sizeof(blocks), sizeof(*blocks));
	w = add_section(&dump, WARPS, &warp, sizeof(warp), sizeof(warp));
	dump.sections[w].sh_link = b;
	dump.sections[w].sh_info = 1;
	i = add_section(&dump, THREADS, threads, sizeof(threads), sizeof(*threads));
	dump.sections[i].sh_link = w;
	add_section(&dump, MODULE, module.bytes, module.len, 0);
	end_file(&dump);
}

/* Reads a copy that ends where its memory ends. */
static bool reads(const void *bytes, size_t len, struct qcu_fault *f)
{
	void *copy = malloc(len ? len : 1);
	bool ok;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	ok = coredump_fault(copy, len, f);
	free(copy);
	return ok;
}

static void broken_dumps_are_not_read(void **state)
{
	struct qcu_fault f;
	unsigned int seed = 7;
	size_t i;

	(void)state;
	make_dump(14);
	for (i = 0; i < dump.len; i++)
		assert_false(reads(dump.bytes, i, &f));
	for (i = 0; i < 4 * dump.len; i++) {
		unsigned char *p = dump.bytes + i / 4, was = *p;

		seed = seed * 1103515245u + 12345;
		*p = (unsigned char)(i % 4 == 0 ? 0 : i % 4 == 1 ? 0xff : seed >> 16);
		if (reads(dump.bytes, dump.len, &f)) {
			assert_in_range(f.error, 1, 999);
			assert_non_null(memchr(f.kernel, 0, sizeof(f.kernel)));
		}
		*p = was;
	}
}

static Elf64_Shdr *section_of_dump(unsigned int i)
{
	Elf64_Ehdr h;

	memcpy(&h, dump.bytes, sizeof(h));
	return (Elf64_Shdr *)(dump.bytes + h.e_shoff) + i;
}

static void tables_must_fit(void **state)
{
	struct qcu_fault f;

	(void)state;
	make_dump(14);
	section_of_dump(4)->sh_link = 4; /* threads of threads */
	assert_false(reads(dump.bytes, dump.len, &f));
	make_dump(14);
	section_of_dump(3)->sh_info = 2; /* of two blocks */
	assert_false(reads(dump.bytes, dump.len, &f));
	make_dump(14);
	section_of_dump(4)->sh_entsize = 35;
	assert_false(reads(dump.bytes, dump.len, &f));
	make_dump(14);
	section_of_dump(2)->sh_offset = UINT64_MAX - 8;
	assert_false(reads(dump.bytes, dump.len, &f));
	make_dump(0);
	assert_false(reads(dump.bytes, dump.len, &f));
}

static void the_place_is_read(void **state)
{
	static const struct {
		uint32_t exception, error;
	} cases[] = {
		{1, QCU_ERR_IllegalAddress},	 {6, QCU_ERR_MisalignedAddress},
		{4, QCU_ERR_IllegalInstruction}, {12, QCU_ERR_Assert},
		{9, QCU_ERR_HardwareStackError}, {99, QCU_ERR_LaunchFailure},
	};
	struct qcu_fault f;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		make_dump(cases[i].exception);
		assert_true(reads(dump.bytes, dump.len, &f));
		assert_int_equal(f.error, cases[i].error);
		assert_int_equal(f.flags, QCU_FAULT_THREAD);
		assert_memory_equal(f.block, ((uint32_t[]){4, 5, 6}), 12);
		assert_memory_equal(f.thread, ((uint32_t[]){1, 2, 3}), 12);
		assert_string_equal(f.kernel, "_Z4fillPfi");
	}
	/* A module that is not where the thread was: no name, but the place. */
	section_of_dump(5)->sh_type = SHT_NOTE;
	assert_true(reads(dump.bytes, dump.len, &f));
	assert_string_equal(f.kernel, "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken_dumps_are_not_read),
		cmocka_unit_test(tables_must_fit),
		cmocka_unit_test(the_place_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

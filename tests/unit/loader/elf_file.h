/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes small ELF files by hand, right ones and wrong ones. They look to the reader like a program
 * with NVIDIA's static runtime in it, and have no code.
 */
#ifndef TESTS_ELF_FILE_H
#define TESTS_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_FILE_MAX	 (128u << 10)
#define ELF_FILE_SYMBOLS 600u
/* Where the code is loaded. In the file it lies at the same offset. */
#define ELF_FILE_CODE 0x1000u

struct elf_file {
	unsigned char data[ELF_FILE_MAX];
	size_t size;
	Elf64_Ehdr *head;
	Elf64_Phdr *segment; /* code, all but the code, dynamic section */
	Elf64_Shdr *section; /* see the enumeration */
	Elf64_Sym *symbol;
	Elf64_Dyn *dynamic;
	char *names;
};

enum { ELF_FILE_SEGMENTS = 3 };
enum {
	FILE_NONE,
	FILE_TEXT,
	FILE_RODATA,
	FILE_FATBIN,
	FILE_SYMTAB,
	FILE_STRTAB,
	FILE_DYNAMIC,
	FILE_SHSTRTAB,
	ELF_FILE_SECTIONS
};

/* What shall be in the file. */
struct elf_file_plan {
	const char *name[ELF_FILE_SYMBOLS]; /* functions, 16 bytes each */
	size_t symbols;
	const char *rodata;
	size_t rodata_size;
	const void *fatbin;
	size_t fatbin_size;
	const char *needed, *soname;
};

/* The names of all functions of CUDA 13's runtime, and its mark. */
void elf_file_plan_13(struct elf_file_plan *p);
/* The few that make the reader believe in CUDA 12. */
void elf_file_plan_12(struct elf_file_plan *p);

void elf_file_make(struct elf_file *f, const struct elf_file_plan *p);
/* The symbol of that name. Ends the test if there is none. */
Elf64_Sym *elf_file_symbol(struct elf_file *f, const char *name);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads ELF files that nobody vouches for: programs and libraries of a user, of any origin. Every
 * number in the file is checked against the file's size before it is used, and the file may be cut
 * short or made by hand. Nothing is written, and nothing is allocated.
 */
#ifndef QCUL_ELF_H
#define QCUL_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many program headers or sections of one file are looked at. */
#define QCUL_ELF_HEADERS_MAX 65536u

struct qcul_elf {
	const unsigned char *data;
	size_t size;
	Elf64_Ehdr head;
	size_t segments, sections;
	const char *section_names; /* ends with a NUL byte; NULL: the sections have no names */
	size_t section_names_size;
};

/* A part of the file. */
struct qcul_elf_range {
	size_t offset, size;
};

/* A symbol table with its names. */
struct qcul_elf_symbols {
	const unsigned char *first;
	size_t count;
	const char *names; /* ends with a NUL byte */
	size_t names_size;
};

struct qcul_elf_symbol {
	const char *name;
	uint64_t addr, size;
	unsigned int type;
	bool defined;
	bool weak; /* the dynamic linker may leave it out */
};

/*
 * Takes a file in memory, which must stay there. Returns NULL, or what is wrong with it, as the end
 * of a sentence: "is ...".
 */
const char *qcul_elf_open(struct qcul_elf *e, const void *data, size_t size);
/* The same for an object file, which is linked only later. */
const char *qcul_elf_open_object(struct qcul_elf *e, const void *data, size_t size);

bool qcul_elf_segment(const struct qcul_elf *e, size_t i, Elf64_Phdr *out);
/* The content of a named section. False: there is none, or it lies outside the file. */
bool qcul_elf_section(const struct qcul_elf *e, const char *name, struct qcul_elf_range *out);
/* The next section from number *i on whose name begins so. False: there is none. */
bool qcul_elf_next_section(const struct qcul_elf *e, const char *prefix, size_t *i,
			   struct qcul_elf_range *out);
/* The next part of the code: a section, or a segment if there are no sections. */
bool qcul_elf_next_code(const struct qcul_elf *e, size_t *i, struct qcul_elf_range *out);
/* The symbols of a section of the type SHT_SYMTAB or SHT_DYNSYM. */
bool qcul_elf_symbols(const struct qcul_elf *e, unsigned int type, struct qcul_elf_symbols *out);
/* False: there is no such symbol, or its name lies outside the names. */
bool qcul_elf_symbol(const struct qcul_elf_symbols *t, size_t i, struct qcul_elf_symbol *out);

/*
 * Where `len` bytes at an address lie in the file. The segment must be loaded with all the flags
 * (PF_X, for example), and the bytes must come from the file.
 */
bool qcul_elf_offset(const struct qcul_elf *e, uint64_t addr, uint64_t len, unsigned int flags,
		     size_t *offset);

/* The address of such bytes. */
bool qcul_elf_addr(const struct qcul_elf *e, size_t offset, size_t len, unsigned int flags,
		   uint64_t *addr);

/* The value of the dynamic entry that is the nth with this tag. */
bool qcul_elf_dynamic(const struct qcul_elf *e, int64_t tag, size_t nth, uint64_t *value);
/* The nth string of that tag (DT_NEEDED, DT_SONAME); NULL: there is none. */
const char *qcul_elf_dynamic_text(const struct qcul_elf *e, int64_t tag, size_t nth);
/* The address of the dynamic section. */
bool qcul_elf_dynamic_addr(const struct qcul_elf *e, uint64_t *addr);
/* True if the dynamic linker writes into these bytes, and also if that cannot be known. */
bool qcul_elf_relocates(const struct qcul_elf *e, uint64_t addr, uint64_t size);
/* True if the file takes this function from another one, and also if that cannot be known. */
bool qcul_elf_imports(const struct qcul_elf *e, const char *name);

#endif

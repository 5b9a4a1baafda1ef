// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks machine code of a GPU: an ELF file. Every offset, size and number in its headers must
 * agree with the file; so must names, symbols and relocations. What the contents of the sections
 * mean beyond that is left to the GPU driver. Tables may not overlap, so that a small file cannot
 * keep the check busy for long. Other sections may overlap, because they do in what nvcc makes for
 * newer GPUs.
 */
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "qcu-device/backend/image.h"

#define MACHINE_CUDA 190
#define ALIGN_MAX    ((uint64_t)1 << 20)
#define NOBITS_MAX   ((uint64_t)1 << 40) /* more memory than a GPU has */

/*
 * CUDA's own types. For newer GPUs the file contains the code twice, one copy packed. Tables of the
 * packed types belong to that copy: their symbols and relocations refer to the unpacked code.
 */
enum {
	SHT_CUDA_GLOBAL = 0x70000007, /* these three have no bytes in the file */
	SHT_CUDA_LOCAL = 0x70000009,
	SHT_CUDA_SHARED = 0x7000000a,
	SHT_PACKED_RELA = 0x70000082,
	SHT_PACKED_SYMTAB = 0x70000085,
};

struct elf {
	const unsigned char *p;
	size_t len;
	Elf64_Ehdr head;
	uint64_t sections; /* their number */
	uint64_t names;	   /* index of the section with their names */
};

static bool is_inside_elf(const struct elf *elf, uint64_t offset, uint64_t size)
{
	return offset <= elf->len && size <= elf->len - offset;
}

static bool good_align(uint64_t align)
{
	return align <= ALIGN_MAX && !(align & (align - 1));
}

static Elf64_Shdr section(const struct elf *elf, uint64_t i)
{
	Elf64_Shdr s;

	memcpy(&s, elf->p + elf->head.e_shoff + i * sizeof(s), sizeof(s));
	return s;
}

static bool has_bits(uint32_t type)
{
	return type != SHT_NOBITS && type != SHT_CUDA_GLOBAL && type != SHT_CUDA_LOCAL &&
	       type != SHT_CUDA_SHARED;
}

static bool has_symbols(uint32_t type)
{
	return type == SHT_SYMTAB || type == SHT_DYNSYM || type == SHT_PACKED_SYMTAB;
}

static bool has_relocations(uint32_t type)
{
	return type == SHT_REL || type == SHT_RELA || type == SHT_PACKED_RELA;
}

static const char *head_fault(struct elf *elf)
{
	const unsigned char *id = elf->head.e_ident;

	if (elf->len < sizeof(elf->head))
		return "the machine code is damaged: it is cut short";
	memcpy(&elf->head, elf->p, sizeof(elf->head));
	if (memcmp(id, ELFMAG, SELFMAG) || id[EI_CLASS] != ELFCLASS64 ||
	    id[EI_DATA] != ELFDATA2LSB || id[EI_VERSION] != EV_CURRENT ||
	    elf->head.e_machine != MACHINE_CUDA)
		return "it is no machine code of a GPU";
	if (elf->head.e_ehsize != sizeof(elf->head))
		return "the machine code is damaged: its header has another size";
	return NULL;
}

/*
 * A file with very many sections keeps the numbers that do not fit into the header in its first,
 * empty section.
 */
static const char *count_sections(struct elf *elf)
{
	Elf64_Shdr first;

	elf->sections = elf->head.e_shnum;
	elf->names = elf->head.e_shstrndx;
	if (!elf->head.e_shoff)
		return elf->sections || elf->names ? "the machine code is damaged: it does not say "
						     "where its sections are"
						   : NULL;
	if (elf->head.e_shentsize != sizeof(first) ||
	    !is_inside_elf(elf, elf->head.e_shoff, sizeof(first)))
		return "the machine code is damaged: it has no table of sections";
	first = section(elf, 0);
	if (!elf->sections)
		elf->sections = first.sh_size;
	if (elf->names == SHN_XINDEX)
		elf->names = first.sh_link;
	if (!elf->sections || elf->sections > (elf->len - elf->head.e_shoff) / sizeof(first))
		return "the machine code is damaged: it has more sections than there are";
	if (elf->names >= elf->sections)
		return "the machine code is damaged: the sections have no names";
	return NULL;
}

static const char *segments_fault(const struct elf *elf)
{
	uint64_t off = elf->head.e_phoff, i;
	Elf64_Phdr ph;

	if (!elf->head.e_phnum)
		return NULL;
	if (elf->head.e_phentsize != sizeof(ph) ||
	    !is_inside_elf(elf, off, (uint64_t)elf->head.e_phnum * sizeof(ph)))
		return "the machine code is damaged: it has more segments than there are";
	for (i = 0; i < elf->head.e_phnum; i++) {
		memcpy(&ph, elf->p + off + i * sizeof(ph), sizeof(ph));
		if (!is_inside_elf(elf, ph.p_offset, ph.p_filesz))
			return "the machine code is damaged: a segment lies outside of it";
		if (ph.p_type == PT_LOAD && (ph.p_filesz > ph.p_memsz || ph.p_memsz > NOBITS_MAX))
			return "the machine code is damaged: a segment has a bad size";
		if (!good_align(ph.p_align))
			return "the machine code is damaged: a segment has a bad alignment";
	}
	return NULL;
}

/* Checks the offset and the size of every section. */
static const char *find_section_fault(const struct elf *elf)
{
	uint64_t i;

	for (i = 1; i < elf->sections; i++) {
		const Elf64_Shdr s = section(elf, i);

		if (s.sh_type == SHT_NULL)
			continue;
		if (!good_align(s.sh_addralign))
			return "the machine code is damaged: a section has a bad alignment";
		if (s.sh_link >= elf->sections)
			return "the machine code is damaged: a section belongs to none that is "
			       "there";
		if (!has_bits(s.sh_type)) {
			if (s.sh_size > NOBITS_MAX)
				return "the machine code is damaged: a section has a bad size";
			continue;
		}
		if (!is_inside_elf(elf, s.sh_offset, s.sh_size))
			return "the machine code is damaged: a section lies outside of it";
		if (s.sh_type == SHT_STRTAB && s.sh_size && elf->p[s.sh_offset + s.sh_size - 1])
			return "the machine code is damaged: its last name has no end";
	}
	return NULL;
}

/* Does a name begin at this offset in this table of names? An empty table has the empty name. */
static bool name_fits(const Elf64_Shdr *names, uint32_t at)
{
	return names->sh_type == SHT_STRTAB && (at < names->sh_size || !at);
}

static const char *names_fault(const struct elf *elf)
{
	const Elf64_Shdr names = elf->sections ? section(elf, elf->names) : (Elf64_Shdr){0};
	uint64_t i;

	for (i = 1; i < elf->sections; i++) {
		const Elf64_Shdr s = section(elf, i);

		if (s.sh_type != SHT_NULL && !name_fits(&names, s.sh_name))
			return "the machine code is damaged: a section's name lies elsewhere";
	}
	return NULL;
}

static const char *symbol_fault(const struct elf *elf, const Elf64_Shdr *table,
				const Elf64_Shdr *names, const Elf64_Sym *sym)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info);
	Elf64_Shdr in;

	if (!name_fits(names, sym->st_name))
		return "the machine code is damaged: a symbol's name lies elsewhere";
	if (sym->st_shndx >= SHN_LORESERVE)
		return NULL;
	if (sym->st_shndx >= elf->sections)
		return "the machine code is damaged: a symbol lies in no section";
	if ((type != STT_FUNC && type != STT_OBJECT) || sym->st_shndx == SHN_UNDEF ||
	    table->sh_type == SHT_PACKED_SYMTAB)
		return NULL;
	in = section(elf, sym->st_shndx);
	if (sym->st_value > in.sh_size || sym->st_size > in.sh_size - sym->st_value)
		return "the machine code is damaged: a symbol lies outside of its section";
	return NULL;
}

static const char *symbols_fault(const struct elf *elf, const Elf64_Shdr *table)
{
	const Elf64_Shdr names = section(elf, table->sh_link);
	const char *why = NULL;
	Elf64_Sym sym;
	uint64_t at;

	if (table->sh_entsize != sizeof(sym) || table->sh_size % sizeof(sym) ||
	    table->sh_info > table->sh_size / sizeof(sym))
		return "the machine code is damaged: a table of symbols has a bad size";
	for (at = 0; at < table->sh_size && !why; at += sizeof(sym)) {
		memcpy(&sym, elf->p + table->sh_offset + at, sizeof(sym));
		why = symbol_fault(elf, table, &names, &sym);
	}
	return why;
}

/*
 * Checks where loading will write, and which symbol it uses. Both kinds of entry begin with the
 * same fields.
 */
static const char *relocations_fault(const struct elf *elf, const Elf64_Shdr *table)
{
	size_t each = table->sh_type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
	const Elf64_Shdr symbols = section(elf, table->sh_link);
	Elf64_Shdr in;
	Elf64_Rel rel;
	uint64_t at;

	if (table->sh_entsize != each || table->sh_size % each)
		return "the machine code is damaged: a table of relocations has a bad size";
	if (!table->sh_size)
		return NULL;
	if (!has_symbols(symbols.sh_type))
		return "the machine code is damaged: relocations have no symbols";
	if (!table->sh_info || table->sh_info >= elf->sections)
		return "the machine code is damaged: relocations are for no section";
	in = section(elf, table->sh_info);
	for (at = 0; at < table->sh_size; at += each) {
		memcpy(&rel, elf->p + table->sh_offset + at, sizeof(rel));
		if (rel.r_offset >= in.sh_size && table->sh_type != SHT_PACKED_RELA)
			return "the machine code is damaged: a relocation lies outside of its "
			       "section";
		if (ELF64_R_SYM(rel.r_info) >= symbols.sh_size / sizeof(Elf64_Sym))
			return "the machine code is damaged: a relocation has no symbol";
	}
	return NULL;
}

static const char *tables_fault(const struct elf *elf)
{
	uint64_t i, left = elf->len;
	const char *why = NULL;

	for (i = 1; i < elf->sections && !why; i++) {
		const Elf64_Shdr s = section(elf, i);

		if (!has_symbols(s.sh_type) && !has_relocations(s.sh_type))
			continue;
		if (s.sh_size > left)
			return "the machine code is damaged: its tables lie in one another";
		left -= s.sh_size;
		if (has_symbols(s.sh_type))
			why = symbols_fault(elf, &s);
		else
			why = relocations_fault(elf, &s);
	}
	return why;
}

const char *image_elf_fault(const void *image, size_t len)
{
	struct elf elf = {.p = image, .len = len};
	const char *why = head_fault(&elf);

	if (!why)
		why = count_sections(&elf);
	if (!why)
		why = segments_fault(&elf);
	if (!why)
		why = find_section_fault(&elf);
	if (!why)
		why = names_fault(&elf);
	if (!why)
		why = tables_fault(&elf);
	return why;
}

uint64_t image_elf_memory(const void *image, size_t len)
{
	struct elf elf = {.p = image, .len = len};
	uint64_t sum = 0, i;

	if (head_fault(&elf) || count_sections(&elf))
		return 0;
	for (i = 1; i < elf.sections; i++) {
		const Elf64_Shdr s = section(&elf, i);

		if ((s.sh_type == SHT_NOBITS || s.sh_type == SHT_CUDA_GLOBAL) &&
		    __builtin_add_overflow(sum, s.sh_size, &sum))
			return UINT64_MAX;
	}
	return sum;
}

/* Do variables lie in this section? The image has been checked; a section of no type may have any
 * name. */
static bool has_variables(const struct elf *elf, unsigned int index)
{
	const Elf64_Shdr names = section(elf, elf->names), s = section(elf, index);
	const char *name = (const char *)elf->p + names.sh_offset + s.sh_name;

	return s.sh_type != SHT_NULL && names.sh_size &&
	       (!strncmp(name, ".nv.global", 10) || !strcmp(name, ".nv.constant3"));
}

void image_elf_names(const void *image, size_t len, struct image_names *names)
{
	struct elf elf = {.p = image, .len = len};
	Elf64_Shdr strings, s;
	uint64_t i, at;
	Elf64_Sym sym;
	const char *name;

	if (image_elf_fault(image, len) || head_fault(&elf) || count_sections(&elf) ||
	    !elf.sections)
		return;
	for (i = 1; i < elf.sections; i++) {
		s = section(&elf, i);
		if (s.sh_type != SHT_SYMTAB)
			continue;
		strings = section(&elf, s.sh_link);
		for (at = 0; at < s.sh_size && strings.sh_size; at += sizeof(sym)) {
			memcpy(&sym, elf.p + s.sh_offset + at, sizeof(sym));
			name = (const char *)elf.p + strings.sh_offset + sym.st_name;
			if (!strcmp(name, "malloc"))
				names->mallocs = true;
			if (ELF64_ST_TYPE(sym.st_info) == STT_OBJECT &&
			    sym.st_shndx < elf.sections && has_variables(&elf, sym.st_shndx))
				image_names_add(names, name, strlen(name));
		}
	}
}

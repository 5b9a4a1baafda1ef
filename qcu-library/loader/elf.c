// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The reader of ELF files: see elf.h. A header is copied before it is checked, so that it need not
 * be aligned. A range is checked as `len > size - offset`, which cannot overflow.
 */
#include <string.h>

#include "qcu-library/loader/elf.h"

static bool is_inside_file(const struct qcul_elf *e, uint64_t offset, uint64_t len)
{
	return offset <= e->size && len <= e->size - offset;
}

static bool section(const struct qcul_elf *e, size_t i, Elf64_Shdr *out)
{
	if (i >= e->sections)
		return false;
	memcpy(out, e->data + e->head.e_shoff + i * sizeof(*out), sizeof(*out));
	return true;
}

/* A section of strings, if it lies in the file and ends with a NUL byte. */
static bool strings(const struct qcul_elf *e, size_t i, const char **text, size_t *size)
{
	Elf64_Shdr s;

	if (!section(e, i, &s) || s.sh_type != SHT_STRTAB || !s.sh_size ||
	    !is_inside_file(e, s.sh_offset, s.sh_size) || e->data[s.sh_offset + s.sh_size - 1])
		return false;
	*text = (const char *)e->data + s.sh_offset;
	*size = s.sh_size;
	return true;
}

/* A file without usable section headers is as good as a stripped one. */
static void open_sections(struct qcul_elf *e)
{
	const Elf64_Ehdr *h = &e->head;
	size_t names = h->e_shstrndx;
	Elf64_Shdr first;

	if (!h->e_shoff || h->e_shentsize != sizeof(first) ||
	    !is_inside_file(e, h->e_shoff, sizeof(first)))
		return;
	memcpy(&first, e->data + h->e_shoff, sizeof(first));
	/* Where a number does not fit into the header, it is in the first section. */
	e->sections = h->e_shnum ? h->e_shnum : first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (e->sections > QCUL_ELF_HEADERS_MAX ||
	    !is_inside_file(e, h->e_shoff, e->sections * sizeof(first))) {
		e->sections = 0;
		return;
	}
	if (!strings(e, names, &e->section_names, &e->section_names_size))
		e->section_names = NULL;
}

static const char *open_elf(struct qcul_elf *e, const void *data, size_t size, bool object)
{
	Elf64_Ehdr *h = &e->head;

	memset(e, 0, sizeof(*e));
	e->data = data;
	e->size = size;
	if (size < EI_NIDENT || memcmp(data, ELFMAG, SELFMAG) != 0)
		return "is no ELF file";
	if (e->data[EI_CLASS] != ELFCLASS64 || e->data[EI_DATA] != ELFDATA2LSB)
		return "is for another architecture than x86-64";
	if (size < sizeof(*h))
		return "is damaged: it ends inside its header";
	memcpy(h, data, sizeof(*h));
	if (h->e_machine != EM_X86_64)
		return "is for another architecture than x86-64";
	if (object && h->e_type != ET_REL)
		return "is no object file";
	if (!object && h->e_type != ET_EXEC && h->e_type != ET_DYN)
		return "is neither a program nor a library";
	if (h->e_phnum && h->e_phnum != PN_XNUM &&
	    (h->e_phentsize != sizeof(Elf64_Phdr) ||
	     !is_inside_file(e, h->e_phoff, (uint64_t)h->e_phnum * sizeof(Elf64_Phdr))))
		return "is damaged: its segments lie outside the file";
	e->segments = h->e_phnum == PN_XNUM ? 0 : h->e_phnum;
	open_sections(e);
	return NULL;
}

const char *qcul_elf_open(struct qcul_elf *e, const void *data, size_t size)
{
	return open_elf(e, data, size, false);
}

const char *qcul_elf_open_object(struct qcul_elf *e, const void *data, size_t size)
{
	return open_elf(e, data, size, true);
}

bool qcul_elf_segment(const struct qcul_elf *e, size_t i, Elf64_Phdr *out)
{
	if (i >= e->segments)
		return false;
	memcpy(out, e->data + e->head.e_phoff + i * sizeof(*out), sizeof(*out));
	return true;
}

bool qcul_elf_section(const struct qcul_elf *e, const char *name, struct qcul_elf_range *out)
{
	Elf64_Shdr s;
	size_t i;

	for (i = 1; e->section_names && section(e, i, &s); i++) {
		if (s.sh_name >= e->section_names_size || s.sh_type == SHT_NOBITS ||
		    strcmp(e->section_names + s.sh_name, name) != 0)
			continue;
		if (!is_inside_file(e, s.sh_offset, s.sh_size))
			return false;
		out->offset = s.sh_offset;
		out->size = s.sh_size;
		return true;
	}
	return false;
}

bool qcul_elf_next_section(const struct qcul_elf *e, const char *prefix, size_t *i,
			   struct qcul_elf_range *out)
{
	Elf64_Shdr s;

	while (e->section_names && section(e, (*i)++, &s)) {
		if (s.sh_name >= e->section_names_size || s.sh_type == SHT_NOBITS ||
		    strncmp(e->section_names + s.sh_name, prefix, strlen(prefix)) != 0 ||
		    !is_inside_file(e, s.sh_offset, s.sh_size))
			continue;
		out->offset = s.sh_offset;
		out->size = s.sh_size;
		return true;
	}
	return false;
}

bool qcul_elf_next_code(const struct qcul_elf *e, size_t *i, struct qcul_elf_range *out)
{
	Elf64_Phdr p;
	Elf64_Shdr s;

	for (; e->sections ? section(e, *i, &s) : qcul_elf_segment(e, *i, &p); ++*i) {
		if (e->sections ? s.sh_type != SHT_PROGBITS || !(s.sh_flags & SHF_EXECINSTR)
				: p.p_type != PT_LOAD || !(p.p_flags & PF_X))
			continue;
		out->offset = e->sections ? s.sh_offset : p.p_offset;
		out->size = e->sections ? s.sh_size : p.p_filesz;
		if (!is_inside_file(e, out->offset, out->size))
			continue;
		++*i;
		return true;
	}
	return false;
}

bool qcul_elf_symbols(const struct qcul_elf *e, unsigned int type, struct qcul_elf_symbols *out)
{
	Elf64_Shdr s;
	size_t i;

	for (i = 1; section(e, i, &s); i++) {
		if (s.sh_type != type)
			continue;
		if (s.sh_entsize != sizeof(Elf64_Sym) ||
		    !is_inside_file(e, s.sh_offset, s.sh_size) ||
		    !strings(e, s.sh_link, &out->names, &out->names_size))
			return false;
		out->first = e->data + s.sh_offset;
		out->count = s.sh_size / sizeof(Elf64_Sym);
		return true;
	}
	return false;
}

bool qcul_elf_symbol(const struct qcul_elf_symbols *t, size_t i, struct qcul_elf_symbol *out)
{
	Elf64_Sym s;

	if (i >= t->count)
		return false;
	memcpy(&s, t->first + i * sizeof(s), sizeof(s));
	if (s.st_name >= t->names_size)
		return false;
	out->name = t->names + s.st_name;
	out->addr = s.st_value;
	out->size = s.st_size;
	out->type = ELF64_ST_TYPE(s.st_info);
	out->defined = s.st_shndx != SHN_UNDEF;
	out->weak = ELF64_ST_BIND(s.st_info) == STB_WEAK;
	return true;
}

bool qcul_elf_offset(const struct qcul_elf *e, uint64_t addr, uint64_t len, unsigned int flags,
		     size_t *offset)
{
	Elf64_Phdr p;
	size_t i;

	for (i = 0; qcul_elf_segment(e, i, &p); i++) {
		if (p.p_type != PT_LOAD || (p.p_flags & flags) != flags || addr < p.p_vaddr ||
		    addr - p.p_vaddr > p.p_filesz || len > p.p_filesz - (addr - p.p_vaddr))
			continue;
		if (!is_inside_file(e, p.p_offset, p.p_filesz))
			return false;
		*offset = p.p_offset + (addr - p.p_vaddr);
		return true;
	}
	return false;
}

bool qcul_elf_addr(const struct qcul_elf *e, size_t offset, size_t len, unsigned int flags,
		   uint64_t *addr)
{
	Elf64_Phdr p;
	size_t i;

	for (i = 0; qcul_elf_segment(e, i, &p); i++) {
		if (p.p_type != PT_LOAD || (p.p_flags & flags) != flags || offset < p.p_offset ||
		    offset - p.p_offset > p.p_filesz || len > p.p_filesz - (offset - p.p_offset))
			continue;
		*addr = p.p_vaddr + (offset - p.p_offset);
		return true;
	}
	return false;
}

static bool dynamic_segment(const struct qcul_elf *e, Elf64_Phdr *p)
{
	size_t i;

	for (i = 0; qcul_elf_segment(e, i, p); i++)
		if (p->p_type == PT_DYNAMIC)
			return true;
	return false;
}

bool qcul_elf_dynamic_addr(const struct qcul_elf *e, uint64_t *addr)
{
	Elf64_Phdr p;

	if (!dynamic_segment(e, &p))
		return false;
	*addr = p.p_vaddr;
	return true;
}

bool qcul_elf_dynamic(const struct qcul_elf *e, int64_t tag, size_t nth, uint64_t *value)
{
	Elf64_Phdr p;
	Elf64_Dyn d;
	size_t at;

	if (!dynamic_segment(e, &p) || !is_inside_file(e, p.p_offset, p.p_filesz))
		return false;
	for (at = 0; sizeof(d) <= p.p_filesz - at; at += sizeof(d)) {
		memcpy(&d, e->data + p.p_offset + at, sizeof(d));
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag != tag || nth--)
			continue;
		*value = d.d_un.d_val;
		return true;
	}
	return false;
}

const char *qcul_elf_dynamic_text(const struct qcul_elf *e, int64_t tag, size_t nth)
{
	uint64_t at, table, size;
	size_t offset;

	if (!qcul_elf_dynamic(e, tag, nth, &at) || !qcul_elf_dynamic(e, DT_STRTAB, 0, &table) ||
	    !qcul_elf_dynamic(e, DT_STRSZ, 0, &size) || at >= size ||
	    !qcul_elf_offset(e, table, size, 0, &offset) || e->data[offset + size - 1])
		return NULL;
	return (const char *)e->data + offset + at;
}

/*
 * With DT_GNU_HASH, what a file takes from others is in front of what it offers, and the table
 * names the first of these. So a library of thousands of functions is decided by a few hundred.
 */
bool qcul_elf_imports(const struct qcul_elf *e, const char *name)
{
	uint64_t hash, table, names, size;
	struct qcul_elf_symbols t;
	struct qcul_elf_symbol s;
	uint32_t head[2]; /* buckets, index of the first symbol that can be looked up */
	size_t offset, i;

	if (!qcul_elf_dynamic(e, DT_GNU_HASH, 0, &hash) ||
	    !qcul_elf_offset(e, hash, sizeof(head), 0, &offset))
		return true;
	memcpy(head, e->data + offset, sizeof(head));
	if (!qcul_elf_dynamic(e, DT_STRTAB, 0, &names) ||
	    !qcul_elf_dynamic(e, DT_STRSZ, 0, &size) || !size ||
	    !qcul_elf_offset(e, names, size, 0, &offset) || e->data[offset + size - 1])
		return true;
	t.names = (const char *)e->data + offset;
	t.names_size = size;
	if (!qcul_elf_dynamic(e, DT_SYMTAB, 0, &table) ||
	    !qcul_elf_offset(e, table, (uint64_t)head[1] * sizeof(Elf64_Sym), 0, &offset))
		return true;
	t.first = e->data + offset;
	t.count = head[1];
	for (i = 0; i < t.count; i++)
		if (qcul_elf_symbol(&t, i, &s) && !s.defined && !strcmp(s.name, name))
			return true;
	return false;
}

bool qcul_elf_relocates(const struct qcul_elf *e, uint64_t addr, uint64_t size)
{
	static const int64_t tags[2][2] = {{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}};
	uint64_t table, bytes;
	size_t offset, i, k;
	Elf64_Rela r;

	/* This processor's linkers write DT_RELA. Short tables are not read here. */
	if (qcul_elf_dynamic(e, DT_REL, 0, &table) || qcul_elf_dynamic(e, DT_RELR, 0, &table))
		return true;
	for (i = 0; i < 2; i++) {
		if (!qcul_elf_dynamic(e, tags[i][0], 0, &table))
			continue;
		if (!qcul_elf_dynamic(e, tags[i][1], 0, &bytes) || bytes % sizeof(r) ||
		    !qcul_elf_offset(e, table, bytes, 0, &offset))
			return true;
		for (k = 0; k < bytes; k += sizeof(r)) {
			memcpy(&r, e->data + offset + k, sizeof(r));
			/* The longest writes 16 bytes. */
			if (r.r_offset - addr < size || addr - r.r_offset < 16)
				return true;
		}
	}
	return false;
}

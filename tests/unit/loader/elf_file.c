// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files made by hand: see elf_file.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/loader/elf_file.h"

static const char *const names_13[] = {
#include "runtime_names.inc"
};

static const char *const names_12[] = {
	"libcudart_static_00",
	"__cudaPopCallConfiguration",
	"__cudaPushCallConfiguration",
	"__cudaRegisterFatBinary",
	"__cudaRegisterFatBinaryEnd",
	"__cudaRegisterFunction",
	"__cudaRegisterVar",
	"__cudaUnregisterFatBinary",
	"cudaFree",
	"cudaGetDeviceCount",
	"cudaGetLastError",
	"cudaLaunchKernel",
	"cudaGetDeviceProperties_v2",
	"cudaMalloc",
	"cudaThreadSynchronize",
	"cudaMemcpy",
};

void elf_file_plan_13(struct elf_file_plan *p)
{
	size_t i;

	memset(p, 0, sizeof(*p));
	p->name[p->symbols++] = "libcudart_static_00";
	for (i = 0; i < sizeof(names_13) / sizeof(names_13[0]); i++)
		p->name[p->symbols++] = names_13[i];
}

void elf_file_plan_12(struct elf_file_plan *p)
{
	memset(p, 0, sizeof(*p));
	memcpy(p->name, names_12, sizeof(names_12));
	p->symbols = sizeof(names_12) / sizeof(names_12[0]);
}

static void *reserve(struct elf_file *f, size_t bytes)
{
	void *p = f->data + f->size;

	f->size += (bytes + 15) & ~(size_t)15;
	if (f->size > ELF_FILE_MAX)
		abort();
	return p;
}

static uint64_t where(const struct elf_file *f, const void *p)
{
	return (uint64_t)((const unsigned char *)p - f->data);
}

static uint32_t add_name(struct elf_file *f, size_t *used, const char *name)
{
	uint32_t at = (uint32_t)*used;

	strcpy(f->names + at, name);
	*used += strlen(name) + 1;
	return at;
}

static void describe(struct elf_file *f, unsigned int i, const char *name, unsigned int type,
		     const void *at, size_t size)
{
	static const char names[] = "\0.text\0.rodata\0.nv_fatbin\0.symtab\0.strtab\0.dynamic\0"
				    ".shstrtab";
	Elf64_Shdr *s = &f->section[i];

	s->sh_name = (uint32_t)((const char *)memmem(names, sizeof(names), name, strlen(name) + 1) -
				names);
	s->sh_type = type;
	s->sh_offset = s->sh_addr = where(f, at);
	s->sh_size = size;
	if (i == FILE_SHSTRTAB)
		memcpy(f->data + s->sh_offset, names, sizeof(names));
}

/* Headers, code, and then everything else. Addresses are offsets in the file. */
void elf_file_make(struct elf_file *f, const struct elf_file_plan *p)
{
	size_t names_size = 64, used = 1, code_size = p->symbols * 16, i;
	unsigned char *rodata, *fatbin, *names, *section_names;
	Elf64_Dyn *d;

	memset(f, 0, sizeof(*f));
	for (i = 0; i < p->symbols; i++)
		names_size += strlen(p->name[i]) + 1;
	f->head = reserve(f, sizeof(*f->head));
	f->segment = reserve(f, ELF_FILE_SEGMENTS * sizeof(*f->segment));
	f->section = reserve(f, ELF_FILE_SECTIONS * sizeof(*f->section));
	f->size = ELF_FILE_CODE;
	reserve(f, code_size);
	f->symbol = reserve(f, (p->symbols + 1) * sizeof(*f->symbol));
	names = reserve(f, names_size);
	f->names = (char *)names;
	rodata = reserve(f, p->rodata_size);
	fatbin = reserve(f, p->fatbin_size);
	section_names = reserve(f, 80);
	f->dynamic = d = reserve(f, 8 * sizeof(*d));

	memcpy(f->head->e_ident, ELFMAG, SELFMAG);
	f->head->e_ident[EI_CLASS] = ELFCLASS64;
	f->head->e_ident[EI_DATA] = ELFDATA2LSB;
	f->head->e_type = ET_DYN;
	f->head->e_machine = EM_X86_64;
	f->head->e_phoff = where(f, f->segment);
	f->head->e_phentsize = sizeof(*f->segment);
	f->head->e_phnum = ELF_FILE_SEGMENTS;
	f->head->e_shoff = where(f, f->section);
	f->head->e_shentsize = sizeof(*f->section);
	f->head->e_shnum = ELF_FILE_SECTIONS;
	f->head->e_shstrndx = FILE_SHSTRTAB;

	for (i = 0; i < p->symbols; i++) {
		f->symbol[i + 1] = (Elf64_Sym){
			.st_name = add_name(f, &used, p->name[i]),
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = FILE_TEXT,
			.st_value = ELF_FILE_CODE + i * 16,
			.st_size = 16,
		};
	}
	if (p->rodata_size)
		memcpy(rodata, p->rodata, p->rodata_size);
	if (p->fatbin_size)
		memcpy(fatbin, p->fatbin, p->fatbin_size);
	if (p->needed)
		*d++ = (Elf64_Dyn){DT_NEEDED, {add_name(f, &used, p->needed)}};
	if (p->soname)
		*d++ = (Elf64_Dyn){DT_SONAME, {add_name(f, &used, p->soname)}};
	*d++ = (Elf64_Dyn){DT_STRTAB, {where(f, names)}};
	*d++ = (Elf64_Dyn){DT_STRSZ, {names_size}};
	*d++ = (Elf64_Dyn){DT_NULL, {0}};

	f->segment[0] = (Elf64_Phdr){.p_type = PT_LOAD,
				     .p_flags = PF_R | PF_X,
				     .p_offset = ELF_FILE_CODE,
				     .p_vaddr = ELF_FILE_CODE,
				     .p_filesz = code_size,
				     .p_memsz = code_size};
	f->segment[1] = (Elf64_Phdr){.p_type = PT_LOAD,
				     .p_flags = PF_R,
				     .p_offset = ELF_FILE_CODE + code_size,
				     .p_vaddr = ELF_FILE_CODE + code_size,
				     .p_filesz = f->size - ELF_FILE_CODE - code_size,
				     .p_memsz = f->size - ELF_FILE_CODE - code_size};
	f->segment[2] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
				     .p_flags = PF_R,
				     .p_offset = where(f, f->dynamic),
				     .p_vaddr = where(f, f->dynamic),
				     .p_filesz = (size_t)(d - f->dynamic) * sizeof(*d),
				     .p_memsz = (size_t)(d - f->dynamic) * sizeof(*d)};
	describe(f, FILE_SHSTRTAB, ".shstrtab", SHT_STRTAB, section_names, 80);
	describe(f, FILE_TEXT, ".text", SHT_PROGBITS, f->data + ELF_FILE_CODE, code_size);
	f->section[FILE_TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	describe(f, FILE_RODATA, ".rodata", SHT_PROGBITS, rodata, p->rodata_size);
	describe(f, FILE_FATBIN, ".nv_fatbin", SHT_PROGBITS, fatbin, p->fatbin_size);
	describe(f, FILE_SYMTAB, ".symtab", SHT_SYMTAB, f->symbol,
		 (p->symbols + 1) * sizeof(*f->symbol));
	f->section[FILE_SYMTAB].sh_entsize = sizeof(*f->symbol);
	f->section[FILE_SYMTAB].sh_link = FILE_STRTAB;
	describe(f, FILE_STRTAB, ".strtab", SHT_STRTAB, names, names_size);
	describe(f, FILE_DYNAMIC, ".dynamic", SHT_DYNAMIC, f->dynamic, 8 * sizeof(*d));
}

Elf64_Sym *elf_file_symbol(struct elf_file *f, const char *name)
{
	size_t i, n = f->section[FILE_SYMTAB].sh_size / sizeof(*f->symbol);

	for (i = 1; i < n; i++)
		if (!strcmp(f->names + f->symbol[i].st_name, name))
			return &f->symbol[i];
	fprintf(stderr, "no symbol %s\n", name);
	abort();
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes dumps of a GPU as CUDA does, by the structures in the toolkit's public header
 * cudacoredump.h: for the test of the reader (fault_dump.h), and for its fuzzer.
 */
#ifndef QCU_CUDA_DUMP_H
#define QCU_CUDA_DUMP_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

#define DUMP_ROOM     16384
#define DUMP_SECTIONS 24

/* Sizes of rows in driver 575. */
enum { SM_ROW = 48, BLOCK_ROW = 56, WARP_ROW = 64, THREAD_ROW = 56, GRID_ROW = 136 };

#define DUMP_BASE   0x7fffcf280000ull /* where the module's code lies */
#define DUMP_KERNEL "_Z4fillPfm"
#define DUMP_HELPER "_Z5storePf"

struct cuda_dump {
	uint8_t p[DUMP_ROOM];
	size_t len;
	Elf64_Shdr s[DUMP_SECTIONS];
	uint32_t count;
};

static inline void put32(uint8_t *row, size_t at, uint32_t v)
{
	memcpy(row + at, &v, sizeof(v));
}

static inline void put64(uint8_t *row, size_t at, uint64_t v)
{
	memcpy(row + at, &v, sizeof(v));
}

static inline void put_xyz(uint8_t *row, size_t at, uint32_t x, uint32_t y, uint32_t z)
{
	put32(row, at, x);
	put32(row, at + 4, y);
	put32(row, at + 8, z);
}

static inline void dump_begin(struct cuda_dump *d)
{
	memset(d, 0, sizeof(*d));
	d->len = sizeof(Elf64_Ehdr);
	d->count = 1;
}

/* Returns the zeroed rows. The section's number is d->count - 1. */
static inline uint8_t *dump_section(struct cuda_dump *d, uint32_t type, uint32_t link,
				    uint32_t info, size_t rows, size_t size)
{
	uint8_t *at = d->p + d->len;

	d->s[d->count++] = (Elf64_Shdr){.sh_type = type,
					.sh_offset = d->len,
					.sh_size = rows * size,
					.sh_link = link,
					.sh_info = info,
					.sh_entsize = size};
	d->len += (rows * size + 7) & ~(size_t)7;
	return at;
}

/* many: the number of sections is in the first one. */
static inline void dump_end(struct cuda_dump *d, uint16_t type, int many)
{
	Elf64_Ehdr head = {.e_type = type,
			   .e_machine = 190,
			   .e_version = 1,
			   .e_ehsize = sizeof(head),
			   .e_shoff = d->len,
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = (uint16_t)(many ? 0 : d->count)};

	memcpy(head.e_ident, ELFMAG, SELFMAG);
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_ident[EI_DATA] = ELFDATA2LSB;
	head.e_ident[EI_VERSION] = EV_CURRENT;
	head.e_ident[EI_OSABI] = 0x33;
	d->s[0].sh_size = many ? d->count : 0;
	memcpy(d->p, &head, sizeof(head));
	memcpy(d->p + d->len, d->s, d->count * sizeof(Elf64_Shdr));
	d->len += d->count * sizeof(Elf64_Shdr);
}

/* A module with a kernel of 0x400 bytes, and behind it a function of 0x100. */
static inline void dump_code(struct cuda_dump *code)
{
	static const char names[] = "\0" DUMP_KERNEL "\0" DUMP_HELPER;
	Elf64_Sym sym[3] = {{0},
			    {.st_name = 1,
			     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			     .st_other = 0x10,
			     .st_shndx = 1,
			     .st_value = DUMP_BASE,
			     .st_size = 0x400},
			    {.st_name = 1 + sizeof(DUMP_KERNEL),
			     .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
			     .st_shndx = 1,
			     .st_value = 0x400,
			     .st_size = 0x100}};

	dump_begin(code);
	dump_section(code, SHT_PROGBITS, 0, 0, 1, 0x500);
	code->s[1].sh_addr = DUMP_BASE;
	memcpy(dump_section(code, SHT_STRTAB, 0, 0, 1, sizeof(names)), names, sizeof(names));
	memcpy(dump_section(code, SHT_SYMTAB, 2, 1, 3, sizeof(*sym)), sym, sizeof(sym));
	dump_end(code, ET_EXEC, 0);
}

/* Which parts a dump has. */
struct dump_parts {
	uint32_t exception; /* of the second thread */
	int warp_has_pc;
	int no_threads; /* only the multiprocessor says something */
	int no_code;
	int many;
	uint64_t pc; /* offset in the module's code */
};

/*
 * Device 0, multiprocessor 1 of two, block (4,5,6) of the second grid, its warp 0, threads (7,8,9)
 * and (10,11,12).
 */
static inline void dump_make(struct cuda_dump *d, const struct dump_parts *with)
{
	struct cuda_dump code;
	uint8_t *row;
	uint32_t device, context, above;

	dump_begin(d);
	dump_section(d, 0x80000009u, 0, 0, 1, 88);
	device = d->count - 1;
	dump_section(d, 0x8000000au, device, 0, 1, 40);
	context = d->count - 1;
	row = dump_section(d, 0x80000010u, context, 0, 2, 8);
	put64(row, 0, 0x1111);
	put64(row, 8, 0x2222);
	above = d->count - 1;
	if (!with->no_code) {
		dump_code(&code);
		memcpy(dump_section(d, 0x80000007u, above, 1, 1, code.len), code.p, code.len);
		d->s[d->count - 1].sh_entsize = 0;
	}
	row = dump_section(d, 0x8000000cu, device, 0, 2, GRID_ROW);
	put64(row, 0, 70);
	put64(row, 24, DUMP_BASE + 0x400); /* another kernel */
	put64(row, 32, 0x1111);
	row += GRID_ROW;
	put64(row, 0, 71);
	put64(row, 24, DUMP_BASE);
	put64(row, 32, 0x2222);
	row = dump_section(d, 0x8000000bu, device, 0, 2, SM_ROW) + SM_ROW;
	above = d->count - 1;
	put32(row, 0, 1);
	if (with->no_threads) {
		put32(row, 8, with->exception);
		put32(row, 12, 1);
		put64(row, 16, DUMP_BASE + with->pc);
	} else {
		row = dump_section(d, 0x8000000du, above, 1, 1, BLOCK_ROW);
		put64(row, 0, 71);
		put_xyz(row, 8, 4, 5, 6);
		row = dump_section(d, 0x8000000eu, d->count - 1, 0, 1, WARP_ROW);
		put64(row, 0, DUMP_BASE + with->pc);
		put32(row, 12, 3);
		put32(row, 16, 3);
		put32(row, 24, (uint32_t)with->warp_has_pc);
		row = dump_section(d, 0x8000000fu, d->count - 1, 0, 2, THREAD_ROW);
		put_xyz(row, 20, 7, 8, 9);
		row += THREAD_ROW;
		put64(row, 0, DUMP_BASE + 0x20);
		put32(row, 16, 1);
		put_xyz(row, 20, 10, 11, 12);
		put32(row, 32, with->exception);
	}
	dump_end(d, ET_CORE, with->many);
}

#endif

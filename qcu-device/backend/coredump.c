// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A core dump that CUDA writes of a GPU: an ELF file whose sections are tables of devices,
 * multiprocessors (SM), blocks, warps and threads. sh_link of a table is the section with the table
 * above it, and sh_info the entry there that it belongs to. Newer versions of CUDA make entries
 * longer (sh_entsize), and what is read here stays where it is. Besides there are the modules as
 * they were loaded: ELF files whose sections have the addresses of the code.
 *
 * A guest's modules and kernels decide what is in the file, so nothing in it is believed: each
 * offset is compared with the length, and the number of entries that are looked at is limited.
 */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "include/qcuerror.h"
#include "qcu-device/backend/coredump.h"

/* The types of sections that are read, and the least bytes of an entry. */
enum {
	SHT_MODULE = 0x80000007,
	SHT_BLOCKS = 0x8000000d,  /* grid u64, block 3 u32 at 8 */
	SHT_WARPS = 0x8000000e,	  /* address of the error u64, whether that is known u32 at 24 */
	SHT_THREADS = 0x8000000f, /* address u64, thread 3 u32 at 20, exception u32 at 32 */
};
#define BLOCK_BYTES  20u
#define WARP_BYTES   28u
#define THREAD_BYTES 36u

#define STEPS_MAX   (1u << 22) /* sections and entries that are looked at */
#define TEXT_PREFIX ".text."

struct dump {
	const unsigned char *p;
	size_t len;
	uint64_t sections_at;
	unsigned int sections;
	unsigned int names;  /* the section with the names of sections */
	unsigned int *steps; /* how many are left, of a file and its modules together */
};

static bool take_step(const struct dump *d)
{
	return *d->steps && (*d->steps)--;
}

static uint32_t word_at(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t address_at(const unsigned char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static bool open_dump(struct dump *d, const void *file, size_t len, unsigned int *steps)
{
	Elf64_Ehdr head;

	if (len < sizeof(head))
		return false;
	memcpy(&head, file, sizeof(head));
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_shentsize != sizeof(Elf64_Shdr))
		return false;
	*d = (struct dump){file, len, head.e_shoff, head.e_shnum, head.e_shstrndx, steps};
	if (d->sections_at > len)
		return false;
	/* A file with very many sections has their number in the first of them. */
	if (!d->sections && len - d->sections_at >= sizeof(Elf64_Shdr)) {
		Elf64_Shdr first;

		memcpy(&first, d->p + d->sections_at, sizeof(first));
		d->sections = first.sh_size < UINT32_MAX ? (unsigned int)first.sh_size : 0;
		if (d->names == SHN_XINDEX)
			d->names = first.sh_link;
	}
	return d->sections <= (len - d->sections_at) / sizeof(Elf64_Shdr);
}

/* False: there is no such section, or it does not lie within the file. */
static bool get_section(const struct dump *d, unsigned int i, Elf64_Shdr *s)
{
	if (i >= d->sections || !take_step(d))
		return false;
	memcpy(s, d->p + d->sections_at + (uint64_t)i * sizeof(*s), sizeof(*s));
	return s->sh_type != SHT_NOBITS && s->sh_offset <= d->len &&
	       s->sh_size <= d->len - s->sh_offset;
}

/* An entry of a table of this type. NULL: there is none. */
static const unsigned char *get_entry(const struct dump *d, const Elf64_Shdr *s, uint32_t type,
				      uint64_t index, size_t bytes)
{
	if (s->sh_type != type || s->sh_entsize < bytes || index >= s->sh_size / s->sh_entsize)
		return NULL;
	return d->p + s->sh_offset + index * s->sh_entsize;
}

/* The entry that the table belongs to; *s becomes the section of that. */
static const unsigned char *get_parent(const struct dump *d, Elf64_Shdr *s, uint32_t type,
				       size_t bytes)
{
	uint32_t index = s->sh_info;

	return get_section(d, s->sh_link, s) ? get_entry(d, s, type, index, bytes) : NULL;
}

/* The name of a section, if it is that of a kernel's code. */
static bool get_kernel_name(const struct dump *d, const Elf64_Shdr *s, char *to, size_t size)
{
	const size_t prefix = strlen(TEXT_PREFIX);
	Elf64_Shdr names;
	const char *name;
	size_t most, n;

	if (!get_section(d, d->names, &names) || s->sh_name >= names.sh_size)
		return false;
	name = (const char *)d->p + names.sh_offset + s->sh_name;
	most = names.sh_size - s->sh_name;
	n = strnlen(name, most);
	if (n == most || n <= prefix || memcmp(name, TEXT_PREFIX, prefix))
		return false;
	snprintf(to, size, "%s", name + prefix);
	return true;
}

/* Finds the code at an address in a module. */
static bool find_code(const struct dump *module, uint64_t pc, char *name, size_t size)
{
	Elf64_Shdr s;
	unsigned int i;

	for (i = 0; i < module->sections; i++)
		if (get_section(module, i, &s) && s.sh_type == SHT_PROGBITS &&
		    s.sh_flags & SHF_EXECINSTR && pc >= s.sh_addr && pc - s.sh_addr < s.sh_size &&
		    get_kernel_name(module, &s, name, size))
			return true;
	return false;
}

static void find_kernel(const struct dump *d, uint64_t pc, struct qcu_fault *f)
{
	struct dump module;
	Elf64_Shdr s;
	unsigned int i;

	for (i = 0; i < d->sections && !f->kernel[0]; i++)
		if (get_section(d, i, &s) && s.sh_type == SHT_MODULE &&
		    open_dump(&module, d->p + s.sh_offset, s.sh_size, d->steps))
			(void)find_code(&module, pc, f->kernel, sizeof(f->kernel));
}

/* CUDA's error for an exception of the debugger's interface. */
static uint32_t error_of_exception(uint32_t exception)
{
	switch (exception) {
	case 1:
	case 5:
	case 10:
	case 14:
		return QCU_ERR_IllegalAddress;
	case 2:
	case 3:
	case 9:
		return QCU_ERR_HardwareStackError;
	case 4:
		return QCU_ERR_IllegalInstruction;
	case 6:
	case 11:
		return QCU_ERR_MisalignedAddress;
	case 7:
		return QCU_ERR_InvalidAddressSpace;
	case 8:
		return QCU_ERR_InvalidPc;
	case 12:
		return QCU_ERR_Assert;
	}
	return QCU_ERR_LaunchFailure;
}

/* `thread` is an entry of the table s. */
static bool read_thread(const struct dump *d, Elf64_Shdr s, const unsigned char *thread,
			struct qcu_fault *f)
{
	const unsigned char *warp = get_parent(d, &s, SHT_WARPS, WARP_BYTES);
	const unsigned char *block = warp ? get_parent(d, &s, SHT_BLOCKS, BLOCK_BYTES) : NULL;

	if (!block)
		return false;
	*f = (struct qcu_fault){.error = error_of_exception(word_at(thread + 32)),
				.flags = QCU_FAULT_THREAD};
	memcpy(f->thread, thread + 20, sizeof(f->thread));
	memcpy(f->block, block + 8, sizeof(f->block));
	if (word_at(warp + 24))
		find_kernel(d, address_at(warp), f);
	if (!f->kernel[0])
		find_kernel(d, address_at(thread), f);
	return true;
}

bool coredump_fault(const void *file, size_t len, struct qcu_fault *fault)
{
	unsigned int i, steps = STEPS_MAX;
	struct dump d;
	Elf64_Shdr s;
	uint64_t k;

	if (!open_dump(&d, file, len, &steps))
		return false;
	for (i = 0; i < d.sections; i++) {
		const unsigned char *thread;

		if (!get_section(&d, i, &s))
			continue;
		for (k = 0;
		     take_step(&d) && (thread = get_entry(&d, &s, SHT_THREADS, k, THREAD_BYTES));
		     k++)
			if (word_at(thread + 32) && read_thread(&d, s, thread, fault))
				return true;
	}
	return false;
}

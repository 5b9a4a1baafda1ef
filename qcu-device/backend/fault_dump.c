// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the place of a fault out of a GPU's dump (fault_dump.h). Of each row only the fields are
 * read that every version of the format has; a section says how long its rows are. The thread is
 * the first one that has an exception, if there is one in a warp whose failing instruction is
 * known. The kernel's name comes from the code of its module, which has the addresses at which the
 * GPU ran it.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "qcu-device/backend/fault_dump.h"

#define MACHINE_CUDA  190
#define SYMBOL_KERNEL 0x10 /* in st_other: the function can be launched */

enum {
	DUMP_CODE = 0x80000007u, /* with addresses */
	DUMP_SMS = 0x8000000bu,
	DUMP_GRIDS = 0x8000000cu,
	DUMP_BLOCKS = 0x8000000du,
	DUMP_WARPS = 0x8000000eu,
	DUMP_THREADS = 0x8000000fu,
	DUMP_MODULES = 0x80000010u,
};

struct dump_sm {
	uint32_t number, rsvd;
	uint32_t exception, has_pc; /* from driver 555 on; before it the row ends above */
	uint64_t pc;
};

struct dump_grid {
	uint64_t id, context, function, entry, module;
};

struct dump_cta {
	uint64_t grid;
	uint32_t index[3], rsvd;
};

struct dump_warp {
	uint64_t pc;
	uint32_t number, valid, active, broken, has_pc, rsvd;
};

struct dump_thread {
	uint64_t pc, offset;
	uint32_t lane, index[3], exception, depth, in_calls, rsvd;
};

struct dump_module {
	uint64_t handle;
};

_Static_assert(sizeof(struct dump_sm) == 24 && sizeof(struct dump_grid) == 40 &&
		       sizeof(struct dump_cta) == 24 && sizeof(struct dump_warp) == 32 &&
		       sizeof(struct dump_thread) == 48 && sizeof(struct dump_module) == 8,
	       "rows as cudacoredump.h describes them");

/* The dump, or the code of a module in it. */
struct dump_file {
	const unsigned char *p;
	size_t len;
	uint64_t table, sections; /* where the sections' headers are, and how many */
	uint64_t *steps;	  /* how many are left */
};

struct dump_fault {
	unsigned int rank; /* 0: nothing is known, 1: a multiprocessor, 2: a thread, 3: its warp's
			      instruction, too */
	uint32_t exception;
	bool has_pc, has_grid;
	uint64_t pc, offset; /* offset: of pc in `function` */
	uint32_t device;     /* the number of its row */
	struct dump_thread thread;
	struct dump_cta block;
	struct dump_grid grid;
	char kernel[sizeof(((struct qcu_fault *)NULL)->kernel)];
	char function[128]; /* that contains the instruction */
};

static bool is_inside_dump(const struct dump_file *d, uint64_t off, uint64_t size)
{
	return off <= d->len && size <= d->len - off;
}

static bool count_step(const struct dump_file *d)
{
	if (!*d->steps)
		return false;
	--*d->steps;
	return true;
}

static bool read_section(const struct dump_file *d, uint64_t i, Elf64_Shdr *s)
{
	if (i >= d->sections || !count_step(d))
		return false;
	memcpy(s, d->p + d->table + i * sizeof(*s), sizeof(*s));
	return true;
}

/* A file with very many sections has their number in its first, empty section. */
static bool open_file(struct dump_file *d, const void *p, size_t len, uint64_t *steps)
{
	Elf64_Ehdr head;
	Elf64_Shdr first;

	*d = (struct dump_file){.p = p, .len = len, .steps = steps};
	if (len < sizeof(head))
		return false;
	memcpy(&head, p, sizeof(head));
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_machine != MACHINE_CUDA ||
	    head.e_shentsize != sizeof(first) || !is_inside_dump(d, head.e_shoff, sizeof(first)))
		return false;
	d->table = head.e_shoff;
	memcpy(&first, d->p + d->table, sizeof(first));
	d->sections = head.e_shnum ? head.e_shnum : first.sh_size;
	return d->sections <= (len - d->table) / sizeof(first);
}

/* How many rows of at least `size` bytes the section has; 0 if it is none of this type. */
static uint64_t count_rows(const struct dump_file *d, const Elf64_Shdr *s, uint32_t type,
			   size_t size)
{
	if (s->sh_type != type || s->sh_entsize < size ||
	    !is_inside_dump(d, s->sh_offset, s->sh_size))
		return 0;
	return s->sh_size / s->sh_entsize;
}

/* For a row below count_rows(). */
static bool read_row(const struct dump_file *d, const Elf64_Shdr *s, uint64_t row, void *to,
		     size_t size)
{
	if (!count_step(d))
		return false;
	memcpy(to, d->p + s->sh_offset + row * s->sh_entsize, size);
	return true;
}

/* The row that a section belongs to, in the table above it, which becomes *above. */
static bool read_row_above(const struct dump_file *d, const Elf64_Shdr *s, uint32_t type,
			   Elf64_Shdr *above, void *to, size_t size)
{
	uint64_t row = s->sh_info;

	return read_section(d, s->sh_link, above) && row < count_rows(d, above, type, size) &&
	       read_row(d, above, row, to, size);
}

/* ---- the thread ---- */

static void take_thread(const struct dump_file *d, const Elf64_Shdr *threads,
			const struct dump_thread *t, struct dump_fault *best)
{
	struct dump_fault p = {.rank = 2, .exception = t->exception, .thread = *t};
	Elf64_Shdr warps, blocks, sms;
	struct dump_warp warp;
	uint32_t number;

	if (!read_row_above(d, threads, DUMP_WARPS, &warps, &warp, sizeof(warp)) ||
	    !read_row_above(d, &warps, DUMP_BLOCKS, &blocks, &p.block, sizeof(p.block)) ||
	    !read_row_above(d, &blocks, DUMP_SMS, &sms, &number, sizeof(number)))
		return;
	p.device = sms.sh_info;
	p.has_pc = true;
	p.pc = warp.has_pc ? warp.pc : t->pc;
	p.rank += warp.has_pc != 0;
	if (p.rank > best->rank)
		*best = p;
}

static void find_thread(const struct dump_file *d, struct dump_fault *best)
{
	struct dump_thread t;
	Elf64_Shdr s;
	uint64_t i, n, rows;

	for (i = 1; best->rank < 3 && read_section(d, i, &s); i++) {
		rows = count_rows(d, &s, DUMP_THREADS, sizeof(t));
		for (n = 0; n < rows && best->rank < 3 && read_row(d, &s, n, &t, sizeof(t)); n++)
			if (t.exception)
				take_thread(d, &s, &t, best);
	}
}

/* If the warps have ended before the dump, the multiprocessor still knows the instruction. */
static void find_multiprocessor(const struct dump_file *d, struct dump_fault *best)
{
	struct dump_sm sm;
	Elf64_Shdr s;
	uint64_t i, n, rows;

	for (i = 1; !best->rank && read_section(d, i, &s); i++) {
		rows = count_rows(d, &s, DUMP_SMS, sizeof(sm));
		for (n = 0; n < rows && !best->rank && read_row(d, &s, n, &sm, sizeof(sm)); n++)
			if (sm.exception)
				*best = (struct dump_fault){.rank = 1,
							    .exception = sm.exception,
							    .has_pc = sm.has_pc != 0,
							    .pc = sm.pc,
							    .device = s.sh_info};
	}
}

/* ---- the kernel ---- */

static void find_grid(const struct dump_file *d, struct dump_fault *p)
{
	Elf64_Shdr s;
	uint64_t i, n, rows;

	for (i = 1; !p->has_grid && read_section(d, i, &s); i++) {
		rows = s.sh_info == p->device ? count_rows(d, &s, DUMP_GRIDS, sizeof(p->grid)) : 0;
		for (n = 0; n < rows && !p->has_grid; n++) {
			if (!read_row(d, &s, n, &p->grid, sizeof(p->grid)))
				return;
			p->has_grid = p->grid.id == p->block.grid;
		}
	}
}

/* A name that is too long is cut off. */
static void copy_symbol_name(const struct dump_file *code, const Elf64_Shdr *names, uint32_t at,
			     char *to, size_t room)
{
	const char *from;
	size_t most;

	if (!is_inside_dump(code, names->sh_offset, names->sh_size) || at >= names->sh_size)
		return;
	from = (const char *)code->p + names->sh_offset + at;
	most = names->sh_size - at < room ? (size_t)(names->sh_size - at) : room;
	snprintf(to, room, "%.*s", (int)strnlen(from, most), from);
}

static void look_at_symbol(const struct dump_file *code, const Elf64_Shdr *names,
			   const Elf64_Sym *sym, struct dump_fault *p)
{
	uint64_t start = sym->st_value;
	bool has_entry, has_pc;
	Elf64_Shdr of;

	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || !read_section(code, sym->st_shndx, &of))
		return;
	/* The value is an address, or an offset in the section. */
	if (start < of.sh_addr)
		start += of.sh_addr;
	has_pc = p->has_pc && p->pc - start < sym->st_size;
	has_entry = p->has_grid ? p->grid.entry - start < sym->st_size
				: has_pc && sym->st_other & SYMBOL_KERNEL;
	if (has_entry && !p->kernel[0])
		copy_symbol_name(code, names, sym->st_name, p->kernel, sizeof(p->kernel));
	if (has_pc && !p->function[0]) {
		copy_symbol_name(code, names, sym->st_name, p->function, sizeof(p->function));
		p->offset = p->pc - start;
	}
}

static void look_at_code(const struct dump_file *code, struct dump_fault *p)
{
	Elf64_Shdr s, names;
	Elf64_Sym sym;
	uint64_t i, n, rows;

	for (i = 1; read_section(code, i, &s); i++) {
		rows = count_rows(code, &s, SHT_SYMTAB, sizeof(sym));
		if (!rows || !read_section(code, s.sh_link, &names))
			continue;
		for (n = 0; n < rows && read_row(code, &s, n, &sym, sizeof(sym)); n++)
			look_at_symbol(code, &names, &sym, p);
	}
}

/* Addresses are those of one device, so the code of another module says nothing. */
static void find_names(const struct dump_file *d, struct dump_fault *p)
{
	struct dump_module module;
	struct dump_file code;
	Elf64_Shdr s, modules;
	uint64_t i;

	for (i = 1; read_section(d, i, &s) && !(p->kernel[0] && p->function[0]); i++) {
		if (s.sh_type != DUMP_CODE || !is_inside_dump(d, s.sh_offset, s.sh_size))
			continue;
		if (p->has_grid &&
		    (!read_row_above(d, &s, DUMP_MODULES, &modules, &module, sizeof(module)) ||
		     module.handle != p->grid.module))
			continue;
		if (open_file(&code, d->p + s.sh_offset, (size_t)s.sh_size, d->steps))
			look_at_code(&code, p);
	}
}

/* ---- the text ---- */

/* The exceptions as the debugger's manual lists them. */
static const char *const exceptions[] = {
	[1] = "a thread used an illegal address",
	[2] = "a thread's stack is full",
	[3] = "a stack of the GPU is full",
	[4] = "an illegal instruction",
	[5] = "an address out of range",
	[6] = "a misaligned address",
	[7] = "an address in memory of the wrong kind",
	[8] = "an illegal address of an instruction",
	[9] = "a stack of the GPU is full",
	[10] = "an illegal address, found later than the instruction",
	[11] = "a thread used a misaligned address",
	[12] = "an assertion",
	[13] = "a failed call of the GPU's runtime",
	[14] = "an illegal address",
	[17] = "an address out of range in a cluster",
	[18] = "a block of a cluster that is not there",
};

static void describe_place(const struct dump_fault *p, char *what, size_t room)
{
	const size_t known = sizeof(exceptions) / sizeof(exceptions[0]);
	const char *text = p->exception < known ? exceptions[p->exception] : NULL;
	int n = snprintf(what, room, "%s (exception %" PRIu32 ")", text ? text : "the GPU stopped",
			 p->exception);

	if (!p->function[0] || n < 0 || (size_t)n >= room)
		return;
	if (strncmp(p->function, p->kernel, sizeof(p->function) - 1) != 0)
		snprintf(what + n, room - (size_t)n, ", at +0x%" PRIx64 " of %s", p->offset,
			 p->function);
	else
		snprintf(what + n, room - (size_t)n, ", at +0x%" PRIx64, p->offset);
}

const char *fault_dump_read(const void *dump, size_t len, struct qcu_fault *f)
{
	uint64_t steps = FAULT_DUMP_STEPS;
	struct dump_fault p = {.rank = 0};
	struct dump_file d;

	if (!open_file(&d, dump, len, &steps))
		return "the GPU's dump is damaged";
	find_thread(&d, &p);
	if (!p.rank)
		find_multiprocessor(&d, &p);
	if (!p.rank)
		return steps ? "the GPU's dump has no thread that failed"
			     : "the GPU's dump is too large";
	if (p.rank > 1)
		find_grid(&d, &p);
	find_names(&d, &p);
	describe_place(&p, f->what, sizeof(f->what));
	memcpy(f->kernel, p.kernel, sizeof(f->kernel));
	if (p.rank > 1) {
		f->flags |= QCU_FAULT_THREAD;
		memcpy(f->block, p.block.index, sizeof(f->block));
		memcpy(f->thread, p.thread.index, sizeof(f->thread));
	}
	return NULL;
}

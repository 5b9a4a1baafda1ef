// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which functions are the runtime's? The symbol table says so, but anyone may write one:
 *
 * - It is NVIDIA's runtime if there are names that begin with "libcudart_static_". So a library
 *   that has functions of the same names for purposes of its own is left alone.
 * - The runtime is one object file, so either all its functions are there or none. If one of those
 *   that CUDA 13.0 has is missing, the runtime is older, or later than 13, or the table was cut.
 * - CUDA 12 has functions that 13 removed. CUDA 11 has some that 12 removed.
 * - A later 13 has functions that we do not know. They lie among those that we know.
 * - Each function must have room for a jump. A table in which two functions overlap, lie at the
 *   same address or outside the code is not believed at all: half a runtime helps nobody.
 *
 * Stripped files have no names. That they have a runtime is seen by two strings that it uses, and
 * its functions are found by its code (fingerprint.c).
 *
 * A copy of NVIDIA's shared runtime has the same strings. Its functions are those that it exports.
 */
#define _GNU_SOURCE /* memmem */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-library/loader/fingerprint.h"

/* All functions of CUDA 13.0's runtime, in the order of strcmp. library.mk makes it. */
static const char *const known[] = {
#include "runtime_names.inc"
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

/* What each runtime has, also the oldest CUDA 12's. */
static const char *const always[] = {
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
	"cudaMalloc",
	"cudaMemcpy",
};
#define ALWAYS (sizeof(always) / sizeof(always[0]))

static const char static_runtime[] = "libcudart_static_";
/* Functions that a version was the last to have. */
static const char last_in_12[] = "cudaThreadSynchronize";
static const char last_in_11[] = "cudaBindTexture";

/* What the first pass over the symbols finds. */
struct seen {
	uint64_t addr[KNOWN];
	bool have[KNOWN];
	bool static_runtime;
	uint64_t in_12, in_11; /* the addresses of these functions, or 0 */
	uint64_t low, high;    /* the first and the last function that we know */
	const char *twice;     /* a function that has two addresses */
};

static int by_name(const void *a, const void *b)
{
	return strcmp(a, *(const char *const *)b);
}

/* The index of a known function, or -1. */
static int index_of(const char *name)
{
	const char *const *p = bsearch(name, known, KNOWN, sizeof(known[0]), by_name);

	return p ? (int)(p - known) : -1;
}

static bool looks_public(const char *name)
{
	if (name[0] == '_' && name[1] == '_')
		name += 2;
	return !strncmp(name, "cuda", 4) && name[4] >= 'A' && name[4] <= 'Z';
}

static bool is_function(const struct qcul_elf_symbol *s)
{
	return s->defined && s->type == STT_FUNC;
}

static void contradicts(struct qcul_linked *l, const char *format, const char *a, const char *b)
{
	l->state = QCUL_LINKED_CONTRADICTS;
	/* Names of any length may stand in the file. */
	snprintf(l->what, sizeof(l->what), format, a, b);
}

static int by_addr(const void *a, const void *b)
{
	const struct qcul_site *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* ---- files without names ---- */

/*
 * True if a string is among the file's constants. It comes in two parts, so that it is not found in
 * a program that holds this file. Some linkers put strings into .rodata.str, beside .rodata. No
 * byte is looked at twice, even if sections overlap.
 */
static bool has_constant(const struct qcul_elf *e, const char *begin, const char *end)
{
	size_t i = 0, parts = 0, left = e->size;
	struct qcul_elf_range part;
	char text[32];
	Elf64_Phdr p;

	snprintf(text, sizeof(text), "%s%s", begin, end);
	for (; qcul_elf_next_section(e, ".rodata", &i, &part) && part.size <= left; parts++) {
		left -= part.size;
		if (memmem(e->data + part.offset, part.size, text, strlen(text)))
			return true;
	}
	for (i = 0; !parts && qcul_elf_segment(e, i, &p); i++) {
		if (p.p_type != PT_LOAD || p.p_flags & PF_W || p.p_offset > e->size ||
		    p.p_filesz > e->size - p.p_offset || p.p_filesz > left)
			continue;
		left -= p.p_filesz;
		if (memmem(e->data + p.p_offset, p.p_filesz, text, strlen(text)))
			return true;
	}
	return false;
}

/* True if the file has a runtime in it. The runtime opens the driver's library by itself. */
static bool has_traces(const struct qcul_elf *e)
{
	return qcul_elf_imports(e, "dlsym") && has_constant(e, "/cudart.", "shm.%") &&
	       has_constant(e, "libcuda", ".so.1");
}

bool qcul_linked_is_shared_name(const char *name)
{
	return !strncmp(name, "libcudart", 9) && (name[9] == '.' || name[9] == '-') &&
	       strstr(name, ".so.");
}

static bool of_nvidia(const char *soname)
{
	static const char *const names[] = {"libcublas",   "libcudnn",	  "libcufft",
					    "libcurand",   "libcusolver", "libcusparse",
					    "libcutensor", "libcupti",	  "libcufile",
					    "libnccl",	   "libnpp",	  "libnv"};
	size_t i;

	for (i = 0; soname && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(soname, names[i], strlen(names[i])))
			return true;
	return false;
}

/* The state of a file that has a runtime whose functions have no names. */
static void find_by_code(const struct qcul_elf *e, const char *soname, struct qcul_linked *l)
{
	l->state = of_nvidia(soname) ? QCUL_LINKED_NVIDIA : QCUL_LINKED_STRIPPED;
	qcul_fingerprint_find(e, &qcul_fingerprints_known, l);
	if (l->state == QCUL_LINKED_FOUND)
		qsort(l->sites, l->count, sizeof(l->sites[0]), by_addr);
}

/* ---- files with names ---- */

static void look_for_known_functions(const struct qcul_elf_symbols *t, struct seen *seen)
{
	struct qcul_elf_symbol s;
	size_t i;
	int k;

	for (i = 0; i < t->count; i++) {
		if (!qcul_elf_symbol(t, i, &s) || !s.defined)
			continue;
		if (!seen->static_runtime &&
		    !strncmp(s.name, static_runtime, sizeof(static_runtime) - 1))
			seen->static_runtime = true;
		if (!is_function(&s) || !looks_public(s.name))
			continue;
		if (!strcmp(s.name, last_in_12))
			seen->in_12 = s.addr;
		if (!strcmp(s.name, last_in_11))
			seen->in_11 = s.addr;
		k = index_of(s.name);
		if (k < 0)
			continue;
		if (seen->have[k] && seen->addr[k] != s.addr)
			seen->twice = known[k];
		if (s.addr < seen->low)
			seen->low = s.addr;
		if (s.addr > seen->high)
			seen->high = s.addr;
		seen->have[k] = true;
		seen->addr[k] = s.addr;
	}
}

/* The runtime's functions lie among one another. A program may have one of such a name, too. */
static bool among(const struct seen *seen, uint64_t addr)
{
	return addr >= seen->low && addr <= seen->high;
}

/* Decides on the version. False: it is none that we serve. */
static bool version(const struct seen *seen, struct qcul_linked *l)
{
	size_t i, missing = 0, first = 0;

	for (i = 0; i < ALWAYS; i++) {
		int k = index_of(always[i]);

		if (k < 0 || !seen->have[k]) {
			/* The linker makes some of the names local, and strip -x removes these. */
			l->state = QCUL_LINKED_STRIPPED;
			return false;
		}
	}
	for (i = 0; i < KNOWN; i++) {
		if (!seen->have[i] && !missing++)
			first = i;
	}
	l->state = QCUL_LINKED_OTHER;
	if (seen->in_11 && among(seen, seen->in_11)) {
		snprintf(l->what, sizeof(l->what), "of CUDA 11 or earlier");
	} else if (seen->in_12 && among(seen, seen->in_12)) {
		l->major = 12;
	} else if (missing) {
		snprintf(l->what, sizeof(l->what), "of an unknown version, without %s",
			 known[first]);
	} else {
		l->major = 13;
	}
	return l->major;
}

/* Adds the functions between the first and the last that we know, known or not. */
static bool collect(const struct qcul_elf_symbols *t, const struct seen *seen,
		    struct qcul_linked *l)
{
	struct qcul_elf_symbol s;
	size_t i;

	for (i = 0; i < t->count; i++) {
		if (!qcul_elf_symbol(t, i, &s) || !is_function(&s) || !looks_public(s.name) ||
		    !among(seen, s.addr))
			continue;
		if (l->count == QCUL_SITES_MAX) {
			contradicts(l, "it has more functions than any runtime, %s%s", s.name,
				    " among them");
			return false;
		}
		l->sites[l->count++] =
			(struct qcul_site){.name = s.name, .addr = s.addr, .size = s.size};
	}
	return true;
}

/* The same function may stand in the table twice, with the same name and address. */
static void drop_repeated(struct qcul_linked *l)
{
	size_t i, n = 0;

	for (i = 0; i < l->count; i++)
		if (!n || l->sites[n - 1].addr != l->sites[i].addr ||
		    strcmp(l->sites[n - 1].name, l->sites[i].name) != 0)
			l->sites[n++] = l->sites[i];
	l->count = n;
}

static bool in_code(const struct qcul_elf *e, const struct qcul_site *s)
{
	size_t offset;

	return qcul_elf_offset(e, s->addr, QCUL_SITE_BYTES, PF_X, &offset) &&
	       qcul_elf_offset(e, s->addr, s->size, PF_X, &offset);
}

/* Each function must lie in the code, and have room for a jump. */
static bool check_sites(const struct qcul_elf *e, struct qcul_linked *l)
{
	const struct qcul_site *first = l->sites, *last = l->sites + l->count - 1;
	bool together;
	size_t i;

	/* Mostly one segment has all of them. As they must not overlap, one look will do. */
	together = qcul_elf_offset(e, first->addr, last->addr - first->addr, PF_X, &i) &&
		   in_code(e, last);

	for (i = 0; i < l->count; i++) {
		const struct qcul_site *s = &l->sites[i];
		const struct qcul_site *next = i + 1 < l->count ? s + 1 : NULL;

		if (!together && !in_code(e, s))
			contradicts(l, "%s lies outside the code%s", s->name, "");
		else if (!s->size)
			contradicts(l, "%s has the size 0%s", s->name, "");
		else if (s->addr % QCUL_SITE_ALIGN)
			contradicts(l, "%s does not begin at a multiple of 16%s", s->name, "");
		else if (next && next->addr == s->addr)
			contradicts(l, "%s and %s lie at the same address", s->name, next->name);
		else if (next && s->size > next->addr - s->addr)
			contradicts(l, "%s overlaps %s", s->name, next->name);
		if (l->state == QCUL_LINKED_CONTRADICTS)
			return false;
	}
	return true;
}

/* No other function may begin inside a jump. One at a multiple of 16 cannot. */
static bool check_room(const struct qcul_elf_symbols *t, struct qcul_linked *l)
{
	struct qcul_elf_symbol s;
	size_t i, low, high;

	for (i = 0; i < t->count; i++) {
		if (!qcul_elf_symbol(t, i, &s) || !is_function(&s) || !(s.addr % QCUL_SITE_ALIGN))
			continue;
		/* The last site that begins before this function. */
		for (low = 0, high = l->count; low < high;) {
			size_t mid = low + (high - low) / 2;

			if (l->sites[mid].addr < s.addr)
				low = mid + 1;
			else
				high = mid;
		}
		if (low && s.addr - l->sites[low - 1].addr < QCUL_SITE_BYTES) {
			contradicts(l, "%s begins inside %s", s.name, l->sites[low - 1].name);
			return false;
		}
	}
	return true;
}

/* True if the runtime could be found by the symbol table, or its state says why not. */
static bool find_by_names(const struct qcul_elf *e, unsigned int table, struct qcul_linked *l)
{
	struct seen seen = {.low = UINT64_MAX};
	struct qcul_elf_symbols t;

	if (!qcul_elf_symbols(e, table, &t))
		return false;
	look_for_known_functions(&t, &seen);
	if (!l->shared && !seen.static_runtime)
		return false;
	if (seen.twice) {
		contradicts(l, "%s stands in it twice%s", seen.twice, "");
		return true;
	}
	if (!version(&seen, l) || !collect(&t, &seen, l))
		return l->state != QCUL_LINKED_STRIPPED;
	qsort(l->sites, l->count, sizeof(l->sites[0]), by_addr);
	drop_repeated(l);
	if (check_sites(e, l) && check_room(&t, l))
		l->state = QCUL_LINKED_FOUND;
	return true;
}

/*
 * True if the dynamic linker would write into the jumps. Some files only say that it may write into
 * their code.
 */
static bool changes_at_load(const struct qcul_elf *e, const struct qcul_linked *l)
{
	uint64_t first = l->sites[0].addr, last = l->sites[l->count - 1].addr, flags = 0;

	if (!qcul_elf_dynamic(e, DT_TEXTREL, 0, &flags) &&
	    !(qcul_elf_dynamic(e, DT_FLAGS, 0, &flags) && flags & DF_TEXTREL))
		return false;
	return qcul_elf_relocates(e, first, last + QCUL_SITE_BYTES - first);
}

void qcul_linked_find(const struct qcul_elf *e, struct qcul_linked *l)
{
	const char *soname = qcul_elf_dynamic_text(e, DT_SONAME, 0);

	l->state = QCUL_LINKED_NONE;
	l->major = 0;
	l->shared = soname && qcul_linked_is_shared_name(soname);
	l->version = NULL;
	l->count = 0;
	l->what[0] = '\0';
	if (l->shared) {
		/* Ours has no traces. */
		if (has_traces(e) && !find_by_names(e, SHT_DYNSYM, l))
			l->state = QCUL_LINKED_STRIPPED;
	} else if (!find_by_names(e, SHT_SYMTAB, l) &&
		   (l->state == QCUL_LINKED_STRIPPED || has_traces(e))) {
		find_by_code(e, soname, l);
	}
	if (l->state == QCUL_LINKED_FOUND && changes_at_load(e, l))
		contradicts(l, "its code is changed when it is loaded%s%s", "", "");
}

static void write_shared_sentence(const struct qcul_linked *l, const char *path, char *text,
				  size_t size)
{
	const char *what = "it lacks the names of its functions", *end = "";

	if (l->state == QCUL_LINKED_OTHER) {
		what = "it is ";
		end = l->what;
	} else if (l->state == QCUL_LINKED_CONTRADICTS) {
		what = "its symbol table cannot be right: ";
		end = l->what;
	}
	snprintf(text, size,
		 "%s: this is a copy of NVIDIA's shared CUDA runtime, which qCUDA does not serve "
		 "(%s%s): use a program that was built with CUDA 13 or 12",
		 path, what, end);
}

void qcul_linked_sentence(const struct qcul_linked *l, const char *path, char *text, size_t size)
{
	if (l->shared && l->state != QCUL_LINKED_NONE && l->state != QCUL_LINKED_FOUND) {
		write_shared_sentence(l, path, text, size);
		return;
	}
	switch (l->state) {
	case QCUL_LINKED_STRIPPED:
		snprintf(text, size,
			 "%s: the CUDA runtime is linked into it, its symbol table is missing "
			 "(stripped), and %s, so qCUDA cannot serve it: use the file as it was "
			 "before strip, or link it with -cudart shared",
			 path, l->what);
		break;
	case QCUL_LINKED_NVIDIA:
		snprintf(text, size,
			 "%s: this library of NVIDIA's has the CUDA runtime in it, and %s, so its "
			 "functions fail with qCUDA: do without it",
			 path, l->what);
		break;
	case QCUL_LINKED_OTHER:
		snprintf(text, size,
			 "%s: the CUDA runtime that is linked into it is %s, which qCUDA does not "
			 "serve: build it with CUDA 13, or link it with -cudart shared",
			 path, l->what);
		break;
	case QCUL_LINKED_CONTRADICTS:
		snprintf(text, size,
			 "%s: its symbol table cannot be right (%s), so qCUDA cannot serve the "
			 "CUDA runtime that is linked into it: link it again, or with -cudart "
			 "shared",
			 path, l->what);
		break;
	default:
		text[0] = '\0';
	}
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes the jumps. The pages with the functions are mapped from the file a second time, elsewhere,
 * writable. They are changed there, made executable and no longer writable, and then moved to where
 * the code is, which replaces it at once. So no page is ever writable and executable, no code is
 * missing while another thread may run it, and where the system refuses changed code, all is as it
 * was before.
 */
#define _GNU_SOURCE /* mremap */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-library/loader/loader.h"

/* jmp *0(%rip), and the address behind it. */
static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
_Static_assert(sizeof(jump) + sizeof(void *) == QCUL_SITE_BYTES, "the size of a jump");

static const char other_content[] = "the loaded code is not the file's";

static void write_jump(unsigned char *at, const void *to)
{
	memcpy(at, jump, sizeof(jump));
	memcpy(at + sizeof(jump), &to, sizeof(to));
}

bool qcul_is_patched(const void *function)
{
	return function && !memcmp(function, jump, sizeof(jump));
}

const char *qcul_patch(const struct qcul_elf *e, int fd, const struct qcul_linked *l,
		       uintptr_t base, void *const *to)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), low, high, last;
	unsigned char *code, *copy;
	const char *why = NULL;
	size_t offset, size, i;

	if (!l->count)
		return "there is nothing to replace";
	last = l->sites[l->count - 1].addr + QCUL_SITE_BYTES;
	low = l->sites[0].addr & ~(page - 1);
	/* One segment holds all of them, so they are as far from one another as in the file. */
	if (!qcul_elf_offset(e, l->sites[0].addr, last - l->sites[0].addr, PF_X, &offset) ||
	    offset < l->sites[0].addr - low)
		return "its functions lie in several segments";
	offset -= l->sites[0].addr - low;
	high = (last + page - 1) & ~(page - 1);
	size = high - low;
	if (offset % page || size > e->size || offset > e->size)
		return "its code does not lie at whole pages";
	code = (unsigned char *)(base + low);
	/* Preloaded and used as an audit library at once: the other one was here first. */
	if (qcul_is_patched(code + (l->sites[0].addr - low)))
		return NULL;

	copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, (off_t)offset);
	if (copy == MAP_FAILED)
		return "its pages cannot be mapped a second time";
	if (memcmp(code, copy, last - low) != 0) {
		why = other_content;
		goto out;
	}
	for (i = 0; i < l->count; i++)
		write_jump(copy + (l->sites[i].addr - low), to[i]);
	if (mprotect(copy, size, PROT_READ | PROT_EXEC)) {
		why = "this system refuses changed code";
		goto out;
	}
	if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, code) == MAP_FAILED) {
		why = "this system refuses to replace code";
		goto out;
	}
	return NULL;

out:
	munmap(copy, size);
	return why;
}

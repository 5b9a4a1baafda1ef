/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decides which images of device code go on to a backend. A GPU driver trusts what an image says
 * about itself: it follows offsets without checking them against the length, which it does not
 * know. If an image begins like the structure with which a program names an image, the driver even
 * follows pointers. So the mirror checks images first, in its own copy that nothing can change any
 * more. It accepts only:
 *
 * - fat binaries, one or several in a row, with zeros allowed behind them: each length fits into
 *   the one around it, and each entry is PTX, machine code, or code for the linker. Packed entries
 *   are unpacked here and checked like the others;
 * - ELF files with machine code of a GPU, with all offsets, sizes, names and symbols in bounds;
 * - PTX: text that ends with a zero byte.
 */
#ifndef QCU_IMAGE_H
#define QCU_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes that may be unpacked: from one entry, and from all entries of an image. */
#define IMAGE_ENTRY_MAX	   ((size_t)256 << 20)
#define IMAGE_UNPACKED_MAX ((size_t)1 << 30)

/*
 * Returns QCU_ERR_Success, QCU_ERR_InvalidKernelImage, or QCU_ERR_MemoryAllocation. On an error
 * *why is the reason, a sentence without a full stop.
 */
int image_check(const void *image, size_t len, const char **why);
/*
 * The same, and says how much device memory the image's variables take beyond the bytes of the
 * image, as far as its headers and its text show it: of each fat binary in it, the entry that takes
 * most, because a GPU uses one.
 */
int image_measure(const void *image, size_t len, const char **why, uint64_t *memory);

/*
 * The variables of an image, each name once, sorted: those of the code for all GPUs in it.
 * `mallocs`: its kernels may call malloc().
 */
struct image_names {
	char **name;
	size_t count, room;
	bool mallocs;
	bool no_memory;
};

/* Of any image; returns as image_check(). image_names_free() frees the names, also after an error.
 */
int image_names(const void *image, size_t len, struct image_names *names);
void image_names_free(struct image_names *names);

/* image_names.c */
void image_names_add(struct image_names *names, const char *name, size_t len);
/* And drops those that are there twice. */
void image_names_sort(struct image_names *names);

/* Each checks one kind of image. Returns NULL if nothing is wrong, else the reason. */
const char *image_elf_fault(const void *image, size_t len);
const char *image_ptx_fault(const void *image, size_t len);

/* A sum that is too large is the largest number. */
static inline uint64_t image_add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* For images in which nothing is wrong: the memory of variables that have no bytes in the image. */
uint64_t image_elf_memory(const void *image, size_t len);
uint64_t image_ptx_memory(const char *text);
/* And the names of variables. */
void image_elf_names(const void *image, size_t len, struct image_names *names);
void image_ptx_names(const char *text, struct image_names *names);

#endif

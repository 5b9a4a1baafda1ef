/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which images of device code are handed on to a backend. A GPU driver believes what an image says
 * about itself: it follows offsets without a look at the length, which it does not know, and even
 * pointers, if an image begins like the structure by which a program names one. So the mirror looks
 * first, at bytes of its own that nobody changes any more. Through come only:
 *
 *   fat binaries, one or several in a row, maybe with zeros behind them: each length fits into the
 *     one around it, and each entry is PTX, machine code, or code for the linker. What is packed is
 *     unpacked here, and looked at as the rest;
 *   ELF files with machine code of a GPU, with all offsets, sizes, names and symbols in bounds;
 *   PTX: text that ends with a zero byte.
 */
#ifndef QCU_IMAGE_H
#define QCU_IMAGE_H

#include <stddef.h>

/* What may come out of packed entries: of one, and of all in an image. */
#define IMAGE_ENTRY_MAX	   ((size_t)256 << 20)
#define IMAGE_UNPACKED_MAX ((size_t)1 << 30)

/*
 * QCU_ERR_Success, QCU_ERR_InvalidKernelImage, or QCU_ERR_MemoryAllocation. If it is not success,
 * *why is the reason, a sentence without a full stop.
 */
int image_check(const void *image, size_t len, const char **why);

/* One kind of image each. NULL: nothing is wrong; otherwise what is. */
const char *image_elf_fault(const void *image, size_t len);
const char *image_ptx_fault(const void *image, size_t len);

#endif

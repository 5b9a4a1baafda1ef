/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log of pages that are written while QEMU copies the VM's memory: one bit for each page of
 * 4 KiB by its guest-physical address, in a file that QEMU shares (VHOST_USER_SET_LOG_BASE). QEMU
 * reads and clears bits meanwhile, and other devices set bits of their own.
 */
#ifndef QCU_DIRTY_H
#define QCU_DIRTY_H

#include <stdbool.h>
#include <stdint.h>

#include "qcu-device/memory/guestmem.h"

#define DIRTY_PAGE 4096u

/*
 * Marks the pages of [gpa, gpa + len). False: the log of `bytes` bytes has no bits for some of
 * them; the others are marked.
 */
bool dirty_mark(uint8_t *log, uint64_t bytes, uint64_t gpa, uint64_t len);
/* Marks all of the VM's memory from this address on. */
bool dirty_mark_from(uint8_t *log, uint64_t bytes, const struct guestmem *mem, uint64_t from);
/*
 * Marks the pages that sessions have named (memory/named.h). Bits for which the log has no room are
 * left out: mirrors write that file, and guests may have broken into them. False: it cannot be
 * read.
 */
bool dirty_mark_named(uint8_t *log, uint64_t bytes, int named, unsigned int sessions);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pages of the VM's memory that each session has named. A mirror and its GPU write no others.
 * So when the VM moves, these are the ones that may have been written since QEMU copied them.
 *
 * A bit for each page of 4 KiB by its guest-physical address, as in QEMU's log. The bits of all
 * sessions lie in one file, which is mostly holes. A mirror sets those of its session before it
 * writes, and no bit is taken back before the session ends.
 */
#ifndef QCU_NAMED_H
#define QCU_NAMED_H

#include <stdint.h>

#define NAMED_PAGE  4096u
#define NAMED_END   (4ull << 40)		 /* memory from this address on has no bits */
#define NAMED_BYTES (NAMED_END / NAMED_PAGE / 8) /* of one session */

/* A new file with the bits of so many sessions, or -1. */
int named_file(unsigned int sessions);
/* The bits of one of them. NULL: they cannot be mapped. */
uint8_t *named_map(int fd, unsigned int session);
void named_unmap(uint8_t *bits);
/* [gpa, gpa + len) is named. It is not empty, and does not wrap. */
void named_note(uint8_t *bits, uint64_t gpa, uint64_t len);
/* The session has ended. If that fails, the next one counts its pages, too. */
void named_forget(int fd, unsigned int session);

#endif

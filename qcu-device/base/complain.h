/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages that a guest can cause. The guest must not be able to fill the host's disk with them. So
 * a burst of COMPLAIN_BURST is printed, then one message a second; the others are counted, and a
 * line says how many were left out.
 *
 * Nor may the guest choose what a message looks like: it is one line of limited length, and every
 * byte that is not a printable ASCII character is written as \xNN. All other messages on stderr are
 * printed once, or are caused by the host itself.
 */
#ifndef QCU_COMPLAIN_H
#define QCU_COMPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPLAIN_BURST	  32
#define COMPLAIN_LINE_MAX 512 /* bytes with the newline; a longer line ends with "..." */

/*
 * Shares one limit between all processes that have this file. False: this process keeps a limit of
 * its own.
 */
bool complain_share(int fd);
/* --verbose: prints every message. Each is still one clean line. */
void complain_always(void);

/* For a mirror: from now on, lines name its session and, unless it is 0, the guest's pid. */
void complain_context(unsigned int session, uint32_t guest_pid);
/*
 * Lines also name the command that the calling thread carries out; NULL: none. The name is not
 * copied.
 */
void complain_command(const char *name);
/* Messages keep going to the present stderr, even if file 2 is replaced later. False on failure. */
bool complain_keep_stderr(void);

/* A line, without its newline and without "qcu-device: " at its beginning. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints each line of a text from another source as a message: "WHO: LINE". */
void complain_text(const char *who, const char *text, size_t len);
/* A line that the operator has asked for. The number of these is not limited. */
void complain_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

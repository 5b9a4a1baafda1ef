/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages that a guest can bring about. It must not be able to fill the host's disk with them, so
 * some at once are printed, then one a second, and of the others it is said how many there were.
 * Nor may it choose what they look like: a message is one line of limited length, and whatever in
 * it is not a printable character of ASCII is written as \xNN. Everything else that is said on
 * stderr happens once, or is the host's own doing.
 */
#ifndef QCU_COMPLAIN_H
#define QCU_COMPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPLAIN_BURST	  32
#define COMPLAIN_LINE_MAX 512 /* bytes, the newline among them; what is longer ends with "..." */

/* One limit for all processes that have this file. False: each has one of its own. */
bool complain_share(int fd);
/* --verbose: whoever wants to see everything sees everything, one clean line each all the same. */
void complain_always(void);

/* A mirror: from now on each line names its session, and the guest's process if that is not 0. */
void complain_context(unsigned int session, uint32_t guest_pid);
/* And what the calling thread is at; NULL: nothing any more. The name is not copied. */
void complain_command(const char *name);
/* Lines go to what stderr is now, also when something else takes its place. False: they do not. */
bool complain_keep_stderr(void);

/* A line without its newline, and without "qcu-device: " at its beginning. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The lines of a text that comes from somewhere else, each as a message: "WHO: LINE". */
void complain_text(const char *who, const char *text, size_t len);
/* What the operator has asked for: there is no limit to how many. */
void complain_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

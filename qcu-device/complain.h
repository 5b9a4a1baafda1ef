/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages that a guest can bring about. It must not be able to fill the host's disk with them, so
 * some at once are printed, then one a second, and of the others it is said how many there were.
 * Everything else that is said on stderr happens once, or is the host's own doing.
 */
#ifndef QCU_COMPLAIN_H
#define QCU_COMPLAIN_H

#include <stdbool.h>

#define COMPLAIN_BURST 32

/* One limit for this process and all that it forks later. False: there is no memory for it. */
bool complain_share(void);
/* --verbose: whoever wants to see everything sees everything. */
void complain_always(void);

/* A line without its newline, and without "qcu-device: " at its beginning. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

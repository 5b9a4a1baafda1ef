/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Short texts that only the same user, on a node with the same key, can have written: by the
 * programs of munge, which each node of a Slurm cluster has.
 */
#ifndef QCU_LAUNCHER_MUNGE_H
#define QCU_LAUNCHER_MUNGE_H

#include <stdbool.h>
#include <stddef.h>

#define MUNGE_TEXT 512 /* bytes of a text, with its end */

/* Writes a credential with the text, one line without its end. Only this user can open it. */
bool munge_close(const char *text, char *credential, size_t size);
/* The text of a credential. False unless it is valid, opened for the first time on this node, and
 * this user's own. */
bool munge_open(const char *credential, char text[MUNGE_TEXT]);

#endif

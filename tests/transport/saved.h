/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Saves the session at random moments, and goes on in a fresh mirror:
 *
 * - QCU_LOOPBACK_SAVE=SEED:TIMES: before a command, so many times. The chance is one in two first,
 *   and half as much after each time, so that it happens in short and in long programs. Every
 *   second time device memory goes ahead only, for the next one.
 * - QCU_LOOPBACK_SAVED=FILE: gets a line for each time: "saved", perhaps with what had gone ahead,
 *   or "refused: " and why.
 * - QCU_LOOPBACK_SAVE_WHEN=FILE: not before this file exists.
 * - QCU_LOOPBACK_SAVE_TIMES=FILE: gets a line with what each time took.
 * - QCU_LOOPBACK_ARCHIVES=FOLDER: gets each archive in a file of its own.
 */
#ifndef QCU_TEST_SAVED_H
#define QCU_TEST_SAVED_H

#include "qcu-device/mirror/mirror.h"

/* Before the first mirror: with the cuda backend, memory must be such that it can be saved. */
void saved_setup(struct mir_config *cfg);

/* Around whatever sends requests to the mirror. A thread may do so again in between. */
void saved_enter(void);
void saved_leave(void);

/* Not within the above. Puts another mirror in place of this one, perhaps. */
void saved_try(struct mirror **mirror, const struct mir_config *cfg);

/* In a child after a fork. */
void saved_forked(void);

#endif

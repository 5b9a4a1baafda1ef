/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of the host's libraries a VM may use: the operator's word (--libraries). */
#ifndef QCU_LIBRARIES_H
#define QCU_LIBRARIES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Parses "all", "none" or names with commas between them. *refused gets a bit, 1 << QCU_LIB_*, for
 * each library that is not named. False: there is no such library.
 */
bool libraries_parse(const char *list, uint32_t *refused);

/* All names, with commas between them. */
const char *libraries_names(void);

#endif

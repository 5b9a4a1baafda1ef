/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For save.c: reserved addresses, memory without an address, and where it is mapped. */
#ifndef QCU_SAVE_VIRTUAL_H
#define QCU_SAVE_VIRTUAL_H

#include "qcu-device/commands/commands.h"

/* How save.c writes: a command, with the address that it wants or NULL, and what is in memory. */
struct save_out {
	void *arg;
	bool (*command)(void *arg, const struct qCUcmd *cmd, const struct be_wanted *wanted);
	bool (*contents)(void *arg, const struct be_wanted *memory);
};

/* NULL, or a sentence about what cannot be made again. */
const char *save_virtual_check(struct mirror *m);
/* All reserved addresses. */
bool save_virtual_addresses(struct mirror *m, const struct save_out *out);
/* All memory with its contents and mappings. */
bool save_virtual_memory(struct mirror *m, const struct save_out *out);

#endif

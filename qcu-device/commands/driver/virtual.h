/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reserved addresses and mappings, for a session that is saved. */
#ifndef QCU_VIRTUAL_H
#define QCU_VIRTUAL_H

#include "qcu-device/commands/commands.h"

struct mir_area {
	uint64_t addr, size;
	/* Of a mapping: its memory, as long as nothing is unmapped, and where in it. */
	struct handle *mem;
	uint64_t offset;
	uint8_t access[MIR_DEVICES_MAX];
};

/*
 * All reservations, or mappings, in the order of their addresses, for the caller to free. NULL:
 * there is no memory. No command runs meanwhile.
 */
struct mir_area *mir_virtual_list(struct mirror *m, bool mappings, size_t *count);

#endif

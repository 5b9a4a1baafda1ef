/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The contents of allocations, for save.c. What has gone ahead as it is is not copied. */
#ifndef QCU_SAVE_MEMORY_H
#define QCU_SAVE_MEMORY_H

#include <stdbool.h>

#include "qcu-device/mirror/archive.h"
#include "qcu-device/mirror/mirror.h"

struct save_memory {
	void *arg;
	bool (*entry)(void *arg, struct archive_entry *e);
	/* All of this memory, but for pieces that are zero. */
	bool (*memory)(void *arg, const struct be_wanted *memory);
};

/* False: one of these functions has said so, or there is no memory, or it cannot be read. */
bool save_memory(struct mirror *m, const struct save_memory *out);

#endif

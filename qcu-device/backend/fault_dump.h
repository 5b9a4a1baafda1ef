/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a kernel failed, out of the dump that CUDA writes of a GPU (cuCoredumpSetAttribute). The
 * dump is an ELF file whose sections the toolkit's public header cudacoredump.h describes: a table
 * for each device, multiprocessor, block and warp, each of which names its row in the table above
 * it, and the code of the modules with its addresses.
 *
 * The dump is not trusted: it has names and code of the guest's program, and lies in a mirror's
 * memory. Each offset and each row is checked, and there is a limit for how many rows are looked
 * at.
 */
#ifndef QCU_FAULT_DUMP_H
#define QCU_FAULT_DUMP_H

#include <stddef.h>
#include <stdint.h>

#include "include/qcucmd.h"

/* How many sections and rows are looked at. A dump of a large GPU has a few million. */
#define FAULT_DUMP_STEPS ((uint64_t)64 << 20)

/*
 * Fills in what is known of the place: what, kernel, block, thread, and flags. The rest of *f stays
 * as it is. Returns NULL, or the reason why no place is known; then *f has not changed.
 */
const char *fault_dump_read(const void *dump, size_t len, struct qcu_fault *f);

#endif

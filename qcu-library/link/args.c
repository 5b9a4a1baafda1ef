// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packs a kernel's arguments: from the pointers that a launch passes to the bytes that the kernel
 * reads.
 */
#include <string.h>

#include "qcu-library/link/link.h"

bool qcul_pack_args(void *to, size_t room, const struct qcu_param *params, uint32_t count,
		    void *const *args)
{
	uint32_t i;

	/* Gaps between parameters must not leak old stack contents. */
	memset(to, 0, room);
	for (i = 0; i < count; i++) {
		if (params[i].offset > room || params[i].size > room - params[i].offset)
			return false;
		memcpy((char *)to + params[i].offset, args[i], params[i].size);
	}
	return true;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packs a kernel's arguments: from the pointers that a launch passes to the bytes that the kernel
 * reads.
 */
#include <string.h>

#include "qcu-library/link/link.h"

bool qcul_pack_args(void *to, size_t room, const struct qcu_param *params, uint32_t count,
		    void *const *args)
{
	size_t end = 0; /* nothing has been written from here on */
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct qcu_param *p = &params[i];

		if (p->offset > room || p->size > room - p->offset)
			return false;
		/* Gaps between parameters must not leak old stack contents. */
		if (p->offset > end)
			memset((char *)to + end, 0, p->offset - end);
		memcpy((char *)to + p->offset, args[i], p->size);
		if (p->offset + p->size > end)
			end = p->offset + p->size;
	}
	memset((char *)to + end, 0, room - end);
	return true;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tensor maps. The backend encodes what the guest describes, and looks at no memory: an address
 * counts when a kernel uses the map, and then the GPU checks it as it checks any other.
 */
#include <string.h>

#include "qcu-device/commands/commands.h"

int mir_do_tensor_map(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_tensor_msg t;
	uint8_t map[QCU_TENSOR_MAP_BYTES];
	int rc;

	if (c->cmd->buf.len != sizeof(t))
		return QCU_ERR_InvalidValue;
	memcpy(&t, c->req->msg, sizeof(t));
	if (t.what > QCU_TENSOR_MOVE || t.rank > QCU_TENSOR_DIMS)
		return QCU_ERR_InvalidValue;
	rc = m->cfg.ops->tensor_map(m->be, c->cmd->device, &t, map);
	return rc ? rc : mir_result_put(c, QCU_RESULT_DATA, map, sizeof(map));
}

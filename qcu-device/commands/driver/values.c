// SPDX-License-Identifier: GPL-2.0-or-later
/* Streams that write numbers to memory, and wait for numbers there. */
#include "qcu-device/commands/commands.h"

static bool is_good_value(const struct qcu_stream_value *v)
{
	unsigned int most =
		v->what == QCU_VALUE_WAIT ? QCU_VALUE_NOR | QCU_VALUE_FLUSH : QCU_VALUE_UNORDERED;

	return v->what <= QCU_VALUE_WAIT && (v->bytes == 4 || v->bytes == 8) &&
	       !(v->flags & ~most) && v->addr % v->bytes == 0 &&
	       (v->bytes == 8 || v->value <= UINT32_MAX);
}

int mir_do_stream_value(struct call *c)
{
	const struct qcu_stream_value *v = &c->cmd->stream_value;
	struct stream_ref s;
	int rc;

	if (!is_good_value(v))
		return QCU_ERR_InvalidValue;
	rc = mir_device_range(c, v->addr, v->bytes);
	if (rc)
		return rc;
	rc = mir_stream_get(c, v->stream, &s);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->stream_value(c->m->be, s.s, v);
	mir_stream_put(c, &s);
	return rc;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Fills memory that the GPU can use with a value: one range, or rows with gaps between them. */
#include "qcu-device/commands/commands.h"

int mir_memset_extent(const struct be_memset *s, uint64_t *len)
{
	uint64_t above;

	if (s->elem != 1 && s->elem != 2 && s->elem != 4)
		return QCU_ERR_InvalidValue;
	if (s->dst % s->elem || s->width % s->elem)
		return QCU_ERR_InvalidValue;
	*len = s->width;
	if (s->height <= 1)
		return QCU_ERR_Success;
	if (s->pitch < s->width || s->pitch % s->elem)
		return QCU_ERR_InvalidPitchValue;
	if (__builtin_mul_overflow(s->pitch, s->height - 1, &above) ||
	    __builtin_add_overflow(above, s->width, len))
		return QCU_ERR_InvalidValue;
	return QCU_ERR_Success;
}

/*
 * Issues one call. If the memory has several registrations: one call per row and per piece of a
 * row.
 */
static int issue_memset(struct mirror *m, const struct be_memset *op, uint64_t extent,
			struct be_stream *s)
{
	struct be_memset part = *op;
	uint64_t row, left;
	int rc = QCU_ERR_Success;

	if (window_span(&m->window, op->dst, extent) == extent)
		return m->cfg.ops->mem_set(m->be, op, s);
	part.height = 1;
	part.pitch = 0;
	for (row = 0; row < op->height && !rc; row++) {
		part.dst = op->dst + row * op->pitch;
		for (left = op->width; left && !rc; left -= part.width) {
			part.width = window_span(&m->window, part.dst, left);
			rc = m->cfg.ops->mem_set(m->be, &part, s);
			part.dst += part.width;
		}
	}
	return rc;
}

int mir_do_memset(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_memset *ms = &c->cmd->memset;
	struct be_memset op = {
		.dst = ms->dst,
		.pitch = ms->pitch,
		.width = ms->width,
		.height = ms->height,
		.value = ms->value,
		.elem = ms->elem,
	};
	struct stream_ref s;
	uint64_t len;
	int rc;

	if (ms->flags & ~QCU_COPY_SYNC)
		return QCU_ERR_InvalidValue;
	rc = mir_memset_extent(&op, &len);
	if (rc)
		return rc;
	rc = mir_stream_get(c, ms->stream, &s);
	if (rc)
		return rc;
	if (ms->width && ms->height) {
		rc = mir_device_range(c, ms->dst, len);
		if (!rc)
			rc = issue_memset(m, &op, len, s.s);
	}
	if (!rc && ms->flags & QCU_COPY_SYNC)
		rc = mir_stream_wait(c, &s);
	mir_stream_put(c, &s);
	return rc;
}

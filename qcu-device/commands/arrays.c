// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CUDA arrays and the copies from and to them. This file checks the handles, levels and positions
 * in each command: the backend gets only boxes that lie within an existing array.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/commands/commands.h"

struct box {
	uint32_t x, y, z;
	uint32_t width, height, depth;
};

static int create_array(struct call *c, struct handle *h)
{
	struct mirror *m = c->m;
	int rc;

	if (!be_array_bytes(&h->desc, &h->bytes))
		return QCU_ERR_InvalidValue;
	rc = mir_take_memory(c->m, h->device, h->bytes);
	if (rc)
		return rc;
	rc = m->cfg.ops->array_create(m->be, h->device, &h->desc, NULL, 0, &h->array);
	if (rc)
		mir_give_memory(m, h->device, h->bytes);
	else
		count_add(m->counts, COUNT_DEVICE, h->bytes);
	return rc;
}

/* The memory stays for as long as the array, and is what the guest is charged for. */
static int place_array(struct call *c, struct handle *h, uint32_t mem, uint64_t offset)
{
	struct mirror *m = c->m;
	uint64_t bytes;
	int rc;

	h->parent = handles_get(&m->handles, HANDLE_PHYS, mem);
	if (!h->parent)
		return QCU_ERR_InvalidResourceHandle;
	if (h->parent->device != h->device || !h->desc.levels ||
	    !be_array_bytes(&h->desc, &bytes) || offset > h->parent->bytes ||
	    bytes > h->parent->bytes - offset)
		rc = QCU_ERR_InvalidValue;
	else
		rc = m->cfg.ops->array_create(m->be, h->device, &h->desc, h->parent->phys, offset,
					      &h->array);
	if (rc) {
		handles_put(&m->handles, h->parent);
		h->parent = NULL;
		return rc;
	}
	h->parent->reached = true;
	return QCU_ERR_Success;
}

/* All flags of an array except those that create it without memory. */
#define ARRAY_FLAGS (BE_ARRAY_LAYERED | BE_ARRAY_SURFACE | BE_ARRAY_CUBEMAP | BE_ARRAY_GATHER)

int mir_do_array_create(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_array_create *ac = &c->cmd->array_create;
	struct handle *h;
	int rc;

	if (!handles_free(&m->handles, HANDLE_ARRAY, ac->array))
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_handle_new(c, HANDLE_ARRAY, &h);
	if (rc)
		return rc;
	h->device = c->cmd->device;
	h->desc = (struct be_array_desc){
		.flags = ac->flags,
		.width = ac->width,
		.height = ac->height,
		.depth = ac->depth,
		.levels = ac->levels,
		.kind = ac->kind,
	};
	memcpy(h->desc.bits, ac->bits, sizeof(h->desc.bits));
	if (!be_array_elem(&h->desc))
		rc = QCU_ERR_InvalidChannelDescriptor;
	else if (!ac->width || ac->levels > QCU_LEVELS_MAX || ac->flags & ~ARRAY_FLAGS ||
		 ac->rsvd || (!ac->mem && ac->offset))
		rc = QCU_ERR_InvalidValue;
	if (!rc)
		rc = ac->mem ? place_array(c, h, ac->mem, ac->offset) : create_array(c, h);
	if (rc) {
		mir_handle_drop(m, h);
		return rc;
	}
	rc = handles_add(&m->handles, ac->array, h);
	if (rc)
		handles_put(&m->handles, h);
	return rc;
}

static bool is_span_within(uint32_t pos, uint32_t len, uint64_t size)
{
	return len && pos <= size && len <= size - pos;
}

/* The array's side of a copy. On success the caller must put back the handle. */
static int array_side(struct call *c, uint32_t id, uint32_t level, const struct box *b,
		      struct be_side *side, struct handle **out)
{
	struct handle *h = handles_get(&c->m->handles, HANDLE_ARRAY, id);
	uint32_t size[3], elem;

	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	elem = be_array_elem(&h->desc);
	be_array_extent(&h->desc, level < QCU_LEVELS_MAX ? level : 0, size);
	if (level >= (h->desc.levels ? h->desc.levels : 1) || b->x % elem || b->width % elem ||
	    !is_span_within(b->x, b->width, (uint64_t)size[0] * elem) ||
	    !is_span_within(b->y, b->height, size[1]) || !is_span_within(b->z, b->depth, size[2])) {
		handles_put(&c->m->handles, h);
		return QCU_ERR_InvalidValue;
	}
	*side = (struct be_side){
		.array = h->array, .level = level, .x = b->x, .y = b->y, .z = b->z};
	*out = h;
	return QCU_ERR_Success;
}

int mir_array_side(struct call *c, uint32_t id, struct be_side *side, const struct be_box *box,
		   struct handle **h)
{
	const struct box b = {side->x,
			      side->y,
			      side->z,
			      (uint32_t)box->width,
			      (uint32_t)box->height,
			      (uint32_t)box->depth};

	if (box->width > UINT32_MAX || box->height > UINT32_MAX || box->depth > UINT32_MAX)
		return QCU_ERR_InvalidValue;
	return array_side(c, id, side->level, &b, side, h);
}

int mir_do_array_write(struct call *c)
{
	const struct qcu_array_write *w = &c->cmd->array_write;
	const struct box b = {w->x, w->y, w->z, w->width, w->height, 1};
	struct mir_rect r = {
		.width = w->width,
		.height = w->height,
		.pitch = w->pitch,
		.stream = w->stream,
		.flags = w->flags,
	};
	struct handle *h;
	int rc = array_side(c, w->array, w->level, &b, &r.side, &h);

	if (rc)
		return rc;
	rc = mir_rect(c, &r);
	handles_put(&c->m->handles, h);
	return rc;
}

int mir_do_array_read(struct call *c)
{
	const struct qcu_array_read *a = &c->cmd->array_read;
	const struct box b = {a->x, a->y, a->z, a->width, a->height, 1};
	struct mir_rect r = {
		.down = true,
		.width = a->width,
		.height = a->height,
		.pitch = a->pitch,
		.stream = a->stream,
		.flags = a->flags,
	};
	struct handle *h;
	int rc = array_side(c, a->array, a->level, &b, &r.side, &h);

	if (rc)
		return rc;
	rc = mir_rect(c, &r);
	handles_put(&c->m->handles, h);
	return rc;
}

static int issue_box(struct call *c, const struct be_box *box, uint32_t stream, bool sync)
{
	struct mirror *m = c->m;
	struct stream_ref s;
	int rc;

	rc = mir_stream_get(c, stream, &s);
	if (rc)
		return rc;
	rc = m->cfg.ops->copy_box(m->be, box, s.s);
	if (!rc) {
		count_add(m->counts, COUNT_COPIES, 1);
		count_add(m->counts, COUNT_D2D, box->width * box->height * box->depth);
	}
	if (!rc && sync)
		rc = mir_stream_wait(c, &s);
	mir_stream_put(c, &s);
	return rc;
}

/* The memory's side: the range must lie in one allocation or one registration. */
static int memory_side(struct call *c, const struct qcu_array_device *a, struct be_side *side)
{
	uint64_t rows = (uint64_t)a->rows * (a->depth - 1) + a->height - 1, len;
	bool window;
	int rc;

	if ((rows && a->pitch < a->width) || (a->depth > 1 && a->rows < a->height))
		return QCU_ERR_InvalidPitchValue;
	if (__builtin_mul_overflow(rows, a->pitch, &len) ||
	    __builtin_add_overflow(len, a->width, &len))
		return QCU_ERR_InvalidValue;
	rc = mir_memory_range(c, a->addr, len, &window);
	if (!rc && window_span(&c->m->window, a->addr, len) != len)
		rc = QCU_ERR_InvalidValue;
	*side = (struct be_side){.addr = a->addr,
				 .pitch = a->pitch,
				 .rows = a->rows,
				 .host = !rc && window && mir_on_host(c->m, a->addr)};
	return rc;
}

int mir_do_array_device(struct call *c)
{
	const struct qcu_array_device *a = &c->cmd->array_device;
	const struct box b = {a->x, a->y, a->z, a->width, a->height, a->depth};
	bool down = a->flags & QCU_COPY_DOWN;
	struct be_box box = {.width = a->width, .height = a->height, .depth = a->depth};
	struct be_side memory;
	struct handle *h;
	int rc;

	if (a->flags & ~(QCU_COPY_SYNC | QCU_COPY_DOWN))
		return QCU_ERR_InvalidValue;
	rc = array_side(c, a->array, a->level, &b, down ? &box.src : &box.dst, &h);
	if (rc)
		return rc;
	rc = memory_side(c, a, &memory);
	*(down ? &box.dst : &box.src) = memory;
	if (!rc)
		rc = issue_box(c, &box, a->stream, a->flags & QCU_COPY_SYNC);
	handles_put(&c->m->handles, h);
	return rc;
}

int mir_do_array_copy(struct call *c)
{
	const struct qcu_array_copy *a = &c->cmd->array_copy;
	const struct box to = {a->dx, a->dy, a->dz, a->width, a->height, a->depth};
	const struct box from = {a->sx, a->sy, a->sz, a->width, a->height, a->depth};
	struct be_box box = {.width = a->width, .height = a->height, .depth = a->depth};
	struct handle *dst, *src;
	int rc;

	if (a->rsvd || a->flags & ~QCU_COPY_SYNC)
		return QCU_ERR_InvalidValue;
	rc = array_side(c, a->dst, a->dst_level, &to, &box.dst, &dst);
	if (rc)
		return rc;
	rc = array_side(c, a->src, a->src_level, &from, &box.src, &src);
	if (rc)
		goto out;
	if (be_array_elem(&dst->desc) != be_array_elem(&src->desc))
		rc = QCU_ERR_InvalidValue;
	else
		rc = issue_box(c, &box, a->stream, a->flags & QCU_COPY_SYNC);
	handles_put(&c->m->handles, src);
out:
	handles_put(&c->m->handles, dst);
	return rc;
}

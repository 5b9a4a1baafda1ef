// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Green contexts: streams that use a part of a device's multiprocessors. The driver's descriptions
 * of such parts never leave the mirror. A command says how the part comes about, and each time the
 * driver makes it anew from what belongs to the device or to a green context of this session. So
 * there is nothing to keep, and what a guest makes up is another part, or none.
 */
#include "qcu-device/commands/made.h"

/* CUDA does not free the descriptions from which green contexts are made. */
#define MADE_MAX 65536u

/* parent 0: the device. What is found is held in *h. */
static int begin_split(struct call *c, uint32_t parent, struct be_split *split, struct handle **h)
{
	*h = NULL;
	split->parent = NULL;
	if (!parent)
		return QCU_ERR_Success;
	*h = handles_get(&c->m->handles, HANDLE_GREEN, parent);
	if (!*h)
		return QCU_ERR_InvalidResourceHandle;
	split->parent = (*h)->green;
	if ((*h)->device == c->cmd->device)
		return QCU_ERR_Success;
	handles_put(&c->m->handles, *h);
	return QCU_ERR_InvalidResourceHandle;
}

int mir_green_parts(struct call *c, struct qcu_green_parts *r)
{
	struct be_split split = {.groups = r->groups, .flags = r->flags, .least = r->least};
	struct be_sms group = {0}, rest = {0};
	struct handle *h;
	int rc = begin_split(c, r->parent, &split, &h);

	if (rc)
		return rc;
	rc = c->m->cfg.ops->green_parts(c->m->be, c->cmd->device, &split, &r->made, &group, &rest);
	handles_put(&c->m->handles, h);
	r->sms = group.count;
	r->least_sms = group.least;
	r->align = group.align;
	r->rest_sms = rest.count;
	r->rest_least = rest.least;
	r->rest_align = rest.align;
	return rc;
}

static bool has_members(const uint8_t *members)
{
	unsigned int i = 0;

	while (i < QCU_GREEN_MEMBERS && !members[i])
		i++;
	return i < QCU_GREEN_MEMBERS;
}

int mir_green_create(struct call *c, struct qcu_green_create *r, struct handle *green)
{
	struct be_split split = {.groups = r->groups, .flags = r->flags, .least = r->least};
	struct handle *h;
	int rc;

	if (!has_members(r->members))
		return QCU_ERR_InvalidValue;
	if (atomic_fetch_add(&c->m->greens_made, 1) >= MADE_MAX) {
		atomic_fetch_sub(&c->m->greens_made, 1);
		return QCU_ERR_MemoryAllocation;
	}
	rc = begin_split(c, r->parent, &split, &h);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->green_create(c->m->be, c->cmd->device, &split, r->members,
					 &green->green);
	handles_put(&c->m->handles, h);
	return rc;
}

QCU_ASSERT(offsetof(struct qcu_green_stream, flags) == offsetof(struct qcu_stream_create, flags),
	   "what a stream waits for is found out in the same way");

int mir_green_stream(struct call *c, struct qcu_green_stream *r, struct handle *stream)
{
	struct handle *h = handles_get(&c->m->handles, HANDLE_GREEN, r->green);
	int rc = QCU_ERR_InvalidResourceHandle;

	if (h && h->device == c->cmd->device)
		rc = c->m->cfg.ops->green_stream(c->m->be, h->green, r->priority, &stream->stream);
	if (rc)
		handles_put(&c->m->handles, h);
	else
		stream->parent = h; /* the context stays as long as the stream */
	return rc;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The commands for handles of conditional nodes. A handle holds a reference to the one in whose
 * body its node is, and in the end to the outermost graph. Graphs that use handles are in graphs.c.
 */
#include "qcu-device/commands/commands.h"

static bool size_fits(uint32_t type, uint32_t size)
{
	switch (type) {
	case QCU_COND_IF:
		return size == 1 || size == 2;
	case QCU_COND_WHILE:
		return size == 1;
	case QCU_COND_SWITCH:
		return size && size <= QCU_COND_BODIES;
	}
	return false;
}

int mir_cond_node(struct call *c, struct handle *cond, uint32_t type, uint32_t size)
{
	if (!size_fits(type, size))
		return QCU_ERR_InvalidValue;
	return c->m->cfg.ops->cond_node(c->m->be, cond->cond, type, size);
}

/* Makes a handle in the graph `in`, or an outermost graph if `in` is NULL. */
static int create_in(struct call *c, struct handle *in, struct handle **out)
{
	const struct qcu_cond_create *cc = &c->cmd->cond_create;
	struct mirror *m = c->m;
	uint64_t value = 0;
	struct handle *h;
	int rc;

	rc = mir_handle_new(c, HANDLE_COND, &h);
	if (rc)
		return rc;
	h->device = c->cmd->device;
	h->body = cc->body;
	h->depth = in ? in->depth + 1 : 0;
	rc = m->cfg.ops->cond_create(m->be, h->device, in ? in->cond : NULL, cc->body,
				     cc->flags & QCU_COND_DEFAULT ? &cc->value : NULL, &h->cond,
				     &value);
	if (rc) {
		mir_handle_drop(m, h);
		return rc;
	}
	if (in)
		h->parent = handle_hold(&m->handles, in);
	c->cmd->cond_create.handle = value;
	*out = h;
	return QCU_ERR_Success;
}

/* Is there the graph or body that the new handle is for? */
static int check_owner_of_cond(struct call *c, struct handle *in)
{
	const struct qcu_cond_create *cc = &c->cmd->cond_create;

	if (in->device != c->cmd->device)
		return QCU_ERR_InvalidDevice;
	if (in->depth >= QCU_COND_DEPTH)
		return QCU_ERR_NotSupported;
	if (!in->parent)
		return cc->body || cc->type || cc->size ? QCU_ERR_InvalidValue : QCU_ERR_Success;
	return cc->body < cc->size ? mir_cond_node(c, in, cc->type, cc->size)
				   : (int)QCU_ERR_InvalidValue;
}

int mir_do_cond_create(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_cond_create *cc = &c->cmd->cond_create;
	struct handle *in = NULL, *h;
	int rc = QCU_ERR_Success;

	if (cc->flags & ~QCU_COND_DEFAULT ||
	    (!cc->graph && (cc->body || cc->value || cc->flags || cc->type || cc->size)))
		return QCU_ERR_InvalidValue;
	if (!handles_free(&m->handles, HANDLE_COND, cc->cond))
		return QCU_ERR_InvalidResourceHandle;
	if (cc->graph) {
		in = handles_get(&m->handles, HANDLE_COND, cc->graph);
		if (!in)
			return QCU_ERR_InvalidResourceHandle;
		rc = check_owner_of_cond(c, in);
	}
	if (!rc)
		rc = create_in(c, in, &h);
	handles_put(&m->handles, in);
	if (rc)
		return rc;
	rc = handles_add(&m->handles, cc->cond, h);
	if (rc) {
		c->cmd->cond_create.handle = 0;
		handles_put(&m->handles, h);
	}
	return rc;
}

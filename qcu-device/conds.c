// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Conditional nodes: the commands about them. What a body launches stays as long as the node is
 * there, so its handle keeps the kernels; and a node that is within another keeps that.
 */
#include <stdlib.h>

#include "qcu-device/mirror_impl.h"

struct kept {
	struct kept *next;
	struct handle *kernel;
};

int mir_cond_keep(struct mirror *m, const struct stream_ref *s, struct handle *kernel)
{
	struct handle *cond;
	struct kept *k;

	if (!mir_stream_is_body(s))
		return QCU_ERR_Success;
	/* The outermost one: that is what runs what is within it. */
	for (cond = s->h->parent; cond->parent; cond = cond->parent)
		;
	k = malloc(sizeof(*k));
	if (!k)
		return QCU_ERR_MemoryAllocation;
	k->kernel = handle_hold(&m->handles, kernel);
	pthread_mutex_lock(&m->lock);
	k->next = cond->kept;
	cond->kept = k;
	pthread_mutex_unlock(&m->lock);
	return QCU_ERR_Success;
}

void mir_cond_end(struct mirror *m, struct handle *cond)
{
	struct kept *k;

	m->cfg.ops->cond_destroy(m->be, cond->cond);
	while ((k = cond->kept)) {
		cond->kept = k->next;
		handles_put(&m->handles, k->kernel);
		free(k);
	}
}

static struct handle *get(struct call *c, uint32_t id)
{
	return handles_get(&c->m->handles, HANDLE_COND, id);
}

int mir_do_cond_create(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_cond_create *cc = &c->cmd->cond_create;
	struct handle *within = NULL, *h;
	uint64_t value = 0;
	int rc;

	MIR_NEED(c, cond_create);
	MIR_NEED(c, cond_destroy);
	if (!handles_free(&m->handles, HANDLE_COND, cc->cond))
		return QCU_ERR_InvalidResourceHandle;
	if (cc->within) {
		within = get(c, cc->within);
		if (!within)
			return QCU_ERR_InvalidResourceHandle;
	}
	h = handle_new(HANDLE_COND);
	if (!h) {
		handles_put(&m->handles, within);
		return QCU_ERR_MemoryAllocation;
	}
	h->parent = within;
	h->device = c->cmd->device;
	rc = within && within->device != h->device
		     ? (int)QCU_ERR_InvalidDevice
		     : m->cfg.ops->cond_create(m->be, h->device, within ? within->cond : NULL,
					       &h->cond, &value);
	if (rc) {
		handle_drop(&m->handles, h);
		return rc;
	}
	rc = handles_add(&m->handles, cc->cond, h);
	if (rc)
		handles_put(&m->handles, h);
	else
		cc->handle = value;
	return rc;
}

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

int mir_do_cond_node(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_cond_node *cn = &c->cmd->cond_node;
	struct stream_ref s = {0};
	struct handle *h;
	int rc = QCU_ERR_Success;

	MIR_NEED(c, cond_node);
	if (!size_fits(cn->type, cn->size))
		return QCU_ERR_InvalidValue;
	h = get(c, cn->cond);
	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	if (cn->stream)
		rc = mir_stream_get(c, cn->stream, &s);
	/* In a body of the one that it was made to be in, if it was. */
	if (!rc && (!cn->stream != !h->parent || (s.h ? s.h->parent : NULL) != h->parent))
		rc = QCU_ERR_InvalidValue;
	if (!rc)
		rc = m->cfg.ops->cond_node(m->be, h->cond, cn->type, cn->size, s.s);
	handles_put(&m->handles, s.h);
	handles_put(&m->handles, h);
	return rc;
}

int mir_do_cond_record(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_cond_record *cr = &c->cmd->cond_record;
	struct handle *cond, *h;
	int rc;

	MIR_NEED(c, cond_record);
	if (cr->rsvd)
		return QCU_ERR_InvalidValue;
	if (!handles_free(&m->handles, HANDLE_STREAM, cr->stream))
		return QCU_ERR_InvalidResourceHandle;
	cond = get(c, cr->cond);
	if (!cond)
		return QCU_ERR_InvalidResourceHandle;
	h = handle_new(HANDLE_STREAM);
	if (!h) {
		handles_put(&m->handles, cond);
		return QCU_ERR_MemoryAllocation;
	}
	h->parent = cond;
	h->device = cond->device;
	rc = m->cfg.ops->cond_record(m->be, cond->cond, cr->body, &h->stream);
	if (rc) {
		handle_drop(&m->handles, h);
		return rc;
	}
	rc = handles_add(&m->handles, cr->stream, h);
	if (rc)
		handles_put(&m->handles, h);
	return rc;
}

int mir_do_cond_ready(struct call *c)
{
	struct handle *h;
	int rc;

	MIR_NEED(c, cond_ready);
	h = get(c, c->cmd->cond_ready.cond);
	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	rc = c->m->cfg.ops->cond_ready(c->m->be, h->cond);
	handles_put(&c->m->handles, h);
	return rc;
}

/* Both stand in a stream of the conditional's device, and no body has them. */
static int in_stream(struct call *c, uint32_t cond, uint32_t stream, const uint32_t *value)
{
	const struct be_ops *ops = c->m->cfg.ops;
	struct handle *h = get(c, cond);
	struct stream_ref s;
	int rc;

	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_stream_get(c, stream, &s);
	if (!rc) {
		if (s.device != h->device)
			rc = QCU_ERR_InvalidResourceHandle;
		else if (mir_stream_is_body(&s))
			rc = QCU_ERR_StreamCaptureUnsupported;
		else
			rc = value ? ops->cond_set(c->m->be, h->cond, *value, s.s)
				   : ops->cond_run(c->m->be, h->cond, s.s);
		mir_stream_put(c, &s);
	}
	handles_put(&c->m->handles, h);
	return rc;
}

int mir_do_cond_set(struct call *c)
{
	const struct qcu_cond_set *cs = &c->cmd->cond_set;

	MIR_NEED(c, cond_set);
	if (cs->rsvd)
		return QCU_ERR_InvalidValue;
	return in_stream(c, cs->cond, cs->stream, &cs->value);
}

int mir_do_cond_run(struct call *c)
{
	MIR_NEED(c, cond_run);
	return in_stream(c, c->cmd->cond_run.cond, c->cmd->cond_run.stream, NULL);
}

int mir_do_cond_destroy(struct call *c)
{
	return handles_remove(&c->m->handles, HANDLE_COND, c->cmd->cond_destroy.cond)
		       ? QCU_ERR_Success
		       : QCU_ERR_InvalidResourceHandle;
}

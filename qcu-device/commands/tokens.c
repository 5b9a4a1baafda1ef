// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tokens with which guest processes share memory and events, as entries in the table of
 * shares.h.
 */
#include <stdlib.h>

#include "qcu-device/commands/commands.h"

/* Memory of another session that this one has open, once or several times. */
struct opened {
	struct qcu_ipc_token token;
	unsigned int device;
	uint64_t charged;
	uint32_t count;
	LIST_ENTRY(opened) link;
};

void mir_share_end(struct mirror *m, const struct qcu_ipc_token *token)
{
	pthread_mutex_lock(&m->share_lock);
	shares_drop(m->cfg.shares, m->cfg.session, token);
	pthread_mutex_unlock(&m->share_lock);
}

int mir_share_put(struct mirror *m, const struct share *share, struct qcu_ipc_token *token)
{
	bool ok;

	pthread_mutex_lock(&m->share_lock);
	ok = shares_put(m->cfg.shares, m->cfg.session, share, token);
	pthread_mutex_unlock(&m->share_lock);
	return ok ? QCU_ERR_Success : QCU_ERR_MemoryAllocation;
}

int mir_share_find(struct mirror *m, const struct qcu_ipc_token *token, enum share_kind kind,
		   struct share *share)
{
	unsigned int session;

	if (!shares_find(m->cfg.shares, token, share, &session) || share->kind != kind)
		return QCU_ERR_InvalidValue;
	/* CUDA returns this error for a token of the process itself. */
	return session == m->cfg.session ? QCU_ERR_DeviceUninitialized : QCU_ERR_Success;
}

/* The caller holds m->share_lock. NULL: the session does not have it open. */
static struct opened *find_opened(struct mirror *m, const struct qcu_ipc_token *token)
{
	struct opened *o;

	/* While it is open, its slot in the table belongs to no other share. */
	LIST_FOREACH(o, &m->opened, link)
		if (o->token.slot == token->slot)
			return o;
	return NULL;
}

static int open_first(struct mirror *m, const struct qcu_ipc_token *token, enum share_kind kind,
		      struct share *share)
{
	struct opened *o = malloc(sizeof(*o));
	int rc;

	if (!o)
		return QCU_ERR_MemoryAllocation;
	shares_opening(m->cfg.shares, m->cfg.session, token);
	rc = mir_share_find(m, token, kind, share);
	if (!rc && share->device >= m->devices)
		rc = QCU_ERR_InvalidValue;
	if (rc) {
		shares_closed(m->cfg.shares, m->cfg.session, token);
		free(o);
		return rc;
	}
	*o = (struct opened){
		.token = *token,
		.device = (unsigned int)share->device,
		.charged = share->charged,
		.count = 1,
	};
	LIST_INSERT_HEAD(&m->opened, o, link);
	budget_opened(&m->budget, o->device, o->charged);
	return QCU_ERR_Success;
}

int mir_share_open(struct mirror *m, const struct qcu_ipc_token *token, enum share_kind kind,
		   struct share *share)
{
	int rc = mir_share_find(m, token, kind, share);
	struct opened *o;

	if (rc)
		return rc;
	pthread_mutex_lock(&m->share_lock);
	o = find_opened(m, token);
	if (o)
		o->count++;
	else
		rc = open_first(m, token, kind, share);
	pthread_mutex_unlock(&m->share_lock);
	return rc;
}

void mir_share_close(struct mirror *m, const struct qcu_ipc_token *token)
{
	struct opened *o;

	pthread_mutex_lock(&m->share_lock);
	o = find_opened(m, token);
	if (o && !--o->count) {
		shares_closed(m->cfg.shares, m->cfg.session, token);
		budget_closed(&m->budget, o->device, o->charged);
		LIST_REMOVE(o, link);
		free(o);
	}
	pthread_mutex_unlock(&m->share_lock);
}

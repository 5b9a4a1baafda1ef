// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tokens with which guest processes share memory and events, as entries in the table of
 * shares.h.
 */
#include "qcu-device/commands/commands.h"

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

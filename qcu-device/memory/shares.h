/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the mirrors of one VM share with one another: device memory and events. Tokens name them,
 * which a guest can pass around but cannot invent. The table lies in memory that all mirrors of the
 * VM share and no other mirrors have. So a token of one VM means nothing in another.
 *
 * Each session writes a part of its own, and the process that ends the session clears this part. So
 * there is no lock that a mirror could hold when it dies. Readers see an entry whole or not at all.
 */
#ifndef QCU_SHARES_H
#define QCU_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "qcu-device/backend/backend.h"

#define SHARES_EACH 1024u /* entries of one session */

/* SHARE_LEFT: memory that its owner has given up, and that others may still have. */
enum share_kind { SHARE_NONE, SHARE_MEMORY, SHARE_EVENT, SHARE_PHYS, SHARE_LEFT };

struct share {
	uint64_t kind;
	uint64_t size;	  /* of memory */
	uint64_t device;  /* where the memory lies */
	uint64_t charged; /* bytes that the owner is charged for */
	uint8_t handle[BE_IPC_BYTES];
};

struct shares;

/*
 * fd: a file for the table, which other processes have, too. -1: for this process and its children.
 */
struct shares *shares_new(int fd);
void shares_free(struct shares *s);

/* Calls for one session must come one at a time. False: too many entries. */
bool shares_put(struct shares *s, unsigned int session, const struct share *share,
		struct qcu_ipc_token *token);
/* Ends a share. Who has opened its memory keeps it: from now on the VM is charged for it here. */
void shares_drop(struct shares *s, unsigned int session, const struct qcu_ipc_token *token);
/* The session is over, and its mirror is gone. */
void shares_end(struct shares *s, unsigned int session);

/*
 * This session is about to open the memory; then it must look again whether the share is still
 * there. shares_closed(): it has closed the memory, as often as it had opened it. The owner's part
 * keeps the slot of the share until the last session has closed it, or has ended.
 */
void shares_opening(struct shares *s, unsigned int session, const struct qcu_ipc_token *token);
void shares_closed(struct shares *s, unsigned int session, const struct qcu_ipc_token *token);

/*
 * Returns how much memory of a device is open in this session, or in any (SHARES_ALL), that its
 * owner has given up.
 */
#define SHARES_ALL UINT32_MAX
uint64_t shares_left(struct shares *s, unsigned int device, unsigned int session);

/* False: there is no such share, or it has ended. */
bool shares_find(struct shares *s, const struct qcu_ipc_token *token, struct share *share,
		 unsigned int *session);

#endif

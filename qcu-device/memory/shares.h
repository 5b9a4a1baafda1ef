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

enum share_kind { SHARE_NONE, SHARE_MEMORY, SHARE_EVENT, SHARE_PHYS };

struct share {
	uint64_t kind;
	uint64_t size; /* of memory */
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
void shares_drop(struct shares *s, unsigned int session, const struct qcu_ipc_token *token);
/* The session is over, and its mirror is gone. */
void shares_end(struct shares *s, unsigned int session);

/* False: there is no such share, or it has ended. */
bool shares_find(struct shares *s, const struct qcu_ipc_token *token, struct share *share,
		 unsigned int *session);

#endif

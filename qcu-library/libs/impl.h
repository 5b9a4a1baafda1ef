/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of this folder share. */
#ifndef QCUL_LIBS_IMPL_H
#define QCUL_LIBS_IMPL_H

#include "qcu-library/libs/libs.h"
#include "qcu-library/link/link.h"

/* pack.c: the first failure becomes the call's status. */
void qcul_lib_fail(struct qcul_pack *p, int status);
/* Room for `len` bytes at the end of the message, or NULL. */
void *qcul_lib_room(struct qcul_pack *p, uint64_t len);

/* seen.c: calls that the library has accepted. */
bool qcul_lib_seen(uint64_t hash);
void qcul_lib_see(uint64_t hash);
/* Writes the answer that the same call has had, as the library does. False: there is none. */
bool qcul_lib_recall(uint64_t hash, const struct qcul_pack *p);
/* The call has been answered: keeps what the library has written. */
void qcul_lib_remember(uint64_t hash, const struct qcul_pack *p);

/* object.c: a free slot, or NULL. Those of an earlier session are free. */
struct qcul_object *qcul_lib_reserve(uint32_t kind);
/* The object is another one now: a call of this function has been right, of whose arguments this is
 * the hash. */
void qcul_lib_note(struct qcul_object *o, uint16_t function, uint64_t seen);

/* call.c: is the library there? Returns 0 or a status. */
int qcul_lib_open(const struct qcul_lib *lib);

#endif

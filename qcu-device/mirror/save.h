/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A session is saved as an archive, a file of commands, and made again from it in a fresh mirror
 * (docs/vm/sessions.md). The caller sends no requests to the mirror meanwhile.
 */
#ifndef QCU_SAVE_H
#define QCU_SAVE_H

#include <stdbool.h>
#include <stddef.h>

#include "qcu-device/mirror/mirror.h"

/*
 * Memory that has left the GPU comes back: only then can the session be saved. Waits for at most
 * wait_ms for room. It may leave again, but not while mir_save() writes, which does this, too.
 */
void mir_bring_back(struct mirror *m, unsigned int wait_ms);

/*
 * Waits for at most wait_ms until the session does nothing. False: it cannot be saved, and `why` is
 * a sentence without a full stop. *passes: it may be otherwise after a while.
 */
bool mir_can_save(struct mirror *m, unsigned int wait_ms, bool *passes, char *why, size_t size);

/*
 * Is a host function of the program running, or about to run, or a result not read yet? That ends
 * with commands that the mirror must get.
 */
bool mir_awaits_program(struct mirror *m);

/*
 * mir_can_save(), and writes all of the session to the file, from where it stands on. The mirror
 * stays as it is: it may go on, or end if another one goes on from the file. Then a request that
 * waits for a host function is taken out with mir_unpark().
 */
bool mir_save(struct mirror *m, int fd, unsigned int wait_ms, char *why, size_t size);

/*
 * Reads what mir_save() has written, into a mirror to which nothing has been sent yet. False: the
 * mirror can only be destroyed. Nothing in the file is trusted, nor in what has come ahead
 * (going.h).
 */
bool mir_restore(struct mirror *m, int fd, char *why, size_t size);

/* The same for a fuzzer: sums are not looked at. */
bool mir_restore_unsummed(struct mirror *m, int fd, char *why, size_t size);

/* The request of the guest that waits for the next host function, or NULL; it can be sent again. */
struct mir_request *mir_unpark(struct mirror *m);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A mirror: the host's half of one guest process. It maps the guest's chunks at the addresses that
 * they have in the guest, keeps the tables of handles, and carries out commands on a backend. Each
 * guest thread's commands run on a host thread of their own, a lane.
 *
 * Two transports feed a mirror, through the same two functions: the virtqueue (mirror_vq.c, in a
 * process of its own) and the loopback transport of the tests (in the program's own process).
 */
#ifndef QCU_MIRROR_H
#define QCU_MIRROR_H

#include <stdbool.h>
#include <stddef.h>

#include "qcu-device/commands/config.h"
#include "qcu-device/lanes/request.h"

struct mirror;

/* Returns 0 or -errno. The error has been reported on stderr. */
int mir_create(struct mirror **m, const struct mir_config *cfg);

/*
 * Does in advance what the first commands of a program would wait for. Errors are ignored: those
 * commands will find them.
 */
void mir_warm(struct mirror *m);

/* Gives a session to a mirror that was made without one. Nothing has been submitted yet. */
void mir_begin(struct mirror *m, unsigned int session, uint32_t guest_pid);

/* Counts a request that takes `bytes` of memory until it is done. False: that is too much. */
bool mir_take_request(struct mirror *m, size_t bytes);
void mir_give_request(struct mirror *m, size_t bytes);

/*
 * Checks a request and hands it to its lane. False: the guest broke a rule of the wire (reported on
 * stderr). Then `done` is not called, and the caller must end the session.
 */
bool mir_submit(struct mirror *m, struct mir_request *req);

/*
 * The process is about to end, and the backend with it. Requests that have been submitted but have
 * not begun are dropped, and so are those that come from now on; their answers say so. Waits a
 * moment for the requests that have begun.
 */
void mir_abandon(struct mirror *m);

/* Waits for the lanes and gives everything back to the backend. No request may be outstanding. */
void mir_destroy(struct mirror *m);

#endif

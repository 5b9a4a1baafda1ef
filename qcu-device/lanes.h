/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lanes: one host thread for each guest thread, so that CUDA's per-thread state holds and a guest
 * thread that blocks delays no other. Requests of one guest thread are carried out in order.
 */
#ifndef QCU_LANES_H
#define QCU_LANES_H

#include "qcu-device/mirror.h"

/* Guest threads beyond this many share lanes; the driver (tid 0) never does. */
#define LANES_MAX 256

struct lanes;

/* Carries a request out and answers it; returns true if its guest thread ends with it. */
typedef bool lanes_fn(void *ctx, struct mir_request *req);

/* 0 or -errno. */
int lanes_create(struct lanes **lanes, lanes_fn *run, void *ctx);

/* 0, or -errno if no thread could be made; the request is then still the caller's. */
int lanes_submit(struct lanes *lanes, struct mir_request *req);

/* Waits for everything submitted and for the threads. */
void lanes_destroy(struct lanes *lanes);

#endif

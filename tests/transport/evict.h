/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TRANSPORT_EVICT_H
#define TRANSPORT_EVICT_H

#include "qcu-device/mirror/mirror.h"

/* QCU_LOOPBACK_EVICT, QCU_LOOPBACK_SWAP */
void evict_setup(struct mir_config *cfg);
/* Called before each request: device memory leaves now and then. */
void evict_now_and_then(struct mirror *m);

#endif

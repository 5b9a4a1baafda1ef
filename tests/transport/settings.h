/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TRANSPORT_SETTINGS_H
#define TRANSPORT_SETTINGS_H

#include "qcu-device/mirror/mirror.h"

/* NULL: the backend that the environment names cannot be loaded. The reason has been printed. */
const struct be_ops *loopback_backend(void);
/*
 * Lets the mirror share with the mirrors that use the same file. The file stays: others may come.
 */
void loopback_join_others(struct mir_config *cfg);
/* QCU_LOOPBACK_SHARE */
void loopback_share(struct mir_config *cfg);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TRANSPORT_SETTINGS_H
#define TRANSPORT_SETTINGS_H

#include "qcu-device/mirror.h"

/* NULL: the one that the environment names cannot be had, and it has been said why. */
const struct be_ops *loopback_backend(void);
/* Has the mirror share with those that have the same file. The file stays: others may come. */
void loopback_join_others(struct mir_config *cfg);

#endif

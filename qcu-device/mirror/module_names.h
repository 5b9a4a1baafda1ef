/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The variables of a module, from the image that is kept. */
#ifndef QCU_MODULE_NAMES_H
#define QCU_MODULE_NAMES_H

#include "qcu-device/backend/image.h"
#include "qcu-device/mirror/mirror.h"

/*
 * No names if the backend does not need them. False: there is no memory. The caller frees the names
 * with image_names_free(), in any case.
 */
bool mir_module_names(struct mirror *m, uint32_t module, struct image_names *names);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What device.c, properties.c and peer.c share about devices. */
#ifndef QCUL_DEVICE_H
#define QCUL_DEVICE_H

#include "qcu-library/qcul.h"

#define QCUL_DEVICES 64

/*
 * The highest stream priority that CUDA has had so far. On a device with fewer levels it means
 * the highest level of that device; the mirror ensures this.
 */
#define QCUL_GREATEST_PRIORITY (-5)

/* The description of a device that the program sees; valid for ever. */
cudaError_t qcul_device_desc(int device, const struct qcu_device_desc **desc);

#endif

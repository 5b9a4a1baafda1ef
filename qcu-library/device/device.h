/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Devices: their descriptions and attributes. */
#ifndef QCUL_DEVICE_H
#define QCUL_DEVICE_H

#include "qcu-library/link/link.h"

/*
 * The highest stream priority that CUDA has had so far. On a device with fewer levels it means
 * the highest level of that device; the mirror ensures this.
 */
#define QCUL_GREATEST_PRIORITY (-5)

/* The description of a device that the program sees; valid for ever. */
cudaError_t qcul_device_desc(int device, const struct qcu_device_desc **desc);
cudaError_t qcul_device_attr(int device, enum cudaDeviceAttr attr, int *value);
/* Opens the session. Is there such a device? */
cudaError_t qcul_device_check(int device);
/* The same, in a call that uses the thread's context, see qcul_ready(). */
cudaError_t qcul_device_ready(int device);
/* Waits until the device is idle. If the library knows that it is, this sends nothing. */
cudaError_t qcul_device_wait(int device);
/* Waits until all devices that have been used in this session are idle. */
cudaError_t qcul_devices_idle(void);
/* Does no managed memory move (QCU_MANAGED=inplace)? */
bool qcul_managed_in_place(void);
/* Call this after a device has been reset (limits.c). */
void qcul_limits_forget(void);
/*
 * Finds a function of the driver API as `version` of CUDA has it. `own`: stream 0 is the thread's
 * own. *status is a cudaDriverEntryPointQueryResult. NULL: there is none.
 */
typedef void *qcul_entry_point_fn(const char *symbol, unsigned int version, bool own, int *status);
void qcul_entry_points_by(qcul_entry_point_fn *find);

#endif

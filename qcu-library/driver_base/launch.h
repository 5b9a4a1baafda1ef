/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A kernel's arguments as a launch has them. */
#ifndef QCUL_DRIVER_LAUNCH_H
#define QCUL_DRIVER_LAUNCH_H

#include "qcu-library/driver_base/driver.h"

#define QCUL_ARGS_INSIDE 32

/* An address for each parameter. */
struct qcul_args {
	void **list;
	void **more; /* if there are too many for `inside` */
	void *inside[QCUL_ARGS_INSIDE];
};
/*
 * From kernelParams, or from one buffer in `extra`. Call qcul_args_end() after success. The
 * arguments stay where the program has them.
 */
cudaError_t qcul_args_begin(struct qcul_args *a, const void *function, void **params, void **extra);
void qcul_args_end(struct qcul_args *a);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The metrics of a device: numbers for people and for Prometheus, on a Unix socket that only the
 * user who started the device may use, and the group that the operator named. A process of its own
 * serves them, so that nobody who asks for them, however slowly or often, keeps the device from its
 * work. It only reads the counts, and it removes the socket when the device ends, which the device,
 * in its jail, cannot do.
 */
#ifndef QCU_METRICS_H
#define QCU_METRICS_H

#include <stdbool.h>
#include <sys/types.h>

#include "qcu-device/host/board.h"
#include "qcu-device/jail/jail.h"

/* The default is the socket for QEMU with this at its end. `qcu top` looks for it. */
#define METRICS_SUFFIX ".metrics"

/* No group: only the user may connect. */
#define METRICS_NO_GROUP ((gid_t)-1)

/*
 * Starts the process, while this one may still open files. argv: the command line, which the new
 * process overwrites with its own name. replace: another device serves metrics there, until
 * metrics_show() is called. Returns NULL, or a sentence about what is wrong.
 */
const char *metrics_start(const char *path, bool replace, gid_t group,
			  const struct board_device *dev, const struct jail *jail, char **argv);
/* From now on the counts in these files are shown. Nothing happens if there is no such process. */
void metrics_show(int usage_fd, int board_fd);
/* Waits until the socket is gone. May be called in a signal handler. */
void metrics_stop(void);

#endif

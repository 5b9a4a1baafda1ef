/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How NVML reaches a mirror. host_dev.c uses /dev/qcuda, in a session of its own: the program's
 * session belongs to libcudart, which is perhaps not there. For tests, tests/transport/nvml_host.c
 * has a mirror in this process.
 */
#ifndef QCUL_NVML_HOST_H
#define QCUL_NVML_HOST_H

#include "include/qcucmd.h"

/* All return 0 or -errno. The callers see to it that there is one call at a time. */
int qcul_nvml_host_open(void);
void qcul_nvml_host_close(void);
/* Sends the record and waits for its answer. */
int qcul_nvml_host_send(struct qCUcmd *cmd);

#endif

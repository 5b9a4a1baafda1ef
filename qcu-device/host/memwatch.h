/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What each process uses of each GPU's memory, as the driver counts it. A mirror counts what it
 * allocates for the guest, but not what libraries and kernels take, and a mirror that has been
 * broken into counts nothing. So a process outside of all mirrors asks NVML, if a limit on device
 * memory is set. It reads nothing that a guest or a mirror has written. memjudge.c, in the main
 * process, compares its numbers with the limits.
 */
#ifndef QCU_MEMWATCH_H
#define QCU_MEMWATCH_H

#include <stdint.h>

#include "qcu-device/host/device.h"

#define MEMWATCH_USES 512u

struct memwatch_report {
	uint32_t count;	  /* of uses; 0 with a text: nothing is watched any more */
	char failed[100]; /* why, or empty */
	struct memwatch_use {
		uint32_t pid, gpu; /* as the main process sees it; as NVML counts */
		uint64_t bytes;
	} use[MEMWATCH_USES];
};

/* Starts the process, if it has a purpose. Called before the main process goes to jail. */
void memwatch_start(const struct device_options *opt);
void memwatch_stop(void);
/* The main process's end: each byte asks for a report, which comes a second later. -1: none. */
int memwatch_socket(void);

#endif

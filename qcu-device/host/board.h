/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The board: what the main process tells the metrics process (metrics.h) about the sessions, in
 * memory that these two share. Mirrors do not have it, so no mirror can forge it. What mirrors have
 * counted lies in usage.h.
 */
#ifndef QCU_BOARD_H
#define QCU_BOARD_H

#include <stdio.h>

#include "qcu-device/base/usage.h"

struct board_session {
	bool live;
	uint32_t guest_pid;
	char program[17];
	uint64_t since; /* when it was opened: seconds of the host's clock */
	uint64_t began; /* the same as busy_now() */
	/* For how many microseconds its kernels kept GPUs busy, where NVML is asked for that. */
	uint64_t gpu_time;
};

/* What the sessions have counted that are over. */
struct board_past {
	uint64_t calls[QCU_OP_COUNT];
	uint64_t n[COUNT_KINDS];
	uint64_t refused[LIMIT_KINDS];
	uint64_t gpu_time;
};

struct board {
	/*
	 * Odd while the main process, the only writer, changes the rest or the usage of a session
	 * that is over. A reader copies, and then looks whether this is still as it was.
	 */
	_Atomic uint32_t changes;
	uint64_t opened; /* sessions so far */
	bool nvml;	 /* NVML is asked for how long sessions keep GPUs busy */
	struct board_past past;
	struct board_session session[QCU_MAX_SESSIONS + 1];
};

/* fd: a file for the board. -1: for this process and its children. NULL: no memory. */
struct board *board_new(int fd);
void board_free(struct board *b);
void board_open(struct board *b, unsigned int session, uint32_t guest_pid, const char *program);
/*
 * For how many microseconds the session's kernels have kept GPUs busy: what NVML told, or what the
 * mirror counted, but for each GPU no more than the session has lasted.
 */
uint64_t board_gpu_time(const struct board *b, const struct usage *u, unsigned int session);
/* NVML told of more. From then on nothing counts that mirrors have counted. */
void board_add_gpu_time(struct board *b, unsigned int session, uint64_t us);
/* The session is over and its mirror is gone: its counts become past, and its usage ends. */
void board_end(struct board *b, struct usage *u, unsigned int session);

/* What stays the same for the life of a device. */
struct board_device {
	const char *name, *gpu;
	bool gpu_time; /* it is known how long sessions keep GPUs busy */
	int pid;
	unsigned int sessions;
};

/*
 * Writes the metrics of the device, in the text format of Prometheus. b and u are NULL while no VM
 * is connected.
 */
void board_print(FILE *out, const struct board_device *dev, const struct board *b,
		 const struct usage *u);

#endif

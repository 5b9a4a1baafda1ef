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
};

/* What the sessions have counted that are over. */
struct board_past {
	uint64_t calls[QCU_OP_COUNT];
	uint64_t n[COUNT_KINDS];
	uint64_t refused[LIMIT_KINDS];
};

struct board {
	/*
	 * Odd while the main process, the only writer, changes the rest or the usage of a session
	 * that is over. A reader copies, and then looks whether this is still as it was.
	 */
	_Atomic uint32_t changes;
	uint64_t opened; /* sessions so far */
	struct board_past past;
	struct board_session session[QCU_MAX_SESSIONS + 1];
};

/* fd: a file for the board. -1: for this process and its children. NULL: no memory. */
struct board *board_new(int fd);
void board_free(struct board *b);
void board_open(struct board *b, unsigned int session, uint32_t guest_pid, const char *program);
/* The session is over and its mirror is gone: its counts become past, and its usage ends. */
void board_end(struct board *b, struct usage *u, unsigned int session);

/* What stays the same for the life of a device. */
struct board_device {
	const char *name, *gpu;
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

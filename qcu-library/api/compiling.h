/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options for the compiler that makes machine code, and where the program wants its results. */
#ifndef QCUL_COMPILING_H
#define QCUL_COMPILING_H

#include "qcu-library/link/link.h"

enum { QCUL_LOG_INFO, QCUL_LOG_ERROR, QCUL_LOGS };

/* The pointers are into the program's memory. */
struct qcul_compiling {
	struct qcu_jit jit;
	uint64_t began; /* for the time that it takes */
	void **ms;	/* the value that gets the time; NULL: not wanted */
	char *log[QCUL_LOGS];
	size_t room[QCUL_LOGS];
	void **filled[QCUL_LOGS]; /* the values that say how much of the room was used */
};

/* Options of the driver API, of which those of the runtime API are a part. */
cudaError_t qcul_compiling_options(const void *options, void **values, unsigned int count,
				   struct qcul_compiling *c);
/*
 * Called after the command: fetches what the compiler has said, and fills in the values. all: the
 * command has left nothing else to fetch, so the mirror may forget it.
 */
void qcul_compiling_read(const struct qcul_compiling *c, bool all);
/* Fetches a result of the thread's last command. Returns its length; 0: there is none. */
uint64_t qcul_result(uint32_t what, void *to, size_t room, bool forget);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Letters with which the mirrors of a VM pass open files to one another. They go through the main
 * process, because a mirror can connect to nothing. A mirror names others by their seats (jail.h).
 */
#ifndef QCU_PASS_H
#define QCU_PASS_H

#include <stdint.h>

enum pass_kind {
	PASS_ASK = 1, /* for the file with this secret */
	PASS_ANSWER,  /* with the file, or without: there is none */
};

struct pass_letter {
	uint32_t kind;
	uint32_t seat; /* of the receiver; the main process replaces it with the sender's */
	uint32_t id;   /* the asker's; it comes back in the answer */
	uint32_t rsvd;
	uint64_t secret[2];
};

#endif

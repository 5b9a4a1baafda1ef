/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The main process carries letters between the mirrors of its VM (base/pass.h). */
#ifndef QCU_PASSES_H
#define QCU_PASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "qcu-device/jail/jail.h"

/* A mirror that sends more letters in one second is ended. */
#define PASSES_A_SECOND 20000u

struct passes {
	struct passes_mirror {
		int fd; /* our end of its socket for letters; -1: nobody has this seat */
		uint64_t second;
		unsigned int sent; /* in that second */
	} mirror[JAIL_SEATS];
	bool (*is_private)(int file); /* no mirror may send this file; NULL: any */
};

enum passes_result {
	PASSES_CARRIED,
	PASSES_GONE, /* the mirror has closed its end */
	PASSES_BAD,  /* it may not send this, or not so much */
};

void passes_init(struct passes *p);
void passes_add(struct passes *p, unsigned int seat, int fd);
/* Closes our end. */
void passes_remove(struct passes *p, unsigned int seat);
/*
 * Carries one letter from this mirror. A letter that its receiver has no room for is lost; if it
 * asks for a file, the answer is that there is none.
 */
enum passes_result passes_carry(struct passes *p, unsigned int seat);

#endif

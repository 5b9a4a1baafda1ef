/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A gap of a random size between what the process has mapped and what it maps next. Device
 * addresses go to the guest, and CUDA takes them from where the process maps next: without a gap,
 * they would tell where its libraries are.
 */
#ifndef QCU_GAP_H
#define QCU_GAP_H

#include <stddef.h>

struct gap {
	void *at; /* NULL: there is none */
	size_t size;
};

void gap_open(struct gap *g);
/* The addresses are free again. */
void gap_close(struct gap *g);

#endif

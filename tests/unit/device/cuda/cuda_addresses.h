/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How CUDA reserves addresses, as an H200 has shown: in pieces of 32 MiB, at the address that the
 * caller wants or where the kernel has room. What is smaller gets the first room in the piece that
 * was made last, if it has any, and so on. A wanted address is followed if it is free and in a
 * piece, or if no piece has room.
 */
#ifndef QCU_TEST_CUDA_ADDRESSES_H
#define QCU_TEST_CUDA_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

/* A new process, in which CUDA has a piece with some room for itself. */
void addresses_begin(void);
/* at: what is wanted, or 0. */
uint64_t addresses_reserve(uint64_t bytes, uint64_t at);
void addresses_free(uint64_t at, uint64_t bytes);
/* Is nothing reserved but what CUDA has for itself? */
bool addresses_are_free(void);

#endif

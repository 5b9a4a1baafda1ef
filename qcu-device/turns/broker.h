/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The broker of one GPU: a process that tells the VMs whose turn it is. It has no CUDA. */
#ifndef QCU_TURNS_BROKER_H
#define QCU_TURNS_BROKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * memory: bytes of the GPU, if programs must ask before they take any (software GPU); 0: they ask
 * when it is full. evict_ms: for tests, memory of all programs leaves so often; 0: never. Serves
 * the keepers that connect to `listener`, of type SOCK_SEQPACKET, and that belong to root or the
 * owner. Returns when there has been no VM for so many seconds; 0: never.
 */
bool broker_serve(int listener, uid_t owner, unsigned int idle_seconds, uint64_t memory,
		  unsigned int evict_ms);

#endif

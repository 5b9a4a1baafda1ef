/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a thread waits for the answers to its records, in loopback. */
#ifndef TESTS_TRANSPORT_WAITS_H
#define TESTS_TRANSPORT_WAITS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* A wait for all records of one submit, or for one command of the driver's own. */
struct wait {
	pthread_mutex_t lock;
	pthread_cond_t all_done;
	atomic_uint pending;
};

void wait_init(struct wait *w);
/* Polls for a while, and then sleeps. */
void wait_for_all(struct wait *w);

/* QCU_WAIT_*: how all threads wait from now on. */
void waits_are(uint32_t how);
/* Before the first wait: they poll for as long as in a VM. */
void waits_begin(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plays QEMU and the guest driver for tests of the device process: vhost-user messages over a
 * socket pair, guest RAM in a memfd, and commands on virtqueues.
 */
#ifndef TEST_DEVICE_FRONTEND_H
#define TEST_DEVICE_FRONTEND_H

#include <sys/types.h>

#include "include/qcucmd.h"
#include "qcu-device/base/limits.h"
#include "tests/unit/device/host/test_device_driver.h"

#define FE_SESSIONS 4
#define FE_QUEUES   (FE_SESSIONS + 1)
#define FE_RAM	    0x1000000ull
#define FE_FREE	    0x800000ull /* tests may use RAM freely from here on */

#define FE_FEATURES (1ull << 36 | 1ull << 32 | 1 << 30 | 1 << 29 | 1 << 28)
#define FE_LOG_ALL  (1ull << 26)

struct frontend {
	int sock;
	pid_t server;
	int memfd;
	uint8_t *ram; /* guest-physical address 0 */
	struct driver_queue q[FE_QUEUES];
	int kick[FE_QUEUES], call[FE_QUEUES];
	bool started[FE_QUEUES];
	uint32_t seq;
};

/* For the device processes that are started from now on. */
extern struct limits fe_limits;

/* Starts the device process in a child, connected, with memory. Queues are not started. */
void fe_start(struct frontend *fe);
void fe_start_prewarm(struct frontend *fe, unsigned int spares);
/* The same without --verbose, and with this file as stderr. */
void fe_start_quiet(struct frontend *fe, int stderr_fd);
/*
 * Starts the program qcu-device with these arguments, then `--fd N --sessions M`. stderr may be -1.
 */
void fe_start_program(struct frontend *fe, char *const argv[], int stderr_fd);
/* Disconnects. Returns the exit status of the device process. */
int fe_stop(struct frontend *fe);

/* Sends one message. Returns the 64 bits of the reply, if there is one. */
enum fe_request {
	FE_GET_FEATURES = 1,
	FE_SET_FEATURES = 2,
	FE_SET_MEM_TABLE = 5,
	FE_SET_LOG_BASE = 6,
	FE_SET_VRING_NUM = 8,
	FE_SET_VRING_ADDR = 9,
	FE_SET_VRING_BASE = 10,
	FE_GET_VRING_BASE = 11,
	FE_SET_VRING_KICK = 12,
	FE_SET_VRING_CALL = 13,
	FE_GET_PROTOCOL_FEATURES = 15,
	FE_SET_PROTOCOL_FEATURES = 16,
	FE_GET_QUEUE_NUM = 17,
	FE_SET_VRING_ENABLE = 18,
	FE_GET_CONFIG = 24,
	FE_ADD_MEM_REG = 37,
	FE_SET_DEVICE_STATE_FD = 42,
	FE_CHECK_DEVICE_STATE = 43,
};
void fe_send(struct frontend *fe, unsigned int request, const void *payload, uint32_t size, int fd);
uint32_t fe_recv(struct frontend *fe, unsigned int request, void *payload, uint32_t max);
uint64_t fe_get(struct frontend *fe, unsigned int request);

void fe_queue_start(struct frontend *fe, unsigned int q);
/* Starts a queue that has stopped at this index. */
void fe_queue_go_on(struct frontend *fe, unsigned int q, uint16_t index);
uint16_t fe_queue_stop(struct frontend *fe, unsigned int q); /* returns its index */
void fe_new_call(struct frontend *fe, unsigned int q);
void fe_set_memory(struct frontend *fe, bool any); /* all of it is as at the start, or none */
void fe_add_memory(struct frontend *fe, uint64_t gpa);

/* Puts a command on a queue, with len bytes of RAM at gpa as its tail. Returns the slot. */
unsigned int fe_post(struct frontend *fe, unsigned int q, const struct qCUcmd *cmd, uint64_t gpa,
		     uint32_t len);
void fe_kick(struct frontend *fe, unsigned int q);
/* Returns the used length of the slot; the reply is in *cmd. Fails the test after a timeout. */
uint32_t fe_wait(struct frontend *fe, unsigned int q, unsigned int slot, struct qCUcmd *cmd);
/*
 * Post, kick and wait in one call. Returns the status, or FE_GONE if the command came back with
 * length 0.
 */
#define FE_GONE (-1000)
int fe_ask(struct frontend *fe, unsigned int q, struct qCUcmd *cmd, uint64_t gpa, uint32_t len);

int fe_open(struct frontend *fe, unsigned int q);
int fe_close(struct frontend *fe, unsigned int q);

/* What QEMU hears: why the VM cannot be saved now. Empty: it can. */
const char *fe_reason(struct frontend *fe);

/* Finds the mirror of a session by its name among the device's descendants; 0: there is none. */
pid_t fe_mirror(struct frontend *fe, unsigned int session);
/*
 * Finds a descendant of the device by its whole name, other than `not`. A spare is named
 * qcu-warming, then qcu-spare.
 */
pid_t fe_child(struct frontend *fe, const char *want, pid_t not );

#endif

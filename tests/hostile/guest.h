/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's part and a guest kernel's, towards a real qcu-device process: vhost-user messages over a
 * socket pair, guest RAM in a memfd, and virtqueues that the guest may use as badly as it likes.
 */
#ifndef HOSTILE_GUEST_H
#define HOSTILE_GUEST_H

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "include/qcucmd.h"
#include "include/qcuerror.h"

#define GUEST_SESSIONS 8
#define GUEST_QUEUES   (GUEST_SESSIONS + 1)
#define GUEST_NUM      256 /* descriptors in a queue */
#define GUEST_PARTS    4   /* of one chain that guest_post() makes */
#define GUEST_SLOTS    (GUEST_NUM / GUEST_PARTS)
#define GUEST_RAM      (128ull << 20)
#define GUEST_TAIL     0x1000u /* bytes that a command may bring along in its slot */

/* 8 MiB of RAM that the tests of a session may use as they like. */
#define GUEST_SPACE(q)	  (0x2000000ull + (q)*0x800000ull)
#define GUEST_SPACE_BYTES 0x800000ull

/* Instead of a status. */
#define GUEST_GONE (-1000) /* it came back with length 0: the session is over */
#define GUEST_LATE (-1001) /* it did not come back */
#define GUEST_FULL (-1002) /* there was no free slot for it */

struct queue {
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t added, taken, kicked;
	int kick, call;
	bool started;
	bool mangled; /* the guest has spoilt the ring: what comes back may make no sense */
	bool out[GUEST_SLOTS];
	uint32_t len[GUEST_SLOTS]; /* of the reply, once it is back */
	uint64_t order[GUEST_SLOTS];
	uint64_t back; /* how many have come back */
};

struct guest {
	int sock;
	int memfd;
	uint8_t *ram; /* guest-physical address 0 */
	struct queue q[GUEST_QUEUES];
	uint32_t seq;
};

/* The test cannot go on: says why and ends it. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

void guest_start(struct guest *g, int sock);
void guest_stop(struct guest *g);

void guest_queue_start(struct guest *g, unsigned int q);
void guest_queue_stop(struct guest *g, unsigned int q);

/* Puts a command on a queue with what it brings along; its slot, or -1: there is none free. */
int guest_post(struct guest *g, unsigned int q, const struct qCUcmd *cmd, const void *tail,
	       uint32_t len);
/* The same with a tail that lies in RAM. */
int guest_post_at(struct guest *g, unsigned int q, const struct qCUcmd *cmd, uint64_t gpa,
		  uint32_t len);
void guest_kick(struct guest *g, unsigned int q);
/* Takes what has come back, without waiting. */
void guest_take(struct guest *g, unsigned int q);
/* The status, GUEST_GONE or GUEST_LATE; the reply in *cmd. */
int guest_wait(struct guest *g, unsigned int q, int slot, struct qCUcmd *cmd, int ms);
/* All three. */
int guest_ask(struct guest *g, unsigned int q, struct qCUcmd *cmd, const void *tail, uint32_t len);
int guest_ask_at(struct guest *g, unsigned int q, struct qCUcmd *cmd, uint64_t gpa, uint32_t len);

int guest_open(struct guest *g, unsigned int q);
int guest_close(struct guest *g, unsigned int q);
/* A fresh session on a queue, whatever was there. Ends the test if it cannot be had. */
void guest_fresh(struct guest *g, unsigned int q);

/* How long anything may take that must come. */
#define GUEST_WAIT_MS 60000

#endif

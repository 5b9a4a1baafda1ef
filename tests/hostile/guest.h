/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plays QEMU and a guest kernel for a real qcu-device process: vhost-user messages over a socket
 * pair, guest RAM in a memfd, and virtqueues that the guest may misuse in any way.
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
#define GUEST_PARTS    4   /* in one chain that guest_post() makes */
#define GUEST_SLOTS    (GUEST_NUM / GUEST_PARTS)
#define GUEST_RAM      (128ull << 20)
#define GUEST_TAIL     0x1000u /* bytes of data of a command in its slot */

/* 8 MiB of RAM that the tests of a session may use in any way. */
#define GUEST_SPACE(q)	  (0x2000000ull + (q)*0x800000ull)
#define GUEST_SPACE_BYTES 0x800000ull

/* Returned instead of a status. */
#define GUEST_GONE (-1000) /* the command came back with length 0: the session is over */
#define GUEST_LATE (-1001) /* the command did not come back */
#define GUEST_FULL (-1002) /* there was no free slot for the command */

struct queue {
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t added, taken, kicked;
	int kick, call;
	bool started;
	bool mangled; /* the guest has damaged the ring: used entries may make no sense */
	bool out[GUEST_SLOTS];
	uint32_t len[GUEST_SLOTS]; /* of the reply, once the slot is back */
	uint64_t order[GUEST_SLOTS];
	uint64_t back; /* how many chains have come back */
};

struct guest {
	int sock;
	int memfd;
	uint8_t *ram; /* guest-physical address 0 */
	struct queue q[GUEST_QUEUES];
	uint32_t seq;
};

/* The test cannot go on: prints the reason and exits. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

void guest_start(struct guest *g, int sock);
void guest_stop(struct guest *g);

void guest_queue_start(struct guest *g, unsigned int q);
void guest_queue_stop(struct guest *g, unsigned int q);

/* Puts a command and its data on a queue. Returns the slot, or -1 if no slot is free. */
int guest_post(struct guest *g, unsigned int q, const struct qCUcmd *cmd, const void *tail,
	       uint32_t len);
/* The same, with data that is in guest RAM already. */
int guest_post_at(struct guest *g, unsigned int q, const struct qCUcmd *cmd, uint64_t gpa,
		  uint32_t len);
void guest_kick(struct guest *g, unsigned int q);
/* Takes the used entries of the ring, without waiting. */
void guest_take(struct guest *g, unsigned int q);
/* Returns the status, GUEST_GONE, GUEST_LATE or GUEST_FULL. The reply is in *cmd. */
int guest_wait(struct guest *g, unsigned int q, int slot, struct qCUcmd *cmd, int ms);
/* Post, kick and wait in one call. */
int guest_ask(struct guest *g, unsigned int q, struct qCUcmd *cmd, const void *tail, uint32_t len);
int guest_ask_at(struct guest *g, unsigned int q, struct qCUcmd *cmd, uint64_t gpa, uint32_t len);

int guest_open(struct guest *g, unsigned int q);
int guest_close(struct guest *g, unsigned int q);
/* Opens a fresh session on a queue, whatever was there before. Ends the test if that fails. */
void guest_fresh(struct guest *g, unsigned int q);

/* The longest wait for anything that must come. */
#define GUEST_WAIT_MS 60000

#endif

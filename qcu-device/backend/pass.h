/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Open files for other mirrors of the same VM. A handle can be kept in memory that the mirrors
 * share (shares.h); who has it gets the file from the process that offers it, for as long as that
 * process lives and has not taken the offer back.
 */
#ifndef QCU_BE_PASS_H
#define QCU_BE_PASS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct be_offer;
struct be_want;

struct be_pass {
	pthread_mutex_t lock;	 /* protects the rest */
	pthread_cond_t answered; /* a wanted file has come, or it will not */
	bool running;
	int socket;    /* for letters (base/pass.h); -1: this process has none */
	uint32_t seat; /* this process's */
	uint32_t last_id;
	pthread_t thread;
	struct be_offer *offers;
	struct be_want *wants;
};

struct be_pass_handle {
	uint32_t seat, rsvd;
	uint64_t secret[2];
};

/* seat: 0, if the process has no socket. Takes the socket over. */
void be_pass_open(struct be_pass *p, int socket, uint32_t seat);
void be_pass_close(struct be_pass *p);
/* Takes over the file, unless it returns false. */
bool be_pass_offer(struct be_pass *p, int fd, struct be_pass_handle *h);
void be_pass_withdraw(struct be_pass *p, const struct be_pass_handle *h);
/*
 * Something that consists of several files. Its first part is offered as above; the handle of the
 * n-th part follows from that of the first, so that one handle is enough.
 */
struct be_pass_handle be_pass_part(const struct be_pass_handle *first, uint32_t n);
bool be_pass_offer_part(struct be_pass *p, int fd, const struct be_pass_handle *first, uint32_t n);
void be_pass_withdraw_parts(struct be_pass *p, const struct be_pass_handle *first, uint32_t count);
/* Returns a new descriptor, or -1: nobody offers such a file. */
int be_pass_take(struct be_pass *p, const struct be_pass_handle *h);

#endif

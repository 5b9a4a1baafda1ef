// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files for other mirrors (pass.h). A thread answers letters that ask for one, and takes
 * the answers to this process's own; it begins with the first offer or question. Letters may come
 * from a mirror that has been broken into: the secret tells who may have a file, and an answer
 * counts only if it comes from where the question went.
 */
#define _GNU_SOURCE /* MSG_CMSG_CLOEXEC */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/backend/pass.h"
#include "qcu-device/base/pass.h"
#include "qcu-device/base/send_files.h"

#define PATIENCE_S 10 /* with the other process */

struct be_offer {
	struct be_offer *next;
	uint64_t secret[2];
	int fd;
};

/* A question of this process. It lies on the stack of the thread that waits. */
struct be_want {
	struct be_want *next;
	uint32_t id, seat;
	bool answered;
	int fd;
};

/* The caller holds the lock. Returns where the offer hangs in the list. */
static struct be_offer **find_offer(struct be_pass *p, const uint64_t secret[2])
{
	struct be_offer **o = &p->offers;

	/* Compare the whole secret, so that the time that this takes tells nothing. */
	while (*o && ((*o)->secret[0] ^ secret[0]) | ((*o)->secret[1] ^ secret[1]))
		o = &(*o)->next;
	return o;
}

/* file: goes with the letter, if it is not -1. */
static bool send_letter(int socket, const struct pass_letter *l, int file)
{
	return send_files(socket, l, sizeof(*l), &file, file >= 0, MSG_NOSIGNAL) == sizeof(*l);
}

/* Sets *file to the file that came with the letter, or -1. False: no letter will come any more. */
static bool receive_letter(int socket, struct pass_letter *l, int *file)
{
	struct cmsghdr *cmsg;
	struct pass_envelope e;
	ssize_t n;

	pass_envelope(&e);
	do {
		n = recvmsg(socket, &e.msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	*file = -1;
	if (n != sizeof(e.letter))
		return false;
	*l = e.letter;
	cmsg = CMSG_FIRSTHDR(&e.msg);
	if (cmsg && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(file, CMSG_DATA(cmsg), sizeof(*file));
	return true;
}

/* The caller holds the lock, so that the file stays open. */
static void answer_question(struct be_pass *p, const struct pass_letter *l)
{
	const struct pass_letter out = {.kind = PASS_ANSWER, .seat = l->seat, .id = l->id};
	struct be_offer *o = *find_offer(p, l->secret);

	(void)send_letter(p->socket, &out, o ? o->fd : -1);
}

/* The caller holds the lock. Returns the file, if nobody wants it. */
static int give_answer(struct be_pass *p, const struct pass_letter *l, int file)
{
	struct be_want *w = p->wants;

	while (w && (w->id != l->id || w->seat != l->seat || w->answered))
		w = w->next;
	if (!w)
		return file;
	w->fd = file;
	w->answered = true;
	pthread_cond_broadcast(&p->answered);
	return -1;
}

static void *read_letters(void *arg)
{
	struct be_pass *p = arg;
	struct pass_letter l;
	int file;

	/* be_pass_close() shuts the socket down. */
	while (receive_letter(p->socket, &l, &file)) {
		pthread_mutex_lock(&p->lock);
		if (l.kind == PASS_ASK)
			answer_question(p, &l);
		else if (l.kind == PASS_ANSWER)
			file = give_answer(p, &l, file);
		pthread_mutex_unlock(&p->lock);
		if (file >= 0)
			close(file);
	}
	return NULL;
}

/* The caller holds the lock. */
static bool begin_reading(struct be_pass *p)
{
	if (!p->running && p->socket >= 0)
		p->running = !pthread_create(&p->thread, NULL, read_letters, p);
	return p->running;
}

void be_pass_open(struct be_pass *p, int socket, uint32_t seat)
{
	pthread_condattr_t attr;

	*p = (struct be_pass){.socket = seat ? socket : -1, .seat = seat};
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->answered, &attr);
	pthread_condattr_destroy(&attr);
}

void be_pass_close(struct be_pass *p)
{
	struct be_offer *o;

	if (p->running) {
		shutdown(p->socket, SHUT_RDWR);
		pthread_join(p->thread, NULL);
	}
	if (p->socket >= 0)
		close(p->socket);
	while ((o = p->offers)) {
		p->offers = o->next;
		close(o->fd);
		free(o);
	}
	pthread_cond_destroy(&p->answered);
	pthread_mutex_destroy(&p->lock);
}

static bool offer_with_secret(struct be_pass *p, int fd, const uint64_t secret[2])
{
	struct be_offer *o = malloc(sizeof(*o));
	bool ok;

	if (!o)
		return false;
	memcpy(o->secret, secret, sizeof(o->secret));
	o->fd = fd;
	pthread_mutex_lock(&p->lock);
	ok = begin_reading(p);
	if (ok) {
		o->next = p->offers;
		p->offers = o;
	}
	pthread_mutex_unlock(&p->lock);
	if (!ok)
		free(o);
	return ok;
}

bool be_pass_offer(struct be_pass *p, int fd, struct be_pass_handle *h)
{
	*h = (struct be_pass_handle){.seat = p->seat};
	return getrandom(h->secret, sizeof(h->secret), 0) == (ssize_t)sizeof(h->secret) &&
	       offer_with_secret(p, fd, h->secret);
}

struct be_pass_handle be_pass_part(const struct be_pass_handle *first, uint32_t n)
{
	struct be_pass_handle h = *first;

	h.secret[1] += n;
	return h;
}

bool be_pass_offer_part(struct be_pass *p, int fd, const struct be_pass_handle *first, uint32_t n)
{
	const struct be_pass_handle h = be_pass_part(first, n);

	return offer_with_secret(p, fd, h.secret);
}

void be_pass_withdraw(struct be_pass *p, const struct be_pass_handle *h)
{
	struct be_offer **at, *o;

	pthread_mutex_lock(&p->lock);
	at = find_offer(p, h->secret);
	o = *at;
	if (o)
		*at = o->next;
	pthread_mutex_unlock(&p->lock);
	if (o)
		close(o->fd);
	free(o);
}

void be_pass_withdraw_parts(struct be_pass *p, const struct be_pass_handle *first, uint32_t count)
{
	while (count--) {
		const struct be_pass_handle h = be_pass_part(first, count);

		be_pass_withdraw(p, &h);
	}
}

/* The caller holds the lock. */
static void forget_want(struct be_pass *p, const struct be_want *w)
{
	struct be_want **at = &p->wants;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
}

int be_pass_take(struct be_pass *p, const struct be_pass_handle *h)
{
	struct pass_letter l = {.kind = PASS_ASK, .seat = h->seat};
	struct be_want w = {.seat = h->seat, .fd = -1};
	struct timespec end;

	memcpy(l.secret, h->secret, sizeof(l.secret));
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&p->lock);
	if (begin_reading(p)) {
		l.id = w.id = ++p->last_id;
		w.next = p->wants;
		p->wants = &w;
		if (send_letter(p->socket, &l, -1))
			while (!w.answered && !pthread_cond_timedwait(&p->answered, &p->lock, &end))
				;
		forget_want(p, &w);
	}
	pthread_mutex_unlock(&p->lock);
	return w.fd;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's side of a test: the qcu-device program that is attacked, what it says, its processes
 * and what they cost.
 */
#ifndef HOSTILE_HOST_H
#define HOSTILE_HOST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HOST_ARGS 24

struct host_options {
	const char *program;
	const char *arg[HOST_ARGS]; /* more of them, ends with NULL */
	bool quiet;		    /* without --verbose: what it says is limited */
	bool print;		    /* what it says is repeated at once */
};

struct host {
	pid_t pid;
	int sock;
	int fds; /* how many it has open after its start */
	pthread_t reader;
	int log;
	bool print;
	pthread_mutex_t lock; /* what follows */
	uint64_t bytes, lines;
	char *tail; /* the end of what it has said */
	unsigned int controls;
	char bad[1024]; /* the first line that no guest may cause; "": there is none */
};

/* Starts it; the socket is the guest's end. */
void host_start(struct host *h, const struct host_options *o);
bool host_alive(struct host *h);
/* After the guest has gone: waits for its end. False: it ended badly, or said what it must not. */
bool host_stop(struct host *h);
/* The end of what it has said, to stdout. */
void host_show(struct host *h);
/* Does what it has said contain this? */
bool host_said(struct host *h, const char *text);
uint64_t host_bytes(struct host *h);

/* Processes below it; how many there are. */
unsigned int host_children(struct host *h, pid_t *list, unsigned int max);
/* The mirror of a session; 0: none. */
pid_t host_mirror(struct host *h, unsigned int session);
/* Bytes of memory that all its processes have of their own, page tables and memfds with them. */
uint64_t host_cost(struct host *h);
unsigned int host_fds(pid_t pid);

#endif

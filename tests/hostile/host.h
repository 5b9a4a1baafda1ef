/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's side of a test: the qcu-device program under attack, its log, its processes and their
 * cost.
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
	const char *arg[HOST_ARGS]; /* more arguments; ends with NULL */
	bool quiet;		    /* without --verbose: the log is limited */
	bool print;		    /* print the log at once */
};

struct host {
	pid_t pid;
	int sock;
	int fds; /* open descriptors after the start */
	pthread_t reader;
	int log;
	bool print;
	pthread_mutex_t lock; /* protects what follows */
	uint64_t bytes, lines;
	char *tail; /* the end of the log */
	unsigned int controls;
	char bad[1024]; /* the first line that no guest may cause; "": no such line */
};

/* Starts the device; sock is the guest's end of the socket pair. */
void host_start(struct host *h, const struct host_options *o);
bool host_alive(struct host *h);
/*
 * Waits for the end of the device, after the guest has gone. Returns false if the device ended
 * badly, or logged something that no guest may cause.
 */
bool host_stop(struct host *h);
/* Prints the end of the log to stdout. */
void host_show(struct host *h);
/* Does the log contain this text? */
bool host_said(struct host *h, const char *text);
uint64_t host_bytes(struct host *h);

/* Lists the processes below the device; returns how many there are. */
unsigned int host_children(struct host *h, pid_t *list, unsigned int max);
/* The mirror of a session; 0: there is none. */
pid_t host_mirror(struct host *h, unsigned int session);
/* Bytes of private memory of all processes of the device, with page tables and memfds. */
uint64_t host_cost(struct host *h);
unsigned int host_fds(pid_t pid);

#endif

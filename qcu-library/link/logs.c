// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The log of errors, which a program can get by callback or as a dump. It has a line for each call
 * that returned an error, and for each message that this library prints on stderr. The last hundred
 * lines are kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/link/link.h"

#define LINES 100
#define LINE  256 /* with the NUL */

#define LEFT_OUT "(older lines are left out)\n"

struct CUlogsCallbackEntry_st {
	struct CUlogsCallbackEntry_st *next;
	cudaLogsCallback_t call;
	void *data;
};

static struct {
	char lines[LINES][LINE];
	cudaLogIterator total; /* all lines so far; the last LINES of them are kept */
	cudaLogIterator delivered;
	struct CUlogsCallbackEntry_st *callbacks;
} process;
QCUL_AT_FORK(QCUL_FORK_LOGS)

/* True while this thread runs a callback. Errors in the callback are not logged, because each would
 * cause another callback. */
static QCUL_NEAR bool calling;

/* A copy of the current callbacks: a callback may remove itself or another one. */
static struct CUlogsCallbackEntry_st *copy_callbacks(size_t *count)
{
	struct CUlogsCallbackEntry_st *c, *copy;
	size_t n = 0;

	for (c = process.callbacks; c; c = c->next)
		n++;
	copy = calloc(n, sizeof(*copy));
	for (c = process.callbacks, n = 0; copy && c; c = c->next)
		copy[n++] = *c;
	*count = n;
	return copy;
}

static void write_line(const char *text)
{
	struct timespec now;
	char line[LINE];
	size_t len;

	if (calling)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	len = (size_t)snprintf(line, sizeof(line), "[%02d:%02d:%02d.%03d][%d][qcuda][E] ",
			       (int)(now.tv_sec / 3600 % 24), (int)(now.tv_sec / 60 % 60),
			       (int)(now.tv_sec % 60), (int)(now.tv_nsec / 1000000), getpid());
	snprintf(line + len, sizeof(line) - len, "%s", text);
	pthread_mutex_lock(&at_fork.lock);
	memcpy(process.lines[process.total++ % LINES], line, sizeof(line));
	pthread_mutex_unlock(&at_fork.lock);
}

/* The next line that has not been delivered, and the callbacks to call. NULL: there is no line. */
static struct CUlogsCallbackEntry_st *next_delivery(char *line, size_t *count)
{
	struct CUlogsCallbackEntry_st *to = NULL;

	pthread_mutex_lock(&at_fork.lock);
	if (!process.callbacks)
		process.delivered = process.total;
	if (process.total - process.delivered > LINES)
		process.delivered = process.total - LINES;
	if (process.delivered != process.total) {
		memcpy(line, process.lines[process.delivered++ % LINES], LINE);
		to = copy_callbacks(count);
	}
	pthread_mutex_unlock(&at_fork.lock);
	return to;
}

static void deliver(void)
{
	struct CUlogsCallbackEntry_st *to;
	char line[LINE];
	size_t count, i;

	if (calling)
		return;
	calling = true;
	while ((to = next_delivery(line, &count))) {
		for (i = 0; i < count; i++)
			to[i].call(to[i].data, cudaLogLevelError, line, strlen(line));
		free(to);
	}
	calling = false;
}

__attribute__((constructor)) static void register_error_log(void)
{
	qcul_errors_logged_by(write_line, deliver);
}

cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t call, void *data,
				     cudaLogsCallbackHandle *callback)
{
	struct CUlogsCallbackEntry_st *c = call ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return qcul_done(call ? cudaErrorMemoryAllocation : cudaErrorInvalidValue);
	c->call = call;
	c->data = data;
	pthread_mutex_lock(&at_fork.lock);
	if (!process.callbacks)
		process.delivered = process.total;
	c->next = process.callbacks;
	process.callbacks = c;
	pthread_mutex_unlock(&at_fork.lock);
	if (callback)
		*callback = c;
	return cudaSuccess;
}

cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle callback)
{
	struct CUlogsCallbackEntry_st **at = &process.callbacks, *c;

	pthread_mutex_lock(&at_fork.lock);
	while (*at && *at != callback)
		at = &(*at)->next;
	c = *at;
	if (c)
		*at = c->next;
	pthread_mutex_unlock(&at_fork.lock);
	free(c);
	return qcul_done(c ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaLogsCurrent(cudaLogIterator *iterator, unsigned int flags)
{
	if (!iterator || flags)
		return qcul_done(cudaErrorInvalidValue);
	pthread_mutex_lock(&at_fork.lock);
	*iterator = process.total;
	pthread_mutex_unlock(&at_fork.lock);
	return cudaSuccess;
}

/* ---- dumping; under the lock ---- */

static size_t line_bytes(cudaLogIterator i)
{
	return strlen(process.lines[i % LINES]) + 1;
}

/* Returns the first line to dump, so that all lines from there on fit. *cut: older lines are left
 * out. */
static cudaLogIterator first_line(const cudaLogIterator *iterator, size_t room, bool *cut)
{
	cudaLogIterator oldest = process.total < LINES ? 0 : process.total - LINES;
	cudaLogIterator from = iterator && *iterator <= process.total ? *iterator : oldest, i;
	size_t bytes = 0;

	*cut = from < oldest;
	if (*cut)
		from = oldest;
	for (i = from; i < process.total; i++)
		bytes += line_bytes(i);
	*cut |= bytes > room;
	room -= *cut && room > strlen(LEFT_OUT) ? strlen(LEFT_OUT) : 0;
	for (; bytes > room; from++)
		bytes -= line_bytes(from);
	return from;
}

static size_t dump(cudaLogIterator *iterator, char *to, size_t room)
{
	size_t len = 0;
	bool cut;
	cudaLogIterator i = first_line(iterator, room, &cut);

	if (cut && i < process.total)
		len = (size_t)sprintf(to, "%s", LEFT_OUT);
	for (; i < process.total; i++)
		len += (size_t)sprintf(to + len, "%s\n", process.lines[i % LINES]);
	if (iterator)
		*iterator = process.total;
	return len;
}

cudaError_t cudaLogsDumpToMemory(cudaLogIterator *iterator, char *buffer, size_t *size,
				 unsigned int flags)
{
	cudaError_t err = cudaSuccess;
	size_t len;

	if (!buffer || !size || flags)
		return qcul_done(cudaErrorInvalidValue);
	pthread_mutex_lock(&at_fork.lock);
	if (process.total && (!iterator || *iterator != process.total) &&
	    *size < strlen(LEFT_OUT) + line_bytes(process.total - 1) + 1) {
		err = cudaErrorInvalidValue;
		len = 0;
	} else if (*size) {
		len = dump(iterator, buffer, *size - 1);
		buffer[len] = 0;
	} else {
		len = 0;
	}
	pthread_mutex_unlock(&at_fork.lock);
	*size = len;
	return qcul_done(err);
}

cudaError_t cudaLogsDumpToFile(cudaLogIterator *iterator, const char *path, unsigned int flags)
{
	const size_t room = (size_t)LINES * LINE + sizeof(LEFT_OUT);
	bool good;
	char *text;
	size_t len;
	FILE *f;

	if (!path || flags)
		return qcul_done(cudaErrorInvalidValue);
	text = malloc(room);
	f = text ? fopen(path, "w") : NULL;
	if (!f) {
		free(text);
		return qcul_done(text ? cudaErrorInvalidValue : cudaErrorMemoryAllocation);
	}
	pthread_mutex_lock(&at_fork.lock);
	len = dump(iterator, text, room);
	pthread_mutex_unlock(&at_fork.lock);
	good = fwrite(text, 1, len, f) == len;
	good = !fclose(f) && good;
	free(text);
	return qcul_done(good ? cudaSuccess : cudaErrorOperatingSystem);
}

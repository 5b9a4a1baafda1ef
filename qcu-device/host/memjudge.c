// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ends a session that uses more memory of a GPU than its limit and the allowance (library-memory)
 * together, or, if all sessions of the VM use too much, the one that uses most beyond what it is
 * charged for. The numbers are the driver's (memwatch.h). As long as there are sessions, the main
 * process asks for the next ones when it has heard the last, so it needs no timer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/host/memwatch.h"
#include "qcu-device/host/vhost.h"

#define GENERATIONS 4 /* a mirror may be the child of a process that the main process made */

static bool asked;

static uint32_t parent_of(uint32_t pid)
{
	char path[40], line[256];
	unsigned int parent = 0;
	const char *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	/* The name, in parentheses, may have any bytes. */
	at = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (!at || sscanf(at, ") %*c %u", &parent) != 1)
		parent = 0;
	fclose(f);
	return parent;
}

/* Returns the live session whose mirror this process is, or descends from. 0: there is none. */
static unsigned int session_of(const struct device *d, uint32_t pid)
{
	unsigned int i, q;

	for (i = 0; i < GENERATIONS && pid > 1; i++) {
		for (q = 1; q <= d->opt->sessions; q++)
			if (d->session[q].state == SESSION_LIVE &&
			    (uint32_t)d->session[q].mirror.pid == pid)
				return q;
		pid = parent_of(pid);
	}
	return 0;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t charged_to(const struct device *d, unsigned int queue)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < USAGE_DEVICES; i++)
		sum += atomic_load(&d->usage->part[queue].memory[i]);
	return sum;
}

static void end(struct device *d, unsigned int queue, uint64_t bytes, enum limit what,
		uint64_t limit, const char *whose)
{
	char text[160], used[32], most[32];

	snprintf(text, sizeof(text),
		 "ended, because %s more memory of a GPU than it may: %s, and %s is %s%s",
		 *whose ? "the VM uses" : "it uses",
		 limit_text(what, bytes >> 20 << 20, used, sizeof(used)), limit_name(what), whose,
		 limit_text(what, limit, most, sizeof(most)));
	sessions_kill(d, queue, text);
}

/* What the sessions use of one GPU, and of all. */
struct sums {
	uint64_t on_gpu[QCU_MAX_SESSIONS + 1], on_all[QCU_MAX_SESSIONS + 1];
};

static void add_up(const struct device *d, const struct memwatch_report *r, uint32_t gpu,
		   struct sums *s)
{
	uint32_t i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < r->count; i++) {
		unsigned int q = session_of(d, r->use[i].pid);

		s->on_all[q] += r->use[i].bytes;
		if (r->use[i].gpu == gpu)
			s->on_gpu[q] += r->use[i].bytes;
	}
}

/* One GPU. One session at most: what the others use is looked at again a second later. */
static void judge_gpu(struct device *d, const struct memwatch_report *r, uint32_t gpu)
{
	struct limits l = d->opt->limits;
	uint64_t allowance, sum = 0, excess, most = 0;
	unsigned int q, worst = 0;
	struct sums s;

	limits_default(&l);
	allowance = l.session[LIMIT_LIBRARY_MEMORY];
	add_up(d, r, gpu, &s);
	for (q = 1; q <= d->opt->sessions; q++) {
		uint64_t counts = less(s.on_gpu[q], allowance);

		if (counts > l.session[LIMIT_DEVICE_MEMORY]) {
			end(d, q, counts, LIMIT_DEVICE_MEMORY, l.session[LIMIT_DEVICE_MEMORY], "");
			return;
		}
		sum += counts;
		excess = less(s.on_all[q], charged_to(d, q));
		if (s.on_gpu[q] && (!worst || excess > most)) {
			worst = q;
			most = excess;
		}
	}
	if (worst && sum > l.vm[LIMIT_DEVICE_MEMORY])
		end(d, worst, sum, LIMIT_DEVICE_MEMORY, l.vm[LIMIT_DEVICE_MEMORY], "its ");
}

static void ask_again(void)
{
	char byte = 0;

	if (asked || memwatch_socket() < 0)
		return;
	asked = send(memwatch_socket(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

static bool any_lives(const struct device *d)
{
	unsigned int q;

	for (q = 1; q <= d->opt->sessions; q++)
		if (d->session[q].state == SESSION_LIVE)
			return true;
	return false;
}

static void heard(struct device *d, unsigned int queue)
{
	static struct memwatch_report r;
	ssize_t n = recv(memwatch_socket(), &r, sizeof(r), MSG_DONTWAIT);
	uint32_t i, gpus = 0;

	(void)queue;
	asked = false;
	r.failed[sizeof(r.failed) - 1] = '\0';
	if (n != (ssize_t)sizeof(r) || *r.failed || r.count > MEMWATCH_USES) {
		complain("device memory is not watched: %s",
			 n == (ssize_t)sizeof(r) && *r.failed ? r.failed
							      : "the process that asks has ended");
		device_unwatch(d, memwatch_socket());
		memwatch_stop();
		return;
	}
	for (i = 0; i < r.count; i++)
		if (r.use[i].gpu >= gpus)
			gpus = r.use[i].gpu + 1;
	for (i = 0; i < gpus; i++)
		judge_gpu(d, &r, i);
	if (any_lives(d))
		ask_again();
}

void memjudge_begin(struct device *d)
{
	asked = false;
	if (memwatch_socket() >= 0)
		device_watch(d, memwatch_socket(), heard, 0);
}

void memjudge_session(void)
{
	ask_again();
}

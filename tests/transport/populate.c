// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Allocates the pages of memory that will be pinned, where the loopback transport does the driver's
 * work. It uses the largest pages that the kernel has, and several threads, because clearing the
 * pages is most of the cost of a large allocation. This is only an optimisation: pages that are
 * still missing are allocated when the memory is pinned.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/transport/populate.h"

#define THREADS 8
/* The smallest share of one thread: starting a thread costs as much as clearing a few MiB. */
#define SHARE_MIN ((size_t)32 << 20)
#define HUGE	  ((size_t)2 << 20)

struct share {
	char *start;
	size_t len;
};

static void *populate_share(void *arg)
{
	const struct share *s = arg;

	(void)madvise(s->start, s->len, MADV_POPULATE_WRITE);
	return NULL;
}

void populate(void *addr, size_t len)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct share shares[THREADS];
	pthread_t threads[THREADS];
	size_t n = len / SHARE_MIN, each, i, started = 0;
	sigset_t all, old;

	(void)madvise(addr, len, MADV_HUGEPAGE);
	if (n > THREADS)
		n = THREADS;
	if (cpus > 0 && n > (size_t)cpus)
		n = (size_t)cpus;
	if (n < 2)
		return;
	/* Only the program's own threads may get its signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	each = (len / n + HUGE - 1) & ~(HUGE - 1);
	for (i = 0; i < n && i * each < len; i++) {
		shares[i].start = (char *)addr + i * each;
		shares[i].len = len - i * each < each ? len - i * each : each;
		if (pthread_create(&threads[i], NULL, populate_share, &shares[i]))
			break;
		started++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	for (i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For tests that count what the library sends: a transport that answers for the mirror, and a
 * program that uses the library.
 */
#ifndef TESTS_LIBRARY_MIRROR_H
#define TESTS_LIBRARY_MIRROR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "qcu-library/link/link.h"

#define MAX_THREADS 256
#define MAX_SHARED  1000

/* Records of each kind, and calls of the transport. */
extern unsigned int posted, waited, submits;
extern struct qCUcmd last;
/* The next error of a posted command. */
extern int late;
/* The answers to queries and waits. */
extern int query_answer, sync_answer;
/* The page in which the mirror would write the result. */
extern bool no_page;
extern uint64_t *page;
/* Time stands still unless a test changes it. */
extern unsigned int clock_ms;

extern char *dev, *dev2, *pinned, host[128 << 10];
extern cudaStream_t stream;
extern cudaEvent_t event;
extern const char kernel;

/* For cmocka: makes what is declared above. */
int start(void **state);
cudaError_t launch(unsigned int grid, unsigned int block, size_t shared, cudaStream_t s);

/* The call succeeds, and sends this many records of each kind. */
#define COSTS(call, want_posted, want_waited)                                        \
	do {                                                                         \
		posted = waited = 0;                                                 \
		assert_int_equal(call, cudaSuccess);                                 \
		if (posted != (unsigned int)(want_posted) ||                         \
		    waited != (unsigned int)(want_waited))                           \
			fail_msg("%s: %u posted, %u waited", #call, posted, waited); \
	} while (0)

#define REFUSED(call, code)                                 \
	do {                                                \
		posted = waited = 0;                        \
		assert_int_equal(call, code);               \
		assert_int_equal(posted + waited, 0);       \
		assert_int_equal(cudaGetLastError(), code); \
	} while (0)

#endif

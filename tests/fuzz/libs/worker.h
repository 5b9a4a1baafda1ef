/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process that makes the calls: a mirror, its objects, and one random call after the other. */
#ifndef TESTS_FUZZ_WORKER_H
#define TESTS_FUZZ_WORKER_H

#include <time.h>

#include "qcu-device/mirror/mirror.h"
#include "tests/fuzz/libs/catch.h"

struct fuzz_task {
	const struct be_ops *ops;	 /* of a backend; NULL: the fake one, and no GPU */
	bool real;			 /* the backend's memory is a GPU's */
	bool fence;			 /* the libraries' heap, too, lies between guard pages */
	uint64_t seed, from, to;	 /* numbers of calls */
	time_t until;			 /* 0: no limit */
	int only_library, only_function; /* -1: all */
	struct fuzz_limits limits;
};

/* How a worker ends. */
#define WORKER_DONE  0
#define WORKER_LOST  3	/* the GPU is in an error from which nothing recovers */
#define WORKER_LARGE 4	/* it has grown over time; another one goes on */
#define WORKER_CATCH 98 /* the finding is in the shared memory */

int fuzz_work(const struct fuzz_task *t) __attribute__((noreturn));

/* For cuDNN's backend API: numbers of descriptors of a type, or of any (-1). 0: there is none. */
unsigned int fuzz_backend_pick(struct fuzz_call *f, int type, bool final);
/* A free number for a new descriptor. */
unsigned int fuzz_backend_new(struct fuzz_call *f);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What goes wrong in the worker: signals, calls without an end, memory that grows. It is written
 * into memory that the worker's parent reads, and the worker ends.
 */
#ifndef TESTS_FUZZ_CATCH_H
#define TESTS_FUZZ_CATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/fuzz/libs/pack.h"

#define FUZZ_LIBRARIES 8u
#define FUZZ_FUNCTIONS 1024u
#define FUZZ_SHOWN     128u

/* X(KIND, memory, text): `memory`: a guest may gain by it, so it makes the run fail. */
#define FUZZ_KINDS(X)                                                            \
	X(NONE, false, "nothing")                                                \
	X(BEHIND, true, "use of memory behind what the message holds")           \
	X(FRONT, true, "write in front of what the message holds")               \
	X(DECOY, true, "the host's processor uses an address that is the GPU's") \
	X(WILD, true, "use of an address that nobody has given")                 \
	X(CODE, true, "jump to no code")                                         \
	X(HEAP, true, "the heap or the stack is broken")                         \
	X(SANITIZER, true, "a sanitizer's report")                               \
	X(GROWTH, true, "memory grows without bound")                            \
	X(ZERO, false, "use of a null pointer")                                  \
	X(EXCEPTION, false, "an exception leaves the library")                   \
	X(ABORT, false, "abort")                                                 \
	X(DIVIDE, false, "division by zero")                                     \
	X(HANG, false, "a call without an end")                                  \
	X(END, false, "the process ends")

enum fuzz_kind {
#define FUZZ_KIND(kind, memory, text) FOUND_##kind,
	FUZZ_KINDS(FUZZ_KIND)
#undef FUZZ_KIND
		FOUND_COUNT
};

struct fuzz_counts {
	_Atomic uint32_t sent, called;
	_Atomic uint32_t faults; /* errors of the GPU */
	uint32_t found[FOUND_COUNT];
	int32_t rc, status; /* the last ones */
	bool refused;	    /* the last call's descriptor or setting */
};

/* Shared by the parent and the worker. */
struct fuzz_shared {
	_Atomic uint64_t number; /* of the call that is being made */
	_Atomic bool busy;
	/* The function that the message is for, and the one that is being called. */
	_Atomic uint16_t library, function, inner_library, inner_function;
	_Atomic uint32_t kind;
	uint64_t address;
	/* The start of the message. */
	uint32_t used;
	uint64_t words[FUZZ_SHOWN];
	bool has_handle[QCU_LIB_KINDS];
	uint64_t lost; /* GPUs */
	struct fuzz_counts counts[FUZZ_LIBRARIES][FUZZ_FUNCTIONS];
};
extern struct fuzz_shared *fuzz_shared;

struct fuzz_limits {
	unsigned int seconds; /* of processor time of a call */
	uint64_t growth;      /* bytes in a call */
};

/* In the worker. Once; and once in each thread that makes calls. */
void fuzz_catch_begin(const struct fuzz_limits *limits);
void fuzz_catch_thread(void);
/* Ends the worker with this finding. */
void fuzz_catch_now(enum fuzz_kind kind) __attribute__((noreturn));
/* Around each call: in the thread that makes it. */
void fuzz_catch_call(bool begins);

#endif

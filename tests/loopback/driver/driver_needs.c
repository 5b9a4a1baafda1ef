// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Each function of the driver API looks first for what it needs (cuda.syms), before it looks at its
 * arguments: without cuInit, in a thread without a context, and in a child of a process that has
 * called cuInit. All arguments are 0 here.
 */
#include <sys/wait.h>

#include "tests/loopback/check.h"

/* This file does not include cuda.h, so that all functions may have one type. */
enum { NOT_INITIALIZED = 3, INVALID_CONTEXT = 201 };
enum needs { cuInit_, context, stream };
typedef int driver_function(void *, void *, void *, void *, void *, void *, void *, void *, void *,
			    void *, void *, void *, void *, void *, void *, void *);
driver_function cuInit;

#define SAME(...)
#define FORWARD(...)
#define NEEDS_cuInit  cuInit_
#define NEEDS_context context
#define NEEDS_stream  stream

#define ENTRY(name, ...) driver_function name;
#include "driver_calls.inc"
#undef ENTRY

static const struct {
	const char *name;
	enum needs needs;
	driver_function *call;
} functions[] = {
#define ENTRY(name, needs, ...) {#name, NEEDS_##needs, name},
#include "driver_calls.inc"
};

#define N	(sizeof(functions) / sizeof(functions[0]))
#define WITH(f) (f)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

/* Those that need at least this much give this error. */
static void all_give(int error, enum needs least, const char *when)
{
	unsigned int i, wrong = 0, called = 0;

	for (i = 0; i < N; i++) {
		int got;

		if (functions[i].needs < least)
			continue;
		called++;
		got = WITH(functions[i].call);
		if (got == error)
			continue;
		wrong++;
		fprintf(stderr, "%s gave %d %s\n", functions[i].name, got, when);
	}
	REQUIRE(!wrong && called > 200, "%u of %u calls %s", wrong, called, when);
}

int main(void)
{
	int status;
	pid_t pid;

	all_give(NOT_INITIALIZED, cuInit_, "before cuInit");
	REQUIRE(!WITH(cuInit), "cuInit");
	all_give(INVALID_CONTEXT, context, "without a context");
	pid = fork();
	REQUIRE(pid >= 0, "fork");
	if (!pid) {
		all_give(NOT_INITIALIZED, cuInit_, "after fork");
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "%x", status);
	return 0;
}

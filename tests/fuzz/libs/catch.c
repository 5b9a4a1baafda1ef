// SPDX-License-Identifier: GPL-2.0-or-later
/* Signals, a watch over time and memory, and the sanitizers' settings. */
#define _GNU_SOURCE /* REG_RIP */
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/fuzz/libs/catch.h"
#include "tests/fuzz/libs/fence.h"
#include "tests/fuzz/libs/guard.h"

#define STACK	   (256u << 10)
#define FRAMES	   40
#define LOOK_MS	   20
#define WALL_TIMES 10 /* a call may wait so many times as long as it may compute */

struct fuzz_shared *fuzz_shared;

static struct fuzz_limits limits;
static pthread_t caller;
static clockid_t caller_clock;
static _Atomic uint64_t began_cpu, began_wall, began_bytes;
static _Atomic uint32_t watched; /* what the watch has found */
static int statm = -1;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t = {0};

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t resident(void)
{
	unsigned long long all, pages = 0;
	char text[128];
	ssize_t n = pread(statm, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = 0;
	if (sscanf(text, "%llu %llu", &all, &pages) != 2)
		return 0;
	return pages * 4096;
}

/* Does the library end itself there? Its compiler puts such an instruction where no program comes.
 */
static bool is_trap(const ucontext_t *u)
{
	const uint8_t *code = (const uint8_t *)u->uc_mcontext.gregs[REG_RIP];

	return code[0] == 0x0f && code[1] == 0x0b;
}

static enum fuzz_kind kind_of(int sig, const siginfo_t *info, const ucontext_t *u)
{
	uint64_t at = (uintptr_t)info->si_addr;

	switch (sig) {
	case SIGABRT:
		return FOUND_ABORT;
	case SIGFPE:
		return FOUND_DIVIDE;
	case SIGILL:
		return is_trap(u) ? FOUND_ABORT : FOUND_CODE;
	}
	if (at == (uint64_t)u->uc_mcontext.gregs[REG_RIP])
		return FOUND_CODE;
	if (at - fuzz_world.decoy < fuzz_world.decoy_bytes ||
	    (fuzz_world.zeros && at - fuzz_world.zeros < fuzz_world.bytes))
		return FOUND_DECOY;
	if (fuzz_guard_has(at))
		return FOUND_BEHIND;
	if (fuzz_fence_has(at))
		return FOUND_HEAP;
	/* The kernel does not tell an address that no memory can have. */
	if (at < 65536 && info->si_code != SI_KERNEL)
		return FOUND_ZERO;
	return FOUND_WILD;
}

static void caught(int sig, siginfo_t *info, void *context)
{
	void *frames[FRAMES];
	char text[160];
	int n;

	if (sig == SIGUSR1 && !watched)
		return;
	if (!fuzz_shared->kind)
		fuzz_shared->kind = sig == SIGUSR1 ? watched : kind_of(sig, info, context);
	fuzz_shared->address = (uintptr_t)info->si_addr;
	/* What follows may fail in a broken process. The finding is written down. */
	n = snprintf(text, sizeof(text), "signal %d, address %p, at %#llx\n", sig, info->si_addr,
		     (unsigned long long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]);
	(void)!write(2, text, (size_t)n);
	n = backtrace(frames, FRAMES);
	backtrace_symbols_fd(frames, n, 2);
	_exit(98);
}

void fuzz_catch_now(enum fuzz_kind kind)
{
	fuzz_shared->kind = kind;
	_exit(98);
}

/* Looks at the call that is being made. */
static void *watch(void *arg)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
	const uint64_t most = limits.seconds * 1000000000ull;

	for (;;) {
		nanosleep(&pause, NULL);
		if (!fuzz_shared->busy)
			continue;
		if (clock_ns(caller_clock) - began_cpu > most ||
		    clock_ns(CLOCK_MONOTONIC) - began_wall > WALL_TIMES * most)
			watched = FOUND_HANG;
		else if (resident() > began_bytes + limits.growth)
			watched = FOUND_GROWTH;
		else
			continue;
		if (!fuzz_shared->busy) {
			watched = FOUND_NONE;
			continue;
		}
		pthread_kill(caller, SIGUSR1);
		nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
		fuzz_catch_now(watched);
	}
	return arg;
}

void fuzz_catch_call(bool begins)
{
	if (begins) {
		began_cpu = clock_ns(caller_clock);
		began_wall = clock_ns(CLOCK_MONOTONIC);
		began_bytes = resident();
	}
	fuzz_shared->busy = begins;
	if (!begins && resident() > began_bytes + limits.growth)
		fuzz_catch_now(FOUND_GROWTH);
}

void fuzz_catch_thread(void)
{
	const stack_t own = {
		.ss_size = STACK,
		.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0),
	};

	if (own.ss_sp == MAP_FAILED || sigaltstack(&own, NULL))
		abort();
	caller = pthread_self();
	pthread_getcpuclockid(caller, &caller_clock);
}

void fuzz_catch_begin(const struct fuzz_limits *l)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGUSR1};
	struct sigaction action = {.sa_sigaction = caught};
	void *frames[2];
	pthread_t thread;
	size_t i;

	limits = *l;
	action.sa_flags = (int)(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
	statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	backtrace(frames, 2); /* loads what it needs */
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	if (statm < 0 || pthread_create(&thread, NULL, watch, NULL))
		abort();
}

/* ---- the sanitizers leave signals to this file, and end by abort ---- */

FUZZ_ENTRY const char *__asan_default_options(void);
FUZZ_ENTRY const char *__asan_default_options(void)
{
	return "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0:"
	       "allow_user_segv_handler=1:detect_leaks=0:use_sigaltstack=0:allocator_may_return_"
	       "null=1";
}

FUZZ_ENTRY void __asan_on_error(void);
FUZZ_ENTRY void __asan_on_error(void)
{
	if (fuzz_shared)
		fuzz_shared->kind = FOUND_SANITIZER;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The text about a kernel that failed: what it did, which kernel, block and thread, the line of its
 * source, and which memory of the program lies at the address or next to it. It goes to stderr once
 * in a process. QCU_FAULTS=0 switches it off. The device says where (struct qcu_fault); the names
 * are the program's own, and whatever is not printable in them is written as \xNN.
 *
 * The same for each finding of a check (qcu run --check, which sets QCU_CHECK=1 and perhaps
 * QCU_CHECK_EXITCODE), with their number in the end. A program may end by _exit(), which calls
 * nothing before. So the library has _exit() and _Exit(), which go before the C library's: as with
 * malloc, if the program was linked with this library, or if it is preloaded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/link/link.h"
#include "qcu-library/malloc/addresses.h"

#define NAME_MAX_SHOWN 1000
#define NULL_PAGES     (64u << 10)
#define FAR	       ((uint64_t)1 << 30) /* an allocation so far away explains nothing */

#define TOLD_MOST 100u
#define ENDS_IN	  60u /* seconds: longer than anything but a hang, or a kernel that goes on */

#define PUBLIC __attribute__((visibility("default")))

static struct {
	unsigned long long count; /* the fault, and all findings of a check */
	unsigned int told;
	atomic_bool ended; /* their number has been told, or is being told */
} session;

static struct {
	pid_t checked; /* this process, if it is checked; a child of vfork() is another */
	int status;    /* with which _exit() was called */
} process;

static void keep_check_in_child(void)
{
	if (process.checked)
		process.checked = getpid();
}

QCUL_AT_FORK(QCUL_FORK_FAULTS, QCUL_SESSION, .child = keep_check_in_child)

struct fault_text {
	char text[4096];
	size_t len;
};

static void __attribute__((format(printf, 2, 3)))
add_to_fault_text(struct fault_text *t, const char *format, ...)
{
	size_t room = sizeof(t->text) - t->len;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(t->text + t->len, room, format, ap);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_printable_text(struct fault_text *t, const char *text, size_t most)
{
	size_t end = t->len + most;

	for (; *text; text++) {
		if (t->len + 4 > end) {
			add_to_fault_text(t, "...");
			return;
		}
		if (*text >= ' ' && *text <= '~')
			add_to_fault_text(t, "%c", *text);
		else
			add_to_fault_text(t, "\\x%02x", (unsigned char)*text);
	}
}

static void add_kernel_name(struct fault_text *t, const char *name)
{
	char *source = qcul_demangle(name);
	/* Not the library's own free(): the name is from the program's malloc. */
	void (*release)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "free");

	add_printable_text(t, source ? source : name, NAME_MAX_SHOWN);
	if (source && release)
		release(source);
}

static const char *maker_of_range(const struct qcul_range *r)
{
	switch (r->kind) {
	case QCUL_MEM_DEVICE:
		return r->flags & QCUL_MEM_IMPORTED ? "taken from another process"
		       : r->flags & QCUL_MEM_MAPPED ? "mapped by cuMemMap"
		       : r->flags & QCUL_MEM_POOLED ? "made by cudaMallocAsync"
						    : "made by cudaMalloc";
	case QCUL_MEM_PINNED:
		return "made by cudaMallocHost";
	case QCUL_MEM_MANAGED:
		return "made by cudaMallocManaged";
	case QCUL_MEM_REGISTERED:
	case QCUL_MEM_ALIAS:
		return "given to cudaHostRegister";
	default:
		return "of a variable of the module";
	}
}

static void add_byte_count(struct fault_text *t, uint64_t n)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
	unsigned int i = 0;

	for (; i < 3 && n && n % 1024 == 0; i++)
		n /= 1024;
	add_to_fault_text(t, n == 1 && !i ? "%" PRIu64 " byte" : "%" PRIu64 " %s", n, units[i]);
}

/* Can the program itself read this byte? */
static bool is_own_byte(uint64_t addr)
{
	char byte;
	struct iovec to = {&byte, 1}, from = {(void *)(uintptr_t)addr, 1};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

/* How far the address is from the range; 0 if it lies inside, or right after it. */
static uint64_t distance_to_range(const struct qcul_range *r, uint64_t addr)
{
	if (addr < r->start)
		return r->start - addr;
	return addr - r->start < r->len ? 0 : addr - r->start - r->len;
}

static void add_near_memory(struct fault_text *t, uint64_t addr)
{
	struct qcul_range r;
	uint64_t far;
	bool freed;

	if (addr < NULL_PAGES) {
		add_to_fault_text(t, "qcuda:   a null pointer, or an offset from one\n");
		return;
	}
	if (!qcul_mem_near(addr, &r, &freed) || distance_to_range(&r, addr) > FAR) {
		add_to_fault_text(t, "qcuda:   %s\n",
				  is_own_byte(addr) ? "memory of the program that the GPU cannot "
						      "use, such as malloc's or a stack"
						    : "no memory of the GPU lies near it");
		return;
	}
	far = distance_to_range(&r, addr);
	add_to_fault_text(t, "qcuda:   ");
	if (far)
		add_byte_count(t, far);
	add_to_fault_text(t, "%s the ",
			  addr < r.start	   ? " before"
			  : far			   ? " after"
			  : addr - r.start < r.len ? "inside"
						   : "right after");
	add_byte_count(t, r.len);
	add_to_fault_text(t, " at 0x%" PRIx64 " %s%s\n", r.start, maker_of_range(&r),
			  freed ? " and freed since" : "");
}

static void add_place(struct fault_text *t, struct qcu_fault *f)
{
	f->what[sizeof(f->what) - 1] = '\0';
	f->file[sizeof(f->file) - 1] = '\0';
	f->kernel[sizeof(f->kernel) - 1] = '\0';
	add_to_fault_text(t, "qcuda: %s%s",
			  f->error ? cudaGetErrorString((cudaError_t)f->error) : "",
			  f->error && f->what[0] ? ": " : "");
	add_printable_text(t, f->what, sizeof(f->what));
	if (f->kernel[0]) {
		add_to_fault_text(t, "\nqcuda:   in kernel ");
		add_kernel_name(t, f->kernel);
	}
	if (f->flags & QCU_FAULT_THREAD)
		add_to_fault_text(t, "\nqcuda:   block (%u,%u,%u), thread (%u,%u,%u)", f->block[0],
				  f->block[1], f->block[2], f->thread[0], f->thread[1],
				  f->thread[2]);
	if (f->file[0]) {
		add_to_fault_text(t, "\nqcuda:   at ");
		add_printable_text(t, f->file, sizeof(f->file));
		add_to_fault_text(t, ":%u", f->line);
	} else if (f->line) {
		add_to_fault_text(
			t, "\nqcuda:   at line %u of its PTX (with nvcc -lineinfo: of the source)",
			f->line);
	}
	add_to_fault_text(t, "\n");
	if (f->flags & QCU_FAULT_ACCESS)
		add_near_memory(t, f->addr);
}

static bool is_fault_told(const struct qcu_fault *f)
{
	const char *off = getenv("QCU_FAULTS");

	return f->error ? !off || strcmp(off, "0") != 0 : f->what[0] && session.told < TOLD_MOST;
}

/* Only print.c calls this, under its lock. */
static void tell_fault(struct qcu_fault *f)
{
	struct fault_text t;

	session.count += f->more + (f->what[0] || f->error);
	if (!is_fault_told(f))
		return;
	t.len = 0;
	add_place(&t, f);
	if (!f->error && ++session.told == TOLD_MOST)
		add_to_fault_text(&t, "qcuda: %u findings are told; more are only counted\n",
				  TOLD_MOST);
	fwrite(t.text, 1, t.len, stderr);
}

/*
 * How the check of a program ends: what its kernels still do is waited for. Returns the exit code
 * that the program ends with, or 0 for its own.
 */
static int finish_check(void)
{
	const char *text = getenv("QCU_CHECK_EXITCODE");
	int code = text ? atoi(text) & 255 : 0;

	if (!qcul_opened() || atomic_exchange(&session.ended, true))
		return 0;
	/* Inside a host function the GPU waits for this thread, so this asks without a wait. */
	if (qcul_self.in_callback)
		atomic_store(&qcul_printed, true);
	else
		(void)qcul_devices_idle();
	qcul_print_flush();
	fprintf(stderr, "qcuda: check: %llu finding%s\n", session.count,
		session.count == 1 ? "" : "s");
	return session.count ? code : 0;
}

static void end_check(void)
{
	int code = finish_check();

	/* The C library goes on with the functions that are left, and ends with this code. */
	if (code)
		exit(code);
}

static void end_check_quickly(void)
{
	int code = finish_check();

	if (code)
		_exit(code);
}

static __attribute__((noreturn)) void end_process_now(int status)
{
	for (;;)
		syscall(SYS_exit_group, status);
}

static void give_up_check(int sig)
{
	static const char text[] = "qcuda: check: the program has ended before all was counted\n";

	(void)sig;
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	end_process_now(process.status);
}

/*
 * A signal handler may have interrupted this library, and call _exit() while the thread holds a
 * lock. So there is a limit.
 */
static void limit_check_time(void)
{
	struct sigaction action = {.sa_handler = give_up_check};
	sigset_t alone;

	sigemptyset(&alone);
	sigaddset(&alone, SIGALRM);
	sigaction(SIGALRM, &action, NULL);
	pthread_sigmask(SIG_UNBLOCK, &alone, NULL);
	alarm(ENDS_IN);
}

PUBLIC void _exit(int status)
{
	int code;

	if (process.checked == getpid() && qcul_opened() && !atomic_load(&session.ended)) {
		process.status = status;
		limit_check_time();
		code = finish_check();
		status = code ? code : status;
	}
	end_process_now(status);
}

PUBLIC void _Exit(int status)
{
	_exit(status);
}

__attribute__((constructor)) static void register_fault_text(void)
{
	qcul_faults_told_by(tell_fault);
	if (!qcul_env_on("QCU_CHECK"))
		return;
	process.checked = getpid();
	(void)atexit(end_check);
	(void)at_quick_exit(end_check_quickly);
}

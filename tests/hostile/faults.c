// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Linked into a special build of qcu-device (--wrap), so that one call of a kind fails.
 *
 * QCU_FAULT is KIND:N:WHERE. N counts the calls from 1. WHERE says whose calls count: 0 is the main
 * process, 1 the first mirror, 2 the second mirror, and so on. When the call fails, a line on
 * stderr tells the test.
 *
 * KIND `op` is a call of the backend's table: the call returns "out of memory" and does nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <pthread.h>

#include "include/qcuerror.h"
#include "qcu-device/backend/backend.h"

#define ARMED_VARIABLE "QCU_FAULT_ARMED"

static struct {
	char kind[24];
	unsigned long n;
	unsigned long where;
	bool armed;
	atomic_ulong count;
	unsigned long forks;
} fault;

static void __attribute__((constructor)) prepare(void)
{
	const char *text = getenv("QCU_FAULT"), *armed = getenv(ARMED_VARIABLE);

	if (!text || sscanf(text, "%23[^:]:%lu:%lu", fault.kind, &fault.n, &fault.where) != 3)
		return;
	fault.armed = armed ? *armed == '1' : !fault.where;
}

static bool hit(const char *kind)
{
	char text[80];
	int n;

	if (!fault.armed || strcmp(kind, fault.kind))
		return false;
	if (atomic_fetch_add(&fault.count, 1) + 1 != fault.n)
		return false;
	n = snprintf(text, sizeof(text), "fault: %s %lu fails\n", kind, fault.n);
	if (write(2, text, (size_t)n) != n)
		_exit(1);
	return true;
}

/* ---- processes ---- */

pid_t __real_fork(void);
pid_t __wrap_fork(void)
{
	pid_t pid;

	if (hit("fork")) {
		errno = EAGAIN;
		return -1;
	}
	fault.forks++;
	pid = __real_fork();
	if (!pid) {
		fault.armed = fault.n && fault.where == fault.forks;
		fault.count = 0;
	}
	return pid;
}

/* Tells a mirror that is started with execve() whether its calls count. */
int __real_execve(const char *path, char *const argv[], char *const env[]);
int __wrap_execve(const char *path, char *const argv[], char *const env[])
{
	static char yes[] = ARMED_VARIABLE "=1", no[] = ARMED_VARIABLE "=0";
	char *more[512];
	size_t n = 0;

	for (; env[n] && n < 510; n++)
		more[n] = env[n];
	more[n++] = fault.armed ? yes : no;
	more[n] = NULL;
	return __real_execve(path, argv, more);
}

/* ---- calls of the C library ---- */

#define WRAP(type, name, params, args, error, failed) \
	type __real_##name params;                    \
	type __wrap_##name params;                    \
	type __wrap_##name params                     \
	{                                             \
		if (hit(#name)) {                     \
			errno = error;                \
			return failed;                \
		}                                     \
		return __real_##name args;            \
	}

WRAP(void *, malloc, (size_t n), (n), ENOMEM, NULL)
WRAP(void *, calloc, (size_t n, size_t m), (n, m), ENOMEM, NULL)
WRAP(void *, realloc, (void *p, size_t n), (p, n), ENOMEM, NULL)
WRAP(void *, aligned_alloc, (size_t a, size_t n), (a, n), ENOMEM, NULL)
WRAP(char *, strdup, (const char *s), (s), ENOMEM, NULL)
WRAP(char *, strndup, (const char *s, size_t n), (s, n), ENOMEM, NULL)
WRAP(void *, tsearch, (const void *k, void **r, int (*f)(const void *, const void *)), (k, r, f),
     ENOMEM, NULL)
WRAP(void *, mmap, (void *a, size_t n, int p, int f, int fd, off_t o), (a, n, p, f, fd, o), ENOMEM,
     MAP_FAILED)
WRAP(void *, mmap64, (void *a, size_t n, int p, int f, int fd, off_t o), (a, n, p, f, fd, o),
     ENOMEM, MAP_FAILED)
WRAP(int, socketpair, (int d, int t, int p, int *v), (d, t, p, v), EMFILE, -1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int f), (fd, m, f), ENOBUFS, -1)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *m, int f), (fd, m, f), ENOMEM, -1)
WRAP(int, eventfd, (unsigned int v, int f), (v, f), EMFILE, -1)
WRAP(int, pipe2, (int *v, int f), (v, f), EMFILE, -1)
WRAP(int, memfd_create, (const char *n, unsigned int f), (n, f), EMFILE, -1)
WRAP(int, dup2, (int a, int b), (a, b), EBUSY, -1)

void *__real_mremap(void *from, size_t old, size_t new, int flags, void *to);
void *__wrap_mremap(void *from, size_t old, size_t new, int flags, ...)
{
	va_list ap;
	void *to;

	if (hit("mremap")) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	va_start(ap, flags);
	to = flags & MREMAP_FIXED ? va_arg(ap, void *) : NULL;
	va_end(ap);
	return __real_mremap(from, old, new, flags, to);
}

typedef void *thread_fn(void *);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, thread_fn *f, void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, thread_fn *f, void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, thread_fn *f, void *arg)
{
	return hit("pthread_create") ? EAGAIN : __real_pthread_create(t, a, f, arg);
}

/* ---- the backend ---- */

#define SLOTS (sizeof(struct be_ops) / sizeof(void *))
_Static_assert(SLOTS <= 192, "as many doors as there are calls");

extern const struct be_ops __real_be_soft;
struct be_ops __wrap_be_soft;
static void *slot[SLOTS];

/* Returns the function that the call goes to; NULL: the call fails. */
__attribute__((used)) static void *fault_op(uint64_t i)
{
	return hit("op") ? NULL : slot[i];
}

/*
 * A door for each call of the table. A door leaves all arguments where they are, whatever their
 * types. The number of the door is on the stack where fault_op's caller would have its return
 * address.
 */
__asm__(".pushsection .text\n"
	".p2align 4\n"
	"fault_common:\n"
	"	push %rdi\n	push %rsi\n	push %rdx\n	push %rcx\n	push %r8\n	"
	"push %r9\n"
	"	mov 48(%rsp), %rdi\n"
	"	call fault_op\n"
	"	mov %rax, %r11\n"
	"	pop %r9\n	pop %r8\n	pop %rcx\n	pop %rdx\n	pop %rsi\n	"
	"pop %rdi\n"
	"	lea 8(%rsp), %rsp\n"
	"	test %r11, %r11\n"
	"	jz 1f\n"
	"	jmp *%r11\n"
	"1:	mov $2, %eax\n"
	"	ret\n"
	".p2align 4\n"
	"fault_doors:\n"
	".set door, 0\n"
	".rept 192\n"
	"	.p2align 4\n"
	"	pushq $door\n"
	"	jmp fault_common\n"
	"	.set door, door + 1\n"
	".endr\n"
	".popsection\n");
extern const char fault_doors[] __attribute__((visibility("hidden")));
_Static_assert(QCU_ERR_MemoryAllocation == 2, "what a door answers");

/* Calls that return something other than a status, or nothing: these never fail. */
static bool left_alone(size_t at)
{
	static const size_t offsets[] = {
		offsetof(struct be_ops, name),		offsetof(struct be_ops, probe),
		offsetof(struct be_ops, close),		offsetof(struct be_ops, mem_valid),
		offsetof(struct be_ops, stream_legacy), offsetof(struct be_ops, memory),
		offsetof(struct be_ops, values_end),
	};
	size_t i;

	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		if (offsets[i] == at)
			return true;
	return at < offsetof(struct be_ops, open);
}

static void __attribute__((constructor)) make_doors(void)
{
	size_t i;
	void *p;

	memcpy(&__wrap_be_soft, &__real_be_soft, sizeof(struct be_ops));
	for (i = 0; i < SLOTS; i++) {
		memcpy(&slot[i], (const char *)&__real_be_soft + i * sizeof(p), sizeof(p));
		if (left_alone(i * sizeof(p)) || !slot[i])
			continue;
		p = (void *)(uintptr_t)(fault_doors + 16 * i);
		memcpy((char *)&__wrap_be_soft + i * sizeof(p), &p, sizeof(p));
	}
}

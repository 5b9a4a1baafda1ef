// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * malloc and its family. Large allocations come from chunks, because the GPU's copy engines are
 * fastest with chunks. All other allocations come from libc. free() tells the two apart by the
 * address: chunks lie in the window, and libc's memory never does.
 *
 * Opening the session starts a mirror on the host and takes GPU memory. A program that does not use
 * CUDA must never open it, even if the library is preloaded. But many CUDA programs allocate their
 * buffers before their first CUDA call. Therefore:
 *
 * - At first, everything comes from libc. This costs one comparison.
 * - Once kernels have been registered (nvcc's start-up code does this before main()), the first
 *   large allocation tries to open the session. If there is no device, it prints nothing and does
 *   not try again; the first CUDA call will report the error.
 * - Once a CUDA call has opened the session, large allocations come from chunks.
 * - In a forked child of a process that had a session, everything comes from libc until the child
 *   makes a CUDA call. Most such children never do.
 *
 * If a mapping fails, libc is asked instead. QCU_MALLOC=0 leaves everything to libc.
 * QCU_MALLOC_THRESHOLD sets which size is large.
 *
 * This file calls libc's allocator by its __libc_ names, which work from the first instruction of
 * the dynamic linker on. The library's own allocations never come from chunks: otherwise making a
 * mapping could need a mapping. library.mk has the linker send the library's calls to __wrap_malloc
 * and so on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qcu-library/malloc/arena.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/malloc/malloc_hook.h"
#include "qcu-library/malloc/malloc_region.h"
#include "qcu-library/malloc/addresses.h"

#define THRESHOLD     ((uint64_t)128 << 10)
#define THRESHOLD_MIN QCUL_PAGE
#define NEVER	      SIZE_MAX

#define PUBLIC __attribute__((visibility("default")))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

enum state {
	STATE_LIBC,  /* large allocations come from libc */
	STATE_ARMED, /* the next large allocation may open the session */
	STATE_ON,
};

static struct {
	/* Memory in [base, base + size) is not libc's. Set once. */
	atomic_size_t window_base, window_size;
	atomic_size_t threshold; /* read by every malloc; NEVER in STATE_LIBC */
	atomic_int state;
	_Atomic(size_t (*)(void *)) libc_usable_size;
} process = {.threshold = NEVER};

/* The acquire pairs with the store in on_session_opened(): a thread that sees the size also sees
 * the base. */
static bool is_window_ptr(const void *p)
{
	size_t size = atomic_load_explicit(&process.window_size, memory_order_acquire);

	return (uintptr_t)p - atomic_load_explicit(&process.window_base, memory_order_relaxed) <
	       size;
}

/* ---- on and off ---- */

static bool wanted(void)
{
	const char *text = getenv("QCU_MALLOC");

	return !text || strcmp(text, "0") != 0;
}

/* Reads the variable once, so that a wrong value is reported once. */
static size_t threshold_wanted(void)
{
	static atomic_size_t known;
	uint64_t bytes = THRESHOLD;

	if (atomic_load(&known))
		return atomic_load(&known);
	if (qcul_env_bytes("QCU_MALLOC_THRESHOLD", &bytes) && bytes < THRESHOLD_MIN)
		bytes = THRESHOLD_MIN;
	atomic_store(&known, bytes);
	return bytes;
}

void qcul_malloc_arm(void)
{
	int from = STATE_LIBC;

	if (wanted() && atomic_compare_exchange_strong(&process.state, &from, STATE_ARMED))
		atomic_store(&process.threshold, threshold_wanted());
}

static void on_session_opened(void)
{
	const struct qcu_hello *hello = qcul_hello();

	/*
	 * Needed in any case: pinned memory lies in the window too, and free() of it must be
	 * detected.
	 */
	if (!atomic_load(&process.window_size)) {
		atomic_store(&process.window_base, hello->window_base);
		atomic_store(&process.window_size, hello->window_size);
	}
	if (!wanted())
		return;
	qcul_arena_start(hello->chunk_bytes);
	atomic_store(&process.state, STATE_ON);
	atomic_store(&process.threshold, threshold_wanted());
	qcul_trace("malloc: large allocations are chunks");
}

static void on_session_refused(void)
{
	int from = STATE_ARMED;

	if (!atomic_compare_exchange_strong(&process.state, &from, STATE_LIBC))
		return;
	atomic_store(&process.threshold, NEVER);
	qcul_trace("malloc: no session, everything stays with libc");
}

static struct qcul_session_user session_user = {.opened = on_session_opened,
						.refused = on_session_refused};

__attribute__((constructor)) static void tell_of_sessions(void)
{
	qcul_session_tell(&session_user);
}

static void after_fork_parent(void)
{
	qcul_arena_after_fork(false);
}

static void reset_malloc_in_child(void)
{
	if (atomic_load(&process.state) == STATE_ON) {
		atomic_store(&process.state, STATE_LIBC);
		atomic_store(&process.threshold, NEVER);
	}
	qcul_arena_after_fork(true);
	/* The child has no registrations. */
	qcul_free_kept();
}

/*
 * This handler is the outermost: from before the fork until after it, large allocations come from
 * libc.
 */
QCUL_AT_FORK(QCUL_FORK_MALLOC, .before = qcul_arena_before_fork, .parent = after_fork_parent,
	     .forget = reset_malloc_in_child)

/* Do large allocations come from chunks? Tries to open the session first if it may. */
static bool on(void)
{
	int now = atomic_load(&process.state);

	if (now == STATE_ARMED) {
		qcul_open_quietly();
		now = atomic_load(&process.state);
	}
	return now == STATE_ON;
}

/* ---- allocating ---- */

static bool large(size_t size)
{
	return __builtin_expect(
		size >= atomic_load_explicit(&process.threshold, memory_order_relaxed), 0);
}

/* Keeps errno, whatever the driver returns. */
static void *chunks(size_t size, size_t align, bool zero, bool grows)
{
	int saved = errno;
	void *p = on() ? qcul_arena_alloc(size, align, zero, grows) : NULL;

	errno = saved;
	return p;
}

PUBLIC void *malloc(size_t size)
{
	if (large(size)) {
		void *p = chunks(size, 1, false, false);

		if (p)
			return p;
	}
	return __libc_malloc(size);
}

PUBLIC void *calloc(size_t count, size_t size)
{
	size_t total;

	if (!__builtin_mul_overflow(count, size, &total) && large(total)) {
		void *p = chunks(total, 1, true, false);

		if (p)
			return p;
	}
	return __libc_calloc(count, size);
}

static void *allocate_aligned(size_t align, size_t size)
{
	if (large(size) && align && !(align & (align - 1))) {
		void *p = chunks(size, align, false, false);

		if (p)
			return p;
	}
	return __libc_memalign(align, size);
}

/* Any alignment is allowed: like glibc, this rounds it up to the next power of two. */
PUBLIC void *memalign(size_t align, size_t size)
{
	size_t power = 1;

	while (power < align && power <= SIZE_MAX / 2)
		power *= 2;
	return allocate_aligned(power < align ? align : power, size);
}

/* Here the alignment must be a power of two, as in C17 and in glibc since 2.38. */
PUBLIC void *aligned_alloc(size_t align, size_t size)
{
	if (!align || align & (align - 1)) {
		errno = EINVAL;
		return NULL;
	}
	return allocate_aligned(align, size);
}

PUBLIC int posix_memalign(void **out, size_t align, size_t size)
{
	int saved = errno;
	void *p;

	if (!align || align & (align - 1) || align % sizeof(void *))
		return EINVAL;
	p = allocate_aligned(align, size);
	errno = saved;
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

PUBLIC void *valloc(size_t size)
{
	return allocate_aligned(QCUL_PAGE, size);
}

PUBLIC void *pvalloc(size_t size)
{
	size_t rounded;

	if (__builtin_add_overflow(size, QCUL_PAGE - 1, &rounded)) {
		errno = ENOMEM;
		return NULL;
	}
	return allocate_aligned(QCUL_PAGE, rounded & ~(QCUL_PAGE - 1));
}

/* ---- free, and the other functions that take a pointer ---- */

/*
 * Aborts as glibc does. A program that frees memory that is not malloc's would go on with a broken
 * heap.
 */
__attribute__((noreturn, cold)) static void invalid(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		abort();
	abort();
}

static size_t size_in_window(const void *p)
{
	return qcul_arena_size(p);
}

static size_t size_in_libc(void *p)
{
	size_t (*f)(void *) = atomic_load_explicit(&process.libc_usable_size, memory_order_relaxed);

	if (!f) {
		/* Not RTLD_NEXT: behind libcudart.so.12 this library comes after libc. */
		void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

		f = libc ? (size_t(*)(void *))dlsym(libc, "malloc_usable_size") : NULL;
		if (!f)
			return 0;
		atomic_store_explicit(&process.libc_usable_size, f, memory_order_relaxed);
	}
	return f(p);
}

/*
 * Natively the GPU keeps the pages of registered memory until cudaHostUnregister, even if the
 * program frees the addresses before. Here the block is not given to another allocation until then.
 */
static bool kept(void *p)
{
	bool twice = false, keep;

	if (__builtin_expect(!qcul_mem_registered(), 1))
		return false;
	keep = qcul_keep_registered(p, size_in_window(p), &twice);
	if (twice)
		invalid("free(): double free detected\n");
	return keep;
}

PUBLIC void free(void *p)
{
	int saved;

	if (__builtin_expect(!is_window_ptr(p), 1)) {
		__libc_free(p);
		return;
	}
	saved = errno;
	if (!kept(p) && !qcul_arena_free(p))
		invalid("free(): invalid pointer\n");
	errno = saved;
}

PUBLIC size_t malloc_usable_size(void *p)
{
	if (!p)
		return 0;
	return is_window_ptr(p) ? size_in_window(p) : size_in_libc(p);
}

/* Moves the block at p to another place. NULL: no memory, errno is set. */
static void *move(void *p, size_t old, size_t size)
{
	void *to = large(size) ? chunks(size, 1, false, size > old) : NULL;

	if (!to)
		to = __libc_malloc(size);
	if (!to)
		return NULL;
	memcpy(to, p, old < size ? old : size);
	free(p);
	return to;
}

static void *realloc_in_window(void *p, size_t size)
{
	size_t old = size_in_window(p);
	void *to;

	if (!old)
		invalid("realloc(): invalid pointer\n");
	if (!size) {
		free(p);
		return NULL;
	}
	/* A registered block stays whole: no part of it may go to another allocation. */
	if (size <= old && qcul_is_registered(p, old))
		return p;
	/* A block that has become small must not keep a chunk. */
	if ((large(size) || size >= old / 2) && qcul_arena_resize(p, size))
		return p;
	to = move(p, old, size);
	return to || size > old ? to : p;
}

/* A libc block that grows large moves to chunks, because its content has to be copied anyway. */
static void *realloc_in_libc(void *p, size_t size)
{
	size_t old = large(size) ? size_in_libc(p) : 0;
	void *to;

	if (!old || size <= old)
		return __libc_realloc(p, size);
	to = chunks(size, 1, false, true);
	if (!to)
		return __libc_realloc(p, size);
	memcpy(to, p, old);
	__libc_free(p);
	return to;
}

PUBLIC void *realloc(void *p, size_t size)
{
	if (!p)
		return malloc(size);
	return is_window_ptr(p) ? realloc_in_window(p, size) : realloc_in_libc(p, size);
}

/*
 * Calls realloc by its public name: a program may have its own realloc, and this pointer may come
 * from it.
 */
PUBLIC void *reallocarray(void *p, size_t count, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(count, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, total);
}

/* ---- the library's own calls end here ---- */

void *__wrap_malloc(size_t size)
{
	return __libc_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return __libc_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return __libc_realloc(p, size);
}

/* Some of this memory was allocated by libc's own calls of malloc. */
void __wrap_free(void *p)
{
	free(p);
}

/*
 * A program that is linked with libcudart.so.12 has this library behind libc. So libcudart.so.12
 * has these functions, too, and they jump to these names.
 */
#define ALSO(name) __asm__(".globl qcul_12_" #name "\n.set qcul_12_" #name ", " #name "\n");

ALSO(malloc)
ALSO(calloc)
ALSO(realloc)
ALSO(reallocarray)
ALSO(free)
ALSO(memalign)
ALSO(aligned_alloc)
ALSO(posix_memalign)
ALSO(valloc)
ALSO(pvalloc)
ALSO(malloc_usable_size)

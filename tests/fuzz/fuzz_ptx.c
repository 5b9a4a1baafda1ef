// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the PTX machine: loads any text and runs every kernel in it. Device memory comes from
 * malloc with its exact size, so that the sanitizer sees each access that the machine should have
 * refused. A kernel that does not end is stopped after a while.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "qcu-device/soft/ptx/base/ptx.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/images.h"

#define BLOCKS_MAX	64
#define BLOCK_BYTES_MAX (1u << 20)
#define BUFFER_BYTES	16384u
#define KERNELS_MAX	8u
#define KERNEL_MS	10 /* of processor time */

static struct {
	void *p;
	size_t size;
} memory[BLOCKS_MAX];

static volatile int cancel;

static uint64_t mem_alloc(void *ctx, size_t size)
{
	void *p;

	(void)ctx;
	if (!size || size > BLOCK_BYTES_MAX)
		return 0;
	for (int i = 0; i < BLOCKS_MAX; i++) {
		if (memory[i].p)
			continue;
		if (posix_memalign(&p, 256, size))
			return 0;
		memset(p, 0, size);
		memory[i].p = p;
		memory[i].size = size;
		return (uintptr_t)p;
	}
	return 0;
}

static void mem_free(void *ctx, uint64_t addr)
{
	(void)ctx;
	for (int i = 0; i < BLOCKS_MAX; i++) {
		if (!addr || (uintptr_t)memory[i].p != addr)
			continue;
		free(memory[i].p);
		memory[i].p = NULL;
		return;
	}
	abort(); /* the machine frees memory that it never got */
}

static struct ptx_range mem_range(void *ctx, uint64_t addr)
{
	(void)ctx;
	for (int i = 0; i < BLOCKS_MAX; i++) {
		uint64_t lo = (uintptr_t)memory[i].p;

		if (lo && addr - lo < memory[i].size)
			return (struct ptx_range){
				.lo = lo, .hi = lo + memory[i].size, .writable = true};
	}
	return (struct ptx_range){0};
}

/* Reads the whole text, so that the sanitizer checks it. */
static void mem_print(void *ctx, const char *text, size_t len)
{
	static volatile char sink;

	(void)ctx;
	for (size_t i = 0; i < len; i++)
		sink = text[i];
	(void)sink;
}

/* For QCU_SOFT_CHECK: says that some of the memory has been written. */
static bool mem_written(void *ctx, uint64_t addr, size_t len)
{
	(void)ctx;
	return (addr ^ len) & 16;
}

static void mem_wrote(void *ctx, uint64_t addr, size_t len)
{
	(void)ctx;
	(void)addr;
	(void)len;
}

static void mem_found(void *ctx, const struct ptx_finding *at)
{
	mem_print(ctx, at->what, strlen(at->what));
	mem_print(ctx, at->kernel, strlen(at->kernel));
	if (at->file)
		mem_print(ctx, at->file, strlen(at->file));
}

static struct ptx_env env = {
	.alloc = mem_alloc,
	.free = mem_free,
	.range = mem_range,
	.print = mem_print,
	.image = fuzz_image,
	.sm_count = 2,
	.threads = 1,
};

static void on_timer(int sig)
{
	(void)sig;
	cancel = 1;
}

static void limit_time(int ms)
{
	const struct itimerval t = {.it_value = {.tv_usec = ms * 1000}};

	cancel = 0;
	setitimer(ITIMER_VIRTUAL, &t, NULL);
}

/* Fills 8-byte parameters with pointers to a buffer, and 4-byte parameters with a length. */
static void fill_params(const struct ptx_kernel_info *info, uint8_t *params, uint64_t buffer)
{
	const uint32_t count = 70;

	for (unsigned int i = 0; i < info->param_count; i++) {
		const struct ptx_param *p = &info->params[i];

		memset(params + p->offset, 1, p->size);
		for (uint32_t at = 0; at + 8 <= p->size; at += 8)
			memcpy(params + p->offset + at, &buffer, 8);
		if (p->size == 4)
			memcpy(params + p->offset, &count, 4);
	}
}

static void run_kernel(const struct ptx_kernel *k, uint64_t buffer, bool cooperative)
{
	const struct ptx_kernel_info *info = ptx_kernel_info(k);
	/* On the heap, with the exact size: the sanitizer watches its end. */
	uint8_t *params = malloc(info->param_bytes ? info->param_bytes : 1);
	struct ptx_launch l = {
		.grid = {2, 1, 2},
		.block = {40, 1, 1},
		.dynamic_shared = 1024,
		.params = params,
		.param_bytes = info->param_bytes,
		.cooperative = cooperative,
		.cancel = &cancel,
	};
	struct ptx_diag diag;

	if (!params)
		return;
	if (info->req_threads[0])
		memcpy(l.block, info->req_threads, sizeof(l.block));
	else if (info->max_threads < l.block[0])
		l.block[0] = info->max_threads;
	fill_params(info, params, buffer);
	limit_time(KERNEL_MS);
	if (ptx_run(k, &l, &diag) != PTX_OK && strlen(diag.text) >= sizeof(diag.text))
		abort();
	limit_time(0);
	free(params);
}

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ptx_module *m;
	struct ptx_diag diag;
	uint64_t buffer;
	char *text;

	signal(SIGVTALRM, on_timer);
	env.complain = mem_print;
	env.found = mem_found;
	env.written = size % 3 ? NULL : mem_written;
	env.wrote = mem_wrote;
	/* Uses both sets of operations, see ptx_module.c. */
	setenv("QCU_SOFT_BASE_OPS", size % 8 ? "0" : "1", 1);
	text = malloc(size ? size : 1);
	buffer = mem_alloc(NULL, BUFFER_BYTES);
	if (!text || !buffer)
		abort();
	fuzz_images(buffer);
	if (size)
		memcpy(text, data, size);
	if (ptx_load(text, size, &env, &m, &diag) == PTX_OK) {
		/* The module must have copied all that it needs of the text. */
		free(text);
		text = NULL;
		for (unsigned int i = 0; i < KERNELS_MAX && ptx_kernel_at(m, i); i++)
			run_kernel(ptx_kernel_at(m, i), buffer, (size + i) % 4 == 0);
		ptx_unload(m);
	} else if (m || !diag.text[0]) {
		abort();
	}
	free(text);
	mem_free(NULL, buffer);
	for (int i = 0; i < BLOCKS_MAX; i++)
		if (memory[i].p)
			abort(); /* memory is lost */
	return 0;
}

FUZZ_ENTRY size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;

	return fuzz_mutate_ptx((char *)data, size, max, &random);
}

FUZZ_ENTRY size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b,
					    size_t b_size, uint8_t *out, size_t max,
					    unsigned int seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;

	return fuzz_cross_ptx((const char *)a, a_size, (const char *)b, b_size, (char *)out, max,
			      &random);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An environment for PTX tests: device memory from malloc with a table of ranges, a buffer for the
 * output of kernels, and a launch in one call. Each test file is one program, so this is a header.
 */
#ifndef TEST_PTX_ENV_H
#define TEST_PTX_ENV_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "qcu-device/soft/ptx/base/ptx.h"

#define WORLD_MAX 64

static struct {
	pthread_mutex_t lock;
	struct {
		uint64_t addr;
		size_t size;
	} mem[WORLD_MAX];
	char text[1 << 16];
	size_t len;
	size_t limit; /* of one allocation */
} world = {.lock = PTHREAD_MUTEX_INITIALIZER, .limit = 64 << 20};

static inline uint64_t world_alloc(void *ctx, size_t size)
{
	uint64_t a = 0;

	(void)ctx;
	if (!size || size > world.limit)
		return 0;
	pthread_mutex_lock(&world.lock);
	for (int i = 0; i < WORLD_MAX && !a; i++)
		if (!world.mem[i].addr) {
			void *p = aligned_alloc(256, (size + 255) & ~(size_t)255);

			assert_non_null(p);
			memset(p, 0, (size + 255) & ~(size_t)255);
			a = (uint64_t)(uintptr_t)p;
			world.mem[i].addr = a;
			world.mem[i].size = size;
		}
	pthread_mutex_unlock(&world.lock);
	return a;
}

static inline void world_free(void *ctx, uint64_t addr)
{
	bool found = false;

	(void)ctx;
	pthread_mutex_lock(&world.lock);
	for (int i = 0; i < WORLD_MAX && !found; i++)
		if (addr && world.mem[i].addr == addr) {
			free((void *)(uintptr_t)addr);
			world.mem[i].addr = 0;
			found = true;
		}
	pthread_mutex_unlock(&world.lock);
	assert_true(found);
}

static inline struct ptx_range world_range(void *ctx, uint64_t addr)
{
	struct ptx_range r = {0};

	(void)ctx;
	pthread_mutex_lock(&world.lock);
	for (int i = 0; i < WORLD_MAX; i++)
		if (world.mem[i].addr && addr >= world.mem[i].addr &&
		    addr - world.mem[i].addr < world.mem[i].size) {
			r.lo = world.mem[i].addr;
			r.hi = r.lo + world.mem[i].size;
			r.writable = true;
		}
	pthread_mutex_unlock(&world.lock);
	return r;
}

static inline void world_print(void *ctx, const char *text, size_t len)
{
	(void)ctx;
	pthread_mutex_lock(&world.lock);
	if (len < sizeof(world.text) - world.len) {
		memcpy(world.text + world.len, text, len);
		world.len += len;
		world.text[world.len] = 0;
	}
	pthread_mutex_unlock(&world.lock);
}

static const struct ptx_env world_env = {
	.alloc = world_alloc,
	.free = world_free,
	.range = world_range,
	.print = world_print,
	.sm_count = 4,
	.threads = 2,
};

static inline void *dev_alloc(size_t n)
{
	uint64_t a = world_alloc(NULL, n);

	assert_true(a);
	return (void *)(uintptr_t)a;
}

static inline void dev_free(void *p)
{
	world_free(NULL, (uint64_t)(uintptr_t)p);
}

static inline struct ptx_module *must_load(const char *text)
{
	struct ptx_module *m = NULL;
	struct ptx_diag d;
	enum ptx_status st = ptx_load(text, strlen(text), &world_env, &m, &d);

	if (st != PTX_OK)
		fail_msg("load: %s, line %u: %s", ptx_status_name(st), d.line, d.text);
	return m;
}

static inline enum ptx_status launch(const struct ptx_module *m, const char *name,
				     unsigned int grid, unsigned int block, unsigned int shared,
				     const void *params, size_t bytes, struct ptx_diag *d)
{
	const struct ptx_kernel *k = ptx_kernel_find(m, name);
	struct ptx_launch l = {.grid = {grid, 1, 1},
			       .block = {block, 1, 1},
			       .dynamic_shared = shared,
			       .params = params,
			       .param_bytes = bytes};

	assert_non_null(k);
	return ptx_run(k, &l, d);
}

static inline void must_launch(const struct ptx_module *m, const char *name, unsigned int grid,
			       unsigned int block, unsigned int shared, const void *params,
			       size_t bytes)
{
	struct ptx_diag d;
	enum ptx_status st = launch(m, name, grid, block, shared, params, bytes, &d);

	if (st != PTX_OK)
		fail_msg("%s: %s, line %u: %s", name, ptx_status_name(st), d.line, d.text);
}

#endif

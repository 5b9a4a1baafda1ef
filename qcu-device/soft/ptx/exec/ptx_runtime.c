// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The part of the runtime API that kernels can call, and with it launches from kernels. nvcc
 * -rdc=true makes calls of functions whose names begin with __cudaCDP2.
 *
 * A launch runs at once, inside the call, on the thread that runs the block. CUDA allows this: a
 * kernel may not wait for what it launches, and what it launches sees all that was written before.
 * So streams and events in kernels order nothing, they are only numbers. A launch to the stream
 * cudaStreamTailLaunch waits for the end of the grid.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/exec/ptx_exec.h"
#include "qcu-device/soft/ptx/memory/ptx_mem.h"

#define MAX_DEPTH 24u
#define MAX_PENDING                                                                   \
	2048u /* parameter buffers of one grid, cudaLimitDevRuntimePendingLaunchCount \
	       */
#define GRAIN	    256u
#define TAIL_STREAM 3u /* cudaStreamTailLaunch */
#define VERSION	    13000u

/* cudaError_t */
enum {
	ERR_SUCCESS = 0,
	ERR_INVALID_VALUE = 1,
	ERR_MEMORY = 2,
	ERR_CONFIGURATION = 9,
	ERR_DEPTH = 65,
	ERR_PENDING = 69,
	ERR_FUNCTION = 98,
	ERR_DEVICE = 101,
};

/* A parameter buffer, with the launch that it is for. It is used again after the launch. */
struct ptx_child {
	const struct ptx_kernel *kernel;
	struct ptx_launch l;
	uint64_t addr;
	uint32_t room;
	bool taken, running;
	struct ptx_child *next;
};

enum runtime {
	RUN_BUFFER = SYS_RUNTIME,
	RUN_LAUNCH,
	RUN_LAST_ERROR,
	RUN_PEEK_ERROR,
	RUN_ERROR_NAME,
	RUN_ERROR_STRING,
	RUN_DEVICE,
	RUN_DEVICE_COUNT,
	RUN_ATTRIBUTE,
	RUN_VERSION,
	RUN_NEW,     /* makes a stream or an event */
	RUN_NOTHING, /* all work before is complete */
	RUN_MALLOC,
	RUN_FREE,
	RUN_MEMCPY,
	RUN_MEMSET,
};

static const struct {
	const char *name;
	uint8_t what, nargs;
} functions[] = {
	{"GetParameterBufferV2", RUN_BUFFER, 4},
	{"LaunchDeviceV2", RUN_LAUNCH, 2},
	{"GetLastError", RUN_LAST_ERROR, 0},
	{"PeekAtLastError", RUN_PEEK_ERROR, 0},
	{"GetErrorName", RUN_ERROR_NAME, 1},
	{"GetErrorString", RUN_ERROR_STRING, 1},
	{"GetDevice", RUN_DEVICE, 1},
	{"GetDeviceCount", RUN_DEVICE_COUNT, 1},
	{"DeviceGetAttribute", RUN_ATTRIBUTE, 3},
	{"RuntimeGetVersion", RUN_VERSION, 1},
	{"StreamCreateWithFlags", RUN_NEW, 2},
	{"StreamDestroy", RUN_NOTHING, 1},
	{"StreamWaitEvent", RUN_NOTHING, 3},
	{"EventCreateWithFlags", RUN_NEW, 2},
	{"EventRecord", RUN_NOTHING, 2},
	{"EventRecordWithFlags", RUN_NOTHING, 3},
	{"EventDestroy", RUN_NOTHING, 1},
	{"Malloc", RUN_MALLOC, 2},
	{"Free", RUN_FREE, 1},
	{"MemcpyAsync", RUN_MEMCPY, 5},
	{"MemsetAsync", RUN_MEMSET, 4},
};

enum ptx_sys ptx_runtime_find(const char *name)
{
	static const char start[] = "__cudaCDP2", end[] = "_ptsz";
	size_t n = strlen(name), len;

	if (n < sizeof(start) || memcmp(name, start, sizeof(start) - 1))
		return SYS_NONE;
	name += sizeof(start) - 1;
	n -= sizeof(start) - 1;
	if (n > sizeof(end) && !strcmp(name + n - (sizeof(end) - 1), end))
		n -= sizeof(end) - 1;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		len = strlen(functions[i].name);
		if (n == len && !memcmp(name, functions[i].name, n))
			return (enum ptx_sys)functions[i].what;
	}
	return SYS_NONE;
}

/* ---- errors: the last one of each thread ---- */

static int32_t *error_of(struct ptx_warp *w, unsigned int lane)
{
	struct ptx_block *b = w->blk;

	if (!b->errors)
		b->errors = calloc((size_t)b->nwarps * PTX_LANES, sizeof(*b->errors));
	return b->errors ? &b->errors[w->id * PTX_LANES + lane] : NULL;
}

static int set_error(struct ptx_warp *w, unsigned int lane, int err)
{
	int32_t *e = err ? error_of(w, lane) : NULL;

	if (e)
		*e = err;
	return err;
}

static int last_error(struct ptx_warp *w, unsigned int lane, bool clear)
{
	int32_t *e = w->blk->errors ? error_of(w, lane) : NULL;
	int err = e ? *e : ERR_SUCCESS;

	if (e && clear)
		*e = ERR_SUCCESS;
	return err;
}

#define TEXT_SIZE 64u

static const struct {
	int code;
	const char *text[2];
} texts[] = {
	{ERR_SUCCESS, {"cudaSuccess", "no error"}},
	{ERR_INVALID_VALUE, {"cudaErrorInvalidValue", "invalid argument"}},
	{ERR_MEMORY, {"cudaErrorMemoryAllocation", "out of memory"}},
	{ERR_CONFIGURATION, {"cudaErrorInvalidConfiguration", "invalid configuration argument"}},
	{ERR_DEPTH,
	 {"cudaErrorLaunchMaxDepthExceeded",
	  "launch would exceed maximum depth of nested launches"}},
	{ERR_PENDING,
	 {"cudaErrorLaunchPendingCountExceeded", "launch would exceed maximum pending launches"}},
	{ERR_FUNCTION, {"cudaErrorInvalidDeviceFunction", "invalid device function"}},
	{ERR_DEVICE, {"cudaErrorInvalidDevice", "invalid device ordinal"}},
	{-1, {"unrecognized error code", "unrecognized error code"}},
};
#define TEXTS (sizeof(texts) / sizeof(texts[0]))

/* Names and texts of errors lie in device memory, where kernels can read them. */
static uint64_t error_text(struct ptx_module *m, int code, bool string)
{
	uint64_t at = atomic_load(&m->error_texts), none = 0;
	size_t i = 0;

	if (!at) {
		at = m->env.alloc(m->env.ctx, TEXTS * 2 * TEXT_SIZE);
		for (i = 0; at && i < TEXTS * 2; i++)
			strcpy((char *)(uintptr_t)(at + i * TEXT_SIZE), texts[i / 2].text[i % 2]);
		if (at && m->env.written)
			m->env.wrote(m->env.ctx, at, TEXTS * 2 * TEXT_SIZE);
		if (at && !atomic_compare_exchange_strong(&m->error_texts, &none, at)) {
			m->env.free(m->env.ctx, at);
			at = none;
		}
	}
	for (i = 0; i + 1 < TEXTS && texts[i].code != code; i++)
		;
	return at ? at + (2 * i + string) * TEXT_SIZE : 0;
}

/* ---- launches ---- */

static bool read_dim(struct ptx_warp *w, const struct ptx_arg *a, unsigned int lane, uint32_t d[3])
{
	uint8_t *area;

	if (!a->in_area || a->size != 12)
		return false;
	area = ptx_frame_area(w->frame, a->off);
	memcpy(&d[0], ptx_cell(area, lane, 0), 4);
	memcpy(&d[1], ptx_cell(area, lane, 4), 4);
	memcpy(&d[2], ptx_cell(area, lane, 8), 4);
	return true;
}

static const struct ptx_kernel *kernel_at(const struct ptx_module *m, uint64_t v)
{
	uint64_t i = (v - PTX_CODE_BASE) / 16;

	if (v < PTX_CODE_BASE || v % 16 || i >= m->nfuncs)
		return NULL;
	return m->funcs[i]->kernel;
}

/* g->lock is held. NULL: *err says why. */
static struct ptx_child *take_child(struct ptx_grid *g, uint32_t bytes, int *err)
{
	struct ptx_module *m = g->mod;
	unsigned int count = 0;
	struct ptx_child *c;

	for (c = g->child; c; c = c->next) {
		if (!c->taken && c->room >= bytes)
			return c;
		count++;
	}
	for (c = g->tail; c; c = c->next)
		count++;
	*err = ERR_PENDING;
	if (count >= MAX_PENDING)
		return NULL;
	*err = ERR_MEMORY;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->room = (bytes + GRAIN) / GRAIN * GRAIN;
	c->addr = m->env.alloc(m->env.ctx, c->room);
	if (!c->addr) {
		free(c);
		return NULL;
	}
	c->next = g->child;
	g->child = c;
	return c;
}

static uint64_t new_buffer(struct ptx_warp *w, const struct ptx_call *c, unsigned int lane)
{
	struct ptx_grid *g = w->blk->grid;
	struct ptx_launch l = {.stack_bytes = g->l.stack_bytes, .cancel = g->l.cancel};
	const struct ptx_kernel *k = kernel_at(g->mod, ptx_arg_get(w, &c->args[0], lane));
	struct ptx_child *child;
	int err = ERR_SUCCESS;

	l.dynamic_shared = (uint32_t)ptx_arg_get(w, &c->args[3], lane);
	if (!read_dim(w, &c->args[1], lane, l.grid) || !read_dim(w, &c->args[2], lane, l.block)) {
		ptx_fault(w, lane, PTX_ILLEGAL_ADDRESS, "dimensions that are none");
		return 0;
	}
	if (!k) {
		set_error(w, lane, ERR_FUNCTION);
		return 0;
	}
	l.param_bytes = k->info.param_bytes;
	if (g->depth + 1 >= MAX_DEPTH) {
		set_error(w, lane, ERR_DEPTH);
		return 0;
	}
	if (ptx_launch_check(k, &l, NULL) != PTX_OK) {
		set_error(w, lane, ERR_CONFIGURATION);
		return 0;
	}
	pthread_mutex_lock(&g->lock);
	child = take_child(g, k->info.param_bytes, &err);
	if (child) {
		child->taken = true;
		child->kernel = k;
		child->l = l;
		child->l.params = (const void *)(uintptr_t)child->addr;
	}
	pthread_mutex_unlock(&g->lock);
	set_error(w, lane, child ? ERR_SUCCESS : err);
	if (child && g->mod->env.written)
		g->mod->env.wrote(g->mod->env.ctx, child->addr, child->room);
	return child ? child->addr : 0;
}

/* Moves a child to the end of the list of those that wait for the end of the grid. */
static void put_off(struct ptx_grid *g, struct ptx_child *child)
{
	struct ptx_child **p = &g->child;

	while (*p != child)
		p = &(*p)->next;
	*p = child->next;
	child->next = NULL;
	for (p = &g->tail; *p; p = &(*p)->next)
		;
	*p = child;
}

static bool is_grid_cancelled(const struct ptx_grid *g)
{
	return g->l.cancel && *g->l.cancel;
}

static int launch_child(struct ptx_warp *w, unsigned int lane, uint64_t addr, uint64_t stream)
{
	struct ptx_grid *g = w->blk->grid;
	struct ptx_child *child;
	struct ptx_diag diag = {0};
	enum ptx_status st;

	pthread_mutex_lock(&g->lock);
	for (child = g->child; child; child = child->next)
		if (child->taken && !child->running && child->addr == addr)
			break;
	if (child && stream == TAIL_STREAM)
		put_off(g, child);
	else if (child)
		child->running = true;
	pthread_mutex_unlock(&g->lock);
	if (!child)
		return ERR_INVALID_VALUE;
	if (stream == TAIL_STREAM)
		return ERR_SUCCESS;
	/* Kernels so short that they never look at `cancel` may launch one another for long. */
	st = is_grid_cancelled(g) ? PTX_KILLED
				  : g->below(child->kernel, &child->l, g->depth + 1, NULL, &diag);
	pthread_mutex_lock(&g->lock);
	child->taken = child->running = false;
	pthread_mutex_unlock(&g->lock);
	if (st != PTX_OK) {
		ptx_fault(w, lane, st, "a launch from this kernel failed");
		w->blk->diag = diag;
	}
	return ERR_SUCCESS;
}

static void free_children(struct ptx_module *m, struct ptx_child *c)
{
	while (c) {
		struct ptx_child *next = c->next;

		m->env.free(m->env.ctx, c->addr);
		free(c);
		c = next;
	}
}

/*
 * Called when all blocks of a grid have ended. A launch to the tail stream takes the place of the
 * grid that made it. So a kernel that launches itself there again and again never gets deeper: its
 * own such launches go to the front of the list of the grid above it, through *tails.
 */
enum ptx_status ptx_runtime_end(struct ptx_grid *g, struct ptx_child **tails, struct ptx_diag *diag)
{
	enum ptx_status st = (enum ptx_status)atomic_load(&g->status);
	struct ptx_child *c, **p;

	if (st != PTX_OK)
		*diag = g->diag;
	free_children(g->mod, g->child);
	if (st == PTX_OK && tails) {
		for (p = &g->tail; *p; p = &(*p)->next)
			;
		*p = *tails;
		*tails = g->tail;
		g->tail = NULL;
	}
	while (st == PTX_OK && (c = g->tail)) {
		g->tail = c->next;
		c->next = NULL;
		st = is_grid_cancelled(g) ? PTX_KILLED
					  : g->below(c->kernel, &c->l, g->depth, &g->tail, diag);
		free_children(g->mod, c);
	}
	free_children(g->mod, g->tail);
	return st;
}

/* ---- memory ---- */

/* The host address of a range of device memory; NULL after a fault. */
static void *range_at(struct ptx_warp *w, unsigned int lane, uint64_t addr, uint64_t len,
		      bool write)
{
	const struct ptx_env *env = &w->blk->grid->mod->env;
	struct ptx_range r = {0};

	if (!(addr >> PTX_SPACE_SHIFT))
		r = env->range(env->ctx, addr);
	if (addr >= r.lo && addr < r.hi && r.hi - addr >= len && (!write || r.writable))
		return (void *)(uintptr_t)addr;
	ptx_fault(w, lane, PTX_ILLEGAL_ADDRESS, "%s of %llu bytes at 0x%llx",
		  write ? "write" : "read", (unsigned long long)len, (unsigned long long)addr);
	return NULL;
}

static void copy_for_lane(struct ptx_warp *w, unsigned int lane, uint64_t to, uint64_t from,
			  uint64_t len)
{
	const struct ptx_env *env = &w->blk->grid->mod->env;
	void *d = len ? range_at(w, lane, to, len, true) : NULL;
	const void *s = d ? range_at(w, lane, from, len, false) : NULL;

	if (!s)
		return;
	memmove(d, s, len);
	if (env->written)
		env->wrote(env->ctx, to, len);
}

static void fill_for_lane(struct ptx_warp *w, unsigned int lane, uint64_t to, int value,
			  uint64_t len)
{
	const struct ptx_env *env = &w->blk->grid->mod->env;
	void *d = len ? range_at(w, lane, to, len, true) : NULL;

	if (!d)
		return;
	memset(d, value, len);
	if (env->written)
		env->wrote(env->ctx, to, len);
}

/* Stores a result where the kernel wants it. */
static int store_result(struct ptx_warp *w, unsigned int lane, uint64_t addr, uint64_t v,
			unsigned int size)
{
	uint8_t *p;

	if (!addr)
		return ERR_INVALID_VALUE;
	p = ptx_resolve_one(w, lane, addr, size, true);
	if (p)
		memcpy(p, &v, size);
	return ERR_SUCCESS;
}

/* ---- calls ---- */

static int attribute(struct ptx_warp *w, unsigned int lane, const uint64_t *a)
{
	const struct ptx_env *env = &w->blk->grid->mod->env;
	int32_t v;

	if ((uint32_t)a[2] >= (env->devices ? env->devices : 1))
		return ERR_DEVICE;
	if (!env->attribute || !env->attribute(env->ctx, (uint32_t)a[1], &v))
		return ERR_INVALID_VALUE;
	return store_result(w, lane, a[0], (uint32_t)v, 4);
}

static int allocate(struct ptx_warp *w, unsigned int lane, const uint64_t *a)
{
	uint64_t addr = a[1] ? ptx_heap_alloc(w->blk->grid->mod, a[1]) : 0;

	if (a[1] && !addr)
		return ERR_MEMORY;
	return store_result(w, lane, a[0], addr, 8);
}

static int simple(struct ptx_warp *w, unsigned int lane, enum runtime what, const uint64_t *a)
{
	const struct ptx_env *env = &w->blk->grid->mod->env;
	static _Atomic uint64_t tokens;

	switch (what) {
	case RUN_LAUNCH:
		return launch_child(w, lane, a[0], a[1]);
	case RUN_DEVICE:
		return store_result(w, lane, a[0], env->device, 4);
	case RUN_DEVICE_COUNT:
		return store_result(w, lane, a[0], env->devices ? env->devices : 1, 4);
	case RUN_ATTRIBUTE:
		return attribute(w, lane, a);
	case RUN_VERSION:
		return store_result(w, lane, a[0], VERSION, 4);
	case RUN_NEW:
		return store_result(w, lane, a[0], 0x1000 + atomic_fetch_add(&tokens, 1) * 16, 8);
	case RUN_MALLOC:
		return allocate(w, lane, a);
	case RUN_FREE:
		return !a[0] || ptx_heap_free(w->blk->grid->mod, a[0]) ? ERR_SUCCESS
								       : ERR_INVALID_VALUE;
	case RUN_MEMCPY:
		copy_for_lane(w, lane, a[0], a[1], a[2]);
		return ERR_SUCCESS;
	case RUN_MEMSET:
		fill_for_lane(w, lane, a[0], (int)a[1], a[2]);
		return ERR_SUCCESS;
	default:
		return ERR_SUCCESS;
	}
}

static uint64_t run_lane_call(struct ptx_warp *w, const struct ptx_call *c, unsigned int lane,
			      enum runtime what)
{
	struct ptx_module *m = w->blk->grid->mod;
	uint64_t a[5] = {0};

	if (what == RUN_BUFFER)
		return new_buffer(w, c, lane);
	for (unsigned int i = 0; i < c->nargs && i < 5; i++)
		a[i] = ptx_arg_get(w, &c->args[i], lane);
	if (what == RUN_LAST_ERROR || what == RUN_PEEK_ERROR)
		return (uint32_t)last_error(w, lane, what == RUN_LAST_ERROR);
	if (what == RUN_ERROR_NAME || what == RUN_ERROR_STRING)
		return error_text(m, (int)a[0], what == RUN_ERROR_STRING);
	return (uint32_t)set_error(w, lane, simple(w, lane, what, a));
}

void ptx_runtime_call(struct ptx_warp *w, const struct ptx_call *c, enum ptx_sys sys, uint32_t m)
{
	unsigned int nargs = UINT32_MAX;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (functions[i].what == sys && functions[i].nargs == c->nargs)
			nargs = c->nargs;
	if (nargs != c->nargs) {
		ptx_fault(w, ptx_lane(m), PTX_ILLEGAL_ADDRESS, "%u arguments to a system function",
			  c->nargs);
		return;
	}
	for (uint32_t r = m; r && !w->fault; r &= r - 1) {
		unsigned int lane = ptx_lane(r);

		ptx_arg_put(w, c, lane, run_lane_call(w, c, lane, (enum runtime)sys));
	}
}

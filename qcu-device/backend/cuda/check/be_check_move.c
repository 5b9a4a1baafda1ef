// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device memory that leaves and comes back: with a store that is full, small and large allocations,
 * a graph over them, memory that is freed while it is away, and memory that stays. The same with
 * arrays. Then how fast it is: beside plain copies and beside NVIDIA's checkpoints, and what
 * allocations cost.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/backend/cuda/check/be_check.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* Registered memory, given out in order. All is free again when all has come back. */
struct shelf {
	char *p;
	uint64_t size, next, out;
};

static void *shelf_take(void *ctx, uint64_t bytes)
{
	struct shelf *s = ctx;

	check(bytes <= BE_PIECE, "no more than a piece is asked for");
	if (bytes > s->size - s->next)
		return NULL;
	s->next += bytes;
	s->out += bytes;
	return s->p + s->next - bytes;
}

static void shelf_give(void *ctx, void *p, uint64_t bytes)
{
	struct shelf *s = ctx;

	(void)p;
	s->out -= bytes;
	if (!s->out)
		s->next = 0;
}

static bool open_shelf(struct check *c, struct shelf *s, uint64_t size)
{
	*s = (struct shelf){.size = size};
	s->p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		    -1, 0);
	return check(s->p != MAP_FAILED, "memory for the store") &&
	       want(CALL(c, host_register, s->p, size), 0, "host_register of the store");
}

static void close_shelf(struct check *c, struct shelf *s)
{
	check(!s->out, "the store is empty again");
	want(CALL(c, host_unregister, s->p), 0, "host_unregister of the store");
	munmap(s->p, s->size);
}

static uint64_t leave(struct check *c, uint64_t bytes, struct shelf *s)
{
	const struct be_store store = {.ctx = s, .take = shelf_take, .give = shelf_give};
	uint64_t left = 0, before = c->ops->mem_away(c->be, 0);

	want(CALL(c, mem_leave, 0, bytes, &store, &left), 0, "mem_leave");
	check(c->ops->mem_away(c->be, 0) == before + left, "mem_away says what has left");
	return left;
}

static uint64_t come_back(struct check *c)
{
	uint64_t back = 0;

	want(CALL(c, mem_return, 0, &back), 0, "mem_return");
	check(!c->ops->mem_away(c->be, 0), "all is back");
	return back;
}

/* ---- is it right? ---- */

#define BLOCKS 4
static const uint64_t sizes[BLOCKS] = {1000, 3 * MIB, 65 * MIB, GIB + 44 * MIB};
#define POOLED 1u /* this one is of the default pool */

struct moved {
	uint64_t addr, words;
	uint32_t base;	 /* the words were base before any kernel */
	uint32_t passes; /* of the kernel since then */
	struct be_graph *graph;
};

/* Where graphs copy the first words to. */
#define COPIED 512u
static uint32_t *copied(struct check *c)
{
	return (uint32_t *)((char *)c->window + CHECK_WINDOW - COPIED);
}

static uint32_t after_passes(const struct moved *m, uint32_t i)
{
	uint32_t v = m->base, n;

	/* The graph sets the first word before each pass. */
	for (n = 0; n < m->passes && (i || !n); n++)
		v = v * 2654435761u + i;
	return v;
}

static void check_words(struct check *c, const struct moved *m)
{
	const uint32_t *w = c->window;
	uint64_t at, i, some, bad = 0;

	for (at = 0; at < m->words; at += some) {
		some = m->words - at < CHECK_WINDOW / 4 ? m->words - at : CHECK_WINDOW / 4;
		if (CALL(c, copy_d2h, c->window, m->addr + 4 * at, 4 * some, c->legacy) ||
		    CALL(c, stream_sync, c->legacy))
			break;
		for (i = 0; i<some; i += some> 4096 ? 509 : 1)
			bad += w[i] != after_passes(m, (uint32_t)(at + i));
	}
	check(at == m->words && !bad, "%llu words are right", (unsigned long long)m->words);
}

/*
 * A graph that sets the first word, runs a kernel over all words, and copies the first words to the
 * end of the window.
 */
static void make_moved(struct check *c, struct moved *m, uint64_t size, uint32_t base,
		       struct be_pool *pool)
{
	struct {
		uint64_t words;
		uint32_t n;
	} p = {0, (uint32_t)(size / 4)};
	static const uint32_t before[] = {0, 1};
	struct be_node nodes[] = {
		{
			.type = QCU_NODE_MEMSET,
			.set = {.width = 4, .height = 1, .value = base, .elem = 4},
		},
		{
			.type = QCU_NODE_KERNEL,
			.index = 1,
			.deps = &before[0],
			.dep_count = 1,
			.kernel = check_kernel(c, "check_host"),
			.launch = {.grid = {(uint32_t)(size / 4 + 255) / 256, 1, 1},
				   .block = {256, 1, 1},
				   .params = &p,
				   .param_bytes = 12},
		},
		{
			.type = QCU_NODE_COPY,
			.index = 2,
			.deps = &before[1],
			.dep_count = 1,
			.box = {.dst = {.addr = (uintptr_t)copied(c),
					.pitch = COPIED,
					.rows = 1,
					.host = true},
				.src = {.pitch = COPIED, .rows = 1},
				.width = COPIED,
				.height = 1,
				.depth = 1},
		},
	};
	struct be_memset set = {.width = size, .height = 1, .value = base, .elem = 4};

	*m = (struct moved){.words = size / 4, .base = base};
	if (pool)
		want(CALL(c, pool_alloc, pool, size, c->legacy, &m->addr), 0, "pool_alloc");
	else
		want(CALL(c, mem_alloc, 0, size, &m->addr), 0, "mem_alloc of what moves");
	p.words = set.dst = nodes[0].set.dst = nodes[2].box.src.addr = m->addr;
	want(CALL(c, mem_set, &set, c->legacy), 0, "mem_set");
	want(CALL(c, graph_make, 0, nodes, 3, &m->graph), 0, "graph_make over it");
}

static void run_graph(struct check *c, struct moved *m)
{
	uint32_t i, bad = 0;

	want(CALL(c, graph_launch, m->graph, c->legacy), 0, "graph_launch over it");
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
	m->passes++;
	for (i = 0; i < COPIED / 4; i++)
		bad += copied(c)[i] != after_passes(m, i);
	check(!bad, "the graph has copied the right words");
}

static void all_leave_and_return(struct check *c, struct moved *m, struct shelf *s)
{
	uint64_t left, movable;
	unsigned int i;

	want(CALL(c, device_sync, 0), 0, "device_sync");
	movable = c->ops->mem_movable(c->be, 0);
	left = leave(c, UINT64_MAX, s);
	check(left == movable && !c->ops->mem_movable(c->be, 0), "all that can leave has left");
	for (i = 0; i < BLOCKS; i++)
		check(c->ops->mem_valid(c->be, m[i].addr, m[i].words * 4), "it is still valid");
	check(come_back(c) == left, "as much has come back");
	for (i = 0; i < BLOCKS; i++) {
		run_graph(c, &m[i]);
		check_words(c, &m[i]);
	}
}

static void some_leave(struct check *c, struct moved *m, struct shelf *s)
{
	const uint64_t whole = s->size;
	uint64_t room, left;
	unsigned int i;

	want(CALL(c, device_sync, 0), 0, "device_sync");
	check(!leave(c, 0, s), "nothing leaves if nothing is wanted");
	for (room = 0; room < whole; room += 170 * MIB) {
		s->size = room;
		left = leave(c, UINT64_MAX, s);
		check(left <= room && left == s->out, "no more leaves than the store has room for");
		check(come_back(c) == left, "it has come back");
	}
	s->size = whole;
	left = leave(c, 1, s);
	check(left && left < whole, "a part leaves");
	come_back(c);
	for (i = 0; i < BLOCKS; i++)
		check_words(c, &m[i]);
}

static void frees_what_is_away(struct check *c, struct moved *m, struct shelf *s,
			       struct be_pool *pool)
{
	const uint64_t gone = m->addr;
	uint64_t again = 0;

	want(CALL(c, graph_destroy, m->graph), 0, "graph_destroy");
	want(CALL(c, device_sync, 0), 0, "device_sync");
	leave(c, UINT64_MAX, s);
	want(CALL(c, mem_free, m->addr), 0, "mem_free of what is away");
	want(CALL(c, pool_trim, pool, 0), 0, "pool_trim while memory is away");
	check(!c->ops->mem_valid(c->be, gone, 1), "it is not valid any more");
	want(CALL(c, mem_alloc, 0, m->words * 4, &again), 0, "mem_alloc while memory is away");
	come_back(c);
	want(CALL(c, mem_free, again), 0, "mem_free");
	want(CALL(c, mem_free, gone), QCU_ERR_InvalidValue, "no second mem_free");
}

/* ---- arrays ---- */

/* Words that are seed and place. The last one has more than two pieces of the store. */
enum { READ, WRITTEN, LEVELS, LAYERS, ROWS, ARRAYS };
static const struct be_array_desc shapes[ARRAYS] = {
	[READ] = {.width = 700, .height = 500, .kind = 1, .bits = {32}},
	[WRITTEN] =
		{.width = 1024, .height = 700, .kind = 1, .bits = {32}, .flags = BE_ARRAY_SURFACE},
	[LEVELS] = {.width = 1024, .height = 1024, .kind = 1, .bits = {32}, .levels = 11},
	[LAYERS] = {.width = 300,
		    .height = 200,
		    .depth = 20,
		    .kind = 1,
		    .bits = {32},
		    .flags = BE_ARRAY_LAYERED},
	[ROWS] = {.width = 8192, .height = 5000, .kind = 1, .bits = {32}},
};

struct moved_array {
	struct be_array *a;
	const struct be_array_desc *d;
	uint32_t factor, term; /* what kernels have made of each word */
};

/* Copies rows to the window, or from it. */
static bool copy_rows(struct check *c, const struct moved_array *m, uint32_t level, uint32_t z,
		      uint32_t y, uint32_t rows, uint32_t width, bool out)
{
	const struct be_side array = {.array = m->a, .level = level, .y = y, .z = z};
	const struct be_side window = {
		.addr = (uintptr_t)c->window, .pitch = 4 * width, .rows = rows, .host = true};
	const struct be_box box = {.dst = out ? window : array,
				   .src = out ? array : window,
				   .width = 4 * width,
				   .height = rows,
				   .depth = 1};

	return !CALL(c, copy_box, &box, c->legacy) && !CALL(c, stream_sync, c->legacy);
}

static uint32_t array_word(const struct moved_array *m, uint32_t level, uint32_t z, uint32_t at)
{
	return (at * 2654435761u + 977 * level + 31 * z) * m->factor + m->term;
}

/* Fills all of an array, or returns how many words are wrong. */
static uint64_t pass_array(struct check *c, const struct moved_array *m, bool fill)
{
	uint32_t *w = c->window, level, z, y, i, rows, size[3];
	uint64_t bad = 0;

	for (level = 0; level < (m->d->levels ? m->d->levels : 1); level++) {
		be_array_extent(m->d, level, size);
		for (z = 0; z < size[2]; z++)
			for (y = 0; y < size[1]; y += rows) {
				rows = size[1] - y < 1000 ? size[1] - y : 1000;
				if (!fill)
					bad += !copy_rows(c, m, level, z, y, rows, size[0], true);
				for (i = 0; i < rows * size[0]; i++) {
					uint32_t v = array_word(m, level, z, y * size[0] + i);

					bad += !fill && w[i] != v;
					w[i] = v;
				}
				if (fill)
					bad += !copy_rows(c, m, level, z, y, rows, size[0], false);
			}
	}
	return bad;
}

struct array_objects {
	uint64_t texture, surface;
	struct be_graph *graph; /* copies the first rows of READ to the end of the window */
};

static void make_objects(struct check *c, const struct moved_array *m, struct array_objects *o)
{
	const struct qcu_texture_msg t = {.kind = QCU_TEXTURE_ARRAY};
	const struct be_node node = {
		.type = QCU_NODE_COPY,
		.box = {.dst = {.addr = (uintptr_t)copied(c),
				.pitch = COPIED,
				.rows = 1,
				.host = true},
			.src = {.array = m[READ].a, .y = 3},
			.width = COPIED,
			.height = 1,
			.depth = 1},
	};

	want(CALL(c, texture_create, 0, &t, m[READ].a, &o->texture), 0, "texture_create");
	want(CALL(c, surface_create, 0, m[WRITTEN].a, 0, &o->surface), 0, "surface_create");
	want(CALL(c, graph_make, 0, &node, 1, &o->graph), 0, "graph_make with an array");
}

static void use_objects(struct check *c, struct moved_array *m, const struct array_objects *o)
{
	const uint32_t width = m[READ].d->width, n = width * m[READ].d->height;
	const uint32_t written = m[WRITTEN].d->width * m[WRITTEN].d->height;
	struct {
		uint64_t out, texture;
		uint32_t width, n;
	} read = {c->scratch, o->texture, width, n};
	struct {
		uint64_t surface;
		uint32_t width, n;
	} write = {o->surface, m[WRITTEN].d->width, written};
	struct be_launch l = {.grid = {(n + 255) / 256, 1, 1},
			      .block = {256, 1, 1},
			      .params = &read,
			      .param_bytes = sizeof(read)};
	uint32_t *w = c->window, i, bad = 0;

	want(CALL(c, launch, check_kernel(c, "check_texture"), &l, c->legacy), 0,
	     "launch with a texture");
	l.grid.x = (written + 255) / 256;
	l.params = &write;
	l.param_bytes = sizeof(write);
	want(CALL(c, launch, check_kernel(c, "check_surface"), &l, c->legacy), 0,
	     "launch with a surface");
	m[WRITTEN].factor *= 5;
	m[WRITTEN].term = m[WRITTEN].term * 5 + 1;
	want(CALL(c, graph_launch, o->graph, c->legacy), 0, "graph_launch with an array");
	want(CALL(c, copy_d2h, w, c->scratch, 4 * n, c->legacy), 0, "copy_d2h of what was read");
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync after the kernels");
	for (i = 0; i < n; i++)
		bad += w[i] != array_word(&m[READ], 0, 0, i);
	check(!bad, "the texture has the right words");
	for (i = 0, bad = 0; i < COPIED / 4; i++)
		bad += copied(c)[i] != array_word(&m[READ], 0, 0, 3 * width + i);
	check(!bad, "the graph has copied the right words of the array");
}

static void arrays_leave(struct check *c, struct shelf *s)
{
	uint64_t free_before = 0, free_after = 0, total, left;

	want(CALL(c, device_sync, 0), 0, "device_sync");
	want(CALL(c, mem_info, 0, &free_before, &total), 0, "mem_info");
	left = leave(c, UINT64_MAX, s);
	check(!c->ops->mem_movable(c->be, 0), "all arrays have left");
	want(CALL(c, mem_info, 0, &free_after, &total), 0, "mem_info");
	/* The first copies may have taken some for CUDA itself. The software GPU does not say. */
	check(c->ops->memory || free_after + 16 * MIB >= free_before + left,
	      "their memory is free");
}

static void check_arrays(struct check *c, struct shelf *s)
{
	struct moved_array m[ARRAYS];
	const uint64_t before = c->ops->mem_movable(c->be, 0);
	struct array_objects o = {0};
	uint64_t bytes = 0;
	unsigned int i, round;

	for (i = 0; i < ARRAYS; i++) {
		m[i] = (struct moved_array){.d = &shapes[i], .factor = i + 1, .term = 77 * i};
		if (!want(CALL(c, array_create, 0, &shapes[i], NULL, 0, &m[i].a), 0,
			  "array_create"))
			return;
		bytes += (uint64_t)shapes[i].width * shapes[i].height * 4;
		check(!pass_array(c, &m[i], true), "array %u is filled", i);
	}
	if (c->devices > 1)
		fprintf(report, "with %u devices arrays stay\n", c->devices);
	else
		check(c->ops->mem_movable(c->be, 0) >= before + bytes, "arrays can leave");
	make_objects(c, m, &o);
	for (round = 0; round < 2; round++) {
		arrays_leave(c, s);
		come_back(c);
		use_objects(c, m, &o);
		for (i = 0; i < ARRAYS; i++)
			check(!pass_array(c, &m[i], false), "array %u has its words", i);
	}
	arrays_leave(c, s);
	want(CALL(c, graph_destroy, o.graph), 0, "graph_destroy");
	want(CALL(c, texture_destroy, 0, o.texture), 0, "texture_destroy while it is away");
	want(CALL(c, surface_destroy, 0, o.surface), 0, "surface_destroy while it is away");
	for (i = 0; i < ARRAYS; i++)
		want(CALL(c, array_destroy, m[i].a), 0, "array_destroy while it is away");
	come_back(c);
	check(c->ops->mem_movable(c->be, 0) == before, "nothing of the arrays is left");
}

void check_moves(struct check *c)
{
	struct moved m[BLOCKS];
	struct be_pool *pool;
	struct shelf s;
	unsigned int i;

	if (!c->movable)
		return;
	/* What pools keep would leave without being away. */
	if (!want(CALL(c, pool_default, 0, &pool), 0, "pool_default") ||
	    !want(CALL(c, pool_trim, pool, 0), 0, "pool_trim"))
		return;
	if (!check(c->ops->mem_leave && c->ops->mem_return && c->ops->mem_movable &&
			   c->ops->mem_away,
		   "memory can leave") ||
	    !open_shelf(c, &s, GIB + 256 * MIB))
		return;
	for (i = 0; i < BLOCKS; i++)
		make_moved(c, &m[i], sizes[i], 17 * i + 3, i == POOLED ? pool : NULL);
	some_leave(c, m, &s);
	all_leave_and_return(c, m, &s);
	all_leave_and_return(c, m, &s);
	for (i = 0; i < BLOCKS; i++)
		frees_what_is_away(c, &m[i], &s, pool);
	check_arrays(c, &s);
	close_shelf(c, &s);
}

/* ---- how fast is it? ---- */

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* The driver's own functions. None has a structure that must be filled in. */
struct driver {
	int (*init)(unsigned int flags);
	int (*retain)(void **ctx, int dev);
	int (*current)(void *ctx);
	int (*alloc)(uint64_t *p, size_t bytes);
	int (*free)(uint64_t p);
	int (*sync)(void);
	int (*fill)(uint64_t p, unsigned char value, size_t bytes);
	int (*lock)(int pid, void *args);
	int (*checkpoint)(int pid, void *args);
	int (*restore)(int pid, void *args);
	int (*unlock)(int pid, void *args);
};

static bool open_driver(struct driver *d)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return false;
#define FIND(member, name) *(void **)&d->member = dlsym(lib, name)
	FIND(init, "cuInit");
	FIND(retain, "cuDevicePrimaryCtxRetain");
	FIND(current, "cuCtxSetCurrent");
	FIND(alloc, "cuMemAlloc_v2");
	FIND(free, "cuMemFree_v2");
	FIND(sync, "cuCtxSynchronize");
	FIND(fill, "cuMemsetD8_v2");
	FIND(lock, "cuCheckpointProcessLock");
	FIND(checkpoint, "cuCheckpointProcessCheckpoint");
	FIND(restore, "cuCheckpointProcessRestore");
	FIND(unlock, "cuCheckpointProcessUnlock");
#undef FIND
	return d->init && d->retain && d->current && d->alloc && d->free && d->sync && d->fill;
}

static void time_allocation(struct check *c, const struct driver *d, uint64_t size)
{
	const unsigned int rounds = size < GIB ? 200 : 50;
	double ours, native, began;
	unsigned int i;
	uint64_t p;

	/* In turn, so that both meet the same machine. The first of each is not counted. */
	for (i = 0, ours = native = 0; i <= rounds; i++) {
		began = seconds_now();
		if (CALL(c, mem_alloc, 0, size, &p) || CALL(c, mem_free, p))
			return;
		ours += i ? seconds_now() - began : 0;
		began = seconds_now();
		if (d->alloc(&p, size) || d->free(p))
			return;
		native += i ? seconds_now() - began : 0;
	}
	fprintf(report,
		"allocate and free %llu KiB: %.1f us, the driver's own %.1f us, ratio %.2f\n",
		(unsigned long long)(size >> 10), ours / rounds * 1e6, native / rounds * 1e6,
		ours / native);
}

static double rate_of_copy(struct check *c, bool down, uint64_t device, void *host, uint64_t bytes)
{
	double began = seconds_now();
	int ret = down ? CALL(c, copy_d2h, host, device, bytes, c->legacy)
		       : CALL(c, copy_h2d, device, host, bytes, c->legacy);

	if (ret || CALL(c, stream_sync, c->legacy))
		return 0;
	return bytes / (seconds_now() - began) / 1e9;
}

static void time_move(struct check *c, uint64_t bytes, struct shelf *s)
{
	struct be_memset set = {.width = bytes, .height = 1, .value = 0x5a, .elem = 1};
	double began, out, in, down = 0, up = 0;
	uint64_t left, addr = 0;
	unsigned int i;

	if (CALL(c, mem_alloc, 0, bytes, &addr)) {
		fprintf(report, "%llu GiB: there is no room\n", (unsigned long long)(bytes >> 30));
		return;
	}
	set.dst = addr;
	want(CALL(c, mem_set, &set, c->legacy), 0, "mem_set");
	for (i = 0; i < 3; i++) {
		double r = rate_of_copy(c, true, addr, s->p, bytes);

		down = r > down ? r : down;
		r = rate_of_copy(c, false, addr, s->p, bytes);
		up = r > up ? r : up;
	}
	for (i = 0; i < 3; i++) {
		want(CALL(c, device_sync, 0), 0, "device_sync");
		began = seconds_now();
		left = leave(c, bytes, s);
		out = seconds_now() - began;
		began = seconds_now();
		come_back(c);
		in = seconds_now() - began;
		fprintf(report,
			"%.1f GiB: out %.3f s, %.1f GB/s (plain copies %.1f); in %.3f s, %.1f GB/s "
			"(%.1f)\n",
			(double)left / GIB, out, left / out / 1e9, down, in, left / in / 1e9, up);
	}
	want(CALL(c, mem_free, addr), 0, "mem_free");
}

void time_moves(struct check *c)
{
	static const uint64_t allocations[] = {64 << 10,  2 * MIB,   64 * MIB, 128 * MIB,
					       256 * MIB, 512 * MIB, GIB,      4 * GIB};
	static const uint64_t gib[] = {1, 8, 40};
	struct driver d = {0};
	struct shelf s;
	size_t i;

	if (!c->movable || !c->gib)
		return;
	if (open_driver(&d))
		for (i = 0; i < sizeof(allocations) / sizeof(*allocations); i++)
			time_allocation(c, &d, allocations[i]);
	else
		fprintf(report, "no driver: its allocations are not timed\n");
	/* Whatever else the session has leaves, too. */
	if (!open_shelf(c, &s, c->gib * GIB + 64 * MIB))
		return;
	for (i = 0; i < sizeof(gib) / sizeof(*gib); i++)
		if (gib[i] <= c->gib)
			time_move(c, gib[i] * GIB, &s);
	close_shelf(c, &s);
}

/* A process with memory of the driver's own, until the pipe is closed. */
static void hold_memory(const struct driver *d, uint64_t bytes, int ready, int wait)
{
	void *ctx;
	uint64_t p;
	char ok = 0;

	ok = !d->init(0) && !d->retain(&ctx, 0) && !d->current(ctx) && !d->alloc(&p, bytes) &&
	     !d->fill(p, 0x5a, bytes) && !d->sync();
	if (write(ready, &ok, 1) == 1)
		while (read(wait, &ok, 1) > 0)
			;
	_exit(0);
}

static void time_checkpoint(const struct driver *d, uint64_t gib)
{
	int ready[2], wait[2];
	double began, out, in;
	char ok = 0;
	pid_t pid;

	if (pipe(ready) || pipe(wait))
		return;
	pid = fork();
	if (!pid) {
		close(wait[1]);
		hold_memory(d, gib * GIB, ready[1], wait[0]);
	}
	close(ready[1]);
	close(wait[0]);
	if (pid > 0 && read(ready[0], &ok, 1) == 1 && ok && !d->init(0) && !d->lock(pid, NULL)) {
		began = seconds_now();
		ok = !d->checkpoint(pid, NULL);
		out = seconds_now() - began;
		began = seconds_now();
		ok = ok && !d->restore(pid, NULL);
		in = seconds_now() - began;
		ok = ok && !d->unlock(pid, NULL);
		fprintf(report, "cuCheckpointProcess, %llu GiB: %s, out %.3f s, in %.3f s\n",
			(unsigned long long)gib, ok ? "right" : "failed", out, in);
	} else {
		fprintf(report, "cuCheckpointProcess, %llu GiB: not possible here\n",
			(unsigned long long)gib);
	}
	close(wait[1]);
	close(ready[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void checkpoint_in_child(const struct driver *d, uint64_t gib)
{
	pid_t pid;

	/* Who has called CUDA cannot fork processes that do. */
	fflush(report);
	pid = fork();
	if (!pid) {
		time_checkpoint(d, gib);
		fflush(report);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

void time_checkpoints(uint64_t most)
{
	static const uint64_t gib[] = {1, 8, 40};
	struct driver d = {0};
	size_t i;

	if (!most || !open_driver(&d))
		return;
	if (!d.lock || !d.checkpoint || !d.restore || !d.unlock) {
		fprintf(report, "the driver has no cuCheckpointProcess\n");
		return;
	}
	for (i = 0; i < sizeof(gib) / sizeof(*gib); i++)
		if (gib[i] <= most)
			checkpoint_in_child(&d, gib[i]);
}

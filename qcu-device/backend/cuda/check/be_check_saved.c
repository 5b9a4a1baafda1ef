// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a saved session needs of the backend: one process makes memory, a module and textures, and
 * says where they are. A fresh one must get all memory at the same addresses. Where CUDA puts the
 * variables of a module, and which number a texture has, is reported: a session is restored only if
 * they are the same.
 *
 * Then once more, with a kernel that prints in between, and a second module after that: CUDA keeps
 * memory of its own for printf from then on, which must not lie where something is wanted.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "qcu-device/backend/cuda/check/be_check.h"
#include "qcu-device/backend/image.h"

#define MIB	 ((uint64_t)1 << 20)
#define BLOCKS	 40u
#define VARS	 16u
#define TEXTURES 4u

/* What the first process tells the second one. */
static struct told {
	struct be_wanted memory[BLOCKS][2];
	struct be_wanted vars[VARS];
	size_t var_count;
	uint64_t texture[TEXTURES];
	bool whole;
	bool prints;
	struct be_wanted later[VARS]; /* variables of the second module */
	size_t later_count;
} * told;

static uint64_t size_of_block(unsigned int i)
{
	static const uint64_t sizes[] = {1000, 64 << 10, 3 * MIB, 700 << 10, 300 * MIB};

	return i < 5 ? sizes[i] : (i * 7919u) % 400000 + 1;
}

/* Every fourth one is of the default pool. */
static int allocate_block(struct check *c, unsigned int i, uint64_t size, uint64_t *addr)
{
	struct be_pool *p;
	int ret;

	if (i % 4 != 3)
		return CALL(c, mem_alloc, 0, size, addr);
	ret = CALL(c, pool_default, 0, &p);
	return ret ? ret : CALL(c, pool_alloc, p, size, c->legacy, addr);
}

/* Nobody else has the textures' array: it goes with the process. */
static bool make_textures(struct check *c, uint64_t *number)
{
	const struct be_array_desc desc = {.width = 64, .height = 64, .levels = 1, .bits = {32}};
	struct qcu_texture_msg t = {.kind = QCU_TEXTURE_ARRAY};
	struct be_array *a;
	unsigned int i;
	bool ok = want(CALL(c, array_create, 0, &desc, NULL, 0, &a), 0, "array_create");

	for (i = 0; i < TEXTURES && ok; i++)
		ok = want(CALL(c, texture_create, 0, &t, a, &number[i]), 0, "texture_create");
	return ok;
}

static bool begin_backend(struct check *c)
{
	const struct be_options opt = {
		.gpus = 1, .movable = true, .verbose = c->verbose, .capture_stdout = told->prints};

	if (!want(c->ops->open(&c->be, &opt), 0, "open"))
		return false;
	c->legacy = c->ops->stream_legacy(c->be, 0);
	return true;
}

static bool print_something(struct check *c)
{
	const int n = 3;
	const struct be_launch l = {
		.grid = {1, 1, 1}, .block = {3, 1, 1}, .params = &n, .param_bytes = sizeof(n)};
	char text[256];
	size_t got = 0;

	return want(CALL(c, launch, check_kernel(c, "check_print"), &l, c->legacy), 0, "launch") &&
	       want(CALL(c, stream_sync, c->legacy), 0, "stream_sync") &&
	       want(CALL(c, print_read, text, sizeof(text), &got), 0, "print_read") &&
	       check(got, "a kernel prints");
}

static bool print_and_load(struct check *c, const struct image_names *names)
{
	struct be_module *second;

	if (!print_something(c) ||
	    !want(CALL(c, module_load, c->image, c->image_len, NULL, &second), 0, "module_load"))
		return false;
	told->later_count = c->ops->module_vars(c->be, second, names, told->later, VARS);
	return check(told->later_count <= VARS, "it has %zu variables", told->later_count);
}

static void say_where(struct check *c)
{
	struct image_names names;
	bool busy = true;
	unsigned int i;

	if (!begin_backend(c) ||
	    !want(CALL(c, module_load, c->image, c->image_len, NULL, &c->module), 0,
		  "module_load") ||
	    !want(image_names(c->image, c->image_len, &names), 0, "image_names"))
		return;
	for (i = 0; i < BLOCKS; i++) {
		struct be_wanted *w = told->memory[i];

		w->size = size_of_block(i);
		if (!want(allocate_block(c, i, w->size, &w->addr), 0, "memory"))
			return;
		(void)c->ops->mem_block(c->be, w->addr, w + 1);
		if (told->prints && i == BLOCKS / 2 && !print_and_load(c, &names))
			return;
	}
	told->var_count = c->ops->module_vars(c->be, c->module, &names, told->vars, VARS);
	check(told->var_count >= 2 && told->var_count <= VARS, "it has %zu variables",
	      told->var_count);
	told->whole = make_textures(c, told->texture);
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
	check(!c->ops->unsaved(c->be, &busy) && !busy, "it can be saved");
	image_names_free(&names);
	c->ops->close(c->be);
}

static uint64_t allocate_wanted(struct check *c, unsigned int i)
{
	const struct be_wanted *w = told->memory[i];
	uint64_t addr = 0;

	c->ops->want(c->be, w, w[1].size ? 2 : 1);
	if (allocate_block(c, i, w->size, &addr))
		addr = 0;
	c->ops->want(c->be, NULL, 0);
	return addr;
}

/* A kernel works on memory that was zero. */
static void use_memory(struct check *c, unsigned int i)
{
	struct {
		uint64_t words;
		uint32_t n;
	} p = {told->memory[i][0].addr, 200};
	struct be_launch l = {
		.grid = {1, 1, 1}, .block = {256, 1, 1}, .params = &p, .param_bytes = 12};
	uint32_t words[200], n;
	bool right = true;

	if (told->memory[i][0].size < sizeof(words))
		return;
	want(CALL(c, launch, check_kernel(c, "check_host"), &l, c->legacy), 0, "launch");
	want(CALL(c, copy_d2h, words, p.words, sizeof(words), c->legacy), 0, "copy_d2h");
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
	for (n = 0; n < 200; n++)
		right = right && words[n] == n;
	check(right, "memory of %llu bytes was zero, and can be used",
	      (unsigned long long)told->memory[i][0].size);
}

/* At an address that nothing has, and one where something is. */
static void ask_for_what_is_in_use(struct check *c)
{
	uint64_t mine = 0;

	want(CALL(c, mem_alloc, 0, 3 * MIB, &mine), 0, "mem_alloc");
	told->memory[0][0] = (struct be_wanted){.addr = mine, .size = 3 * MIB};
	memset(&told->memory[0][1], 0, sizeof(told->memory[0][1]));
	check(!allocate_wanted(c, 0), "an address in use cannot be had");
	want(CALL(c, mem_free, mine), 0, "mem_free");
}

/* As a mirror does before anything else. */
static void hold_told_places(struct check *c)
{
	struct be_wanted places[BLOCKS];
	unsigned int i;

	for (i = 0; i < BLOCKS; i++)
		places[i] = told->memory[i][told->memory[i][1].size != 0];
	want(CALL(c, hold, places, BLOCKS), 0, "hold");
}

static struct be_module *load_wanted(struct check *c, const struct be_wanted *vars, size_t count)
{
	struct be_module *m = NULL;

	c->ops->want(c->be, vars, count);
	want(CALL(c, module_load, c->image, c->image_len, NULL, &m), 0, "module_load");
	c->ops->want(c->be, NULL, 0);
	return m;
}

/* Modules are settled in the order of their addresses. */
static int settle_both(struct check *c, struct be_module *second, const struct image_names *names)
{
	const bool first = told->vars[0].addr < told->later[0].addr;
	int ret = c->ops->module_settle(c->be, first ? c->module : second, names);

	return ret ? ret : c->ops->module_settle(c->be, first ? second : c->module, names);
}

static void find_all_again(struct check *c)
{
	uint64_t texture[TEXTURES], odd = 0;
	struct be_module *second = NULL;
	struct image_names names;
	unsigned int i;
	int ret = 0;

	if (!begin_backend(c) ||
	    !want(image_names(c->image, c->image_len, &names), 0, "image_names"))
		return;
	if (told->prints)
		hold_told_places(c);
	c->module = load_wanted(c, told->vars, told->var_count);
	if (told->prints)
		second = load_wanted(c, told->later, told->later_count);
	if (!c->module || (told->prints && !second))
		return;
	if (second)
		ret = settle_both(c, second, &names);
	for (i = 0; i < BLOCKS; i++)
		check(allocate_wanted(c, i) == told->memory[i][0].addr,
		      "memory of %llu bytes is at %llx again",
		      (unsigned long long)told->memory[i][0].size,
		      (unsigned long long)told->memory[i][0].addr);
	if (!second)
		ret = c->ops->module_settle(c->be, c->module, &names);
	fprintf(report, "variables of a fresh process%s: %s (%zu, the first at %llx)\n",
		second ? ", after a kernel has printed" : "",
		ret ? "at other addresses" : "at the same addresses",
		told->var_count + told->later_count, (unsigned long long)told->vars[0].addr);
	if (second)
		print_something(c);
	for (i = 0; i < BLOCKS; i++)
		use_memory(c, i);
	if (told->whole && make_textures(c, texture))
		fprintf(report, "textures of a fresh process: %s (the first is %llx)\n",
			memcmp(texture, told->texture, sizeof(texture)) ? "other numbers"
									: "the same numbers",
			(unsigned long long)texture[0]);
	want(CALL(c, mem_alloc, 0, 5000, &odd), 0, "mem_alloc of anything");
	for (i = 0; i < BLOCKS; i++)
		want(CALL(c, mem_free, told->memory[i][0].addr), 0, "mem_free");
	want(CALL(c, mem_free, odd), 0, "mem_free");
	ask_for_what_is_in_use(c);
	image_names_free(&names);
	c->ops->close(c->be);
}

void check_saved(struct check *c, void (*in_child)(struct check *c, void (*fn)(struct check *c)))
{
	if (!c->movable || !c->ops->mem_block)
		return;
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!check(told != MAP_FAILED, "shared memory"))
		return;
	in_child(c, say_where);
	in_child(c, find_all_again);
	memset(told, 0, sizeof(*told));
	told->prints = true;
	in_child(c, say_where);
	in_child(c, find_all_again);
	munmap(told, sizeof(*told));
}

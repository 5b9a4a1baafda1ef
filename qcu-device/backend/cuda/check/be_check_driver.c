// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The checks of what the driver API adds: texts of the compiler, links, virtual memory, streams
 * that wait for numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/cuda/check/be_check.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"

static const char bad[] =
	HEAD ".visible .entry k()\n{\n.reg .b32 %a;\nmov.u32 %a, %nowhere;\nret;\n}\n";
static const char defines[] = HEAD ".visible .func (.param .b32 r) twice(.param .b32 v)\n{\n"
				   ".reg .b32 %a;\nld.param.b32 %a, [v];\nadd.u32 %a, %a, "
				   "%a;\nst.param.b32 [r], %a;\nret;\n}\n";
static const char uses[] =
	HEAD ".extern .func (.param .b32 r) twice(.param .b32 v);\n"
	     ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %p;\n.reg .b32 %a;\n"
	     "ld.param.u64 %p, [p];\ncvta.to.global.u64 %p, %p;\nld.global.u32 %a, [%p];\n"
	     "{\n.param .b32 r;\n.param .b32 v;\nst.param.b32 [v], %a;\n"
	     "call (r), twice, (v);\nld.param.b32 %a, [r];\n}\nst.global.u32 [%p], %a;\nret;\n}\n";

static uint32_t read_device_word(struct check *c, uint64_t addr)
{
	uint32_t v = 0;

	if (CALL(c, copy_d2h, &v, addr, sizeof(v), c->legacy) || CALL(c, stream_sync, c->legacy))
		return ~0u;
	return v;
}

static int set_device_words(struct check *c, uint64_t addr, uint64_t bytes, uint32_t value)
{
	const struct be_memset m = {
		.dst = addr, .width = bytes, .height = 1, .value = value, .elem = 4};

	return CALL(c, mem_set, &m, c->legacy);
}

static struct be_jit jit_with_texts(void)
{
	struct be_jit jit = {.options.flags = QCU_JIT_LOGS};

	jit.info = calloc(1, BE_LOG_BYTES);
	jit.error = calloc(1, BE_LOG_BYTES);
	return jit;
}

static void end_texts(struct be_jit *jit)
{
	free(jit->info);
	free(jit->error);
}

static void check_texts(struct check *c)
{
	struct be_jit jit = jit_with_texts();
	struct be_module *m = NULL;

	if (!check(jit.info && jit.error, "memory for texts"))
		return;
	want(CALL(c, module_load, bad, sizeof(bad), &jit, &m), QCU_ERR_InvalidPtx,
	     "PTX with an error");
	check(strstr(jit.error, "line 7") && strstr(jit.error, "nowhere"),
	      "the text has line and reason: %.200s", jit.error);
	jit.error[0] = jit.info[0] = '\0';
	jit.options.max_regs = 32;
	jit.options.optimize = 2;
	jit.options.flags |= QCU_JIT_VERBOSE | QCU_JIT_LINES | QCU_JIT_OPTIMIZE;
	want(CALL(c, module_load, defines, sizeof(defines), &jit, &m), 0, "good PTX with options");
	check(!jit.error[0], "no text of errors");
	want(CALL(c, module_unload, m), 0, "module_unload");
	end_texts(&jit);
}

static void run_linked(struct check *c, const void *image, size_t len)
{
	struct be_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
	struct be_module *m = NULL;
	struct be_kernel *k = NULL;
	uint64_t at = c->scratch;

	if (!want(CALL(c, module_load, image, len, NULL, &m), 0, "the linked image is a module"))
		return;
	l.params = &at;
	l.param_bytes = sizeof(at);
	want(CALL(c, kernel_find, m, "k", &k), 0, "with the kernel");
	want(set_device_words(c, at, 4, 21), 0, "memset");
	if (k)
		want(CALL(c, launch, k, &l, c->legacy), 0, "which runs");
	check(read_device_word(c, at) == 42, "and calls the function of the other unit");
	want(CALL(c, module_unload, m), 0, "module_unload");
}

static void check_links(struct check *c)
{
	const struct qcu_jit options = {.flags = QCU_JIT_LOGS};
	struct be_jit jit = jit_with_texts();
	struct be_link *l = NULL;
	const void *image = NULL;
	size_t len = 0;

	if (!check(jit.info && jit.error, "memory for texts"))
		return;
	want(CALL(c, link_create, 0, &options, &l), 0, "link_create");
	want(CALL(c, link_add, l, QCU_LINK_PTX, uses, sizeof(uses), &jit), 0, "link_add");
	check(CALL(c, link_complete, l, &jit, &image, &len) != 0, "a function is missing");
	check(strstr(jit.error, "twice"), "which the text names: %.200s", jit.error);
	want(CALL(c, link_destroy, l), 0, "link_destroy");
	jit.error[0] = '\0';
	want(CALL(c, link_create, 0, &options, &l), 0, "link_create");
	want(CALL(c, link_add, l, QCU_LINK_PTX, bad, sizeof(bad), &jit), QCU_ERR_InvalidPtx,
	     "an error in PTX");
	check(strstr(jit.error, "line 7"), "with its line: %.200s", jit.error);
	want(CALL(c, link_destroy, l), 0, "link_destroy");
	want(CALL(c, link_create, 0, &options, &l), 0, "link_create");
	want(CALL(c, link_add, l, QCU_LINK_PTX, uses, sizeof(uses), &jit), 0, "link_add");
	want(CALL(c, link_add, l, QCU_LINK_PTX, defines, sizeof(defines), &jit), 0, "link_add");
	if (want(CALL(c, link_complete, l, &jit, &image, &len), 0, "link_complete"))
		run_linked(c, image, len);
	want(CALL(c, link_destroy, l), 0, "link_destroy");
	end_texts(&jit);
}

static void check_pieces_side_by_side(struct check *c, uint64_t at, uint64_t unit,
				      struct be_phys *a, struct be_phys *b)
{
	want(CALL(c, phys_map, a, 0, at, unit), 0, "phys_map");
	check(!CALL(c, mem_valid, at, 4), "nobody may use it yet");
	want(CALL(c, phys_access, at, unit, 0, 3), 0, "phys_access");
	check(CALL(c, mem_valid, at, unit), "a mapping is valid");
	check(!CALL(c, mem_valid, at, unit + 1), "up to its end");
	want(CALL(c, phys_map, b, 0, at + unit, 2 * unit), 0, "phys_map behind it");
	want(CALL(c, phys_access, at + unit, 2 * unit, 0, 3), 0, "phys_access");
	check(CALL(c, mem_valid, at + 4, 3 * unit - 4), "two mappings are valid together");
	check(!CALL(c, mem_valid, at + 4, 3 * unit), "up to their end");
	want(CALL(c, mem_free, at), QCU_ERR_InvalidValue, "a mapping is no allocation");
	want(set_device_words(c, at, 3 * unit, 7), 0, "a memset over the border");
	check(read_device_word(c, at + unit - 4) == 7 && read_device_word(c, at + unit) == 7,
	      "on both sides");
	want(CALL(c, copy_d2d, c->scratch, at + unit - 2048, 4096, 0, c->legacy), 0,
	     "a copy over the border");
	check(read_device_word(c, c->scratch + 4092) == 7, "is whole");
}

static void check_virtual(struct check *c)
{
	struct be_phys *a = NULL, *b = NULL;
	uint64_t unit = 0, at = 0, far = 0, before = 0, after = 0, total;
	bool compressible = true;

	if (!want(CALL(c, phys_grain, 0, false, &unit), 0, "phys_grain") ||
	    !check(unit && !(unit & (unit - 1)), "%llu bytes", (unsigned long long)unit))
		return;
	want(CALL(c, mem_info, 0, &before, &total), 0, "mem_info");
	want(CALL(c, va_reserve, 512ull << 30, unit, &at), 0, "512 GiB of addresses");
	want(CALL(c, va_reserve, 4 * unit, unit, &far), 0, "and a few more");
	check(at && far && at % unit == 0 && far % unit == 0, "aligned");
	check(!CALL(c, mem_valid, at, 1), "which are not valid");
	want(CALL(c, phys_create, 0, unit, QCU_PHYS_FLAGS, &a, &compressible), 0, "phys_create");
	want(CALL(c, phys_create, 0, 2 * unit, 0, &b, &compressible), 0, "phys_create");
	check(!compressible, "not compressible without a wish");
	if (!at || !far || !a || !b)
		return;
	check_pieces_side_by_side(c, at, unit, a, b);
	want(CALL(c, phys_map, b, 0, far, 2 * unit), 0, "the same memory elsewhere");
	want(CALL(c, phys_access, far, 2 * unit, 0, 3), 0, "phys_access");
	want(set_device_words(c, far + 8, 4, 9), 0, "memset");
	check(read_device_word(c, at + unit + 8) == 9, "is seen at both addresses");
	want(CALL(c, phys_unmap, at + unit, 2 * unit), 0, "phys_unmap");
	check(!CALL(c, mem_valid, at + unit, 4), "which is no longer valid");
	check(CALL(c, mem_valid, at, unit) && CALL(c, mem_valid, far, 2 * unit), "the others are");
	check(read_device_word(c, far + 8) == 9, "with their content");
	want(CALL(c, phys_map, a, 0, at + unit, unit), 0, "other memory at that address");
	want(CALL(c, phys_access, at + unit, unit, 0, 3), 0, "phys_access");
	check(read_device_word(c, at + unit) == 7, "has its own content");
	want(CALL(c, phys_unmap, at, unit), 0, "phys_unmap");
	want(CALL(c, phys_unmap, at + unit, unit), 0, "phys_unmap");
	want(CALL(c, phys_unmap, far, 2 * unit), 0, "phys_unmap");
	want(CALL(c, phys_destroy, a), 0, "phys_destroy");
	want(CALL(c, phys_destroy, b), 0, "phys_destroy");
	want(CALL(c, va_free, at, 512ull << 30), 0, "va_free");
	want(CALL(c, va_free, far, 4 * unit), 0, "va_free");
	want(CALL(c, mem_info, 0, &after, &total), 0, "mem_info");
	check(after + (8u << 20) >= before, "the memory is back");
	want(CALL(c, device_sync, 0), 0, "no error is left behind");
}

static int issue_stream_value(struct check *c, struct be_stream *s, uint8_t what, uint64_t addr,
			      uint64_t v, uint16_t flags)
{
	const struct qcu_stream_value sv = {
		.addr = addr, .value = v, .what = what, .bytes = 4, .flags = flags};

	return CALL(c, stream_value, s, &sv);
}

static void check_values(struct check *c)
{
	struct be_stream *a = NULL, *b = NULL;
	volatile uint32_t *w = c->window;
	uint64_t at = c->scratch;

	want(CALL(c, stream_create, 0, 1, 0, &a), 0, "stream_create");
	want(CALL(c, stream_create, 0, 1, 0, &b), 0, "stream_create");
	if (!a || !b)
		return;
	want(set_device_words(c, at, 64, 0), 0, "memset");
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
	want(issue_stream_value(c, a, QCU_VALUE_WAIT, at, 5, QCU_VALUE_GEQ), 0, "a stream waits");
	want(issue_stream_value(c, a, QCU_VALUE_WRITE, at + 4, 6, 0), 0, "and writes then");
	want(CALL(c, stream_query, a), QCU_ERR_NotReady, "it waits");
	want(issue_stream_value(c, b, QCU_VALUE_WRITE, at, 5, 0), 0, "another stream writes");
	want(CALL(c, stream_sync, a), 0, "which ends the wait");
	check(read_device_word(c, at + 4) == 6, "and the number is there");
	w[0] = 1;
	want(issue_stream_value(c, a, QCU_VALUE_WAIT, (uintptr_t)w, 6, QCU_VALUE_AND), 0,
	     "a wait for the host's memory");
	want(CALL(c, stream_query, a), QCU_ERR_NotReady, "it waits");
	w[0] = 2;
	want(CALL(c, stream_sync, a), 0, "the host ends it");
	want(CALL(c, stream_destroy, a), 0, "stream_destroy");
	want(CALL(c, stream_destroy, b), 0, "stream_destroy");
}

static void check_tensor_maps(struct check *c)
{
	struct qcu_tensor_msg t = {
		.what = QCU_TENSOR_TILED,
		.type = 7, /* float */
		.rank = 2,
		.addr = c->scratch,
		.dim = {16, 8},
		.stride = {64},
		.box = {16, 8},
		.step = {1, 1},
	};
	uint8_t map[QCU_TENSOR_MAP_BYTES], moved[sizeof(map)];

	want(CALL(c, tensor_map, 0, &t, map), 0, "a tensor map");
	t.box[0] = 0;
	want(CALL(c, tensor_map, 0, &t, map), QCU_ERR_InvalidValue, "a tile of nothing");
	t.what = QCU_TENSOR_MOVE;
	t.addr = c->scratch + 64;
	memcpy(t.map, map, sizeof(map));
	want(CALL(c, tensor_map, 0, &t, moved), 0, "a map with another address");
	check(memcmp(map, moved, sizeof(map)) != 0, "it is another map");
}

void check_driver(struct check *c)
{
	check_texts(c);
	check_links(c);
	check_virtual(c);
	check_values(c);
	check_tensor_maps(c);
}

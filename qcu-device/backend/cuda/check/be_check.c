// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tries a backend alone, without a guest, a mirror or QEMU. So it shows whether the GPU fails, or
 * the way to it. It asks the backend for what the mirror will ask for, and also for wrong things.
 *
 *   be_check soft|PLUGIN.so FATBIN [seconds for timings; 0: none]
 *
 * BE_CHECK_MOVABLE=1: device memory can leave, and does. BE_CHECK_GIB=N: with that, how fast N GiB
 * leave and come back, and what allocations cost. BE_CHECK_VERBOSE=1: the backend is verbose.
 *
 * The fatal error comes last, in a process of its own. Exit code 0: all was as it should be.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/backend/cuda/check/be_check.h"

static void check_device(struct check *c)
{
	struct qcu_device_desc desc;
	uint32_t driver = 0, runtime = 0;
	uint64_t avail = 0, total = 0;
	unsigned int count = 0, i;

	want(CALL(c, versions, &driver, &runtime), 0, "versions");
	want(CALL(c, device_count, &count), 0, "device_count");
	fprintf(report, "        backend %s, driver %u, runtime %u, %u device(s)\n", c->ops->name,
		driver, runtime, count);
	check(count > 0, "there is a device");
	for (i = 0; i < count; i++) {
		if (!want(CALL(c, device_desc, i, &desc), 0, "device_desc"))
			continue;
		/* numbers of cudaDeviceAttr: 75 and 76: compute capability, 16: multiprocessors */
		fprintf(report, "        device %u: %s, %d.%d, %d SMs, %.1f GiB\n", i, desc.name,
			desc.attr[75], desc.attr[76], desc.attr[16], desc.total_mem / 1073741824.0);
		check(desc.name[0] && desc.attr[75] >= 5 && desc.attr[16] > 0 && desc.total_mem,
		      "device %u is described", i);
	}
	want(CALL(c, mem_info, 0, &avail, &total), 0, "mem_info");
	check(avail && avail <= total, "%.1f of %.1f GiB are free", avail / 1073741824.0,
	      total / 1073741824.0);
	c->devices = count;
}

static uint64_t gone_count(const struct check *c)
{
	return c->ops->mem_gone ? atomic_load(c->ops->mem_gone) : 0;
}

static void check_alloc(struct check *c)
{
	uint64_t a = 0, b = 0, gone;

	want(CALL(c, mem_alloc, 0, 1 << 20, &a), 0, "mem_alloc");
	want(CALL(c, mem_alloc, 0, 300, &b), 0, "mem_alloc of an odd size");
	check(a && b && a % 256 == 0 && b % 256 == 0, "allocations are aligned");
	check(CALL(c, mem_valid, a, 1 << 20), "a whole allocation is valid");
	check(CALL(c, mem_valid, a + 4096, 100), "a part of one is valid");
	check(!CALL(c, mem_valid, a, (1 << 20) + 1), "one byte past it is not");
	check(!CALL(c, mem_valid, a + 1, UINT64_MAX), "a length that wraps is not");
	check(!CALL(c, mem_valid, 0, 1), "null is not");
	check(!CALL(c, mem_valid, QCU_WINDOW_BASE, 1), "the window is not");
	want(CALL(c, mem_free, a + 256), QCU_ERR_InvalidValue, "no free inside an allocation");
	gone = gone_count(c);
	want(CALL(c, mem_free, a), 0, "mem_free");
	check(gone_count(c) != gone || !c->ops->mem_gone, "is counted");
	want(CALL(c, mem_free, a), QCU_ERR_InvalidValue, "no second free");
	check(!CALL(c, mem_valid, a, 1), "freed memory is not valid");
	want(CALL(c, mem_alloc, 0, 1ull << 60, &a), QCU_ERR_MemoryAllocation, "no exabyte");
	want(CALL(c, mem_free, b), 0, "mem_free, the other");
	want(CALL(c, device_sync, 0), 0, "no error is left behind");
}

/* Memory that is freed and allocated again: CUDA says how much is free, whoever has kept it. */
static void check_again(struct check *c)
{
	uint64_t a[40], before = 0, after = 0, total;
	unsigned int i;

	want(CALL(c, mem_info, 0, &before, &total), 0, "mem_info");
	for (i = 0; i < 40; i++)
		want(CALL(c, mem_alloc, 0, (uint64_t)(i + 1) << 17, &a[i]), 0, "one of many");
	for (i = 0; i < 40; i++)
		want(CALL(c, mem_free, a[i]), 0, "and its end");
	want(CALL(c, mem_alloc, 0, 40ull << 17, &a[0]), 0, "one of them again");
	check(CALL(c, mem_valid, a[0], 40ull << 17), "which is valid");
	check(!CALL(c, mem_valid, a[0], (40ull << 17) + 1), "up to its end");
	want(CALL(c, mem_free, a[0]), 0, "and freed");
	want(CALL(c, mem_free, a[0]), QCU_ERR_InvalidValue, "once");
	want(CALL(c, mem_info, 0, &after, &total), 0, "mem_info");
	check(after + (8u << 20) >= before, "%lld KiB fewer are free",
	      (long long)(before - after) / 1024);
}

#define SMALL 700u

static uint64_t small_size(unsigned int i)
{
	static const uint64_t sizes[] = {1, 512, 4000, 65536, 100000, 524288};

	return sizes[i % 6];
}

/* Allocates every step-th one. Returns how many are not as they must be. */
static unsigned int get_small(struct check *c, uint64_t *a, unsigned int step)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < SMALL; i += step) {
		struct be_memset set = {
			.width = small_size(i), .height = 1, .value = i % 251, .elem = 1};

		wrong += CALL(c, mem_alloc, 0, small_size(i), &a[i]) != 0;
		set.dst = a[i];
		wrong += a[i] % 256 || !CALL(c, mem_valid, a[i], small_size(i)) ||
			 CALL(c, mem_valid, a[i], small_size(i) + 1) ||
			 CALL(c, mem_set, &set, c->legacy);
	}
	return wrong;
}

/* Many small allocations of several sizes, half of them freed and allocated again. */
static void check_small(struct check *c)
{
	uint64_t a[SMALL] = {0}, before = 0, after = 0, total;
	unsigned char *w = c->window;
	unsigned int i, wrong = 0;

	want(CALL(c, mem_info, 0, &before, &total), 0, "mem_info");
	want((int)get_small(c, a, 1), 0, "small allocations");
	want(CALL(c, pool_free, a[1], c->legacy), QCU_ERR_InvalidValue, "none is of a pool");
	for (i = 0; i < SMALL; i += 2)
		wrong += CALL(c, mem_free, a[i]) != 0;
	want(CALL(c, mem_free, a[0]), QCU_ERR_InvalidValue, "each is freed once");
	wrong += get_small(c, a, 2);
	want((int)wrong, 0, "half of them freed, and allocated again");
	for (i = wrong = 0; i < SMALL; i++) {
		w[0] = w[small_size(i) - 1] = 0xee;
		CALL(c, copy_d2h_wait, w, a[i], small_size(i), c->legacy);
		wrong += w[0] != i % 251 || w[small_size(i) - 1] != i % 251;
	}
	want((int)wrong, 0, "each has its own bytes");
	for (i = wrong = 0; i < SMALL; i++)
		wrong += CALL(c, mem_free, a[i]) != 0;
	want((int)wrong, 0, "the end of all");
	want(CALL(c, mem_info, 0, &after, &total), 0, "mem_info");
	check(after + (8u << 20) >= before, "%lld KiB fewer are free",
	      (long long)(before - after) / 1024);
}

/* Copies both ways, with registered memory in the window and with memory that is not registered. */
static void check_copies(struct check *c)
{
	struct be_stream *s = c->legacy;
	uint32_t *w = c->window;
	uint32_t *plain = malloc(CHECK_BYTES);
	uint64_t a = 0, b = 0;
	size_t i, n = CHECK_BYTES / 4;

	if (!plain || CALL(c, mem_alloc, 0, CHECK_BYTES, &a) ||
	    CALL(c, mem_alloc, 0, CHECK_BYTES, &b)) {
		check(false, "memory for copies");
		goto out;
	}
	for (i = 0; i < n; i++)
		w[i] = i * 2654435761u;
	want(CALL(c, copy_h2d, a, w, CHECK_BYTES, s), 0, "copy_h2d, registered");
	want(CALL(c, copy_d2d, b, a, CHECK_BYTES, 0, s), 0, "copy_d2d");
	want(CALL(c, copy_d2h, plain, b, CHECK_BYTES, s), 0, "copy_d2h, not registered");
	want(CALL(c, stream_sync, s), 0, "stream_sync");
	check(!memcmp(w, plain, CHECK_BYTES), "the data is the same");
	for (i = 0; i < n; i++)
		plain[i] = ~w[i];
	want(CALL(c, copy_h2d, a, plain, CHECK_BYTES, s), 0, "copy_h2d, not registered");
	memset(plain, 0, 64); /* this memory may be reused at once */
	want(CALL(c, copy_d2h, w, a, CHECK_BYTES, s), 0, "copy_d2h, registered");
	want(CALL(c, stream_sync, s), 0, "stream_sync");
	check(w[0] == ~0u && w[5] == ~(5 * 2654435761u) &&
		      !memcmp(w + 16, plain + 16, CHECK_BYTES - 64),
	      "pageable memory was read before the call returned");
	w[0] = 0x12345678;
	want(CALL(c, copy_d2d, b, (uintptr_t)w, 4096, BE_HOST_SRC, s), 0,
	     "copy_d2d from registered memory");
	want(CALL(c, copy_d2h, plain, b, 4096, s), 0, "copy_d2h, not registered");
	want(CALL(c, stream_sync, s), 0, "stream_sync");
	check(!memcmp(w, plain, 4096), "the data is the same");
	memset(plain, 0, 4096);
	want(CALL(c, copy_d2h_wait, plain, b, 64, s), 0, "copy_d2h_wait, not registered");
	check(!memcmp(w, plain, 64) && !plain[16], "the data is there");
	w[0] = 0;
	want(CALL(c, copy_d2h_wait, w, b, 4, s), 0, "copy_d2h_wait, registered");
	check(w[0] == 0x12345678, "the data is there");
out:
	free(plain);
	CALL(c, mem_free, a);
	CALL(c, mem_free, b);
}

#define PIECES 300u

/* More pieces than CUDA gets in one call. They have two lengths, and the last one comes first. */
static void check_pieces(struct check *c, struct be_stream *s)
{
	struct iovec up[PIECES], down[PIECES];
	uint32_t *w = c->window;
	uint64_t dev = 0;
	size_t i, at = 0, len;

	if (!want(CALL(c, mem_alloc, 0, PIECES * 128, &dev), 0, "memory for pieces"))
		return;
	for (i = 0; i < PIECES; i++, at += len) {
		len = i % 2 ? 64 : 128;
		up[i] = (struct iovec){w + (PIECES - 1 - i) * 32, len};
		down[i] = (struct iovec){w + (PIECES + i) * 32, len};
		memset(up[i].iov_base, (int)i, 128);
		memset(down[i].iov_base, 0xee, 128);
	}
	want(CALL(c, copy_pieces, true, dev, up, PIECES, s), 0, "copy_pieces up");
	want(CALL(c, copy_pieces, false, dev, down, PIECES, s), 0, "copy_pieces down");
	want(CALL(c, stream_sync, s), 0, "stream_sync");
	for (i = 0; i < PIECES; i++) {
		const unsigned char *got = down[i].iov_base;

		if (got[0] != (i & 0xff) || got[down[i].iov_len - 1] != (i & 0xff) ||
		    (i % 2 && got[64] != 0xee))
			break;
	}
	check(i == PIECES, "every piece came to its place");
	CALL(c, mem_free, dev);
}

static void check_memset(struct check *c)
{
	struct be_memset bytes = {.width = 5000, .height = 1, .value = 0x1a5, .elem = 1};
	struct be_memset words = {.width = 4096, .height = 1, .value = 0xdeadbeef, .elem = 4};
	struct be_memset shorts = {
		.pitch = 512, .width = 100, .height = 3, .value = 0x1234, .elem = 2};
	unsigned char *w = c->window;
	uint64_t a = 0;

	if (!want(CALL(c, mem_alloc, 0, 8192, &a), 0, "memory for memset"))
		return;
	bytes.dst = words.dst = shorts.dst = a;
	want(CALL(c, mem_set, &bytes, c->legacy), 0, "mem_set of bytes");
	want(CALL(c, copy_d2h, w, a, 8192, c->legacy), 0, "copy_d2h");
	CALL(c, stream_sync, c->legacy);
	check(w[0] == 0xa5 && w[4999] == 0xa5, "bytes are set");
	want(CALL(c, mem_set, &words, c->legacy), 0, "mem_set of words");
	want(CALL(c, mem_set, &shorts, c->legacy), 0, "mem_set of shorts, three rows");
	want(CALL(c, copy_d2h, w, a, 8192, c->legacy), 0, "copy_d2h");
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
	check(!memcmp(w + 508, "\xef\xbe\xad\xde\x34\x12\x34\x12", 8) && w[4095] == 0xde &&
		      w[1024 + 99] == 0x12 && w[1024 + 100] == 0xef && w[1536] == 0xef &&
		      w[4096] == 0xa5,
	      "words and rows are set, and nothing else");
	CALL(c, mem_free, a);
}

static void check_streams(struct check *c)
{
	struct be_stream *s = NULL, *t = NULL;
	struct be_event *start = NULL, *end = NULL;
	float ms = -1;

	want(CALL(c, stream_create, 0, 0, 0, &s), 0, "stream_create");
	want(CALL(c, stream_create, 0, 1, -1, &t), 0, "stream_create, not blocking, with priority");
	want(CALL(c, event_create, 0, 0, &start), 0, "event_create");
	want(CALL(c, event_create, 0, 0, &end), 0, "event_create");
	if (!s || !t || !start || !end)
		return;
	want(CALL(c, event_record, start, s, 0), 0, "event_record");
	want(CALL(c, copy_h2d, c->scratch, c->window, CHECK_BYTES, s), 0, "copy in a stream");
	want(CALL(c, event_record, end, s, 0), 0, "event_record");
	want(CALL(c, stream_wait_event, t, end, 0), 0, "stream_wait_event");
	want(CALL(c, stream_sync, t), 0, "stream_sync of the one that waits");
	want(CALL(c, event_query, end), 0, "event_query: it has come");
	want(CALL(c, event_sync, end), 0, "event_sync");
	want(CALL(c, event_elapsed, start, end, &ms), 0, "event_elapsed");
	check(ms >= 0 && ms < 10000, "%.3f ms went by", ms);
	want(CALL(c, stream_query, s), 0, "stream_query: nothing left");
	check_pieces(c, c->legacy);
	check_pieces(c, s);
	want(CALL(c, event_destroy, start), 0, "event_destroy");
	want(CALL(c, event_destroy, end), 0, "event_destroy");
	want(CALL(c, stream_destroy, s), 0, "stream_destroy");
	want(CALL(c, stream_destroy, t), 0, "stream_destroy");
}

struct mixed {
	double scale;
	char tag;
	int add[3];
};

static void check_params(struct check *c)
{
	/* As nvcc lays them out: out, in, n, c, m, s. */
	static const struct qcu_param layout[] = {{0, 8},  {8, 8},   {16, 4},
						  {20, 1}, {24, 24}, {48, 2}};
	struct qcu_param got[16];
	struct be_kernel *k = check_kernel(c, "check_params");
	struct qcu_kernel_desc desc;
	struct mixed m = {.scale = 2, .tag = 3, .add = {10, 20, 30}};
	struct be_launch l = {.grid = {4, 1, 1}, .block = {256, 1, 1}};
	unsigned char params[50] = {0};
	float *in = c->window, *out = in + 1000;
	uint64_t dst = c->scratch, src = c->scratch + 4096;
	uint32_t count = 0, blocks = 0;
	int i, n = 1000, bad = 0;
	short s = -4;

	if (!check(k, "kernel_find of check_params"))
		return;
	want(CALL(c, kernel_params, k, got, 16, &count), 0, "kernel_params");
	check(count == 6 && !memcmp(got, layout, sizeof(layout)), "the layout is nvcc's");
	want(CALL(c, kernel_desc, 0, k, &desc), 0, "kernel_desc");
	check(desc.max_threads >= 256 && desc.params == 6, "kernel: %u threads, %u registers",
	      desc.max_threads, desc.regs);
	want(CALL(c, occupancy, 0, k, 256, 0, 0, &blocks), 0, "occupancy");
	check(blocks > 0, "%u blocks fit on a multiprocessor", blocks);
	for (i = 0; i < n; i++)
		in[i] = i * 0.5f;
	memcpy(params, &dst, 8);
	memcpy(params + 8, &src, 8);
	memcpy(params + 16, &n, 4);
	params[20] = 7;
	memcpy(params + 24, &m, sizeof(m));
	memcpy(params + 48, &s, 2);
	l.params = params;
	l.param_bytes = sizeof(params);
	CALL(c, copy_h2d, src, in, n * 4, c->legacy);
	want(CALL(c, launch, k, &l, c->legacy), 0, "launch");
	memset(params, 0xff, sizeof(params)); /* the launch has read them */
	CALL(c, copy_d2h, out, dst, n * 4, c->legacy);
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
	for (i = 0; i < n; i++)
		bad += out[i] != in[i] * 2 + 7 + 3 + m.add[i % 3] - 4;
	check(!bad, "every parameter arrived (%d wrong)", bad);
	l.block.x = 4096;
	i = CALL(c, launch, k, &l, c->legacy);
	check(i == QCU_ERR_InvalidConfiguration || i == QCU_ERR_InvalidValue,
	      "a block that is too large is refused: %d", i);
	want(CALL(c, stream_sync, c->legacy), 0, "and leaves no error behind");
	check(!check_kernel(c, "check_nothing"), "an unknown kernel is not found");
}

#define CHECK_KERNELS 10u /* in be_check_kernels.cu */

static void check_names(struct check *c)
{
	char names[1024];
	size_t bytes = 0, at, found = 0;
	uint32_t count = 0;

	want(CALL(c, module_names, c->module, QCU_NAMES_KERNELS, names, sizeof(names), &bytes,
		  &count),
	     0, "module_names");
	if (!check(count == CHECK_KERNELS && bytes <= sizeof(names), "all kernels have names"))
		return;
	for (at = 0; at < bytes; at += strlen(names + at) + 1)
		found += !strncmp(names + at, "check_", 6);
	check(found == count, "names of kernels");
}

static void check_variables(struct check *c)
{
	struct be_kernel *k = check_kernel(c, "check_vars");
	struct be_launch l = {.grid = {1, 1, 1}, .block = {64, 1, 1}, .param_bytes = 8};
	uint64_t table = 0, size = 0, factor = 0, fsize = 0;
	int *w = c->window;
	int i, bad = 0;

	if (!check(k, "kernel_find of check_vars"))
		return;
	want(CALL(c, var_find, 0, c->module, "check_table", &table, &size), 0, "var_find");
	want(CALL(c, var_find, 0, c->module, "check_factor", &factor, &fsize), 0,
	     "var_find, constant memory");
	check(size == 256 && fsize == 4, "sizes of variables");
	check(CALL(c, mem_valid, table, 256) && !CALL(c, mem_valid, table, 257),
	      "a variable is valid memory");
	check(CALL(c, var_find, 0, c->module, "check_none_such", &size, &size) != 0,
	      "an unknown variable is not found");
	want(CALL(c, mem_free, table), QCU_ERR_InvalidValue, "a variable cannot be freed");
	if (!table || !factor)
		return;
	for (i = 0; i < 64; i++)
		w[i] = i + 1;
	w[64] = 3;
	want(CALL(c, copy_h2d, table, w, 256, c->legacy), 0, "copy to a variable");
	want(CALL(c, copy_h2d, factor, w + 64, 4, c->legacy), 0, "copy to constant memory");
	l.params = &c->scratch;
	want(CALL(c, launch, k, &l, c->legacy), 0, "launch");
	CALL(c, copy_d2h, w, c->scratch, 256, c->legacy);
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
	for (i = 0; i < 64; i++)
		bad += w[i] != 3 * (i + 1);
	check(!bad, "the kernel saw them");
}

static void check_host_memory(struct check *c)
{
	struct be_kernel *k = check_kernel(c, "check_host");
	struct {
		uint64_t words;
		uint32_t n;
	} p = {(uintptr_t)c->window, 100000};
	struct be_launch l = {
		.grid = {400, 1, 1}, .block = {256, 1, 1}, .params = &p, .param_bytes = 12};
	uint32_t *w = c->window;
	uint32_t i, bad = 0;

	if (!check(k, "kernel_find of check_host"))
		return;
	for (i = 0; i < p.n; i++)
		w[i] = i ^ 0x5555;
	want(CALL(c, launch, k, &l, c->legacy), 0, "launch on host memory");
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
	for (i = 0; i < p.n; i++)
		bad += w[i] != (i ^ 0x5555) * 2654435761u + i;
	check(!bad, "a kernel works on window memory in place");
}

static void check_shared_memory(struct check *c)
{
	struct be_kernel *k = check_kernel(c, "check_shared");
	struct {
		uint64_t out;
		uint32_t n;
	} p = {c->scratch, 128};
	struct be_launch l = {.grid = {1, 1, 1},
			      .block = {128, 1, 1},
			      .dynamic_shared = 512,
			      .params = &p,
			      .param_bytes = 12};
	int *w = c->window;
	int i, bad = 0;

	if (!check(k, "kernel_find of check_shared"))
		return;
	want(CALL(c, launch, k, &l, c->legacy), 0, "launch with shared memory");
	CALL(c, copy_d2h, w, c->scratch, 512, c->legacy);
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
	for (i = 0; i < 128; i++)
		bad += w[i] != (127 - i) * 3;
	check(!bad, "shared memory and barrier");
	/* 8: cudaFuncAttributeMaxDynamicSharedMemorySize */
	want(CALL(c, kernel_set, 0, k, 8, 40 << 10), 0, "kernel_set");
}

static void check_print(struct check *c)
{
	struct be_kernel *k = check_kernel(c, "check_print");
	int n = 3;
	struct be_launch l = {
		.grid = {1, 1, 1}, .block = {3, 1, 1}, .params = &n, .param_bytes = 4};
	char text[256] = "";
	size_t got = 0, more = 1;

	if (!check(k, "kernel_find of check_print"))
		return;
	want(CALL(c, launch, k, &l, c->legacy), 0, "launch that prints");
	want(CALL(c, device_sync, 0), 0, "device_sync");
	want(CALL(c, print_read, NULL, 0, &got), 0, "print_read: is there any?");
	check(got > 0, "there is");
	want(CALL(c, print_read, text, sizeof(text) - 1, &got), 0, "print_read");
	check(!strcmp(text, "check 0 of 3\ncheck 1 of 3\ncheck 2 of 3\n"),
	      "the text is right: %zu bytes", got);
	want(CALL(c, print_read, text, sizeof(text), &more), 0, "print_read again");
	check(!more, "it is read once");
}

struct worker {
	struct check *c;
	unsigned int index;
	int ret;
};

/* A thread that works like a lane: it has its own stream and its own part of the memory. */
static void *run_worker_rounds(void *arg)
{
	struct worker *me = arg;
	struct check *c = me->c;
	struct be_kernel *k = check_kernel(c, "check_host");
	struct {
		uint64_t words;
		uint32_t n;
	} p = {c->scratch + me->index * 65536, 16384};
	struct be_launch l = {
		.grid = {64, 1, 1}, .block = {256, 1, 1}, .params = &p, .param_bytes = 12};
	uint32_t *w = (uint32_t *)c->window + me->index * 16384;
	struct be_stream *s = NULL;
	uint32_t i, round;

	me->ret = k ? CALL(c, stream_create, 0, 1, 0, &s) : QCU_ERR_SymbolNotFound;
	for (round = 0; round < 50 && !me->ret; round++) {
		for (i = 0; i < p.n; i++)
			w[i] = i + round;
		me->ret = CALL(c, copy_h2d, p.words, w, 65536, s);
		if (!me->ret)
			me->ret = CALL(c, launch, k, &l, s);
		if (!me->ret)
			me->ret = CALL(c, copy_d2h, w, p.words, 65536, s);
		if (!me->ret)
			me->ret = CALL(c, stream_sync, s);
		for (i = 0; i < p.n && !me->ret; i++)
			if (w[i] != (i + round) * 2654435761u + i)
				me->ret = QCU_ERR_Unknown;
	}
	if (s)
		CALL(c, stream_destroy, s);
	return NULL;
}

static void check_threads(struct check *c)
{
	struct worker w[4];
	pthread_t t[4];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		w[i] = (struct worker){.c = c, .index = i};
		if (pthread_create(&t[i], NULL, run_worker_rounds, &w[i])) {
			check(false, "a thread");
			exit(2);
		}
	}
	for (i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		want(w[i].ret, 0, "a thread with a stream of its own");
	}
}

/* A stream that is held up for 20 s at most, and memory that cannot be unregistered meanwhile. */
struct held {
	struct check *c;
	atomic_bool entered, let_go, gave_up;
	void *memory;
	int ret;
};

static void hold_until_let_go(void *arg, int error)
{
	struct held *h = arg;
	int ms;

	(void)error;
	h->entered = true;
	for (ms = 0; ms < 20000 && !h->let_go; ms++)
		usleep(1000);
	h->gave_up = !h->let_go;
}

static void *unregister(void *arg)
{
	struct held *h = arg;

	h->ret = CALL(h->c, host_unregister, h->memory);
	return NULL;
}

/* While one thread waits in host_unregister, another registers memory and uses it. */
static void check_held(struct check *c)
{
	struct held h = {.c = c, .memory = (char *)c->window + CHECK_WINDOW};
	char *other = (char *)h.memory + CHECK_BYTES;
	struct be_stream *held = NULL, *s = NULL;
	pthread_t t;

	if (mmap(h.memory, 2 * CHECK_BYTES, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != h.memory ||
	    !want(CALL(c, host_register, h.memory, CHECK_BYTES), 0, "host_register of more") ||
	    CALL(c, stream_create, 0, 1, 0, &held) || CALL(c, stream_create, 0, 1, 0, &s) ||
	    !want(CALL(c, host_func, hold_until_let_go, &h, false, held), 0, "host_func")) {
		check(false, "a stream that is held up");
		return;
	}
	while (!h.entered && !h.gave_up)
		usleep(1000);
	if (pthread_create(&t, NULL, unregister, &h)) {
		check(false, "a thread");
		exit(2);
	}
	usleep(50000);
	want(CALL(c, host_register, other, CHECK_BYTES), 0, "host_register meanwhile");
	memset(other, 1, CHECK_BYTES);
	want(CALL(c, copy_h2d, c->scratch, other, CHECK_BYTES, s), 0, "copy_h2d meanwhile");
	want(CALL(c, stream_sync, s), 0, "stream_sync meanwhile");
	check(!h.gave_up, "nothing of this waits for host_unregister");
	h.let_go = true;
	pthread_join(t, NULL);
	want(h.ret, 0, "host_unregister when the stream goes on");
	want(CALL(c, host_unregister, other), 0, "host_unregister of the other");
	CALL(c, stream_destroy, held);
	CALL(c, stream_destroy, s);
	munmap(h.memory, 2 * CHECK_BYTES);
}

static void check_two_devices(struct check *c)
{
	uint64_t b = 0;
	struct be_stream *s;
	uint32_t *w = c->window;
	int i;

	if (c->devices < 2) {
		fprintf(report, "skipped two devices: there is one\n");
		return;
	}
	s = c->ops->stream_legacy(c->be, 1);
	want(CALL(c, mem_alloc, 1, 65536, &b), 0, "mem_alloc on the second device");
	for (i = 0; i < 16384; i++)
		w[i] = i * 7;
	want(CALL(c, copy_h2d, c->scratch, w, 65536, c->legacy), 0, "copy_h2d");
	CALL(c, stream_sync, c->legacy);
	want(CALL(c, copy_d2d, b, c->scratch, 65536, 0, s), 0, "copy between devices");
	memset(w, 0, 65536);
	want(CALL(c, copy_d2h, w, b, 65536, s), 0, "copy_d2h from the second device");
	want(CALL(c, stream_sync, s), 0, "stream_sync");
	check(w[1] == 7 && w[16383] == 16383 * 7, "the data is the same");
	want(CALL(c, mem_free, b), 0, "mem_free on the second device");
}

/* A reset ends everything of the device, but modules and registrations stay. */
static void check_reset(struct check *c)
{
	uint64_t old = c->scratch;

	want(CALL(c, device_reset, 0), 0, "device_reset");
	want(CALL(c, device_reset, 0), 0, "and once more");
	check(!CALL(c, mem_valid, old, 1), "its memory is gone");
	want(CALL(c, mem_alloc, 0, CHECK_BYTES, &c->scratch), 0, "mem_alloc after it");
	check_host_memory(c);
	check_variables(c);
	check_conditional(c);
	check_driver(c);
}

static void check_fault(struct check *c)
{
	struct be_kernel *k = check_kernel(c, "check_fault");
	uint64_t where = 0x10;
	struct be_launch l = {
		.grid = {1, 1, 1}, .block = {1, 1, 1}, .params = &where, .param_bytes = 8};
	uint64_t a;

	if (!check(k, "kernel_find of check_fault"))
		return;
	want(CALL(c, launch, k, &l, c->legacy), 0, "launch of a wild store");
	want(CALL(c, stream_sync, c->legacy), QCU_ERR_IllegalAddress, "it is an illegal address");
	want(CALL(c, mem_alloc, 0, 4096, &a), QCU_ERR_IllegalAddress, "which sticks");
	want(CALL(c, launch, k, &l, c->legacy), QCU_ERR_IllegalAddress, "to every call");
}

static bool start(struct check *c)
{
	struct be_options opt = {
		.gpus = 1, .capture_stdout = true, .verbose = c->verbose, .movable = c->movable};
	int fd = memfd_create("be_check", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, CHECK_WINDOW))
		return check(false, "shared memory");
	c->window = mmap((void *)QCU_WINDOW_BASE, CHECK_WINDOW, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_POPULATE, fd, 0);
	close(fd);
	if (c->window == MAP_FAILED)
		return check(false, "memory in the window");
	if (!want(c->ops->open(&c->be, &opt), 0, "open"))
		return false;
	c->legacy = c->ops->stream_legacy(c->be, 0);
	if (!check(c->legacy, "stream_legacy") ||
	    !want(CALL(c, host_register, c->window, CHECK_WINDOW), 0, "host_register") ||
	    !want(CALL(c, mem_alloc, 0, CHECK_BYTES, &c->scratch), 0, "mem_alloc") ||
	    !want(CALL(c, module_load, c->image, c->image_len, NULL, &c->module), 0, "module_load"))
		return false;
	return true;
}

static void unload_and_close(struct check *c)
{
	want(CALL(c, module_unload, c->module), 0, "module_unload");
	want(CALL(c, host_unregister, c->window), 0, "host_unregister");
	want(CALL(c, host_unregister, c->window), QCU_ERR_HostMemoryNotRegistered,
	     "no second host_unregister");
	want(CALL(c, mem_free, c->scratch), 0, "mem_free");
	c->ops->close(c->be);
}

/* A driver may take anything for PTX until it needs something of it. */
static bool is_useless(struct check *c, const void *image, size_t len)
{
	struct be_module *m = NULL;
	struct be_kernel *k = NULL;
	bool useless;

	if (CALL(c, module_load, image, len, NULL, &m))
		return true;
	useless = CALL(c, kernel_find, m, "check_none", &k) != 0;
	CALL(c, module_unload, m);
	return useless;
}

static void all_but_the_fault(struct check *c)
{
	static const char nonsense[] = "this is neither a fat binary nor ELF nor PTX";

	if (!start(c))
		return;
	check_device(c);
	check_alloc(c);
	check_again(c);
	check_small(c);
	check_copies(c);
	check_memset(c);
	check_streams(c);
	check(is_useless(c, nonsense, sizeof(nonsense)), "nonsense is no module");
	check(is_useless(c, c->image, c->image_len / 2), "nor is half a module");
	check_params(c);
	check_names(c);
	check_variables(c);
	check_graphs(c);
	check_conditional(c);
	check_host_memory(c);
	check_placed(c);
	check_moves(c);
	check_shared_memory(c);
	check_print(c);
	check_threads(c);
	check_held(c);
	check_two_devices(c);
	if (c->seconds > 0)
		check_timings(c, report);
	time_moves(c);
	check_reset(c);
	unload_and_close(c);
}

static void the_fault(struct check *c)
{
	if (start(c))
		check_fault(c);
}

/* As in a mirror, CUDA is first called after the fork. */
static void in_child(struct check *c, void (*fn)(struct check *c))
{
	int status = 0;
	pid_t pid;

	fflush(report);
	pid = fork();
	if (!pid) {
		passed = failed = 0;
		fn(c);
		fprintf(report, "%u passed, %u failed\n", passed, failed);
		fflush(report);
		_exit(failed ? 1 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		fprintf(report, "FAILED  a part ended with status 0x%x\n", status);
		failed++;
	}
}

static bool read_file(const char *path, struct check *c)
{
	FILE *f = fopen(path, "rb");
	long len;
	void *image;

	if (!f)
		return false;
	if (fseek(f, 0, SEEK_END) || (len = ftell(f)) <= 0 || fseek(f, 0, SEEK_SET)) {
		fclose(f);
		return false;
	}
	image = malloc(len);
	if (image && fread(image, 1, len, f) == (size_t)len) {
		c->image = image;
		c->image_len = len;
	} else {
		free(image);
	}
	fclose(f);
	return c->image;
}

static const struct be_ops *find_backend(const char *name)
{
	be_plugin_fn *plugin;
	void *lib;

	if (!strcmp(name, "soft"))
		return &be_soft;
	lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	plugin = lib ? (be_plugin_fn *)dlsym(lib, BE_PLUGIN_SYMBOL) : NULL;
	if (!plugin) {
		fprintf(stderr, "be_check: %s\n", dlerror());
		return NULL;
	}
	return plugin();
}

int main(int argc, char **argv)
{
	struct check c = {.seconds = argc > 3 ? atof(argv[3]) : 0.2,
			  .verbose = getenv("BE_CHECK_VERBOSE") != NULL,
			  .movable = getenv("BE_CHECK_MOVABLE") != NULL};
	const char *gib = getenv("BE_CHECK_GIB"), *only = getenv("BE_CHECK_ONLY");

	if (argc < 3) {
		fprintf(stderr, "usage: be_check soft|PLUGIN.so FATBIN [SECONDS]\n");
		return 2;
	}
	report = fdopen(dup(STDOUT_FILENO), "w");
	if (!report)
		return 2;
	setvbuf(report, NULL, _IOLBF, 0);
	c.ops = find_backend(argv[1]);
	if (!c.ops)
		return 2;
	if (c.ops->abi != BE_ABI) {
		fprintf(stderr, "be_check: %s has version %u of the interface, this is %u\n",
			argv[1], c.ops->abi, BE_ABI);
		return 2;
	}
	if (!read_file(argv[2], &c)) {
		fprintf(stderr, "be_check: cannot read %s\n", argv[2]);
		return 2;
	}
	c.gib = gib ? strtoull(gib, NULL, 10) : 0;
	if (!only) {
		in_child(&c, all_but_the_fault);
		in_child(&c, the_fault);
		check_saved(&c, in_child);
	}
	if (c.movable)
		time_checkpoints(c.gib);
	free((void *)c.image);
	return failed ? 1 : 0;
}

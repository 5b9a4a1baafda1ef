/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A mirror of the software GPU with something of each kind that can be saved. */
#ifndef TEST_DEVICE_SAVED_H
#define TEST_DEVICE_SAVED_H

#define _GNU_SOURCE
#include "tests/unit/device/mirror/test_device_mirror.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/mirror/save.h"
#include "qcu-device/mirror/archive.h"

#define MEMORY_BYTES ((size_t)3 << 20)
#define PAGE_BYTES   4096u

struct fake fake; /* for test_device_mirror.h */

static uint64_t memory_at, variable_at, pooled_at, texture_at;
static char *page; /* of the program; what is registered */
static char why[256];
static bool movable;		    /* does the mirror's memory leave? */
static unsigned int processors = 1; /* of the software GPU */
static uint64_t vram = 64 << 20;
static const struct guestmem *guest_memory; /* NULL: guest and mirror are one process */
static const struct be_ops *backend = &be_soft;

static const char ptx[] = ".version 8.3\n.target sm_75\n.address_size 64\n"
			  ".visible .global .align 4 .u32 number = 7;\n"
			  ".visible .global .align 8 .b8 room[100];\n"
			  ".visible .entry add(.param .u64 p)\n"
			  "{\n"
			  "	.reg .b64 %a, %n;\n"
			  "	.reg .b32 %v, %w;\n"
			  "	ld.param.u64 %a, [p];\n"
			  "	mov.u64 %n, number;\n"
			  "	ld.global.u32 %v, [%n];\n"
			  "	ld.global.u32 %w, [%a];\n"
			  "	add.u32 %v, %v, %w;\n"
			  "	st.global.u32 [%a], %v;\n"
			  "	st.global.u32 [%n], %v;\n"
			  "	ret;\n"
			  "}\n";

static inline void start_mirror(void)
{
	struct mir_config cfg = {.ops = backend, .session = 1};

	cfg.options.gpus = 2;
	cfg.options.threads = processors;
	cfg.options.vram = vram;
	cfg.options.movable = movable;
	cfg.mem = guest_memory;
	assert_int_equal(mir_create(&mirror, &cfg), 0);
}

static inline struct qCUcmd with_message(struct qCUcmd c, size_t len)
{
	c.flags = QCU_F_MSG;
	c.buf.len = len;
	return c;
}

static inline void make_module(void)
{
	struct qCUcmd c = CMD(MODULE_LOAD, module_load, .buf = {1, sizeof(ptx)}, .module = 2);
	const struct qcu_seg image = {(uintptr_t)ptx, sizeof(ptx)};

	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &image, 1), 0);
	c = with_message(CMD(VAR_FIND, var_find, .module = 2), 6);
	assert_int_equal(ask_with(&c, "number", NULL, 0), 0);
	variable_at = c.var_find.addr;
	c = with_message(CMD(KERNEL_FIND, kernel_find, .module = 2, .kernel = 3), 3);
	assert_int_equal(ask_with(&c, "add", NULL, 0), 0);
	assert_int_equal(ask(CMD(FUNC_SET, func_set, .kernel = 3, .attr = 9, .value = 50)), 0);
}

/* Adds the variable to the first word of the memory, and stores the sum in both. */
static inline void add(void)
{
	struct {
		struct qcu_launch_msg msg;
		uint64_t p;
	} launch = {.msg = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .param_bytes = 8},
		    .p = memory_at};
	struct qCUcmd c =
		with_message(CMD(LAUNCH, launch, .kernel = 3, .stream = 4), sizeof(launch));

	assert_int_equal(ask_with(&c, &launch, NULL, 0), 0);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 4)), 0);
}

static inline void copy(bool down, uint64_t device, void *host, size_t len)
{
	struct qCUcmd c = down ? CMD(COPY_D2H, copy_d2h, .buf = {1, len}, .src = device,
				     .flags = QCU_COPY_SYNC)
			       : CMD(COPY_H2D, copy_h2d, .buf = {1, len}, .dst = device,
				     .flags = QCU_COPY_SYNC);
	const struct qcu_seg seg = {(uintptr_t)host, len};

	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
}

static inline uint32_t word_at(uint64_t device)
{
	uint32_t word = 0;

	copy(true, device, &word, sizeof(word));
	return word;
}

static inline void make_memory(void)
{
	const struct qcu_seg seg = {(uintptr_t)page, PAGE_BYTES};
	struct qCUcmd c = CMD(MALLOC, malloc, .size = 100);
	uint64_t gone;
	uint32_t one = 1;

	/* A hole lies before what stays. */
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	gone = c.malloc.ptr;
	c = CMD(MALLOC, malloc, .size = MEMORY_BYTES);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	memory_at = c.malloc.ptr;
	assert_int_equal(ask(CMD(FREE, free, .ptr = gone)), 0);
	copy(false, memory_at, &one, sizeof(one));
	copy(false, memory_at + MEMORY_BYTES - 4, &one, sizeof(one));
	assert_int_equal(ask(CMD(POOL_CREATE, pool_create, .pool = 5)), 0);
	assert_int_equal(ask(CMD(POOL_SET, pool_set, .pool = 5, .attr = 4, .value = 77)), 0);
	c = CMD(MALLOC_ASYNC, malloc_async, .size = 500, .pool = 5, .stream = 4);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	pooled_at = c.malloc_async.ptr;
	c = CMD(MAP, map, .va = (uintptr_t)page, .len = PAGE_BYTES, .chunk_bytes = PAGE_BYTES);
	c.tid = 0;
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	c = CMD(HOST_REGISTER, host_register, .buf = {(uintptr_t)page, PAGE_BYTES});
	c.flags = QCU_F_WINDOW;
	assert_int_equal(ask(c), 0);
}

static inline void make_images(void)
{
	const struct qcu_texture_msg t = {.kind = QCU_TEXTURE_ARRAY, .array = 2, .bits = {32}};
	struct qCUcmd c = CMD(ARRAY_CREATE, array_create, .array = 2, .width = 8, .height = 4,
			      .bits = {32}, .flags = 2);
	uint32_t row[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct qcu_seg seg = {(uintptr_t)row, sizeof(row)};

	assert_int_equal(ask(c), 0);
	c = CMD(ARRAY_WRITE, array_write, .buf = {1, sizeof(row)}, .array = 2, .y = 3,
		.width = sizeof(row), .height = 1, .pitch = sizeof(row), .flags = QCU_COPY_SYNC);
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	c = with_message(CMD(TEXTURE_CREATE, texture_create), sizeof(t));
	assert_int_equal(ask_with(&c, &t, NULL, 0), 0);
	texture_at = c.texture_create.object;
	assert_int_equal(ask(CMD(SURFACE_CREATE, surface_create, .array = 2)), 0);
}

/* The graph fills four bytes of the memory, first with 3s, then, updated, with 4s. */
static inline void make_graph(void)
{
	struct {
		struct qcu_graph_node head;
		struct qcu_graph_memset fill;
	} node = {{.bytes = sizeof(node), .type = QCU_NODE_MEMSET},
		  {.dst = memory_at + 64, .width = 4, .height = 1, .value = 3, .elem = 1}};
	struct qCUcmd c =
		CMD(GRAPH_MAKE, graph_make, .buf = {1, sizeof(node)}, .graph = 9, .nodes = 1);
	const struct qcu_seg seg = {(uintptr_t)&node, sizeof(node)};

	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	for (node.fill.value = 8; node.fill.value >= 4; node.fill.value--) {
		c = CMD(GRAPH_UPDATE, graph_update, .buf = {1, sizeof(node)}, .graph = 9,
			.nodes = 1);
		c.flags = QCU_F_SEGS;
		assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	}
}

static inline void make_session(void)
{
	if (!page)
		page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	start_mirror();
	assert_int_equal(ask(CMD(LIMIT_SET, limit_set, .limit = 2, .value = 1 << 20)), 0);
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 4, .flags = 1)), 0);
	assert_int_equal(ask(CMD(EVENT_CREATE, event_create, .event = 6)), 0);
	assert_int_equal(ask(CMD(EVENT_CREATE, event_create, .event = 7)), 0);
	assert_int_equal(ask(CMD(EVENT_CREATE, event_create, .event = 8)), 0);
	make_memory();
	make_module();
	make_images();
	make_graph();
	add();
	assert_int_equal(ask(CMD(EVENT_RECORD, event_record, .event = 6, .stream = 4)), 0);
	usleep(2000);
	assert_int_equal(ask(CMD(EVENT_RECORD, event_record, .event = 7, .stream = 4)), 0);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 4)), 0);
}

static inline int new_file(void)
{
	int fd = memfd_create("session", 0);

	assert_true(fd >= 0);
	return fd;
}

/* The session as bytes; the mirror is gone. */
static inline uint8_t *save_session(size_t *size)
{
	int fd = new_file();
	uint8_t *bytes;

	make_session();
	why[0] = '\0';
	if (!mir_save(mirror, fd, 1000, why, sizeof(why)))
		fail_msg("%s", why);
	mir_destroy(mirror);
	*size = (size_t)lseek(fd, 0, SEEK_CUR);
	bytes = malloc(*size);
	assert_int_equal(pread(fd, bytes, *size, 0), *size);
	close(fd);
	return bytes;
}

/* A fresh mirror of these bytes; false: it can only be destroyed. */
static inline bool restore_session(const uint8_t *bytes, size_t size)
{
	int fd = new_file();
	bool ok;

	assert_int_equal(write(fd, bytes, size), size);
	lseek(fd, 0, SEEK_SET);
	start_mirror();
	why[0] = '\0';
	ok = mir_restore(mirror, fd, why, sizeof(why));
	close(fd);
	return ok;
}

/* A fresh mirror of these entries, which have the same data. False: `why` says why not. */
static inline bool restore_entries(const struct archive_entry *e, unsigned int count,
				   const void *data, const struct be_wanted *wanted)
{
	struct archive_head head = {.magic = ARCHIVE_MAGIC,
				    .format = ARCHIVE_FORMAT,
				    .wire = QCU_WIRE_VERSION,
				    .devices = 2,
				    .backend = "soft"};
	struct archive_entry one, last = {.what = ARCHIVE_END};
	struct archive s = {.fd = new_file()};
	unsigned int i;
	bool ok;

	assert_true(archive_write_head(&s, &head));
	for (i = 0; i < count; i++) {
		one = e[i];
		assert_true(archive_write(&s, &one, data, wanted ? wanted + i : NULL));
	}
	assert_true(archive_write(&s, &last, NULL, NULL));
	lseek(s.fd, 0, SEEK_SET);
	start_mirror();
	why[0] = '\0';
	ok = mir_restore(mirror, s.fd, why, sizeof(why));
	close(s.fd);
	return ok;
}

/* Saves the session, which must be possible, and makes it again in a fresh mirror. */
static inline void save_and_restore(void)
{
	int fd = new_file();

	if (!mir_save(mirror, fd, 10000, why, sizeof(why)))
		fail_msg("%s", why);
	mir_destroy(mirror);
	start_mirror();
	lseek(fd, 0, SEEK_SET);
	if (!mir_restore(mirror, fd, why, sizeof(why)))
		fail_msg("%s", why);
	close(fd);
}

#endif

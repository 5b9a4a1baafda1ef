// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Arrays in a mirror whose guest is another process, on the software GPU. Names of arrays, levels
 * or places that do not exist are refused. Rows are copied correctly between an array and guest
 * memory, wherever the guest's pages are.
 */
#define _GNU_SOURCE
#include <stdio.h>

#include "qcu-device/memory/guestmem.h"
#include "tests/unit/device/memory/test_device_memfd.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define PAGE 0x1000ull
#define RAM  (2048 * PAGE)
#define HIGH 0x100000000ull
#define VA   QCU_WINDOW_BASE

#define WIDTH  100u /* elements of 4 bytes */
#define HEIGHT 60u
#define ROW    (WIDTH * 4)

struct fake fake; /* for test_device_mirror.h; this test uses the software GPU */

static struct guestmem mem;
static uint8_t *ram;

static int make_ram(void **state)
{
	(void)state;
	ram = memfd_ram(RAM);
	return !ram || guestmem_add(&mem, 0, RAM / 2, ram) ||
	       guestmem_add(&mem, HIGH, RAM / 2, ram + RAM / 2);
}

static int start(void **state)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 1, .mem = &mem, .map = MIR_MAP_NCVM};
	size_t i;

	(void)state;
	cfg.options.vram = 64 << 20;
	for (i = 0; i < RAM; i++)
		ram[i] = (uint8_t)(i * 7 + (i >> 12));
	return mir_create(&mirror, &cfg);
}

static int create(uint32_t id, uint32_t levels)
{
	return ask(CMD(ARRAY_CREATE, array_create, .array = id, .width = WIDTH, .height = HEIGHT,
		       .levels = levels, .bits = {32}, .kind = 2));
}

/* Copies rows of one array to or from segments of guest memory. */
static int rows(bool down, const struct qcu_array_write *w, const struct qcu_seg *segs, size_t n)
{
	struct qCUcmd c = CMD(ARRAY_WRITE, array_write, .flags = 0);

	c.array_write = *w;
	c.buf.addr = 1;
	if (down)
		c.op = QCU_OP_ARRAY_READ;
	c.flags = QCU_F_SEGS;
	return ask_with(&c, NULL, segs, n);
}

static struct qcu_array_write rectangle(uint32_t x, uint32_t y, uint32_t width, uint32_t height,
					uint32_t pitch)
{
	return (struct qcu_array_write){
		.buf = {1, (uint64_t)pitch * (height - 1) + width},
		.array = 2,
		.x = x,
		.y = y,
		.width = width,
		.height = height,
		.pitch = pitch,
	};
}

static struct qcu_stats_desc stats(void)
{
	struct qcu_stats_desc st;
	const struct qcu_seg out = {300 * PAGE, sizeof(st)};
	struct qCUcmd c = CMD(STATS, stats, .buf = {1, sizeof(st)});

	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &out, 1), 0);
	memcpy(&st, ram + out.gpa, sizeof(st));
	return st;
}

static void bad_arrays(void **state)
{
	struct qCUcmd c;

	(void)state;
	assert_int_equal(create(0, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(0x10000, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(2, QCU_LEVELS_MAX + 1), QCU_ERR_InvalidValue);
	assert_int_equal(create(2, UINT32_MAX), QCU_ERR_InvalidValue);
	assert_int_equal(create(2, 8), QCU_ERR_InvalidValue); /* 100 halves 6 times */
	c = CMD(ARRAY_CREATE, array_create, .array = 2, .width = 4, .bits = {32, 32, 32},
		.kind = 2);
	assert_int_equal(ask(c), QCU_ERR_InvalidChannelDescriptor);
	memset(c.array_create.bits, 0, 4);
	assert_int_equal(ask(c), QCU_ERR_InvalidChannelDescriptor);
	c.array_create.bits[0] = 7;
	assert_int_equal(ask(c), QCU_ERR_InvalidChannelDescriptor);
	c.array_create.bits[0] = 8;
	c.array_create.kind = 1;
	c.array_create.width = 0;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
	c.array_create.width = UINT32_MAX;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
	c.array_create.width = 131072;
	c.array_create.height = 65536;
	assert_int_equal(ask(c), QCU_ERR_MemoryAllocation);
	c.array_create.flags = 0x80000000;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
	/* A cube has six faces, and they must be squares. */
	c = CMD(ARRAY_CREATE, array_create, .array = 2, .width = 4, .height = 4, .depth = 5,
		.bits = {8}, .flags = BE_ARRAY_CUBEMAP);
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);

	assert_int_equal(ask(CMD(ARRAY_DESTROY, array_destroy, .array = 2)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(2, 0), 0);
	assert_int_equal(create(2, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(ARRAY_DESTROY, array_destroy, .array = 2)), 0);
	assert_int_equal(ask(CMD(ARRAY_DESTROY, array_destroy, .array = 2)),
			 QCU_ERR_InvalidResourceHandle);
}

static void memory_is_counted(void **state)
{
	struct qCUcmd c;

	(void)state;
	assert_int_equal(create(2, QCU_LEVELS_MAX), QCU_ERR_InvalidValue);
	assert_int_equal(create(2, 0), 0);
	assert_int_equal(create(2, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(stats().device_bytes, 100 * 60 * 4);
	assert_int_equal(create(3, 3), 0);
	assert_int_equal(stats().device_bytes, (2 * 100 * 60 + 50 * 30 + 25 * 15) * 4);
	c = CMD(ARRAY_CREATE, array_create, .array = 4, .width = 8, .height = 4, .depth = 3,
		.levels = 2, .bits = {16, 16}, .flags = BE_ARRAY_LAYERED);
	assert_int_equal(ask(c), 0);
	assert_int_equal(stats().device_bytes,
			 (2 * 100 * 60 + 50 * 30 + 25 * 15 + (8 * 4 + 4 * 2) * 3) * 4);
	assert_int_equal(ask(CMD(ARRAY_DESTROY, array_destroy, .array = 3)), 0);
	assert_int_equal(stats().device_bytes, (100 * 60 + (8 * 4 + 4 * 2) * 3) * 4);
	assert_int_equal(ask(CMD(DEVICE_RESET, device_reset, 0)), 0);
	assert_int_equal(stats().device_bytes, 0);
}

static void bad_rectangles(void **state)
{
	const struct qcu_seg all = {0, ROW * HEIGHT};
	const struct qcu_array_write whole = rectangle(0, 0, ROW, HEIGHT, ROW);
	struct qcu_array_write w = whole;

	(void)state;
	assert_int_equal(rows(false, &w, &all, 1), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(2, 0), 0);
#define BAD(change, error)                                         \
	do {                                                       \
		w = whole;                                         \
		change;                                            \
		assert_int_equal(rows(false, &w, &all, 1), error); \
		assert_int_equal(rows(true, &w, &all, 1), error);  \
	} while (0)
	BAD(w.level = 1, QCU_ERR_InvalidValue);
	BAD(w.level = 255, QCU_ERR_InvalidValue);
	BAD(w.flags = QCU_COPY_DOWN, QCU_ERR_InvalidValue);
	BAD(w.flags = 0x80, QCU_ERR_InvalidValue);
	BAD(w.x = 4, QCU_ERR_InvalidValue);
	BAD(w.x = UINT32_MAX & ~3u, QCU_ERR_InvalidValue);
	BAD(w.y = 1, QCU_ERR_InvalidValue);
	BAD(w.z = 1, QCU_ERR_InvalidValue);
	BAD(w.width += 4, QCU_ERR_InvalidValue);
	BAD(w.width -= 1, QCU_ERR_InvalidValue);
	BAD(w.width = 0, QCU_ERR_InvalidValue);
	BAD(w.height = 0, QCU_ERR_InvalidValue);
	BAD(w.height = UINT32_MAX, QCU_ERR_InvalidValue);
	BAD(w.pitch = ROW - 1, QCU_ERR_InvalidPitchValue);
	BAD(w.pitch = ROW + 1, QCU_ERR_InvalidValue); /* more than the row has */
	BAD(w.pitch = UINT32_MAX, QCU_ERR_InvalidValue);
	BAD(w.stream = 77, QCU_ERR_InvalidResourceHandle);
#undef BAD
	assert_int_equal(rows(false, &whole, &all, 1), 0);
}

static void bad_boxes(void **state)
{
	struct qCUcmd c, m = CMD(MALLOC, malloc, .size = 4 * ROW * HEIGHT);
	const struct qCUcmd good =
		CMD(ARRAY_DEVICE, array_device, .array = 2, .width = ROW, .height = HEIGHT,
		    .depth = 1, .pitch = 2 * ROW, .rows = HEIGHT);

	(void)state;
	assert_int_equal(ask_with(&m, NULL, NULL, 0), 0);
	assert_int_equal(create(2, 0), 0);
	assert_int_equal(create(3, 0), 0);
#define BAD(change, error)                            \
	do {                                          \
		c = good;                             \
		c.array_device.addr = m.malloc.ptr;   \
		change;                               \
		assert_int_equal(ask(c), error);      \
		c.array_device.flags = QCU_COPY_DOWN; \
		assert_int_equal(ask(c), error);      \
	} while (0)
	BAD(c.array_device.array = 4, QCU_ERR_InvalidResourceHandle);
	BAD(c.array_device.addr = 0, QCU_ERR_InvalidValue);
	BAD(c.array_device.addr = UINT64_MAX - 8, QCU_ERR_InvalidValue);
	BAD(c.array_device.addr += 2 * ROW * HEIGHT + ROW + 1, QCU_ERR_InvalidValue);
	BAD(c.array_device.pitch = ROW - 4, QCU_ERR_InvalidPitchValue);
	BAD(c.array_device.pitch = UINT32_MAX, QCU_ERR_InvalidValue);
	BAD(c.array_device.depth = 2, QCU_ERR_InvalidValue);
	BAD(c.array_device.depth = 0, QCU_ERR_InvalidValue);
	BAD(c.array_device.stream = 9, QCU_ERR_InvalidResourceHandle);
	BAD(, 0);
#undef BAD
	c = good;
	c.array_device.addr = m.malloc.ptr;
	c.array_device.flags = QCU_COPY_QUEUED;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);

	c = CMD(ARRAY_COPY, array_copy, .dst = 2, .src = 3, .width = ROW, .height = HEIGHT,
		.depth = 1);
	assert_int_equal(ask(c), 0);
	c.array_copy.dx = 4;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
	c.array_copy.dx = 0;
	c.array_copy.sz = 1;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
	c.array_copy.sz = 0;
	c.array_copy.rsvd = 1;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
	c.array_copy.rsvd = 0;
	c.array_copy.src = 5;
	assert_int_equal(ask(c), QCU_ERR_InvalidResourceHandle);
}

/* Rows of device memory and rows of guest memory. */
static void bad_rects(void **state)
{
	const struct qcu_seg all = {0, ROW * HEIGHT};
	struct qCUcmd c, m = CMD(MALLOC, malloc, .size = 2 * ROW * HEIGHT);
	const struct qcu_rect_h2d good = {
		.buf = {1, all.len},
		.pitch = ROW,
		.dst_pitch = 2 * ROW,
		.width = ROW,
		.height = HEIGHT,
	};

	(void)state;
	assert_int_equal(ask_with(&m, NULL, NULL, 0), 0);
#define BAD(change, error)                                                    \
	do {                                                                  \
		for (unsigned int down = 0; down < 2; down++) {               \
			c = CMD(RECT_H2D, rect_h2d, .flags = 0);              \
			c.op = down ? QCU_OP_RECT_D2H : QCU_OP_RECT_H2D;      \
			c.rect_h2d = good;                                    \
			c.rect_h2d.dst = m.malloc.ptr;                        \
			c.flags = QCU_F_SEGS;                                 \
			change;                                               \
			assert_int_equal(ask_with(&c, NULL, &all, 1), error); \
		}                                                             \
	} while (0)
	BAD(, 0);
	BAD(c.rect_h2d.dst = 0, QCU_ERR_InvalidValue);
	BAD(c.rect_h2d.dst = UINT64_MAX - 3, QCU_ERR_InvalidValue);
	BAD(c.rect_h2d.dst += ROW + 1, QCU_ERR_InvalidValue);
	BAD(c.rect_h2d.dst = (uintptr_t)ram, QCU_ERR_InvalidValue);
	BAD(c.rect_h2d.dst_pitch = ROW - 1, QCU_ERR_InvalidPitchValue);
	BAD(c.rect_h2d.dst_pitch = UINT32_MAX, QCU_ERR_InvalidValue);
	BAD(c.rect_h2d.pitch = ROW - 1, QCU_ERR_InvalidPitchValue);
	BAD(c.rect_h2d.pitch = ROW + 1, QCU_ERR_InvalidValue);
	BAD(c.rect_h2d.width = 0, QCU_ERR_InvalidValue);
	BAD(c.rect_h2d.height = 0, QCU_ERR_InvalidValue);
	BAD(c.rect_h2d.height = UINT32_MAX, QCU_ERR_InvalidValue);
	BAD(c.rect_h2d.flags = QCU_COPY_DOWN, QCU_ERR_InvalidValue);
	BAD(c.rect_h2d.stream = 5, QCU_ERR_InvalidResourceHandle);
#undef BAD
	c = CMD(RECT_D2D, rect_d2d, .dst = m.malloc.ptr, .src = m.malloc.ptr + ROW,
		.dst_pitch = 2 * ROW, .src_pitch = 2 * ROW, .width = ROW, .height = HEIGHT);
	assert_int_equal(ask(c), 0);
	c.rect_d2d.flags = QCU_COPY_QUEUED;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
	c.rect_d2d.flags = QCU_COPY_SYNC;
	c.rect_d2d.src++;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
}

/* Joins the bytes of the segments. */
static void gather(uint8_t *to, const struct qcu_seg *segs, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		memcpy(to, ram + (segs[i].gpa < HIGH ? segs[i].gpa : segs[i].gpa - HIGH + RAM / 2),
		       segs[i].len);
		to += segs[i].len;
	}
}

/* Writes from one set of pages and reads into another: the bytes must be the same. */
static void there_and_back(const struct qcu_seg *from, size_t nfrom, const struct qcu_seg *to,
			   size_t nto, uint32_t pitch)
{
	const uint64_t len = (uint64_t)pitch * (HEIGHT - 1) + ROW;
	struct qcu_array_write w = rectangle(0, 0, ROW, HEIGHT, pitch);
	uint8_t *want = malloc(len), *got = malloc(len), *before = malloc(len);
	uint32_t y;

	gather(want, from, nfrom);
	gather(before, to, nto);
	assert_int_equal(rows(false, &w, from, nfrom), 0);
	assert_int_equal(rows(true, &w, to, nto), 0);
	gather(got, to, nto);
	for (y = 0; y < HEIGHT; y++) {
		assert_memory_equal(got + y * pitch, want + y * pitch, ROW);
		/* The bytes between the rows do not matter. */
		if (y + 1 < HEIGHT)
			assert_memory_equal(got + y * pitch + ROW, before + y * pitch + ROW,
					    pitch - ROW);
	}
	free(want);
	free(got);
	free(before);
}

static void scattered_rows(void **state)
{
	const uint32_t pitch = ROW + 36;
	const uint64_t len = (uint64_t)pitch * (HEIGHT - 1) + ROW;
	const struct qcu_seg one = {5, len}, other = {HIGH + 3, len};
	struct qcu_seg pages[64], small[4096];
	size_t n = 0, k = 0;
	uint64_t off;

	(void)state;
	assert_int_equal(create(2, 0), 0);
	for (off = 0; off < len; off += pages[n].len, n++) {
		uint64_t at = (n % 2 ? HIGH : 0) + (100 + 3 * n) * PAGE, part = PAGE;

		if (!n) {
			at += PAGE - 77;
			part = 77;
		}
		pages[n] = (struct qcu_seg){at, part < len - off ? part : len - off};
	}
	for (off = 0; off < len; off += small[k].len, k++)
		small[k] = (struct qcu_seg){400 * PAGE + k * 64, 13 < len - off ? 13 : len - off};
	there_and_back(&one, 1, &other, 1, pitch);
	there_and_back(pages, n, &one, 1, pitch);
	there_and_back(&other, 1, pages, n, pitch);
	there_and_back(pages, n, small, k, pitch);
	there_and_back(small, k, &other, 1, pitch);
}

/*
 * Chunks that are mapped: the rows are copied in place. Only rows that cross a border are carried.
 */
static void window_rows(void **state)
{
	const struct qcu_seg chunks[] = {{64 * PAGE, 2 * PAGE}, {HIGH, 3 * PAGE}, {0, 4 * PAGE}};
	const uint64_t bytes = (uint64_t)ROW * HEIGHT;
	struct qCUcmd c = {.op = QCU_OP_MAP, .flags = QCU_F_SEGS};
	struct qcu_stats_desc st;
	uint8_t *want = malloc(9 * PAGE), *got = malloc(9 * PAGE);
	struct qcu_array_write w = rectangle(0, 0, ROW, HEIGHT, ROW);

	(void)state;
	assert_int_equal(create(2, 0), 0);
	gather(want, chunks, 3);
	c.map.va = VA;
	c.map.len = 9 * PAGE;
	assert_int_equal(ask_with(&c, NULL, chunks, 3), 0);
	c = CMD(ARRAY_WRITE, array_write, .flags = 0);
	c.array_write = w;
	c.buf.addr = VA + 8;
	c.flags = QCU_F_WINDOW;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	st = stats();
	assert_int_equal(st.staged_bytes, 2 * ROW); /* two borders with a row across each */
	assert_int_equal(st.window_bytes, bytes - 2 * ROW);
	assert_int_equal(st.h2d_bytes, bytes);
	for (size_t i = 0; i < 3; i++)
		memset(ram + (chunks[i].gpa < HIGH ? chunks[i].gpa : RAM / 2), 0, chunks[i].len);
	c = CMD(ARRAY_READ, array_read, .flags = 0);
	c.array_write = w;
	c.buf.addr = VA + 8;
	c.flags = QCU_F_WINDOW;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	gather(got, chunks, 3);
	assert_memory_equal(got + 8, want + 8, bytes);
	/* Beyond the end of the map. */
	c.buf.addr = VA + 9 * PAGE - bytes + 1;
	c.status = 0;
	c.flags = QCU_F_WINDOW;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidValue);
	c = (struct qCUcmd){.op = QCU_OP_UNMAP};
	c.unmap.va = VA;
	c.unmap.len = 9 * PAGE;
	assert_int_equal(ask(c), 0);
	free(want);
	free(got);
}

static int texture(const struct qcu_texture_msg *t, uint64_t len, uint64_t *object)
{
	struct qCUcmd c = CMD(TEXTURE_CREATE, texture_create, .buf = {1, len});
	int rc;

	c.flags = QCU_F_MSG;
	rc = ask_with(&c, t, NULL, 0);
	*object = c.texture_create.object;
	return rc;
}

static int texture_destroy(uint64_t object)
{
	return ask(CMD(TEXTURE_DESTROY, texture_destroy, .object = object));
}

static void bad_textures(void **state)
{
	const struct qcu_texture_msg good = {.kind = QCU_TEXTURE_ARRAY, .array = 2};
	struct qCUcmd m = CMD(MALLOC, malloc, .size = 4096);
	const uint64_t len = sizeof(good);
	struct qcu_texture_msg t = good;
	uint64_t object;

	(void)state;
	assert_int_equal(ask_with(&m, NULL, NULL, 0), 0);
	assert_int_equal(texture(&t, len, &object), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(2, 0), 0);
	assert_int_equal(create(3, 7), 0);
	assert_int_equal(texture(&t, len - 1, &object), QCU_ERR_InvalidValue);
	assert_int_equal(texture(&t, 0, &object), QCU_ERR_InvalidValue);
#define BAD(change, error)                                          \
	do {                                                        \
		t = good;                                           \
		change;                                             \
		assert_int_equal(texture(&t, len, &object), error); \
		assert_int_equal(object, 0);                        \
	} while (0)
	BAD(t.kind = 4, QCU_ERR_InvalidValue);
	BAD(t.level = 1, QCU_ERR_InvalidResourceHandle);
	BAD(t.rsvd = 1, QCU_ERR_InvalidValue);
	BAD(t.view = 2, QCU_ERR_InvalidValue);
	BAD(t.filter = 2, QCU_ERR_InvalidValue);
	BAD(t.read = UINT32_MAX, QCU_ERR_InvalidValue);
	BAD(t.address[2] = 4, QCU_ERR_InvalidValue);
	BAD(t.kind = QCU_TEXTURE_MIPMAP,
	    QCU_ERR_InvalidValue); /* of an array that is not mipmapped */
	BAD((t.kind = QCU_TEXTURE_MIPMAP, t.array = 3),
	    QCU_ERR_InvalidValue); /* the unit is texels */
	BAD((t.view = 1, t.last_level = 1, t.view_width = WIDTH), QCU_ERR_InvalidValue);
	BAD((t.view = 1, t.view_width = WIDTH, t.view_format = 3), QCU_ERR_NotSupported);
	BAD((t.view = 1, t.view_width = WIDTH, t.first_layer = 1), QCU_ERR_InvalidValue);

	t = good;
	BAD((t.kind = QCU_TEXTURE_LINEAR, t.addr = m.malloc.ptr, t.bytes = 64),
	    QCU_ERR_InvalidChannelDescriptor);
#define LINEAR                                                                            \
	t.kind = QCU_TEXTURE_LINEAR, t.bits[0] = 32, t.format = 2, t.addr = m.malloc.ptr, \
	t.bytes = 4096
	BAD((LINEAR, t.bytes = 0), QCU_ERR_InvalidValue);
	BAD((LINEAR, t.bytes = 3), QCU_ERR_InvalidValue);
	BAD((LINEAR, t.bytes = 4 * ((1ull << 30) + 1)),
	    QCU_ERR_InvalidValue); /* too many elements */
	BAD((LINEAR, t.bytes = UINT64_MAX - t.addr + 2), QCU_ERR_InvalidValue);
	BAD((LINEAR, t.bytes = UINT64_MAX), QCU_ERR_InvalidValue);
	BAD((LINEAR, t.addr += 4, t.bytes = 4), QCU_ERR_InvalidValue);
	BAD((LINEAR, t.addr = (uintptr_t)ram), QCU_ERR_InvalidValue);
	BAD((LINEAR, t.addr += 4096), QCU_ERR_InvalidValue);
	BAD((LINEAR, t.addr -= 512), QCU_ERR_InvalidValue); /* from outside into the memory */
	BAD((LINEAR, t.view = 1), QCU_ERR_InvalidValue);
	BAD((LINEAR, t.format = 3), QCU_ERR_InvalidChannelDescriptor);
#define PITCH LINEAR, t.kind = QCU_TEXTURE_PITCH, t.width = 16, t.height = 16, t.pitch = 256
	BAD((PITCH, t.pitch = 512), QCU_ERR_InvalidValue);
	BAD((PITCH, t.pitch = 32), QCU_ERR_InvalidValue);
	BAD((PITCH, t.pitch = 72), QCU_ERR_InvalidValue);
	BAD((PITCH, t.height = UINT32_MAX, t.pitch = UINT32_MAX), QCU_ERR_InvalidValue);
	BAD((PITCH, t.width = 0), QCU_ERR_InvalidValue);
	BAD((PITCH, t.height = 0), QCU_ERR_InvalidValue);
#undef BAD
	t = good;
	PITCH;
	assert_int_equal(texture(&t, len, &object), 0);
	assert_int_not_equal(object, 0);
	assert_int_equal(texture_destroy(object), 0);
	t = good;
	LINEAR;
	t.bytes = 4 * 268435456ull; /* far past the memory */
	assert_int_equal(texture(&t, len, &object), 0);
	assert_int_equal(texture_destroy(object), 0);
	t = good;
	LINEAR;
	assert_int_equal(texture(&t, len, &object), 0); /* left for the end of the mirror */
	assert_int_equal(ask(CMD(SURFACE_CREATE, surface_create, .array = 9)),
			 QCU_ERR_InvalidResourceHandle);
}

/*
 * Only objects that exist can be destroyed, once, and as their own kind. Their array stays as long
 * as they do.
 */
static void objects(void **state)
{
	struct qcu_texture_msg t = {.kind = QCU_TEXTURE_ARRAY, .array = 2};
	struct qCUcmd s = CMD(SURFACE_CREATE, surface_create, .array = 2);
	uint64_t tex, again;

	(void)state;
	assert_int_equal(texture_destroy(0), QCU_ERR_InvalidValue);
	assert_int_equal(texture_destroy(UINT64_MAX), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(ARRAY_CREATE, array_create, .array = 2, .width = 4,
				 .flags = BE_ARRAY_SURFACE, .bits = {32}, .kind = 2)),
			 0);
	assert_int_equal(texture(&t, sizeof(t), &tex), 0);
	assert_int_equal(ask_with(&s, NULL, NULL, 0), 0);
	assert_int_not_equal(s.surface_create.object, tex);
	assert_int_equal(ask(CMD(SURFACE_DESTROY, surface_destroy, .object = tex)),
			 QCU_ERR_InvalidValue);
	assert_int_equal(texture_destroy(s.surface_create.object), QCU_ERR_InvalidValue);
	assert_int_equal(texture_destroy(tex + 1), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(ARRAY_DESTROY, array_destroy, .array = 2)), 0);
	assert_int_equal(texture(&t, sizeof(t), &again), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(texture_destroy(tex), 0);
	assert_int_equal(texture_destroy(tex), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(DEVICE_RESET, device_reset, 0)), 0);
	assert_int_equal(
		ask(CMD(SURFACE_DESTROY, surface_destroy, .object = s.surface_create.object)),
		QCU_ERR_InvalidValue);
}

/* A reset destroys the objects. The rest is freed with the mirror. */
static void reset(void **state)
{
	(void)state;
	assert_int_equal(create(2, 0), 0);
	assert_int_equal(ask(CMD(DEVICE_RESET, device_reset, 0)), 0);
	assert_int_equal(ask(CMD(ARRAY_DESTROY, array_destroy, .array = 2)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(2, 7), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, mirror_stop)
	static const struct CMUnitTest tests[] = {
		T(bad_arrays),	T(memory_is_counted), T(bad_rectangles),
		T(bad_boxes),	T(bad_rects),	      T(scattered_rows),
		T(window_rows), T(bad_textures),      T(objects),
		T(reset),
	};
#undef T

	return cmocka_run_group_tests(tests, make_ram, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device memory that the variables of a module take, read from its image: PTX first, with what
 * could hide a variable, then machine code, then fat binaries. A module whose variables are over
 * the limit does not reach the backend.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <stdio.h>

#include "qcu-device/backend/image.h"
#include "qcu-device/base/usage.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"
#define GIB  (1ull << 30)
#define ALL  (1ull << 40)

static uint64_t memory_of(const void *image, size_t len)
{
	const char *why = NULL;
	uint64_t memory = 1;
	int rc = image_measure(image, len, &why, &memory);

	if (rc)
		fail_msg("%s", why);
	return memory;
}

static void ptx(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} t[] = {
		{"", 0},
		{".global .align 4 .b8 big[8589934592];", 8 * GIB},
		{".visible .global .b8 x[16][1024];", 16384},
		{".global .u32 a, b[3], c;", 4 + 12 + 4},
		{".global .align 16 .v4 .f32 v[8];", 128},
		{".global .attribute(.managed) .f64 d[0x10];", 128},
		{".global .b8 s[4U] = {1, 2, 3, 4};", 4},
		{".global .u64 p[2] = {generic(x), y};\n.global .b16 q[5];", 16 + 10},
		{".global /* .b8 */ .b8 // ;\n x /* [ */ [ 7 ] ;", 7},
		{".GLOBAL .b8 x[99];", 0},
		/* Sizes that only the compiler could compute. */
		{".global .b8 x[1 << 33];", ALL},
		{".global .b8 x[(8)];", ALL},
		{".global .u32 x[SIZE];", 4 * ALL},
		{".global .b8 x[16777216][16777216][16777216];", UINT64_MAX},
		/* Other memory, and what only looks like a variable. */
		{".shared .b8 x[1024]; .const .b8 y[64]; .local .b8 z[4];", 0},
		{"// .global .b8 x[1024];\n/* .global .b8 y[1024]; */", 0},
		{".file 1 \".global .b8 x[1024];\"", 0},
		{".entry k(.param .u64 .ptr .global .align 8 p, .param .b8 q[4096]) { ret; }", 0},
		{".entry k() { ld.global.u32 %r1, [%rd1+4096]; st.global.u8 [%rd2], 7; }", 0},
		{".entry k() { .loc 1 2 3\n ld.global.u32 %r1, [%rd1]; L: st.global.u8 [a], 7; }",
		 0},
		{".entry k() { @p ld.global.u32 %r1, [%rd1]; @!%p1 atom.global.u8 [a], 7; }", 0},
		/* Blanks need not be there. */
		{".visible.global.align 4.b8 x[12];", 12},
		{".extern.shared.align 4.b8 y[];.align 8.global.b8 x[13];", 13},
		{".target sm_75.global.b8 x[14];", 14},
		{".target sm_75,debug.global.v2.b8 x[7];", 14},
		/* The string does not hide what comes after it. */
		{".file 1 \"/*\"\n.global .b8 x[10];", 10},
		{".file 1 \"a\n.global .b8 x[11];", 11},
	};
	char text[512];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint64_t bytes;
		int n = snprintf(text, sizeof(text), HEAD "%s\n", t[i].text);

		bytes = memory_of(text, (size_t)n + 1);
		if (bytes != t[i].bytes)
			fail_msg("%s: %llu", t[i].text, (unsigned long long)bytes);
	}
}

/* Machine code with an empty section of each kind. */
struct code {
	Elf64_Ehdr head;
	Elf64_Shdr sections[5];
	char names[8];
};

static struct code make_code(uint64_t bss, uint64_t global)
{
	struct code c = {
		.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			 .e_machine = 190,
			 .e_ehsize = sizeof(c.head),
			 .e_shoff = offsetof(struct code, sections),
			 .e_shentsize = sizeof(c.sections[0]),
			 .e_shnum = 5,
			 .e_shstrndx = 1},
		.sections = {{0},
			     {.sh_type = SHT_STRTAB,
			      .sh_offset = offsetof(struct code, names),
			      .sh_size = sizeof(c.names)},
			     {.sh_type = SHT_NOBITS, .sh_size = bss},
			     {.sh_type = 0x70000007, .sh_size = global},
			     /* What a block shares is no device memory. */
			     {.sh_type = 0x7000000a, .sh_size = 4096}},
	};

	return c;
}

static void machine_code(void **state)
{
	struct code c = make_code(0, 0);

	(void)state;
	assert_int_equal(memory_of(&c, sizeof(c)), 0);
	c = make_code(3 * GIB, 5);
	assert_int_equal(memory_of(&c, sizeof(c)), 3 * GIB + 5);
}

static size_t add_entry(uint8_t *to, uint16_t kind, const void *code, uint64_t len)
{
	uint16_t head[4] = {kind, 0x101, 64, 0};

	memset(to, 0, 64);
	memcpy(to, head, sizeof(head));
	memcpy(to + 8, &len, sizeof(len));
	memcpy(to + 64, code, len);
	return 64 + len;
}

static size_t add_fatbin(uint8_t *to, uint64_t bss, const char *text)
{
	struct code c = make_code(bss, 0);
	uint32_t head[2] = {0xba55ed50, 0x100001};
	uint64_t len = add_entry(to + 16, 2, &c, sizeof(c));

	len += add_entry(to + 16 + len, 1, text, strlen(text) + 1);
	memcpy(to, head, sizeof(head));
	memcpy(to + 8, &len, sizeof(len));
	return 16 + len;
}

static void fat_binaries(void **state)
{
	uint8_t image[8192];
	size_t len;

	(void)state;
	/* A GPU uses one entry of each. */
	len = add_fatbin(image, 1000, HEAD ".global .b8 x[3000];");
	assert_int_equal(memory_of(image, len), 3000);
	len += add_fatbin(image + len, 500, HEAD ".global .b8 x[20];");
	assert_int_equal(memory_of(image, len), 3500);
}

static int load(uint32_t id, const char *text)
{
	struct qcu_seg seg = {(uintptr_t)text, strlen(text) + 1};
	struct qCUcmd c = CMD(MODULE_LOAD, module_load, .buf = {1, seg.len}, .module = id);

	c.flags = QCU_F_SEGS;
	return ask_with(&c, NULL, &seg, 1);
}

static void over_the_limit(void **state)
{
	struct usage *usage = usage_new(-1);
	struct limits limits = {.vm = {0}};

	(void)state;
	limits.vm[LIMIT_DEVICE_MEMORY] = GIB;
	limits_default(&limits);
	fake_reset();
	assert_int_equal(mir_create(&mirror, &(struct mir_config){.session = 1,
								  .ops = &fake_ops,
								  .limits = &limits,
								  .usage = usage}),
			 0);
	assert_int_equal(load(2, FAKE_IMAGE "\n.global .b8 x[8589934592];"),
			 QCU_ERR_MemoryAllocation);
	assert_int_equal(fake.images, 0);
	assert_int_equal(usage_sum(usage, LIMIT_DEVICE_MEMORY, 0), 0);
	assert_int_equal(load(2, FAKE_IMAGE "\n.global .b8 x[805306368];"), 0);
	assert_int_equal(load(3, FAKE_IMAGE "\n.global .b8 x[805306368];"),
			 QCU_ERR_MemoryAllocation);
	assert_int_equal(ask(CMD(MODULE_UNLOAD, module_unload, .module = 2)), 0);
	assert_int_equal(usage_sum(usage, LIMIT_DEVICE_MEMORY, 0), 0);
	assert_int_equal(load(3, FAKE_IMAGE "\n.global .b8 x[805306368];"), 0);
	assert_int_equal(mirror_stop(NULL), 0);
	usage_free(usage);
}

static void names(void **state)
{
	static const struct {
		const char *text, *names;
		bool mallocs;
	} t[] = {
		{"", "", false},
		{".visible .global .align 4 .b8 name[1024][16] = {1, 2};", "name ", false},
		{".global .u32 b, a[3], _c$1;\n.global .u32 a;", "_c$1 a b ", false},
		{".const .align 4 .f32 k[2] = {x, y};.global .u64 p = generic(q);", "k p ", false},
		{".global .attribute(.managed) .v4 .f32 m = {a, b, c, d}, n;", "m n ", false},
		{".global .u64 f[2] = {generic(g), h}, i = j;", "f i ", false},
		{".entry k(.param .u64 .ptr .const .align 8 p) { ld.const.u32 %r1, [v]; }", "",
		 false},
		{".shared .b8 s[4]; .local .b8 l[4]; // .global .b8 x;", "", false},
		{".extern .func (.param .b64 r) malloc (.param .b64 s);", "", true},
		{".global .b8 mallocs;", "mallocs ", false},
	};
	struct image_names n;
	char text[1024];
	size_t i, k;

	(void)state;
	assert_int_not_equal(image_names("x", 2, &n), 0);
	image_names_free(&n);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		snprintf(text, sizeof(text), HEAD "%s", t[i].text);
		assert_int_equal(image_names(text, strlen(text) + 1, &n), 0);
		for (text[0] = k = 0; k < n.count; k++) {
			strcat(text, n.name[k]);
			strcat(text, " ");
		}
		assert_string_equal(text, t[i].names);
		assert_int_equal(n.mallocs, t[i].mallocs);
		image_names_free(&n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ptx),
		cmocka_unit_test(names),
		cmocka_unit_test(machine_code),
		cmocka_unit_test(fat_binaries),
		cmocka_unit_test(over_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

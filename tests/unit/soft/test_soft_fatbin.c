/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fat binary reader: images that the test makes byte by byte and damages in every way, and the
 * output of nvcc itself, if nvcc is there.
 */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include <lz4.h>
#include <zstd.h>

#include "qcu-device/soft/code/code.h"
#include "tests/unit/soft/test_soft_fake.h"

#define LZ4	  0x2000u
#define ZSTD	  0x8000u
#define ARCH_ONLY 0x100000u
#define FAMILY	  0x200000u

#define TEXT FAKE_PTX "// aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"

struct image {
	unsigned char bytes[65536];
	size_t len;
};

static void put16(unsigned char *p, uint16_t v)
{
	memcpy(p, &v, 2);
}

static void put32(unsigned char *p, uint32_t v)
{
	memcpy(p, &v, 4);
}

static void put64(unsigned char *p, uint64_t v)
{
	memcpy(p, &v, 8);
}

/* Opens a container; close_container writes its final length. */
static size_t open_container(struct image *im)
{
	size_t at = im->len;

	memset(im->bytes + at, 0, 16);
	put32(im->bytes + at, 0xba55ed50);
	put16(im->bytes + at + 4, 1);
	put16(im->bytes + at + 6, 16);
	im->len += 16;
	return at;
}

static void close_container(struct image *im, size_t at)
{
	put64(im->bytes + at + 8, im->len - at - 16);
}

/* Returns where the entry begins. */
static size_t add_entry(struct image *im, unsigned int kind, unsigned int arch, uint32_t flags,
			const char *text)
{
	unsigned char *e = im->bytes + im->len, *payload = e + 80;
	size_t at = im->len, size = strlen(text) + 1, packed = size, exact;

	memset(e, 0, 80);
	if (flags & ZSTD)
		packed = ZSTD_compress(payload, 8192, text, size, 3);
	else if (flags & LZ4)
		packed = (size_t)LZ4_compress_default(text, (char *)payload, (int)size, 8192);
	else
		memcpy(payload, text, size);
	exact = packed;
	while (packed % 8)
		payload[packed++] = 0;
	put16(e, (uint16_t)kind);
	put16(e + 2, 0x101);
	put32(e + 4, 80);
	put64(e + 8, packed);
	if (flags & (ZSTD | LZ4)) {
		put32(e + 16, (uint32_t)exact);
		put64(e + 56, size);
	}
	put32(e + 20, 64);
	put32(e + 28, arch);
	put64(e + 40, 0x11 | flags);
	im->len += 80 + packed;
	return at;
}

static size_t one_entry(struct image *im, unsigned int kind, unsigned int arch, uint32_t flags)
{
	size_t c, e;

	im->len = 0;
	c = open_container(im);
	e = add_entry(im, kind, arch, flags, TEXT);
	close_container(im, c);
	return e;
}

static int read_bytes(const void *p, size_t len, unsigned int sm, struct soft_units *units)
{
	char why[256] = "";
	/* Its own allocation, so that a sanitizer sees a read beyond the end. */
	void *copy = malloc(len ? len : 1);
	int err;

	if (len)
		memcpy(copy, p, len);
	err = soft_fatbin_read(copy, len, sm, units, why, sizeof(why));
	free(copy);
	if (err) {
		assert_null(units->unit);
		assert_int_equal(units->count, 0);
		if (err != QCU_ERR_MemoryAllocation)
			assert_true(strlen(why) > 10);
	}
	return err;
}

static int check(const struct image *im, unsigned int sm)
{
	struct soft_units u;
	int err = read_bytes(im->bytes, im->len, sm, &u);

	if (!err)
		soft_units_free(&u);
	return err;
}

/* Returns the arch of the text that a device gets, or the negative error. */
static int choose(const struct image *im, unsigned int sm)
{
	struct soft_units u;
	int err = read_bytes(im->bytes, im->len, sm, &u);

	if (err)
		return -err;
	assert_int_equal(u.count, 1);
	assert_string_equal(u.unit[0].text, TEXT);
	assert_int_equal(u.unit[0].len, strlen(TEXT));
	err = (int)u.unit[0].arch;
	soft_units_free(&u);
	return err;
}

static void refuses_what_is_no_image(void **state)
{
	static const char *const bad[] = {
		"",	  "x",		 "PTX",		  "// only a comment", "/* without an end",
		" \n\t ", "version 9.0", ".target sm_75", "\x50\xed\x55",      "\x50\xed\x55\xba"};
	struct soft_units u;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(read_bytes(bad[i], strlen(bad[i]), 75, &u),
				 QCU_ERR_InvalidKernelImage);
	assert_int_equal(read_bytes("\177ELF\2\1\1", 7, 75, &u), QCU_ERR_NoKernelImageForDevice);
}

static void takes_plain_ptx(void **state)
{
	static const char text[] = "\n// a comment\n/* another */ " FAKE_PTX;
	static const char newer[] = ".version 9.0\n.target sm_90a\n";
	struct soft_units u;

	(void)state;
	/* Without a NUL at the end, and with a NUL inside. */
	assert_int_equal(read_bytes(text, strlen(text), 75, &u), 0);
	assert_int_equal(u.count, 1);
	assert_int_equal(u.unit[0].len, strlen(text));
	soft_units_free(&u);
	assert_int_equal(read_bytes(text, sizeof(text), 75, &u), 0);
	assert_int_equal(u.unit[0].len, strlen(text));
	soft_units_free(&u);
	assert_int_equal(read_bytes(newer, strlen(newer), 75, &u), QCU_ERR_NoKernelImageForDevice);
	assert_int_equal(read_bytes(newer, strlen(newer), 90, &u), 0);
	soft_units_free(&u);
}

static void unpacks_what_it_takes(void **state)
{
	struct image im;

	(void)state;
	one_entry(&im, 1, 75, 0);
	assert_int_equal(choose(&im, 75), 75);
	one_entry(&im, 1, 75, LZ4);
	assert_int_equal(choose(&im, 75), 75);
	one_entry(&im, 1, 75, ZSTD);
	assert_int_equal(choose(&im, 75), 75);
}

static void refuses_sizes_that_do_not_fit(void **state)
{
	static const uint64_t sizes[] = {
		1, 63, 81, 4096, UINT32_MAX, 1ull << 40, UINT64_MAX - 79, UINT64_MAX};
	struct image im;
	size_t e, i, len;

	(void)state;
	e = one_entry(&im, 1, 75, ZSTD);
	len = im.len;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		one_entry(&im, 1, 75, ZSTD);
		put64(im.bytes + 8, sizes[i]); /* of the container */
		assert_int_equal(check(&im, 75), QCU_ERR_InvalidKernelImage);
		one_entry(&im, 1, 75, ZSTD);
		put64(im.bytes + e + 8, sizes[i]); /* of the entry */
		assert_int_equal(check(&im, 75), QCU_ERR_InvalidKernelImage);
		one_entry(&im, 1, 75, ZSTD);
		put32(im.bytes + e + 4, (uint32_t)sizes[i]); /* of its header */
		assert_int_equal(check(&im, 75), QCU_ERR_InvalidKernelImage);
		one_entry(&im, 1, 75, ZSTD);
		put32(im.bytes + e + 16, (uint32_t)sizes[i]); /* packed */
		assert_int_equal(check(&im, 75), QCU_ERR_InvalidKernelImage);
		one_entry(&im, 1, 75, ZSTD);
		put64(im.bytes + e + 56, sizes[i]); /* unpacked */
		assert_int_equal(check(&im, 75), QCU_ERR_InvalidKernelImage);
		one_entry(&im, 1, 75, LZ4);
		put64(im.bytes + e + 56, sizes[i]);
		assert_int_equal(check(&im, 75), QCU_ERR_InvalidKernelImage);
	}
	for (i = 0; i < 16; i++) {
		one_entry(&im, 1, 75, 0);
		put16(im.bytes + 6, (uint16_t)i); /* of the container's header */
		assert_int_equal(check(&im, 75), QCU_ERR_InvalidKernelImage);
	}
	/* A text without an end. */
	one_entry(&im, 1, 75, 0);
	put64(im.bytes + e + 8, 64);
	put64(im.bytes + 8, 80 + 64);
	im.len = 16 + 80 + 64;
	assert_int_equal(check(&im, 75), QCU_ERR_InvalidKernelImage);
	one_entry(&im, 1, 75, ZSTD);
	put64(im.bytes + e + 40, LZ4 | ZSTD);
	assert_int_equal(check(&im, 75), QCU_ERR_InvalidKernelImage);
	one_entry(&im, 1, 75, ZSTD);
	memcpy(im.bytes + len, "rubbish!", 8);
	im.len += 8;
	assert_int_equal(check(&im, 75), QCU_ERR_InvalidKernelImage);
	memset(im.bytes + len, 0, 8);
	assert_int_equal(check(&im, 75), QCU_ERR_Success);
}

/* 200 MiB of blanks are packed into a few KiB. Two of these exceed the limit of 256 MiB. */
static void refuses_bombs(void **state)
{
	const size_t size = 200u << 20;
	char *text = malloc(size), *packed = malloc(1 << 20);
	struct image im = {.len = 0};
	struct soft_units u;
	unsigned int i;
	size_t n;

	(void)state;
	memset(text, ' ', size - 1);
	memcpy(text, FAKE_PTX, strlen(FAKE_PTX));
	text[size - 1] = '\0';
	n = ZSTD_compress(packed, 1 << 20, text, size, 1);
	free(text);
	assert_in_range(n, 1, 30000);
	for (i = 0; i < 2; i++) {
		size_t c = open_container(&im);
		unsigned char *e = im.bytes + im.len;

		add_entry(&im, 1, 75, ZSTD, "");
		im.len = (size_t)(e - im.bytes) + 80 + n;
		memcpy(e + 80, packed, n);
		put64(e + 8, n);
		put32(e + 16, (uint32_t)n);
		put64(e + 56, size);
		close_container(&im, c);
		if (!i) {
			assert_int_equal(read_bytes(im.bytes, im.len, 75, &u), QCU_ERR_Success);
			assert_int_equal(u.unit[0].len, size - 1);
			soft_units_free(&u);
		}
	}
	assert_int_equal(check(&im, 75), QCU_ERR_InvalidKernelImage);
	free(packed);
}

static void picks_the_best_that_runs(void **state)
{
	struct image im = {.len = 0};
	size_t c = open_container(&im);

	(void)state;
	add_entry(&im, 1, 90, 0, TEXT);
	add_entry(&im, 2, 75, 0, "machine code");
	add_entry(&im, 1, 75, ZSTD, TEXT);
	add_entry(&im, 1, 80, LZ4, TEXT);
	add_entry(&im, 8, 75, 0, "something else");
	add_entry(&im, 1, 100, ARCH_ONLY, TEXT);
	add_entry(&im, 1, 120, FAMILY, TEXT);
	close_container(&im, c);
	assert_int_equal(choose(&im, 75), 75);
	assert_int_equal(choose(&im, 80), 80);
	assert_int_equal(choose(&im, 89), 80);
	assert_int_equal(choose(&im, 90), 90);
	assert_int_equal(choose(&im, 100), 100);
	assert_int_equal(choose(&im, 103), 90);
	assert_int_equal(choose(&im, 120), 120);
	assert_int_equal(choose(&im, 121), 120);
	assert_int_equal(choose(&im, 70), -QCU_ERR_NoKernelImageForDevice);
}

static void says_how_to_compile(void **state)
{
	struct soft_units u;
	struct image im;
	char why[256];

	(void)state;
	one_entry(&im, 2, 75, 0);
	assert_int_equal(soft_fatbin_read(im.bytes, im.len, 75, &u, why, sizeof(why)),
			 QCU_ERR_NoKernelImageForDevice);
	assert_non_null(strstr(why, "machine code"));
	assert_non_null(strstr(why, "-arch=compute_75"));
	one_entry(&im, 1, 90, 0);
	assert_int_equal(soft_fatbin_read(im.bytes, im.len, 75, &u, why, sizeof(why)),
			 QCU_ERR_NoKernelImageForDevice);
	assert_non_null(strstr(why, "compute_90"));
	assert_non_null(strstr(why, "7.5"));
	assert_non_null(strstr(why, "QCU_SOFT_SM=90"));
	/* No container with an entry in it. */
	im.len = 0;
	close_container(&im, open_container(&im));
	assert_int_equal(check(&im, 75), QCU_ERR_NoKernelImageForDevice);
}

/* An entry with options at `place` of its header; they end where the header ends. */
static unsigned int max_regs_with(uint32_t place, uint32_t at, uint32_t size, const char *options)
{
	const unsigned int room = 64;
	struct image im;
	unsigned char *e = im.bytes + one_entry(&im, 1, 75, 0);
	unsigned int n;
	struct soft_units u;

	memmove(e + 80 + room, e + 80, (size_t)(im.bytes + im.len - e) - 80);
	im.len += room;
	put64(im.bytes + 8, im.len - 16);
	put32(e + 4, 80 + room);
	put32(e + 20, place);
	memset(e + 64, ' ', 16 + room);
	memcpy(e + 80 + room - strlen(options), options, strlen(options));
	if (place <= 80 + room - 8) {
		put32(e + place, at);
		put32(e + place + 4, size);
	}
	assert_int_equal(read_bytes(im.bytes, im.len, 75, &u), QCU_ERR_Success);
	assert_string_equal(u.unit[0].text, TEXT);
	n = u.unit[0].max_regs;
	soft_units_free(&u);
	return n;
}

static void options_lie_in_the_header(void **state)
{
	static const char good[] = "-maxrregcount=64 ";

	(void)state;
	assert_int_equal(max_regs_with(64, 72, 72, good), 64);
	assert_int_equal(max_regs_with(72, 80, 64, "--maxrregcount 32"), 32);
	assert_int_equal(max_regs_with(64, 72, 72, "-maxrregcount=12"), 12);
	assert_int_equal(max_regs_with(64, 72, 71, "-maxrregcount=12"), 1);
	assert_int_equal(max_regs_with(64, 72, 72, "-maxrregcount="), 0);
	assert_int_equal(max_regs_with(64, 72, 72, "-maxrregcount"), 0);
	assert_int_equal(max_regs_with(64, 72, 72, "-maxrregcoun"), 0);
	assert_in_range(max_regs_with(64, 72, 72, "-maxrregcount=99999999999999999999"), 1000,
			99999);
	assert_int_equal(max_regs_with(64, 72, 73, good), 0);
	assert_int_equal(max_regs_with(64, 145, 0, good), 0);
	assert_int_equal(max_regs_with(64, UINT32_MAX, UINT32_MAX, good), 0);
	assert_int_equal(max_regs_with(64, 72, UINT32_MAX, good), 0);
	assert_int_equal(max_regs_with(137, 0, 0, good), 0);
	assert_int_equal(max_regs_with(144, 0, 0, good), 0);
	assert_int_equal(max_regs_with(UINT32_MAX, 0, 0, good), 0);
}

static void several_containers_are_several_units(void **state)
{
	struct image im = {.len = 0};
	struct soft_units u;
	size_t c;

	(void)state;
	close_container(&im, open_container(&im));
	c = open_container(&im);
	add_entry(&im, 1, 75, ZSTD, FAKE_PTX "// one\n");
	close_container(&im, c);
	c = open_container(&im);
	add_entry(&im, 1, 121, 0, FAKE_PTX "// not for this device\n");
	close_container(&im, c);
	c = open_container(&im);
	add_entry(&im, 1, 75, LZ4, FAKE_PTX "// two\n");
	close_container(&im, c);
	assert_int_equal(read_bytes(im.bytes, im.len, 75, &u), QCU_ERR_Success);
	assert_int_equal(u.count, 2);
	assert_string_equal(u.unit[0].text, FAKE_PTX "// one\n");
	assert_string_equal(u.unit[1].text, FAKE_PTX "// two\n");
	soft_units_free(&u);
}

/* Any image gets an answer. A truncated image never passes for a whole one. */
static void survive(const unsigned char *image, size_t len)
{
	unsigned char *copy = malloc(len);
	struct soft_units u;
	size_t i;
	int err;

	for (i = 0; i < len; i++)
		assert_int_not_equal(read_bytes(image, i, 75, &u), QCU_ERR_Success);
	memcpy(copy, image, len);
	for (i = 0; i < len; i++) {
		copy[i] ^= 0xff;
		err = read_bytes(copy, len, 75, &u);
		if (!err)
			soft_units_free(&u);
		copy[i] ^= 0xff ^ (1u << i % 8);
		err = read_bytes(copy, len, 75, &u);
		if (!err)
			soft_units_free(&u);
		copy[i] = image[i];
	}
	free(copy);
}

static void survives_damage(void **state)
{
	struct image im;
	size_t c;

	(void)state;
	one_entry(&im, 1, 75, 0);
	survive(im.bytes, im.len);
	one_entry(&im, 1, 75, LZ4);
	survive(im.bytes, im.len);
	one_entry(&im, 1, 75, ZSTD);
	c = open_container(&im);
	add_entry(&im, 2, 75, ZSTD, TEXT);
	add_entry(&im, 1, 75, 0, TEXT);
	close_container(&im, c);
	/* Cut between the containers, it is a whole image. */
	survive(im.bytes + c, im.len - c);
}

/* ---- nvcc ---- */

/* Without a header: nvcc would read it twice for each case. */
static const char source[] = "__device__ int table[7];\n"
			     "template <int N> __global__ void wave(float *x) {\n"
			     "	for (int i = 0; i < N; i++) x[i] = __sinf(x[i]) + table[i % 7];\n"
			     "}\n"
			     "__global__ void hello(int n) { printf(\"%d\\n\", n); }\n"
			     "void use() { wave<5><<<1, 1>>>(0); hello<<<1, 1>>>(1); }\n";

static bool find_nvcc(char *path, size_t size)
{
	const char *home = getenv("CUDA_HOME");

	snprintf(path, size, "%s/bin/nvcc", home ? home : "/usr/local/cuda");
	return !access(path, X_OK);
}

static unsigned char *compile(const char *nvcc, const char *dir, const char *options, size_t *len)
{
	char command[PATH_MAX * 3], path[PATH_MAX];
	unsigned char *p;
	FILE *f;
	long n;

	snprintf(command, sizeof(command),
		 "%s -std=c++14 -fatbin %s -o %s/t.fatbin %s/t.cu >%s/log 2>&1", nvcc, options, dir,
		 dir, dir);
	if (system(command))
		fail_msg("%s", command);
	snprintf(path, sizeof(path), "%s/t.fatbin", dir);
	f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	assert_true(n > 0);
	rewind(f);
	p = malloc((size_t)n);
	assert_int_equal(fread(p, 1, (size_t)n, f), n);
	fclose(f);
	*len = (size_t)n;
	return p;
}

static void reads_what_nvcc_writes(void **state)
{
	static const struct {
		const char *options;
		unsigned int sm, arch, max_regs;
	} cases[] = {
		{"--compress-mode=none", 75, 75, 0},
		{"--compress-mode=size", 75, 75, 0},
		{"--compress-mode=speed", 75, 75, 0},
		{"--compress-mode=balance", 75, 75, 0},
		{"", 75, 75, 0},
		{"-gencode arch=compute_75,code=compute_75 -gencode "
		 "arch=compute_80,code=compute_80 "
		 "-gencode arch=compute_90a,code=compute_90a",
		 89, 80, 0},
		{"-rdc=true -gencode arch=compute_75,code=compute_75", 75, 75, 0},
		{"-maxrregcount 48", 75, 75, 48},
		{"-rdc=true -lineinfo -Xptxas -v,-maxrregcount=100 "
		 "-gencode arch=compute_75,code=compute_75",
		 75, 75, 100},
		{"-lineinfo -gencode arch=compute_75,code=compute_75", 75, 75, 0},
		{"-G -gencode arch=compute_75,code=compute_75", 75, 75, 0},
	};
	char nvcc[PATH_MAX], dir[] = "/tmp/qcu-fatbin-XXXXXX", path[64];
	struct soft_units u;
	char *first = NULL;
	unsigned char *p;
	size_t i, len;
	FILE *f;

	(void)state;
	if (!find_nvcc(nvcc, sizeof(nvcc))) {
		print_message("skipped: no %s\n", nvcc);
		skip();
	}
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/t.cu", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		p = compile(nvcc, dir, cases[i].options, &len);
		assert_int_equal(read_bytes(p, len, cases[i].sm, &u), QCU_ERR_Success);
		assert_int_equal(u.count, 1);
		assert_int_equal(u.unit[0].arch, cases[i].arch);
		assert_int_equal(u.unit[0].max_regs, cases[i].max_regs);
		assert_non_null(strstr(u.unit[0].text, ".entry _Z4waveILi5EEvPf"));
		assert_non_null(strstr(u.unit[0].text, ".entry _Z5helloi"));
		/* Each kind of packing gives the same text. */
		if (!first)
			first = strdup(u.unit[0].text);
		else if (i < 5)
			assert_string_equal(u.unit[0].text, first);
		soft_units_free(&u);
		if (i == 2 || i == 4)
			survive(p, len);
		free(p);
	}
	p = compile(nvcc, dir, "-gencode arch=compute_75,code=sm_75", &len);
	assert_int_equal(read_bytes(p, len, 75, &u), QCU_ERR_NoKernelImageForDevice);
	free(p);
	p = compile(nvcc, dir, "-gencode arch=compute_90,code=compute_90", &len);
	assert_int_equal(read_bytes(p, len, 75, &u), QCU_ERR_NoKernelImageForDevice);
	assert_int_equal(read_bytes(p, len, 90, &u), QCU_ERR_Success);
	soft_units_free(&u);
	free(p);
	free(first);
	snprintf(path, sizeof(path), "rm -r %s", dir);
	assert_int_equal(system(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_no_image),
		cmocka_unit_test(refuses_sizes_that_do_not_fit),
		cmocka_unit_test(refuses_bombs),
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(says_how_to_compile),
		cmocka_unit_test(takes_plain_ptx),
		cmocka_unit_test(unpacks_what_it_takes),
		cmocka_unit_test(picks_the_best_that_runs),
		cmocka_unit_test(options_lie_in_the_header),
		cmocka_unit_test(several_containers_are_several_units),
		cmocka_unit_test(reads_what_nvcc_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

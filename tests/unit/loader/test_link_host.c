// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Device code in object files and archives: files that are cut, spoiled or made to lie, and then
 * whole ones. Each fat binary that is passed on must lie in the file, and must be as long as it
 * says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "qcu-library/driver_api/link_host.h"
#include "tests/unit/loader/elf_file.h"

#define PAYLOAD 24u
#define FATBIN	(16u + PAYLOAD)

static struct elf_file file;
static unsigned char archive[2 * sizeof(file.data)];
static size_t archive_size;

/* What was passed on, and the file that it must come from. */
static struct {
	const unsigned char *low, *high;
	size_t count;
	cudaError_t answer;
} seen;

static cudaError_t see(void *ctx, const void *fatbin, size_t bytes)
{
	const unsigned char *p = fatbin;
	uint64_t payload;

	assert_ptr_equal(ctx, &seen);
	assert_true(p >= seen.low && p <= seen.high && bytes <= (size_t)(seen.high - p));
	memcpy(&payload, p + 8, sizeof(payload));
	assert_int_equal(bytes - payload, p[6] | p[7] << 8);
	assert_memory_equal(p, "\x50\xed\x55\xba", 4);
	seen.count++;
	return seen.answer;
}

typedef cudaError_t look(const void *data, size_t size, const struct qcul_fatbin_sink *to);

/* The bytes lie at the end of their memory, so that a look behind them is noticed by ASan. */
static cudaError_t look_at(look *f, const void *data, size_t size)
{
	const struct qcul_fatbin_sink to = {.add = see, .ctx = &seen};
	unsigned char *copy = malloc(size + 1);
	cudaError_t err;

	assert_non_null(copy);
	memcpy(copy + 1, data, size);
	seen.low = copy + 1;
	seen.high = copy + 1 + size;
	seen.count = 0;
	err = f(copy + 1, size, &to);
	free(copy);
	return err;
}

static void put_fatbin(unsigned char *p)
{
	uint64_t payload = PAYLOAD;

	memset(p, 0, FATBIN);
	memcpy(p, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
	memcpy(p + 8, &payload, sizeof(payload));
	memset(p + 16, 0x77, PAYLOAD);
}

/* Two fat binaries, with zeros before, between and behind them. */
static void make_object(void)
{
	static unsigned char code[2 * FATBIN + 24];
	struct elf_file_plan plan = {.fatbin = code, .fatbin_size = sizeof(code)};

	put_fatbin(code + 8);
	put_fatbin(code + 8 + FATBIN + 8);
	elf_file_make(&file, &plan);
	file.head->e_type = ET_REL;
}

static void add_member(const char *name, const void *data, size_t size)
{
	char head[61];

	snprintf(head, sizeof(head), "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name, 0, 0, 0, 0644, size);
	memcpy(archive + archive_size, head, 60);
	memcpy(archive + archive_size + 60, data, size);
	archive_size += 60 + size;
	if (size & 1)
		archive[archive_size++] = '\n';
}

static void begin_archive(void)
{
	memcpy(archive, "!<arch>\n", 8);
	archive_size = 8;
}

static void make_archive(void)
{
	make_object();
	begin_archive();
	add_member("/", "symbols", 7);
	add_member("a.o/", file.data, file.size);
	add_member("text/", "x", 1);
	add_member("b.o/", file.data, file.size);
}

static void not_of_the_kind(void **state)
{
	(void)state;
	make_object();
	assert_int_equal(look_at(qcul_host_object, "", 0), cudaErrorInvalidKernelImage);
	assert_int_equal(look_at(qcul_host_object, "x", 1), cudaErrorInvalidKernelImage);
	assert_int_equal(look_at(qcul_host_library, "", 0), cudaErrorInvalidKernelImage);
	assert_int_equal(look_at(qcul_host_library, "!<thin>\n", 8), cudaErrorInvalidKernelImage);
	assert_int_equal(look_at(qcul_host_library, file.data, file.size),
			 cudaErrorInvalidKernelImage);
	file.head->e_type = ET_DYN;
	assert_int_equal(look_at(qcul_host_object, file.data, file.size),
			 cudaErrorInvalidKernelImage);
	file.head->e_type = ET_REL;
	file.head->e_machine = EM_AARCH64;
	assert_int_equal(look_at(qcul_host_object, file.data, file.size),
			 cudaErrorInvalidKernelImage);
	make_object();
	file.section[FILE_FATBIN].sh_name = file.section[FILE_RODATA].sh_name;
	assert_int_equal(look_at(qcul_host_object, file.data, file.size),
			 cudaErrorInvalidKernelImage);
	/* An archive without device code. */
	begin_archive();
	assert_int_equal(look_at(qcul_host_library, archive, archive_size),
			 cudaErrorInvalidKernelImage);
	add_member("a.o/", file.data, file.size);
	assert_int_equal(look_at(qcul_host_library, archive, archive_size),
			 cudaErrorInvalidKernelImage);
}

static void cut_and_spoiled(void **state)
{
	static unsigned char bad[sizeof(archive)];
	size_t i;

	(void)state;
	make_object();
	for (i = 0; i < file.size; i++)
		look_at(qcul_host_object, file.data, i);
	for (i = 0; i < file.size; i++) {
		memcpy(bad, file.data, file.size);
		memset(bad + i, 0xff, file.size - i < 8 ? file.size - i : 8);
		look_at(qcul_host_object, bad, file.size);
	}
	make_archive();
	for (i = 0; i < archive_size; i++)
		look_at(qcul_host_library, archive, i);
	for (i = 0; i < archive_size; i++) {
		memcpy(bad, archive, archive_size);
		bad[i] ^= 0xff;
		look_at(qcul_host_library, bad, archive_size);
	}
}

static void set_payload(uint64_t size)
{
	memcpy(file.data + file.section[FILE_FATBIN].sh_offset + 16, &size, sizeof(size));
}

static void wrong_sizes(void **state)
{
	Elf64_Shdr *s;

	(void)state;
	make_object();
	set_payload(UINT64_MAX);
	assert_int_equal(look_at(qcul_host_object, file.data, file.size),
			 cudaErrorInvalidKernelImage);
	set_payload(2 * FATBIN + 1);
	assert_int_equal(look_at(qcul_host_object, file.data, file.size),
			 cudaErrorInvalidKernelImage);
	assert_int_equal(seen.count, 0);
	set_payload(PAYLOAD + 1); /* then something else follows */
	assert_int_equal(look_at(qcul_host_object, file.data, file.size), cudaSuccess);
	make_object();
	/* Sections that lie in one another: no byte may be passed on for each of them. */
	s = file.section;
	for (unsigned int i = 1; i < ELF_FILE_SECTIONS; i++)
		if (i != FILE_SHSTRTAB)
			s[i] = s[FILE_FATBIN];
	for (unsigned int i = 1; i < ELF_FILE_SECTIONS; i++)
		if (i != FILE_SHSTRTAB) {
			s[i].sh_offset = 0;
			s[i].sh_size = file.size;
		}
	assert_int_equal(look_at(qcul_host_object, file.data, file.size),
			 cudaErrorInvalidKernelImage);
	assert_int_equal(seen.count, 0);
	/* Sizes in archives. */
	make_archive();
	memcpy(archive + 8 + 48, "9999999999", 10);
	assert_int_equal(look_at(qcul_host_library, archive, archive_size),
			 cudaErrorInvalidKernelImage);
	memcpy(archive + 8 + 48, "-7        ", 10);
	assert_int_equal(look_at(qcul_host_library, archive, archive_size),
			 cudaErrorInvalidKernelImage);
	memcpy(archive + 8 + 48, "          ", 10);
	assert_int_equal(look_at(qcul_host_library, archive, archive_size),
			 cudaErrorInvalidKernelImage);
	memcpy(archive + 8 + 48, "7 1       ", 10);
	assert_int_equal(look_at(qcul_host_library, archive, archive_size),
			 cudaErrorInvalidKernelImage);
}

static void whole(void **state)
{
	(void)state;
	make_object();
	assert_int_equal(look_at(qcul_host_object, file.data, file.size), cudaSuccess);
	assert_int_equal(seen.count, 2);
	make_archive();
	assert_int_equal(look_at(qcul_host_library, archive, archive_size), cudaSuccess);
	assert_int_equal(seen.count, 4);
	/* An error ends the search. */
	seen.answer = cudaErrorInvalidPtx;
	assert_int_equal(look_at(qcul_host_library, archive, archive_size), cudaErrorInvalidPtx);
	assert_int_equal(seen.count, 1);
	seen.answer = cudaSuccess;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_of_the_kind),
		cmocka_unit_test(cut_and_spoiled),
		cmocka_unit_test(wrong_sizes),
		cmocka_unit_test(whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

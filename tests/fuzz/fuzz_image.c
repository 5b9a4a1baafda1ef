// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the check of an image that comes before the backend (image.c): fat binaries and what is
 * unpacked from them, machine code, PTX. If the check accepts an image, the software GPU must not
 * find it damaged.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include <lz4.h>
#include <zstd.h>

#include "include/qcuerror.h"
#include "qcu-device/backend/image.h"
#include "qcu-device/soft/soft.h"
#include "tests/fuzz/fuzz.h"

#define MAGIC	  0xba55ed50u
#define HEADER	  16u
#define ENTRY	  64u
#define KIND_ELF  2u
#define FLAG_LZ4  0x2000u
#define FLAG_ZSTD 0x8000u

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct soft_units units;
	const char *why = NULL;
	char said[128] = "";
	int rc = image_check(data, size, &why);

	if (!rc != !why || (rc && rc != QCU_ERR_InvalidKernelImage))
		abort();
	if (rc)
		return 0;
	if (!soft_fatbin_read(data, size, 90, &units, said, sizeof(said)))
		soft_units_free(&units);
	else if (strstr(said, "damaged") || strstr(said, "unpack"))
		abort();
	return 0;
}

static uint64_t value(size_t size, uint64_t *random)
{
	const uint64_t values[] = {0,
				   1,
				   2,
				   3,
				   8,
				   24,
				   64,
				   255,
				   4096,
				   0xff00,
				   0xffff,
				   0x7fffffff,
				   UINT32_MAX,
				   1ull << 32,
				   1ull << 41,
				   INT64_MAX,
				   UINT64_MAX - 63,
				   UINT64_MAX,
				   size,
				   size - 1,
				   size - 64,
				   size / 2};

	return values[fuzz_random(random, sizeof(values) / sizeof(values[0]))];
}

/* Puts another number into the header, into a section's header, or somewhere in the middle. */
static void change_code(uint8_t *p, size_t size, uint64_t *random)
{
	size_t at = 2 * fuzz_random(random, sizeof(Elf64_Ehdr) / 2), n = 2;
	uint64_t v = value(size, random);
	Elf64_Ehdr head;

	if (size < sizeof(head))
		return;
	memcpy(&head, p, sizeof(head));
	switch (fuzz_random(random, 4)) {
	case 0:
		break;
	case 1:
		at = 8 * fuzz_random(random, (uint32_t)(size / 8));
		n = 8;
		break;
	default:
		at = head.e_shoff + 4 * fuzz_random(random, 16u * (head.e_shnum + 1u));
		n = fuzz_random(random, 2) ? 4 : 8;
	}
	if (at < size && n <= size - at)
		memcpy(p + at, &v, n);
}

static void put(uint8_t *p, uint64_t v, unsigned int bytes)
{
	memcpy(p, &v, bytes);
}

/*
 * Wraps machine code as the only entry of a fat binary, packed or not. Returns 0 if there is no
 * room.
 */
static size_t wrap(const uint8_t *code, size_t len, uint8_t *out, size_t room, uint64_t *random)
{
	static const uint32_t flags[] = {0, FLAG_LZ4, FLAG_ZSTD};
	uint32_t flag = flags[fuzz_random(random, 3)];
	uint8_t *e = out + HEADER, *payload = e + ENTRY;
	size_t packed = len;

	if (room < HEADER + ENTRY)
		return 0;
	room -= HEADER + ENTRY;
	memset(out, 0, HEADER + ENTRY);
	if (flag == FLAG_ZSTD)
		packed = ZSTD_compress(payload, room, code, len, 1);
	else if (flag == FLAG_LZ4)
		packed = (size_t)LZ4_compress_default((const char *)code, (char *)payload, (int)len,
						      (int)room);
	else if (len <= room)
		memcpy(payload, code, len);
	if (!packed || packed > room)
		return 0;
	put(out, MAGIC, 4);
	put(out + 4, 1, 2);
	put(out + 6, HEADER, 2);
	put(out + 8, ENTRY + packed, 8);
	put(e, KIND_ELF, 2);
	put(e + 2, 0x101, 2);
	put(e + 4, ENTRY, 4);
	put(e + 8, packed, 8);
	put(e + 16, flag ? packed : 0, 4);
	put(e + 28, 75, 4);
	put(e + 40, flag, 8);
	put(e + 56, len, 8);
	return HEADER + ENTRY + packed;
}

FUZZ_ENTRY size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;
	bool code = size >= sizeof(Elf64_Ehdr) && !memcmp(data, ELFMAG, SELFMAG);
	unsigned int times = 1 + fuzz_random(&random, 3);
	uint8_t *out;
	size_t n;

	if (!fuzz_random(&random, 4))
		return LLVMFuzzerMutate(data, size, max);
	if (!code) {
		/* The container and the entry begin with the same kind of numbers. */
		n = fuzz_random(&random, HEADER + ENTRY + 16) & ~1u;
		if (n + 8 <= size && size >= HEADER + ENTRY)
			put(data + n, value(size, &random), fuzz_random(&random, 2) ? 4 : 8);
		return size;
	}
	while (times--)
		change_code(data, size, &random);
	if (fuzz_random(&random, 8))
		return size;
	out = malloc(max);
	n = out ? wrap(data, size, out, max, &random) : 0;
	if (n)
		memcpy(data, out, n);
	free(out);
	return n ? n : size;
}

/* Several containers in a row are one program. */
FUZZ_ENTRY size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b,
					    size_t b_size, uint8_t *out, size_t max,
					    unsigned int seed)
{
	(void)seed;
	if (a_size > max || b_size > max - a_size)
		return 0;
	memcpy(out, a, a_size);
	memcpy(out + a_size, b, b_size);
	return a_size + b_size;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the check of an image that comes before the backend (image.c): fat binaries and what is
 * unpacked from them, machine code, PTX. If the check accepts an image, the software GPU must not
 * find it damaged. The names of its variables are looked for in any image.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "include/qcuerror.h"
#include "qcu-device/backend/image.h"
#include "qcu-device/soft/code/code.h"
#include "tests/fuzz/fatbin.h"

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image_names names;
	struct soft_units units;
	const char *why = NULL;
	char said[128] = "";
	int rc = image_check(data, size, &why);

	if (!rc != !why || (rc && rc != QCU_ERR_InvalidKernelImage))
		abort();
	if (image_names(data, size, &names) != rc)
		abort();
	image_names_free(&names);
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

FUZZ_ENTRY size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;
	const struct fatbin_entry entry = {.kind = FATBIN_ELF, .version = 0x101, .arch = 75};
	bool code = size >= sizeof(Elf64_Ehdr) && !memcmp(data, ELFMAG, SELFMAG);
	unsigned int times = 1 + fuzz_random(&random, 3);
	uint8_t *out;
	size_t n;

	if (!fuzz_random(&random, 4))
		return LLVMFuzzerMutate(data, size, max);
	if (!code) {
		/* The container and the entry begin with the same kind of numbers. */
		n = fuzz_random(&random, FATBIN_HEADER + FATBIN_ENTRY + 16) & ~1u;
		if (n + 8 <= size && size >= FATBIN_HEADER + FATBIN_ENTRY)
			fatbin_put(data + n, value(size, &random), fuzz_random(&random, 2) ? 4 : 8);
		return size;
	}
	while (times--)
		change_code(data, size, &random);
	/* Machine code of its own, or as the only entry of a fat binary. */
	if (fuzz_random(&random, 8))
		return size;
	out = malloc(max);
	n = out ? fatbin_build(out, max, &entry, data, size, &random) : 0;
	if (n)
		memcpy(data, out, n);
	free(out);
	return n ? n : size;
}

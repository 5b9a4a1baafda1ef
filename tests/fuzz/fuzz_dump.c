// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the reader of a GPU's dump (fault_dump.h): whatever the dump is, the reader gives a reason
 * and changes nothing, or gives texts that end.
 */
#include <stdlib.h>

#include "qcu-device/backend/fault_dump.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/device/cuda/cuda_dump.h"

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct qcu_fault none;
	struct qcu_fault f = {.error = 0};

	if (fault_dump_read(data, size, &f)) {
		if (memcmp(&f, &none, sizeof(f)) != 0)
			abort();
		return 0;
	}
	if (!f.what[0] || !memchr(f.what, 0, sizeof(f.what)) ||
	    !memchr(f.kernel, 0, sizeof(f.kernel)) || f.flags & ~QCU_FAULT_THREAD)
		abort();
	return 0;
}

static size_t make_dump(uint8_t *data, size_t max, uint64_t *random)
{
	const struct dump_parts with = {.exception = fuzz_random(random, 20),
					.warp_has_pc = (int)fuzz_random(random, 2),
					.no_threads = !fuzz_random(random, 4),
					.no_code = !fuzz_random(random, 4),
					.many = (int)fuzz_random(random, 2),
					.pc = fuzz_random(random, 0x600)};
	static struct cuda_dump d;

	dump_make(&d, &with);
	if (d.len > max)
		return 0;
	memcpy(data, d.p, d.len);
	return d.len;
}

/* Puts another number into the header, into a section's header, or somewhere else. */
static void change_dump(uint8_t *p, size_t size, uint64_t *random)
{
	const uint64_t values[] = {0,	       1,    2,	       3,	 5,	     24,
				   48,	       64,   0xffff,   1u << 31, UINT32_MAX, INT64_MAX,
				   UINT64_MAX, size, size - 1, size / 2, 0x8000000f, 0x80000007};
	uint64_t v = values[fuzz_random(random, sizeof(values) / sizeof(*values))];
	size_t at = 2 * fuzz_random(random, sizeof(Elf64_Ehdr) / 2);
	size_t n = fuzz_random(random, 2) ? 4 : 8;
	Elf64_Ehdr head;

	memcpy(&head, p, sizeof(head));
	if (fuzz_random(random, 4))
		at = head.e_shoff + 4 * fuzz_random(random, 16 * DUMP_SECTIONS);
	else if (fuzz_random(random, 2))
		at = 4 * fuzz_random(random, (uint32_t)(size / 4));
	if (at < size && n <= size - at)
		memcpy(p + at, &v, n);
}

FUZZ_ENTRY size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;
	unsigned int times = 1 + fuzz_random(&random, 3);
	size_t made;

	if (!fuzz_random(&random, 4))
		return LLVMFuzzerMutate(data, size, max);
	if (size < sizeof(Elf64_Ehdr) || !fuzz_random(&random, 16)) {
		made = make_dump(data, max, &random);
		size = made ? made : size;
	}
	while (size >= sizeof(Elf64_Ehdr) && times--)
		change_dump(data, size, &random);
	return size;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Fat binaries, for the fuzz targets that read them. */
#include <string.h>

#include <lz4.h>
#include <zstd.h>

#include "tests/fuzz/fatbin.h"

#define MAGIC 0xba55ed50u

void fatbin_put(uint8_t *p, uint64_t v, unsigned int bytes)
{
	memcpy(p, &v, bytes);
}

size_t fatbin_build(uint8_t *out, size_t room, const struct fatbin_entry *entry, const void *data,
		    size_t len, uint64_t *random)
{
	static const uint32_t packings[] = {0, FATBIN_LZ4, FATBIN_ZSTD};
	uint32_t packing = packings[fuzz_random(random, 3)];
	uint8_t *e = out + FATBIN_HEADER, *payload = e + FATBIN_ENTRY;
	size_t packed = len, exact;

	if (room < FATBIN_HEADER + FATBIN_ENTRY + 8)
		return 0;
	room -= FATBIN_HEADER + FATBIN_ENTRY + 8;
	memset(out, 0, FATBIN_HEADER + FATBIN_ENTRY);
	if (packing == FATBIN_ZSTD)
		packed = ZSTD_compress(payload, room, data, len, 1);
	else if (packing == FATBIN_LZ4)
		packed = (size_t)LZ4_compress_default(data, (char *)payload, (int)len, (int)room);
	else if (len <= room)
		memcpy(payload, data, len);
	if (!packed || packed > room)
		return 0;
	exact = packed;
	while (packed % 8)
		payload[packed++] = 0;
	fatbin_put(out, MAGIC, 4);
	fatbin_put(out + 4, 1, 2);
	fatbin_put(out + 6, FATBIN_HEADER, 2);
	fatbin_put(out + 8, FATBIN_ENTRY + packed, 8);
	fatbin_put(e, entry->kind, 2);
	fatbin_put(e + 2, entry->version, 2);
	fatbin_put(e + 4, FATBIN_ENTRY, 4);
	fatbin_put(e + 8, packed, 8);
	fatbin_put(e + 16, packing ? exact : 0, 4);
	fatbin_put(e + 28, entry->arch, 4);
	fatbin_put(e + 40, packing | entry->flags, 8);
	fatbin_put(e + 56, len, 8);
	return FATBIN_HEADER + FATBIN_ENTRY + packed;
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

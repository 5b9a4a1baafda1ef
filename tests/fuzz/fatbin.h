/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fat binaries, for the fuzz targets that read them. */
#ifndef TESTS_FUZZ_FATBIN_H
#define TESTS_FUZZ_FATBIN_H

#include "tests/fuzz/fuzz.h"

/*
 * The same numbers as in the device's readers of fat binaries, written a second time so that one
 * error is not made twice.
 */
#define FATBIN_HEADER 16u
#define FATBIN_ENTRY  64u
#define FATBIN_PTX    1u
#define FATBIN_ELF    2u
#define FATBIN_LZ4    0x2000u
#define FATBIN_ZSTD   0x8000u
#define FATBIN_ARCH   0x100000u
#define FATBIN_GROUP  0x200000u

struct fatbin_entry {
	uint32_t kind;
	uint32_t version;
	uint32_t arch;
	uint32_t flags; /* besides the packing */
};

/* Stores the lower bytes of a number. */
void fatbin_put(uint8_t *p, uint64_t v, unsigned int bytes);

/*
 * Makes a container with one entry, packed in a random way or not at all. Returns its size, or 0 if
 * there is no room.
 */
size_t fatbin_build(uint8_t *out, size_t room, const struct fatbin_entry *entry, const void *data,
		    size_t len, uint64_t *random);

#endif

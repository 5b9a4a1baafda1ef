/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the fuzz targets and their drivers share. A target is a file that has libFuzzer's entry
 * points. `make fuzz` links it with libFuzzer. The tests link it with replay.c, which feeds it the
 * saved corpus.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_ENTRY __attribute__((visibility("default")))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
				 uint8_t *out, size_t max, unsigned int seed);
/* libFuzzer's own mutations. A replay does not have this function and does not call it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* A generator whose whole state is the seed that libFuzzer gives, so that a run can be repeated. */
static inline uint32_t fuzz_random(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return below ? (uint32_t)(*state >> 33) % below : 0;
}

/*
 * mutate_ptx.c: changes text by lines and by words, so that most of the results can still be
 * parsed.
 */
size_t fuzz_mutate_ptx(char *text, size_t len, size_t max, uint64_t *random);
/* Puts lines of one text into another. */
size_t fuzz_cross_ptx(const char *a, size_t a_len, const char *b, size_t b_len, char *out,
		      size_t max, uint64_t *random);

#endif

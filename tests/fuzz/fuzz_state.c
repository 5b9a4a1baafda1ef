// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the check of a device's saved state, which QEMU reads from a file or from the network.
 * Only what the device itself would write is accepted, and each refusal has a reason.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/moving/state.h"
#include "tests/fuzz/fuzz.h"

#define SESSIONS 16

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct state want;
	char why[64] = ""; /* shorter than some reasons */
	bool fits = state_fits(data, size, SESSIONS, why, sizeof(why));

	if (fits == (*why != '\0') || strnlen(why, sizeof(why)) == sizeof(why))
		abort();
	state_make(&want, SESSIONS);
	if (fits && (size != sizeof(want) || memcmp(data, &want, size) != 0))
		abort();
	return 0;
}

/* A good state with one number changed. Else nearly all inputs end at the first comparison. */
FUZZ_ENTRY size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;
	struct state s;
	uint32_t at;

	if (max < sizeof(s) || !fuzz_random(&random, 4))
		return LLVMFuzzerMutate(data, size, max);
	state_make(&s, SESSIONS);
	at = fuzz_random(&random, sizeof(s) / 4) * 4;
	if (fuzz_random(&random, 8))
		memcpy((uint8_t *)&s + at, &(uint32_t){fuzz_random(&random, 0x10000)}, 4);
	memcpy(data, &s, sizeof(s));
	return fuzz_random(&random, 8) ? sizeof(s) : fuzz_random(&random, sizeof(s) + 1);
}

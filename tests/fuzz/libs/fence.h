/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heap between guard pages, for the calling thread. */
#ifndef TESTS_FUZZ_FENCE_H
#define TESTS_FUZZ_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/fuzz/fuzz.h"

void fuzz_fence(bool on);
bool fuzz_fence_has(uint64_t address);

#endif

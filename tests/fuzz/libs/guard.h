/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guard pages: what a library gets as host memory ends at a page that cannot be used. The linker
 * puts these functions between the stubs and take.c and scratch.c (--wrap).
 */
#ifndef TESTS_FUZZ_GUARD_H
#define TESTS_FUZZ_GUARD_H

#include <stdbool.h>
#include <stdint.h>

void fuzz_guard_begin(void);
/* Between two calls: all memory is given back. False: something has been written in front of it. */
bool fuzz_guard_end(void);
/* Does the address lie in, or right behind, the guarded memory? */
bool fuzz_guard_has(uint64_t address);

#endif

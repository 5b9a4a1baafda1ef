/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of libraries as the shims make them. record.c writes them down while the tests are
 * built. */
#ifndef TESTS_FUZZ_RECORDED_H
#define TESTS_FUZZ_RECORDED_H

#include <stdint.h>

#define RECORDED_MAX 1600u /* bytes of the arguments of one message */
/* The first ones make the objects that the others use. */
#define RECORDED_OBJECTS 6u

struct recorded {
	const uint64_t *args;
	uint32_t bytes, outs;
	uint16_t library, function;
};

extern const struct recorded recorded[];
extern const unsigned int recorded_count;

#endif

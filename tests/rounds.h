/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_ROUNDS_H
#define TESTS_ROUNDS_H

#include <stdbool.h>
#include <stdlib.h>

/*
 * How often a test repeats what the plain build does n times. A sanitizer makes each byte ten times
 * as slow, and finds in a quarter of the rounds what it finds in all.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif
#define ROUNDS(n) (SANITIZED ? ((n) + 3) / 4 : (n))

/* How many of n random steps a test takes: all of them at night, and otherwise a quarter. */
static inline unsigned int random_rounds(unsigned int n)
{
	return !SANITIZED && getenv("QCU_NIGHTLY") ? n : (n + 3) / 4;
}

#endif

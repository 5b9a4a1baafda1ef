/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random commands that keep most rules, for the fuzzer of a mirror and for the hostile guest of a
 * whole device.
 */
#ifndef TESTS_FUZZ_CHOOSE_H
#define TESTS_FUZZ_CHOOSE_H

#include "include/qcucmd.h"
#include "tests/fuzz/fuzz.h"

/* No command that choose_command() makes has more data. */
#define CHOOSE_TAIL 1800u

/*
 * The upper half of a number that stands for the n-th pointer that the session got. The lower half
 * is added to the pointer.
 */
#define CHOOSE_POINTER	0xfeed0000u
#define CHOOSE_POINTERS 16u

/* What the commands are made for. */
struct chooser {
	uint64_t *random;     /* as fuzz_random() takes it */
	unsigned int threads; /* of the guest process */
	unsigned int devices; /* one command of so many names the second device */
	/* Guest memory that segments may name, and the distance to more of it (0: none). */
	uint64_t gpa, bytes, more;
	uint64_t beyond; /* an address where no guest memory is */
	uint64_t image, image_bytes;
	/* Puts the message of a call of a library into guest memory, at `message`. */
	void (*put)(const struct chooser *how, const uint8_t *bytes, uint32_t n);
	uint64_t message;
	void *who; /* for `put` */
};

uint64_t choose_wide(const struct chooser *how);
uint32_t choose_narrow(const struct chooser *how);
/* Makes a command and its data. Returns how many bytes of data it has. */
uint32_t choose_command(const struct chooser *how, struct qCUcmd *c, uint8_t *tail);
/* Puts pointers in the place of the numbers that stand for them. */
void choose_pointers(const uint64_t *pointer, uint8_t *at, size_t len);

#endif

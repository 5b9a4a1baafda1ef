/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An input of fuzz_mirror: a byte of settings and then items. An item is a struct item, a record
 * for a command, and `tail` bytes: the data of the command, or the data to write to guest memory.
 */
#ifndef TESTS_FUZZ_ITEMS_H
#define TESTS_FUZZ_ITEMS_H

#include <stdint.h>

struct item {
	uint8_t kind; /* ITEM_* */
	uint8_t wait; /* for the answer, before the next item */
	uint16_t tail;
	uint32_t gpa; /* of ITEM_WRITE */
};
enum { ITEM_COMMAND, ITEM_WRITE, ITEM_KINDS };

/* Where the message of a call of a library lies that is answered. */
#define ITEM_GPA 0x8000u

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef QCU_ZERO_H
#define QCU_ZERO_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool is_all_zero(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	return !len || (!p[0] && !memcmp(p, p + 1, len - 1));
}

#endif

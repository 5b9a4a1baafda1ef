// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions for a backend that is without some. */
#include "qcu-device/backend/backend.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define BE_OP(name, ...)                       \
	static int missing_##name(__VA_ARGS__) \
	{                                      \
		return BE_MISSING;             \
	}
#define BE_OP_OF(...)
#include "qcu-device/backend/ops.h"

void be_fill_missing(struct be_ops *ops)
{
#define BE_OP(name, ...) \
	if (!ops->name)  \
		ops->name = missing_##name;
#define BE_OP_OF(...)
#include "qcu-device/backend/ops.h"
}

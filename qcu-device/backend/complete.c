// SPDX-License-Identifier: GPL-2.0-or-later
/* Has a backend all functions? A mirror calls them without asking. */
#include "qcu-device/backend/backend.h"

const char *be_lacks(const struct be_ops *ops)
{
#define BE_OP(name, ...) \
	if (!ops->name)  \
		return #name;
#define BE_OP_OF(...)
#include "qcu-device/backend/ops.h"
	return NULL;
}

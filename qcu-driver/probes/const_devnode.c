// SPDX-License-Identifier: GPL-2.0-or-later
/* Kernels from 6.2 on give class.devnode a constant device. */
#include <linux/device.h>

static char *devnode(const struct device *device, umode_t *mode)
{
	return NULL;
}

struct class probe;
struct class probe = {
	.name = "probe",
	.devnode = devnode,
};

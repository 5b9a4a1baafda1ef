// SPDX-License-Identifier: GPL-2.0-or-later
/* Since 6.2 class.devnode gets a constant device. */
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

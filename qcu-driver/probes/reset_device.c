// SPDX-License-Identifier: GPL-2.0-or-later
/* Before 5.17 a virtio device is reset through an operation of its transport. */
#include <linux/virtio.h>
#include <linux/virtio_config.h>

void probe(struct virtio_device *vdev);
void probe(struct virtio_device *vdev)
{
	virtio_reset_device(vdev);
}

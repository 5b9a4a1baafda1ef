// SPDX-License-Identifier: GPL-2.0-or-later
/* Kernels before 5.17 reset a virtio device through its transport's operation. */
#include <linux/virtio.h>
#include <linux/virtio_config.h>

void probe(struct virtio_device *vdev);
void probe(struct virtio_device *vdev)
{
	virtio_reset_device(vdev);
}

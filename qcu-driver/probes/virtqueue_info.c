// SPDX-License-Identifier: GPL-2.0-or-later
/* Since 6.11 an array of structs describes virtqueues. Before, each field had its own array. */
#include <linux/virtio.h>
#include <linux/virtio_config.h>

int probe(struct virtio_device *vdev, struct virtqueue **vqs, struct virtqueue_info *info);
int probe(struct virtio_device *vdev, struct virtqueue **vqs, struct virtqueue_info *info)
{
	return virtio_find_vqs(vdev, 1, vqs, info, NULL);
}

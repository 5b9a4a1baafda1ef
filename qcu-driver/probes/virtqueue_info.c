// SPDX-License-Identifier: GPL-2.0-or-later
/* Kernels from 6.11 on describe virtqueues by an array of structs, not by one array for each field.
 */
#include <linux/virtio.h>
#include <linux/virtio_config.h>

int probe(struct virtio_device *vdev, struct virtqueue **vqs, struct virtqueue_info *info);
int probe(struct virtio_device *vdev, struct virtqueue **vqs, struct virtqueue_info *info)
{
	return virtio_find_vqs(vdev, 1, vqs, info, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The qCUDA device as QEMU sees it: how many queues, how large a config
 * space, which virtio id. The numbers repeat those of the project's wire
 * header on purpose: this file is copied into a QEMU source tree and has to
 * compile there alone.
 */

#ifndef QEMU_VHOST_USER_QCUDA_H
#define QEMU_VHOST_USER_QCUDA_H

#include "hw/virtio/vhost-user-base.h"

/* The highest id that Linux' virtio_pci accepts (PCI device id 0x107f). */
#define VIRTIO_ID_QCUDA 63

#define QCUDA_CONFIG_SIZE      64
#define QCUDA_REASON_SIZE      192 /* behind the config: why the VM cannot be saved now, or "" */
#define QCUDA_QUEUE_SIZE       512
#define QCUDA_SESSIONS_DEFAULT 16
#define QCUDA_SESSIONS_MAX     63

#define TYPE_VHOST_USER_QCUDA "vhost-user-qcuda"

OBJECT_DECLARE_TYPE(VHostUserQcuda, VHostUserQcudaClass, VHOST_USER_QCUDA)

struct VHostUserQcuda {
	VHostUserBase parent_obj;

	uint16_t sessions;

	/* The device process has closed its socket, and there is no other yet. */
	bool gone;
	/* It has done so since the guest last reset the device. */
	bool lost;

	/*
	 * GPU memory goes ahead, or comes: our end of a socket to the device process; -1: none. A
	 * source keeps its end until the migration is over.
	 */
	int ahead;
	bool ahead_ends; /* all of it has been read, or an error */
};

struct VHostUserQcudaClass {
	VHostUserBaseClass parent_class;

	void (*base_set_status)(VirtIODevice *vdev, uint8_t status);
	uint64_t (*base_get_features)(VirtIODevice *vdev, uint64_t features, Error **errp);
	void (*base_unrealize)(DeviceState *dev);
};

#endif
